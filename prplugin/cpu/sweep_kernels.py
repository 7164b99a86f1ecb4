"""Kernels of `prplugin.methods.engines.sweeps`: single-threaded loops that release the GIL, cached on disk."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["FEW", "GROUP", "arrange", "lay_out", "leak", "sweep"]

GROUP = 4
"""Edges added with independent accumulators; the edges of each vertex are padded to a multiple of this."""

FEW = 64
"""Vertices per red-black group: those of even index are swept before those of odd index.

A vertex that read the result of the one just before it would stall on that dependency.
"""

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))
NAUGHT: Any = np.float32(0)

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def arrange(first, last, at, rows, offsets, out_weight, weighted, live, place, ends, out):
    """Append the vertices ``rows[first:last]`` to the sweep order, from position `at` on.

    `live` receives the vertex at each position, `place` the position of each vertex, `ends` the end of its padded
    edges, counted from the first of these vertices, and `out` the factor from a contribution to a value.
    """
    begin, last, at = np.uint64(first), np.uint64(last), np.uint64(at)
    room = ZERO
    while begin < last:
        end = begin + np.uint64(FEW) if last - begin > np.uint64(FEW) else last
        for odd in range(ZERO, TWO):
            for row in range(begin + odd, end, TWO):
                vertex = np.uint64(rows[row])
                live[at] = vertex
                place[vertex] = at
                out[at] = 1.0 if weighted else out_weight[vertex]
                room += (offsets[vertex + ONE] - offsets[vertex] + THREE) & ~THREE
                at += ONE
                ends[at] = room
        begin = end


@compiled
def lay_out(
    first, last, ready, at, live, place, offsets, sources, weights, out_weight, places, normalized_weights, loops
):
    """Write the indices from which the vertices at positions `first` to `last` read their sources, from `at` on.

    An index points into two iterates stored end to end, the old one and the new one. A vertex reads new values of
    positions below `ready`, and of positions from `first` to its own; old values of all others. Self-loops, edges from
    vertices that are not swept, and padding read the 0 that follows the n old values. `loops` receives the fraction of
    each rank that self-loops carry.
    """
    n = np.uint64(live.size)
    first, last, ready, at = np.uint64(first), np.uint64(last), np.uint64(ready), np.uint64(at)
    for i in range(first, last):
        vertex, stays = np.uint64(live[i]), 0.0
        for edge in range(offsets[vertex], offsets[vertex + ONE]):
            source = np.uint64(sources[edge])
            its = np.uint64(place[source])
            new = (its < ready) | (first <= its) & (its < i)
            if weights is None:
                stays += 1.0 if its == i else 0.0
            else:
                normalized_weight = weights[edge] / out_weight[source] if its < n else 0.0
                normalized_weights[at] = normalized_weight
                stays += normalized_weight if its == i else 0.0
            places[at] = n if its == i else its + n + ONE if new else its
            at += ONE
        while at & THREE != ZERO:
            places[at] = n
            if weights is not None:
                normalized_weights[at] = 0.0
            at += ONE
        loops[i] = stays if weights is not None or stays == 0.0 else stays / out_weight[vertex]


@compiled
def leak(rows, place, offsets, sources, weights, out_weight, lost):
    """Add to `lost` the fraction (unweighted: number) of each vertex's out-edges that lead to the dangling `rows`."""
    for row in range(np.uint64(rows.size)):
        vertex = np.uint64(rows[row])
        for edge in range(offsets[vertex], offsets[vertex + ONE]):
            source = np.uint64(sources[edge])
            if weights is None:
                lost[np.uint64(place[source])] += 1.0
            elif out_weight[source] > 0.0:
                lost[np.uint64(place[source])] += weights[edge] / out_weight[source]


@compiled
def sweep(first, last, ends, places, normalized_weights, iterates, alpha, base, moves, scale, out, lost, sums):
    """Compute new contributions of the vertices at positions `first` to `last`; `iterates` holds the old and new ones.

    c_i = (alpha * (sum of c over the in-edges of i) + base + r_i) * scale_i, with r in `moves`. The value of a vertex
    is c_i * out_i, and c_i * lost_i goes to dangling vertices; `lost` has n entries, or one for all. `sums` receives
    the L1 change of the values, their sum, and the sum that goes to dangling vertices. Values are float32.
    """
    n = np.uint64(moves.size)
    lost_step = ONE if lost.size == moves.size else ZERO
    change, flowing, leaking = 0.0, 0.0, 0.0
    begin, last = np.uint64(first), np.uint64(last)
    edge = np.uint64(ends[begin])
    while begin < last:
        few_change, few_flowing, few_leaking = NAUGHT, NAUGHT, NAUGHT
        end = begin + np.uint64(FEW) if last - begin > np.uint64(FEW) else last
        for i in range(begin, end):
            stop = np.uint64(ends[i + ONE])
            one, two, three, four = NAUGHT, NAUGHT, NAUGHT, NAUGHT
            while edge < stop:
                if normalized_weights is None:
                    one += iterates[places[edge]]
                    two += iterates[places[edge + ONE]]
                    three += iterates[places[edge + TWO]]
                    four += iterates[places[edge + THREE]]
                else:
                    one += iterates[places[edge]] * normalized_weights[edge]
                    two += iterates[places[edge + ONE]] * normalized_weights[edge + ONE]
                    three += iterates[places[edge + TWO]] * normalized_weights[edge + TWO]
                    four += iterates[places[edge + THREE]] * normalized_weights[edge + THREE]
                edge += FOUR
            c = (alpha * ((one + two) + (three + four)) + (base + moves[i])) * scale[i]
            iterates[n + ONE + i] = c
            few_change += abs((c - iterates[i]) * out[i])
            few_flowing += c * out[i]
            few_leaking += c * lost[i * lost_step]
        change += few_change
        flowing += few_flowing
        leaking += few_leaking
        begin = end
    sums[0] = change
    sums[1] = flowing
    sums[2] = leaking
