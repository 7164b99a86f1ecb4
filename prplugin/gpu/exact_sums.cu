// Exact sums of weights by group, as integers, which do not depend on the order of additions.
//
// A weight is an integer multiple of `unit`, the last place of the least weight above 0. Where the greatest weight is
// not too large a multiple of the least, sums are below 2^127 or 2^95 units. They are rounded once, to float64.
//
// Mapping: `add_exactly`: one block per part and piece of a bin; see bins.cuh. A sum is a few 32-bit words in shared
// memory, with carries between them. The block adds it to two 64-bit words per group in global memory. `rounded`: one
// thread per group.
// Memory: each row and weight once, and once more from the L2 cache for each further part; at most two atomic additions
// in the L2 cache per group and piece, coalesced. The partition before reads rows twice and weights once, and writes
// both once.
// Wins: over a sort by group and sums of runs, by the further passes of the sort, since the order is irrelevant.
//
//   state_t  unsigned int or unsigned long long
//   WORDS  3 4
// WORDS is the number of words of a sum in shared memory.

#include "bins.cuh"

#define THREADS 1024
#define LOADS_IN_FLIGHT 8

typedef unsigned long long wide_t;

// Bit of the top word: the group has a row, even if its weight is 0.
#define PRESENT 0x80000000u

// Adds a weight of at least 0, given as bits, to the sum whose words are `step` apart. `unit` is the biased exponent of
// the last place, at least 1.
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

// `sums` must be zeroed: the low words of the n groups, then their high words.
extern "C" __global__ void __launch_bounds__(THREADS) add_exactly(
    long long m, const unsigned int *rows, const wide_t *weights, const state_t *starts, int shift, int parts, int width,
    int length, int unit, long long n, wide_t *sums) {
    extern __shared__ unsigned int words[];
    for (int word = threadIdx.x; word < WORDS * width; word += THREADS) words[word] = 0;
    Part part = part_of_block(m, starts, shift, parts, width, length);
    const unsigned int *mine = rows + part.begin;
    const wide_t *with = weights + part.begin;
    for (int first = threadIdx.x; first < part.rows; first += LOADS_IN_FLIGHT * THREADS) {
        unsigned int groups[LOADS_IN_FLIGHT];
        wide_t bits[LOADS_IN_FLIGHT];
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            int place = first + item * THREADS;
            groups[item] = place < part.rows ? mine[place] - part.low : ~0u;  // past the end: in no part
        }
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
            if (groups[item] < width) bits[item] = with[first + item * THREADS];
        }
#pragma unroll
        for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
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

// Writes the sums as float64, and `absent` for a group without rows; `unit` is the exponent of the last place.
extern "C" __global__ void rounded(long long n, const wide_t *sums, int unit, double absent, double *values) {
    long long group = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (group >= n) return;
    wide_t low = sums[group], high = sums[n + group];
    bool has_rows = low || high;
    high &= ~(static_cast<wide_t>(PRESENT) << 32);
    // The first 64 bits, with a sticky last bit for all that follow: sufficient for correct rounding.
    if (high) {
        int room = __clzll(high);
        wide_t rest = low << room;
        if (room) high = high << room | low >> (64 - room);
        low = high | (rest != 0);
        unit += 64 - room;
    }
    values[group] = has_rows ? ldexp(static_cast<double>(low), unit) : absent;
}
