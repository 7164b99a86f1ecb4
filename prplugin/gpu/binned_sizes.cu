// The number of rows of each group, by bins of neighbouring groups whose counts fit in shared memory.
//
// Mapping: `bin_rows`: one block per MOVED rows, which sorts them by bin in shared memory, in any order within a bin, since
// they are only counted. `binned_sizes`: one block per part and piece of a bin; see bins.cuh. It counts the rows of the
// part, and adds to the sizes.
// Memory: `bin_rows` reads each row once and writes its distance from the least of its bin. `binned_sizes` reads these
// once, and once more from the L2 cache for each further part; at most one atomic addition in the L2 cache per group and
// piece, coalesced.
// Wins: where the sizes exceed the L2 cache and groups have several rows: `group_sizes` has one uncoalesced atomic
// addition per row.
//
//   distance_t  unsigned short where bins have at most 2^16 groups, else unsigned int
//   state_t     unsigned int or unsigned long long

#include "bins.cuh"

#define MOVING 512
#define ITEMS 16
#define MOVED (MOVING * ITEMS)
#define THREADS 1024
#define LOADS_IN_FLIGHT 8

// `next` has the begin of each bin, and afterwards its end.
extern "C" __global__ void __launch_bounds__(MOVING, 2)
    bin_rows(long long m, const unsigned int *rows, int shift, state_t *next, distance_t *binned) {
    __shared__ unsigned int counts[BINS], staged[MOVED];
    __shared__ state_t moves[BINS];  // from places in the block to places among all rows
    long long first = static_cast<long long>(blockIdx.x) * MOVED;
    int held = static_cast<int>(min(m - first, static_cast<long long>(MOVED)));
    unsigned int mine[ITEMS], ranks[ITEMS], all;
    if (threadIdx.x < BINS) counts[threadIdx.x] = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        mine[item] = rows[first + min(item * MOVING + static_cast<int>(threadIdx.x), held - 1)];
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        bool exists = item * MOVING + threadIdx.x < held;
        ranks[item] = exists ? atomicAdd(counts + (mine[item] >> shift), 1u) : 0;
    }
    __syncthreads();
    unsigned int own = threadIdx.x < BINS ? counts[threadIdx.x] : 0, before = block_scan(own, &all);
    if (threadIdx.x < BINS) {
        counts[threadIdx.x] = before;
        moves[threadIdx.x] = atomicAdd(next + threadIdx.x, static_cast<state_t>(own)) - before;
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        if (item * MOVING + threadIdx.x < held) staged[counts[mine[item] >> shift] + ranks[item]] = mine[item];
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        int place = item * MOVING + threadIdx.x;
        if (place >= held) continue;
        unsigned int row = staged[place], bin = row >> shift;
        binned[moves[bin] + place] = static_cast<distance_t>(row - (bin << shift));
    }
}

// `sizes` must be zeroed.
extern "C" __global__ void __launch_bounds__(THREADS, 1) binned_sizes(
    long long m, const distance_t *rows, const state_t *starts, int shift, int parts, int width, int length,
    unsigned int *sizes) {
    extern __shared__ unsigned int sums[];  // one per group of the part
    for (int group = threadIdx.x; group < width; group += THREADS) sums[group] = 0;
    Part part = part_of_block(m, starts, shift, parts, width, length);
    const distance_t *mine = rows + part.begin;
    unsigned int low = part.low & ((1u << shift) - 1);  // in its bin
    for (int first = threadIdx.x; first < part.rows; first += LOADS_IN_FLIGHT * THREADS) {
        unsigned int groups[LOADS_IN_FLIGHT];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            int place = first + item * THREADS;
            groups[item] = place < part.rows ? mine[place] - low : ~0u;  // past the end: in no part
        }
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            if (groups[item] < width) atomicAdd(sums + groups[item], 1u);
        }
    }
    __syncthreads();
    for (int group = threadIdx.x; group < width; group += THREADS) {
        if (sums[group]) atomicAdd(sizes + part.low + group, sums[group]);
    }
}
