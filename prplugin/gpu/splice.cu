// Edges that are added to and removed from a CSC, in one copy of it.
//
// Mapping: `count_matches`: one warp per wanted edge and PIECE entries of the row of its target. `find_edges`: one warp
// per wanted edge, over the piece that holds its entry. `splice_entries`: one thread per TILE entries, which finds by
// binary search how many removed and added ones precede each. `splice_offsets`: likewise, one per row.
// Memory: `count_matches` reads the row of the target once per wanted edge; the splices read and write each entry and
// offset once. The positions that are searched stay in the caches.
// Wins: if few edges change; many are faster sorted anew.
//
//   index_t, offset_t  int or long long: the types of positions and of offsets
//   PIECE  4096
//   TILE  8

#include "each.cuh"

#define WARP 32

// The first of the ascending values[first..past] that is not below a limit; `past` if there is none.
__device__ long long lower_bound(const long long *values, long long first, long long past, long long limit) {
    while (first < past) {
        long long middle = (first + past) / 2;
        if (values[middle] < limit) first = middle + 1;
        else past = middle;
    }
    return first;
}

// The lanes whose entry has a source and, unless `wanted_weight` is null, a weight. Lanes have consecutive entries from
// the first on.
__device__ unsigned matching_lanes(const index_t *sources, const double *weights, long long wanted_source,
                                   const double *wanted_weight, long long first, long long past) {
    long long entry = first + threadIdx.x % WARP;
    bool matches = entry < past && sources[entry] == wanted_source &&
                   (wanted_weight == nullptr || weights[entry] == *wanted_weight);
    return __ballot_sync(0xffffffffu, matches);
}

// Wanted edge k has the pieces first_pieces[k]..first_pieces[k + 1] of the row of its target, which begins at begins[k];
// counts[p] is the number of entries in piece p that match.
extern "C" __global__ void count_matches(long long count, const index_t *sources, const double *weights,
                                         const long long *first_pieces, const long long *wanted_sources,
                                         const long long *begins, const long long *ends, const double *wanted_weights,
                                         int *counts) {
    long long pieces = first_pieces[count];
    for (long long piece = this_thread() / WARP; piece < pieces; piece += all_threads() / WARP) {
        long long k = lower_bound(first_pieces, 0, count + 1, piece + 1) - 1;
        long long first = begins[k] + (piece - first_pieces[k]) * PIECE, past = min(first + PIECE, ends[k]);
        const double *wanted_weight = wanted_weights == nullptr ? nullptr : wanted_weights + k;
        int matches = 0;
        for (; first < past; first += WARP)
            matches += __popc(matching_lanes(sources, weights, wanted_sources[k], wanted_weight, first, past));
        if (threadIdx.x % WARP == 0) counts[piece] = matches;
    }
}

// found[k] is the entry of wanted edge k: number nth[k] of those that match it; -1 if there are not so many.
extern "C" __global__ void find_edges(long long count, const index_t *sources, const double *weights,
                                      const long long *first_pieces, const long long *wanted_sources,
                                      const long long *begins, const long long *ends, const double *wanted_weights,
                                      const int *counts, const long long *nth, long long *found) {
    for (long long k = this_thread() / WARP; k < count; k += all_threads() / WARP) {
        const double *wanted_weight = wanted_weights == nullptr ? nullptr : wanted_weights + k;
        long long left = nth[k], piece = first_pieces[k], entry = -1;
        for (; piece < first_pieces[k + 1] && left >= counts[piece]; ++piece) left -= counts[piece];
        long long first = begins[k] + (piece - first_pieces[k]) * PIECE;
        for (; first < ends[k] && entry < 0; first += WARP) {
            unsigned matching = matching_lanes(sources, weights, wanted_sources[k], wanted_weight, first, ends[k]);
            if (left < __popc(matching)) {
                for (; left > 0; --left) matching &= matching - 1;
                entry = first + __ffs(matching) - 1;
            } else {
                left -= __popc(matching);
            }
        }
        if (threadIdx.x % WARP == 0) found[k] = entry;
    }
}

// Copies the entries but the removed ones. Added one k goes before old entry before[k]; both lists are ascending.
// `new_weights` is null if the edges are unweighted; `weights` is also null if there are no old entries. The out-degrees
// of the sources change accordingly, unless `out_degrees` is null.
extern "C" __global__ void splice_entries(long long m, const index_t *sources, const double *weights,
                                          long long removed_count, const long long *removed, long long added_count,
                                          const long long *before, const index_t *added_sources,
                                          const double *added_weights, index_t *new_sources, double *new_weights,
                                          double *out_degrees) {
    __shared__ long long removed_range[2], added_range[2];  // those that concern the entries of this block
    long long begin = static_cast<long long>(blockIdx.x) * blockDim.x * TILE, past = min(m, begin + blockDim.x * TILE);
    if (threadIdx.x < 2) {
        removed_range[threadIdx.x] = lower_bound(removed, 0, removed_count, threadIdx.x == 0 ? begin : past);
        added_range[threadIdx.x] = lower_bound(before, 0, added_count, threadIdx.x == 0 ? begin + 1 : past);
    }
    __syncthreads();
    for (long long entry = begin + threadIdx.x; entry < past; entry += blockDim.x) {
        long long gone = lower_bound(removed, removed_range[0], removed_range[1], entry);
        index_t source = sources[entry];
        if (gone < removed_range[1] && removed[gone] == entry) {
            if (out_degrees != nullptr) atomicAdd(out_degrees + source, -1.0);
            continue;
        }
        long long place = entry - gone + lower_bound(before, added_range[0], added_range[1], entry + 1);
        new_sources[place] = source;
        if (new_weights != nullptr) new_weights[place] = weights[entry];
    }
    for (long long k = this_thread(); k < added_count; k += all_threads()) {
        long long place = before[k] - lower_bound(removed, 0, removed_count, before[k]) + k;
        new_sources[place] = added_sources[k];
        if (new_weights != nullptr) new_weights[place] = added_weights[k];
        if (out_degrees != nullptr) atomicAdd(out_degrees + added_sources[k], 1.0);
    }
}

// `added_targets` are ascending.
extern "C" __global__ void splice_offsets(long long n, const offset_t *offsets, long long removed_count,
                                          const long long *removed, long long added_count,
                                          const long long *added_targets, offset_t *new_offsets) {
    for (long long row = this_thread(); row <= n; row += all_threads()) {
        new_offsets[row] = offsets[row] - lower_bound(removed, 0, removed_count, offsets[row]) +
                           lower_bound(added_targets, 0, added_count, row);
    }
}
