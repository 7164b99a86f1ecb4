"""The kernels of `_sweeps`: single-threaded loops that release the GIL, cached on disk."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["FEW", "GROUP", "arrange", "lay_out", "leak", "sweep"]

GROUP = 4
"""Edges that are added side by side; those of each vertex are padded to whole groups."""

FEW = 64
"""Vertices that are swept in one go: those of even number, then those of odd number.

One that read what the one before it has just found would have to wait for it.
"""

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))
NAUGHT: Any = np.float32(0)

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def arrange(first, last, at, rows, offsets, out_weight, weighted, live, place, ends, out):
    """Put some vertices in the order in which they are swept, from `at` on.

    `live` takes which vertex is where, `place` where each is, `ends` where its places end, in whole groups and counted
    from the first of these vertices, and `out` what its contribution is multiplied by to be its value.
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
    """Write where vertices `first` to `last`, as they are swept, read their sources: places in two iterates.

    The iterates lie end to end. A vertex reads new values of those before `ready`, and of those before it from `first`
    on, and old values of others. An edge from a vertex to itself or from one that is not swept, and what fills up a
    group, reads the 0 that follows the n old values; `loops` takes how much of a rank goes to itself. The places begin
    at `at`.
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
    """Add up in `lost` how much of each swept vertex's contribution goes to some vertices that are not swept."""
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
    """Write new contributions of vertices `first` to `last`: `iterates` are the old and the new ones.

    c_i = (alpha * (sum of c over the in-edges of i) + base + r_i) * scale_i. A vertex's value is c_i * out_i, and what
    goes to vertices that are not swept c_i * lost_i; `lost` has n entries, or one that stands for all. `sums` takes
    what values change, in L1, what they sum to, and what is lost. `alpha` and `base` are in float32, as all else.
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
