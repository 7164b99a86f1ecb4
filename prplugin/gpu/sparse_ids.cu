// Ids of any range to positions in ascending order of id, through a hash table.
//
// Open addressing with linear probing in a table of 64-bit keys, a key being an id's distance from the least. Each id is
// first replaced by its slot; the keys of the filled slots are sorted; each slot is told the position of its key; then
// slots are replaced by positions. How large the table has to be is estimated before, from the greatest count of leading
// zeros in hashes of each of 4096 classes (Flajolet, Fusy, Gandouet and Meunier 2007, "HyperLogLog").
//
// Mapping: a thread an id, in a loop that strides over the grid; `collect`: a block a stretch of slots.
// Memory: `sketch` reads each id once. `insert` reads each id and writes its slot, and looks at about 1.5 slots of eight
// bytes at random. `recode` reads and writes a slot's number in four bytes, and looks at one position at random.
// Wins: against sorting all ids as soon as ids repeat: random looks at a table of the distinct ones cost less than eight
// passes over all.
//
//   index_t  int or long long

#include "hash_table.cuh"
#include "ids.cuh"

#define CLASS_BITS 12
#define CLASSES (1 << CLASS_BITS)

// The greatest rank of a hash in each class: one more than its leading zeros, without the bits that name the class.
// `ranks` are 0 before.
extern "C" __global__ void sketch(const id_t *a, long long in_a, const id_t *b, long long in_b, const id_t *c,
                                  long long in_c, unsigned int *ranks) {
    __shared__ unsigned int greatest[CLASSES];
    for (int of = threadIdx.x; of < CLASSES; of += blockDim.x) greatest[of] = 0;
    __syncthreads();
    each_of(a, in_a, b, in_b, c, in_c, [&](id_t id, int, long long) {
        wide_t hash = mixed(static_cast<wide_t>(id));
        unsigned int rank = 1 + __clzll(hash << CLASS_BITS | 1ull << (CLASS_BITS - 1));
        atomicMax(greatest + (hash >> (64 - CLASS_BITS)), rank);
    });
    __syncthreads();
    for (int of = threadIdx.x; of < CLASSES; of += blockDim.x) atomicMax(ranks + of, greatest[of]);
}

// Puts all ids into the table, and says which slot each is in. `table`, of `capacity` + 1, is EMPTY before, and `found`
// is 0.
extern "C" __global__ void insert(const id_t *a, long long in_a, const id_t *b, long long in_b, const id_t *c,
                                  long long in_c, wide_t low, long long capacity, wide_t *table, index_t *slots_a,
                                  index_t *slots_b, index_t *slots_c, Found *found) {
    unsigned int added = 0;
    index_t *slots[] = {slots_a, slots_b, slots_c};
    each_of(a, in_a, b, in_b, c, in_c, [&](id_t id, int column, long long at) {
        slots[column][at] = static_cast<index_t>(slot_of<1>(distance(id, low), capacity, table, found, &added));
    });
    count_keys(added, found);
}

// Lists keys and their slots, in no order. `listed` is 0 before.
extern "C" __global__ void collect(long long capacity, const wide_t *table, wide_t *listed, wide_t *keys,
                                   index_t *slots) {
    each_filled<1>(capacity, table, listed, [=](long long slot, wide_t to) {
        keys[to] = slot == capacity ? EMPTY : table[slot];
        slots[to] = static_cast<index_t>(slot);
    });
}

// Tells each slot the position of its key, given keys in order with their slots, and lists the ids.
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
