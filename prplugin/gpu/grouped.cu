// Compaction of a graph indexed by id - low to one indexed by position, after its edges are sorted by target and its
// out-edges counted, or their weights summed: only then is it known which ids of the range occur.
//
// Mapping: one thread per id of the range; `compact_codes`: one thread per edge, in a grid-stride loop.
// Memory: `mark_endpoints` and `compact` read 8 or 12 bytes per id of the range, and `compact` writes an id, an offset
// or an in-degree, and an out-weight for each that occurs. `compact_codes` reads and writes each source once, and reads its word of
// marks from the L2 cache.
// Wins: where the range of ids is at most the number of edges.
//
//   id_t      int, unsigned int, long long or unsigned long long
//   WEIGHTED  0 or 1
//   DEGREES  0 1
// DEGREES: whether `ins` has the in-degree of each place, else the offset of its in-edges, and their number at the end.

#include "ids.cuh"
#include "marks.cuh"

#if WEIGHTED
typedef double out_t;  // out-weight: NaN if it overflows, negative without out-edges
#else
typedef int out_t;  // out-degree
#endif

__device__ inline bool is_source(int out_edges) { return out_edges != 0; }
__device__ inline bool is_source(double out_weight) { return !(out_weight < 0.0); }

__device__ inline bool is_target(const unsigned *ins, long long place) {
    return DEGREES ? ins[place] != 0 : ins[place] < ins[place + 1];
}

// Marks each id of the range that is a target or a source.
extern "C" __global__ void mark_endpoints(long long range, const unsigned *ins, const out_t *outs, unsigned *bits) {
    long long place = this_thread();
    bool occurs = place < range && (is_source(outs[place]) || is_target(ins, place));
    unsigned word = __ballot_sync(0xffffffffu, occurs);
    if (place < range && place % 32 == 0) bits[place / 32] = word;
}

// Writes ids, offsets of the in-edges or in-degrees, and out-weights, by position.
extern "C" __global__ void compact(long long range, long long n, wide_t low, const Marks *marks, const unsigned *ins,
                                   const out_t *outs, id_t *ids, unsigned *ins_by_position, double *out_weights) {
    long long place = this_thread();
    if (!DEGREES && place == range) ins_by_position[n] = ins[range];
    if (place >= range) return;
    Marks word = marks[place / 32];
    if (!(word.bits >> (place % 32) & 1)) return;
    unsigned position = word.rank(place);
    ids[position] = static_cast<id_t>(low + place);
    ins_by_position[position] = ins[place];
    out_weights[position] = is_source(outs[place]) ? outs[place] : 0.0;
}

// Replaces distances from the least id by positions.
extern "C" __global__ void compact_codes(long long m, int *codes, const Marks *__restrict__ marks) {
    each(codes, m, [=](int code, long long edge) { codes[edge] = static_cast<int>(marks[code / 32].rank(code)); });
}
