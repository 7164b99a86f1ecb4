// All iterations in one launch: the grid stays on the GPU, and its blocks wait for one another between the steps.
//
// Mapping: a block a piece of equally many rows and edges, one after the other; see merge.cuh. Its threads gather the
// terms of the edges to shared memory, eight each under way at a time, and then sum and end the rows.
// Memory: an index an edge (and a share), coalesced, and a gathered contribution; 28 bytes read and 12 or 16 written a
// vertex, each once; a barrier of the grid an iteration in place of all launches. Where iterations are mixed, see
// mixing.cuh.
// Wins: on graphs whose edges and contributions stay in the L2 cache, where launches and waits are what an iteration
// takes; and, for its equal pieces, on skewed graphs of any size whose contributions fit there.
//
//   WEIGHTED  0 or 1

#include "../gpu/merge.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    persist(int count, double goal, double stall, double before, double many, long long n, long long m,
            long long size, long long pieces, const index_t *cuts, const offset_t *offsets, double *fronts,
            double *tails, const index_t *sources, const real_t *normalized_weights, double alpha,
            const double *target, long long target_step, const double *teleport, long long teleport_step,
            const double *inverse_out_weight, double *ranks, real_t *from, real_t *to, int parts, const Totals *latest,
            Totals *totals, Totals *partials, unsigned *arrived, int window, int period, int fresh, int width,
            float *residuals, float *corrections, double *kept, History *history, double *weights, double *products) {
    extern __shared__ double room[];
    auto terms_of = [&](const Piece &piece, const real_t *contributions, term_t *terms) {
        const int at_once = 8;
        int edges = static_cast<int>(piece.end - piece.begin), step = blockDim.x;
        const index_t *from = sources + piece.begin;
        for (int first = threadIdx.x; first < edges; first += at_once * step) {
            index_t places[at_once];
            real_t brought[at_once];
            // Past the last edge it is brought again, to room that nobody reads: no load waits for a condition.
#pragma unroll
            for (int k = 0; k < at_once; ++k) places[k] = __ldcs(from + min(first + k * step, edges - 1));
            // Not through the read-only cache: other blocks wrote these in the same launch.
#pragma unroll
            for (int k = 0; k < at_once; ++k) brought[k] = contributions[places[k]];
#pragma unroll
            for (int k = 0; k < at_once; ++k) {
#if WEIGHTED
                real_t normalized_weight = __ldcs(normalized_weights + piece.begin + min(first + k * step, edges - 1));
                terms[first + k * step] = __dmul_rn(brought[k], normalized_weight);
#else
                terms[first + k * step] = brought[k];
#endif
            }
        }
    };
    iterate(count, {goal, stall, before, many}, {n, m, size, pieces, cuts, offsets, fronts, tails},
            {alpha, target, target_step, teleport, teleport_step, inverse_out_weight},
            {window, period, fresh, width, residuals, corrections, kept, history, weights, products},
            {ranks, from, to, nullptr, nullptr}, parts, latest, totals, partials, arrived, room,
            [](const real_t *) {}, terms_of);
}
