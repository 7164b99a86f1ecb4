// Node-centric pull: Kim 2013, Algorithm 3; one-to-one in Bowen 2022; 1T1R in Wu and others 2010.
//
// Mapping: one thread per row, in a grid-stride loop.
// Memory: one index per edge (and a normalized weight), which neighbouring threads read a row apart, and a gathered
// contribution; two offsets and a sum per row.
// Wins: on short rows of similar lengths (road networks, uniform graphs): a warp takes as long as its longest row.
//
//   SHORT  0 1

#include "../gpu/edge_term.cuh"

// Sums the in-edges begins[k]..ends[k] of row rows[k] (row k where rows is null), for k in first..last.
extern "C" __global__ void GATHER_LAUNCH_BOUNDS node_pull(long long first, long long last, const index_t *rows,
                                               const offset_t *begins, const offset_t *ends, const index_t *sources,
                                               const real_t *normalized_weights, const real_t *contributions,
                                               double *row_sums) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = first + static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < last; k += stride) {
        Sum sum = ZERO_SUM;
        add_edges(sum, begins[k], ends[k], 1, sources, normalized_weights, contributions);
        row_sums[rows == nullptr ? k : rows[k]] = sum.value();
    }
}
