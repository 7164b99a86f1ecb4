// Conversion of ids of any integer type to unsigned numbers.
//
//   id_t     int, unsigned int, long long or unsigned long long

#include "each.cuh"

typedef unsigned long long wide_t;

// The distance of an id from the least. The difference may overflow id_t, but is below 2^64.
__device__ inline wide_t distance(id_t id, wide_t low) { return static_cast<wide_t>(id) - low; }

// Ids as unsigned numbers in the same order, and the inverse.
#define BIAS (static_cast<id_t>(-1) < static_cast<id_t>(0) ? 1ull << 63 : 0ull)

__device__ inline wide_t ordered(id_t id) { return static_cast<wide_t>(id) ^ BIAS; }
__device__ inline id_t unordered(wide_t id) { return static_cast<id_t>(id ^ BIAS); }

// Up to three columns of ids, and their lengths.
struct Columns {
    const id_t *a, *b, *c;
    long long in_a, in_b, in_c;
};

// Calls `work(id, column, place)` for every id of up to three columns.
template <typename Work>
__device__ void each_of(const Columns &columns, Work work) {
    const id_t *ids[] = {columns.a, columns.b, columns.c};
    long long counts[] = {columns.in_a, columns.in_b, columns.in_c};
#pragma unroll 1
    for (int column = 0; column < 3; ++column) {
        each(ids[column], counts[column], [&](id_t id, long long at) { work(id, column, at); });
    }
}
