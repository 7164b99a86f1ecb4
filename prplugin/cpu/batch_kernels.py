"""Kernels for many seeds: single-threaded loops that release the GIL, cached on disk.

Ranks and contributions are matrices with one row per vertex and one column per seed, passed as flat arrays. Loops over
columns use few arrays each, since LLVM does not vectorize loops over many.
"""

from __future__ import annotations

import numba
import numpy as np

from prplugin.cpu.memory import OPTIONS, compiled, prefetch

vectorized = numba.njit(**OPTIONS, fastmath={"reassoc", "contract", "nsz"})

GROUP = 32
"""Rows whose norms are added in one plain loop; the group sums are then added per block."""

BLOCK = GROUP * GROUP
"""Rows per block: `GROUP` groups of `GROUP` rows."""

AHEAD = np.uint64(16)
"""Edges ahead of the current one whose contributions are prefetched."""

LINE = 64
"""Bytes per cache line."""

ZERO, ONE = np.uint64(0), np.uint64(1)


@compiled
def _add_edges(contributions, sources, normalized_weights, edge, stop, sums):
    """Add the terms of the in-edges `edge` to `stop` to the sums of all columns.

    Rows of contributions are prefetched, since hardware prefetchers do not predict their addresses.
    """
    width, last = np.uint64(sums.size), np.uint64(sources.size - 1)
    line = np.uint64(LINE // contributions.itemsize)
    for current in range(edge, stop):
        ahead = np.uint64(sources[min(current + AHEAD, last)]) * width
        for j in range(ZERO, width, line):
            prefetch(contributions, ahead + j)  # type: ignore[call-arg]
        first = np.uint64(sources[current]) * width
        if normalized_weights is None:
            for j in range(ZERO, width):
                sums[j] += contributions[first + j]
        else:
            normalized_weight = normalized_weights[current]
            for j in range(ZERO, width):
                sums[j] += contributions[first + j] * normalized_weight


@compiled
def step(
    first_block, last_block, offsets, sources, normalized_weights, fan_in, inverse_out_weight, contributions, mass,
    target, teleport_factor, teleport, teleport_rows, live, ranks, next_contributions, moves, sums,
):  # fmt: skip
    """Compute one iteration over the rows of some blocks, for all columns.

    y_ij = (sum of c_j over the in-edges of i) + mass_j * w_i + teleport_factor_j * v_ij, and c_ij = y_ij *
    inverse_out_weight_i for the next iteration, where inverse_out_weight is alpha / W, and 0 for dangling rows. Row i
    of v is row ``teleport_rows[i]`` of `teleport`, or 0 if that is negative. `target` is w, or empty where w = v; the
    dangling mass is then part of `teleport_factor`. Columns that are not `live` keep their ranks. `moves` receives
    y - x, unless it is empty. Block b writes ||y - x||, max |y - x| and D(y) of its rows to `sums[b]`.

    Row sums have three levels: groups of `fan_in` terms, groups of `fan_in` group sums, and the rest in order.
    """
    width, n = np.uint64(live.size), inverse_out_weight.size
    row_sums, part, groups_sum = np.empty(width), np.empty(width), np.empty(width)
    group_change, group_dangling = np.empty(width), np.empty(width)
    for block in range(first_block, last_block):
        change, largest, dangling = sums[block, 0], sums[block, 1], sums[block, 2]
        change[:], largest[:], dangling[:] = 0.0, 0.0, 0.0
        for group in range(block * BLOCK, min(block * BLOCK + BLOCK, n), GROUP):
            group_change[:], group_dangling[:] = 0.0, 0.0
            for i in range(np.uint64(group), np.uint64(min(group + GROUP, n))):
                edge, end, at = offsets[i], offsets[i + ONE], i * width
                part[:] = 0.0
                if end - edge <= fan_in:
                    _add_edges(contributions, sources, normalized_weights, edge, end, part)
                else:
                    row_sums[:], groups_sum[:] = 0.0, 0.0
                    groups = 0
                    while edge < end:
                        stop = edge + fan_in if end - edge > fan_in else end
                        _add_edges(contributions, sources, normalized_weights, edge, stop, part)
                        groups_sum += part
                        part[:] = 0.0
                        edge = stop
                        groups += 1
                        if groups == fan_in:
                            row_sums += groups_sum
                            groups_sum[:] = 0.0
                            groups = 0
                    part[:] = row_sums + groups_sum
                if target.size > 0:
                    for j in range(ZERO, width):
                        part[j] += mass[j] * target[i]
                if teleport_rows[i] >= 0:
                    teleport_at = np.uint64(teleport_rows[i]) * width
                    for j in range(ZERO, width):
                        part[j] += teleport_factor[j] * teleport[teleport_at + j]
                for j in range(ZERO, width):
                    before = ranks[at + j]
                    now = part[j] if live[j] else before
                    ranks[at + j] = now
                    part[j] = now - before
                if moves.size > 0:
                    for j in range(ZERO, width):
                        moves[at + j] = part[j]
                for j in range(ZERO, width):
                    move = abs(part[j])
                    group_change[j] += move
                    largest[j] = move if move > largest[j] else largest[j]
                inverse_weight = inverse_out_weight[i]
                if inverse_weight == 0.0:
                    for j in range(ZERO, width):
                        next_contributions[at + j] = 0.0
                        group_dangling[j] += ranks[at + j]
                else:
                    for j in range(ZERO, width):
                        next_contributions[at + j] = ranks[at + j] * inverse_weight
            for j in range(ZERO, width):
                change[j] += group_change[j]
            for j in range(ZERO, width):
                dangling[j] += group_dangling[j]


@vectorized
def products(first, last, moves, rows, width, buffer, sums):
    """Add the dot products of the moves `rows`, over vertices `first` to `last`, to ``sums[i, j]`` for i >= j.

    Each column has its own products. A row of `moves` is an n x `width` matrix. `buffer` holds ``rows.size`` x `width`
    float64.
    """
    for i in range(np.uint64(first), np.uint64(last)):
        at = i * width
        for k in range(rows.size):
            row = moves[rows[k]]
            for j in range(ZERO, width):
                buffer[k, j] = row[at + j]
        for k in range(rows.size):
            for other in range(k + 1):
                for j in range(ZERO, width):
                    sums[k, other, j] += buffer[k, j] * buffer[other, j]


@vectorized
def mix(first, last, ranks, moves, weights, jump, buffer, sums):
    """Replace ranks y by z = max(y - weights @ moves, 0) per column, write z - y to `jump`, add z to `sums`."""
    width = np.uint64(weights.shape[1])
    for i in range(np.uint64(first), np.uint64(last)):
        at = i * width
        for j in range(ZERO, width):
            buffer[j] = ranks[at + j]
        for k in range(weights.shape[0]):
            row = moves[k]
            for j in range(ZERO, width):
                buffer[j] -= weights[k, j] * row[at + j]
        for j in range(ZERO, width):
            buffer[j] = buffer[j] if buffer[j] > 0.0 else 0.0
        for j in range(ZERO, width):
            jump[at + j] = buffer[j] - ranks[at + j]
        for j in range(ZERO, width):
            ranks[at + j] = buffer[j]
            sums[j] += buffer[j]


@compiled
def transpose(first_block, last_block, ranks, width, transposed):
    """Transpose the rows of some blocks, `GROUP` rows at a time, which stay in the cache."""
    seeds, n = transposed.shape
    for group in range(first_block * BLOCK, min(last_block * BLOCK, n), GROUP):
        for seed in range(seeds):
            for i in range(group, min(group + GROUP, n)):
                transposed[seed, i] = ranks[i * width + seed]
