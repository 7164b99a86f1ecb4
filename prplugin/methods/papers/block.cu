// A block a row: block sum in Bowen 2022.
//
// Mapping: all threads of a block on one row, in a loop that strides over the grid; they read its indices side by side
// and add up their sums through shared memory.
// Memory: an index an edge (and a share), coalesced, and a gathered contribution; two offsets and a sum a row.
// Wins: on rows of thousands of in-edges; on short ones nearly all threads idle.

#include "../../gpu/edge_term.cuh"

// Sums the in-edges begins[k]..ends[k] of row rows[k] (row k where rows is null), for k in first..last.
extern "C" __global__ void GATHERING block_pull(long long first, long long last, const index_t *rows,
                                                const offset_t *begins, const offset_t *ends, const index_t *sources,
                                                const real_t *normalized_weights, const real_t *contributions,
                                                double *pulled) {
    for (long long k = first + blockIdx.x; k < last; k += gridDim.x) {
        Sum sum = NOTHING;
        add_edges(sum, begins[k] + threadIdx.x, ends[k], blockDim.x, sources, normalized_weights, contributions);
        sum = block_sum(sum);
        if (threadIdx.x == 0) pulled[rows == nullptr ? k : rows[k]] = sum.value();
    }
}
