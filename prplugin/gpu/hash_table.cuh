// A hash table of 64-bit keys with open addressing and linear probing.
//
// A slot is of EACH words, of which the first is its key; what the others hold is the caller's business. All words are
// EMPTY before. The key that looks like an empty slot has the slot past the last for its own: a table of `capacity` slots
// has one more.

#include "block_scan.cuh"
#include "each.cuh"

typedef unsigned long long wide_t;

#define EMPTY 0xffffffffffffffffull

// Past as many slots the table is taken to be too full: with two slots of three filled, the longest run of filled ones
// among 10^8 is of a few hundred.
#define MOST_PROBES 2048

// The mixer of splitmix64, which maps no two numbers to the same.
__device__ inline wide_t mixed(wide_t key) {
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ key >> 27) * 0x94d049bb133111ebull;
    return key ^ key >> 31;
}

// What is known of the table: how many keys it has, and whether it was too full for some.
struct Found {
    wide_t keys, failures;
};

// Gives a key its slot, -1 if there is none; `*added` goes up by one if the key is new. A look may miss what was just
// written: the exchange then finds it.
template <int EACH>
__device__ long long slot_of(wide_t key, long long capacity, wide_t *table, Found *found, unsigned int *added) {
    if (key == EMPTY) {
        *added += atomicExch(table + EACH * capacity, 0ull) == EMPTY;
        return capacity;
    }
    long long slot = __umul64hi(mixed(key), capacity);
    for (int probe = 1; probe <= MOST_PROBES; ++probe) {
        wide_t held = table[EACH * slot];
        if (held == EMPTY) {
            held = atomicCAS(table + EACH * slot, EMPTY, key);
            if (held == EMPTY) {
                ++*added;
                return slot;
            }
        }
        if (held == key) return slot;
        if (++slot == capacity) slot = 0;
        if (probe % 64 == 0 && *reinterpret_cast<volatile wide_t *>(&found->failures)) return -1;
    }
    atomicExch(&found->failures, 1ull);
    return -1;
}

// Adds what the threads of a block have added.
__device__ inline void count_keys(unsigned int added, Found *found) {
    unsigned int total;
    block_scan(added, &total);
    if (threadIdx.x == 0 && total) atomicAdd(&found->keys, static_cast<wide_t>(total));
}

// Calls `list(slot, to)` for each slot that has a key, `to` counting these in no order. `*listed` is 0 before. A thread
// takes AT_A_TIME neighbouring slots; the threads of the grid take all of them.
template <int EACH, typename List>
__device__ void each_filled(long long capacity, const wide_t *table, wide_t *listed, List list) {
    __shared__ wide_t first;
    long long base = this_thread() * AT_A_TIME;
    unsigned int filled = 0, total;
#pragma unroll
    for (int item = 0; item < AT_A_TIME; ++item) {
        long long slot = base + item;
        if (slot <= capacity && table[EACH * slot] != EMPTY) filled |= 1u << item;
    }
    unsigned int before = block_scan(static_cast<unsigned int>(__popc(filled)), &total);
    if (threadIdx.x == 0) first = atomicAdd(listed, static_cast<wide_t>(total));
    __syncthreads();
    for (wide_t to = first + before; filled; filled &= filled - 1, ++to) list(base + __ffs(filled) - 1, to);
}
