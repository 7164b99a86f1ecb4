// Exclusive prefix sums over the threads of a block.

#define WARP 32

// Returns the exclusive prefix sum of the threads' values, and in `*total` the sum over the block. All threads of the
// block, a multiple of 32, must call it; it may be called repeatedly.
template <typename T>
__device__ T block_scan(T value, T *total) {
    __shared__ T warps[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    T sum = value;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        T other = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) sum += other;
    }
    __syncthreads();  // `warps` is no longer read by a previous call
    if (lane == WARP - 1) warps[warp] = sum;
    __syncthreads();
    T before = 0, all = 0;
    for (int other = 0; other < blockDim.x / WARP; ++other) {
        if (other < warp) before += warps[other];
        all += warps[other];
    }
    *total = all;
    return before + sum - value;
}
