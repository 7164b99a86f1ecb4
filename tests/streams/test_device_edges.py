"""Updates that copy all edges, compared with updates in place: on the GPU, and with NumPy in place of its kernels."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.gpu import runtime
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.edges import Edges
from prplugin.streams import device_edges
from prplugin.streams.changes import ChangeError
from prplugin.streams.host_edges import HostEdges
from prplugin.types.arrays import to_host, to_memory
from prplugin.types.edges import Compressed, Coo, Csc, Csr

UNAVAILABLE = runtime.unavailable_reason()
MEMORY_SPACES = [
    "host",
    pytest.param("device", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(UNAVAILABLE), reason=str(UNAVAILABLE))]),
]


def find_edges(present, wanted, nth):
    """Find edges as `prplugin.gpu.splice.find_edges` does."""
    found = []
    for row, number in enumerate(nth):
        begin, end = present.offsets[wanted.destination[row] :][:2]
        matching = present.indices[begin:end] == wanted.source[row]
        if wanted.weights is not None:
            matching &= present.weights[begin:end] == wanted.weights[row]
        found.append([*(begin + np.flatnonzero(matching)), *[-1] * wanted.m][number])
    return np.array(found, np.int64)


def spliced(present, removed, added, out_degrees):
    """Replace edges as `prplugin.gpu.splice.spliced` does."""
    if out_degrees is not None:
        np.subtract.at(out_degrees, present.indices[removed], 1)
        np.add.at(out_degrees, added.source, 1)
    targets = np.concatenate([np.delete(rows_of(present.offsets), removed), added.destination])
    order = np.argsort(targets, kind="stable")
    columns = zip(present[1:], (added.source, added.weights), strict=True)
    joined = [None if old is None else np.concatenate([np.delete(old, removed), new])[order] for old, new in columns]
    counts = np.bincount(targets.astype(np.int64), minlength=present.offsets.size - 1)
    return Compressed(offsets_of(counts), joined[0].astype(present.indices.dtype), joined[1])


@pytest.fixture(params=MEMORY_SPACES)
def on_either(request, monkeypatch):
    """Return a function that moves a graph on the host to host or device memory, for updates by copies there."""
    if request.param == "host":
        splice = SimpleNamespace(find_edges=find_edges, spliced=spliced)
        monkeypatch.setitem(sys.modules, "prplugin.gpu.splice", splice)
        monkeypatch.setattr("prplugin.gpu.splice", splice, raising=False)
    return lambda adjacency: adjacency.on(request.param)


def random_edges(rng, m, n, weighted):
    source, destination = rng.integers(0, n, (2, m)).astype(np.int32)
    return Coo(source, destination, rng.choice([0.0, -0.0, 0.25, 1.0, 3.0], m) if weighted else None, n)


def triples(adjacency):
    """Return the edges, sorted by source and target; of parallel edges the one first added comes first."""
    offsets, targets, weights = map(to_host, adjacency.get(Csr))
    sources = np.repeat(np.arange(adjacency.n), np.diff(offsets))
    order = np.lexsort((targets, sources))
    weights = np.ones(order.size) if weights is None else weights
    return list(zip(sources[order].tolist(), targets[order].tolist(), weights[order].tolist(), strict=True))


def removal(rng, present, n, positions, weighted):
    """Return some edges of the graph, or random ones, of which most do not exist."""
    count = int(rng.integers(0, 4))
    if not present or rng.random() < 0.15:
        return random_edges(rng, count, n, weighted=False)
    chosen = [present[row] for row in rng.permutation(len(present))[:count]]
    source, destination = (np.array([edge[end] for edge in chosen], np.int64) for end in range(2))
    if positions is not None:
        source, destination = positions[source], positions[destination]
    weights = np.array([edge[2] for edge in chosen]) if weighted and rng.random() < 0.6 else None
    return Coo(source, destination, weights, n)


def attempted(change, *given, directed):
    """Return the result of a change, or the error."""
    try:
        return change(*given, directed=directed), None
    except ChangeError as error:
        return None, (error.kind, error.positions.tolist())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("duplicates", ["sum", "first", "last", "error"])
def test_copied_edges_equal_those_changed_in_place(duplicates, directed, weighted, on_either):
    outcomes: Counter[str] = Counter()
    unique = "first" if duplicates == "error" else duplicates
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        edges = drop_duplicates(random_edges(rng, int(rng.integers(0, 15)), n, weighted), unique, directed=directed)
        adjacency = Edges(edges if directed else with_reverse_edges(edges))
        in_place, copied = HostEdges(adjacency, None), on_either(adjacency)
        for _ in range(6):
            present, positions, before = triples(in_place.adjacency), None, in_place
            if rng.random() < 0.3:
                n = in_place.n + int(rng.integers(1, 3))
                positions = None if rng.random() < 0.5 else np.sort(rng.choice(n, in_place.n, replace=False))
                before = in_place.with_vertices(n, positions)
            n = before.n
            added = random_edges(rng, int(rng.integers(0, 5)), n, weighted)
            added = drop_duplicates(added, unique, directed=directed)
            removed = removal(rng, present, n, positions, weighted)
            change, moved = (added, removed, duplicates), to_memory(positions, copied.memory_space)
            plan, error = attempted(before.plan, *change, directed=directed)
            other, other_error = attempted(partial(device_edges.changed, copied, n, moved), *change, directed=directed)
            assert error == other_error
            outcomes["changed" if error is None else error[0]] += 1
            if error is None:
                before.commit(plan)
                in_place, copied = before, other
            expected = in_place.adjacency
            assert triples(copied) == triples(expected)
            assert (copied.n, copied.m) == (expected.n, expected.m) == (in_place.n, in_place.m)
            np.testing.assert_array_equal(to_host(copied.get(Csc).offsets), expected.get(Csc).offsets)
            np.testing.assert_allclose(to_host(copied.out_weight), expected.out_weight, rtol=1e-15)
    assert outcomes["changed"] > 60
    assert outcomes["missing"] > 3
    assert (outcomes["repeated"] > 3) == (duplicates == "error")


def test_overflow_leaves_the_edges_unchanged(on_either):
    ends = np.array([0, 1], np.int32)
    edges = Coo(ends, ends[::-1].copy(), np.array([1e308, 1.0]), 2)
    graph = on_either(Edges(edges))
    with pytest.raises(ChangeError) as caught:
        device_edges.changed(graph, 2, None, edges, edges.take(slice(0)), "sum", directed=True)
    assert (caught.value.kind, caught.value.positions.tolist()) == ("overflow", [0])
    assert graph.m == 2


def test_bounds_of_weights_cover_added_edges(on_either):
    ends = np.array([0], np.int32)
    edges = [Coo(ends, ends, np.array([weight]), 1, (weight, weight)) for weight in (0.0, 4.0, 0.25)]
    graph = on_either(Edges(edges[0]))
    for added, extent in ((edges[1], (4.0, 4.0)), (edges[0], (4.0, 4.0)), (edges[2], (0.25, 4.0))):
        graph = device_edges.changed(graph, 1, None, added, added.take(slice(0)), "sum", directed=True)
        assert graph.extent == extent
