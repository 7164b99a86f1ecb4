// The dense power method: Swaroop 2021.
//
// Mapping: a block a row of the n x n matrix, in a loop that strides over the grid; its threads read the row side by
// side and add up their sums through shared memory.
// Memory: n^2 entries, coalesced, each once; the n contributions again for each row, from the caches.
// Wins: on graphs of which a good part of all pairs are edges: an entry costs no index and no gather.
//
//   real_t   float or double: the type of contributions
//   entry_t  int: how many edges go from j to i. float or double, where edges have weights: their shares of j's
//            out-weight, added up.

#include "../../gpu/sums.cuh"

extern "C" __global__ void dense_pull(long long n, const entry_t *matrix, const real_t *contributions, double *pulled) {
    for (long long i = blockIdx.x; i < n; i += gridDim.x) {
        const entry_t *row = matrix + i * n;
        Sum sum = NOTHING;
        for (long long j = threadIdx.x; j < n; j += blockDim.x) {
            // Not fused with the addition that follows, whose error has to be that of a number.
            sum.add(__dmul_rn(row[j], contributions[j]));
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0) pulled[i] = sum.value();
    }
}
