"""The three bins of Wu and others 2010: the plan without a GPU, the ranks with one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from method_params import param

import prplugin
from benchmarks.papers.wu import matrix_bytes
from prplugin.errors import InvalidOptionError
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods.papers import binned
from prplugin.methods.papers.binned import BinnedPull

THRESHOLDS = [(0, 0), (6, 96), (0, 40), (10**6, 10**6), (6, 10**30)]


def on_gpu(test):
    for mark in param("binned").marks:
        test = mark(test)
    return test


def skewed(n=3000, m=40_000, seed=1):
    """In-degrees from none to thousands, parallel edges, self-loops, sources without out-edges."""
    random = np.random.default_rng(seed)
    target = (n * random.random(m) ** 4).astype(np.int64)
    return pd.DataFrame({"src": random.integers(0, n * 3 // 4, m), "dst": target, "w": random.exponential(size=m)})


SHAPES = {
    "skewed": (skewed, {}, {}),
    "weighted": (lambda: skewed(seed=2), {"weight": "w"}, {}),
    "undirected": (lambda: skewed(seed=3), {"directed": False, "weight": "w"}, {}),
    "personalised": (lambda: skewed(seed=4), {}, {"personalization": {0: 1.0, 17: 3.0}, "dangling": {5: 1.0}}),
    "isolated vertices": (lambda: skewed(50, 400), {"vertices": range(5000)}, {}),
    "a hub": (lambda: pd.DataFrame({"src": np.arange(1, 100_001), "dst": 0}), {}, {}),
    "a hub among hubs": (
        lambda: pd.DataFrame(
            {"src": np.arange(60_000), "dst": np.append(np.zeros(40_000, int), np.arange(20_000) % 7)}
        ),
        {},
        {},
    ),
    "in-degrees all alike": (lambda: pd.DataFrame({"src": np.arange(999), "dst": np.roll(np.arange(999), 1)}), {}, {}),
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
def shape(name):
    """A graph, what to rank it with, and its ranks by the plainest method."""
    edges, arguments, options = SHAPES[name]
    graph = prplugin.Graph(edges(), **arguments)
    return (
        graph,
        options,
        {dtype: graph.rank(method="numpy", dtype=dtype, **tols(dtype), **options) for dtype in ("float64", "float32")},
    )


def tols(dtype):
    return {"tol": 1e-11 if dtype == "float64" else 1e-6}


def assert_ranks_agree(name, dtype, **how):
    graph, options, expected = shape(name)
    ranking = graph.rank(dtype=dtype, **tols(dtype), **options, **how)
    apart = np.abs(ranking.ranks.astype(np.float64) - expected[dtype].ranks.astype(np.float64)).sum()
    assert ranking.ranks.dtype == dtype
    assert apart <= ranking.error_bound + expected[dtype].error_bound


def pulled_exactly(adjacency, contributions):
    """The row sums in extended precision, with shares in the type of the contributions."""
    terms = contributions[adjacency.edges.source].astype(np.longdouble)
    if adjacency.weighted:
        terms *= (adjacency.edges.weights / adjacency.out_weight[adjacency.edges.source]).astype(contributions.dtype)
    sums = np.zeros(adjacency.n, np.longdouble)
    np.add.at(sums, adjacency.edges.destination, terms)
    return sums.astype(np.float64)


def assert_pulls_rightly(pull, adjacency, dtype, times=3):
    """Outputs begin as NaN, so that a row that is not written shows; contributions change in place from pull to pull."""
    import cupy

    random = np.random.default_rng(0)
    contributions, pulled = cupy.empty(adjacency.n, dtype), cupy.empty(adjacency.n)
    for _ in range(times):
        values = random.exponential(size=adjacency.n).astype(dtype)
        contributions.set(values)
        pulled.fill(np.nan)
        pull(contributions, pulled)
        got = pulled.get()
        assert not np.isnan(got).any(), (
            f"{np.isnan(got).sum()} rows were not written, first {np.flatnonzero(np.isnan(got))[:9]}"
        )
        np.testing.assert_allclose(got, pulled_exactly(adjacency, values), rtol=4e-15, atol=0)


# --- without a GPU ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_bins_hold_every_row_once_in_its_order(name, thresholds):
    adjacency = shape(name)[0]._graph.adjacency
    plan = BinnedPull(adjacency, thresholds)
    offsets = adjacency.csc.offsets
    degrees = np.diff(offsets)
    rows, begins, ends, sources, _ = plan.layout
    assert sorted(rows.tolist()) == list(range(adjacency.n))
    assert begins.tolist() == offsets[:-1][rows].tolist()
    assert ends.tolist() == offsets[1:][rows].tolist()
    assert sources is adjacency.csc.indices
    tiny, small, normal = np.split(rows, np.cumsum(plan.sizes)[:2])
    a, b = thresholds
    assert tiny.tolist() == np.flatnonzero(degrees <= a).tolist()
    assert small.tolist() == np.flatnonzero((degrees > a) & (degrees <= min(b, adjacency.m))).tolist()
    assert normal.tolist() == np.flatnonzero(degrees > min(b, adjacency.m)).tolist()


def test_the_plan_takes_two_more_numbers_a_row():
    graph, _, _ = shape("weighted")
    adjacency = graph._graph.adjacency
    offsets, indices, weights = adjacency.csc
    plan = BinnedPull(adjacency)
    before, after = matrix_bytes(adjacency, plan)
    assert before == offsets.nbytes + indices.nbytes + weights.nbytes
    more = offsets.itemsize + indices.itemsize  # an end beside the begin, and the index
    assert after - before == more * adjacency.n - offsets.itemsize


@pytest.mark.parametrize(
    "thresholds", [(7, 6), (-1, 6), (6,), (1, 2, 3), 6, None, "ab", (1.0, 2.0), (True, 6), (6, None)]
)
def test_bad_thresholds(thresholds):
    adjacency = shape("two vertices")[0]._graph.adjacency
    with pytest.raises(
        InvalidOptionError, match=r"thresholds must be two whole numbers \(a, b\) with 0 <= a <= b, not "
    ):
        BinnedPull(adjacency, thresholds)


# --- with one -----------------------------------------------------------------------------------------------------


@on_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SHAPES)
def test_ranks_agree_with_numpy(name, dtype):
    assert_ranks_agree(name, dtype, method="binned")


@on_gpu
@pytest.mark.parametrize("thresholds", THRESHOLDS)
@pytest.mark.parametrize("name", ["weighted", "a hub among hubs", "in-degrees at the thresholds"])
def test_ranks_agree_with_numpy_at_any_thresholds(name, thresholds):
    assert_ranks_agree(name, "float64", method="binned", thresholds=thresholds)


@on_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("thresholds", THRESHOLDS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_row_is_written(name, thresholds, dtype):
    graph, _, _ = shape(name)
    pull = BinnedPull(graph._graph.adjacency.on("device"), thresholds)
    assert_pulls_rightly(pull, graph._graph.adjacency, dtype)


@on_gpu
def test_the_plan_is_the_same_as_on_the_host():
    adjacency = shape("weighted")[0]._graph.adjacency
    here, there = BinnedPull(adjacency), BinnedPull(adjacency.on("device"))
    assert here.sizes == there.sizes
    for one, other in zip(here.layout[:4], there.layout[:4], strict=True):
        assert one.tolist() == other.tolist()
    before, after = matrix_bytes(adjacency.on("device"), there)
    assert after - before == (2 * adjacency.n - 1) * 4  # 32-bit offsets and rows


@on_gpu
def test_the_same_bits_every_time():
    graph, _, _ = shape("weighted")
    assert graph.rank(method="binned").ranks.tobytes() == graph.rank(method="binned").ranks.tobytes()


@on_gpu
def test_thresholds_are_checked_before_the_edges_are_sorted():
    problem = Problem(shape("two vertices")[0]._graph.adjacency, 0.85)
    with pytest.raises(InvalidOptionError, match="thresholds"):
        binned.prepare(problem, this_machine(), thresholds=(3, 2))
