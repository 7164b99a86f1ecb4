// From a graph by its ids' distances from the least to one by positions, when edges are sorted by target and the
// out-edges of each distance are counted, or their weights added up: only then is it known which ids of the range occur.
//
// Mapping: a thread an id of the range; `compact_codes`: a thread an edge, in a loop that strides over the grid.
// Memory: `mark_endpoints` and `compact` read 8 or 12 bytes an id of the range, and `compact` writes an id, an offset
// and an out-weight for each that occurs. `compact_codes` reads and writes each end once and looks its word of marks
// up, in the L2.
// Wins: where the range of ids is no more than the count of edges.
//
//   id_t      int, unsigned int, long long or unsigned long long
//   WEIGHTED  0 or 1

#include "ids.cuh"
#include "marks.cuh"

#if WEIGHTED
typedef double out_t;  // the sum of the weights of out-edges, NaN past the range; below 0 where there are none
#else
typedef int out_t;  // how many out-edges there are
#endif

__device__ inline bool is_source(int out_edges) { return out_edges != 0; }
__device__ inline bool is_source(double out_weight) { return !(out_weight < 0.0); }

// Marks each distance that is a target or a source.
extern "C" __global__ void mark_endpoints(long long range, const int *begins, const out_t *outs, unsigned int *bits) {
    long long place = this_thread();
    bool occurs = place < range && (is_source(outs[place]) || begins[place] < begins[place + 1]);
    unsigned int word = __ballot_sync(0xffffffffu, occurs);
    if (place < range && place % 32 == 0) bits[place / 32] = word;
}

// Ids, where their in-edges begin, and what leaves them, by position.
extern "C" __global__ void compact(long long range, long long n, wide_t low, const Marks *marks, const int *begins,
                                   const out_t *outs, id_t *ids, int *begins_by_position, double *out_weights) {
    long long place = this_thread();
    if (place == range) begins_by_position[n] = begins[range];
    if (place >= range) return;
    Marks word = marks[place / 32];
    if (!(word.bits >> (place % 32) & 1)) return;
    unsigned int position = word.rank(place);
    ids[position] = static_cast<id_t>(low + place);
    begins_by_position[position] = begins[place];
    out_weights[position] = is_source(outs[place]) ? outs[place] : 0.0;
}

// Replaces distances by positions.
extern "C" __global__ void compact_codes(long long m, int *codes, const Marks *__restrict__ marks) {
    each(codes, m, [=](int code, long long edge) { codes[edge] = static_cast<int>(marks[code / 32].rank(code)); });
}
