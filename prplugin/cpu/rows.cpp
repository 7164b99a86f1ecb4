// Rows of a sparse matrix in a buffer with spare capacity, rewritten at its end: see `prplugin.streams.host_edges`.
//
// Row v holds indices[begins[v]] .. indices[ends[v] - 1] and the weights at the same positions; rows are in no particular
// order, and `weights` is null in an unweighted graph.
// Mapping: one thread, except for `compact_rows`, whose threads copy pieces of rows. Memory: the changed rows are read and
// written once; `compact_rows` reads and writes all rows.
// Used by every `Graph.update` on the host.
#include "native.hpp"

namespace {

constexpr i64 PIECE_ROWS = 1 << 14;   // rows that a thread copies at a time
constexpr u64 FILTER_SIZE = 1 << 12;  // flags by which edges to remove are searched for: they fit in the L1 cache

}  // namespace

// Set found[i] to whether row rows[i] has an entry in column columns[i].
template <class Index>
i64 find_pairs(i64 pairs, i64, i64, const i64* rows, const i64* columns, const i64* begins, const i64* ends,
               const Index* indices, u8* found) {
    for (i64 i = 0; i < pairs; i++) {
        found[i] = 0;
        for (i64 edge = begins[rows[i]]; edge < ends[rows[i]] && !found[i]; edge++)
            found[i] = i64(indices[edge]) == columns[i];
    }
    return 0;
}
EXPORT_INDICES(find_pairs)

// Write the changed rows to the buffer from position `at` on, and return the position after the last entry.
//
// Entries before `at` are not altered. The entries to remove from row i are those from removed_at[i] on, in ascending order;
// `found` marks those that exist. NaN as their weight matches any, and is replaced by the weight that was removed.
// Added entries follow the others. `sums` receives the compensated sums of the new weights; without weights, the numbers
// of entries.
template <class Index>
i64 rewrite_rows(i64 changed, i64, i64, i64, i64, const i64* rows, const i64* begins, const i64* ends, Index* indices,
                 f64* weights, const i64* removed_at, const i64* removed, f64* removed_weights, u8* found, const i64* added_at, const i64* added, const f64* added_weights, i64 at, i64* new_begins,
                 i64* new_ends, f64* sums) {
    // Return which of the entries first .. last - 1 to remove matches and has removed none; `last` if none does.
    auto find = [&](i64 first, i64 last, i64 index, f64 weight) {
        i64 end = last;
        while (first < end) {
            i64 middle = first + (end - first) / 2;
            if (removed[middle] < index) first = middle + 1;
            else end = middle;
        }
        auto matches = [&](f64 wanted) { return isnan(wanted) || wanted == weight; };
        for (; first < last && removed[first] == index; first++)
            if (!found[first] && (!weights || matches(removed_weights[first]))) return first;
        return last;
    };
    // Whether an index to remove is b modulo FILTER_SIZE. Most entries are therefore kept without a search.
    u8 may_be_removed[FILTER_SIZE] = {0};
    for (i64 i = 0; i < changed; i++) {
        i64 row = rows[i], first = removed_at[i], last = removed_at[i + 1];
        CompensatedSum sum;
        auto write = [&](Index index, f64 weight) {
            indices[at] = index;
            if (weights) weights[at] = weight, sum.add(weight);
            at++;
        };
        new_begins[i] = at;
        for (i64 k = first; k < last; k++) may_be_removed[u64(removed[k]) % FILTER_SIZE] = 1;
        for (i64 edge = begins[row]; edge < ends[row]; edge++) {
            Index index = indices[edge];
            f64 weight = weights ? weights[edge] : 0;
            i64 match = may_be_removed[index % FILTER_SIZE] ? find(first, last, i64(index), weight) : last;
            if (match < last) {
                found[match] = 1;
                if (weights) removed_weights[match] = weight;
                continue;
            }
            write(index, weight);
        }
        for (i64 k = first; k < last; k++) may_be_removed[u64(removed[k]) % FILTER_SIZE] = 0;
        for (i64 k = added_at[i]; k < added_at[i + 1]; k++) write(Index(added[k]), weights ? added_weights[k] : 0);
        new_ends[i] = at;
        sums[i] = weights ? sum.value() : f64(at - new_begins[i]);
    }
    return at;
}
EXPORT_INDICES(rewrite_rows)

// Copy rows to the positions that `offsets` gives them. Rows that follow each other in the buffer, as most do, are copied
// together.
template <class Index, class New>
i64 compact_rows(i64 n, i64, i64, const i64* begins, const i64* ends, const Index* indices, const f64* weights,
                 const i64* offsets, New* new_indices, f64* new_weights, i64 threads) {
    return Team(threads).for_each((n + PIECE_ROWS - 1) / PIECE_ROWS, [&](i64 piece) {
        for (i64 row = piece * PIECE_ROWS, last = least(row + PIECE_ROWS, n); row < last;) {
            i64 at = offsets[row], begin = begins[row], end = ends[row];
            for (row++; row < last && begins[row] == end; row++) end = ends[row];
            for (i64 k = 0; k < end - begin; k++) new_indices[at + k] = New(indices[begin + k]);
            if (weights && end > begin) memcpy(new_weights + at, weights + begin, (end - begin) * sizeof(f64));
        }
    });
}
EXPORT_PAIRS(compact_rows)

// Set the positions of the rewritten rows, out-weights, reference exponents and the number of edges.
//
// One call that asks for no signals, so that an interrupt from the keyboard cannot leave part of it undone.
EXPORT commit_rows(i64 changed, i64, const i64* rows, const i64* new_begins, const i64* new_ends, i64* begins,
                   i64* ends, f64* out_weight, const f64* new_out_weight, i64* references, const i64* new_references,
                   i64* count, i64 count_change) {
    count[0] += count_change;
    for (i64 i = 0; i < changed; i++) {
        begins[rows[i]] = new_begins[i];
        ends[rows[i]] = new_ends[i];
        out_weight[rows[i]] = new_out_weight[i];
        if (references && new_references) references[rows[i]] = new_references[i];
    }
    return 0;
}
