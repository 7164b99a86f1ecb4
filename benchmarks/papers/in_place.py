"""Update rule of Bowen 2022 on one CPU thread: scores in place, those that move less than epsilon kept, in float32.

The paper cites its code, https://github.com/chrisliu/hetero-compute. There every kernel writes the scores that it
reads, vertices are in descending order of degree, the scores of dangling vertices are dropped, and the graph is
undirected, without duplicates and self-loops: the code refuses to order the vertices of a directed graph.
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers import loops
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
    offsets, sources = (np.ascontiguousarray(array, np.int64) for array in adjacency.csc[:2])
    out_degrees = adjacency.out_weight.astype(np.float32)
    dangling = np.flatnonzero(out_degrees == 0)
    scores = np.full(n, 1 / n, np.float32)
    updated = scores if in_place else np.empty_like(scores)
    count, moved = 0, 1
    while moved and count < MOST:
        mass = float(scores[dangling].sum(dtype=np.float64)) if spread else 0.0
        rest = (1 - ALPHA + ALPHA * mass) / n
        moved = loops.update(offsets, sources, out_degrees, scores, updated, rest, ALPHA, epsilon, keep)
        scores, updated = updated, scores
        count += 1
    return count, float(scores.sum(dtype=np.float64))
