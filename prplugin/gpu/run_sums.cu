// Sums of consecutive runs of values, such as out-weights from the weights of out-edges.
//
// The values of each run and its end, run after run, are cut every SPAN of them: equal work, however long or empty runs
// are (merge path: Green, McColl and Bader 2012, "GPU merge path"). A run that lies within a span is summed there. Of one
// that crosses cuts each span leaves a partial sum, and `crossing_sums` adds those up.
//
// Mapping: `run_sums` has a block a span, whose values it takes into shared memory: a thread a short run, a warp a long
// one. `crossing_sums` has a warp a span, for the run that ends in it and began before.
// Memory: each value and offset once, and a sum a run.
// Wins: runs of all lengths; deterministic, where atomic additions would not be.
//
//   offset_t  int or long long

#include "run_sum.cuh"

#define THREADS 256
#define SPAN 4096

struct Partials {
    Sum front, tail;    // of the run that ends in the span and began before, and of the one that goes on after it
    long long crossed;  // the former, or -1
};

// How many of the runs end within the first `steps` values and ends.
__device__ inline long long runs_within(long long steps, long long runs, const offset_t *offsets) {
    long long least = 0, most = runs;
    while (least < most) {
        long long middle = (least + most) / 2;
        if (offsets[middle + 1] + middle < steps) least = middle + 1;
        else most = middle;
    }
    return least;
}

// `absent` stands for the sum of a run of no values.
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
    for (long long base = first + threadIdx.x - lane; base <= open; base += THREADS) {  // the same for a warp
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
        } else if (starts < begin) {  // only run `first` can
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
    Sum sum = NOTHING;
    for (long long other = (offsets[run] + run) / SPAN + lane; other < span; other += WARP) {
        sum.add(partials[other].tail);
    }
    sum = lanes_sum<WARP>(sum);
    if (lane == 0) {
        sum.add(partials[span].front);
        sums[run] = sum.value();
    }
}
