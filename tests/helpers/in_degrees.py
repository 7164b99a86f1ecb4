"""Graphs of given in-degrees, their exact row sums, and ranks compared with those of `numpy`."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd

import prplugin
from prplugin.graph.edges import Edges
from prplugin.types.edges import Coo, Csc

IN_DEGREES = {
    "one vertex": [0],
    "self-loop": [1],
    "no edges": [0] * 5,
    "short rows": [1, 3, 2, 7, 5] * 50,
    "rows of one piece": [32] * 9,
    "pieces that end where rows end": [20, 12, 30, 2, 64, 1, 31],
    "rows of one large piece": [2048, 2048, 1, 2047, 4096],
    "row across two pieces": [31, 2, 31],
    "hub": [0, 5, 100_000, 2, 0],
    "adjacent hubs": [10_000, 3_333, 0, 6_667, 2048, 1],
    "empty rows at both ends": [0] * 3_000 + [3] + [0] * 3_000,
    "empty rows between pieces": [32] + [0] * 500 + [33] + [0] * 2 + [31] + [0] * 5_000,
    "all lengths": [*range(130)],
}


def graph(in_degrees: list[int], weighted: bool) -> Edges:
    """Return a graph of these in-degrees with shuffled edges; weights are integers, so that their sums are exact."""
    random = np.random.default_rng(len(in_degrees))
    n, m = len(in_degrees), sum(in_degrees)
    target = random.permutation(np.repeat(np.arange(n, dtype=np.int32), in_degrees))
    source = random.integers(0, n, m, np.int32)
    return Edges(Coo(source, target, random.integers(0, 9, m).astype(float) if weighted else None, n))


def row_sums(adjacency: Edges, contributions: np.ndarray) -> list[float]:
    """Return the sum of each row, rounded once."""
    offsets, sources, weights = adjacency.get(Csc)
    terms = contributions[sources].astype(float)
    if weights is not None:
        of_source = adjacency.out_weight[sources]
        normalized_weights = np.divide(weights, of_source, out=np.zeros(of_source.size), where=of_source > 0)
        terms *= normalized_weights.astype(contributions.dtype)
    return [math.fsum(terms[begin:end]) for begin, end in pairwise(offsets)]


def assert_sums(sums: np.ndarray, expected: list[float]) -> None:
    np.testing.assert_allclose(sums, expected, rtol=3 * 2.0**-53, atol=0)


def web() -> pd.DataFrame:
    """Return edges with a hub of many pieces, parallel edges, self-loops, dangling vertices and empty rows."""
    random = np.random.default_rng(3)
    target = np.append(np.zeros(100_000, np.int64), (3_000 * random.random(30_000) ** 4).astype(np.int64))
    source = random.integers(0, 4_000, target.size)
    return pd.DataFrame({"src": source, "dst": target, "w": random.random(target.size)})


PROBLEMS = {
    "plain": {},
    "weighted": {"weight": "w"},
    "undirected": {"directed": False},
    "weighted, undirected": {"weight": "w", "directed": False},
    "personalized": {"personalization": {7: 1.0, 0: 2.0}},
    "weighted, dangling vector": {"weight": "w", "dangling": {5: 1.0}},
}


def assert_agrees_with_numpy(frame: pd.DataFrame, method: str, dtype: str, problem: dict, **options) -> bytes:
    """Check that ranks agree with `numpy` within both error bounds, and return their bits."""
    graph_options = {name: problem[name] for name in problem if name in {"weight", "directed"}}
    rank_options = {name: problem[name] for name in problem if name not in graph_options}
    built = prplugin.Graph(frame, **graph_options)
    tol = 1e-10 if dtype == "float64" else 1e-6
    other = built.rank(method="numpy", dtype=dtype, tol=tol, **rank_options)
    ranking, again = (built.rank(method=method, dtype=dtype, tol=tol, **rank_options, **options) for _ in range(2))
    distance = np.abs(ranking.ranks.astype(float) - other.ranks.astype(float)).sum()
    assert distance <= ranking.error_bound + other.error_bound <= 2 * tol
    assert ranking.ranks.tobytes() == again.ranks.tobytes()
    return ranking.ranks.tobytes()
