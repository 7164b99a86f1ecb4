// Ids within a narrow range to positions in ascending order of id.
//
// A bit for each id of the range says whether it occurs. An id's position is the count of bits before its own: those of
// earlier words, kept beside each word, and those below it in its word.
//
// Mapping: a thread an id, in a loop that strides over the grid; `count_marks`: a block a tile of words, joined by
// look-back.
// Memory: `extremes` reads each id and weight once, `mark` each id; `encode` reads it once more and writes its position. The bits take an
// eighth of a byte an id of the range, and with their counts a quarter: they stay in the L2 where a position for each id
// of the range would not.
// Wins: where the range is not many times the count of ids.
//
//   id_t     int, unsigned int, long long or unsigned long long
//   index_t  int or long long
//   state_t  unsigned int where there are fewer than 2^30 ids, else unsigned long long

#include "block_scan.cuh"
#include "ids.cuh"
#include "look_back.cuh"
#include "marks.cuh"

#define WORDS 4

// The greatest complement and the greatest id, as `ordered` gives them; then the same of the bits of weights, the
// complement of those above 0 only. The bits of numbers of at least 0 are in the order of the numbers, and those of
// what is less or none come after that of infinity. All are 0 before.
extern "C" __global__ void extremes(const id_t *a, long long in_a, const id_t *b, long long in_b, const id_t *c,
                                    long long in_c, const wide_t *weights, long long in_weights, wide_t *found) {
    __shared__ wide_t warps[4][WARP];
    wide_t most[4] = {};
    each_of(a, in_a, b, in_b, c, in_c, [&](id_t id, int, long long) {
        most[0] = max(most[0], ~ordered(id));
        most[1] = max(most[1], ordered(id));
    });
    each(weights, in_weights, [&](wide_t bits, long long) {
        if (bits == 1ull << 63) bits = 0;  // -0
        if (bits) most[2] = max(most[2], ~bits);
        most[3] = max(most[3], bits);
    });
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int which = 0; which < 4; ++which) {
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            most[which] = max(most[which], __shfl_xor_sync(0xffffffffu, most[which], distance));
        }
        if (lane == 0) warps[which][threadIdx.x / WARP] = most[which];
    }
    __syncthreads();
    if (threadIdx.x < 4) {
        wide_t greatest = 0;
        for (int warp = 0; warp < blockDim.x / WARP; ++warp) greatest = max(greatest, warps[threadIdx.x][warp]);
        atomicMax(found + threadIdx.x, greatest);
    }
}

// Sets the bit of each id. `bits` are 0 before. An atomic operation costs more than a look, and most ids have been marked
// before. A look may miss what another block has just marked: then the bit is set again.
extern "C" __global__ void mark(const id_t *a, long long in_a, const id_t *b, long long in_b, const id_t *c,
                                long long in_c, wide_t low, unsigned int *bits) {
    each_of(a, in_a, b, in_b, c, in_c, [=](id_t id, int, long long) {
        wide_t place = distance(id, low);
        unsigned int bit = 1u << (place % 32);
        if (!(bits[place / 32] & bit)) atomicOr(bits + place / 32, bit);
    });
}

// Says for each word how many marks come before it, and how many there are in all. `ticket` and `states` are 0 before.
extern "C" __global__ void count_marks(long long words, const unsigned int *bits, Marks *marks, unsigned int *ticket,
                                       state_t *states, long long *total) {
    __shared__ unsigned int taken;
    __shared__ state_t before_tile;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
    __syncthreads();
    long long tile = taken, first = (tile * blockDim.x + threadIdx.x) * WORDS;
    unsigned int mine[WORDS], count = 0, all;
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
        mine[word] = first + word < words ? bits[first + word] : 0;
        count += __popc(mine[word]);
    }
    unsigned int before = block_scan(count, &all);
    if (threadIdx.x < WARP) {
        state_t earlier = tile_begin(states, tile, all);
        if (threadIdx.x == 0) {
            before_tile = earlier;
            if (tile == gridDim.x - 1) *total = earlier + all;
        }
    }
    __syncthreads();
    before += before_tile;
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
        if (first + word < words) marks[first + word] = {before, mine[word]};
        before += __popc(mine[word]);
    }
}

// Positions of ids, and the ids by position. `marks` may be null: then each id of the range occurs, and `words` is their
// count.
extern "C" __global__ void encode(const id_t *a, long long in_a, const id_t *b, long long in_b, const id_t *c,
                                  long long in_c, wide_t low, long long words, const Marks *__restrict__ marks,
                                  index_t *codes_a, index_t *codes_b, index_t *codes_c, id_t *ids) {
    index_t *codes[] = {codes_a, codes_b, codes_c};
    each_of(a, in_a, b, in_b, c, in_c, [&](id_t id, int column, long long at) {
        wide_t place = distance(id, low);
        codes[column][at] = static_cast<index_t>(marks ? marks[place / 32].rank(place) : place);
    });
    for (long long word = this_thread(); word < words; word += all_threads()) {
        if (!marks) {
            ids[word] = static_cast<id_t>(low + word);
            continue;
        }
        unsigned int next = marks[word].before;
        for (unsigned int bits = marks[word].bits; bits; bits &= bits - 1) {
            ids[next++] = static_cast<id_t>(low + 32 * word + __ffs(bits) - 1);
        }
    }
}
