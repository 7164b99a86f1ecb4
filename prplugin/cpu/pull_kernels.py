"""Kernels of the Numba method: single-threaded loops that release the GIL, cached on disk.

The vector is partitioned into blocks of `BLOCK` rows, each with its own sums, so that results do not depend on the
number of threads.

Offsets and positions are unsigned: Numba checks signed indices for negative values, which takes half again as long.
"""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled, take
from prplugin.types.edges import Integers

GROUP = 32
"""Rows whose norms are added in one plain loop; the group sums are then added per block."""

BLOCK = GROUP * GROUP
"""Rows per block: `GROUP` groups of `GROUP` rows."""

ZERO, ONE = np.uint64(0), np.uint64(1)

NO_MOVES = np.empty(0, np.float32)
"""In place of the moves where none are kept, so that one compiled kernel serves both."""


def block_depth() -> int:
    """Return the most additions that a row's change or rank goes through in the sums of its block."""
    return 2 * GROUP


def as_unsigned(offsets: Integers, sources: Integers) -> tuple[Integers, Integers]:
    """Return views of both arrays as unsigned integers."""
    return offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")


@compiled
def step(
    pieces, taken, offsets, sources, normalized_weights, fan_in, inverse_out_weight, contributions, alpha,
    mass, target,
    teleport,
    ranks, next_contributions, moves, skip_dangling, sums,
):  # fmt: skip
    """Compute one iteration over the rows of the pieces that this thread takes: ranges of blocks.

    y_i = alpha * (sum of c over the in-edges of i) + mass * w_i + t_i, where mass = alpha * D and t = (1 - alpha) * v;
    then c_i = y_i * inverse_out_weight_i for the next iteration, where inverse_out_weight is 0 for dangling rows.
    `target` (w) and `teleport` (t) have n entries, or one for all rows. Block b writes ||y - x||, max |y - x| and D(y)
    of its rows to `sums[b]`. `moves` receives y - x, unless it is empty. With `skip_dangling`, ||y - x|| excludes
    dangling rows.

    One loop nest without calls compiles in half the time of one that calls a function for the row sum.
    """
    n = ranks.size
    target_step = ONE if target.size == n else ZERO
    teleport_step = ONE if teleport.size == n else ZERO
    piece = take(taken)
    while piece < len(pieces):
        for block in range(pieces[piece, 0], pieces[piece, 1]):
            change, largest, dangling = 0.0, 0.0, 0.0
            for group in range(block * BLOCK, min(block * BLOCK + BLOCK, n), GROUP):
                group_change, group_dangling = 0.0, 0.0
                for i in range(np.uint64(group), np.uint64(min(group + GROUP, n))):
                    edge, end = offsets[i], offsets[i + ONE]
                    row_sum, groups_sum, groups = 0.0, 0.0, 0
                    while True:
                        stop = edge + fan_in if end - edge > fan_in else end
                        term = 0.0
                        while edge < stop:
                            if normalized_weights is None:
                                term += contributions[sources[edge]]
                            else:
                                term += contributions[sources[edge]] * normalized_weights[edge]
                            edge += ONE
                        groups_sum += term
                        if edge == end:
                            break
                        groups += 1
                        if groups == fan_in:
                            row_sum += groups_sum
                            groups_sum, groups = 0.0, 0
                    row_sum += groups_sum
                    rank = alpha * row_sum + (mass * target[i * target_step] + teleport[i * teleport_step])
                    move = rank - ranks[i]
                    if moves.size > 0:
                        moves[i] = move
                    move = abs(move)
                    inverse_weight = inverse_out_weight[i]
                    group_change += 0.0 if skip_dangling and inverse_weight == 0.0 else move
                    largest = max(largest, move)
                    group_dangling += rank if inverse_weight == 0.0 else 0.0
                    next_contributions[i] = rank * inverse_weight
                    ranks[i] = rank
                change += group_change
                dangling += group_dangling
            sums[block, 0] = change
            sums[block, 1] = largest
            sums[block, 2] = dangling
        piece = take(taken)


@compiled
def row_sums(first, last, offsets, sources, normalized_weights, fan_in, vertices, contributions, sums):
    """Write the row sums of c (times the normalized weight) for the rows from `first` to `last`.

    The sum of row i is that of vertex ``vertices[i]``.
    The order of additions is that of `prplugin.cpu.sums.GroupSums`: pieces of `fan_in` terms, and of `fan_in`
    piece sums.
    """
    edge = offsets[first]
    for i in range(np.uint64(first), np.uint64(last)):
        end = offsets[i + ONE]
        if end - edge <= fan_in:  # separate loop: a quarter less time on graphs with short rows
            term = 0.0
            while edge < end:
                if normalized_weights is None:
                    term += contributions[sources[edge]]
                else:
                    term += contributions[sources[edge]] * normalized_weights[edge]
                edge += ONE
            sums[vertices[i]] = term
            continue
        row_sum, groups_sum, groups = 0.0, 0.0, 0
        while True:
            stop = edge + fan_in if end - edge > fan_in else end
            term = 0.0
            while edge < stop:
                if normalized_weights is None:
                    term += contributions[sources[edge]]
                else:
                    term += contributions[sources[edge]] * normalized_weights[edge]
                edge += ONE
            groups_sum += term
            if edge == end:
                break
            groups += 1
            if groups == fan_in:
                row_sum += groups_sum
                groups_sum, groups = 0.0, 0
        sums[vertices[i]] = row_sum + groups_sum
