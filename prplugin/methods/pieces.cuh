// Rows summed from pieces of equally many edges: what `expanded` and `streamed` share.
//
// The edges lie row by row and are cut every `size` of them, whatever the rows, so that all pieces are equal work. Rows
// without edges are left out: what a row has in a piece is a run, and none is empty. A row that lies within a piece is
// summed there. One that crosses a cut leaves a partial sum in each of its pieces, in the order of the edges:
//
//   piece           p                      p + 1                    p + 2
//   rows            ... |-- a --|--------------- b, a hub ---------------|-- c --| ...
//   partials        front p, tail p,       front p + 1, tail p + 1, front p + 2, tail p + 2
//                            begins        nothing      goes on     ends
//
// so that its partial sums are neighbours, from a tail to a front, and are added up once all are there.

#include "../graph/sums.cuh"

#define ALL_LANES 0xffffffffu
#define LONG_RUN WARP  // with more terms than that, a warp sums the run

struct Partials {  // of a piece: of the row that ends in it, and of the one that goes on after it
    Sum front, tail;
};

// Sums a run for each lane, its terms place..past: the lane a short one, the warp a long one. All lanes must call it.
__device__ inline Sum run_sum(const double *terms, int place, int past) {
    int lane = threadIdx.x % WARP;
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
    return sum;
}

// Sums the row that began in piece `began` and ends in piece `ended`; thread 0 has the result. All threads must call it.
__device__ inline Sum crossing_sum(const Partials *partials, long long began, long long ended) {
    const Sum *sums = reinterpret_cast<const Sum *>(partials);  // front, tail, front, tail ...
    Sum sum = NOTHING;
    for (long long k = 2 * began + 1 + threadIdx.x; k <= 2 * ended; k += blockDim.x) sum.add(sums[k]);
    return block_sum(sum);
}
