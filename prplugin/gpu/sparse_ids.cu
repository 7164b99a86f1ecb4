// Factorization of ids of any range in ascending order of id, by a hash table.
//
// Open addressing with linear probing in a table of 64-bit keys; a key is an id's distance from the least. Each id is
// first replaced by its slot; the keys of the filled slots are sorted; each slot receives the position of its key; then
// slots are replaced by positions. The size of the table is estimated before, from the greatest number of leading zeros
// of hashes in each of 4096 classes (Flajolet, Fusy, Gandouet and Meunier 2007, "HyperLogLog").
//
// Mapping: one thread per id, in a grid-stride loop; `collect`: one block per range of slots.
// Memory: `sketch` reads each id once. `insert` reads each id, writes its slot, and gathers about 1.5 slots of eight
// bytes. `recode` reads and writes a slot number of four bytes, and gathers one position.
// Wins: over sorting all ids as soon as ids repeat: gathers from a table of the distinct ids cost less than eight
// passes over all ids.
//
//   index_t  int or long long

#include "hash_table.cuh"
#include "ids.cuh"

#define REGISTER_BITS 12
#define REGISTERS (1 << REGISTER_BITS)

// Computes the greatest rank of a hash in each class: the number of leading zeros after the bits of the class, plus
// one.
// `ranks` must be zeroed.
extern "C" __global__ void sketch(const __grid_constant__ Columns columns, unsigned int *ranks) {
    __shared__ unsigned int greatest[REGISTERS];
    for (int of = threadIdx.x; of < REGISTERS; of += blockDim.x) greatest[of] = 0;
    __syncthreads();
    each_of(columns, [&](id_t id, int, long long) {
        wide_t hash = mixed(static_cast<wide_t>(id));
        unsigned int rank = 1 + __clzll(hash << REGISTER_BITS | 1ull << (REGISTER_BITS - 1));
        atomicMax(greatest + (hash >> (64 - REGISTER_BITS)), rank);
    });
    __syncthreads();
    for (int of = threadIdx.x; of < REGISTERS; of += blockDim.x) atomicMax(ranks + of, greatest[of]);
}

// Inserts all ids into the table, and writes the slot of each. `table` has `capacity` + 1 slots, initialized to EMPTY;
// `found` must be zeroed.
extern "C" __global__ void insert(const __grid_constant__ Columns columns, wide_t low, long long capacity, wide_t *table,
                                  index_t *slots_a, index_t *slots_b, index_t *slots_c, Found *found) {
    unsigned int added = 0;
    index_t *slots[] = {slots_a, slots_b, slots_c};
    each_of(columns, [&](id_t id, int column, long long at) {
        slots[column][at] = static_cast<index_t>(slot_of<1>(distance(id, low), capacity, table, found, &added));
    });
    count_keys(added, found);
}

// Lists keys and their slots, in no particular order. `listed` must be 0.
extern "C" __global__ void collect(long long capacity, const wide_t *table, wide_t *listed, wide_t *keys,
                                   index_t *slots) {
    each_filled<1>(capacity, table, listed, [=](long long slot, wide_t to) {
        keys[to] = slot == capacity ? EMPTY : table[slot];
        slots[to] = static_cast<index_t>(slot);
    });
}

// Writes the position of each key to its slot, given sorted keys with their slots, and lists the ids.
extern "C" __global__ void place(long long n, const wide_t *keys, const index_t *slots, wide_t low,
                                 index_t *positions, id_t *ids) {
    each(slots, n, [=](index_t slot, long long at) {
        positions[slot] = static_cast<index_t>(at);
        ids[at] = static_cast<id_t>(keys[at] + low);
    });
}

// Replaces slots by positions.
extern "C" __global__ void recode(index_t *a, long long in_a, index_t *b, long long in_b, index_t *c, long long in_c,
                                  const index_t *__restrict__ positions) {
    each(a, in_a, [=](index_t slot, long long at) { a[at] = positions[slot]; });
    each(b, in_b, [=](index_t slot, long long at) { b[at] = positions[slot]; });
    each(c, in_c, [=](index_t slot, long long at) { c[at] = positions[slot]; });
}
