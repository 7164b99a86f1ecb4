// Edge-centric: Kim 2013, Algorithms 1 and 2; CUDA design 1 of Kumar and others 2012, for which their hardware had no
// floating-point atomics.
//
// Mapping: one thread an edge, in a loop that strides over the grid, in the order in which they lie; each adds its term
// to its target's sum, which was set to 0 before. Additions come in the order of arrival: the last bits vary.
// Memory: two positions an edge (and a share), coalesced, a gathered contribution, and an atomic addition of a double at
// the target, which the L2 cache carries out (native from compute capability 6.0 on).
// Wins: nothing has to be sorted; on edges without any order of their own it beats a thread a vertex on skewed graphs.

#include "../../gpu/edge_term.cuh"

extern "C" __global__ void edge_push(long long edges, const index_t *sources, const index_t *targets,
                                     const real_t *normalized_weights, const real_t *contributions, double *pulled) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long edge = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; edge < edges; edge += stride) {
        atomicAdd(pulled + targets[edge], edge_term(sources, normalized_weights, contributions, edge));
    }
}
