// One block per row: block sum in Bowen 2022.
//
// Mapping: one block per row, in a grid-stride loop; its threads read the row's indices coalesced, and reduce their
// sums in shared memory.
// Memory: one index per edge (and a normalized weight), coalesced, and a gathered contribution; two offsets and a sum
// per row.
// Wins: on rows of thousands of in-edges; on short rows most threads idle.

#include "../gpu/edge_term.cuh"

// Sums the in-edges begins[k]..ends[k] of row rows[k] (row k where rows is null), for k in first..last.
extern "C" __global__ void GATHER_LAUNCH_BOUNDS block_pull(long long first, long long last, const index_t *rows,
                                                const offset_t *begins, const offset_t *ends, const index_t *sources,
                                                const real_t *normalized_weights, const real_t *contributions,
                                                double *row_sums) {
    for (long long k = first + blockIdx.x; k < last; k += gridDim.x) {
        Sum sum = ZERO_SUM;
        add_edges(sum, begins[k] + threadIdx.x, ends[k], blockDim.x, sources, normalized_weights, contributions);
        sum = block_sum(sum);
        if (threadIdx.x == 0) row_sums[rows == nullptr ? k : rows[k]] = sum.value();
    }
}
