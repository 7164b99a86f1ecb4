// Sums of hashes of arcs, by which lists of out-edges and of in-edges are compared, and faults of lists of neighbors.
//
// The sums do not depend on the order of the arcs: two lists of the same arcs have the same sums, and others have, but for
// one in 2**64.
// Mapping: a thread per part of the rows. Memory: offsets, indices and weights are read once; rows that do not ascend read
// and write `scratch` at each index.
// Used by readers of files that list each edge twice.
#include "native.hpp"

namespace {

// Return a hash of an arc, by the finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
inline u64 hash_arc(u64 source, u64 target, u64 weight) {
    u64 hash = source * 0x9E3779B97F4A7C15 + target + (weight ^ (weight >> 29)) * 0xD6E8FEB86659FD93;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    return hash ^ (hash >> 31);
}

}  // namespace

// Set sums[part] to the sums of the hashes of the arcs in some rows (if `wanted` has bit 1), and of their reverses (bit 2).
//
// If `width` is n, faults[part] becomes the first entry that is its row, or another entry of it, and otherwise -1;
// `scratch` is zero before.
template <class Index>
i64 check_arcs(i64, i64, i64 parts, i64 width, const i64* offsets, const Index* indices, const f64* weights,
               const i64* bounds, Index* scratch, i64* sums, i64* faults,
               i64 wanted, i64 threads) {
    return Team(threads).for_each(parts, [&](i64 part) {
        u64 forward = 0, backward = 0;
        i64 fault = -1;
        Index* seen = scratch + part * width;
        for (i64 row = bounds[part]; row < bounds[part + 1]; row++) {
            i64 first = offsets[row], end = offsets[row + 1];
            bool simple = true;
            for (i64 edge = first; edge < end; edge++) {
                u64 weight = 0, index = indices[edge];
                if (weights) memcpy(&weight, weights + edge, sizeof weight);
                if (wanted & 1) forward += hash_arc(u64(row), index, weight);
                if (wanted & 2) backward += hash_arc(index, u64(row), weight);
                simple &= index != u64(row) && (edge == first || indices[edge - 1] < indices[edge]);
            }
            if (simple || !width || fault >= 0) continue;
            for (i64 edge = first; edge < end && fault < 0; edge++) {
                Index index = indices[edge];
                if (i64(index) == row || seen[index] == Index(row + 1)) fault = edge;
                seen[index] = Index(row + 1);
            }
        }
        sums[2 * part] = i64(forward), sums[2 * part + 1] = i64(backward), faults[part] = fault;
    });
}
EXPORT_INDICES(check_arcs)
