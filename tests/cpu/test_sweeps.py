"""Gauss-Seidel sweeps of the method `native`: their error bounds, and their bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import prplugin
from conformance import bounds
from prplugin.cpu.sorting import offsets_of
from prplugin.errors import NotConvergedError
from prplugin.methods.native import Pull
from prplugin.numerics import depth_for
from prplugin.types.edges import Compressed

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


@pytest.mark.parametrize("alpha", [0.5, 0.875])
def test_change_of_a_sweep_is_that_of_the_documentation(alpha):
    """A forward chain of 64 vertices, of which a sweep reads new contributions from one group of 16 to the next."""
    n, rounds = 64, range(3)
    sources = np.repeat(np.arange(n - 16), 2).astype(np.int32)
    edges = pd.DataFrame({"src": sources, "dst": sources + np.tile([1, 16], n - 16)}).sort_values(["dst", "src"])
    offsets = offsets_of(np.bincount(edges["dst"], minlength=n))
    inverse = np.where(np.arange(n) < n - 16, 0.5, 0.0)
    v = np.full(n, 1 / n)
    pull = Pull(
        Compressed(offsets, edges["src"].to_numpy(np.int32), None), None, inverse, v, (1 - alpha) * v, alpha, 32, 1
    )
    x, a, sum_ = [Fraction(1, n)] * n, Fraction(alpha), Fraction(1)
    pull.start(1 / n)
    for _ in rounds:
        dangling, y = sum(x[n - 16 :]), list(x)
        for first in range(0, n, 16):
            read = list(y)
            for i in range(first, first + 16):
                row = edges["src"].to_numpy()[offsets[i] : offsets[i + 1]].tolist()
                y[i] = a * (sum((read[u] for u in row), Fraction(0)) / 2 + dangling / n) + (1 - a) * sum_ / n
        moved = sum(abs(new - old) for new, old in zip(y, x, strict=True))
        expected = bounds.sweep(alpha, moved, sum_, sum(y))
        found = pull.iterate(1, -1.0, depth_for(alpha))
        assert found.tolist() == pytest.approx([float(expected)], rel=1e-12)
        assert abs(sum(y) - sum_) > moved / 10_000
        x, sum_ = y, sum(y)
        np.testing.assert_allclose(pull.ranks, [float(rank / sum_) for rank in y], rtol=1e-13)


@pytest.mark.parametrize("size", GRAPHS.values(), ids=GRAPHS)
def test_sweeps_take_fewer_passes(size):
    graph = graph_of(*size, weighted=False)
    assert graph.rank(method="native").iterations < 0.9 * graph.rank(method="numpy").iterations


@pytest.mark.parametrize("alpha", [5e-324, 1e-308, 1e-300, 1e-3])
def test_small_alpha_has_a_bound(alpha):
    """Regression test: the bound of a sweep divided by alpha, and was not a number."""
    ranking = graph_of(700, 3_000, weighted=False).rank(method="native", alpha=alpha, tol=1e-10)
    assert ranking.error_bound <= 1e-10
