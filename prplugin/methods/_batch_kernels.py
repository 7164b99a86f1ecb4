"""The kernel of `_numba_batch`: a single-threaded loop that releases the GIL, cached on disk."""

from __future__ import annotations

import numba
import numpy as np

from prplugin.methods._lanes import add_edges

__all__ = ["BLOCK", "GROUP", "sweep"]

GROUP = 32
"""Rows whose norms are added up in a plain loop before their sum goes up a level."""

BLOCK = GROUP * GROUP
"""Rows whose norms are added up in one block."""

ONE = np.uint64(1)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sweep(
    first_block, last_block, offsets, sources, shares, fan, outflow, contributions, lanes, alpha, mass, target, pour,
    entry_blocks, entry_rows, entry_columns, entry_values, live, ranks, next_contributions, sums,
):  # fmt: skip
    """One iteration over the rows of some blocks, of all columns side by side.

    y_ij = alpha * (sum of c_j over the in-edges of i) + mass_j * w_i + pour_j * v_ij, and c_ij = y_ij * outflow_i for
    the next, where outflow is 0 on dangling rows. The v are given by entries, by row; those of block b begin at
    ``entry_blocks[b]``. `target` is w, or None: then w is v, and its part is in `pour`. Columns that are not `live`
    stay what they are. Block b leaves ||y - x||, max |y - x| and D(y) of its rows in `sums[b]`.

    Long rows are summed in groups of `fan` terms, these in groups of `fan` again, and the rest one after the other.
    Loops over columns have few arrays each, for else they are not made of vectors.
    """
    width = np.uint64(live.size)
    n = outflow.size
    target_step = ONE if target is not None and target.size == n else np.uint64(0)
    pulled, part, groups_sum = np.empty(width), np.empty(width), np.empty(width)
    rank, move = np.empty(width), np.empty(width)
    group_change, group_dangling = np.empty(width), np.empty(width)
    for block in range(first_block, last_block):
        change, largest, dangling = sums[block, 0], sums[block, 1], sums[block, 2]
        change[:], largest[:], dangling[:] = 0.0, 0.0, 0.0
        entry, entries = entry_blocks[block], entry_blocks[block + 1]
        for group in range(block * BLOCK, min(block * BLOCK + BLOCK, n), GROUP):
            group_change[:], group_dangling[:] = 0.0, 0.0
            for i in range(np.uint64(group), np.uint64(min(group + GROUP, n))):
                edge, end, at = offsets[i], offsets[i + ONE], i * width
                if end - edge <= fan:
                    add_edges(contributions, sources, shares, edge, end, lanes, pulled)  # type: ignore[call-arg]
                else:
                    pulled[:], groups_sum[:] = 0.0, 0.0
                    groups = 0
                    while edge < end:
                        stop = edge + fan if end - edge > fan else end
                        add_edges(contributions, sources, shares, edge, stop, lanes, part)  # type: ignore[call-arg]
                        for j in range(width):
                            groups_sum[j] += part[j]
                        edge = stop
                        groups += 1
                        if groups == fan:
                            for j in range(width):
                                pulled[j] += groups_sum[j]
                            groups_sum[:] = 0.0
                            groups = 0
                    for j in range(width):
                        pulled[j] += groups_sum[j]
                if target is None:
                    for j in range(width):
                        rank[j] = alpha * pulled[j]
                else:
                    to = target[i * target_step]
                    for j in range(width):
                        rank[j] = alpha * pulled[j] + mass[j] * to
                while entry < entries and entry_rows[entry] == i:
                    rank[entry_columns[entry]] += pour[entry_columns[entry]] * entry_values[entry]
                    entry += 1
                for j in range(width):
                    before = ranks[at + j]
                    now = rank[j] if live[j] else before
                    rank[j] = now
                    ranks[at + j] = now
                    move[j] = abs(now - before)
                for j in range(width):
                    group_change[j] += move[j]
                for j in range(width):
                    largest[j] = move[j] if move[j] > largest[j] else largest[j]
                flow = outflow[i]
                for j in range(width):
                    next_contributions[at + j] = rank[j] * flow
                if flow == 0.0:
                    for j in range(width):
                        group_dangling[j] += rank[j]
            for j in range(width):
                change[j] += group_change[j]
            for j in range(width):
                dangling[j] += group_dangling[j]
