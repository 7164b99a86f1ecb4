// Strings to positions in the order of first appearance.
//
// Each string is replaced by 64 bits of a hash, and these by their slots in a hash table, which keeps beside each hash
// the first place that has it. The filled slots are sorted by that place, which gives each its position; then slots are
// replaced by positions, and each string is compared, byte by byte, with the one at the first place of its slot: where
// two strings have one hash, that is found out. The places of m edges are 2 * row for a source, 2 * row + 1 for a
// destination, and 2 * m + row for one of more vertices.
//
// Mapping: `hash_strings` and `recode`, a thread a string, by words of eight bytes; a string past 256 bytes is gone
// through by the 32 lanes of its warp together, so that a long one holds up no thread. `insert` and `collect`, a thread
// a hash or some slots. `place`, a block a tile of neighbouring positions, joined by look-back. `copy_strings`, a warp a
// string.
// Memory: `hash_strings` reads each string, and writes eight bytes for it. `insert` reads those, writes a slot's number,
// and looks at about 1.5 slots of 16 bytes at random. `recode` reads each string again and the one it is compared with,
// at random, looks at one slot at random, and reads and writes its number. The rest is in the distinct strings alone.
// Wins: it is the only one; a join of the strings with the distinct ones hashes both, and compares as much.
//
//   offset_t  int or long long: where a string begins
//   index_t   int or long long: a slot or a position
//   state_t   unsigned int where there are fewer than 2^30 bytes, else unsigned long long

#include "hash_table.cuh"
#include "look_back.cuh"

// So many words of a string are left to one thread.
#define FEW_WORDS 32

#define GOLDEN 0x9e3779b97f4a7c15ull

// A string, and the bytes about it that may be read with it.
struct String {
    const unsigned char *begin;
    long long bytes;
    const unsigned char *first, *past;

    __device__ long long words() const { return (bytes + 7) / 8; }

    // Eight bytes from an address that is a multiple of eight; 0 for those that may not be read.
    __device__ wide_t aligned(const unsigned char *from) const {
        if (from >= first && from + 8 <= past) return *reinterpret_cast<const wide_t *>(from);
        wide_t word = 0;
        for (int byte = 0; byte < 8; ++byte) {
            if (from + byte >= first && from + byte < past) word |= static_cast<wide_t>(from[byte]) << 8 * byte;
        }
        return word;
    }

    // Its bytes from 8 * `at` on, of which there is at least one, as a number; 0 for those past its end.
    __device__ wide_t word(long long at) const {
        const unsigned char *from = begin + 8 * at;
        long long left = bytes - 8 * at;
        int before = static_cast<int>(reinterpret_cast<wide_t>(from) % 8);
        wide_t word = aligned(from - before) >> 8 * before;
        if (before && left > 8 - before) word |= aligned(from - before + 8) << 8 * (8 - before);
        return left < 8 ? word & ((1ull << 8 * left) - 1) : word;
    }
};

// A column of strings.
struct Strings {
    const unsigned char *chars;
    const offset_t *offsets;
    long long rows;

    __device__ long long bytes(long long row) const { return offsets[row + 1] - offsets[row]; }

    __device__ String operator[](long long row) const {
        return {chars + offsets[row], bytes(row), chars + offsets[0], chars + offsets[rows]};
    }
};

// Sources, destinations and more vertices; the latter may be absent.
struct Ends {
    Strings a, b, c;

    // Calls `work(column, row)` for what is at a place.
    template <typename Work>
    __device__ auto at(wide_t place, Work work) const {
        wide_t edges = 2 * a.rows;
        if (place >= edges) return work(c, place - edges);
        return place % 2 ? work(b, place / 2) : work(a, place / 2);
    }

    __device__ wide_t place_of(int end, long long row) const { return end == 2 ? 2 * a.rows + row : 2 * row + end; }

    __device__ long long bytes(wide_t place) const {
        return at(place, [](const Strings &column, long long row) { return column.bytes(row); });
    }

    __device__ String operator[](wide_t place) const {
        return at(place, [](const Strings &column, long long row) { return column[row]; });
    }
};

// What another lane has.
template <typename T>
__device__ T of_lane(const T &mine, int lane) {
    T other;
#pragma unroll
    for (int word = 0; word < sizeof(T) / sizeof(wide_t); ++word) {
        wide_t held = reinterpret_cast<const wide_t *>(&mine)[word];
        reinterpret_cast<wide_t *>(&other)[word] = __shfl_sync(0xffffffffu, held, lane);
    }
    return other;
}

// The sum of `of(item, word)` over the words of each lane's item: for items of few words by the lane itself, for others
// by the whole warp, one item after another. All lanes must call it.
template <typename Item, typename Of>
__device__ wide_t over_words(const Item &mine, Of of) {
    int lane = threadIdx.x % WARP;
    bool alone = mine.words() <= FEW_WORDS;
    wide_t sum = 0;
    if (alone) {
        for (long long word = 0; word < mine.words(); ++word) sum += of(mine, word);
    }
    for (unsigned int rest = __ballot_sync(0xffffffffu, !alone); rest; rest &= rest - 1) {
        int owner = __ffs(rest) - 1;
        Item item = of_lane(mine, owner);
        wide_t part = 0;
#pragma unroll 4
        for (long long word = lane; word < item.words(); word += WARP) part += of(item, word);
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2) part += __shfl_xor_sync(0xffffffffu, part, distance);
        if (lane == owner) sum = part;
    }
    return sum;
}

// Calls `work(row)` for all rows, by whole warps: past the last with -1.
template <typename Work>
__device__ void each_row(long long rows, Work work) {
    for (long long row = this_thread(); row - threadIdx.x % WARP < rows; row += all_threads()) {
        work(row < rows ? row : -1);
    }
}

// A hash of each string: its words are mixed with their number, and these added up.
extern "C" __global__ void hash_strings(const unsigned char *chars, const offset_t *offsets, long long rows,
                                        wide_t *hashes) {
    Strings column = {chars, offsets, rows};
    each_row(rows, [=](long long row) {
        String string = row < 0 ? String() : column[row];
        wide_t sum = over_words(string, [](const String &of, long long at) {
            return mixed(of.word(at) + (at + 1) * GOLDEN);
        });
        if (row >= 0) hashes[row] = mixed(sum ^ string.bytes);
    });
}

// Puts the hashes of one end into the table, and says which slot each is in. A slot has a hash and the first place of
// it; `table`, of `capacity` + 1 slots, is EMPTY before, and `found` is 0.
extern "C" __global__ void insert(long long edges, int end, const wide_t *hashes, long long rows, long long capacity,
                                  wide_t *table, index_t *slots, Found *found) {
    Ends ends = {{0, 0, edges}};
    unsigned int added = 0;
    each(hashes, rows, [&](wide_t hash, long long row) {
        long long slot = slot_of<2>(hash, capacity, table, found, &added);
        slots[row] = static_cast<index_t>(slot);
        if (slot < 0) return;
        wide_t place = ends.place_of(end, row), *first = table + 2 * slot + 1;
        // Places only fall: what is no less than one seen before is no less than the first.
        if (place < *reinterpret_cast<volatile wide_t *>(first)) atomicMin(first, place);
    });
    count_keys(added, found);
}

// Lists first places and their slots, in no order. `listed` is 0 before.
extern "C" __global__ void collect(long long capacity, const wide_t *table, wide_t *listed, wide_t *places,
                                   index_t *slots) {
    each_filled<2>(capacity, table, listed, [=](long long slot, wide_t to) {
        places[to] = table[2 * slot + 1];
        slots[to] = static_cast<index_t>(slot);
    });
}

// What is found out after the distinct strings are known.
struct Outcome {
    wide_t bytes;  // of all distinct strings
    wide_t collisions;  // not 0 if two strings have one hash
};

// Tells each slot its position in the place of its hash, given first places in order with their slots; and lists where
// the string of each position begins if they are put one after another. `ticket` and `states` are 0 before.
extern "C" __global__ void place(long long n, const wide_t *places, const index_t *slots, const offset_t *a,
                                 long long in_a, const offset_t *b, long long in_b, const offset_t *c, long long in_c,
                                 unsigned int *ticket, state_t *states, wide_t *table, offset_t *begins,
                                 Outcome *outcome) {
    __shared__ unsigned int taken;
    __shared__ state_t before_tile;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
    __syncthreads();
    Ends ends = {{0, a, in_a}, {0, b, in_b}, {0, c, in_c}};
    long long tile = taken, base = (tile * blockDim.x + threadIdx.x) * AT_A_TIME;
    state_t bytes[AT_A_TIME], own = 0, all;
#pragma unroll
    for (int item = 0; item < AT_A_TIME; ++item) {
        long long at = base + item;
        bytes[item] = at < n ? static_cast<state_t>(ends.bytes(places[at])) : 0;
        own += bytes[item];
    }
    state_t begin = block_scan(own, &all);
    if (threadIdx.x / WARP == 0) {
        state_t earlier = tile_begin(states, tile, all);
        if (threadIdx.x == 0) before_tile = earlier;
    }
    __syncthreads();
    begin += before_tile;
#pragma unroll
    for (int item = 0; item < AT_A_TIME; ++item) {
        long long at = base + item;
        if (at >= n) break;
        table[2 * static_cast<long long>(slots[at])] = at;
        begins[at] = static_cast<offset_t>(begin);
        begin += bytes[item];
        if (at == n - 1) {
            begins[n] = static_cast<offset_t>(begin);
            outcome->bytes = begin;
        }
    }
}

// Two strings of one slot; of no words to compare where they are the same one, or not of one length.
struct Pair {
    String one, other;

    __device__ long long words() const { return one.begin == other.begin || unlike() ? 0 : one.words(); }
    __device__ bool unlike() const { return one.bytes != other.bytes; }
};

// Replaces the slots of one end by positions, and compares strings. `collisions` is 0 before.
extern "C" __global__ void recode(const unsigned char *chars_a, const offset_t *a, long long in_a,
                                  const unsigned char *chars_b, const offset_t *b, long long in_b,
                                  const unsigned char *chars_c, const offset_t *c, long long in_c, int end,
                                  long long rows, const wide_t *__restrict__ table, index_t *codes, Outcome *outcome) {
    Ends ends = {{chars_a, a, in_a}, {chars_b, b, in_b}, {chars_c, c, in_c}};
    each_row(rows, [=](long long row) {
        Pair pair = {};
        if (row >= 0) {
            const wide_t *slot = table + 2 * static_cast<long long>(codes[row]);
            pair = {ends[ends.place_of(end, row)], ends[slot[1]]};
            codes[row] = static_cast<index_t>(slot[0]);
        }
        wide_t differing = over_words(pair, [](const Pair &of, long long at) -> wide_t {
            return of.one.word(at) != of.other.word(at);
        });
        if (differing || pair.unlike()) atomicExch(&outcome->collisions, 1ull);
    });
}

// Puts the strings at the first places one after another.
extern "C" __global__ void copy_strings(long long n, const wide_t *places, const unsigned char *chars_a,
                                        const offset_t *a, long long in_a, const unsigned char *chars_b,
                                        const offset_t *b, long long in_b, const unsigned char *chars_c,
                                        const offset_t *c, long long in_c, const offset_t *begins,
                                        unsigned char *chars) {
    Ends ends = {{chars_a, a, in_a}, {chars_b, b, in_b}, {chars_c, c, in_c}};
    for (long long at = this_thread() / WARP; at < n; at += all_threads() / WARP) {
        String string = ends[places[at]];
        unsigned char *to = chars + begins[at];
#pragma unroll 4
        for (long long byte = threadIdx.x % WARP; byte < string.bytes; byte += WARP) to[byte] = string.begin[byte];
    }
}
