"""Update rule of Bowen 2022 on the CPU: scores in place, those that move less than epsilon kept, in float32.

The paper cites its code, https://github.com/chrisliu/hetero-compute. There every kernel writes the scores that it
reads, vertices are in descending order of degree, the scores of dangling vertices are dropped, and the graph is
undirected, without duplicates and self-loops: the code refuses to order the vertices of a directed graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.implementations import ALPHA
from prplugin.graph.edges import Edges
from prplugin.papers._forms import update_scores
from prplugin.types.arrays import namespace
from prplugin.types.edges import Coo, Csc

MOST = 200
"""Rounds after which the paper's code stops."""


def undirected(adjacency: Edges) -> Edges:
    """Return the graph with both directions of each edge, without duplicates and self-loops."""
    source, target, n = adjacency.get(Coo).source, adjacency.get(Coo).destination, adjacency.n
    xp = namespace(source)
    loop = source == target
    source, target = source[~loop].astype(np.int64), target[~loop].astype(np.int64)
    pairs = xp.sort(xp.concatenate([source * n + target, target * n + source]))  # np.unique takes minutes
    pairs = pairs[xp.concatenate([xp.ones(min(1, pairs.size), bool), pairs[1:] != pairs[:-1]])]
    return Edges(Coo(*(end.astype(adjacency.get(Coo).source.dtype) for end in xp.divmod(pairs, n)), None, n))


def by_out_degree(adjacency: Edges) -> Edges:
    """Return the graph on the host with its vertices in descending order of out-degree."""
    here = adjacency.on("host")
    order = np.argsort(-here.out_weight, kind="stable")
    place = np.empty(here.n, here.get(Coo).source.dtype)
    place[order] = np.arange(here.n, dtype=place.dtype)
    return Edges(Coo(place[here.get(Coo).source], place[here.get(Coo).destination], None, here.n))


def graph_of_the_paper(adjacency: Edges) -> Edges:
    """Return the graph that the paper's code needs: undirected, without duplicates, renumbered by degree."""
    return by_out_degree(undirected(adjacency))


def rounds(adjacency: Edges, epsilon: float, *, in_place: bool, keep: bool, spread: bool) -> tuple[int, float]:
    """Return the number of rounds of `scores`, and the sum of the scores."""
    count, found = scores(adjacency, epsilon, in_place=in_place, keep=keep, spread=spread)
    return count, float(found.sum(dtype=np.float64))


def scores(
    adjacency: Edges, epsilon: float, *, in_place: bool = True, keep: bool = True, spread: bool = False,
    threads: int = 1,
) -> tuple[int, Any]:  # fmt: skip
    """Iterate until no score moves by more than epsilon; return the number of rounds and the scores.

    Parameters
    ----------
    in_place : bool
        Whether a round reads scores that it has already updated.
    keep : bool
        Whether scores that move by at most epsilon keep their old value.
    spread : bool
        Whether the scores of dangling vertices are redistributed, as those of the last round, or dropped.
    threads : int
        Threads, each of which reads scores that others write.
    """
    n = adjacency.n
    offsets, sources = (
        np.ascontiguousarray(adjacency.get(Csc)[k], dtype) for k, dtype in enumerate((np.int64, np.int32))
    )
    out_degrees = adjacency.out_weight.astype(np.int32)
    arrays = offsets, sources, out_degrees
    dangling = np.flatnonzero(out_degrees == 0)
    scores = np.full(n, 1 / n, np.float32)
    updated = scores if in_place else np.empty_like(scores)
    count, moved = 0, 1
    while moved and count < MOST:
        mass = float(scores[dangling].sum(dtype=np.float64)) if spread else 0.0
        rest = (1 - ALPHA + ALPHA * mass) / n
        moved = update_scores(*arrays, scores, updated, 0, n, rest, ALPHA, epsilon, keep, threads)
        scores, updated = updated, scores
        count += 1
    return count, scores
