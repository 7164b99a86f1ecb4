// Anderson mixing on the GPU: see prplugin/numerics.py.
//
// Mapping: `products`: one block per part of the vertices, TILE of which are in shared memory at a time, one thread per
// pair of moves; `mix`: one thread per vertex. For many seeds, one thread per seed, and GROUPS vertices at a time per
// block. The grid is the same on every GPU, so that the sums have the same bits.
// Memory: each kernel reads each move once, 4 bytes per vertex.
// Wins: once in a few steps; it takes less time than one step.
//
// ROWS is the number of vectors of the history.
//
//   ROWS  7 8 19

#include "sums.cuh"

#define TILE 64
#define PAIRS (ROWS * (ROWS + 1) / 2)

// Dot products of all pairs i >= j of moves over a block's vertices, in the order of a lower triangle.
extern "C" __global__ void products(long long n, const float *moves, double *partials) {
    __shared__ float tile[ROWS][TILE + 1];  // one column of padding avoids bank conflicts
    int i = 0, j = threadIdx.x;
    while (j > i) j -= ++i;
    double product = 0.0;
    for (long long first = static_cast<long long>(blockIdx.x) * TILE; first < n;
         first += static_cast<long long>(gridDim.x) * TILE) {
        for (int at = threadIdx.x; at < ROWS * TILE; at += blockDim.x) {
            long long vertex = first + at % TILE;
            tile[at / TILE][at % TILE] = vertex < n ? moves[at / TILE * n + vertex] : 0.0f;
        }
        __syncthreads();
        if (threadIdx.x < PAIRS) {
            for (int at = 0; at < TILE; ++at) product += static_cast<double>(tile[i][at]) * tile[j][at];
        }
        __syncthreads();
    }
    if (threadIdx.x < PAIRS) partials[blockIdx.x * PAIRS + threadIdx.x] = product;
}

// Replaces the ranks y by z = max(y - weights @ moves, 0), writes z - y to `jump`, and the sum of each block's z.
extern "C" __global__ void mix(long long n, const float *moves, const double *weights, double *ranks, float *jump,
                               double *sums) {
    Sum sum = ZERO_SUM;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        double rank = ranks[i];
        for (int row = 0; row < ROWS; ++row) {
            if (weights[row] != 0.0) rank -= weights[row] * moves[row * n + i];
        }
        rank = fmax(rank, 0.0);
        jump[i] = static_cast<float>(rank - ranks[i]);
        ranks[i] = rank;
        sum.add(rank);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum.value();
}

// The same for many seeds: moves are matrices of n x seeds, one column per seed. Blocks have seeds x groups threads.
extern "C" __global__ void seeds_products(long long n, const float *moves, double *partials) {
    int seeds = blockDim.x, seed = threadIdx.x;
    double product[PAIRS];
    for (int pair = 0; pair < PAIRS; ++pair) product[pair] = 0.0;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.y;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; i < n; i += stride) {
        float line[ROWS];
        for (int row = 0; row < ROWS; ++row) line[row] = moves[(row * n + i) * seeds + seed];
        int pair = 0;
        for (int row = 0; row < ROWS; ++row) {
            for (int other = 0; other <= row; ++other) product[pair++] += static_cast<double>(line[row]) * line[other];
        }
    }
    long long at = (static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y) * PAIRS;
    for (int pair = 0; pair < PAIRS; ++pair) partials[(at + pair) * seeds + seed] = product[pair];
}

// `weights` has one row of seeds per move.
extern "C" __global__ void seeds_mix(long long n, const float *moves, const double *weights, double *ranks, float *jump,
                                     double *sums) {
    int seeds = blockDim.x, seed = threadIdx.x;
    Sum sum = ZERO_SUM;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.y;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; i < n; i += stride) {
        double before = ranks[i * seeds + seed], rank = before;
        for (int row = 0; row < ROWS; ++row) {
            double weight = weights[row * seeds + seed];
            if (weight != 0.0) rank -= weight * moves[(row * n + i) * seeds + seed];
        }
        rank = fmax(rank, 0.0);
        jump[i * seeds + seed] = static_cast<float>(rank - before);
        ranks[i * seeds + seed] = rank;
        sum.add(rank);
    }
    sums[(static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y) * seeds + seed] = sum.value();
}
