// The first place of each code in rows that are in any order.
//
// Mapping: one thread per row, in a grid-stride loop.
// Memory: reads each code once, and the place of its code from the L2 cache; an atomic minimum only for a lower place,
// so that a code of many rows does not make its rows wait for one another.
// Wins: instead of a sort of the rows, where the codes are known.
//
//   index_t  int or long long

#include "each.cuh"

typedef unsigned long long wide_t;

// The place of row r is scale * r + shift. `first` holds places found before, or more than any.
extern "C" __global__ void first_places(long long m, const index_t *codes, long long scale, long long shift,
                                        wide_t *first) {
    each(codes, m, [=](index_t code, long long row) {
        wide_t place = scale * row + shift;
        if (place < __ldcg(first + code)) atomicMin(first + code, place);
    });
}
