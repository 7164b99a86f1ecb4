// Reduced rank extrapolation on the GPU: see extrapolate/__init__.py.
//
// Mapping: `gram` a block a share of the vertices, which pass through shared memory TILE at a time, and a thread a pair of
// moves; `leap` a thread a vertex, in a loop that strides over the grid.
// Memory: each move once for either, 4 bytes a vertex.
// Wins: once in WINDOW steps, which it takes no longer than a step or two of.
//
//   WINDOW  17

#include "sums.cuh"

#define TILE 64

// Multiplies all moves with all: the products i >= j of a block's vertices, in the order of a lower triangle.
extern "C" __global__ void gram(long long n, const float *moves, double *partials) {
    const int pairs = WINDOW * (WINDOW + 1) / 2;
    __shared__ float tile[WINDOW][TILE + 1];  // a column more, so that threads of a warp read from several banks
    int i = 0, j = threadIdx.x;
    while (j > i) j -= ++i;
    double product = 0.0;
    for (long long first = static_cast<long long>(blockIdx.x) * TILE; first < n;
         first += static_cast<long long>(gridDim.x) * TILE) {
        for (int at = threadIdx.x; at < WINDOW * TILE; at += blockDim.x) {
            long long vertex = first + at % TILE;
            tile[at / TILE][at % TILE] = vertex < n ? moves[at / TILE * n + vertex] : 0.0f;
        }
        __syncthreads();
        if (threadIdx.x < pairs) {
            for (int at = 0; at < TILE; ++at) product += static_cast<double>(tile[i][at]) * tile[j][at];
        }
        __syncthreads();
    }
    if (threadIdx.x < pairs) partials[blockIdx.x * pairs + threadIdx.x] = product;
}

// last - sum_j weights_j d_(j+1), no rank below 0; and what the ranks of each block sum to.
extern "C" __global__ void leap(long long n, const double *last, const float *moves, const double *weights,
                                double *ranks, double *sums) {
    Sum sum = NOTHING;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        double rank = last[i];
        for (int j = 1; j < WINDOW; ++j) rank -= weights[j - 1] * moves[j * n + i];
        ranks[i] = fmax(rank, 0.0);
        sum.add(ranks[i]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum.value();
}
