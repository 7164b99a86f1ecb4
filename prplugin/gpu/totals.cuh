// Measurements of an iteration over all vertices.

#include "sums.cuh"

struct Totals {  // of a block or the whole grid
    double change, largest, dangling;
};

struct Tally {  // compensated, while adding
    Sum change, dangling;
    double largest;

    __device__ void add(double before, double rank, bool dangles) {
        double move = fabs(rank - before);
        change.add(move);
        largest = fmax(largest, move);
        if (dangles) dangling.add(rank);
    }

    __device__ void add(const Totals &others) {
        change.add(others.change);
        largest = fmax(largest, others.largest);
        dangling.add(others.dangling);
    }
};

#define ABSENT __longlong_as_double(-1)  // a NaN that marks a sum that has not been written

#define ZERO_TALLY {ZERO_SUM, ZERO_SUM, 0.0}

// Sums over a warp, for all of its lanes: plain additions, in five levels.
__device__ inline Totals warp_totals(Totals mine) {
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        mine.change += __shfl_xor_sync(0xffffffffu, mine.change, distance);
        mine.largest = fmax(mine.largest, __shfl_xor_sync(0xffffffffu, mine.largest, distance));
        mine.dangling += __shfl_xor_sync(0xffffffffu, mine.dangling, distance);
    }
    return mine;
}

// Adds up the tallies of the threads of a block; all threads get the result. All must call it; it may be called
// repeatedly.
__device__ inline Totals block_totals(const Tally &tally) {
    __shared__ Totals warps[WARP];
    Totals mine = warp_totals({tally.change.value(), tally.largest, tally.dangling.value()});
    __syncthreads();  // `warps` is no longer read by a previous call
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = mine;
    __syncthreads();
    int warp = threadIdx.x % WARP;
    return warp_totals(warp < blockDim.x / WARP ? warps[warp] : Totals{0.0, 0.0, 0.0});
}
