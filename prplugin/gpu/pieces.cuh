// Row sums from pieces of equally many edges, for `expanded` and `streamed`.
//
// The edges, row by row, are split into pieces of `size` edges, independent of rows, so that all pieces are equal work.
// Empty rows are left out; the part of a row in a piece is a run. A row within one piece is summed there. A row that
// crosses pieces leaves a partial sum in each of them, in the order of the edges:
//
//   piece           p                      p + 1                    p + 2
//   rows            ... |-- a --|--------------- b, a hub ---------------|-- c --| ...
//   partials        front p, tail p,       front p + 1, tail p + 1, front p + 2, tail p + 2
//                            begins        none        continues   ends
//
// so that its partial sums are contiguous, from a tail to a front, and are added up once all are written.

#include "run_sum.cuh"

struct Partials {  // of the row that ends in the piece, and of the one that continues after it
    Sum front, tail;
};

// Returns, in lane 0, the sum of the row that begins in piece `began` and ends in piece `ended`. All lanes of the warp
// must call it. Most rows have two partial sums; of a hub's, many are loaded at a time.
__device__ inline Sum crossing_sum(const Partials *partials, long long began, long long ended) {
    const Sum *sums = reinterpret_cast<const Sum *>(partials);  // front, tail, front, tail ...
    Sum sum = ZERO_SUM;
#pragma unroll 8
    for (long long k = 2 * began + 1 + threadIdx.x % WARP; k <= 2 * ended; k += WARP) sum.add(sums[k]);
    return lanes_sum<WARP>(sum);
}
