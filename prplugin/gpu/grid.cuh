// A barrier of all blocks of a grid, for kernels launched cooperatively: then all blocks are on the GPU at once.
//
// `arrived` is a word in global memory, 0 before its first use. Every arrival adds to it, so that its top bit turns over
// with the last: block 0 adds what the others leave of 2^31. What any thread wrote before the barrier, all threads of
// the grid read after it, but not through the read-only cache (`__ldg`, `__restrict__`), which no barrier empties.
__device__ inline void grid_barrier(unsigned *arrived) {
    const unsigned top = 0x80000000u;
    __syncthreads();
    if (gridDim.x > 1 && threadIdx.x == 0) {
        unsigned before, now;
        asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(arrived), "r"(blockIdx.x == 0 ? top - (gridDim.x - 1) : 1u)
                     : "memory");
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        } while (((before ^ now) & top) == 0);
    }
    __syncthreads();
}
