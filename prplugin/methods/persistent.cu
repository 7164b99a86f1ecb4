// Many iterations per launch: blocks stay resident, and wait at a grid barrier between iterations.
//
// Mapping: one block per piece of equally many rows and edges, in a loop; see merge.cuh. Its threads gather the terms
// of the edges to shared memory, with eight loads in flight each, and then compute row sums and ranks.
// Memory: one index per edge (and a normalized weight), coalesced, and a gathered contribution; per vertex 28 bytes
// read and 12 or 16 written, each once; one grid barrier per iteration instead of launches. For mixing, see mixing.cuh.
// Wins: on graphs whose edges and contributions fit in the L2 cache, where launches and synchronization dominate an
// iteration; and, for its equal pieces, on skewed graphs of any size whose contributions fit there.
//
//   WEIGHTED  0 or 1

#include "../gpu/merge.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    persist(const __grid_constant__ Launch launch, const __grid_constant__ Equation equation,
            const __grid_constant__ Store store, const __grid_constant__ Pieces pieces, const index_t *sources,
            const real_t *normalized_weights) {
    extern __shared__ double smem[];
    auto terms_of = [&](const Piece &piece, const real_t *contributions, term_t *terms) {
        const int loads_in_flight = 8;
        int edges = static_cast<int>(piece.end - piece.begin), step = blockDim.x;
        const index_t *from = sources + piece.begin;
        for (int first = threadIdx.x; first < edges; first += loads_in_flight * step) {
            index_t places[loads_in_flight];
            real_t loaded[loads_in_flight];
            // Past the end the last edge is loaded again, to entries that are not read: no load depends on a condition.
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) places[k] = __ldcs(from + min(first + k * step, edges - 1));
            // Not through the read-only cache: other blocks wrote these in the same launch.
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) loaded[k] = contributions[places[k]];
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) {
#if WEIGHTED
                real_t normalized_weight = __ldcs(normalized_weights + piece.begin + min(first + k * step, edges - 1));
                terms[first + k * step] = __dmul_rn(loaded[k], normalized_weight);
#else
                terms[first + k * step] = loaded[k];
#endif
            }
        }
    };
    auto rows = merged_rows(pieces, equation, smem, terms_of);
    iterate(launch, pieces.n, equation, store, smem, rows);
}
