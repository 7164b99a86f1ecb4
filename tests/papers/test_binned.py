"""The three bins of Wu et al. (2010): the plan on the host, the ranks on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from adjacencies import adjacency_of
from method_params import param
from shapes import SHAPES, assert_ranks_agree, assert_row_sums, graph_of_shape

from benchmarks.papers.wu import matrix_bytes
from prplugin.errors import InvalidOptionError
from prplugin.graph.edges import Problem
from prplugin.machine import this_machine
from prplugin.papers import binned
from prplugin.papers.binned import BinnedPull
from prplugin.types.edges import Csc

THRESHOLDS = [(0, 0), (6, 96), (0, 40), (10**6, 10**6), (6, 10**30)]


def requires_gpu(test):
    for mark in param("binned").marks:
        test = mark(test)
    return test


# --- on the host --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_bins_partition_rows_in_order(name, thresholds):
    adjacency = adjacency_of(graph_of_shape(name)[0])
    plan = BinnedPull(adjacency, thresholds)
    offsets = adjacency.get(Csc).offsets
    degrees = np.diff(offsets)
    rows, begins, ends, sources, _ = plan.layout
    assert sorted(rows.tolist()) == list(range(adjacency.n))
    assert begins.tolist() == offsets[:-1][rows].tolist()
    assert ends.tolist() == offsets[1:][rows].tolist()
    assert sources is adjacency.get(Csc).indices
    tiny, small, normal = np.split(rows, np.cumsum(plan.sizes)[:2])
    a, b = thresholds
    assert tiny.tolist() == np.flatnonzero(degrees <= a).tolist()
    assert small.tolist() == np.flatnonzero((degrees > a) & (degrees <= min(b, adjacency.m))).tolist()
    assert normal.tolist() == np.flatnonzero(degrees > min(b, adjacency.m)).tolist()


def test_plan_stores_end_and_index_per_row():
    graph, _, _ = graph_of_shape("weighted")
    adjacency = adjacency_of(graph)
    offsets, indices, _ = adjacency.get(Csc)
    plan = BinnedPull(adjacency)
    before, after = matrix_bytes(adjacency, plan)
    assert before == offsets.nbytes + indices.nbytes + 4 * adjacency.m  # values in float32
    more = offsets.itemsize + indices.itemsize  # the end of the row besides its begin, and its index
    assert after - before == more * adjacency.n - offsets.itemsize


@pytest.mark.parametrize(
    "thresholds", [(7, 6), (-1, 6), (6,), (1, 2, 3), 6, None, "ab", (1.0, 2.0), (True, 6), (6, None)]
)
def test_invalid_thresholds_raise(thresholds):
    adjacency = adjacency_of(graph_of_shape("two vertices")[0])
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
    pull = BinnedPull(adjacency_of(graph).on("device"), thresholds)
    assert_row_sums(pull, adjacency_of(graph), dtype)


@requires_gpu
def test_plan_agrees_with_host():
    adjacency = adjacency_of(graph_of_shape("weighted")[0])
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
    problem = Problem(adjacency_of(graph_of_shape("two vertices")[0]), 0.85)
    with pytest.raises(InvalidOptionError, match="thresholds"):
        binned.prepare(problem, this_machine(), thresholds=(3, 2))
