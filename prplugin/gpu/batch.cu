// Many seeds: x := alpha * (P^T x + D w) + (1 - alpha) * v for several v at once, each a column of a matrix.
//
// Mapping: SEEDS neighbouring threads, one lane per seed, process one piece of rows and edges of the merge path, as in
// merge.cuh. They read its edges together, so that an edge's index is read once for all seeds, and the contributions of
// its source are contiguous. A row that crosses pieces leaves partial sums: in `fronts` where it ends, in `tails` where
// it continues. `batch_cross` adds those up, with a block per row of many partial sums, SEEDS threads per row of few.
// `batch_total` adds up the measurements of all blocks. Columns that are not live keep their ranks; if none is live,
// the kernels return at once.
// Memory: one index per edge (and a normalized weight), and a row of SEEDS contributions, from the L2 cache or device
// memory; per vertex and seed 16 bytes of ranks and 4 or 8 of contributions, read and written.
// Wins: for several seeds: a gather uses whole cache lines, where for one seed it moves a sector of 32 bytes to use 4.
//   SEEDS  8 32
//   index_t, offset_t  int or long long: the types of positions and of offsets
//   real_t             float or double: the type of contributions and normalized weights
//   WEIGHTED           0 or 1

#include "edge_term.cuh"

// A block has the same number of groups of SEEDS threads for any SEEDS, so that sums have the same bits.
#define GROUPS 8
#define GROUP_THREADS (GROUPS * SEEDS)
#define AT_LEAST 4  // blocks per multiprocessor, for the largest blocks

// In-edges in equal pieces of rows and edges: see merge.cuh.
struct Layout {
    long long n, m, size, pieces;
    const index_t *cuts;
    const offset_t *offsets;  // of the rows, n + 1
    const index_t *sources;
    const real_t *normalized_weights;
};

// The nonzero entries of v, sorted by row; each belongs to one column.
struct Entries {
    const long long *cuts;  // the first of each piece, and their number
    const long long *rows, *columns;
    const double *values;
};

struct Vectors {
    double *ranks;
    real_t *to;  // contributions of the next iteration
    float *moves;  // changes of the ranks, if not null
    const double *inverse_out_weight;  // 1 / W (1 if weighted); 0 for dangling vertices
    const double *target;  // w; null: v
};

struct Column {  // constants of the step
    double mass, teleport_factor;  // factors of w and of v
    int live;
};

// Measurements of a column, by one block or in total.
struct Measured {
    double change, largest, dangling;
};

struct Count {
    Sum change, dangling;
    double largest;

    __device__ void add(double before, double rank, bool dangles) {
        double move = fabs(rank - before);
        change.add(move);
        largest = fmax(largest, move);
        if (dangles) dangling.add(rank);
    }
};

#define ZERO_COUNT {ZERO_SUM, ZERO_SUM, 0.0}

// Measurements of the last step of a column.
struct State {
    double change, largest, live;
};

// The lanes of the warp that process the same edges.
__device__ inline unsigned neighbours() {
    return SEEDS == WARP ? 0xffffffffu : ((1u << SEEDS % WARP) - 1) << (threadIdx.x % WARP / SEEDS * SEEDS);
}

// Adds up the terms of `count` edges, in order; `from` points to the column. Each lane reads the index of one edge and
// passes it to the others by shuffles; several loads are in flight at a time. Past the end the terms are those of
// vertex
// `none`, which are 0 and change no bit.
__device__ inline double sum_edges(const index_t *sources, const real_t *normalized_weights, int count, int column,
                                   index_t none, const real_t *from) {
    const int loads_in_flight = 8;
    const unsigned lanes = neighbours();
    const char *line = reinterpret_cast<const char *>(from);
    double sum = 0.0;
    for (int base = 0; base < count; base += SEEDS) {
        int here = min(SEEDS, count - base);
        index_t source = column < here ? sources[base + column] : none;
#if WEIGHTED
        real_t normalized_weight = column < here ? normalized_weights[base + column] : 0;
#endif
        for (; here > 0; here -= loads_in_flight) {
            real_t terms[loads_in_flight];
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) {
                long long begin = static_cast<long long>(__shfl_sync(lanes, source, k, SEEDS)) * (SEEDS * sizeof(real_t));
                terms[k] = __ldg(reinterpret_cast<const real_t *>(line + begin));
            }
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) {
#if WEIGHTED
                sum += __dmul_rn(terms[k], __shfl_sync(lanes, normalized_weight, k, SEEDS));
#else
                sum += terms[k];
#endif
            }
            source = __shfl_down_sync(lanes, source, loads_in_flight, SEEDS);
#if WEIGHTED
            normalized_weight = __shfl_down_sync(lanes, normalized_weight, loads_in_flight, SEEDS);
#endif
        }
    }
    return sum;
}

// Computes rank and contribution of a row. `entry` is the first entry of v at or after the row, and is advanced.
__device__ inline void finish_row(long long row, double row_sum, double before, double inverse_weight, int column,
                               double alpha, const Column &constants, const Entries &entries, long long &entry,
                               long long last_entry, const Vectors &vectors, Count &count) {
    double rank = alpha * row_sum;
    if (vectors.target != nullptr) rank += constants.mass * vectors.target[row];
    for (; entry < last_entry && entries.rows[entry] == row; ++entry) {
        if (entries.columns[entry] == column) rank += constants.teleport_factor * entries.values[entry];
    }
    rank = constants.live ? rank : before;
    count.add(before, rank, inverse_weight == 0.0);
    vectors.ranks[row * SEEDS + column] = rank;
    if (vectors.moves != nullptr) vectors.moves[row * SEEDS + column] = static_cast<float>(rank - before);
    vectors.to[row * SEEDS + column] = static_cast<real_t>(rank * inverse_weight);
}

// Writes the measurements of a block, by column. All threads must call it.
__device__ inline void write_measured(const Count &count, Measured *measured) {
    __shared__ Measured counted[GROUP_THREADS];
    counted[threadIdx.x] = {count.change.value(), count.largest, count.dangling.value()};
    __syncthreads();
    if (threadIdx.x < SEEDS) {
        Measured all = counted[threadIdx.x];
        for (int other = threadIdx.x + SEEDS; other < GROUP_THREADS; other += SEEDS) {
            all.change += counted[other].change;
            all.largest = fmax(all.largest, counted[other].largest);
            all.dangling += counted[other].dangling;
        }
        measured[static_cast<long long>(blockIdx.x) * SEEDS + threadIdx.x] = all;
    }
}

// Divides the ranks by the norm of their column; writes contributions, D, and, in place of a change, the sum of ranks.
extern "C" __global__ void batch_begin(long long n, const double *norms, const double *inverse_out_weight,
                                       double *ranks, real_t *to, Measured *measured) {
    int column = threadIdx.x % SEEDS;
    Count count = ZERO_COUNT;
    long long stride = static_cast<long long>(gridDim.x) * GROUPS;
    for (long long row = static_cast<long long>(blockIdx.x) * GROUPS + threadIdx.x / SEEDS; row < n; row += stride) {
        double rank = ranks[row * SEEDS + column] / norms[column], inverse_weight = inverse_out_weight[row];
        count.add(0.0, rank, inverse_weight == 0.0);
        ranks[row * SEEDS + column] = rank;
        to[row * SEEDS + column] = static_cast<real_t>(rank * inverse_weight);
    }
    write_measured(count, measured);
}

// SEEDS threads per piece, in a grid-stride loop.
extern "C" __global__ void __launch_bounds__(GROUP_THREADS, AT_LEAST)
    batch_step(const __grid_constant__ Layout layout, const __grid_constant__ Entries entries,
               const Vectors vectors, double alpha, const Column *columns, const real_t *from,
               double *fronts, double *tails, Measured *measured) {
    int column = threadIdx.x % SEEDS;
    Column constants = columns[column];
    if (!__syncthreads_or(constants.live)) return;
    long long n = layout.n, m = layout.m, size = layout.size, pieces = layout.pieces;
    const offset_t *offsets = layout.offsets;
    const index_t *cuts = layout.cuts, *sources = layout.sources;
    const real_t *normalized_weights = layout.normalized_weights;
    Count count = ZERO_COUNT;
    const index_t none = static_cast<index_t>(n);
    const real_t *line = from + column;
    asm("" : "+l"(line));  // keeps the compiler from adding the column for each edge
    long long stride = static_cast<long long>(gridDim.x) * GROUPS;
    for (long long p = static_cast<long long>(blockIdx.x) * GROUPS + threadIdx.x / SEEDS; p < pieces; p += stride) {
        long long row = cuts[p], open = cuts[p + 1];
        long long edge = p * size - row, end = min((p + 1) * size, n + m) - open;
        long long entry = entries.cuts[p], last_entry = entries.cuts[p + 1];
        bool continued = row < n && offsets[row] < edge;
        for (; row < open; ++row) {
            // In flight while the row is summed.
            double before = vectors.ranks[row * SEEDS + column], inverse_weight = vectors.inverse_out_weight[row];
            long long past = offsets[row + 1];
            double sum = sum_edges(sources + edge, normalized_weights + edge, static_cast<int>(past - edge), column,
                                   none, line);
            edge = past;
            if (continued) {
                fronts[p * SEEDS + column] = sum;
                while (entry < last_entry && entries.rows[entry] == row) ++entry;
                continued = false;
            } else {
                finish_row(row, sum, before, inverse_weight, column, alpha, constants, entries, entry, last_entry,
                           vectors, count);
            }
        }
        if (edge < end) {
            int count = static_cast<int>(end - edge);
            tails[p * SEEDS + column] = sum_edges(sources + edge, normalized_weights + edge, count, column, none, line);
        }
    }
    write_measured(count, measured);
}

// Completes the rows that cross pieces: crossing[k] is the piece in which one ends. The first `long_crossings` of them
// take a block each, the others SEEDS threads.
extern "C" __global__ void __launch_bounds__(GROUP_THREADS)
    batch_cross(const __grid_constant__ Layout layout, const __grid_constant__ Entries entries,
                const Vectors vectors, double alpha, const Column *columns, long long crossings,
                long long long_crossings, const long long *crossing, const double *fronts, const double *tails,
                Measured *measured) {
    __shared__ Sum parts[GROUP_THREADS];
    int column = threadIdx.x % SEEDS, group = threadIdx.x / SEEDS;
    Column constants = columns[column];
    if (!__syncthreads_or(constants.live)) return;
    Count count = ZERO_COUNT;
    long long blocks = long_crossings + (crossings - long_crossings + GROUPS - 1) / GROUPS;
    for (long long block = blockIdx.x; block < blocks; block += gridDim.x) {
        bool by_block = block < long_crossings;  // uniform in a block
        long long k = by_block ? block : long_crossings + (block - long_crossings) * GROUPS + group;
        bool ends = k < crossings && (!by_block || group == 0);
        Sum sum = ZERO_SUM;
        long long p = 0, row = 0;
        if (k < crossings) {
            p = crossing[k];
            row = layout.cuts[p];
            // Piece q has a tail of the row if the row has an edge in it.
            long long first = (row + layout.offsets[row]) / layout.size;
            for (long long q = first + (by_block ? group : 0); q < p; q += by_block ? GROUPS : 1) {
                sum.add(tails[q * SEEDS + column]);
            }
        }
        if (by_block) {
            parts[threadIdx.x] = sum;
            __syncthreads();
            if (group == 0) {
                for (int other = 1; other < GROUPS; ++other) sum.add(parts[other * SEEDS + column]);
            }
            __syncthreads();
        }
        if (ends) {
            sum.add(fronts[p * SEEDS + column]);
            long long entry = entries.cuts[p];
            finish_row(row, sum.value(), vectors.ranks[row * SEEDS + column], vectors.inverse_out_weight[row], column,
                       alpha, constants, entries, entry, entries.cuts[p + 1], vectors, count);
        }
    }
    write_measured(count, measured);
}

// One block: adds up the measurements of all blocks, and derives the constants of the next step. If `starting`, there
// was no step, and `norms` receives the sums of ranks.
extern "C" __global__ void __launch_bounds__(1024)
    batch_total(long long blocks, const Measured *measured, int starting, double alpha, int target_given,
          State *states, Column *columns, double *norms) {
    __shared__ Measured parts[1024];
    int column = threadIdx.x % SEEDS;
    if (!__syncthreads_or(starting || states[column].live != 0.0)) return;
    Sum change = ZERO_SUM, dangling = ZERO_SUM;
    double largest = 0.0;
    for (long long block = threadIdx.x / SEEDS; block < blocks; block += blockDim.x / SEEDS) {
        Measured part = measured[block * SEEDS + column];
        change.add(part.change);
        dangling.add(part.dangling);
        largest = fmax(largest, part.largest);
    }
    parts[threadIdx.x] = {change.value(), largest, dangling.value()};
    __syncthreads();
    for (int half = blockDim.x / 2; half >= SEEDS; half /= 2) {
        if (threadIdx.x < half) {
            Measured &mine = parts[threadIdx.x];
            const Measured &other = parts[threadIdx.x + half];
            mine.change += other.change;
            mine.largest = fmax(mine.largest, other.largest);
            mine.dangling += other.dangling;
        }
        __syncthreads();
    }
    if (threadIdx.x >= SEEDS) return;
    Measured all = parts[column];
    State &state = states[column];
    if (starting) {
        norms[column] = all.change;
    } else if (state.live != 0.0) {
        state.change = all.change;
        state.largest = all.largest;
    }
    double mass = alpha * all.dangling, rest = 1.0 - alpha;
    columns[column] = {mass, target_given ? rest : rest + mass, state.live != 0.0};
}
