// Sums of consecutive runs of values: out-weights from the weights of out-edges.
//
// Mapping: a warp a run, in a loop that strides over the grid.
// Memory: each value once, coalesced within a run; two offsets and a sum a run.
// Wins: it is the only one; deterministic, where atomic additions would not be.
//
//   offset_t  int or long long

#include "sums.cuh"

extern "C" __global__ void run_sums(long long runs, const offset_t *offsets, const double *values, double *sums) {
    int lane = threadIdx.x % WARP;
    long long stride = static_cast<long long>(gridDim.x) * (blockDim.x / WARP);
    long long first = static_cast<long long>(blockIdx.x) * (blockDim.x / WARP) + threadIdx.x / WARP;
    for (long long run = first; run < runs; run += stride) {  // the same run for all lanes of a warp
        Sum sum = NOTHING;
        for (long long place = offsets[run] + lane, end = offsets[run + 1]; place < end; place += WARP) {
            sum.add(values[place]);
        }
        sum = lanes_sum<WARP>(sum);
        if (lane == 0) sums[run] = sum.value();
    }
}
