// Whether this block is the last of the grid to get here; what others wrote before is then visible to it.
__device__ inline bool is_last_block(unsigned *done) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}
