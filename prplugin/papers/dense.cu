// The dense power method: Swaroop 2021.
//
// Mapping: one block per row of the n x n matrix, in a grid-stride loop; its threads read the row coalesced, and reduce
// their sums in shared memory, those of 8 or 16 threads by shuffles.
// Memory: n^2 entries, coalesced, each once; the n contributions once per row, from the caches.
// Wins: on graphs where a large part of all pairs are edges: an entry costs no index and no gather.
//
//   real_t   float or double: the type of contributions
//   entry_t  int: the number of edges from j to i. float or double, for weighted graphs: the sum of their normalized
//            weights.

#include "../gpu/sums.cuh"

extern "C" __global__ void dense_pull(long long n, const entry_t *matrix, const real_t *contributions,
                                      double *row_sums) {
    for (long long i = blockIdx.x; i < n; i += gridDim.x) {
        const entry_t *row = matrix + i * n;
        Sum sum = ZERO_SUM;
        for (long long j = threadIdx.x; j < n; j += blockDim.x) {
            // Not fused with the addition that follows: the compensated sum needs the rounded product.
            sum.add(__dmul_rn(row[j], contributions[j]));
        }
        sum = blockDim.x == 8 ? lanes_sum<8>(sum) : blockDim.x == 16 ? lanes_sum<16>(sum) : block_sum(sum);
        if (threadIdx.x == 0) row_sums[i] = sum.value();
    }
}
