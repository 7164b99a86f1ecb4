// Normalized weights w / W of the edges, W being the out-weight of the source.
//
// Mapping: one thread per edge, in a grid-stride loop.
// Memory: per edge an index and a weight read and a normalized weight written, coalesced, and a gathered out-weight.
// Wins: always; it is the only kernel for it.
//
//   index_t  int or long long
//   real_t   double or float: the type of the result

#include "each.cuh"

extern "C" __global__ void normalized_weights(long long m, const index_t *__restrict__ sources,
                                              const double *__restrict__ weights,
                                              const double *__restrict__ out_weights,
                                              real_t *__restrict__ normalized_weights) {
    long long stride = all_threads();
    for (long long first = this_thread(); first < m; first += LOADS_IN_FLIGHT * stride) {
        index_t mine[LOADS_IN_FLIGHT];
        double weight[LOADS_IN_FLIGHT], out_weight[LOADS_IN_FLIGHT];
        // Past the end the last edge is read again: no load depends on a condition.
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) mine[item] = sources[min(first + item * stride, m - 1)];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) weight[item] = weights[min(first + item * stride, m - 1)];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) out_weight[item] = out_weights[mine[item]];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            long long edge = first + item * stride;
            if (edge >= m) continue;
            double quotient = out_weight[item] > 0.0 ? weight[item] / out_weight[item] : 0.0;
            normalized_weights[edge] = static_cast<real_t>(quotient);
        }
    }
}
