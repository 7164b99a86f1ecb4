// Sums of runs of terms in shared memory, one run per lane.

#include "sums.cuh"

#define ALL_LANES 0xffffffffu
#define LONG_RUN WARP  // a warp sums a run of more terms

// Sums one run per lane, the terms place..past: a lane a short one, the warp a long one. All lanes must call it.
__device__ inline Sum run_sum(const double *terms, int place, int past) {
    int lane = threadIdx.x % WARP;
    bool is_long = past - place > LONG_RUN;
    Sum sum = ZERO_SUM;
    if (!is_long) {
        for (; place < past; ++place) sum.add(terms[place]);
    }
    for (unsigned waiting = __ballot_sync(ALL_LANES, is_long); waiting != 0; waiting &= waiting - 1) {
        int owner = __ffs(waiting) - 1;
        int stop = __shfl_sync(ALL_LANES, past, owner);
        Sum shared = ZERO_SUM;
        for (int at = __shfl_sync(ALL_LANES, place, owner) + lane; at < stop; at += WARP) shared.add(terms[at]);
        shared = lanes_sum<WARP>(shared);
        shared.high = __shfl_sync(ALL_LANES, shared.high, 0);
        shared.low = __shfl_sync(ALL_LANES, shared.low, 0);
        if (lane == owner) sum = shared;
    }
    return sum;
}
