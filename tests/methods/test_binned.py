"""The three bins of Wu et al. (2010): the plan on the host, the ranks on a GPU."""

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
from prplugin.papers import binned
from prplugin.papers.binned import BinnedPull

THRESHOLDS = [(0, 0), (6, 96), (0, 40), (10**6, 10**6), (6, 10**30)]


def requires_gpu(test):
    for mark in param("binned").marks:
        test = mark(test)
    return test


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
    terms = contributions[adjacency.edges.source].astype(np.longdouble)
    if adjacency.weighted:
        terms *= (adjacency.edges.weights / adjacency.out_weight[adjacency.edges.source]).astype(contributions.dtype)
    totals = np.zeros(adjacency.n, np.longdouble)
    np.add.at(totals, adjacency.edges.destination, terms)
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


# --- on the host --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_bins_partition_rows_in_order(name, thresholds):
    adjacency = graph_of_shape(name)[0]._graph.adjacency
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


def test_plan_stores_end_and_index_per_row():
    graph, _, _ = graph_of_shape("weighted")
    adjacency = graph._graph.adjacency
    offsets, indices, weights = adjacency.csc
    plan = BinnedPull(adjacency)
    before, after = matrix_bytes(adjacency, plan)
    assert before == offsets.nbytes + indices.nbytes + weights.nbytes
    more = offsets.itemsize + indices.itemsize  # the end of the row besides its begin, and its index
    assert after - before == more * adjacency.n - offsets.itemsize


@pytest.mark.parametrize(
    "thresholds", [(7, 6), (-1, 6), (6,), (1, 2, 3), 6, None, "ab", (1.0, 2.0), (True, 6), (6, None)]
)
def test_invalid_thresholds_raise(thresholds):
    adjacency = graph_of_shape("two vertices")[0]._graph.adjacency
    with pytest.raises(
        InvalidOptionError, match=r"thresholds must be two whole numbers \(a, b\) with 0 <= a <= b, not "
    ):
        BinnedPull(adjacency, thresholds)


# --- on the GPU ---------------------------------------------------------------------------------------------------


@requires_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SHAPES)
def test_ranks_agree_with_numpy(name, dtype):
    assert_ranks_agree(name, dtype, method="binned")


@requires_gpu
@pytest.mark.parametrize("thresholds", THRESHOLDS)
@pytest.mark.parametrize("name", ["weighted", "several hubs", "in-degrees at the thresholds"])
def test_ranks_agree_with_numpy_at_any_thresholds(name, thresholds):
    assert_ranks_agree(name, "float64", method="binned", thresholds=thresholds)


@requires_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("thresholds", THRESHOLDS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_row_is_written(name, thresholds, dtype):
    graph, _, _ = graph_of_shape(name)
    pull = BinnedPull(graph._graph.adjacency.on("device"), thresholds)
    assert_row_sums(pull, graph._graph.adjacency, dtype)


@requires_gpu
def test_plan_agrees_with_host():
    adjacency = graph_of_shape("weighted")[0]._graph.adjacency
    host, device = BinnedPull(adjacency), BinnedPull(adjacency.on("device"))
    assert host.sizes == device.sizes
    for one, other in zip(host.layout[:4], device.layout[:4], strict=True):
        assert one.tolist() == other.tolist()
    before, after = matrix_bytes(adjacency.on("device"), device)
    assert after - before == (2 * adjacency.n - 1) * 4  # 32-bit offsets and rows


@requires_gpu
def test_bits_are_reproducible():
    graph, _, _ = graph_of_shape("weighted")
    assert graph.rank(method="binned").ranks.tobytes() == graph.rank(method="binned").ranks.tobytes()


@requires_gpu
def test_thresholds_are_checked_before_edges_are_sorted():
    problem = Problem(graph_of_shape("two vertices")[0]._graph.adjacency, 0.85)
    with pytest.raises(InvalidOptionError, match="thresholds"):
        binned.prepare(problem, this_machine(), thresholds=(3, 2))
