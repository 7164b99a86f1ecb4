// Edges that are added to and removed from a CSC, in one copy of it.
//
// Mapping: `find_edges`: one warp per wanted edge, over the row of its target. `splice_entries`: one thread per entry,
// which finds by binary search how many removed and added ones precede it. `splice_offsets`: likewise, one per row.
// Memory: `find_edges` reads the rows of the wanted targets; the others read and write each entry and offset once. The
// positions that are searched stay in the caches.
// Wins: if few edges change; many are faster sorted anew.
//
//   index_t, offset_t  int or long long: the types of positions and of offsets

#include "each.cuh"

#define WARP 32

// The number of ascending values below a limit.
__device__ long long count_below(const long long *values, long long count, long long limit) {
    long long least = 0;
    while (least < count) {
        long long middle = (least + count) / 2;
        if (values[middle] < limit) least = middle + 1;
        else count = middle;
    }
    return least;
}

// found[k] is the entry of wanted edge k: number nth[k] of those with its endpoints and, unless `wanted_weights` is
// null, its weight; -1 if there are not so many.
extern "C" __global__ void find_edges(long long count, const offset_t *offsets, const index_t *sources,
                                      const double *weights, const long long *wanted_sources,
                                      const long long *wanted_targets, const double *wanted_weights,
                                      const long long *nth, long long *found) {
    int lane = threadIdx.x % WARP;
    for (long long k = this_thread() / WARP; k < count; k += all_threads() / WARP) {
        long long left = nth[k], entry = -1, past = offsets[wanted_targets[k] + 1];
        for (long long first = offsets[wanted_targets[k]]; first < past && entry < 0; first += WARP) {
            long long mine = first + lane;
            bool matches = mine < past && sources[mine] == wanted_sources[k] &&
                           (wanted_weights == nullptr || weights[mine] == wanted_weights[k]);
            unsigned matching = __ballot_sync(0xffffffffu, matches);
            if (left < __popc(matching)) {
                for (; left > 0; --left) matching &= matching - 1;
                entry = first + __ffs(matching) - 1;
            } else {
                left -= __popc(matching);
            }
        }
        if (lane == 0) found[k] = entry;
    }
}

// Copies the entries but the removed ones. Added one k goes before old entry before[k]; both lists are ascending.
// `new_weights` is null if the edges are unweighted; `weights` is also null if there are no old entries.
extern "C" __global__ void splice_entries(long long m, const index_t *sources, const double *weights,
                                          long long removed_count, const long long *removed, long long added_count,
                                          const long long *before, const index_t *added_sources,
                                          const double *added_weights, index_t *new_sources, double *new_weights) {
    for (long long entry = this_thread(); entry < m; entry += all_threads()) {
        long long gone = count_below(removed, removed_count, entry);
        if (gone < removed_count && removed[gone] == entry) continue;
        long long place = entry - gone + count_below(before, added_count, entry + 1);
        new_sources[place] = sources[entry];
        if (new_weights != nullptr) new_weights[place] = weights[entry];
    }
    for (long long k = this_thread(); k < added_count; k += all_threads()) {
        long long place = before[k] - count_below(removed, removed_count, before[k]) + k;
        new_sources[place] = added_sources[k];
        if (new_weights != nullptr) new_weights[place] = added_weights[k];
    }
}

// `added_targets` are ascending.
extern "C" __global__ void splice_offsets(long long n, const offset_t *offsets, long long removed_count,
                                          const long long *removed, long long added_count,
                                          const long long *added_targets, offset_t *new_offsets) {
    for (long long row = this_thread(); row <= n; row += all_threads()) {
        new_offsets[row] = offsets[row] - count_below(removed, removed_count, offsets[row]) +
                           count_below(added_targets, added_count, row);
    }
}
