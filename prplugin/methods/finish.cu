// From row sums to new ranks: the end of every iteration, whatever summed the rows.
//
//   y_i = alpha * pulled_i + alpha * D * w_i + (1 - alpha) * v_i,    c_i = y_i * outflow_i
//
// Mapping: one thread a vertex, in a loop that strides over the grid. Each block leaves the sums of its vertices in
// `partials`, and one block adds those up, in an order that only the grid decides: the same bits in every run.
// Memory: 24 bytes read and 12 or 16 written a vertex (w and v uniform), each once.
// Wins: always; it is all but memory speed.
//
//   real_t  float or double: the type of contributions

#include "../graph/sums.cuh"

struct Totals {  // of a block, and in the end of all
    double change, largest, dangling;
};

__device__ void leave_totals(Sum change, double largest, Sum dangling, Totals *partials) {
    __shared__ double maxima[WARP];
    change = block_sum(change);
    dangling = block_sum(dangling);
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        largest = fmax(largest, __shfl_down_sync(0xffffffffu, largest, distance));
    }
    if (threadIdx.x % WARP == 0) maxima[threadIdx.x / WARP] = largest;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / WARP; ++warp) largest = fmax(largest, maxima[warp]);
        partials[blockIdx.x] = {change.value(), largest, dangling.value()};
    }
}

// Contributions and D of the ranks to start from.
extern "C" __global__ void begin(long long n, const double *ranks, const double *outflow, real_t *contributions,
                                 Totals *partials) {
    Sum dangling = NOTHING;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        if (outflow[i] == 0.0) dangling.add(ranks[i]);
        contributions[i] = static_cast<real_t>(ranks[i] * outflow[i]);
    }
    leave_totals(NOTHING, 0.0, dangling, partials);
}

// `target` (w) and `teleport` ((1 - alpha) v) have n entries, or one that stands for all: then their step is 0.
extern "C" __global__ void finish(long long n, double alpha, const double *pulled, const double *target,
                                  long long target_step, const double *teleport, long long teleport_step,
                                  const double *outflow, const Totals *totals, double *ranks, real_t *contributions,
                                  Totals *partials) {
    Sum change = NOTHING, dangling = NOTHING;
    double largest = 0.0, mass = alpha * totals->dangling;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        double rank = alpha * pulled[i] + (mass * target[i * target_step] + teleport[i * teleport_step]);
        double move = fabs(rank - ranks[i]);
        double flow = outflow[i];
        change.add(move);
        largest = fmax(largest, move);
        if (flow == 0.0) dangling.add(rank);
        ranks[i] = rank;
        contributions[i] = static_cast<real_t>(rank * flow);
    }
    leave_totals(change, largest, dangling, partials);
}

// One block: what all blocks left. Needs as many threads as a block may have warps, at least.
extern "C" __global__ void total(long long blocks, const Totals *partials, Totals *totals) {
    Sum change = NOTHING, dangling = NOTHING;
    double largest = 0.0;
    for (long long block = threadIdx.x; block < blocks; block += blockDim.x) {
        change.add(partials[block].change);
        largest = fmax(largest, partials[block].largest);
        dangling.add(partials[block].dangling);
    }
    leave_totals(change, largest, dangling, totals);
}
