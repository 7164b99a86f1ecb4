// Edge-centric: Kim 2013, Algorithms 1 and 2; CUDA design 1 of Kumar and others 2012, whose hardware had no
// floating-point atomics.
//
// Mapping: one thread per edge, in a grid-stride loop, in the order of the edge list; each adds its term to its
// target's sum, which is initialized to 0. The order of additions varies, so the last bits vary between runs.
// Memory: two positions per edge (and a normalized weight), coalesced, a gathered contribution, and an atomic addition
// of a double at the target, done by the L2 cache (native from compute capability 6.0 on).
// Wins: where sorting does not pay; on an edge list in arbitrary order it is faster than one thread per vertex on
// skewed graphs.

#include "../gpu/edge_term.cuh"

extern "C" __global__ void edge_push(long long edges, const index_t *sources, const index_t *targets,
                                     const real_t *normalized_weights, const real_t *contributions, double *row_sums) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long edge = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; edge < edges; edge += stride) {
        atomicAdd(row_sums + targets[edge], edge_term(sources, normalized_weights, contributions, edge));
    }
}
