// The dense power method: Swaroop 2021.
//
// Mapping: one block per row of the n x n matrix, in a grid-stride loop; its threads read the row coalesced, and reduce
// their sums in shared memory, those of 8 or 16 threads by shuffles. `count_pairs`: one thread per edge.
// Memory: n^2 entries, coalesced, each once; the n contributions once per row, from the caches. `count_pairs`
// reads 8 bytes per edge, with at most one atomic addition.
// Wins: on graphs where a large part of all pairs are edges: an entry costs no index and no gather.
//
//   real_t   float or double: the type of contributions
//   entry_t  int: the number of edges from j to i. float or double, for weighted graphs: the sum of their normalized
//            weights.

#include "../gpu/each.cuh"
#include "../gpu/sums.cuh"

// Counts the edges of each pair in a matrix of zeros. Lanes of a warp with equal pairs share one addition.
extern "C" __global__ void count_pairs(long long m, long long n, const int *sources, const int *targets, int *matrix) {
    each(sources, m, [=](int source, long long edge) {
        long long pair = targets[edge] * n + source;
        unsigned equal = __match_any_sync(__activemask(), static_cast<unsigned long long>(pair));
        if (threadIdx.x % 32 == __ffs(equal) - 1) atomicAdd(matrix + pair, __popc(equal));
    });
}

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
