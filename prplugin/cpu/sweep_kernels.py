"""Kernels of `prplugin.methods.engines.sweeps`: single-threaded loops that release the GIL, cached on disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.memory import compiled

GROUP = 4
"""Edges added with independent accumulators; the edges of each vertex are padded to a multiple of this."""

RED_BLACK_GROUP = 64
"""Vertices per red-black group: those of even index are swept before those of odd index.

A vertex that read the result of the one just before it would stall on that dependency.
"""

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))
ZERO_F32: Any = np.float32(0)


@compiled
def index_sources(
    first, last, new_below, at, swept, position, offsets, sources, weights, out_weight,
    source_indices, normalized_weights, loop_fractions,
):  # fmt: skip
    """Write the indices from which the vertices at positions `first` to `last` read their sources, from `at` on.

    An index points into two iterates stored end to end, the old one and the new one. A vertex reads new values of
    positions below `new_below`, and of positions from `first` to its own; old values of all others. Self-loops, edges
    from vertices that are not swept, and padding read the 0 that follows the n old values. `loop_fractions` receives
    the fraction of each rank that self-loops carry.
    """
    n = np.uint64(swept.size)
    first, last, new_below, at = np.uint64(first), np.uint64(last), np.uint64(new_below), np.uint64(at)
    for i in range(first, last):
        vertex, loop_fraction = np.uint64(swept[i]), 0.0
        for edge in range(offsets[vertex], offsets[vertex + ONE]):
            source = np.uint64(sources[edge])
            source_position = np.uint64(position[source])
            new = (source_position < new_below) | (first <= source_position) & (source_position < i)
            if weights is None:
                loop_fraction += 1.0 if source_position == i else 0.0
            else:
                normalized_weight = weights[edge] / out_weight[source] if source_position < n else 0.0
                normalized_weights[at] = normalized_weight
                loop_fraction += normalized_weight if source_position == i else 0.0
            source_indices[at] = n if source_position == i else source_position + n + ONE if new else source_position
            at += ONE
        while at & THREE != ZERO:
            source_indices[at] = n
            if weights is not None:
                normalized_weights[at] = 0.0
            at += ONE
        loop_fractions[i] = (
            loop_fraction if weights is not None or loop_fraction == 0.0 else loop_fraction / out_weight[vertex]
        )


@compiled
def sum_dangling_fractions(rows, position, offsets, sources, weights, out_weight, dangling_fraction):
    """Add the fraction of each vertex's out-edges that lead to the dangling `rows` (unweighted: their number)."""
    for row in range(np.uint64(rows.size)):
        vertex = np.uint64(rows[row])
        for edge in range(offsets[vertex], offsets[vertex + ONE]):
            source = np.uint64(sources[edge])
            if weights is None:
                dangling_fraction[np.uint64(position[source])] += 1.0
            elif out_weight[source] > 0.0:
                dangling_fraction[np.uint64(position[source])] += weights[edge] / out_weight[source]


@compiled
def sweep(
    first, last, ends, source_indices, normalized_weights, iterates, alpha, base, moves, scale,
    value_factor, dangling_fraction, sums,
):  # fmt: skip
    """Compute new contributions of the vertices at positions `first` to `last`; `iterates` holds the old and new ones.

    c_i = (alpha * (sum of c over the in-edges of i) + base + r_i) * scale_i, with r in `moves`. The value of a vertex
    is c_i * value_factor_i, and c_i * dangling_fraction_i goes to dangling vertices; `dangling_fraction` has n entries,
    or one for all. `sums` receives the L1 change of the values, their sum, and the sum that goes to dangling vertices.
    Values are float32.
    """
    n = np.uint64(moves.size)
    fraction_step = ONE if dangling_fraction.size == moves.size else ZERO
    change, mass, to_dangling = 0.0, 0.0, 0.0
    begin, last = np.uint64(first), np.uint64(last)
    edge = np.uint64(ends[begin])
    while begin < last:
        group_change, group_mass, group_to_dangling = ZERO_F32, ZERO_F32, ZERO_F32
        end = begin + np.uint64(RED_BLACK_GROUP) if last - begin > np.uint64(RED_BLACK_GROUP) else last
        for i in range(begin, end):
            stop = np.uint64(ends[i + ONE])
            one, two, three, four = ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32
            while edge < stop:
                if normalized_weights is None:
                    one += iterates[source_indices[edge]]
                    two += iterates[source_indices[edge + ONE]]
                    three += iterates[source_indices[edge + TWO]]
                    four += iterates[source_indices[edge + THREE]]
                else:
                    one += iterates[source_indices[edge]] * normalized_weights[edge]
                    two += iterates[source_indices[edge + ONE]] * normalized_weights[edge + ONE]
                    three += iterates[source_indices[edge + TWO]] * normalized_weights[edge + TWO]
                    four += iterates[source_indices[edge + THREE]] * normalized_weights[edge + THREE]
                edge += FOUR
            c = (alpha * ((one + two) + (three + four)) + (base + moves[i])) * scale[i]
            iterates[n + ONE + i] = c
            group_change += abs((c - iterates[i]) * value_factor[i])
            group_mass += c * value_factor[i]
            group_to_dangling += c * dangling_fraction[i * fraction_step]
        change += group_change
        mass += group_mass
        to_dangling += group_to_dangling
        begin = end
    sums[0] = change
    sums[1] = mass
    sums[2] = to_dangling
