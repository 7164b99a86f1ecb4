"""GPU methods on the host: copies to the device, rounding depths, references, options."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of

import prplugin
from prplugin.cpu.sums import compensated_sums
from prplugin.errors import InvalidOptionError
from prplugin.graph import edges as graphs
from prplugin.methods.engines import gpu_pull
from prplugin.papers._rows import RowsPull
from prplugin.papers.dense import DensePull
from prplugin.papers.edge import EdgePush
from prplugin.papers.segmented import Schedule, Segment
from prplugin.types.edges import Coo, Csc


def small_adjacency(*, weighted):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 1, 2, 0], "w": [1.0, 2.0, 3.0, 4.0]})
    return adjacency_of(prplugin.Graph(edges, weight="w" if weighted else None))


def test_out_weights_have_same_bits_on_host_and_device(monkeypatch, group_in_numpy):
    """Choose weights whose sum overflows float64 in another order, which would make every normalized weight 0."""
    w = np.array([np.finfo(float).max, 2.0**969, 2.0**969])
    with np.errstate(over="ignore"):
        assert np.isinf(compensated_sums(np.zeros(3, np.int32), w, 1)[0])
    group_in_numpy()
    host = adjacency_of(prplugin.Graph(pd.DataFrame({"src": [0, 0, 0], "dst": [0, 1, 2], "w": w}), weight="w"))
    monkeypatch.setattr("prplugin.types.arrays.to_device", lambda array: None if array is None else array.copy())
    monkeypatch.setattr(graphs, "synchronize", lambda memory_space: None)
    device = host.on("device")
    assert device is not host
    assert device.out_weight.tobytes() == host.out_weight.tobytes()
    assert device.out_weight_depth == host.out_weight_depth


def test_grouped_edges_are_copied_to_device_unchanged(monkeypatch):
    host = adjacency_of(prplugin.Graph(pd.DataFrame({"src": [5, 3, 5, 7], "dst": [3, 5, 9, 3]})))
    assert host.given is Csc
    host._endpoints = lambda: pytest.fail("the edge list was rebuilt")
    monkeypatch.setattr("prplugin.types.arrays.to_device", lambda array: None if array is None else array.copy())
    monkeypatch.setattr(graphs, "synchronize", lambda memory_space: None)
    device = host.on("device")
    assert device.get(Csc).offsets.dtype == np.int32
    assert device.get(Csc).offsets.tolist() == host.get(Csc).offsets.tolist() == [0, 2, 3, 3, 4]
    assert device.get(Csc).indices.tolist() == host.get(Csc).indices.tolist() == [1, 2, 0, 1]
    assert (device.out_weight.tolist(), device.out_weight_depth) == (host.out_weight.tolist(), 0)
    assert (device.get(Coo).source.tolist(), device.get(Coo).destination.tolist()) == ([1, 2, 0, 1], [0, 0, 1, 3])


def test_rounding_depth_of_dense_includes_product():
    """Count the rounding of the product with the number of parallel edges; `StepRounding.edge` has the division."""
    adjacency = small_adjacency(weighted=False)
    assert DensePull(adjacency, 256, keeper=adjacency).rounding_depth == gpu_pull.ROW_DEPTH + 1


def test_edge_push_is_freed_without_garbage_collection():
    enabled = gc.isenabled()
    gc.disable()
    try:
        push = weakref.ref(EdgePush(small_adjacency(weighted=True), 256, None))
        assert push() is None  # no reference cycle keeps it
    finally:
        if enabled:
            gc.enable()


@pytest.mark.parametrize("lanes", [16.0, np.float64(16), True, 5, "16", None])
def test_invalid_lanes_raise(lanes):
    with pytest.raises(InvalidOptionError, match="lanes must be one of 4, 8, 16, 32"):
        RowsPull(gpu_pull.csc_layout(small_adjacency(weighted=False)), "warp", lanes=lanes)
    with pytest.raises(InvalidOptionError, match="lanes must be one of 4, 8, 16, 32"):
        Segment(method="warp", threads=32, lanes=lanes)


def test_numpy_integers_are_valid_options(tmp_path):
    layout = gpu_pull.csc_layout(small_adjacency(weighted=False))
    pull = RowsPull(layout, "warp", lanes=np.int64(16), threads=np.int32(64))
    assert [type(value) for value in (pull.threads, pull.blocks)] == [int, int]
    segment = Segment(method="warp", threads=np.int64(64), lanes=np.int32(8), blocks=np.int16(3))
    Schedule(n=np.int64(3), m=4, segments=(segment,)).save(tmp_path / "schedule.json")
    assert Schedule.load(tmp_path / "schedule.json").segments == (segment,)
