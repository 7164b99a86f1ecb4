// A barrier of all blocks of a grid, for cooperative launches, where all blocks are resident.
//
// `arrived` is a word in global memory, initialized to 0. Every arrival adds to it, so that its top bit flips with the
// last one: block 0 adds 2^31 less the arrivals of the others. Writes of any thread before the barrier are visible to
// all threads of the grid after it, except through the read-only cache (`__ldg`, `__restrict__`), which no barrier
// empties.
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
