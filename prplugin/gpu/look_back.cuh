// Prefix sums over the tiles of one launch, by decoupled look-back (Merrill and Garland 2016, "Single-pass parallel
// prefix scan with decoupled look-back").
//
// Each tile has one word per count: two flag bits, and a count. It is first the tile's own count, then the inclusive
// prefix sum. Flag and count are one word, so that no fence is needed. Tiles are numbered by a counter in the order in
// which blocks start, so that the tiles that a block waits for are running or done, however many blocks are resident.
//
//   state_t  unsigned int where all counts are below 2^30, else unsigned long long

#define FLAG_SHIFT (8 * sizeof(state_t) - 2)
#define COUNT_MASK (~(static_cast<state_t>(3) << FLAG_SHIFT))
#define INVALID 0
#define AGGREGATE 1
#define PREFIX 2

// Words that a thread loads at once.
#define WORDS_IN_FLIGHT 4

__device__ inline state_t flag_of(state_t word) { return word >> FLAG_SHIFT; }

__device__ inline void publish(state_t *word, state_t flag, state_t count) {
    *reinterpret_cast<volatile state_t *>(word) = flag << FLAG_SHIFT | count;
}

__device__ inline state_t load_state(const state_t *word) { return *reinterpret_cast<const volatile state_t *>(word); }

// Returns the count in all tiles before `tile` > 0, one count per thread; a tile's words are `stride` apart.
__device__ inline state_t prefix_before(const state_t *words, long long tile, int stride) {
    state_t sum = 0;
    for (long long last = tile - 1;;) {
        state_t seen[WORDS_IN_FLIGHT];
#pragma unroll
        for (int back = 0; back < WORDS_IN_FLIGHT; ++back) {
            seen[back] = load_state(words + max(last - back, 0LL) * stride);
        }
#pragma unroll
        for (int back = 0; back < WORDS_IN_FLIGHT; ++back) {
            if (flag_of(seen[back]) == INVALID) break;
            sum += seen[back] & COUNT_MASK;
            if (flag_of(seen[back]) == PREFIX) return sum;  // reached at the first tile at the latest
            --last;
        }
    }
}

// The same for one count per tile, by a whole warp, each lane of which reads one of the 32 preceding tiles; also
// publishes the tile's own count.
__device__ inline state_t warp_prefix(state_t *words, long long tile, state_t own) {
    int lane = threadIdx.x % 32;
    if (tile && lane == 0) publish(words + tile, AGGREGATE, own);
    state_t sum = 0;
    unsigned int complete = tile == 0;
    for (long long last = tile - 1; !complete; last -= 32) {
        state_t word = static_cast<state_t>(PREFIX) << FLAG_SHIFT;  // before the first tile: 0
        if (last - lane >= 0) {
            do word = load_state(words + last - lane);
            while (flag_of(word) == INVALID);
        }
        complete = __ballot_sync(0xffffffffu, flag_of(word) == PREFIX);
        int nearest = complete ? __ffs(complete) - 1 : 31;
        state_t count = lane <= nearest ? word & COUNT_MASK : 0;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) count += __shfl_xor_sync(0xffffffffu, count, distance);
        sum += count;
    }
    if (lane == 0) publish(words + tile, PREFIX, sum + own);
    return sum;
}
