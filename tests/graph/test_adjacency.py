"""Facts of a graph that methods read: degrees, weights that overflow, and whether its edges are near one another."""

from __future__ import annotations

import numpy as np
import pytest

import prplugin
from prplugin.graph import edges as module
from prplugin.graph.edges import Edges, normalized_weights, sectors_per_edge
from prplugin.types.edges import Blocks, Coo, Csc, Csr, Grouped, PackedParts


def graph(source, destination, n, weights=None, **options):
    ends = (np.array(column, np.int32) for column in (source, destination))
    return Edges(Coo(*ends, None if weights is None else np.array(weights, float), n, **options))


def test_degrees():
    found = graph([0, 0, 3, 3, 3], [1, 1, 1, 0, 2], 5)
    assert found.largest_in_degree == 3
    assert found.dangling.tolist() == [1, 2, 4]
    assert found.out_weight.tolist() == [2, 0, 0, 3, 0]
    assert found.inverse_out_weight.tolist() == [1 / 2, 0, 0, 1 / 3, 0]
    assert graph([0, 1, 2], [3, 3, 0], 4).largest_in_degree == 2  # not that of the first or the last vertex
    assert graph([], [], 3).largest_in_degree == graph([], [], 0).largest_in_degree == 0


def test_weights_that_overflow_are_looked_for_where_they_may():
    large = 2.0**1023
    for extent, expected in (((1.0, large), [0]), ((1.0, 2.0**1021), [])):  # m times the latter does not overflow
        assert (
            graph([0, 0, 1], [1, 2, 0], 3, [large, large, 1.0], extent=extent).overflowing_vertices().tolist()
            == expected
        )
    assert graph([0, 0], [1, 1], 2).overflowing_vertices().size == 0


def test_roundings_of_weights_count_twice():
    found = graph([0, 1], [1, 0], 2, [1.0, 2.0], roundings=7)
    found.set_out_weight(found.out_weight, 3)
    assert found.out_weight_depth == 3 + 2 * 7


@pytest.mark.parametrize("chunk", [1, 3, 1 << 16])
def test_normalized_weights(chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    weights, sources, out_weight = (
        np.array([1.0, 3.0, 0.0, 5.0, 2.0]),
        np.array([0, 0, 1, 2, 2]),
        np.array([4.0, 0.0, 8.0]),
    )
    assert normalized_weights(weights, sources, out_weight).tolist() == [0.25, 0.75, 0.0, 0.625, 0.25]


def test_a_layout_is_kept_until_a_method_ranks_that_does_not_read_it():
    found, packed = graph([0], [1], 2), PackedParts(False, (), np.zeros((1, 5)), 0, (np.ones(3),), None, None)
    assert found.kept(PackedParts) is None
    found.keep(packed)
    assert found.kept(PackedParts) is packed
    assert found.kept(Blocks) is None
    found.keep_only((PackedParts, Csc))
    assert found.kept(PackedParts) is packed
    found.keep_only((Csc,))
    assert found.kept(PackedParts) is None


def test_edges_are_converted_to_other_layouts_once():
    found = graph([1, 0, 1], [0, 2, 2], 3)
    assert found.held(Csc) is None
    assert [array.tolist() for array in found.get(Csc)[:2]] == [[0, 1, 1, 3], [1, 0, 1]]
    assert found.get(Csc) is found.held(Csc)
    by_target = Edges.of_in_edges(found.get(Csc), found.out_weight)
    assert by_target.held(Coo) is None
    assert by_target.get(Coo).destination.tolist() == [0, 2, 2]
    assert [array.tolist() for array in by_target.get(Csr)[:2]] == [[0, 1, 3, 3], [2, 0, 2]]


def test_what_no_conversion_makes_is_refused():
    with pytest.raises(prplugin.MethodUnavailableError, match="the layout Blocks only by the method that reads it"):
        graph([0], [1], 2).get(Blocks)
    table = np.zeros((1, 5), np.int64)
    packed, weighted = (
        Edges(Grouped(PackedParts(has_weights, (), table, 0, (), None, None), np.ones(2), 2))
        for has_weights in (False, True)
    )
    assert (packed.weighted, weighted.weighted) == (False, True)
    assert packed.get(PackedParts).table is table
    for layout in (Coo, Csc, Csr):
        with pytest.raises(prplugin.MethodUnavailableError, match="the 2 edges were packed when they were read"):
            packed.get(layout)


N, M = 1_000_000, 16_384


@pytest.fixture
def on_device(monkeypatch):
    """Return a function that makes a graph which takes its arrays for device memory."""
    monkeypatch.setattr(module, "SAMPLED_FROM", M)
    monkeypatch.setattr(module, "synchronize", lambda memory_space: None)

    def make(near, m=M):
        random = np.random.default_rng(0)
        source = random.integers(0, N - 100, m)
        found = graph(source, np.where(random.random(m) < near, source + 50, random.integers(0, N, m)), N)
        found.memory_space = "device"
        return found

    return make


def test_spread_of_edges_is_sampled_if_most_are_near(on_device):
    assert on_device(near=0.6).spread == sectors_per_edge(on_device(near=0.6).get(Csc).indices) != 1.0
    far = on_device(near=0.2)
    assert far.spread == 1.0
    assert far.held(Csc) is None  # takes memory
    known = on_device(near=0.2)
    assert known.get(Csc).indices.size == M
    assert known.spread == sectors_per_edge(known.get(Csc).indices) != 1.0
    grouped = Edges.of_in_edges(known.get(Csc), known.out_weight)
    assert grouped.spread == 1.0  # on the host
    grouped = Edges.of_in_edges(known.get(Csc), known.out_weight)
    grouped.memory_space = "device"
    assert grouped.spread == known.spread


@pytest.mark.parametrize("change", ["few", "packed", "blocks"])
def test_spread_of_other_graphs_is_not_sampled(on_device, change):
    found = on_device(near=1.0, m=M - (change == "few"))
    if change == "packed":
        found.given = PackedParts
    if change == "blocks":
        found = Edges.of_in_edges(found.get(Csc), found.out_weight)
        found.memory_space, found.given = "device", Blocks
    assert found.spread == 1.0


def test_a_kept_step_is_freed_with_the_layout_and_taken_once():
    kept, step = graph([0], [1], 2), object()
    kept.keep_step("one", step)
    assert (kept.has_step("one"), kept.has_step("other")) == (True, False)
    kept.keep(object())
    assert kept.take_step("one") is step
    assert (kept.has_step("one"), kept.take_step("one")) == (False, None)
    kept.keep_step("one", step)
    assert kept.take_step("other") is None
    kept.keep_step("one", step)
    kept.keep(None)
    assert not kept.has_step("one")
