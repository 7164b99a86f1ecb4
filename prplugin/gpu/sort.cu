// A stable radix sort of keys, with values and weights, from the least significant digit: one kernel counts the digits
// of all passes, and one kernel per pass moves each item once (Adinets and Merrill 2022, "Onesweep: a faster least
// significant digit radix sort for GPUs").
//
// The new place of an item is the number of lesser digits in all items, plus the number of its digit in earlier tiles,
// plus its rank among those of its digit in its own tile. `digit_counts` computes the first, look-back over tiles the
// second, counting in shared memory the third.
//
// Columns of ids are read as 32-bit distances from the least id: `low` is subtracted from the first of `step` 32-bit
// words. Other columns have `low` 0 and `step` 1.
//
// Mapping: one block per tile of THREADS * ITEMS neighbouring items; thread d < 256 does the look-back for digit d.
// Items are sorted in shared memory first, so that those of a digit are written contiguously.
// Memory: keys once for the counts; in each pass keys, values and weights read once and written once, and about 4 state
// words per digit and tile.
// Wins: always, beyond what one block sorts at once (`one_block.cu`): only used bits cost passes, and a pass moves each
// item once.
//   key_t    unsigned int or unsigned long long
//   value_t  int or long long: any four or eight bytes
//   PAYLOADS  1 0 2
//   THREADS  256
//   ITEMS  16
// PAYLOADS: 0 only keys, 1 with values, 2 with values and weights.

#include "each.cuh"
#include "last_block.cuh"
#include "look_back.cuh"
#include "tile.cuh"

constexpr int MOST_PASSES = sizeof(key_t);
constexpr int WIDEST = PAYLOADS == 2 || sizeof(key_t) == 8 || (PAYLOADS && sizeof(value_t) == 8) ? 8 : 4;

// Columns of items, and what is read of them. If `values` is null, the values are the numbers of the items.
struct Items {
    key_t *keys;
    value_t *values;
    double *weights;
    int step;  // of the keys
    unsigned int low;
    int value_step;
    unsigned int value_low;
};

// The passes over the bits of keys.
struct Digits {
    int skipped, bits, passes;
};

// Passes split the used bits above the lowest `skipped` as evenly as possible, at most 8 bits each.
__device__ inline Digit digit_of(int skipped, int bits, int passes, int pass) {
    int taken = bits - skipped, begin = taken * pass / passes, end = taken * (pass + 1) / passes;
    return {skipped + begin, (1u << (end - begin)) - 1};
}

// Writes for each pass where each digit begins among all items. Clears the states of the first pass. `starts` and `done`
// must be zeroed.
extern "C" __global__ void digit_counts(
    long long count, const __grid_constant__ Digits given, const key_t *keys, int step, unsigned int low,
    state_t *starts, unsigned int *done, long long words, state_t *states) {
    int skipped = given.skipped, bits = given.bits, passes = given.passes;
    __shared__ unsigned int counts[MOST_PASSES][BINS];
    for (long long word = this_thread(); word < words; word += all_threads()) states[word] = 0;
    for (int pass = 0; pass < passes; ++pass) {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) counts[pass][bin] = 0;
    }
    __syncthreads();
    Digit digits[MOST_PASSES];
#pragma unroll
    for (int pass = 0; pass < MOST_PASSES; ++pass) digits[pass] = digit_of(skipped, bits, passes, pass);
    auto count_it = [&](key_t key, long long) {
        key -= low;
#pragma unroll
        for (int pass = 0; pass < MOST_PASSES; ++pass) {
            if (pass < passes) atomicAdd(&counts[pass][digits[pass].of(key)], 1u);
        }
    };
    if (step == 1) each(keys, count, count_it);
    else each(reinterpret_cast<const unsigned long long *>(keys), count, count_it);
    __syncthreads();
    for (int pass = 0; pass < passes; ++pass) {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
            if (counts[pass][bin]) atomicAdd(&starts[pass * BINS + bin], static_cast<state_t>(counts[pass][bin]));
        }
    }
    if (!is_last_block(done)) return;
    for (int pass = 0; pass < passes; ++pass) {
        state_t mine = 0, total;
        if (threadIdx.x < BINS) mine = load_state(&starts[pass * BINS + threadIdx.x]);
        mine = block_scan(mine, &total);
        if (threadIdx.x < BINS) starts[pass * BINS + threadIdx.x] = mine;
    }
}

// Reads COUNT of the thread's items of the tile, from the FIRST on; neighbouring items are `step` apart.
template <int FIRST, int COUNT, typename T>
__device__ void read(T (&mine)[COUNT], const T *from, int step, unsigned int held) {
#pragma unroll
    for (int item = 0; item < COUNT; ++item) {
        int place = place_in_tile(FIRST + item);
        if (place < held) mine[item] = from[place * step];
    }
}

// Writes them to shared memory in sorted order.
template <int FIRST, int COUNT, typename T>
__device__ void stage(const T (&mine)[COUNT], T *staged, const unsigned int (&ranks)[ITEMS], unsigned int held) {
#pragma unroll
    for (int item = 0; item < COUNT; ++item) {
        if (place_in_tile(FIRST + item) < held) staged[ranks[FIRST + item]] = mine[item];
    }
}

// Writes the tile's items to the places of their keys.
template <typename T>
__device__ void write(const T *staged, const state_t (&places)[ITEMS], T *to, unsigned int held) {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        unsigned int rank = item * THREADS + threadIdx.x;
        if (rank < held) to[places[item]] = staged[rank];
    }
}

// Moves all items by one digit. Clears the states of the next pass.
extern "C" __global__ void __launch_bounds__(THREADS, (WIDEST == 4 ? 1024 : 768) / THREADS) sort_pass(
    long long count, const __grid_constant__ Digits digits, int pass, const __grid_constant__ Items given,
    const __grid_constant__ Items sorted, const state_t *starts, unsigned int *tickets, state_t *states,
    state_t *next_states) {
    __shared__ counts_t counts;
    __shared__ state_t moves[BINS];  // from places in the tile to places among all items
    __shared__ unsigned int ticket;
    __shared__ __align__(8) unsigned char staging[TILE * WIDEST];
    Digit digit = digit_of(digits.skipped, digits.bits, digits.passes, pass);

    if (threadIdx.x == 0) ticket = atomicAdd(tickets + pass, 1u);
    __syncthreads();
    long long tile = ticket, base = tile * TILE;
    unsigned int held = min(count - base, static_cast<long long>(TILE));

    // Items past the end have the last digit and come last: they move no others, and are not written.
    key_t mine[ITEMS];
    const key_t *from = given.keys + base * given.step;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        int place = place_in_tile(item);
        mine[item] = place < held ? from[place * given.step] - given.low : ~static_cast<key_t>(0);
    }
    count_digits(counts, mine, digit);
    __syncthreads();
    unsigned int own = counted(counts), total;
    state_t *word = states + tile * BINS + threadIdx.x;
    if (threadIdx.x < BINS) {
        if (tile == 0) publish(word, PREFIX, starts[threadIdx.x] + own);
        else publish(word, AGGREGATE, own);
        next_states[tile * BINS + threadIdx.x] = 0;
    }
    unsigned int first = block_scan(own, &total);
    counts_to_offsets(counts, first);
    __syncthreads();
    unsigned int ranks[ITEMS];
    place_items(counts, mine, digit, ranks);
    key_t *staged = reinterpret_cast<key_t *>(staging);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) staged[ranks[item]] = mine[item];

#if PAYLOADS
    value_t with[ITEMS];
    if (given.values) {
        read<0>(with, given.values + base * given.value_step, given.value_step, held);
    } else {
#pragma unroll
        for (int item = 0; item < ITEMS; ++item) with[item] = static_cast<value_t>(base + place_in_tile(item));
    }
#endif
    if (threadIdx.x < BINS) {
        state_t before = starts[threadIdx.x];
        if (tile) {
            before = prefix_before(states + threadIdx.x, tile, BINS);
            publish(word, PREFIX, before + own);
        }
        moves[threadIdx.x] = before - first;
    }
    __syncthreads();
    state_t places[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        unsigned int rank = item * THREADS + threadIdx.x;
        key_t key = staged[rank];
        places[item] = moves[digit.of(key)] + rank;
        if (rank < held) sorted.keys[places[item]] = key;
    }
#if PAYLOADS
    value_t *staged_values = reinterpret_cast<value_t *>(staging);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) with[item] = static_cast<unsigned long long>(with[item]) - given.value_low;
    __syncthreads();
    stage<0>(with, staged_values, ranks, held);
    __syncthreads();
    write(staged_values, places, sorted.values, held);
#endif
#if PAYLOADS == 2
    // In two halves, to save registers.
    double *staged_weights = reinterpret_cast<double *>(staging), some[ITEMS / 2];
    read<0>(some, given.weights + base, 1, held);
    __syncthreads();
    stage<0>(some, staged_weights, ranks, held);
    read<ITEMS / 2>(some, given.weights + base, 1, held);
    stage<ITEMS / 2>(some, staged_weights, ranks, held);
    __syncthreads();
    write(staged_weights, places, sorted.weights, held);
#endif
}
