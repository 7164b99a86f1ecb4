"""Numba kernels that rewrite rows of a sparse matrix: see `prplugin.graph.update`.

Row v holds ``indices[begins[v]:ends[v]]`` and the `weights` at the same positions; rows are in no particular order, and
`weights` is None in an unweighted graph.
"""

from __future__ import annotations

import math

import numpy as np

from prplugin.cpu.compensated import two_sum
from prplugin.cpu.memory import compiled

FILTER_SIZE = 1 << 12
"""Number of flags by which edges to remove are searched for: they fit in the L1 cache."""


@compiled
def find_pairs(rows, columns, begins, ends, indices, found):
    """Set ``found[i]`` to whether row ``rows[i]`` has an entry in column ``columns[i]``."""
    for i in range(rows.size):
        found[i] = False
        for edge in range(begins[rows[i]], ends[rows[i]]):
            if indices[edge] == columns[i]:
                found[i] = True
                break


@compiled
def rewrite(
    rows, begins, ends, indices, weights, powers, removed_at, removed, removed_weights, found,
    added_at, added, added_weights, at, new_begins, new_ends,
):  # fmt: skip
    """Write the changed rows to the buffer from position `at` on, and return the position after the last entry.

    Entries before `at` are not altered. The entries to remove from row i are ``removed[removed_at[i]:removed_at[i+1]]``
    in ascending order, each with the weight in `removed_weights`; a NaN matches any weight and is replaced by the one
    that was removed. `found` marks the entries to remove that exist. Unless `powers` is None, the remaining entries are
    divided by 2 to the power of their row. Added entries follow them.
    """
    # Whether an index to remove is b modulo FILTER_SIZE. Most entries are therefore kept without a search.
    may_be_removed = np.zeros(FILTER_SIZE, np.bool_)
    last_bits = np.uint64(FILTER_SIZE - 1)
    for i in range(rows.size):
        row, new_begins[i] = np.uint64(rows[i]), at
        first, last = removed_at[i], removed_at[i + 1]
        for position in range(first, last):
            may_be_removed[np.uint64(removed[position]) & last_bits] = True
        for edge in range(np.uint64(begins[row]), np.uint64(ends[row])):
            index, match = indices[edge], last
            if may_be_removed[np.uint64(index) & last_bits]:
                low = first + np.searchsorted(removed[first:last], index)
                while low < last and removed[low] == index:
                    if not found[low]:
                        wanted = 0.0 if weights is None else removed_weights[low]
                        if weights is None or np.isnan(wanted) or wanted == weights[edge]:
                            match = low
                            break
                    low += 1
            if match < last:
                found[match] = True
                if weights is not None:
                    removed_weights[match] = weights[edge]
            else:
                indices[np.uint64(at)] = index
                if weights is not None:
                    weights[at] = weights[edge] if powers is None else math.ldexp(weights[edge], -powers[row])
                at += 1
        for position in range(first, last):
            may_be_removed[np.uint64(removed[position]) & last_bits] = False
        for position in range(added_at[i], added_at[i + 1]):
            indices[at] = added[position]
            if weights is not None:
                weights[at] = added_weights[position]
            at += 1
        new_ends[i] = at
    return at


@compiled
def sum_rows(begins, ends, weights, sums):
    """Compute the compensated sum of the weights of each row; without weights, count the entries."""
    for i in range(begins.size):
        if weights is None:
            sums[i] = ends[i] - begins[i]
            continue
        total, errors = 0.0, 0.0
        for edge in range(begins[i], ends[i]):
            total, error = two_sum(total, weights[edge])
            errors += error
        sums[i] = total + errors


@compiled
def compact(first, last, begins, ends, indices, weights, offsets, new_indices, new_weights):
    """Copy rows `first` to `last` - 1 to the positions that `offsets` gives them in the new arrays.

    Rows that follow each other in the buffer, as most do, are copied together.
    """
    row = first
    while row < last:
        at, begin, end = offsets[row], begins[row], ends[row]
        row += 1
        while row < last and begins[row] == end:
            end = ends[row]
            row += 1
        new_indices[at : at + end - begin] = indices[begin:end]
        if weights is not None:
            new_weights[at : at + end - begin] = weights[begin:end]


@compiled
def commit(
    rows, new_begins, new_ends, begins, ends, out_weight, new_out_weight, references, new_references, count,
    count_change,
):  # fmt: skip
    """Set the positions of the rewritten rows, out-weights, reference exponents and the number of edges.

    One compiled call, so that an interrupt from the keyboard cannot leave part of it undone.
    """
    count[0] += count_change
    for i in range(rows.size):
        begins[rows[i]], ends[rows[i]] = new_begins[i], new_ends[i]
        out_weight[rows[i]] = new_out_weight[i]
        if references is not None:
            references[rows[i]] = new_references[i]
