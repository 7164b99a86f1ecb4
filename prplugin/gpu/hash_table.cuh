// A hash table of 64-bit keys with open addressing and linear probing.
//
// A slot consists of EACH words, the first of which is the key; the caller defines the others. All words are
// initialized to EMPTY. The key that equals EMPTY has its own slot after the last: a table of `capacity` slots has one
// more.

#include "block_scan.cuh"
#include "each.cuh"

typedef unsigned long long wide_t;

#define EMPTY 0xffffffffffffffffull

// Number of probes after which the table counts as too full: at a load of 2/3, the longest run of 10^8 slots is a few
// hundred.
#define MOST_PROBES 2048

// The mixer of splitmix64, a bijection.
__device__ inline wide_t mixed(wide_t key) {
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ key >> 27) * 0x94d049bb133111ebull;
    return key ^ key >> 31;
}

// State of the table: the number of keys, and whether it was too full for some.
struct Found {
    wide_t keys, failures;
};

// Returns the slot of a key, -1 if there is none; increments `*added` if the key is new. A plain read may miss a recent
// write; the compare-and-swap then finds it.
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

// Adds the numbers of new keys of the threads of a block.
__device__ inline void count_keys(unsigned int added, Found *found) {
    unsigned int total;
    block_scan(added, &total);
    if (threadIdx.x == 0 && total) atomicAdd(&found->keys, static_cast<wide_t>(total));
}

// Calls `list(slot, to)` for each filled slot, with a running number `to` in no particular order. `*listed` must be 0.
// A thread takes LOADS_IN_FLIGHT neighbouring slots; the grid must cover all of them.
template <int EACH, typename List>
__device__ void each_filled(long long capacity, const wide_t *table, wide_t *listed, List list) {
    __shared__ wide_t first;
    long long base = this_thread() * LOADS_IN_FLIGHT;
    unsigned int filled = 0, total;
#pragma unroll
    for (int item = 0; item < LOADS_IN_FLIGHT; ++item) {
        long long slot = base + item;
        if (slot <= capacity && table[EACH * slot] != EMPTY) filled |= 1u << item;
    }
    unsigned int before = block_scan(static_cast<unsigned int>(__popc(filled)), &total);
    if (threadIdx.x == 0) first = atomicAdd(listed, static_cast<wide_t>(total));
    __syncthreads();
    for (wide_t to = first + before; filled; filled &= filled - 1, ++to) list(base + __ffs(filled) - 1, to);
}
