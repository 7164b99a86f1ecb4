// Many iterations per launch, without gathers from global memory: contributions reach their rows through shared memory,
// in two phases; see blocks.cuh.
//
// Mapping: in the first phase one block per span of a tile's edges, with dynamic scheduling: it loads the tile's
// contributions to shared memory, and writes those of the edges to `values`. In the second phase one block per unit, a
// part of a piece's chunks: it adds their values to sums of the rows in shared memory, and finishes the rows
// (iterate.cuh). Sums of a piece with several units go to global memory, where the block of the last one finishes it.
// Sums are integers of WORDS words, in multiples of a power of 2 that is small beside a rank: additions are exact, so
// that atomics in any order give the same bits. A term is rounded once, when it becomes an integer.
// Memory: per edge 4.5 bytes of indices (and a normalized weight), and a value written and read, all in whole sectors.
// A contribution is read once per span of its tile, mostly from the L2 cache. Per vertex 28 bytes read and 12 or 16
// written; two grid barriers per iteration. For mixing, see mixing.cuh.
// Wins: on large graphs whose contributions exceed the L2 cache, where each gather moves a sector of 32 bytes.
//
//   WEIGHTED  0 or 1

#include "../gpu/blocks.cuh"
#include "../gpu/each.cuh"
#include "../gpu/iterate.cuh"
#include "../gpu/marks.cuh"

#define WIDE (16 / sizeof(real_t))           // values that a lane moves at once
#define WIDTHS 4                             // loads of values or indices that a thread has in flight
#define WORDS (sizeof(real_t) == 4 ? 2 : 3)  // 32-bit words of a sum
#define ROWS_IN_FLIGHT 4

struct Blocks {
    long long n;  // vertices that are rows
    const Marks *marks;
    long long rows, columns;  // places of rows, and of all vertices that have contributions
    int tile_bits, piece_bits;
    unsigned spans;           // number of spans
    const long long *bounds;  // of each span: tile, and first chunk and end by tile
    const unsigned short *tile_sources, *piece_rows;
    const unsigned *chunk_by_piece;
    const real_t *normalized_weights;  // by piece
    real_t *values;                    // by piece
    unsigned *next;      // the next span to process; `row_spans` between the iterations
    unsigned row_spans;  // leading spans that `scatter_row_spans` has processed
    unsigned units;
    // Of each unit: piece, first chunk and end by piece, units of the piece before it and after it, and where it has
    // several, the number of such pieces before it, else -1.
    const long long *unit_bounds;
    unsigned *shared_sums;  // the sums of each piece of several units; 0 between the iterations
    unsigned *summed;       // for each of them, the number of units that have been added; 0 between the iterations
    double quantum;         // sums are multiples of it, a power of 2

    // Places of a piece, and one for padding: the distance of the words of a sum.
    __device__ int entries() const { return (1 << piece_bits) + 1; }

    // Loads the marks of every blockDim.x-th place from first + base on, and past `count` places those of the last one.
    template <int COUNT>
    __device__ void load_marks(long long first, int base, int count, Marks (&words)[COUNT]) const {
        int step = blockDim.x;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) words[k] = marks[(first + min(base + k * step, count - 1)) / 32];
    }
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
__device__ inline void load_tile(const real_t *from, long long tile, const Blocks &blocks, real_t *contributions) {
    long long first = tile << blocks.tile_bits;
    int step = blockDim.x, size = 1 << blocks.tile_bits;
    int count = static_cast<int>(min(static_cast<long long>(size), blocks.columns - first));
    for (int base = threadIdx.x; base < count; base += LOADS_IN_FLIGHT * step) {
        Marks words[LOADS_IN_FLIGHT];
        real_t loaded[LOADS_IN_FLIGHT];
        // Past the end the last one is loaded again. `__ldcg` leaves the L1 cache to others.
        blocks.load_marks(first, base, count, words);
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            long long place = first + min(base + k * step, count - 1);
            loaded[k] = words[k].has(place) ? __ldcg(from + words[k].rank(place)) : real_t(0);
        }
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            if (base + k * step < count) contributions[base + k * step] = loaded[k];
        }
    }
    if (threadIdx.x == 0) contributions[size] = 0;
}

// Writes the contributions of the chunks first..end of a tile to `values`.
__device__ inline void scatter_span(const real_t *from, const long long *bounds, const Blocks &blocks, real_t *tile) {
    load_tile(from, bounds[0], blocks, tile);
    __syncthreads();
    long long first = bounds[1] * CHUNK, past = bounds[2] * CHUNK, step = blockDim.x * WIDE;
    for (long long base = first + threadIdx.x * WIDE; base < past; base += WIDTHS * step) {
        Shorts sources[WIDTHS];
        unsigned chunks[WIDTHS];
        // Past the end the last ones are loaded and stored again: no load depends on a condition.
#pragma unroll
        for (int k = 0; k < WIDTHS; ++k) {
            long long at = min(base + k * step, past - static_cast<long long>(WIDE));
            sources[k] = load_shorts(blocks.tile_sources + at);
            chunks[k] = __ldcs(blocks.chunk_by_piece + at / CHUNK);
        }
#pragma unroll
        for (int k = 0; k < WIDTHS; ++k) {
            Values values;
#pragma unroll
            for (int j = 0; j < WIDE; ++j) values.of[j] = tile[sources[k].of[j]];
            long long at = min(base + k * step, past - static_cast<long long>(WIDE));
            real_t *to = blocks.values + static_cast<long long>(chunks[k]) * CHUNK + at % CHUNK;
            *reinterpret_cast<Values *>(to) = values;
        }
    }
    __syncthreads();  // the tile is no longer needed
}

// Processes all spans; ends with a grid barrier.
__device__ inline void scatter_all(const real_t *from, const Blocks &blocks, real_t *tile, unsigned *arrived) {
    __shared__ unsigned current;
    unsigned upcoming = 0;
    if (threadIdx.x == 0) current = atomicAdd(blocks.next, 1u);
    __syncthreads();
    while (current < blocks.spans) {
        if (threadIdx.x == 0) upcoming = atomicAdd(blocks.next, 1u);
        scatter_span(from, blocks.bounds + 3 * static_cast<long long>(current), blocks, tile);
        if (threadIdx.x == 0) current = upcoming;
        __syncthreads();
    }
    grid_barrier(arrived);
    if (blockIdx.x == 0 && threadIdx.x == 0) *blocks.next = blocks.row_spans;  // a barrier precedes its next use
}

// Processes the leading spans while contributions of other tiles are still being copied to this GPU: `from` is read
// only within the tiles of these spans. `*next` then starts at their number.
extern "C" __global__ void __launch_bounds__(512, 2)
    scatter_row_spans(const __grid_constant__ Blocks blocks, const real_t *from) {
    extern __shared__ double smem[];
    for (long long span = blockIdx.x; span < blocks.row_spans; span += gridDim.x) {
        scatter_span(from, blocks.bounds + 3 * span, blocks, reinterpret_cast<real_t *>(smem));
    }
}

// A sum, or a term of one, in multiples of the quantum.
struct Fixed {
    unsigned long long low;
    unsigned high;  // the third word

    __device__ Fixed(unsigned long long low, unsigned high) : low(low), high(high) {}

    __device__ Fixed(double term, double inverse_quantum) : high(0) {
        double multiple = term * inverse_quantum;
        if (WORDS == 2) {
            low = __double2ull_rn(multiple);
        } else {
            double upper = floor(multiple * 0x1p-32);  // what is left of the multiple is exact
            unsigned long long words = static_cast<unsigned long long>(upper);
            low = words << 32 | __double2uint_rz(multiple - upper * 0x1p32);
            high = static_cast<unsigned>(words >> 32);
        }
    }

    __device__ double value(double quantum) const {
        return (static_cast<double>(high) * 0x1p64 + static_cast<double>(low)) * quantum;
    }
};

// Adds a term to a sum, whose words are `step` apart; what an addition carries goes to the next word.
__device__ inline void add(unsigned *sum, int step, Fixed term) {
    unsigned word = static_cast<unsigned>(term.low), before = atomicAdd(sum, word);
    unsigned long long rest = (term.low >> 32) + (before + word < before);
    if (WORDS == 2) {
        if (rest) atomicAdd(sum + step, static_cast<unsigned>(rest));
        return;
    }
    unsigned top = term.high + static_cast<unsigned>(rest >> 32);
    word = static_cast<unsigned>(rest);
    if (word) {
        before = atomicAdd(sum + step, word);
        top += before + word < before;
    }
    if (top) atomicAdd(sum + 2 * step, top);
}

// Adds a float, most of which are below one word.
__device__ inline void add(unsigned *sum, int step, float term, float inverse_quantum) {
    float multiple = term * inverse_quantum;
    if (multiple < 0x1p32f) {
        unsigned word = __float2uint_rn(multiple), before = atomicAdd(sum, word);
        if (before + word < before) atomicAdd(sum + step, 1u);
    } else {
        add(sum, step, Fixed(__float2ull_rn(multiple), 0));
    }
}

__device__ inline void add(unsigned *sum, int step, double term, double inverse_quantum) {
    add(sum, step, Fixed(term, inverse_quantum));
}

// Returns a sum and clears it.
template <typename Load>
__device__ inline Fixed take_sum(unsigned *sum, int step, Load load) {
    unsigned long long low = load(sum) | static_cast<unsigned long long>(load(sum + step)) << 32;
    Fixed found(low, WORDS == 3 ? load(sum + 2 * step) : 0);
    for (int word = 0; word < WORDS; ++word) sum[word * step] = 0;
    return found;
}

// Adds the values of the chunks first..end, by piece, to the sums of their rows in shared memory.
__device__ inline void add_values(long long first, long long end, const Blocks &blocks, unsigned *sums) {
    int entries = blocks.entries();
    long long past = end * CHUNK, step = blockDim.x * WIDE;
#if WEIGHTED
    double inverse_quantum = 1.0 / blocks.quantum;
#else
    real_t inverse_quantum = static_cast<real_t>(1.0 / blocks.quantum);
#endif
    for (long long base = first * CHUNK + threadIdx.x * WIDE; base < past; base += WIDTHS * step) {
        Shorts rows[WIDTHS];
        Values values[WIDTHS];
#if WEIGHTED
        Values normalized_weights[WIDTHS];
#endif
        // Past the end the last ones are loaded again: no load depends on a condition.
#pragma unroll
        for (int k = 0; k < WIDTHS; ++k) {
            long long at = min(base + k * step, past - static_cast<long long>(WIDE));
            rows[k] = load_shorts(blocks.piece_rows + at);
            values[k] = load_values(blocks.values + at);
#if WEIGHTED
            normalized_weights[k] = load_values(blocks.normalized_weights + at);
#endif
        }
#pragma unroll
        for (int k = 0; k < WIDTHS; ++k) {
            if (base + k * step >= past) break;
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
#if WEIGHTED
                double term = __dmul_rn(values[k].of[j], normalized_weights[k].of[j]);
#else
                real_t term = values[k].of[j];
#endif
                add(sums + rows[k].of[j], entries, term, inverse_quantum);
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
    __device__ void finish(long long piece, unsigned *sums, Load load, double mass, const Vectors &vectors,
                           Tally &tally) {
        long long first = piece << blocks.piece_bits;
        int count = static_cast<int>(min(1ll << blocks.piece_bits, blocks.rows - first)), step = blockDim.x;
        for (int base = threadIdx.x; base < count; base += ROWS_IN_FLIGHT * step) {
            Marks words[ROWS_IN_FLIGHT];
            double before[ROWS_IN_FLIGHT], inverse_weights[ROWS_IN_FLIGHT];
            blocks.load_marks(first, base, count, words);
#pragma unroll
            for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
                long long place = first + min(base + k * step, count - 1);
                if (!words[k].has(place)) continue;
                before[k] = vectors.ranks[words[k].rank(place)];
                inverse_weights[k] = equation.inverse_out_weight[words[k].rank(place)];
            }
#pragma unroll
            for (int k = 0; k < ROWS_IN_FLIGHT; ++k) {
                long long place = first + base + k * step;
                if (base + k * step >= count || !words[k].has(place)) continue;
                double sum = take_sum(sums + base + k * step, blocks.entries(), load).value(blocks.quantum);
                finish_row(words[k].rank(place), before[k] * *vectors.scale, inverse_weights[k], sum, mass, equation,
                           vectors, tally);
            }
        }
    }

    __device__ void step(const Vectors &vectors, double mass, Tally &tally) {
        scatter_all(vectors.from, blocks, reinterpret_cast<real_t *>(smem), arrived);
        unsigned *sums = reinterpret_cast<unsigned *>(smem);
        int entries = blocks.entries();
        auto load = [](const unsigned *word) { return *word; };
        for (int at = threadIdx.x; at < WORDS * entries; at += blockDim.x) sums[at] = 0;
        __syncthreads();
        for (long long unit = blockIdx.x; unit < blocks.units; unit += gridDim.x) {
            const long long *bounds = blocks.unit_bounds + 6 * unit;
            add_values(bounds[1], bounds[2], blocks, sums);
            __syncthreads();
            if (bounds[5] < 0) {
                finish(bounds[0], sums, load, mass, vectors, tally);
            } else {
                unsigned *shared = blocks.shared_sums + bounds[5] * WORDS * entries;
                for (int row = threadIdx.x; row < entries; row += blockDim.x) {
                    Fixed sum = take_sum(sums + row, entries, load);
                    if (sum.low || sum.high) add(shared + row, entries, sum);
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
            unsigned *shared = blocks.shared_sums + bounds[5] * WORDS * entries;
            finish(bounds[0], shared, [](const unsigned *word) { return __ldcg(word); }, mass, vectors, tally);
        }
    }

    template <typename Use>
    __device__ void each_range(Use use) const {
        for (long long unit = blockIdx.x; unit < blocks.units; unit += gridDim.x) {
            const long long *bounds = blocks.unit_bounds + 6 * unit;
            long long first = bounds[0] << blocks.piece_bits;
            if (!bounds[4]) use(rows_before(first), rows_before(first + (1 << blocks.piece_bits)));
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
    propagate(const __grid_constant__ Launch launch, const __grid_constant__ Equation equation,
              const __grid_constant__ Store store, const __grid_constant__ Blocks blocks) {
    extern __shared__ double smem[];
    BlockedRows rows = {blocks, equation, smem, launch.arrived};
    iterate(launch, blocks.n, equation, store, smem, rows);
}
