// Exact sums of weights by group: as integers, which come out the same in whatever order they are added.
//
// A weight is a whole multiple of the last place of the least one that is above 0, `unit`. Where the greatest is not too
// many times the least, sums are below 2^127 or even 2^95 units, and are rounded but once, to the float64 they end as.
//
// Mapping: `add_exactly` has a block a part and a piece of a bin; see bins.cuh. A sum is a few words of 32 bits in shared
// memory, and a carry goes on to the next word. What a block has it adds to two words of 64 bits a group in memory.
// `rounded` has a thread a group.
// Memory: each row and weight once, and once more from the L2 for each further part; at most two additions in the L2 a
// group and piece, neighbouring groups together. The bins cost each row and weight once in and once out before, and each
// row once more in.
// Wins: over a sort by group and sums of runs, by the further passes of the sort; a sum needs no order.
//
//   state_t  unsigned int or unsigned long long
//   WORDS  3 4
// WORDS: of a sum in shared memory.

#include "bins.cuh"

#define THREADS 1024
#define AT_A_TIME 8

typedef unsigned long long wide_t;

// Of the top word: the group has a row, though it may weigh nothing.
#define PRESENT 0x80000000u

// Adds a weight of at least 0, as its bits, to the sum whose words are `step` apart. `unit` is the exponent of the last
// place as those bits hold it: at least 1.
__device__ inline void add_weight(wide_t bits, int unit, unsigned int *sum, int step) {
    bits &= ~(1ull << 63);  // -0
    int exponent = static_cast<int>(bits >> 52);
    wide_t digits = bits & ((1ull << 52) - 1);
    if (exponent) digits |= 1ull << 52;
    if (!digits) {
        atomicOr(sum + (WORDS - 1) * step, PRESENT);
        return;
    }
    int shift = max(exponent, 1) - unit, within = shift % 32;
    unsigned int *word = sum + shift / 32 * step;
    wide_t low = digits << within;
    unsigned int top = within ? static_cast<unsigned int>(digits >> (64 - within)) : 0;
    wide_t parts[] = {low & 0xffffffffu, low >> 32, top};
    unsigned int carry = 0;
#pragma unroll
    for (int part = 0; part < 3; ++part, word += step) {
        wide_t term = parts[part] + carry;
        unsigned int added = static_cast<unsigned int>(term);
        carry = static_cast<unsigned int>(term >> 32);
        if (added) carry += atomicAdd(word, added) + added < added;
    }
    for (; carry; word += step) carry = atomicAdd(word, 1u) == ~0u;
}

// `sums` are 0 before: of each of the n groups the low word, then of each the high one.
extern "C" __global__ void __launch_bounds__(THREADS) add_exactly(
    long long m, const unsigned int *rows, const wide_t *weights, const state_t *starts, int shift, int parts, int width,
    int length, int unit, long long n, wide_t *sums) {
    extern __shared__ unsigned int words[];
    for (int word = threadIdx.x; word < WORDS * width; word += THREADS) words[word] = 0;
    Part part = part_of_block(m, starts, shift, parts, width, length);
    const unsigned int *mine = rows + part.begin;
    const wide_t *with = weights + part.begin;
    for (int first = threadIdx.x; first < part.rows; first += AT_A_TIME * THREADS) {
        unsigned int groups[AT_A_TIME];
        wide_t bits[AT_A_TIME];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            int place = first + item * THREADS;
            groups[item] = place < part.rows ? mine[place] - part.low : ~0u;  // past the end: in no part
        }
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            if (groups[item] < width) bits[item] = with[first + item * THREADS];
        }
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            if (groups[item] < width) add_weight(bits[item], unit, words + groups[item], width);
        }
    }
    __syncthreads();
    for (int group = threadIdx.x; group < width; group += THREADS) {
        unsigned int top = words[(WORDS - 1) * width + group];
        wide_t low = words[group] | static_cast<wide_t>(words[width + group]) << 32, high = top & ~PRESENT;
        if (WORDS == 4) high = high << 32 | words[2 * width + group];
        wide_t *sum = sums + part.low + group;
        if (low) high += atomicAdd(sum, low) + low < low;
        if (high) atomicAdd(sum + n, high);
        if (top & PRESENT) atomicOr(sum + n, static_cast<wide_t>(PRESENT) << 32);
    }
}

// The sums as float64, and `absent` for a group that has no row; `unit` is the exponent of the last place.
extern "C" __global__ void rounded(long long n, const wide_t *sums, int unit, double absent, double *values) {
    long long group = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (group >= n) return;
    wide_t low = sums[group], high = sums[n + group];
    bool has_rows = low || high;
    high &= ~(static_cast<wide_t>(PRESENT) << 32);
    // The first 64 bits, the last of which also stands for all that follow: rounding looks no further.
    if (high) {
        int room = __clzll(high);
        wide_t rest = low << room;
        if (room) high = high << room | low >> (64 - room);
        low = high | (rest != 0);
        unit += 64 - room;
    }
    values[group] = has_rows ? ldexp(static_cast<double>(low), unit) : absent;
}
