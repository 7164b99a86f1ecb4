"""`packed`: compression on the GPU, parts in any order, ranks. All parts need a GPU."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from in_degrees import IN_DEGREES, PROBLEMS, assert_agrees_with_numpy, assert_sums, graph, row_sums, web
from method_params import param

import prplugin
from prplugin.cpu import packing
from prplugin.graph.edges import Problem
from prplugin.graph.memory import Counts, footprint
from prplugin.machine import this_machine
from prplugin.methods import packed, persistent
from prplugin.methods.engines import packed_rows as engine
from prplugin.methods.packed import PackedPull, Packer
from prplugin.types.edges import Coo, Csc, PackedParts

PACKED = [param("packed")]


def sums_of(edges: Packer, contributions: np.ndarray) -> np.ndarray:
    import cupy

    pull, sums = PackedPull(edges.packed()), cupy.full(edges.n, math.nan)
    pull._sums._partials.fill(math.nan)
    pull(cupy.asarray(contributions), sums)
    return sums.get()


@pytest.mark.parametrize("method", PACKED)
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_edges_are_packed_to_the_bytes_of_the_host(method, in_degrees):
    import cupy

    offsets, sources, _ = graph(in_degrees, weighted=False).get(Csc)
    targets = np.repeat(np.arange(len(in_degrees), dtype=np.int32), in_degrees)
    edges = Packer(len(in_degrees))
    edges.add(cupy.asarray(sources), cupy.asarray(targets))
    sources = sources[np.lexsort((sources, targets))]
    expected = b""
    if sources.size:
        low = sources.min()
        bits = packed.bits_of(int(sources.max() - low) + 1)
        ((data, _),) = packing.pack(offsets, sources - low, bits, np.array([0, sources.size]), 1)
        expected = data.tobytes()
    assert b"".join(array.get().tobytes() for array in edges._arrays) == expected


@pytest.mark.parametrize("method", PACKED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_row_sums_from_parts_in_any_order(method, in_degrees, weighted):
    import cupy

    host = graph(in_degrees, weighted)
    coo = host.get(Coo)
    source, target, weights = coo.source, coo.destination, coo.weights
    if weighted:
        of_source = host.out_weight[source]
        weights = np.divide(weights, of_source, out=np.zeros(source.size), where=of_source > 0)
    contributions = np.random.default_rng(1).random(host.n)
    expected = row_sums(host, contributions)
    for parts in (1, 2, 5):
        edges = Packer(host.n, weighted=weighted)
        for part in np.array_split(np.arange(host.m), parts):
            some = (cupy.asarray(array[part]) for array in (source, target.astype(np.int64)))
            edges.add(*some, cupy.asarray(weights[part]) if weighted else None)
        assert edges.m == host.m
        sums = sums_of(edges, contributions)
        np.testing.assert_allclose(sums, expected, rtol=(2 + parts) * 2.0**-53, atol=0)
        assert sums.tobytes() == sums_of(edges, contributions).tobytes()
        if not weighted:
            single = contributions.astype(np.float32)
            np.testing.assert_allclose(sums_of(edges, single), row_sums(host, single), rtol=(2 + parts) * 2.0**-53)


@pytest.mark.parametrize("method", PACKED)
@pytest.mark.parametrize(
    ("source", "target", "position"), [([0, 3], [1, 1], "3"), ([0, 1], [3, 1], "3"), ([0, -1], [1, 1], "-1")]
)
def test_position_outside_graph_raises(method, source, target, position):
    import cupy

    with pytest.raises(prplugin.InvalidEdgesError) as caught:
        Packer(3).add(cupy.asarray(source), cupy.asarray(target))
    assert str(caught.value) == f"a vertex has the position {position}; positions of 3 vertices are 0 to 2."


@pytest.mark.parametrize("method", PACKED)
@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("part", [1, 5_000, packed.PART])
@pytest.mark.parametrize("memory_space", ["host", "device"])
def test_row_sums_of_a_graph(monkeypatch, method, part, reordered, memory_space):
    monkeypatch.setattr(packed, "PART", part)
    monkeypatch.setattr(engine, "SCATTERED", 0.0 if reordered else 2.0)
    host = graph([30_000, 0, *range(60), 9_000], weighted=False)
    step = packed.prepare(Problem(host.on(memory_space), 0.85), this_machine())
    assert (step._order is not None) == reordered
    step.start(np.full(host.n, 1 / host.n))
    step()
    order = (
        np.arange(host.n)
        if step._order is None
        else np.asarray(step._pull.order.get() if memory_space == "device" else step._order)
    )
    sums = np.empty(host.n)
    sums[order] = step._row_sums.get()
    inverse = np.divide(1, host.out_weight, out=np.zeros(host.n), where=host.out_weight > 0)
    expected = row_sums(host, inverse / host.n)
    if part == packed.PART:
        assert_sums(sums, expected)
    np.testing.assert_allclose(sums, expected, rtol=(2 + len(step._pull._edges.parts)) * 2.0**-53, atol=0)
    assert ("_other_memory" in vars(host)) == (memory_space == "device")  # no edges of a host graph are copied as such


def test_packed_edges_that_are_held_are_counted():
    first = Counts(1_000, 50_000, False, "device", frozenset({Csc}))
    again = replace(first, packed_bytes=90_000)
    new, held = (footprint(packed.memory, counts).device for counts in (first, again))
    assert new.held - held.held == packed.EDGE_BYTES * first.m
    assert held.peak == held.held < new.peak  # nothing is sorted
    beside, instead = (footprint(persistent.memory, counts).device for counts in (first, again))
    assert beside.held - instead.held == pytest.approx(90_000, abs=1)  # rounded down


@pytest.mark.parametrize("method", PACKED)
def test_graph_keeps_its_packed_edges_until_another_method_ranks(monkeypatch, method):
    packings = []
    monkeypatch.setattr(packed, "_packed", lambda graph, pack=packed._packed: packings.append(1) or pack(graph))
    edges = pd.DataFrame({"src": [0, 1, 2, 2, 3], "dst": [1, 2, 0, 3, 3]})
    graph = prplugin.Graph(edges)
    first = graph.rank(method="packed")
    assert graph.rank(method="packed").ranks.tobytes() == first.ranks.tobytes()
    graph.rank(method="packed", alpha=0.5)
    assert len(packings) == 1
    graph.rank(method="persistent")
    assert graph.rank(method="packed").ranks.tobytes() == first.ranks.tobytes()
    assert len(packings) == 2
    graph.rank(method="numpy", seeds=[1, 2])
    assert graph._graph.adjacency.kept(PackedParts) is None
    graph.rank(method="packed")
    graph.update(add=edges.iloc[:1])
    assert graph.rank(method="packed", tol=1e-9).ranks.tolist() == pytest.approx(
        prplugin.Graph(pd.concat([edges, edges.iloc[:1]])).rank(method="numpy", tol=1e-9).ranks.tolist(), abs=2e-9
    )


@pytest.mark.parametrize("method", PACKED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_ranks_agree_with_numpy(method, dtype, problem):
    assert_agrees_with_numpy(web(), method, dtype, problem)


@pytest.mark.parametrize("method", PACKED)
def test_generated_crawl_is_ranked(method, monkeypatch):
    from benchmarks import crawl

    monkeypatch.setattr(crawl, "STEP", 1 << 14)
    (row,) = crawl._rows(4e-4)
    assert row["residual"] <= 2 * row["error bound"] <= 2e-6
    assert 70 < row["dangling %"] < 80
    assert row["bytes per edge"] < 2.2
