// Factorization of ids within a narrow range, in ascending order of id.
//
// A bitmap marks the ids of the range that occur. The position of an id is the number of bits before its own: those of
// earlier words, stored beside each word, and the lower bits of its word.
//
// Mapping: one thread per id, in a grid-stride loop; `count_marks`: one block per tile of words, with decoupled
// look-back.
// Memory: `extremes` reads each id and weight once, `mark` each id; `encode` reads it once more and writes its
// position. The bits take 1/8 byte per id of the range, with their counts 1/4: they stay in the L2 cache where a table
// of positions would not.
// Wins: where the range is at most a small multiple of the number of ids.
//
//   id_t     int, unsigned int, long long or unsigned long long
//   index_t  int or long long
//   state_t  unsigned int where there are fewer than 2^30 ids, else unsigned long long

#include "block_scan.cuh"
#include "ids.cuh"
#include "look_back.cuh"
#include "marks.cuh"

#define WORDS 4

// found[0] is the greatest complement of an id, found[1] the greatest id, both in the order of `ordered`; found[2] and
// found[3] the same for the bits of weights, the complement only for weights above 0. The bits of floats of at least 0
// are ordered as the numbers; those of negative numbers and NaN are above those of infinity. `found` must be zeroed.
extern "C" __global__ void extremes(const __grid_constant__ Columns columns, const wide_t *weights, long long in_weights,
                                    wide_t *found) {
    __shared__ wide_t warps[4][WARP];
    id_t high = BIAS ? static_cast<id_t>(1ull << (8 * sizeof(id_t) - 1)) : 0, low = ~high;  // no id is below or above
    each_of(columns, [&](id_t id, int, long long) {
        low = min(low, id);
        high = max(high, id);
    });
    wide_t most[4] = {};
    if (low <= high) most[0] = ~ordered(low), most[1] = ordered(high);
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

// Sets the bit of each id in zeroed `bits`. Reading first saves most atomic operations, since most ids repeat; a stale
// read only sets a bit again.
extern "C" __global__ void mark(const __grid_constant__ Columns columns, wide_t low, unsigned int *bits) {
    each_of(columns, [=](id_t id, int, long long) {
        wide_t place = distance(id, low);
        unsigned int bit = 1u << (place % 32);
        if (!(bits[place / 32] & bit)) atomicOr(bits + place / 32, bit);
    });
}

// Writes for each word the number of marks before it, and the total. `ticket` and `states` must be zeroed.
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
        state_t earlier = warp_prefix(states, tile, all);
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

// Writes the positions of ids, and the ids by position. If `marks` is null, every id of the range occurs, and `words`
// is their number.
extern "C" __global__ void encode(const __grid_constant__ Columns columns, wide_t low, long long words,
                                  const Marks *__restrict__ marks, index_t *codes_a, index_t *codes_b,
                                  index_t *codes_c, id_t *ids) {
    index_t *codes[] = {codes_a, codes_b, codes_c};
    each_of(columns, [&](id_t id, int column, long long at) {
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
