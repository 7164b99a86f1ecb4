// The number of rows of each group, by bins of neighbouring groups whose counts fit in shared memory.
//
// Mapping: `bin_rows`: one block per run of MOVED rows, which sorts them by bin in shared memory, in any order within a
// bin, since they are only counted. `binned_sizes`: one block per part and piece of a bin. A piece has the rows of the bin
// in a range of runs; the pieces of a bin have about as many rows if these are spread evenly over the runs. The block
// counts the rows of the part, and adds to the sizes. Blocks of the same piece are neighbours.
// Memory: `bin_rows` reads each row once and writes its distance from the least of its bin, and 512 bytes per run.
// `binned_sizes` reads these once, and once more from the L2 cache for each further part; at most one atomic addition in
// the L2 cache per group and piece, coalesced.
// Wins: where the sizes exceed the L2 cache and groups have several rows: `group_sizes` has one uncoalesced atomic
// addition per row.
//
//   distance_t  unsigned short where bins have at most 2^16 groups, else unsigned int

#include "block_scan.cuh"

#define BINS 256
#define MOVING 512
#define ITEMS 16
#define MOVED (MOVING * ITEMS)
#define THREADS 1024
#define LOADS_IN_FLIGHT 8
#define ALL_LANES 0xffffffffu

// Writes the begin of each bin in each run to `begins`, and adds its size to `totals`, which must be zeroed. `binned` has
// room for whole runs.
extern "C" __global__ void __launch_bounds__(MOVING, 2)
    bin_rows(long long m, const unsigned int *rows, int shift, unsigned int *totals, unsigned short *begins,
             distance_t *binned) {
    __shared__ unsigned int counts[BINS];
    __shared__ __align__(16) distance_t staged[MOVED];
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
        begins[static_cast<long long>(blockIdx.x) * BINS + threadIdx.x] = static_cast<unsigned short>(before);
        atomicAdd(totals + threadIdx.x, own);
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        if (item * MOVING + threadIdx.x >= held) continue;
        unsigned int bin = mine[item] >> shift;
        staged[counts[bin] + ranks[item]] = static_cast<distance_t>(mine[item] - (bin << shift));
    }
    __syncthreads();
    const int wide = sizeof(uint4) / sizeof(distance_t);
    uint4 *to = reinterpret_cast<uint4 *>(binned + first);
    for (int at = threadIdx.x; at * wide < held; at += MOVING) to[at] = reinterpret_cast<const uint4 *>(staged)[at];
}

// `sizes` must be zeroed.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    binned_sizes(long long m, const distance_t *rows, const unsigned short *begins, const unsigned int *totals,
                 int shift, int parts, int width, int length, unsigned int *sizes) {
    extern __shared__ unsigned int sums[];  // one per group of the part
    __shared__ int bin, first_run, last_run;
    for (int group = threadIdx.x; group < width; group += THREADS) sums[group] = 0;
    if (threadIdx.x == 0) first_run = last_run = 0;
    unsigned int number = blockIdx.x / parts, low = blockIdx.x % parts * width, all;  // `low` is the first group in the bin
    unsigned int pieces = threadIdx.x < BINS ? (totals[threadIdx.x] + length - 1) / length : 0;
    unsigned int before = block_scan(pieces, &all);
    if (before <= number && number < before + pieces) {
        long long runs = (m + MOVED - 1) / MOVED, piece = number - before;
        bin = threadIdx.x;
        first_run = static_cast<int>(runs * piece / pieces);
        last_run = static_cast<int>(runs * (piece + 1) / pieces);
    }
    __syncthreads();
    int lane = threadIdx.x % WARP;
    for (int base = first_run + threadIdx.x / WARP * WARP; base < last_run; base += THREADS) {
        long long run = base + lane;
        unsigned int begin = 0, count = 0;  // each lane finds the rows of one run
        if (run < last_run) {
            begin = begins[run * BINS + bin];
            unsigned int held = min(m - run * MOVED, static_cast<long long>(MOVED));
            count = (bin + 1 < BINS ? begins[run * BINS + bin + 1] : held) - begin;
            begin += run * MOVED;
        }
        for (int other = 0; other < WARP; other += LOADS_IN_FLIGHT) {  // and then all lanes read them
            unsigned int most = 0;
#pragma unroll
            for (int k = 0; k < LOADS_IN_FLIGHT; ++k) most = max(most, __shfl_sync(ALL_LANES, count, other + k));
            for (unsigned int place = lane; place - lane < most; place += WARP) {
                unsigned int groups[LOADS_IN_FLIGHT];
#pragma unroll
                for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
                    unsigned int from = __shfl_sync(ALL_LANES, begin, other + k);
                    bool exists = place < __shfl_sync(ALL_LANES, count, other + k);
                    groups[k] = exists ? rows[from + place] - low : ~0u;  // past the end: in no part
                }
#pragma unroll
                for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
                    if (groups[k] < width) atomicAdd(sums + groups[k], 1u);
                }
            }
        }
    }
    __syncthreads();
    if (first_run == last_run) return;  // no work for this block
    for (int group = threadIdx.x; group < width; group += THREADS) {
        if (sums[group]) atomicAdd(sizes + (static_cast<unsigned int>(bin) << shift) + low + group, sums[group]);
    }
}
