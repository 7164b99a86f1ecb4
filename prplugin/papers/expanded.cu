// Contributions copied to edge order, and summed in equal pieces from there: Kumar, Sondhi and Mittal 2012, their
// system for the Cell processor.
//
// Mapping: `expand`: one thread per edge (their PPE copies ranks to V1). `sum_expanded`: one block per piece of `size`
// edges (an SPE, which loads 16 KB of V1 into its local store at a time); all its threads load the piece to shared
// memory, and sum there, one thread per short row, one warp per long row. `collect`: one warp per piece, for the row
// that ends in it and begins in an earlier one (V2).
// Memory: one index per edge, a gathered contribution, and that contribution written and read again, coalesced; a
// normalized weight per edge, coalesced; an offset and a sum per row; 40 bytes per piece.
// Wins: where in-degrees differ widely, since all blocks have equally many edges; the price is 8 or 16 bytes per edge
// more than `warp` moves.

// Run k is the edges starts[k]..starts[k + 1], all of row rows[k]. heads[p] is the run of the first edge of piece p,
// and heads[pieces] an empty run after the last one.
//
//   index_t, offset_t  int or long long: the types of `rows` and of `starts`

#include "../gpu/pieces.cuh"

// Copies the contribution of its source to each edge.
extern "C" __global__ void expand(long long m, const index_t *sources, const real_t *contributions, real_t *expanded) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long edge = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; edge < m; edge += stride) {
        expanded[edge] = __ldg(contributions + sources[edge]);
    }
}

// Sums the runs of a piece, the edges begin..end, whose terms are in shared memory. Runs first..open end in the piece;
// run
// `open` continues after it, or only begins there. All threads of the block must call it.
__device__ inline void sum_runs(const double *terms, long long begin, long long end, long long first, long long open,
                                const index_t *rows, const offset_t *starts, double *row_sums, Partials *partials) {
    int lane = threadIdx.x % WARP;
    for (long long base = first + threadIdx.x - lane; base <= open; base += blockDim.x) {  // uniform in a warp
        long long run = base + lane;
        int place = 0, past = 0;
        if (run <= open) {
            place = static_cast<int>(max(static_cast<long long>(starts[run]), begin) - begin);
            past = static_cast<int>(min(static_cast<long long>(starts[run + 1]), end) - begin);
        }
        Sum sum = run_sum(terms, place, past);
        bool continued = run <= open && starts[run] < begin;
        if (run == first) partials->front = {0.0, 0.0};
        if (run == open) {
            partials->tail = sum;
        } else if (continued) {  // only for run `first`
            partials->front = sum;
        } else if (run < open) {
            row_sums[rows[run]] = sum.value();
        }
    }
}

// Block p sums the runs of piece p. Normalized weights are multiplied here, in double: a product stored in `expanded`
// would be rounded to real_t.
extern "C" __global__ void sum_expanded(long long m, long long size, const index_t *rows, const offset_t *starts,
                                        const long long *heads, const real_t *expanded,
                                        const real_t *normalized_weights, double *row_sums, Partials *partials) {
    extern __shared__ double terms[];
    long long piece = blockIdx.x, begin = piece * size, end = min(begin + size, m);
    for (long long edge = begin + threadIdx.x; edge < end; edge += blockDim.x) {
#if WEIGHTED
        terms[edge - begin] = __dmul_rn(expanded[edge], normalized_weights[edge]);
#else
        terms[edge - begin] = expanded[edge];
#endif
    }
    __syncthreads();
    sum_runs(terms, begin, end, heads[piece], heads[piece + 1], rows, starts, row_sums, partials + piece);
}

// One warp per piece: completes the run that ends in it and begins in an earlier one.
extern "C" __global__ void collect(long long count, long long size, const index_t *rows, const offset_t *starts,
                                   const long long *heads, const Partials *partials, double *row_sums) {
    long long piece = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    if (piece >= count) return;
    long long run = heads[piece], began = starts[run] / size;
    if (run == heads[piece + 1] || began == piece) return;  // it does not end here, or is summed already
    Sum sum = crossing_sum(partials, began, piece);
    if (threadIdx.x % WARP == 0) row_sums[rows[run]] = sum.value();
}
