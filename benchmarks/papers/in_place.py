"""Update rule of Bowen 2022 on one CPU thread: scores in place, those that move less than epsilon kept, in float32.

The paper cites its code, https://github.com/chrisliu/hetero-compute. There every kernel writes the scores that it
reads, vertices are in descending order of degree, the scores of dangling vertices are dropped, and the graph is
undirected, without duplicates and self-loops: the code refuses to order the vertices of a directed graph.
"""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.papers.implementations import ALPHA
from prplugin.graph.adjacency import Adjacency
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges

__all__ = ["by_out_degree", "rounds", "undirected"]

MOST = 200
"""Rounds after which the paper's code stops."""


def undirected(adjacency: Adjacency) -> Adjacency:
    """Return the graph with both directions of each edge, without duplicates and self-loops."""
    source, target, n = adjacency.edges.source, adjacency.edges.destination, adjacency.n
    xp = namespace(source)
    loop = source == target
    source, target = source[~loop].astype(np.int64), target[~loop].astype(np.int64)
    pairs = xp.unique(xp.concatenate([source * n + target, target * n + source]))
    return Adjacency(Edges(*(end.astype(adjacency.edges.source.dtype) for end in xp.divmod(pairs, n)), None, n))


def by_out_degree(adjacency: Adjacency) -> Adjacency:
    """Return the graph on the host with its vertices in descending order of out-degree."""
    here = adjacency.on("host")
    order = np.argsort(-here.out_weight, kind="stable")
    place = np.empty(here.n, here.edges.source.dtype)
    place[order] = np.arange(here.n, dtype=place.dtype)
    return Adjacency(Edges(place[here.edges.source], place[here.edges.destination], None, here.n))


def rounds(adjacency: Adjacency, epsilon: float, *, in_place: bool, keep: bool, spread: bool) -> tuple[int, float]:
    """Iterate until no score moves by more than epsilon; return the number of rounds and the sum of the scores.

    Parameters
    ----------
    in_place : bool
        Whether a round reads scores that it has already updated.
    keep : bool
        Whether scores that move by at most epsilon keep their old value.
    spread : bool
        Whether the scores of dangling vertices are redistributed, as those of the last round, or dropped.
    """
    n = adjacency.n
    offsets, sources, _ = adjacency.csc
    out_degrees = adjacency.out_weight.astype(np.float32)
    dangling = np.flatnonzero(out_degrees == 0)
    scores = np.full(n, 1 / n, np.float32)
    updated = scores if in_place else np.empty_like(scores)
    count, moved = 0, 1
    while moved and count < MOST:
        mass = float(scores[dangling].sum(dtype=np.float64)) if spread else 0.0
        rest = np.float32((1 - ALPHA + ALPHA * mass) / n)
        moved = _update(offsets, sources, out_degrees, scores, updated, rest, np.float32(epsilon), keep)
        scores, updated = updated, scores
        count += 1
    return count, float(scores.sum(dtype=np.float64))


DAMPING = np.float32(ALPHA)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _update(offsets, sources, out_degrees, scores, updated, rest, epsilon, keep):
    """Write the new scores; return how many move by more than epsilon. `updated` may be `scores`."""
    moved = 0
    for vertex in range(scores.size):
        total = np.float32(0)
        for edge in range(offsets[vertex], offsets[vertex + 1]):
            source = sources[edge]
            total += scores[source] / out_degrees[source]
        old, new = scores[vertex], rest + DAMPING * total
        moves = abs(new - old) > epsilon
        moved += moves
        updated[vertex] = new if moves or not keep else old
    return moved
