// Many iterations per launch, without gathers from global memory: contributions reach their rows through shared memory,
// in two phases; see blocks.cuh.
//
// Mapping: in the first phase one block per span of a tile's edges, with dynamic scheduling: it loads the tile's
// contributions to shared memory, and its warps write those of a group of chunks at a time to `values`, ordered by
// piece, while the indices of the next group are loading. In the second phase one block per unit, a part of a piece's
// edges: it adds their values to sums of the rows in shared memory, and finishes the rows (iterate.cuh). Sums of the units
// of a piece with several go to global memory, where the block of the last one finishes the rows.
// Sums are integers of WORDS words, in multiples of a power of 2 that is small beside a rank: additions are exact, so that
// atomics in any order give the same bits. A term is rounded once, when it becomes an integer.
// Memory: per edge 4.5 bytes of indices (and a normalized weight), and a value written and read, all in whole sectors.
// A contribution is read once per span of its tile, mostly from the L2 cache. Per vertex 28 bytes read and 12 or 16
// written; two grid barriers per iteration. For mixing, see mixing.cuh.
// Wins: on large graphs whose contributions exceed the L2 cache, where each gather moves a sector of 32 bytes.
//
//   WEIGHTED  0 or 1
//   TILE      32 24000
//   PIECE     32 12000

#include "../gpu/blocks.cuh"
#include "../gpu/each.cuh"
#include "../gpu/iterate.cuh"
#include "../gpu/marks.cuh"

#define GROUP 32  // chunks that a warp processes at once
#define WIDE (16 / sizeof(real_t))  // values that a lane moves at once
#define WIDTHS (GROUP * CHUNK / (WARP * WIDE))
#define WORDS (sizeof(real_t) == 4 ? 2 : 3)  // 32-bit words of a sum
#define ENTRIES (PIECE + 1)                  // sums of a piece: its rows, and one for padding
#define ROWS_IN_FLIGHT 4

struct Blocks {
    const Marks *marks;
    long long rows, columns;  // places of rows, and of all vertices that have contributions
    unsigned spans;           // number of spans
    const long long *bounds;  // of each span: tile, and first chunk and end by tile
    const unsigned short *tile_sources;
    const unsigned *chunk_by_piece;
    const unsigned short *piece_rows;
    const real_t *normalized_weights;  // by piece
    real_t *values;                    // by piece
    unsigned *next;      // the next span to process; `row_spans` between the iterations
    unsigned row_spans;  // leading spans that `scatter_row_spans` has processed
    unsigned units;
    const long long *unit_bounds;  // of each unit: piece, first chunk and end by piece, units of the piece before it and
                                   // after it, and where it has several, their number among such pieces
    unsigned *shared_sums;  // WORDS * ENTRIES for each piece of several units; 0 between the iterations
    unsigned *summed;       // for each of them, the number of units that have been added; 0 between the iterations
    double quantum;         // sums are multiples of it, a power of 2
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

// Loads the contributions of the vertices of a tile to shared memory, and 0 for padding edges.
__device__ inline void load_tile(const real_t *from, long long tile, long long columns, const Marks *marks,
                                 real_t *contributions) {
    int step = blockDim.x, count = static_cast<int>(min(static_cast<long long>(TILE), columns - tile * TILE));
    for (int base = threadIdx.x; base < count; base += LOADS_IN_FLIGHT * step) {
        Marks words[LOADS_IN_FLIGHT];
        real_t loaded[LOADS_IN_FLIGHT];
        // Past the end the last one is loaded again, and without a vertex that of a neighbour, or none after the last:
        // other blocks wrote these in the same launch, so they are read from the L2 cache.
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            words[k] = marks[(tile * TILE + min(base + k * step, count - 1)) / 32];
        }
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            long long place = tile * TILE + min(base + k * step, count - 1);
            loaded[k] = words[k].has(place) ? __ldcg(from + words[k].rank(place)) : real_t(0);
        }
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            if (base + k * step < count) contributions[base + k * step] = loaded[k];
        }
    }
    if (threadIdx.x == 0) contributions[TILE] = 0;
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
        load_tile(from, bounds[0], blocks.columns, blocks.marks, tile);
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
    scatter_row_spans(const Marks *marks, long long columns, unsigned row_spans, const long long *bounds,
                      const unsigned short *tile_sources, const unsigned *chunk_by_piece, real_t *values,
                      const real_t *from) {
    extern __shared__ double smem[];
    real_t *tile = reinterpret_cast<real_t *>(smem);
    Blocks blocks = {marks, 0, columns, row_spans, bounds, tile_sources, chunk_by_piece};
    blocks.values = values;
    for (unsigned span = blockIdx.x; span < row_spans; span += gridDim.x) {
        const long long *ends = bounds + 3 * static_cast<long long>(span);
        load_tile(from, ends[0], columns, marks, tile);
        scatter_span(ends[1], ends[2], tile, blocks);
        __syncthreads();  // the tile is no longer needed
    }
}

// A sum, or a term of one, in multiples of the quantum.
struct Fixed {
    unsigned long long low;
    unsigned high;  // the third word

    __device__ static Fixed of(float term, double inverse_quantum) {
        return {__float2ull_rn(term * static_cast<float>(inverse_quantum)), 0};
    }

    // A product of floats is rounded to a multiple of the quantum from double.
    __device__ static Fixed of(double term, double inverse_quantum) {
        double multiple = term * inverse_quantum;
        if (WORDS == 2) return {__double2ull_rn(multiple), 0};
        double upper = floor(multiple * 0x1p-32);  // what is left of it is exact
        unsigned long long words = static_cast<unsigned long long>(upper);
        unsigned lowest = __double2uint_rz(multiple - upper * 0x1p32);
        return {words << 32 | lowest, static_cast<unsigned>(words >> 32)};
    }

    __device__ double value(double quantum) const {
        return (static_cast<double>(high) * 0x1p64 + static_cast<double>(low)) * quantum;
    }
};

// Adds a term to a sum, whose words are ENTRIES apart; what an addition carries goes to the next word.
__device__ inline void add(unsigned *sum, Fixed term) {
    unsigned word = static_cast<unsigned>(term.low), before = atomicAdd(sum, word);
    unsigned long long rest = (term.low >> 32) + (before + word < before);
    if (WORDS == 2) {
        if (rest) atomicAdd(sum + ENTRIES, static_cast<unsigned>(rest));
        return;
    }
    unsigned top = term.high + static_cast<unsigned>(rest >> 32);
    word = static_cast<unsigned>(rest);
    if (word) {
        before = atomicAdd(sum + ENTRIES, word);
        top += before + word < before;
    }
    if (top) atomicAdd(sum + 2 * ENTRIES, top);
}

// Returns a sum and clears it.
template <typename Load>
__device__ inline Fixed taken(unsigned *sum, Load load) {
    Fixed found = {load(sum) | static_cast<unsigned long long>(load(sum + ENTRIES)) << 32, 0};
    if (WORDS == 3) found.high = load(sum + 2 * ENTRIES);
    for (int word = 0; word < WORDS; ++word) sum[word * ENTRIES] = 0;
    return found;
}

// Adds the values of the chunks first..end, by piece, to the sums of their rows in shared memory.
__device__ inline void add_values(long long first, long long end, const Blocks &blocks, unsigned *sums) {
    const int widths = 4;
    double inverse_quantum = 1.0 / blocks.quantum;
    long long from = first * CHUNK, past = end * CHUNK, step = blockDim.x * WIDE;
    for (long long base = from + threadIdx.x * WIDE; base < past; base += widths * step) {
        Shorts rows[widths];
        Values values[widths];
#if WEIGHTED
        Values normalized_weights[widths];
#endif
        // Past the end the last ones are loaded again: no load depends on a condition.
#pragma unroll
        for (int k = 0; k < widths; ++k) {
            long long at = min(base + k * step, past - static_cast<long long>(WIDE));
            rows[k] = load_shorts(blocks.piece_rows + at);
            values[k] = load_values(blocks.values + at);
#if WEIGHTED
            normalized_weights[k] = load_values(blocks.normalized_weights + at);
#endif
        }
#pragma unroll
        for (int k = 0; k < widths; ++k) {
            if (base + k * step >= past) break;
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
#if WEIGHTED
                double term = __dmul_rn(values[k].of[j], normalized_weights[k].of[j]);
#else
                real_t term = values[k].of[j];
#endif
                add(sums + rows[k].of[j], Fixed::of(term, inverse_quantum));
            }
        }
    }
}

// The rows of a graph in blocks, for `iterate`.
struct BlockedRows {
    const Blocks &blocks;
    const Equation &equation;
    double *smem;  // a tile, then the sums of a piece
    unsigned *arrived;

    // Finishes the rows of a piece, and clears their sums.
    template <typename Load>
    __device__ void finish(long long piece, unsigned *sums, Load load, double mass, const Vectors &vectors, Tally &tally) {
        int count = static_cast<int>(min(static_cast<long long>(PIECE), blocks.rows - piece * PIECE)), step = blockDim.x;
        for (int base = threadIdx.x; base < count; base += ROWS_IN_FLIGHT * step) {
            Marks words[ROWS_IN_FLIGHT];
            double before[ROWS_IN_FLIGHT], inverse_weights[ROWS_IN_FLIGHT];
#pragma unroll
            for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
                words[k] = blocks.marks[(piece * PIECE + min(base + k * step, count - 1)) / 32];
            }
#pragma unroll
            for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
                long long place = piece * PIECE + min(base + k * step, count - 1);
                if (!words[k].has(place)) continue;
                before[k] = vectors.ranks[words[k].rank(place)];
                inverse_weights[k] = equation.inverse_out_weight[words[k].rank(place)];
            }
#pragma unroll
            for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
                long long place = piece * PIECE + base + k * step;
                if (base + k * step >= count || !words[k].has(place)) continue;
                double sum = taken(sums + base + k * step, load).value(blocks.quantum);
                finish_row(words[k].rank(place), before[k] * *vectors.scale, inverse_weights[k], sum, mass, equation,
                           vectors, tally);
            }
        }
    }

    __device__ void step(const Vectors &vectors, double mass, Tally &tally) {
        scatter_all(vectors.from, blocks, reinterpret_cast<real_t *>(smem), arrived);
        unsigned *sums = reinterpret_cast<unsigned *>(smem);
        for (int at = threadIdx.x; at < WORDS * ENTRIES; at += blockDim.x) sums[at] = 0;
        __syncthreads();
        for (long long unit = blockIdx.x; unit < blocks.units; unit += gridDim.x) {
            const long long *bounds = blocks.unit_bounds + 6 * unit;
            add_values(bounds[1], bounds[2], blocks, sums);
            __syncthreads();
            if (bounds[5] < 0) {
                finish(bounds[0], sums, [](const unsigned *word) { return *word; }, mass, vectors, tally);
            } else {
                unsigned *shared = blocks.shared_sums + bounds[5] * WORDS * ENTRIES;
                for (int row = threadIdx.x; row < PIECE; row += blockDim.x) {
                    Fixed sum = taken(sums + row, [](const unsigned *word) { return *word; });
                    if (sum.low || sum.high) add(shared + row, sum);
                }
                __threadfence();
                __syncthreads();
                if (threadIdx.x == 0) atomicAdd(blocks.summed + bounds[5], 1u);
            }
            __syncthreads();  // the sums are clear
        }
        // Only now, when this block has added its part of all pieces, it waits for others.
        for (long long unit = blockIdx.x; unit < blocks.units; unit += gridDim.x) {
            const long long *bounds = blocks.unit_bounds + 6 * unit;
            if (bounds[5] < 0 || bounds[4]) continue;
            volatile unsigned *summed = blocks.summed + bounds[5];
            while (*summed <= bounds[3]) continue;
            __threadfence();
            __syncthreads();  // all threads have read it
            if (threadIdx.x == 0) *summed = 0;
            unsigned *shared = blocks.shared_sums + bounds[5] * WORDS * ENTRIES;
            finish(bounds[0], shared, [](const unsigned *word) { return __ldcg(word); }, mass, vectors, tally);
        }
    }

    template <typename Use>
    __device__ void each_range(Use use) const {
        for (long long unit = blockIdx.x; unit < blocks.units; unit += gridDim.x) {
            const long long *bounds = blocks.unit_bounds + 6 * unit;
            if (!bounds[4]) use(rows_before(bounds[0] * PIECE), rows_before((bounds[0] + 1) * PIECE));
        }
    }

    // The number of rows before a place.
    __device__ long long rows_before(long long place) const {
        if (place < blocks.rows) return blocks.marks[place / 32].rank(place);
        Marks last = blocks.marks[(blocks.rows - 1) / 32];
        return last.rank(blocks.rows - 1) + last.has(blocks.rows - 1);
    }
};

extern "C" __global__ void __launch_bounds__(512, 2)
    propagate(int count, double goal, double stall, double before, double mixing_from, long long n, const Marks *marks,
              long long rows, long long columns, unsigned spans, const long long *bounds,
              const unsigned short *tile_sources, const unsigned *chunk_by_piece, const unsigned short *piece_rows,
              const real_t *normalized_weights, real_t *values, unsigned *next, unsigned row_spans, unsigned units,
              const long long *unit_bounds, unsigned *shared_sums, unsigned *summed, double quantum, double alpha,
              const double *target, long long target_step, const double *teleport, long long teleport_step,
              const double *inverse_out_weight, double *ranks, real_t *from, real_t *to, int parts,
              const Totals *latest, Totals *totals, Totals *partials, unsigned *arrived, int window, int period,
              int phase, int width, float *history, double *mixing_state) {
    extern __shared__ double smem[];
    Blocks blocks = {marks, rows, columns, spans, bounds, tile_sources, chunk_by_piece, piece_rows, normalized_weights,
                     values, next, row_spans, units, unit_bounds, shared_sums, summed, quantum};
    Equation equation = {alpha, target, target_step, teleport, teleport_step, inverse_out_weight};
    BlockedRows all = {blocks, equation, smem, arrived};
    iterate(count, {goal, stall, before, mixing_from}, n, equation,
            {window, period, phase, width, n, history, mixing_state}, {ranks, from, to, nullptr, nullptr}, parts, latest,
            totals, partials, arrived, smem, all);
}
