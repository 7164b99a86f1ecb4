// One row of each pair of vertices: rows are sorted by 32 bits of a hash of their pair, all but one of each pair are
// marked, mostly a few, and the others are kept in the order in which they came.
//
// Two rows of a pair lie in the same run of equal keys, in the order of the frame. Where pairs are many, a run now and
// then holds rows of two; so the rows before one in its run (after it, for the last of a pair) are looked at until one
// has its pair, mostly the first, or the run is over, mostly at once.
//
// Mapping: `pair_keys` and `mark_repeated`, a thread a row; `keep_rows`, a block a tile of neighbouring rows, joined by
// look-back.
// Memory: `pair_keys` reads both ends and writes 4 bytes a row. `mark_repeated` reads those and the rows' numbers, reads
// the ends of rows whose neighbour has their key, at random, and writes a byte a repeated row, at random too. `keep_rows`
// reads a byte a row, and what the kept rows hold, and writes that.
// Wins: it is the only one on the GPU; keys of all bits of both ends take two more passes of wider words to sort.
//
//   index_t  int or long long
//   order_t  int or long long: the number of a row
//   state_t  unsigned int where there are fewer than 2^30 rows, else unsigned long long
//   WEIGHTED  0 1

#include "block_scan.cuh"
#include "each.cuh"
#include "look_back.cuh"

typedef unsigned long long pair_t;

// A pair as one number, the ends in rising order if `directed` is 0. An end has `bits` bits, 32 at the most.
__device__ inline pair_t pair_of(pair_t one, pair_t other, int directed, int bits) {
    return !directed && one > other ? other << bits | one : one << bits | other;
}

// The pair itself where it has 32 bits; else 32 of a product that spreads each of its bits over them.
extern "C" __global__ void pair_keys(long long m, const index_t *tails, const index_t *heads, int directed, int bits,
                                     unsigned int *keys) {
    each(tails, m, [=](index_t tail, long long row) {
        pair_t pair = pair_of(tail, heads[row], directed, bits);
        if (2 * bits > 32) {
            pair = (pair ^ pair >> 32) * 0x9E3779B97F4A7C15ull;
            pair >>= 32;
        }
        keys[row] = static_cast<unsigned int>(pair);
    });
}

// Marks all rows of each pair but the first, or the last, given keys in order with the numbers of their rows; and counts
// them. `marks` and `count` are 0 before.
extern "C" __global__ void mark_repeated(long long m, const unsigned int *keys, const order_t *rows, const index_t *tails,
                                     const index_t *heads, int directed, int bits, int last, unsigned char *marks,
                                     pair_t *count) {
    unsigned int mine = 0, total;
    int step = last ? 1 : -1;
    each(rows, m, [&](order_t row, long long place) {
        unsigned int key = keys[place];
        long long beside = place + step;
        if (beside < 0 || beside >= m || keys[beside] != key) return;
        pair_t pair = pair_of(tails[row], heads[row], directed, bits);
        for (; beside >= 0 && beside < m && keys[beside] == key; beside += step) {
            order_t other = rows[beside];
            if (pair_of(tails[other], heads[other], directed, bits) == pair) {
                marks[row] = 1;
                ++mine;
                return;
            }
        }
    });
    block_scan(mine, &total);
    if (threadIdx.x == 0 && total) atomicAdd(count, static_cast<pair_t>(total));
}

// Copies the rows that are not marked. `ticket` and `states` are 0 before.
extern "C" __global__ void keep_rows(long long m, const unsigned char *marks, unsigned int *ticket, state_t *states,
                                     const index_t *tails, const index_t *heads, const double *weights,
                                     index_t *kept_tails, index_t *kept_heads, double *kept_weights) {
    __shared__ unsigned int taken;
    __shared__ state_t before_tile;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
    __syncthreads();
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    long long tile = taken, first = (tile * blockDim.x + warp * WARP) * AT_A_TIME + lane;
    unsigned int kept[AT_A_TIME], in_warp = 0, all;  // of each 32 neighbours, which are not marked
#pragma unroll
    for (int item = 0; item < AT_A_TIME; ++item) {
        long long row = first + item * WARP;
        kept[item] = __ballot_sync(0xffffffffu, row < m && !marks[row]);
        in_warp += __popc(kept[item]);
    }
    state_t to = __shfl_sync(0xffffffffu, block_scan(lane == 0 ? in_warp : 0, &all), 0);
    if (warp == 0) {
        state_t earlier = tile_begin(states, tile, all);
        if (lane == 0) before_tile = earlier;
    }
    __syncthreads();
    to += before_tile;
#pragma unroll
    for (int item = 0; item < AT_A_TIME; ++item) {
        if (kept[item] >> lane & 1) {
            long long row = first + item * WARP;
            state_t place = to + __popc(kept[item] & ((1u << lane) - 1));
            kept_tails[place] = tails[row];
            kept_heads[place] = heads[row];
#if WEIGHTED
            kept_weights[place] = weights[row];
#endif
        }
        to += __popc(kept[item]);
    }
}
