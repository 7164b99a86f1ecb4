// A stable radix sort of keys, and of values and weights that go with them, from the least digit to the greatest: one
// kernel counts the digits of all passes, and one kernel a pass moves each item once (Adinets and Merrill 2022,
// "Onesweep: a faster least significant digit radix sort for GPUs").
//
// With a digit's bits, an item goes to: the count of lesser digits in all items, plus the count of its digit in earlier
// tiles, plus its place among those of its digit in its own tile. The first is known from `digit_counts`, the second
// comes by look-back over tiles, the third by counting in shared memory.
//
// Columns of ids are read as their distances from the least id, of 32 bits: `low` is taken off what `step` 32-bit words
// hold, of which the first is enough. Of other columns `low` is 0 and `step` 1.
//
// Mapping: a block a tile of THREADS * ITEMS neighbouring items; thread d < 256 looks back for digit d. Items are put in
// order within shared memory first, so that those of a digit leave as one run.
// Memory: in all, keys once for the counts; in each pass, keys, values and weights once in and once out, and about 4
// state words a digit and tile.
// Wins: always, past what one block sorts at once (`few.cu`): only bits in use cost passes, and a pass moves the least
// it can.
//
//   key_t    unsigned int or unsigned long long
//   value_t  int or long long: any four or eight bytes
//   PAYLOADS  1 0 2
//   THREADS  256
//   ITEMS  16
// PAYLOADS: 0 keys alone, 1 with a value each, 2 with a value and a weight each.

#include "each.cuh"
#include "look_back.cuh"
#include "tile.cuh"

constexpr int MOST_PASSES = sizeof(key_t);
constexpr int WIDEST = PAYLOADS == 2 || sizeof(key_t) == 8 || (PAYLOADS && sizeof(value_t) == 8) ? 8 : 4;

// Passes take the bits in use, but for those `skipped`, in parts as even as they come, at most 8 each.
__device__ inline Digit digit_of(int skipped, int bits, int passes, int pass) {
    int taken = bits - skipped, begin = taken * pass / passes, end = taken * (pass + 1) / passes;
    return {skipped + begin, (1u << (end - begin)) - 1};
}

// For each pass, where each digit begins among all items: `every` calls what it is given with each key. Clears the states
// of the first pass. `starts` and `done` are 0 before.
template <typename Every>
__device__ void find_starts(int skipped, int bits, int passes, state_t *starts, unsigned int *done, long long words,
                            state_t *states, Every every) {
    __shared__ unsigned int counts[MOST_PASSES][BINS];
    __shared__ bool last;
    for (long long word = this_thread(); word < words; word += all_threads()) states[word] = 0;
    for (int pass = 0; pass < passes; ++pass) {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) counts[pass][bin] = 0;
    }
    __syncthreads();
    Digit digits[MOST_PASSES];
#pragma unroll
    for (int pass = 0; pass < MOST_PASSES; ++pass) digits[pass] = digit_of(skipped, bits, passes, pass);
    every([&](key_t key) {
#pragma unroll
        for (int pass = 0; pass < MOST_PASSES; ++pass) {
            if (pass < passes) atomicAdd(&counts[pass][digits[pass].of(key)], 1u);
        }
    });
    __syncthreads();
    for (int pass = 0; pass < passes; ++pass) {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
            if (counts[pass][bin]) atomicAdd(&starts[pass * BINS + bin], static_cast<state_t>(counts[pass][bin]));
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int pass = 0; pass < passes; ++pass) {
        state_t mine = 0, total;
        if (threadIdx.x < BINS) mine = look_at(&starts[pass * BINS + threadIdx.x]);
        mine = block_scan(mine, &total);
        if (threadIdx.x < BINS) starts[pass * BINS + threadIdx.x] = mine;
    }
}

extern "C" __global__ void digit_counts(
    long long count, int skipped, int bits, int passes, const key_t *keys, int step, unsigned int low, state_t *starts,
    unsigned int *done, long long words, state_t *states) {
    find_starts(skipped, bits, passes, starts, done, words, states, [&](auto add) {
        auto count_it = [&](auto key, long long) { add(static_cast<key_t>(key) - low); };
        if (step == 1) each(keys, count, count_it);
        else each(reinterpret_cast<const unsigned long long *>(keys), count, count_it);
    });
}

// Reads some of the thread's items of the tile that go with the keys, from the FIRST on; they lie `step` apart.
template <int FIRST, int COUNT, typename T>
__device__ void read(T (&mine)[COUNT], const T *from, int step, unsigned int held) {
#pragma unroll
    for (int item = 0; item < COUNT; ++item) {
        int place = place_in_tile(FIRST + item);
        if (place < held) mine[item] = from[place * step];
    }
}

// Brings them to the order in which the tile's items leave.
template <int FIRST, int COUNT, typename T>
__device__ void stage(const T (&mine)[COUNT], T *staged, const unsigned int (&ranks)[ITEMS], unsigned int held) {
#pragma unroll
    for (int item = 0; item < COUNT; ++item) {
        if (place_in_tile(FIRST + item) < held) staged[ranks[FIRST + item]] = mine[item];
    }
}

// Writes the tile's items where the keys went.
template <typename T>
__device__ void write(const T *staged, const state_t (&places)[ITEMS], T *to, unsigned int held) {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        unsigned int rank = item * THREADS + threadIdx.x;
        if (rank < held) to[places[item]] = staged[rank];
    }
}

// Moves all items by one digit. `values` may be null: then they are the numbers of the items. Clears the states of the
// next pass.
extern "C" __global__ void __launch_bounds__(THREADS, (WIDEST == 4 ? 1024 : 768) / THREADS) sort_pass(
    long long count, int skipped, int bits, int passes, int pass, const key_t *keys, const value_t *values,
    const double *weights, key_t *keys_out, value_t *values_out, double *weights_out, int step, unsigned int low,
    int value_step, unsigned int value_low, const state_t *starts, unsigned int *tickets, state_t *states,
    state_t *next_states) {
    __shared__ counts_t counts;
    __shared__ state_t moves[BINS];  // from places in the tile to those among all items
    __shared__ unsigned int ticket;
    __shared__ __align__(8) unsigned char staging[TILE * WIDEST];
    Digit digit = digit_of(skipped, bits, passes, pass);

    if (threadIdx.x == 0) ticket = atomicAdd(tickets + pass, 1u);
    __syncthreads();
    long long tile = ticket, base = tile * TILE;
    unsigned int held = min(count - base, static_cast<long long>(TILE));

    // What is past the end is of the last digit and comes last: it moves nothing else, and is not written.
    key_t mine[ITEMS];
    const key_t *from = keys + base * step;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        int place = place_in_tile(item);
        mine[item] = place < held ? from[place * step] - low : ~static_cast<key_t>(0);
    }
    count_digits(counts, mine, digit);
    __syncthreads();
    unsigned int own = counted(counts), total;
    state_t *word = states + tile * BINS + threadIdx.x;
    if (threadIdx.x < BINS) {
        if (tile == 0) publish(word, UP_TO_HERE, starts[threadIdx.x] + own);
        else publish(word, OWN, own);
        next_states[tile * BINS + threadIdx.x] = 0;
    }
    unsigned int first = block_scan(own, &total);
    turn_into_places(counts, first);
    __syncthreads();
    unsigned int ranks[ITEMS];
    take_places(counts, mine, digit, ranks);
    key_t *staged = reinterpret_cast<key_t *>(staging);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) staged[ranks[item]] = mine[item];

#if PAYLOADS
    value_t with[ITEMS];
    if (values) {
        read<0>(with, values + base * value_step, value_step, held);
    } else {
#pragma unroll
        for (int item = 0; item < ITEMS; ++item) with[item] = static_cast<value_t>(base + place_in_tile(item));
    }
#endif
    if (threadIdx.x < BINS) {
        state_t before = starts[threadIdx.x];
        if (tile) {
            before = counted_before(states + threadIdx.x, tile, BINS);
            publish(word, UP_TO_HERE, before + own);
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
        if (rank < held) keys_out[places[item]] = key;
    }
#if PAYLOADS
    value_t *staged_values = reinterpret_cast<value_t *>(staging);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) with[item] = static_cast<unsigned long long>(with[item]) - value_low;
    __syncthreads();
    stage<0>(with, staged_values, ranks, held);
    __syncthreads();
    write(staged_values, places, values_out, held);
#endif
#if PAYLOADS == 2
    // In two halves: there are no registers for all at once.
    double *staged_weights = reinterpret_cast<double *>(staging), some[ITEMS / 2];
    read<0>(some, weights + base, 1, held);
    __syncthreads();
    stage<0>(some, staged_weights, ranks, held);
    read<ITEMS / 2>(some, weights + base, 1, held);
    stage<ITEMS / 2>(some, staged_weights, ranks, held);
    __syncthreads();
    write(staged_weights, places, weights_out, held);
#endif
}
