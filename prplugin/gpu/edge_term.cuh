// The term of an edge in a row sum: the contribution of its source, rank / out-weight. In weighted graphs it is the
// rank of its source times the normalized weight w / W, since 1 / W overflows for subnormal weights.
//
//   real_t    float or double: the type of contributions and normalized weights. Products and sums are in double either
//             way, so that a float is rounded only once, when it is stored.
//   index_t   int, or long long past 2^31 vertices
//   WEIGHTED  0 or 1

#include "sums.cuh"

__device__ inline double edge_term(const index_t *sources, const real_t *normalized_weights,
                                   const real_t *contributions, long long edge) {
#if WEIGHTED
    // Not fused with the addition that follows: the compensated sum needs the rounded product.
    return __dmul_rn(__ldg(contributions + sources[edge]), normalized_weights[edge]);
#else
    return __ldg(contributions + sources[edge]);
#endif
}

// For kernels that call `add_edges`: up to 1024 threads per block, and registers for all its gathers in flight. By
// default the compiler uses fewer registers, and waits for each gather before the next. With SHORT, for runs in which
// no thread has as many edges, it uses its default, since more threads then fit into a multiprocessor.
#if SHORT
#define GATHER_LAUNCH_BOUNDS
#define LOADS_IN_FLIGHT 1
#else
#define GATHER_LAUNCH_BOUNDS __launch_bounds__(1024, 1)
#define LOADS_IN_FLIGHT 8
#endif

// Adds the terms of the edges first, first + step, ... before `end` to a sum, in this order. Several gathers are in
// flight at a time, since a gather waits for its index, and an addition for the one before.
__device__ inline void add_edges(Sum &sum, long long first, long long end, long long step, const index_t *sources,
                                 const real_t *normalized_weights, const real_t *contributions) {
    const int loads_in_flight = LOADS_IN_FLIGHT;
    long long edge = first;
    for (; edge + (loads_in_flight - 1) * step < end; edge += loads_in_flight * step) {
        index_t from[loads_in_flight];
        real_t terms[loads_in_flight];
#pragma unroll
        for (int k = 0; k < loads_in_flight; ++k) from[k] = sources[edge + k * step];
#pragma unroll
        for (int k = 0; k < loads_in_flight; ++k) terms[k] = __ldg(contributions + from[k]);
#pragma unroll
        for (int k = 0; k < loads_in_flight; ++k) {
#if WEIGHTED
            sum.add(__dmul_rn(terms[k], normalized_weights[edge + k * step]));
#else
            sum.add(terms[k]);
#endif
        }
    }
    for (; edge < end; edge += step) sum.add(edge_term(sources, normalized_weights, contributions, edge));
}
