// The number of rows of each group, from rows partitioned into bins of neighbouring groups.
//
// Mapping: one block per part and piece of a bin; see bins.cuh. It counts the rows of the part, and adds to the sizes.
// Memory: each row once, and once more from the L2 cache for each further part; at most one atomic addition in the L2
// cache per group and piece, coalesced. The partition before reads each row twice and writes it once.
// Wins: where the sizes exceed the L2 cache and groups have several rows: `group_sizes` has one uncoalesced atomic
// addition per row.
//
//   state_t  unsigned int or unsigned long long

#include "bins.cuh"

#define THREADS 512
#define BLOCKS 4
#define COUNTED 12000
#define LOADS_IN_FLIGHT 8

// `sizes` must be zeroed; a part has at most COUNTED groups.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) binned_sizes(
    long long m, const unsigned int *rows, const state_t *starts, int shift, int parts, int width, int length,
    unsigned int *sizes) {
    __shared__ unsigned int counts[COUNTED];
    for (int group = threadIdx.x; group < width; group += THREADS) counts[group] = 0;
    Part part = part_of_block(m, starts, shift, parts, width, length);
    const unsigned int *mine = rows + part.begin;
    for (int first = threadIdx.x; first < part.rows; first += LOADS_IN_FLIGHT * THREADS) {
        unsigned int groups[LOADS_IN_FLIGHT];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            int place = first + item * THREADS;
            groups[item] = place < part.rows ? mine[place] - part.low : ~0u;  // past the end: in no part
        }
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            if (groups[item] < width) atomicAdd(counts + groups[item], 1u);
        }
    }
    __syncthreads();
    for (int group = threadIdx.x; group < width; group += THREADS) {
        if (counts[group]) atomicAdd(sizes + part.low + group, counts[group]);
    }
}
