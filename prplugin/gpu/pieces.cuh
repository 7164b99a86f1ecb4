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

#include "run_sum.cuh"

struct Partials {  // of a piece: of the row that ends in it, and of the one that goes on after it
    Sum front, tail;
};

// Sums the row that began in piece `began` and ends in piece `ended`; thread 0 has the result. All threads must call it.
__device__ inline Sum crossing_sum(const Partials *partials, long long began, long long ended) {
    const Sum *sums = reinterpret_cast<const Sum *>(partials);  // front, tail, front, tail ...
    Sum sum = NOTHING;
    for (long long k = 2 * began + 1 + threadIdx.x; k <= 2 * ended; k += blockDim.x) sum.add(sums[k]);
    return block_sum(sum);
}
