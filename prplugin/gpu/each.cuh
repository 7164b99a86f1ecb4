// Loop over an array by all threads of the grid.

#define LOADS_IN_FLIGHT 8

__device__ inline long long this_thread() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline long long all_threads() { return static_cast<long long>(gridDim.x) * blockDim.x; }

// Calls `work(item, place)` for each item. LOADS_IN_FLIGHT loads are in flight per thread, without conditions.
template <typename T, typename Work>
__device__ void each(const T *items, long long count, Work work) {
    long long stride = all_threads(), first = this_thread();
    for (; first + (LOADS_IN_FLIGHT - 1) * stride < count; first += LOADS_IN_FLIGHT * stride) {
        T mine[LOADS_IN_FLIGHT];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) mine[item] = items[first + item * stride];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) work(mine[item], first + item * stride);
    }
    for (; first < count; first += stride) work(items[first], first);
}
