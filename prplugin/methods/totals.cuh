// What a grid measures of all vertices in an iteration.

#include "../graph/sums.cuh"

struct Totals {  // of a block, and in the end of all
    double change, largest, dangling;
};

struct Tally {  // while it is counted
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

    __device__ void add(const Tally &other) {
        change.add(other.change);
        largest = fmax(largest, other.largest);
        dangling.add(other.dangling);
    }

    __device__ Tally of_lane(int other) const {
        Tally tally;
        tally.change.high = __shfl_xor_sync(0xffffffffu, change.high, other);
        tally.change.low = __shfl_xor_sync(0xffffffffu, change.low, other);
        tally.dangling.high = __shfl_xor_sync(0xffffffffu, dangling.high, other);
        tally.dangling.low = __shfl_xor_sync(0xffffffffu, dangling.low, other);
        tally.largest = __shfl_xor_sync(0xffffffffu, largest, other);
        return tally;
    }
};

#define ABSENT __longlong_as_double(-1)  // a NaN, for a sum that is not there yet

#define NO_TALLY {NOTHING, NOTHING, 0.0}

// Adds up what the threads of a block counted; all of them get the result. All threads must call it; calls may follow
// one another.
__device__ inline Totals block_totals(Tally tally) {
    __shared__ Tally warps[WARP];
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) tally.add(tally.of_lane(distance));
    __syncthreads();  // whoever called before has read `warps`
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = tally;
    __syncthreads();
    tally = warps[0];
    for (int warp = 1; warp < blockDim.x / WARP; ++warp) tally.add(warps[warp]);
    return {tally.change.value(), tally.largest, tally.dangling.value()};
}
