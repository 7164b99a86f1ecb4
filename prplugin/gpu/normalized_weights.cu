// The shares w / W of edges in the out-weights of their sources.
//
// Mapping: a thread an edge, in a loop that strides over the grid.
// Memory: an index and a weight an edge once in, and a share once out; and a gathered out-weight.
// Wins: it is the only one.
//
//   index_t  int or long long
//   real_t   double or float: the type that the quotient is rounded to

#include "each.cuh"

extern "C" __global__ void normalized_weights(long long m, const index_t *__restrict__ sources,
                                              const double *__restrict__ weights,
                                              const double *__restrict__ out_weights,
                                              real_t *__restrict__ normalized_weights) {
    long long stride = all_threads();
    for (long long first = this_thread(); first < m; first += AT_A_TIME * stride) {
        index_t mine[AT_A_TIME];
        double weight[AT_A_TIME], out_weight[AT_A_TIME];
        // Past the last edge it is read again: no load waits for a condition.
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) mine[item] = sources[min(first + item * stride, m - 1)];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) weight[item] = weights[min(first + item * stride, m - 1)];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) out_weight[item] = out_weights[mine[item]];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            long long edge = first + item * stride;
            if (edge >= m) continue;
            double quotient = out_weight[item] > 0.0 ? weight[item] / out_weight[item] : 0.0;
            normalized_weights[edge] = static_cast<real_t>(quotient);
        }
    }
}
