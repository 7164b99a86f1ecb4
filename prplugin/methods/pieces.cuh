// Rows summed from pieces of equally many edges: what `expanded` and `streamed` share.
//
// The edges lie row by row and are cut every `size` of them, whatever the rows, so that all pieces are equal work. Rows
// without edges are left out: run k is the edges starts[k]..starts[k + 1] of row rows[k], and none is empty. A run that
// lies within a piece is summed there. One that crosses a cut leaves a partial sum in each of its pieces, in the order
// of the edges:
//
//   piece           p                      p + 1                    p + 2
//   runs            ... |-- k --|----------- k + 1, a hub -----------|-- k + 2 --| ...
//   partials        front p, tail p,       front p + 1, tail p + 1, front p + 2, tail p + 2
//                            begins        nothing      goes on     ends
//
// so that its partial sums are neighbours, from a tail to a front, and `collect` adds them up. heads[p] is the run that
// the first edge of piece p belongs to; heads[pieces] stands for a run past the last one, without edges.
//
//   index_t, offset_t  int or long long: the types of `rows` and of `starts`

#include "../graph/sums.cuh"

#define ALL_LANES 0xffffffffu
#define LONG_RUN WARP  // with more terms than that, a warp sums the run

struct Partials {  // of a piece: of the run that ends in it, and of the one that goes on after it
    Sum front, tail;
};

// Sums the runs of a piece, the edges begin..end, whose terms are in shared memory: a thread a short run, a warp a long
// one. Runs first..open end in the piece; run `open` goes on after it, or only begins there. All threads must call it.
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
        bool is_long = past - place > LONG_RUN;
        Sum sum = NOTHING;
        if (!is_long) {
            for (; place < past; ++place) sum.add(terms[place]);
        }
        for (unsigned waiting = __ballot_sync(ALL_LANES, is_long); waiting != 0; waiting &= waiting - 1) {
            int owner = __ffs(waiting) - 1;
            int stop = __shfl_sync(ALL_LANES, past, owner);
            Sum shared = NOTHING;
            for (int at = __shfl_sync(ALL_LANES, place, owner) + lane; at < stop; at += WARP) shared.add(terms[at]);
            shared = lanes_sum<WARP>(shared);
            shared.high = __shfl_sync(ALL_LANES, shared.high, 0);
            shared.low = __shfl_sync(ALL_LANES, shared.low, 0);
            if (lane == owner) sum = shared;
        }
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

// A block a piece: completes the run that ends in it and began before it.
extern "C" __global__ void collect(long long size, const index_t *rows, const offset_t *starts, const long long *heads,
                                   const Partials *partials, double *pulled) {
    long long piece = blockIdx.x, run = heads[piece], began = starts[run] / size;
    if (run == heads[piece + 1] || began == piece) return;  // it goes on, or is summed already
    const Sum *sums = reinterpret_cast<const Sum *>(partials);  // front, tail, front, tail ...
    Sum sum = NOTHING;
    for (long long k = 2 * began + 1 + threadIdx.x; k <= 2 * piece; k += blockDim.x) sum.add(sums[k]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) pulled[rows[run]] = sum.value();
}
