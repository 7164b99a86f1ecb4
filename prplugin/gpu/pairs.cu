// Deduplication of edges by pair of vertices: rows are sorted by 32 bits of a hash of their pair, all but one row of
// each pair are marked, and the others are copied in their original order.
//
// Rows of one pair have equal keys, and stay in the order of the frame. With many pairs, a run of equal keys
// occasionally has rows of two pairs, so `mark_repeated` compares the preceding rows of the run (the following ones, to
// keep the last) until one has the same pair.
//
// Mapping: `pair_keys` and `mark_repeated`: one thread per row; `keep_rows`: one block per tile of neighbouring rows,
// with decoupled look-back.
// Memory: `pair_keys` reads both endpoints and writes 4 bytes per row. `mark_repeated` reads those and the rows'
// numbers, gathers the endpoints of rows with equal keys, and scatters one byte per repeated row. `keep_rows` reads one
// byte per row, and reads and writes the rows to keep.
// Wins: always; it is the only kernel for it. Sorting by all bits of both endpoints takes two more passes of wider
// keys.
//
//   index_t  int or long long
//   order_t  int or long long: the number of a row
//   state_t  unsigned int where there are fewer than 2^30 rows, else unsigned long long
//   WEIGHTED  0 1

#include "block_scan.cuh"
#include "each.cuh"
#include "look_back.cuh"

typedef unsigned long long pair_t;

// A pair as one number; the endpoints are ordered first if `directed` is 0. An endpoint has at most 32 bits.
__device__ inline pair_t pair_of(pair_t one, pair_t other, int directed, int bits) {
    return !directed && one > other ? other << bits | one : one << bits | other;
}

// The pair itself if it has at most 32 bits; else the upper 32 bits of its hash.
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

// Marks all rows of each pair but the first, or the last, given sorted keys and the rows' numbers, and counts them.
// `marks` and `count` must be zeroed.
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

// Copies the rows that are not marked. `ticket` and `states` must be zeroed.
extern "C" __global__ void keep_rows(long long m, const unsigned char *marks, unsigned int *ticket, state_t *states,
                                     const index_t *tails, const index_t *heads, const double *weights,
                                     index_t *kept_tails, index_t *kept_heads, double *kept_weights) {
    __shared__ unsigned int taken;
    __shared__ state_t before_tile;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
    __syncthreads();
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    long long tile = taken, first = (tile * blockDim.x + warp * WARP) * LOADS_IN_FLIGHT + lane;
    unsigned int kept[LOADS_IN_FLIGHT], in_warp = 0, all;  // of each 32 neighbouring rows, those that are not marked
#pragma unroll
    for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
        long long row = first + item * WARP;
        kept[item] = __ballot_sync(0xffffffffu, row < m && !marks[row]);
        in_warp += __popc(kept[item]);
    }
    state_t to = __shfl_sync(0xffffffffu, block_scan(lane == 0 ? in_warp : 0, &all), 0);
    if (warp == 0) {
        state_t earlier = warp_prefix(states, tile, all);
        if (lane == 0) before_tile = earlier;
    }
    __syncthreads();
    to += before_tile;
#pragma unroll
    for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
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
