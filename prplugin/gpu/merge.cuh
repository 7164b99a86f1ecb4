// Row sums and new ranks in one pass over equal pieces of rows and edges: the merge path of D. Merrill and M. Garland,
// "Merge-based parallel sparse matrix-vector multiplication", SC 2016.
//
// The edges, row by row, each row followed by its end, form a list of n + m items, split into pieces of `size` items,
// so that pieces are equal work however long or empty the rows are. cuts[p] is the first row that does not end before
// piece p, so that
//
//   piece p has the edges  p size - cuts[p]  ..  (p + 1) size - cuts[p + 1]
//   and the ends of rows   cuts[p]           ..  cuts[p + 1].
//
// A row within one piece is summed there, and its new rank and contribution are written at once. A row that crosses
// pieces leaves a partial sum in each of them: in `tails` where it continues, in `fronts` where it ends. The block of
// the last one waits for the others. A tail is its own flag: ABSENT, a NaN that no sum equals, until it is written; the
// reader resets it.
//
// Within a piece, lanes are divided evenly among its rows; a warp sums a row that is long even so. A term goes through
// at most LONG_ROW additions of doubles, or size / WARP of them, and five within a warp; partial sums are added with
// compensation.
//
//   index_t, offset_t  int or long long: the types of positions and of offsets
//   real_t             float or double: the type of contributions
//   WEIGHTED           0 or 1: whether a term is a contribution, or its product with a normalized weight, in double

#include "grid.cuh"
#include "totals.cuh"
#include "mixing.cuh"

#if WEIGHTED
typedef double term_t;
#else
typedef real_t term_t;
#endif

#define ALL_LANES 0xffffffffu
#define LONG_ROW WARP  // terms per lane; a warp sums rows that would give a lane more

struct Pieces {
    long long n, m, size, count;
    const index_t *cuts;
    const offset_t *offsets;  // of the rows, n + 1
    double *fronts, *tails;  // one entry per piece
};

// x := alpha * (P^T x + D w) + (1 - alpha) v. `target` (w) and `teleport` ((1 - alpha) v) have n entries and step 1, or
// one entry for all and step 0.
struct Equation {
    double alpha;
    const double *target;
    long long target_step;
    const double *teleport;
    long long teleport_step;
    const double *inverse_out_weight;  // 1 / W (1 if weighted); 0 for dangling vertices
};

// The actual ranks and contributions of x are `scale` times the stored ones.
struct Vectors {
    double *ranks;
    real_t *from, *to;  // contributions of this iteration and of the next
    float *residuals;  // changes of the ranks, unless null
    const double *scale;  // in shared memory
};

// Why a launch ends: after the given number of iterations (COUNT); after one whose change is at most `goal` (GOAL); at
// least `stall` times the previous change, initially `before`, unless a mix was in between (STALL); or when, at the
// rate of the last iteration, the goal is more than `mixing_from` iterations away (FAR_FROM_GOAL). With memory for a
// history mixing begins then, and the launch continues.
enum Reason { COUNT, GOAL, STALL, FAR_FROM_GOAL };

struct Ending {
    double goal, stall, before, mixing_from;

    __device__ Reason after(double before, double change, bool is_after_mix) const {
        if (change <= goal) return GOAL;
        if (is_after_mix) return COUNT;
        if (change >= stall * before) return STALL;
        // Equivalent to change * (change / before)^mixing_from > goal; the logarithm needs fewer registers.
        bool is_far = change < before && mixing_from * __logf(static_cast<float>(change / before)) >
                                             __logf(static_cast<float>(goal / change));
        return is_far ? FAR_FROM_GOAL : COUNT;
    }
};

// Row numbers are unsigned, so that numbers a little above n do not overflow.
template <typename index>
struct Counted;
template <>
struct Counted<int> {
    typedef unsigned type;
};
template <>
struct Counted<long long> {
    typedef unsigned long long type;
};
typedef Counted<index_t>::type row_t;

// A piece: the edges begin..end, and the rows first..open, of which `open` continues after it, or only begins there;
// `last` is the last row to be summed.
struct Piece {
    offset_t begin, end;
    row_t first, open, last;

    __device__ Piece(const Pieces &pieces, long long p) {
        first = pieces.cuts[p];
        open = pieces.cuts[p + 1];
        last = min(open, static_cast<row_t>(pieces.n - 1));
        begin = static_cast<offset_t>(p * pieces.size - first);
        end = static_cast<offset_t>(min((p + 1) * pieces.size, pieces.n + pieces.m) - open);
    }
};

// A row of a piece, with the data needed to finish it.
struct Row {
    row_t row;
    int place, past;  // of its terms
    bool continued;
    double before, inverse_weight;

    __device__ Row(row_t row, const Piece &piece, const Pieces &pieces, const Equation &equation,
                   const Vectors &vectors)
        : row(row), place(0), past(0), continued(false) {
        if (row > piece.last) return;
        offset_t starts = pieces.offsets[row];
        continued = starts < piece.begin;
        place = static_cast<int>(max(starts, piece.begin) - piece.begin);
        past = static_cast<int>((row < piece.open ? pieces.offsets[row + 1] : piece.end) - piece.begin);
        before = vectors.ranks[row] * *vectors.scale;
        inverse_weight = equation.inverse_out_weight[row];
    }
};

// Finishes a row: computes its new rank and contribution.
__device__ inline void finish_row(const Row &row, double sum, double mass, const Equation &equation,
                               const Vectors &vectors, Tally &tally) {
    double target = equation.target[row.row * equation.target_step];
    double teleport = equation.teleport[row.row * equation.teleport_step];
    double rank = equation.alpha * (sum * *vectors.scale) + (mass * target + teleport);
    tally.add(row.before, rank, row.inverse_weight == 0.0);
    vectors.ranks[row.row] = rank;
    vectors.to[row.row] = static_cast<real_t>(rank * row.inverse_weight);
    if (vectors.residuals != nullptr) vectors.residuals[row.row] = static_cast<float>(rank - row.before);
}

// log2 of the number of lanes that share a row of a piece: as many as its number of rows allows. The number of threads
// of a block is a power of two.
__device__ inline int sharing(const Piece &piece) {
    int bits = __clz(static_cast<int>(piece.open - piece.first)) - __clz(blockDim.x) - 1;
    return min(max(bits, 0), 5);
}

// Adds up every step-th of the terms at..past, in order; several loads are in flight at a time.
__device__ inline double sum_of(const term_t *terms, int at, int past, int step) {
    double sum = 0.0;
    for (; at + 3 * step < past; at += 4 * step) {
        term_t some[4] = {terms[at], terms[at + step], terms[at + 2 * step], terms[at + 3 * step]};
#pragma unroll
        for (int k = 0; k < 4; ++k) sum += some[k];
    }
    for (; at < past; at += step) sum += terms[at];
    return sum;
}

// Sums the rows of piece p, whose terms are in shared memory, and finishes them. `mine` is the first row of the thread,
// loaded before the terms were complete. All threads of the block must call it.
__device__ inline void finish_rows(long long p, const Piece &piece, int bits, Row mine, const term_t *terms,
                                   double mass, const Pieces &pieces, const Equation &equation, const Vectors &vectors,
                                   Tally &tally) {
    int lane = threadIdx.x % WARP, lanes = 1 << bits, slot = lane & (lanes - 1);
    row_t ahead = lane >> bits;  // of the first row of the warp
    while (mine.row - ahead <= piece.last) {  // uniform in a warp
        bool is_long = mine.past - mine.place > LONG_ROW << bits;
        double sum = is_long ? 0.0 : sum_of(terms, mine.place + slot, mine.past, lanes);
        for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
        for (unsigned waiting = __ballot_sync(ALL_LANES, is_long && slot == 0); waiting != 0; waiting &= waiting - 1) {
            int owner = __ffs(waiting) - 1;
            int place = __shfl_sync(ALL_LANES, mine.place, owner), past = __shfl_sync(ALL_LANES, mine.past, owner);
            double part = sum_of(terms, place + lane, past, WARP);
            for (int distance = WARP / 2; distance > 0; distance /= 2) {
                part += __shfl_xor_sync(ALL_LANES, part, distance);
            }
            if (lane == owner) sum = part;
        }
        if (slot == 0) {
            if (mine.row < piece.open) {
                if (mine.continued) {  // only for row `first`
                    pieces.fronts[p] = sum;
                } else {
                    finish_row(mine, sum, mass, equation, vectors, tally);
                }
            } else if (mine.row <= piece.last) {
                __stcg(pieces.tails + p, sum);
            }
        }
        mine = Row(mine.row + (blockDim.x >> bits), piece, pieces, equation, vectors);
    }
}

// Finishes the row that ends in piece p and begins in an earlier one, if any. All lanes of the warp must call it.
__device__ inline void finish_crossing_row(long long p, double mass, const Pieces &pieces, const Equation &equation,
                                        const Vectors &vectors, Tally &tally) {
    Piece piece(pieces, p);
    if (piece.first == piece.open) return;  // it does not end here
    Row row(piece.first, piece, pieces, equation, vectors);
    if (!row.continued) return;  // it is finished
    int lane = threadIdx.x % WARP;
    Sum sum = ZERO_SUM;
    for (long long other = (row.row + pieces.offsets[row.row]) / pieces.size + lane; other < p; other += WARP) {
        volatile double *tail = pieces.tails + other;
        double partial = *tail;
        while (__double_as_longlong(partial) == -1) partial = *tail;
        *tail = ABSENT;
        sum.add(partial);
    }
    sum = lanes_sum<WARP>(sum);
    if (lane == 0) {
        sum.add(pieces.fronts[p]);
        finish_row(row, sum.value(), mass, equation, vectors, tally);
    }
}

// Writes the measurements of a block for the others. All threads must call it.
__device__ inline void write_totals(const Tally &tally, Totals *written) {
    Totals mine = block_totals(tally);
    if (threadIdx.x == 0) written[blockIdx.x] = mine;
}

// Returns the measurements of all blocks, with the same bits in each block. All threads must call it.
__device__ inline Totals grid_totals(const Totals *written) {
    Tally all = ZERO_TALLY;
    for (int block = threadIdx.x; block < gridDim.x; block += blockDim.x) all.add(written[block]);
    return block_totals(all);
}

// Iterates up to `count` times, on a grid launched cooperatively. `terms_of(piece, from, terms)` writes the terms of a
// piece to shared memory; `scatter(from)` does work of the whole grid that must precede it, and then ends with a
// barrier. The loop ends early as `ending` says.
// `latest` has the measurements of the iteration before the first, in `parts` to be added up. Block 0 writes to
// totals[0] the number of iterations, the reason for the end, and whether mixing has begun; and to the entries
// after it the measurements of each iteration. `partials` has two entries per block.
template <typename Scatter, typename TermsOf>
__device__ void iterate(int count, const Ending &ending, const Pieces &pieces, const Equation &equation,
                        const Mixing &mixing, Vectors vectors, int parts, const Totals *latest, Totals *totals, Totals *partials,
                        unsigned *arrived, double *smem, Scatter scatter, TermsOf terms_of) {
    __shared__ History history;
    __shared__ double weights[MOST_WINDOW], scale, before;
    vectors.scale = &scale;
    term_t *terms = reinterpret_cast<term_t *>(smem);
    bool mixes = mixing.window > 0 && mixing.phase != WAITING;
    if (threadIdx.x == 0) {
        if (mixes && mixing.phase == CONTINUING) {
            history = *mixing.history;
        } else {
            history.begin();
        }
        scale = 1.0;
        before = ending.before;
    }
    Tally last = ZERO_TALLY;
    for (int part = threadIdx.x; part < parts; part += blockDim.x) last.add(latest[part]);
    double dangling = block_totals(last).dangling;
    int step = 0;
    Reason reason = COUNT;
    while (step < count) {
        double mass = equation.alpha * dangling;
        if (mixes) vectors.residuals = mixing.residuals + history.next * pieces.n;
        Tally tally = ZERO_TALLY;
        scatter(vectors.from);
        Piece next(pieces, min(static_cast<long long>(blockIdx.x), pieces.count - 1));
        for (long long p = blockIdx.x; p < pieces.count; p += gridDim.x) {
            Piece piece = next;
            int bits = sharing(piece);
            Row mine(piece.first + (threadIdx.x >> bits), piece, pieces, equation, vectors);
            terms_of(piece, vectors.from, terms);
            next = Piece(pieces, min(p + gridDim.x, pieces.count - 1));  // in flight while this one is summed
            __syncthreads();
            finish_rows(p, piece, bits, mine, terms, mass, pieces, equation, vectors, tally);
            __syncthreads();  // `terms` are no longer needed, and `fronts` are complete
        }
        for (long long p = blockIdx.x + static_cast<long long>(threadIdx.x / WARP) * gridDim.x; p < pieces.count;
             p += static_cast<long long>(blockDim.x / WARP) * gridDim.x) {
            finish_crossing_row(p, mass, pieces, equation, vectors, tally);
        }
        Totals *written = partials + step % 2 * gridDim.x;  // double-buffered: other blocks may still read
        write_totals(tally, written);
        // Early enough that the launch ends with a plain step after the first of the mix.
        bool is_due = mixes && history.rest <= 1 && step + 3 <= count;
        int differences = history.held;
        if (is_due) {  // a block reads only residuals of its own pieces' rows
            __syncthreads();
            Products products(differences);
            for (long long p = blockIdx.x; p < pieces.count; p += gridDim.x) {
                products.add(pieces.cuts[p], pieces.cuts[p + 1], pieces.n, differences, history.next, mixing, smem);
            }
            products.write(mixing, smem);
        }
        grid_barrier(arrived);
        Totals all = grid_totals(written);
        ++step;
        if (blockIdx.x == 0 && threadIdx.x == 0) totals[step] = all;
        reason = ending.after(before, all.change, mixes && history.mixed & 1);
        bool begins = reason == FAR_FROM_GOAL && mixing.window > 0 && !mixes;
        if (reason == FAR_FROM_GOAL && mixing.window > 0) reason = COUNT;
        __syncthreads();  // no thread reads the old values any more
        if (threadIdx.x == 0) {
            scale = 1.0;
            before = all.change;
            if (begins) {
                history.begin();
            } else {
                history.keep(mixing.window);
            }
        }
        __syncthreads();
        mixes = mixes || begins;
        if (reason != COUNT) break;
        real_t *swap = vectors.from;
        vectors.from = vectors.to;
        vectors.to = swap;
        dangling = all.dangling;
        if (is_due) {
            if (blockIdx.x == 0) solve(differences, mixing, smem);
            grid_barrier(arrived);  // also ends all reads of `written`
            if (threadIdx.x < differences) weights[threadIdx.x] = mixing.weights[threadIdx.x];
            __syncthreads();
            tally = mix(differences, pieces.n, mixing, history, weights, equation.inverse_out_weight,
                        vectors.ranks, vectors.from);
            write_totals(tally, written);
            grid_barrier(arrived);
            Totals totals = grid_totals(written);
            double inverse = 1.0 / totals.change;
            dangling = totals.dangling * inverse;
            if (threadIdx.x == 0) {
                scale = inverse;
                history.add_mix(mixing.window / mixing.period, mixing.period, totals.change);
            }
            __syncthreads();
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        totals[0] = {static_cast<double>(step), static_cast<double>(reason), static_cast<double>(mixes)};
        if (mixes) *mixing.history = history;
    }
}
