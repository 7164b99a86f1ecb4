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

#include "iterate.cuh"

#if WEIGHTED
typedef double term_t;
#else
typedef real_t term_t;
#endif

#define LONG_ROW WARP  // terms per lane; a warp sums rows that would give a lane more

struct Pieces {
    long long n, m, size, count;
    const index_t *cuts;
    const offset_t *offsets;  // of the rows, n + 1
    double *fronts, *tails;  // one entry per piece
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
                    finish_row(mine.row, mine.before, mine.inverse_weight, sum, mass, equation, vectors, tally);
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
        finish_row(row.row, row.before, row.inverse_weight, sum.value(), mass, equation, vectors, tally);
    }
}

// The rows of a graph in pieces, for `iterate`. `terms_of(piece, from, terms)` writes the terms of a piece to shared
// memory.
template <typename TermsOf>
struct MergedRows {
    const Pieces &pieces;
    const Equation &equation;
    term_t *terms;
    TermsOf terms_of;

    __device__ void step(const Vectors &vectors, double mass, Tally &tally) {
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
    }

    template <typename Use>
    __device__ void each_range(Use use) const {
        for (long long p = blockIdx.x; p < pieces.count; p += gridDim.x) use(pieces.cuts[p], pieces.cuts[p + 1]);
    }
};

template <typename TermsOf>
__device__ inline MergedRows<TermsOf> merged_rows(const Pieces &pieces, const Equation &equation, double *smem,
                                                  TermsOf terms_of) {
    return {pieces, equation, reinterpret_cast<term_t *>(smem), terms_of};
}
