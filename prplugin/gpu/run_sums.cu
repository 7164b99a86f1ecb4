// Sums of consecutive runs of values, such as out-weights from the weights of out-edges.
//
// The values of each run, followed by its end, are split into spans of SPAN items: equal work, however long or empty
// runs are (merge path: Green, McColl and Bader 2012, "GPU merge path"). A run within one span is summed there. A run
// that crosses spans leaves a partial sum in each of them, and `crossing_sums` adds those up.
//
// Mapping: `run_sums`: one block per span, whose values it loads into shared memory; one thread per short run, one warp
// per long run. `crossing_sums`: one warp per span, for the run that ends in it and begins in an earlier one.
// Memory: each value and offset once, and one sum per run.
// Wins: for runs of all lengths; deterministic, where atomic additions would not be.
//
//   offset_t  int or long long

#include "run_sum.cuh"

#define THREADS 256
#define SPAN 4096

struct Partials {
    Sum front, tail;  // of the run that ends in the span and begins before it, and of the one that continues after it
    long long crossed;  // number of the former, or -1
};

// The number of runs that end within the first `steps` values and ends.
__device__ inline long long runs_within(long long steps, long long runs, const offset_t *offsets) {
    long long least = 0, most = runs;
    while (least < most) {
        long long middle = (least + most) / 2;
        if (offsets[middle + 1] + middle < steps) least = middle + 1;
        else most = middle;
    }
    return least;
}

// `absent` is the sum of an empty run.
extern "C" __global__ void __launch_bounds__(THREADS) run_sums(
    long long runs, const offset_t *offsets, const double *values, double absent, double *sums, Partials *partials) {
    __shared__ double terms[SPAN];
    __shared__ long long cuts[2];
    long long steps = static_cast<long long>(blockIdx.x) * SPAN, last_step = min(steps + SPAN, offsets[runs] + runs);
    if (threadIdx.x == 0) cuts[0] = runs_within(steps, runs, offsets);
    if (threadIdx.x == WARP) cuts[1] = runs_within(last_step, runs, offsets);
    __syncthreads();
    long long first = cuts[0], open = cuts[1], begin = steps - first, end = last_step - open;
    for (int place = threadIdx.x; place < end - begin; place += THREADS) terms[place] = values[begin + place];
    __syncthreads();

    Partials *mine = partials + blockIdx.x;
    if (threadIdx.x == 0) mine->crossed = -1;
    __syncthreads();
    int lane = threadIdx.x % WARP;
    for (long long base = first + threadIdx.x - lane; base <= open; base += THREADS) {  // uniform in a warp
        long long run = base + lane, starts = begin, stops = begin;
        if (run <= open && run < runs) {
            starts = offsets[run];
            stops = offsets[run + 1];
        }
        int place = static_cast<int>(max(starts, begin) - begin), past = static_cast<int>(min(stops, end) - begin);
        Sum sum = run_sum(terms, place, past);
        if (run > open || run >= runs) continue;
        if (run == open) {
            mine->tail = sum;
        } else if (starts < begin) {  // only for run `first`
            mine->front = sum;
            mine->crossed = run;
        } else {
            sums[run] = starts < stops ? sum.value() : absent;
        }
    }
}

extern "C" __global__ void crossing_sums(long long spans, const offset_t *offsets, const Partials *partials,
                                         double *sums) {
    long long span = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    if (span >= spans || partials[span].crossed < 0) return;
    long long run = partials[span].crossed;
    int lane = threadIdx.x % WARP;
    Sum sum = ZERO_SUM;
    for (long long other = (offsets[run] + run) / SPAN + lane; other < span; other += WARP) {
        sum.add(partials[other].tail);
    }
    sum = lanes_sum<WARP>(sum);
    if (lane == 0) {
        sum.add(partials[span].front);
        sums[run] = sum.value();
    }
}
