// Factorization of strings in the order of first appearance.
//
// Each string is replaced by a 64-bit hash, and each hash by its slot in a hash table, which stores the first place of
// each hash. The filled slots are sorted by that place, which gives their positions; then slots are replaced by
// positions, and each string is compared, byte by byte, with the one at the first place of its slot, which detects
// collisions of hashes. With m edges, the place of the source of an edge is 2 * row, of its destination 2 * row + 1,
// and of an additional vertex 2 * m + row.
//
// Mapping: `hash_strings` and `recode`: one thread per string, in words of eight bytes; the 32 lanes of a warp share a
// string longer than 256 bytes, so that it does not delay one thread. `insert` and `collect`: one thread per hash or
// for some slots. `place`: one block per tile of neighbouring positions, with decoupled look-back. `copy_strings`: one
// warp per string.
// Memory: `hash_strings` reads each string, and writes eight bytes for it. `insert` reads those, writes a slot number,
// and gathers about 1.5 slots of 16 bytes. `recode` reads each string again, gathers one slot and the string to
// compare, and reads and writes the slot number. The other kernels read only the distinct strings.
// Wins: always; it is the only kernel for it. A join of the strings with the distinct ones hashes both, and compares as
// much.
//
//   offset_t  int or long long: where a string begins
//   index_t   int or long long: a slot or a position
//   state_t   unsigned int where there are fewer than 2^30 bytes, else unsigned long long

#include "hash_table.cuh"
#include "look_back.cuh"

// Most words of a string that one thread processes.
#define FEW_WORDS 32

#define GOLDEN 0x9e3779b97f4a7c15ull

// A string, and the range of bytes around it that may be read.
struct String {
    const unsigned char *begin;
    long long bytes;
    const unsigned char *first, *past;

    __device__ long long words() const { return (bytes + 7) / 8; }

    // Loads eight bytes from an aligned address; 0 for those outside the range.
    __device__ wide_t aligned(const unsigned char *from) const {
        if (from >= first && from + 8 <= past) return *reinterpret_cast<const wide_t *>(from);
        wide_t word = 0;
        for (int byte = 0; byte < 8; ++byte) {
            if (from + byte >= first && from + byte < past) word |= static_cast<wide_t>(from[byte]) << 8 * byte;
        }
        return word;
    }

    // Its bytes from 8 * `at` on, at least one, as a number; 0 for those past its end.
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

// Sources, destinations and additional vertices; the last may be absent.
struct Columns {
    Strings a, b, c;

    // Calls `work(column, row)` for a place.
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

// The value of another lane.
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

// The sum of `of(item, word)` over the words of each lane's item: the lane itself sums a short item, the whole warp a
// long one. All lanes must call it.
template <typename Item, typename Of>
__device__ wide_t over_words(const Item &mine, Of of) {
    int lane = threadIdx.x % WARP;
    bool is_short = mine.words() <= FEW_WORDS;
    wide_t sum = 0;
    if (is_short) {
        for (long long word = 0; word < mine.words(); ++word) sum += of(mine, word);
    }
    for (unsigned int rest = __ballot_sync(0xffffffffu, !is_short); rest; rest &= rest - 1) {
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

// Calls `work(row)` for all rows, by whole warps; `row` is -1 past the last.
template <typename Work>
__device__ void each_row(long long rows, Work work) {
    for (long long row = this_thread(); row - threadIdx.x % WARP < rows; row += all_threads()) {
        work(row < rows ? row : -1);
    }
}

// Computes a hash of each string: the sum of its words, each mixed with its number.
extern "C" __global__ void hash_strings(const __grid_constant__ Strings column, wide_t *hashes) {
    each_row(column.rows, [&](long long row) {
        String string = row < 0 ? String() : column[row];
        wide_t sum = over_words(string, [](const String &of, long long at) {
            return mixed(of.word(at) + (at + 1) * GOLDEN);
        });
        if (row >= 0) hashes[row] = mixed(sum ^ string.bytes);
    });
}

// Inserts the hashes of one column into the table, and writes the slot of each. A slot has a hash and its first place;
// `table`, of `capacity` + 1 slots, is initialized to EMPTY, and `found` to 0.
extern "C" __global__ void insert(long long edges, int end, const wide_t *hashes, long long rows, long long capacity,
                                  wide_t *table, index_t *slots, Found *found) {
    Columns ends = {{0, 0, edges}};
    unsigned int added = 0;
    each(hashes, rows, [&](wide_t hash, long long row) {
        long long slot = slot_of<2>(hash, capacity, table, found, &added);
        slots[row] = static_cast<index_t>(slot);
        if (slot < 0) return;
        wide_t place = ends.place_of(end, row), *first = table + 2 * slot + 1;
        // First places only decrease, so a stale value is a safe bound.
        if (place < *reinterpret_cast<volatile wide_t *>(first)) atomicMin(first, place);
    });
    count_keys(added, found);
}

// Lists first places and their slots, in no particular order. `listed` must be 0.
extern "C" __global__ void collect(long long capacity, const wide_t *table, wide_t *listed, wide_t *places,
                                   index_t *slots) {
    each_filled<2>(capacity, table, listed, [=](long long slot, wide_t to) {
        places[to] = table[2 * slot + 1];
        slots[to] = static_cast<index_t>(slot);
    });
}

// Results for the host.
struct Outcome {
    wide_t bytes;  // of all distinct strings
    wide_t collisions;  // nonzero if two different strings have one hash
};

// Replaces the hash in each slot by its position, given sorted first places with their slots, and writes the offsets of
// the strings in the result. `ticket` and `states` must be zeroed.
extern "C" __global__ void place(long long n, const wide_t *places, const index_t *slots, const __grid_constant__ Strings a,
                                 const __grid_constant__ Strings b, const __grid_constant__ Strings c,
                                 unsigned int *ticket, state_t *states, wide_t *table, offset_t *begins,
                                 Outcome *outcome) {
    __shared__ unsigned int taken;
    __shared__ state_t before_tile;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
    __syncthreads();
    Columns ends = {a, b, c};
    long long tile = taken, base = (tile * blockDim.x + threadIdx.x) * LOADS_IN_FLIGHT;
    state_t bytes[LOADS_IN_FLIGHT], own = 0, all;
#pragma unroll
    for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
        long long at = base + item;
        bytes[item] = at < n ? static_cast<state_t>(ends.bytes(places[at])) : 0;
        own += bytes[item];
    }
    state_t begin = block_scan(own, &all);
    if (threadIdx.x / WARP == 0) {
        state_t earlier = warp_prefix(states, tile, all);
        if (threadIdx.x == 0) before_tile = earlier;
    }
    __syncthreads();
    begin += before_tile;
#pragma unroll
    for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
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

// Two strings of one slot. No words are compared if they are the same place, or differ in length.
struct Pair {
    String one, other;

    __device__ long long words() const { return one.begin == other.begin || unlike() ? 0 : one.words(); }
    __device__ bool unlike() const { return one.bytes != other.bytes; }
};

// Replaces the slots of one column by positions, and compares strings. `collisions` must be 0.
extern "C" __global__ void recode(const __grid_constant__ Strings a, const __grid_constant__ Strings b,
                                  const __grid_constant__ Strings c, int end, long long rows,
                                  const wide_t *__restrict__ table, index_t *codes, Outcome *outcome) {
    Columns ends = {a, b, c};
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

// Copies the strings at the first places, one after another.
extern "C" __global__ void copy_strings(long long n, const wide_t *places, const __grid_constant__ Strings a,
                                        const __grid_constant__ Strings b, const __grid_constant__ Strings c,
                                        const offset_t *begins, unsigned char *chars) {
    Columns ends = {a, b, c};
    for (long long at = this_thread() / WARP; at < n; at += all_threads() / WARP) {
        String string = ends[places[at]];
        unsigned char *to = chars + begins[at];
#pragma unroll 4
        for (long long byte = threadIdx.x % WARP; byte < string.bytes; byte += WARP) to[byte] = string.begin[byte];
    }
}
