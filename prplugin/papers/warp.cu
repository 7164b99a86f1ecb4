// Lanes of a warp per row: warp sum in Bowen 2022; 16T1R and 1W1R in Wu and others 2010.
//
// Mapping: LANES neighbouring threads (4, 8, 16 or 32) per row, in a grid-stride loop; they read the row's indices
// coalesced, and reduce their sums by shuffles.
// Memory: one index per edge (and a normalized weight), coalesced within a row, and a gathered contribution; two
// offsets and a sum per row.
// Wins: where rows are at least about as long as LANES; lanes beyond a row's length idle.
//
//   LANES  4 8 16 32
//   SHORT  0 1

#include "../gpu/edge_term.cuh"

// Sums the in-edges begins[k]..ends[k] of row rows[k] (row k where rows is null), for k in first..last.
extern "C" __global__ void GATHER_LAUNCH_BOUNDS warp_pull(long long first, long long last, const index_t *rows,
                                               const offset_t *begins, const offset_t *ends, const index_t *sources,
                                               const real_t *normalized_weights, const real_t *contributions,
                                               double *row_sums) {
    int lane = threadIdx.x % LANES;
    long long groups = static_cast<long long>(gridDim.x) * blockDim.x / LANES;
    long long group = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    for (long long start = first; start < last; start += groups) {  // uniform: shuffles need every lane
        long long k = start + group;
        Sum sum = ZERO_SUM;
        if (k < last) add_edges(sum, begins[k] + lane, ends[k], LANES, sources, normalized_weights, contributions);
        sum = lanes_sum<LANES>(sum);
        if (k < last && lane == 0) row_sums[rows == nullptr ? k : rows[k]] = sum.value();
    }
}
