// Contributions copied into the order of the edges, and summed in equal shares from there: Kumar, Sondhi and Mittal
// 2012, their system for the Cell processor.
//
// Mapping: `expand` a thread an edge (their PPE copies ranks to V1); `sum_expanded` a block a piece of `size` edges
// (an SPE, which takes 16 KB of V1 to its local store at a time), which all its threads bring to shared memory and then
// sum there, a thread a short row, a warp a long one; `collect` a block a piece, for the row that ends there and began
// in another one (V2).
// Memory: an index an edge, a gathered contribution, and that contribution written and read again, coalesced; a share
// an edge, coalesced; an offset and a sum a row; 40 bytes a piece.
// Wins: where in-degrees differ wildly, for no thread, warp or block has more edges than another; it pays with 8 or
// 16 bytes more an edge than `warp` moves.

// Run k is the edges starts[k]..starts[k + 1] of row rows[k], whole; heads[p] is the run that the first edge of piece p
// belongs to, and heads[pieces] stands for a run past the last one, without edges.
//
//   index_t, offset_t  int or long long: the types of `rows` and of `starts`

#include "../../gpu/pieces.cuh"

// Copies to each edge the contribution of its source.
extern "C" __global__ void expand(long long m, const index_t *sources, const real_t *contributions, real_t *expanded) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long edge = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; edge < m; edge += stride) {
        expanded[edge] = __ldg(contributions + sources[edge]);
    }
}

// Sums the runs of a piece, the edges begin..end, whose terms are in shared memory. Runs first..open end in the piece;
// run `open` goes on after it, or only begins there. All threads must call it.
__device__ inline void sum_runs(const double *terms, long long begin, long long end, long long first, long long open,
                                const index_t *rows, const offset_t *starts, double *pulled, Partials *partials) {
    int lane = threadIdx.x % WARP;
    for (long long base = first + threadIdx.x - lane; base <= open; base += blockDim.x) {  // the same for a warp
        long long run = base + lane;
        int place = 0, past = 0;
        if (run <= open) {
            place = static_cast<int>(max(static_cast<long long>(starts[run]), begin) - begin);
            past = static_cast<int>(min(static_cast<long long>(starts[run + 1]), end) - begin);
        }
        Sum sum = run_sum(terms, place, past);
        bool began_before = run <= open && starts[run] < begin;
        if (run == first) partials->front = {0.0, 0.0};
        if (run == open) {
            partials->tail = sum;
        } else if (began_before) {  // only run `first` can
            partials->front = sum;
        } else if (run < open) {
            pulled[rows[run]] = sum.value();
        }
    }
}

// Block p sums the runs of piece p. Shares are multiplied here and in double: a product kept in `expanded` would be
// rounded to real_t once more.
extern "C" __global__ void sum_expanded(long long m, long long size, const index_t *rows, const offset_t *starts,
                                        const long long *heads, const real_t *expanded,
                                        const real_t *normalized_weights, double *pulled, Partials *partials) {
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
    sum_runs(terms, begin, end, heads[piece], heads[piece + 1], rows, starts, pulled, partials + piece);
}

// A block a piece: completes the run that ends in it and began before it.
extern "C" __global__ void collect(long long size, const index_t *rows, const offset_t *starts, const long long *heads,
                                   const Partials *partials, double *pulled) {
    long long piece = blockIdx.x, run = heads[piece], began = starts[run] / size;
    if (run == heads[piece + 1] || began == piece) return;  // it goes on, or is summed already
    Sum sum = crossing_sum(partials, began, piece);
    if (threadIdx.x == 0) pulled[rows[run]] = sum.value();
}
