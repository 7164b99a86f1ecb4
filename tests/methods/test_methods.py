"""What methods of the GPU do before anything is on the GPU: options, the roundings that they count, what they hold."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.cpu import compensated
from prplugin.errors import InvalidOptionError
from prplugin.graph import adjacency as graphs
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._rows import RowsPull
from prplugin.methods.papers.dense import DensePull
from prplugin.methods.papers.edge import EdgePush
from prplugin.methods.papers.segmented import Schedule, Segment
from prplugin.types.edges import GroupedEdges


def adjacency_of(*, weighted):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 1, 2, 0], "w": [1.0, 2.0, 3.0, 4.0]})
    return prplugin.Graph(edges, weight="w" if weighted else None)._graph.adjacency


def test_out_weights_are_the_same_to_the_bit_on_host_and_device(monkeypatch):
    """Added up in another order, these are past the range of float64, and all shares of the vertex 0."""
    w = np.array([np.finfo(float).max, 2.0**969, 2.0**969])
    with np.errstate(over="ignore"):
        assert np.isinf(compensated.compensated_sums(np.zeros(3, np.int32), w, 1)[0])
    here = prplugin.Graph(pd.DataFrame({"src": [0, 0, 0], "dst": [0, 1, 2], "w": w}), weight="w")._graph.adjacency
    monkeypatch.setattr(graphs, "to_memory", lambda array, memory_space: array.copy())
    monkeypatch.setattr(graphs, "synchronize", lambda memory_space: None)
    there = here.on("device")
    assert there is not here
    assert there.out_weight.tobytes() == here.out_weight.tobytes()
    assert there.out_weight_depth == here.out_weight_depth


def test_grouped_edges_are_brought_over_as_they_are(monkeypatch):
    monkeypatch.setattr("prplugin.machine.COMPILED_FROM", 0)
    here = prplugin.Graph(pd.DataFrame({"src": [5, 3, 5, 7], "dst": [3, 5, 9, 3]}))._graph.adjacency
    assert isinstance(here.edges, GroupedEdges)
    monkeypatch.setattr(here.edges, "_edge_list", lambda: pytest.fail("numbered anew"))
    monkeypatch.setattr(graphs, "to_memory", lambda array, memory_space: None if array is None else array.copy())
    monkeypatch.setattr(graphs, "synchronize", lambda memory_space: None)
    there = here.on("device")
    assert there.csc.offsets.dtype == np.int32
    assert there.csc.offsets.tolist() == here.csc.offsets.tolist() == [0, 2, 3, 3, 4]
    assert there.csc.indices.tolist() == here.csc.indices.tolist() == [1, 2, 0, 1]
    assert (there.out_weight.tolist(), there.out_weight_depth) == (here.out_weight.tolist(), 0)
    assert (there.edges.source.tolist(), there.edges.destination.tolist()) == ([1, 2, 0, 1], [0, 0, 1, 3])


def test_the_dense_method_counts_the_product_with_a_count_of_edges():
    """The other rounding of an unweighted term is in `StepRounding.edge`, as for every method."""
    assert DensePull(adjacency_of(weighted=False), 256).rounding_depth == gpu_pull.ROW_DEPTH + 1


def test_the_edges_of_the_edge_method_go_with_it():
    enabled = gc.isenabled()
    gc.disable()
    try:
        push = weakref.ref(EdgePush(adjacency_of(weighted=True), 256, None))
        assert push() is None  # without waiting for the collector of cycles
    finally:
        if enabled:
            gc.enable()


@pytest.mark.parametrize("lanes", [16.0, np.float64(16), True, 5, "16", None])
def test_lanes_are_whole_numbers(lanes):
    with pytest.raises(InvalidOptionError, match="lanes must be one of 4, 8, 16, 32"):
        RowsPull(gpu_pull.csc_layout(adjacency_of(weighted=False)), "warp", lanes=lanes)
    with pytest.raises(InvalidOptionError, match="lanes must be one of 4, 8, 16, 32"):
        Segment(method="warp", threads=32, lanes=lanes)


def test_numbers_of_numpy_are_numbers(tmp_path):
    layout = gpu_pull.csc_layout(adjacency_of(weighted=False))
    pull = RowsPull(layout, "warp", lanes=np.int64(16), threads=np.int32(64))
    assert [type(value) for value in (pull.threads, pull.blocks)] == [int, int]
    segment = Segment(method="warp", threads=np.int64(64), lanes=np.int32(8), blocks=np.int16(3))
    Schedule(n=np.int64(3), m=4, segments=(segment,)).save(tmp_path / "schedule.json")
    assert Schedule.load(tmp_path / "schedule.json").segments == (segment,)
