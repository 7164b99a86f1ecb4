// The shares w / W of edges in the out-weights of their sources.
//
// Mapping: a thread an edge, in a loop that strides over the grid.
// Memory: an index and a weight an edge once in, and a share once out; and a gathered out-weight.
// Wins: it is the only one.
//
//   index_t  int or long long
//   real_t   double or float: the type that the quotient is rounded to

#include "each.cuh"

extern "C" __global__ void shares(long long m, const index_t *__restrict__ sources, const double *__restrict__ weights,
                                  const double *__restrict__ out_weights, real_t *__restrict__ shares) {
    long long stride = all_threads();
    for (long long first = this_thread(); first < m; first += AT_A_TIME * stride) {
        index_t mine[AT_A_TIME];
        double part[AT_A_TIME], whole[AT_A_TIME];
        // Past the last edge it is read again: no load waits for a condition.
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) mine[item] = sources[min(first + item * stride, m - 1)];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) part[item] = weights[min(first + item * stride, m - 1)];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) whole[item] = out_weights[mine[item]];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            long long edge = first + item * stride;
            if (edge < m) shares[edge] = static_cast<real_t>(whole[item] > 0.0 ? part[item] / whole[item] : 0.0);
        }
    }
}
