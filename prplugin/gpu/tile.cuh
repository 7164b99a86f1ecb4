// Stable sort of the items of a tile by one digit: computes the place of each item.
//
// An item's place is the number of items with a lesser digit, plus those of the same digit in earlier warps, plus those
// before it in its own warp. Each warp has its own counts. Lanes with the same digit find one another by one ballot per
// bit; the first of them reserves places for all.
//
// The items of a warp are neighbours: item k of a lane is at (warp * ITEMS + k) * 32 + lane of the tile. Reads are
// coalesced, and the order is by warp, then k, then lane.

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

// Counts the digits of each warp's items; a barrier must follow.
template <typename T>
__device__ void count_digits(counts_t &counts, const T (&keys)[ITEMS], Digit digit) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int bin = lane; bin < BINS; bin += WARP) counts[warp][bin] = 0;
    __syncwarp();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) atomicAdd(&counts[warp][digit.of(keys[item])], 1u);
}

// The number of items of the tile whose digit is this thread's number.
__device__ inline unsigned int counted(const counts_t &counts) {
    unsigned int count = 0;
    if (threadIdx.x < BINS) {
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) count += counts[warp][threadIdx.x];
    }
    return count;
}

// Replaces counts by the begin of each warp's items of a digit, given the begin of this thread's digit in the tile. A
// barrier must follow.
__device__ inline void counts_to_offsets(counts_t &counts, unsigned int first) {
    if (threadIdx.x < BINS) {
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            unsigned int count = counts[warp][threadIdx.x];
            counts[warp][threadIdx.x] = first;
            first += count;
        }
    }
}

// Writes the place of each item in the tile to `ranks`, and advances the places of its warp.
template <typename T>
__device__ void place_items(counts_t &places, const T (&keys)[ITEMS], Digit digit, unsigned int (&ranks)[ITEMS]) {
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
        __syncwarp();  // another lane may read it for the next item of this digit
        ranks[item] = __shfl_sync(ALL_LANES, first, leader) + __popc(peers & earlier);
    }
}
