"""Rows of a sparse matrix that change, compiled by Numba: see `prplugin.graph.update`."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled

__all__ = ["commit", "compact", "find", "rewrite", "sums"]


@compiled
def find(rows, wanted, begins, ends, members, found):
    """Mark the pairs of a row and a member that are there."""
    for i in range(rows.size):
        found[i] = False
        for edge in range(begins[rows[i]], ends[rows[i]]):
            if members[edge] == wanted[i]:
                found[i] = True
                break


@compiled
def rewrite(
    rows, begins, ends, members, weights, removed_at, removed, removed_weights, taken, added_at, added, added_weights,
    at, new_begins, new_ends,
):  # fmt: skip
    """Write changed rows from `at` on, and return where they end; what is there already stays.

    Entries of row i to remove are ``removed[removed_at[i]:removed_at[i + 1]]``, ascending, of a given weight or, where
    that is NaN, of any, which it becomes; those found are marked in `taken`. Entries to add come last.
    """
    for i in range(rows.size):
        new_begins[i] = at
        first, last = removed_at[i], removed_at[i + 1]
        for edge in range(begins[rows[i]], ends[rows[i]]):
            member, match = members[edge], last
            low, high = first, last
            while low < high:
                middle = (low + high) // 2
                if removed[middle] < member:
                    low = middle + 1
                else:
                    high = middle
            while low < last and removed[low] == member:
                if not taken[low]:
                    wanted = 0.0 if weights is None else removed_weights[low]
                    if weights is None or np.isnan(wanted) or wanted == weights[edge]:
                        match = low
                        break
                low += 1
            if match < last:
                taken[match] = True
                if weights is not None:
                    removed_weights[match] = weights[edge]
            else:
                members[at] = member
                if weights is not None:
                    weights[at] = weights[edge]
                at += 1
        for place in range(added_at[i], added_at[i + 1]):
            members[at] = added[place]
            if weights is not None:
                weights[at] = added_weights[place]
            at += 1
        new_ends[i] = at
    return at


@compiled
def sums(begins, ends, weights, out):
    """Add up the weights of each row with Neumaier's compensation; without weights, count them."""
    for i in range(begins.size):
        if weights is None:
            out[i] = ends[i] - begins[i]
            continue
        whole, error = 0.0, 0.0
        for edge in range(begins[i], ends[i]):
            after = whole + weights[edge]
            if whole >= weights[edge]:
                error += (whole - after) + weights[edge]
            else:
                error += (weights[edge] - after) + whole
            whole = after
        out[i] = whole + error


@compiled
def compact(first, last, begins, ends, members, weights, offsets, to_members, to_weights):
    """Copy some rows, one after the other."""
    for row in range(first, last):
        at = np.uint64(offsets[row])
        for edge in range(np.uint64(begins[row]), np.uint64(ends[row])):
            to_members[at] = members[edge]
            if weights is not None:
                to_weights[at] = weights[edge]
            at += np.uint64(1)


@compiled
def commit(
    rows, new_begins, new_ends, begins, ends, columns, new_firsts, new_lasts, firsts, lasts, out_weight, new, count,
    gained,
):  # fmt: skip
    """Let rows and columns begin and end elsewhere, and take new out-weights: in one call, which nothing interrupts."""
    count[0] += gained
    for i in range(rows.size):
        begins[rows[i]], ends[rows[i]] = new_begins[i], new_ends[i]
        out_weight[rows[i]] = new[i]
    for i in range(columns.size):
        firsts[columns[i]], lasts[columns[i]] = new_firsts[i], new_lasts[i]
