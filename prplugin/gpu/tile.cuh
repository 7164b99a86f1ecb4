// Where the items of a tile go when they are brought together by a digit, equal ones in the order in which they came.
//
// An item's place in the tile: how many have a lesser digit, how many of the same digit earlier warps have, and how
// many its own warp has before it. Each warp has its own counts. Lanes that hold the same digit find one another by a
// ballot a bit; the first of them takes places for all.
//
// A warp's items are neighbours: item k of a lane is at (warp * ITEMS + k) * 32 + lane of the tile. Reads are coalesced,
// and their order is by warp, then k, then lane.

#include "block_scan.cuh"

#define DIGIT_BITS 8
#define BINS (1 << DIGIT_BITS)
#define WARPS (THREADS / WARP)
#define TILE (THREADS * ITEMS)
#define ALL_LANES 0xffffffffu

typedef unsigned int counts_t[WARPS][BINS];

struct Digit {
    int shift;
    unsigned int mask;

    template <typename T>
    __device__ unsigned int of(T key) const {
        return static_cast<unsigned int>(key >> shift) & mask;
    }
};

__device__ inline int place_in_tile(int item) {
    return (threadIdx.x / WARP * ITEMS + item) * WARP + threadIdx.x % WARP;
}

// Counts the digits of each warp's items. The counts are there for all threads after the next barrier.
template <typename T>
__device__ void count_digits(counts_t &counts, const T (&keys)[ITEMS], Digit digit) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int bin = lane; bin < BINS; bin += WARP) counts[warp][bin] = 0;
    __syncwarp();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) atomicAdd(&counts[warp][digit.of(keys[item])], 1u);
}

// How many items of the tile have the digit that is this thread's number.
__device__ inline unsigned int counted(const counts_t &counts) {
    unsigned int count = 0;
    if (threadIdx.x < BINS) {
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) count += counts[warp][threadIdx.x];
    }
    return count;
}

// Turns counts into where each warp's items of a digit begin, given where this thread's digit begins in the tile. They
// are there for all threads after the next barrier.
__device__ inline void turn_into_places(counts_t &counts, unsigned int first) {
    if (threadIdx.x < BINS) {
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            unsigned int count = counts[warp][threadIdx.x];
            counts[warp][threadIdx.x] = first;
            first += count;
        }
    }
}

// Gives each item its place in the tile, and moves the places of its warp on.
template <typename T>
__device__ void take_places(counts_t &places, const T (&keys)[ITEMS], Digit digit, unsigned int (&ranks)[ITEMS]) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned int earlier = (1u << lane) - 1;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        unsigned int mine = digit.of(keys[item]), peers = ALL_LANES;
#pragma unroll
        for (int bit = 0; bit < DIGIT_BITS; ++bit) {
            bool set = mine >> bit & 1;
            unsigned int ballot = __ballot_sync(ALL_LANES, set);
            peers &= set ? ballot : ~ballot;
        }
        int leader = __ffs(peers) - 1;
        unsigned int first = 0;
        if (lane == leader) {
            first = places[warp][mine];
            places[warp][mine] = first + __popc(peers);
        }
        __syncwarp();  // the next of this digit, in another lane, reads what this one wrote
        ranks[item] = __shfl_sync(ALL_LANES, first, leader) + __popc(peers & earlier);
    }
}
