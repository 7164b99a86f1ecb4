// What an edge brings to its target: the contribution of its source, rank / out-weight; where edges have weights, the
// rank of its source times the edge's share w / W of the out-weight, for 1 / W overflows where weights are denormal.
//
//   real_t    float or double: the type of contributions and shares. Products and sums are in double either way, so
//             that a float is rounded once, when it is stored.
//   index_t   int, or long long past 2^31 vertices
//   WEIGHTED  0 or 1

#include "sums.cuh"

__device__ inline double edge_term(const index_t *sources, const real_t *normalized_weights,
                                   const real_t *contributions, long long edge) {
#if WEIGHTED
    // Not fused with the addition that follows, whose error has to be that of a number.
    return __dmul_rn(__ldg(contributions + sources[edge]), normalized_weights[edge]);
#else
    return __ldg(contributions + sources[edge]);
#endif
}

// For kernels that call `add_edges`: as many threads a block as there may be, and registers for all its gathers.
// Without it the compiler makes do with few registers, by waiting for each gather before it begins the next.
#define GATHERING __launch_bounds__(1024, 1)

// Adds the terms of the edges first, first + step, ... before `end` to a sum, in this order. A gather waits for its
// index, and an addition for the one before: so the gathers of several edges are under way at a time.
__device__ inline void add_edges(Sum &sum, long long first, long long end, long long step, const index_t *sources,
                                 const real_t *normalized_weights, const real_t *contributions) {
    const int at_once = 8;
    long long edge = first;
    for (; edge + (at_once - 1) * step < end; edge += at_once * step) {
        index_t from[at_once];
        real_t terms[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k) from[k] = sources[edge + k * step];
#pragma unroll
        for (int k = 0; k < at_once; ++k) terms[k] = __ldg(contributions + from[k]);
#pragma unroll
        for (int k = 0; k < at_once; ++k) {
#if WEIGHTED
            sum.add(__dmul_rn(terms[k], normalized_weights[edge + k * step]));
#else
            sum.add(terms[k]);
#endif
        }
    }
    for (; edge < end; edge += step) sum.add(edge_term(sources, normalized_weights, contributions, edge));
}
