"""Gauss-Seidel sweeps of the method `native`: their error bounds, and their bits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.errors import NotConvergedError

GRAPHS = {"in place": (700, 3_000), "in phases": (30_000, 120_000)}


def graph_of(n: int, m: int, *, weighted: bool) -> prplugin.Graph:
    random = np.random.default_rng(m)
    edges = pd.DataFrame({"src": random.integers(0, n - n // 5, m), "dst": random.integers(0, n, m)})
    edges["weight"] = random.random(m) if weighted else 1.0
    return prplugin.Graph(edges, weight="weight" if weighted else None, vertices=range(n))


def after(graph: prplugin.Graph, passes: int, **given: object) -> prplugin.Ranking:
    try:
        return graph.rank(method="native", max_iter=passes, tol=1e-10, **given)
    except NotConvergedError as error:
        return error.ranking


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", GRAPHS.values(), ids=GRAPHS)
def test_every_sweep_has_a_bound(size, weighted):
    graph = graph_of(*size, weighted=weighted)
    n = graph.number_of_vertices
    given = {"personalization": dict.fromkeys(range(0, n, 3), 1.0), "dangling": {0: 1.0, n - 1: 2.0}}
    exact = graph.rank(method="numpy", tol=1e-11, **given)
    reported = {}
    graph.rank(
        method="native", tol=1e-10, progress=lambda now: reported.update({now.iterations: now.error_bound}), **given
    )
    for passes in (1, 2, 3, 4, 7, 12):
        found = after(graph, passes, **given)
        error = np.abs(found.ranks - exact.ranks).sum()
        assert error <= found.error_bound + exact.error_bound
        assert error > found.error_bound / 1000
        assert found.ranks.sum() == pytest.approx(1, abs=1e-14)
        assert reported[passes] == found.error_bound
        assert (after(graph, passes, threads=3, **given).ranks == found.ranks).all()


@pytest.mark.parametrize("size", GRAPHS.values(), ids=GRAPHS)
def test_sweeps_take_fewer_passes(size):
    graph = graph_of(*size, weighted=False)
    assert graph.rank(method="native").iterations < 0.9 * graph.rank(method="numpy").iterations


@pytest.mark.parametrize("alpha", [5e-324, 1e-308, 1e-300, 1e-3])
def test_small_alpha_has_a_bound(alpha):
    """Regression test: the bound of a sweep divided by alpha, and was not a number."""
    ranking = graph_of(700, 3_000, weighted=False).rank(method="native", alpha=alpha, tol=1e-10)
    assert ranking.error_bound <= 1e-10
