"""Graphs of extreme shapes, and checks of row sums and ranks on them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import prplugin
from prplugin.types.edges import Coo


def skewed(n=3000, m=40_000, seed=1):
    """Return edges with in-degrees from 0 to thousands, parallel edges, self-loops and dangling vertices."""
    random = np.random.default_rng(seed)
    target = (n * random.random(m) ** 4).astype(np.int64)
    return pd.DataFrame({"src": random.integers(0, n * 3 // 4, m), "dst": target, "w": random.exponential(size=m)})


SHAPES = {
    "skewed": (skewed, {}, {}),
    "weighted": (lambda: skewed(seed=2), {"weight": "w"}, {}),
    "undirected": (lambda: skewed(seed=3), {"directed": False, "weight": "w"}, {}),
    "personalized": (lambda: skewed(seed=4), {}, {"personalization": {0: 1.0, 17: 3.0}, "dangling": {5: 1.0}}),
    "isolated vertices": (lambda: skewed(50, 400), {"vertices": range(5000)}, {}),
    "hub": (lambda: pd.DataFrame({"src": np.arange(1, 100_001), "dst": 0}), {}, {}),
    "several hubs": (
        lambda: pd.DataFrame(
            {"src": np.arange(60_000), "dst": np.append(np.zeros(40_000, int), np.arange(20_000) % 7)}
        ),
        {},
        {},
    ),
    "equal in-degrees": (lambda: pd.DataFrame({"src": np.arange(999), "dst": np.roll(np.arange(999), 1)}), {}, {}),
    "in-degrees at the thresholds": (
        lambda: pd.DataFrame({"src": np.arange(213) % 90, "dst": np.repeat([0, 1, 2, 3, 4], [5, 6, 7, 98, 97])}),
        {},
        {},
    ),
    "no edges": (lambda: skewed().head(0), {"vertices": range(70)}, {}),
    "one vertex": (lambda: pd.DataFrame({"src": [5], "dst": [5]}), {}, {}),
    "one vertex, no edge": (lambda: skewed().head(0), {"vertices": [3]}, {}),
    "two vertices": (lambda: pd.DataFrame({"src": [1], "dst": [2]}), {}, {}),
}


@cache
def graph_of_shape(name):
    """Return a graph, options for ranking it, and its ranks by `numpy` for each dtype."""
    edges, arguments, options = SHAPES[name]
    graph = prplugin.Graph(edges(), **arguments)
    return (
        graph,
        options,
        {
            dtype: graph.rank(method="numpy", dtype=dtype, **tolerance(dtype), **options)
            for dtype in ("float64", "float32")
        },
    )


def tolerance(dtype):
    return {"tol": 1e-11 if dtype == "float64" else 1e-6}


def assert_ranks_agree(name, dtype, **method_options):
    graph, options, expected = graph_of_shape(name)
    ranking = graph.rank(dtype=dtype, **tolerance(dtype), **options, **method_options)
    distance = np.abs(ranking.ranks.astype(np.float64) - expected[dtype].ranks.astype(np.float64)).sum()
    assert ranking.ranks.dtype == dtype
    assert distance <= ranking.error_bound + expected[dtype].error_bound


def exact_row_sums(adjacency, contributions):
    """Return the row sums in extended precision; normalized weights have the dtype of the contributions."""
    terms = contributions[adjacency.get(Coo).source].astype(np.longdouble)
    if adjacency.weighted:
        terms *= (adjacency.get(Coo).weights / adjacency.out_weight[adjacency.get(Coo).source]).astype(
            contributions.dtype
        )
    totals = np.zeros(adjacency.n, np.longdouble)
    np.add.at(totals, adjacency.get(Coo).destination, terms)
    return totals.astype(np.float64)


def assert_row_sums(pull, adjacency, dtype, times=3):
    """Check the row sums of several pulls.

    Outputs start as NaN to reveal rows that are not written; contributions change in place between pulls.
    """
    import cupy

    random = np.random.default_rng(0)
    contributions, sums = cupy.empty(adjacency.n, dtype), cupy.empty(adjacency.n)
    for _ in range(times):
        values = random.exponential(size=adjacency.n).astype(dtype)
        contributions.set(values)
        sums.fill(np.nan)
        pull(contributions, sums)
        found = sums.get()
        assert not np.isnan(found).any(), (
            f"{np.isnan(found).sum()} rows were not written, first {np.flatnonzero(np.isnan(found))[:9]}"
        )
        np.testing.assert_allclose(found, exact_row_sums(adjacency, values), rtol=4e-15, atol=0)
