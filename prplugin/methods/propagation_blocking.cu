// Many iterations per launch, without gathers from global memory: contributions reach their rows through shared memory,
// in two phases; see blocks.cuh.
//
// Mapping: in the first phase one block per span of a tile's edges, with dynamic scheduling: it loads the tile's
// contributions to shared memory, and its warps write those of a group of chunks at a time to `values`, ordered by
// piece, while the indices of the next group are loading. In the second phase one block per piece of rows: it scatters
// the piece's values to their edges' entries in shared memory, and computes row sums and ranks (merge.cuh).
// Memory: per edge 4.5 bytes of indices (and a normalized weight), and a value written and read, all in whole sectors.
// A contribution is read once per span of its tile, mostly from the L2 cache. Per vertex 28 bytes read and 12 or 16
// written; two grid barriers per iteration. For mixing, see mixing.cuh.
// Wins: on large graphs whose contributions exceed the L2 cache, where each gather moves a sector of 32 bytes.
//
//   WEIGHTED  0 or 1

#include "../gpu/blocks.cuh"
#include "../gpu/merge.cuh"

#define LOADS_IN_FLIGHT 8  // loads of contributions that a thread has in flight
#define GROUP 32  // chunks that a warp processes at once
#define WIDE (16 / sizeof(real_t))  // values that a lane moves at once
#define WIDTHS (GROUP * CHUNK / (WARP * WIDE))

struct Blocks {
    long long columns;        // vertices that have contributions
    int tile;  // vertices per tile
    unsigned spans;  // number of spans
    const long long *bounds;  // of each span: tile, and first chunk and end by tile
    const unsigned short *tile_sources;
    const unsigned *chunk_by_piece, *begins;
    const unsigned short *piece_edges;
    const real_t *normalized_weights;  // by piece
    real_t *values;        // by piece
    unsigned *next;  // the next span to process; `row_spans` between the iterations
    unsigned row_spans;  // leading spans that `scatter_row_spans` has processed
};

// WIDE neighbouring values, aligned for one load or store.
struct alignas(16) Values {
    real_t of[WIDE];
};

struct alignas(2 * WIDE) Shorts {
    unsigned short of[WIDE];
};

__device__ inline Values load_values(const real_t *from) {
    uint4 words = __ldcs(reinterpret_cast<const uint4 *>(from));
    Values values;
    memcpy(&values, &words, sizeof(values));
    return values;
}

__device__ inline Shorts load_shorts(const unsigned short *from) {
    Shorts shorts;
    if (sizeof(real_t) == 4) {
        uint2 words = __ldcs(reinterpret_cast<const uint2 *>(from));
        memcpy(&shorts, &words, sizeof(shorts));
    } else {
        unsigned words = __ldcs(reinterpret_cast<const unsigned *>(from));
        memcpy(&shorts, &words, sizeof(shorts));
    }
    return shorts;
}

// Loads contributions first..first + count to shared memory.
__device__ inline void load_tile(const real_t *from, long long first, int count, real_t *tile) {
    int step = blockDim.x;
    for (int base = threadIdx.x; base < count; base += LOADS_IN_FLIGHT * step) {
        real_t loaded[LOADS_IN_FLIGHT];
        // Past the end the last one is loaded again: no load depends on a condition. Other blocks wrote these in the
        // same launch, so they are read from the L2 cache.
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) loaded[k] = __ldcg(from + first + min(base + k * step, count - 1));
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            if (base + k * step < count) tile[base + k * step] = loaded[k];
        }
    }
}

// The part of a group of chunks that one lane writes: WIDE edges at a time; neighbouring lanes write the rest of the
// chunks.
struct Group {
    Shorts tile_sources[WIDTHS];
    unsigned chunk_by_piece[WIDTHS];

    // Loads those from chunk `first` on, of the `count` chunks at the pointers.
    __device__ Group(const unsigned short *at, const unsigned *goal, int first, int count) {
#pragma unroll
        for (int k = 0; k < WIDTHS; ++k) {
            int edge = min(first * CHUNK + edge_of(k), count * CHUNK - static_cast<int>(WIDE));
            tile_sources[k] = load_shorts(at + edge);
            chunk_by_piece[k] = __ldcs(goal + edge / CHUNK);
        }
    }

    __device__ static int edge_of(int k) { return (k * WARP + threadIdx.x % WARP) * static_cast<int>(WIDE); }
};

// Writes the contributions of chunks begin..end (by tile) to their entries by piece, after a barrier of the block that
// completes the tile.
__device__ inline void scatter_span(long long begin, long long end, const real_t *tile, const Blocks &blocks) {
    const unsigned short *tile_sources = blocks.tile_sources + begin * CHUNK;
    const unsigned *chunk_by_piece = blocks.chunk_by_piece + begin;
    int count = static_cast<int>(end - begin), step = blockDim.x / WARP * GROUP;
    int first = threadIdx.x / WARP * GROUP;
    Group next(tile_sources, chunk_by_piece, first, count);
    __syncthreads();  // the tile is complete
    for (; first < count; first += step) {
        Group group = next;
        next = Group(tile_sources, chunk_by_piece, first + step, count);  // loads while this one is written
#pragma unroll
        for (int k = 0; k < WIDTHS; ++k) {
            Values values;
#pragma unroll
            for (int j = 0; j < WIDE; ++j) values.of[j] = tile[group.tile_sources[k].of[j]];
            int edge = first * CHUNK + Group::edge_of(k);
            if (edge < count * CHUNK) {
                real_t *to = blocks.values + static_cast<long long>(group.chunk_by_piece[k]) * CHUNK + edge % CHUNK;
                *reinterpret_cast<Values *>(to) = values;
            }
        }
    }
}

// Processes all spans; ends with a grid barrier.
__device__ inline void scatter_all(const real_t *from, const Blocks &blocks, real_t *tile, unsigned *arrived) {
    __shared__ unsigned taken;
    unsigned upcoming = 0;
    if (threadIdx.x == 0) taken = atomicAdd(blocks.next, 1u);
    __syncthreads();
    while (taken < blocks.spans) {
        const long long *bounds = blocks.bounds + 3 * static_cast<long long>(taken);
        if (threadIdx.x == 0) upcoming = atomicAdd(blocks.next, 1u);
        long long first = bounds[0] * blocks.tile;
        long long left = blocks.columns - first;
        load_tile(from, first, static_cast<int>(min(static_cast<long long>(blocks.tile), left)), tile);
        scatter_span(bounds[1], bounds[2], tile, blocks);
        if (threadIdx.x == 0) taken = upcoming;
        __syncthreads();  // the tile is no longer needed
    }
    grid_barrier(arrived);
    if (blockIdx.x == 0 && threadIdx.x == 0) *blocks.next = blocks.row_spans;  // a barrier precedes its next use
}

// Processes the leading spans while contributions of other tiles are still being copied to this GPU: `from` is read
// only within the tiles of these spans. `*next` then starts at their number.
extern "C" __global__ void __launch_bounds__(512, 2)
    scatter_row_spans(long long columns, int tile, unsigned row_spans, const long long *bounds,
                      const unsigned short *tile_sources, const unsigned *chunk_by_piece, real_t *values,
                      const real_t *from) {
    extern __shared__ double smem[];
    real_t *contributions = reinterpret_cast<real_t *>(smem);
    Blocks blocks = {columns, tile, row_spans, bounds, tile_sources, chunk_by_piece, nullptr, nullptr,
                     nullptr, values, nullptr, row_spans};
    for (unsigned span = blockIdx.x; span < row_spans; span += gridDim.x) {
        const long long *ends = bounds + 3 * static_cast<long long>(span);
        long long first = ends[0] * tile, left = columns - first;
        load_tile(from, first, static_cast<int>(min(static_cast<long long>(tile), left)), contributions);
        scatter_span(ends[1], ends[2], contributions, blocks);
        __syncthreads();  // the tile is no longer needed
    }
}

// Scatters the values of piece p to the entries of its edges, in the order of the rows.
__device__ inline void load_terms(long long p, const Blocks &blocks, term_t *terms) {
    const int widths = 4, step = blockDim.x * WIDE;
    unsigned begin = blocks.begins[p];
    int count = static_cast<int>(blocks.begins[p + 1] - begin) * CHUNK;
    long long from = static_cast<long long>(begin) * CHUNK;
    for (int base = threadIdx.x * WIDE; base < count; base += widths * step) {
        Shorts piece_edges[widths];
        Values values[widths];
#if WEIGHTED
        Values normalized_weights[widths];
#endif
        // Past the end the last ones are loaded and stored again: no load depends on a condition.
#pragma unroll
        for (int k = 0; k < widths; ++k) {
            long long at = from + min(base + k * step, count - static_cast<int>(WIDE));
            piece_edges[k] = load_shorts(blocks.piece_edges + at);
            values[k] = load_values(blocks.values + at);
#if WEIGHTED
            normalized_weights[k] = load_values(blocks.normalized_weights + at);
#endif
        }
#pragma unroll
        for (int k = 0; k < widths; ++k) {
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
#if WEIGHTED
                terms[piece_edges[k].of[j]] = __dmul_rn(values[k].of[j], normalized_weights[k].of[j]);
#else
                terms[piece_edges[k].of[j]] = values[k].of[j];
#endif
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(512, 2)
    propagate(int count, double goal, double stall, double before, double mixing_from, long long n, long long m,
              long long size, long long pieces, const index_t *cuts, const offset_t *offsets, double *fronts,
              double *tails, long long columns, int tile, unsigned spans, const long long *bounds,
              const unsigned short *tile_sources, const unsigned *chunk_by_piece, const unsigned *begins,
              const unsigned short *piece_edges, const real_t *normalized_weights, real_t *values, unsigned *next,
              unsigned row_spans, double alpha,
              const double *target, long long target_step, const double *teleport,
              long long teleport_step, const double *inverse_out_weight, double *ranks, real_t *from, real_t *to,
              int parts, const Totals *latest, Totals *totals, Totals *partials, unsigned *arrived, int window,
              int period, int phase, int width, float *history, double *mixing_state) {
    extern __shared__ double smem[];  // a tile, then the terms of a piece
    Blocks blocks = {columns, tile, spans, bounds, tile_sources, chunk_by_piece, begins, piece_edges,
                     normalized_weights, values, next, row_spans};
    auto scatter = [&](const real_t *contributions) {
        scatter_all(contributions, blocks, reinterpret_cast<real_t *>(smem), arrived);
    };
    auto terms_of = [&](const Piece &piece, const real_t *, term_t *terms) {
        load_terms((piece.begin + piece.first) / size, blocks, terms);
    };
    iterate(count, {goal, stall, before, mixing_from}, {n, m, size, pieces, cuts, offsets, fronts, tails},
            {alpha, target, target_step, teleport, teleport_step, inverse_out_weight},
            {window, period, phase, width, n, history, mixing_state},
            {ranks, from, to, nullptr, nullptr}, parts, latest, totals, partials, arrived, smem, scatter, terms_of);
}
