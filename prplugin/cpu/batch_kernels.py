"""The kernels of `_numba_batch`: single-threaded loops that release the GIL, cached on disk.

Ranks and the like are matrices with a row a vertex and a column a seed, as vectors. Loops over columns have few arrays
each, for else they are not made of vector instructions.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.extending import register_jitable

from prplugin.cpu.lanes import add_edges, add_places

__all__ = [
    "BLOCK",
    "GROUP",
    "begin",
    "land",
    "lay_out",
    "narrow",
    "spread",
    "step",
    "sweep",
    "swept_at",
    "turn",
    "widen",
]

GROUP = 32
"""Rows whose norms are added up in a plain loop before their sum goes up a level."""

BLOCK = GROUP * GROUP
"""Rows whose norms are added up in one block."""

FEW = 64
"""Rows that are swept in one go: those of even number, then those of odd number: as in `_sweep_kernels`."""

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
LAST, HALF = np.uint64(FEW - 1), np.uint64(FEW // 2)

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def begin(first_block, last_block, outflow, whole, ranks, contributions, sums):
    """Divide the ranks of each column by its `whole`; contributions of the first step, and D in `sums[b]`."""
    width, n = np.uint64(whole.size), outflow.size
    group_dangling = np.empty(width)
    for block in range(first_block, last_block):
        dangling = sums[block, 2]
        dangling[:] = 0.0
        for group in range(block * BLOCK, min(block * BLOCK + BLOCK, n), GROUP):
            group_dangling[:] = 0.0
            for i in range(np.uint64(group), np.uint64(min(group + GROUP, n))):
                flow, at = outflow[i], i * width
                for j in range(width):
                    ranks[at + j] /= whole[j]
                for j in range(width):
                    contributions[at + j] = ranks[at + j] * flow
                if flow == 0.0:
                    for j in range(width):
                        group_dangling[j] += ranks[at + j]
            for j in range(width):
                dangling[j] += group_dangling[j]


@compiled
def step(
    first_block, last_block, offsets, sources, shares, fan, outflow, contributions, lanes, alpha, mass, target, pour,
    entry_blocks, entry_rows, entry_columns, entry_values, live, ranks, next_contributions, moves, sums,
):  # fmt: skip
    """One iteration over the rows of some blocks, of all columns side by side.

    y_ij = alpha * (sum of c_j over the in-edges of i) + mass_j * w_i + pour_j * v_ij, and c_ij = y_ij * outflow_i for
    the next, where outflow is 0 on dangling rows. The v are given by entries, by row; those of block b begin at
    ``entry_blocks[b]``. `target` is w, or a 0 for all: then w is v, and its part is in `pour`. Columns that are not
    `live` stay what they are. `next_contributions` and `moves`, which takes y - x, may be None. Block b leaves
    ||y - x||, max |y - x| and D(y) of its rows in `sums[b]`.

    Long rows are summed in groups of `fan` terms, these in groups of `fan` again, and the rest one after the other.
    """
    width, n, target_step = np.uint64(live.size), outflow.size, np.uint64(target.size > 1)
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
                    move[j] = now - before
                if moves is not None:
                    for j in range(width):
                        moves[at + j] = move[j]
                for j in range(width):
                    group_change[j] += abs(move[j])
                for j in range(width):
                    largest[j] = abs(move[j]) if abs(move[j]) > largest[j] else largest[j]
                flow = outflow[i]
                if next_contributions is not None:
                    for j in range(width):
                        next_contributions[at + j] = rank[j] * flow
                if flow == 0.0:
                    for j in range(width):
                        group_dangling[j] += rank[j]
            for j in range(width):
                change[j] += group_change[j]
            for j in range(width):
                dangling[j] += group_dangling[j]


@register_jitable
def swept_at(row):
    """Give a number that ascends in the order in which the rows of a piece are swept."""
    return row & ~LAST | (row & ONE) * HALF | (row & LAST) >> ONE


@compiled
def lay_out(first, last, ready, turns, offsets, sources, weights, out_weight, places, shares, loops):
    """Write where rows `first` to `last` read their sources: places in two iterates, of n + 1 vertices each.

    A row reads new values of sources that are swept before it in this piece, or whose turn is below `ready`, and old
    values of others. An edge from a vertex to itself reads the 0 that follows the n old values; `loops` takes how much
    of a rank goes to itself.
    """
    n = np.uint64(loops.size)
    first, last = np.uint64(first), np.uint64(last)
    for i in range(first, last):
        stays = 0.0
        for edge in range(offsets[i], offsets[i + ONE]):
            source = np.uint64(sources[edge])
            before = (first <= source) & (source < last) & (swept_at(source) < swept_at(i))
            is_new = before | (turns[source] < ready)
            places[edge] = n if source == i else source + n + ONE if is_new else source
            if weights is None:
                stays += 1.0 if source == i else 0.0
            else:
                whole = out_weight[source]
                share = weights[edge] / whole if whole > 0.0 else 0.0
                shares[edge] = share
                stays += share if source == i else 0.0
        loops[i] = stays if weights is not None or stays == 0.0 else stays / out_weight[i]


@compiled
def sweep(
    first, last, offsets, places, shares, old, new, lanes, alpha, mass, target, pour, entry, entries, entry_rows,
    entry_columns, entry_values, moves, live, scale, out, sums,
):  # fmt: skip
    """Write new contributions of rows `first` to `last`, as `_sweep_kernels.sweep` does of one vector: see `lay_out`.

    c_ij = (alpha * (sum of c_j over the in-edges of i) + mass_j * w_i + pour_j * v_ij + r_ij) * scale_i. `target` and
    entries are as those of `step`, in the order in which rows are swept, from `entry` to `entries`; `moves` is r, or
    None for 0. Columns that are not `live` stay what they are. All is in float32 but what `sums` takes of each column:
    what the values of rows that are not dangling change, in L1; what these sum to; and what those of dangling rows do.
    """
    width, target_step = np.uint64(live.size), np.uint64(target.size > 1)
    pulled, c, move = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    few_change, few_flowing = np.empty(width, np.float32), np.empty(width, np.float32)
    change, flowing, dangling = sums[0], sums[1], sums[2]
    change[:], flowing[:], dangling[:] = 0.0, 0.0, 0.0
    start, last = np.uint64(first), np.uint64(last)
    while start < last:
        few_change[:], few_flowing[:] = 0.0, 0.0
        end = min((start | LAST) + ONE, last)
        for odd in range(ZERO, TWO):
            for i in range(start + ((start ^ odd) & ONE), end, TWO):
                at, to = i * width, target[i * target_step]
                add_places(old, new, places, shares, offsets[i], offsets[i + ONE], lanes, pulled)  # type: ignore[call-arg]
                for j in range(width):
                    c[j] = alpha * pulled[j] + mass[j] * to
                if moves is not None:
                    for j in range(width):
                        c[j] += moves[at + j]
                while entry < entries and entry_rows[entry] == i:
                    c[entry_columns[entry]] += pour[entry_columns[entry]] * entry_values[entry]
                    entry += 1
                its_scale, wide = scale[i], out[i]
                for j in range(width):
                    before = old[at + j]
                    now = c[j] * its_scale if live[j] else before
                    new[at + j] = now
                    c[j] = now
                    move[j] = now - before
                if wide == 0:
                    for j in range(width):
                        dangling[j] += c[j]
                else:
                    for j in range(width):
                        few_change[j] += abs(move[j]) * wide
                    for j in range(width):
                        few_flowing[j] += c[j] * wide
        for j in range(width):
            change[j] += few_change[j]
        for j in range(width):
            flowing[j] += few_flowing[j]
        start = end


@compiled
def narrow(first_block, last_block, wide, width, columns, few):
    """Copy some columns of the rows of some blocks to a matrix that has no others."""
    for i in range(first_block * BLOCK, min(last_block * BLOCK, few.size // columns.size)):
        for j in range(columns.size):
            few[i * columns.size + j] = wide[i * width + columns[j]]


@compiled
def widen(first_block, last_block, few, columns, width, wide):
    """Copy them back."""
    for i in range(first_block * BLOCK, min(last_block * BLOCK, few.size // columns.size)):
        for j in range(columns.size):
            wide[i * width + columns[j]] = few[i * columns.size + j]


@compiled
def land(first_block, last_block, iterate, whole, moves, live, ranks, sums):
    """Go from x + r to x + d: `iterate` holds d as contributions, `moves` r.

    Where `moves` is None, x and r are 0. ``sums[b, 0]`` takes what ranks sum to.
    """
    width, n = np.uint64(live.size), whole.size
    group_sum = np.empty(width)
    for block in range(first_block, last_block):
        block_sum = sums[block, 0]
        block_sum[:] = 0.0
        for group in range(block * BLOCK, min(block * BLOCK + BLOCK, n), GROUP):
            group_sum[:] = 0.0
            for i in range(np.uint64(group), np.uint64(min(group + GROUP, n))):
                at, its_whole = i * width, whole[i]
                if moves is None:
                    for j in range(width):
                        ranks[at + j] = np.float64(iterate[at + j]) * its_whole
                else:
                    for j in range(width):
                        before = ranks[at + j]
                        rank = before + (np.float64(iterate[at + j] * its_whole) - moves[at + j])
                        rank = rank if rank > 0.0 else 0.0
                        ranks[at + j] = rank if live[j] else before
                for j in range(width):
                    group_sum[j] += ranks[at + j]
            for j in range(width):
                block_sum[j] += group_sum[j]


@compiled
def spread(first_block, last_block, outflow, whole, moves, iterate, sums):
    """Write r, held in `moves`, as contributions; `sums[b]` takes ||r||, what r sums to, and that of dangling rows."""
    width, n = np.uint64(sums.shape[2]), whole.size
    for block in range(first_block, last_block):
        norm, flowing, dangling = sums[block, 0], sums[block, 1], sums[block, 2]
        norm[:], flowing[:], dangling[:] = 0.0, 0.0, 0.0
        for i in range(np.uint64(block * BLOCK), np.uint64(min(block * BLOCK + BLOCK, n))):
            at, its_whole = i * width, whole[i]
            for j in range(width):
                norm[j] += abs(moves[at + j])
            for j in range(width):
                iterate[at + j] = moves[at + j] / its_whole
            if outflow[i] == 0.0:
                for j in range(width):
                    dangling[j] += moves[at + j]
            else:
                for j in range(width):
                    flowing[j] += moves[at + j]


@compiled
def turn(first_block, last_block, ranks, width, turned):
    """Write the rows of some blocks as columns, a few at a time, which stay in the cache."""
    seeds, n = turned.shape
    for group in range(first_block * BLOCK, min(last_block * BLOCK, n), GROUP):
        for seed in range(seeds):
            for i in range(group, min(group + GROUP, n)):
                turned[seed, i] = ranks[i * width + seed]
