"""The memory model on graphs of known counts: each number is the sum of the arrays that are named beside it.

`test_estimates.py` compares the same model with measured peaks, those of the device only where there is a GPU.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prplugin.graph import memory as model
from prplugin.graph.edges import Edges
from prplugin.graph.memory import NOTHING, Counts, Memory, Size, footprint
from prplugin.methods.engines import packed
from prplugin.types.edges import Blocks, Coo, Csc, Csr, Grouped, PackedParts, PackedRows

N, M = 1_000, 50_000
DEVICE, WEIGHTED = Counts(N, M, False, "device"), Counts(N, M, True, "device")
HOST, WEIGHTED_HOST = Counts(N, M, False, "host"), Counts(N, M, True, "host")
OFFSETS, HOST_OFFSETS, INDICES, WEIGHTS, VECTOR = 4 * (N + 1), 8 * (N + 1), 4 * M, 8 * M, 8 * N
CSC, WEIGHTED_CSC = OFFSETS + INDICES, OFFSETS + INDICES + WEIGHTS
SORT = 2 * 2 * INDICES + M // 2  # both endpoints twice, and half a byte of look-back words per edge
NONE = Memory(arrays=())
HOST_CSC = HOST_OFFSETS + INDICES


def then(*stages):
    """Return the bytes held and the peak after stages, each of the bytes that stay and of temporary ones."""
    held = peak = 0
    for stays, temporary in stages:
        held += stays
        peak = max(peak, held + temporary)
    return held, peak


def built(*arrays):
    return {"built": frozenset(arrays)}


def grouped(counts, **other):
    return replace(counts, **built("csc", "out_weight"), given=Csc, **other)


CASES = {
    # Arrays of the graph, on the device.
    "csc": (Memory(arrays=("csc",)), DEVICE, then((0, SORT), (CSC, 0)), 0),
    "weighted csc": (Memory(arrays=("csc",)), WEIGHTED, then((0, SORT + 2 * WEIGHTS), (WEIGHTED_CSC, 0)), 0),
    "csr": (Memory(arrays=("csr",)), DEVICE, then((0, SORT), (CSC, 0)), 0),
    "csc that exists": (Memory(arrays=("csc",)), replace(DEVICE, **built("csc")), 0, 0),
    "csc, of sources that are made": (
        Memory(arrays=("csr",)), grouped(DEVICE), then((INDICES, 0), (0, SORT), (CSC, 0)), 0,
    ),
    "rows that exist": (Memory(arrays=("rows",)), DEVICE, 0, 0),
    "out-weights": (Memory(arrays=("out_weight",)), DEVICE, VECTOR, 0),
    "sums of weights": (  # 12 1/2 bytes per edge to group them by source, and two vectors
        Memory(arrays=("out_weight",)), WEIGHTED, then((VECTOR, 25 * M // 2 + 2 * VECTOR)), 0,
    ),
    "normalized weights": (Memory(arrays=("normalized_weights",)), DEVICE, 0, 0),
    "normalized weights, of out-weights": (
        Memory(arrays=("normalized_weights",)), WEIGHTED, then((VECTOR, 25 * M // 2 + 2 * VECTOR), (WEIGHTS, 0)), 0,
    ),
    "normalized weights, of out-weights that exist": (
        Memory(arrays=("normalized_weights",)), replace(WEIGHTED, **built("out_weight")), WEIGHTS, 0,
    ),
    # On the host, with compiled kernels: 8.04 bytes per edge to group, beside the result.
    "host csc": (
        Memory("host", ("csc",)), HOST, 0, then((0, HOST_CSC + 804 * M // 100), (HOST_CSC, 0)),
    ),
    "weighted host csc": (
        Memory("host", ("csc",)), WEIGHTED_HOST, 0,
        then((0, HOST_CSC + WEIGHTS + 804 * M // 100 + WEIGHTS), (HOST_CSC + WEIGHTS, 0)),
    ),
    "host sums of weights": (Memory("host", ("out_weight",)), WEIGHTED_HOST, 0, VECTOR),
    # Terms, and sources with the structure of their groups.
    "product": (
        Memory("host", ("product",)), HOST, 0, then((8 * M, 0), (65 * M // 4, 3 * VECTOR)),
    ),
    "product of weights": (
        Memory("host", ("product",)), WEIGHTED_HOST, 0,
        then((8 * M, 0), (VECTOR, 0), (65 * M // 4 + WEIGHTS, 3 * VECTOR)),
    ),
    "product of grouped edges": (
        Memory("host", ("product",)), grouped(HOST), 0, then((8 * M, 0), (65 * M // 4, 3 * VECTOR + 6 * M)),
    ),
    "product whose structure exists": (Memory("host", ("product",)), replace(HOST, **built("product")), 0, 8 * M),
    "rows of grouped edges on the host": (Memory("host", ("rows",)), grouped(HOST), 0, 0),
    # Copies from one memory space to the other; the result goes back.
    "copied": (NONE, HOST, 2 * INDICES, VECTOR),
    "copied with weights": (NONE, WEIGHTED_HOST, 2 * INDICES + WEIGHTS + VECTOR, 2 * VECTOR),
    "copied with out-weights that exist": (
        Memory(arrays=("out_weight",)), replace(WEIGHTED_HOST, **built("rows", "out_weight")),
        2 * INDICES + WEIGHTS + VECTOR, VECTOR,
    ),
    "copied by target": (Memory(), grouped(HOST), CSC + VECTOR, VECTOR),
    "copied by target with weights": (Memory(), grouped(WEIGHTED_HOST), WEIGHTED_CSC + VECTOR, VECTOR),
    "copied before": (Memory(), replace(HOST, other_memory=grouped(DEVICE)), 0, VECTOR),
    "arrays on the host, iteration on the device": (
        Memory(arrays=("out_weight",), arrays_on="host", vertex=Size(8)), HOST, VECTOR, 2 * VECTOR,
    ),
    "arrays where the edges are": (
        Memory(arrays=("out_weight",), arrays_on="edges", vertex=Size(16)), HOST, 2 * VECTOR, 2 * VECTOR,
    ),
    # What a method allocates.
    "bytes per edge and per vertex": (
        NONE._replace(edge=Size(3, index=1, real=2, weight=9), vertex=Size(5, offset=2, normalized_weight=9)),
        DEVICE, (3 + 4 + 2 * 4) * M + (5 + 2 * 4) * N, 0,
    ),
    "of weighted edges": (
        NONE._replace(edge=Size(3, weight=2), vertex=Size(5, normalized_weight=3)), WEIGHTED,
        (3 + 2 * 8) * M + (5 + 3 * 4) * N, 0,
    ),
    "preparation": (
        NONE._replace(preparing_edge=Size(3), preparing_vertex=Size(7), preparing_bytes=11, vertex=Size(8)),
        DEVICE, then((0, 3 * M + 7 * N + 11), (VECTOR, 0)), 0,
    ),
    "preparation of some edges": (
        NONE._replace(preparing_edge=Size(3), preparing_edges=20_000), DEVICE, then((0, 3 * 20_000)), 0,
    ),
    "preparation of all edges": (
        NONE._replace(preparing_edge=Size(3), preparing_edges=2 * M), DEVICE, then((0, 3 * M)), 0,
    ),
    "pairs": (NONE._replace(pair=Size(4, weight=1)), WEIGHTED, 12 * N * N, 0),
    "packed edges on the host": (
        NONE._replace(packed_edge=Size(2), packed_vertex=Size(3)), DEVICE, 0, 2 * M + 3 * N,
    ),
    "one chunk of packed edges": (
        NONE._replace(packed_edge=Size(2), chunk_bytes=2 * M), DEVICE, 2 * M, 2 * M,
    ),
    "two buffers of five chunks": (
        NONE._replace(packed_edge=Size(2), chunk_bytes=2 * M // 5), DEVICE, 2 * 2 * M // 5, 2 * M,
    ),
    "two buffers of five quarters": (NONE._replace(packed_edge=Size(2), chunk_bytes=80_000), DEVICE, 160_000, 2 * M),
    "chunks sized for float64": (  # 10 bytes per edge in float64, 6 in float32: four chunks
        NONE._replace(packed_edge=Size(2, normalized_weight=1), chunk_bytes=10 * M // 4),
        WEIGHTED, 2 * 6 * M // 4, 6 * M,
    ),
    # Edges in tiles of 100 vertices, 11 of them, and at least 256 pieces of rows: at most 3.5 places more per cell.
    "tiles": (
        Memory(arrays=("out_weight",), tile=100, edge=Size(2), preparing_edge=Size(4)), DEVICE,
        then((VECTOR, 0), (0, 4 * (M + 7 * 11 * 256 // 2)), (2 * (M + 7 * 11 * 256 // 2), 0)), 0,
    ),
    "tiles of more vertices than half a piece": (  # 1,001 tiles, 2,001 pieces of half a tile: two cells per edge
        NONE._replace(tile=1, edge=Size(1)), DEVICE, M + 7 * M, 0,
    ),
    "pieces of half a tile": (  # 201 tiles, 401 pieces
        NONE._replace(tile=5, edge=Size(2)), replace(DEVICE, m=10**6), 2 * 10**6 + 7 * 201 * 401, 0,
    ),
    "tiles that exist": (
        Memory(tile=100, edge=Size(2, real=1, weight=1), preparing_edge=Size(99)), replace(WEIGHTED, blocked=True),
        then((VECTOR, 25 * M // 2 + 2 * VECTOR), (4 * (M + 7 * 11 * 256 // 2), 0)), 0,
    ),
    "tiles that the method does not read": (NONE._replace(edge=Size(2)), replace(DEVICE, blocked=True), 2 * M, 0),
    # Packed edges of the graph.
    "packed edges that are read": (
        NONE._replace(reads_packed=True, edge=Size(2), preparing_edge=Size(9), vertex=Size(8)),
        replace(DEVICE, packed_bytes=7), VECTOR, 0,
    ),
    "packed edges alone": (
        NONE._replace(reads_packed=True, edge=Size(2), preparing_edge=Size(9), vertex=Size(8)),
        replace(DEVICE, given=PackedParts), VECTOR, 0,
    ),
    "packed edges that are made": (
        NONE._replace(reads_packed=True, edge=Size(2), preparing_edge=Size(9)), DEVICE, then((0, 9 * M), (2 * M, 0)), 0,
    ),
    "packed edges that another method frees": (
        NONE._replace(edge=Size(2)), replace(DEVICE, packed_bytes=3 * N), then((-3 * N, 0), (2 * M, 0)), 0,
    ),
    "packed edges on the host that are read": (
        Memory("host", ("csc", "out_weight"), reads_packed=True), replace(HOST, given=PackedRows), 0, VECTOR,
    ),
    "packed edges on the host that are unpacked": (
        Memory("host", ("out_weight",)), replace(HOST, given=PackedRows), 0,
        then((0, HOST_CSC + 804 * M // 100), (HOST_CSC, 0), (VECTOR, 0)),
    ),
}  # fmt: skip


def bytes_of(expected):
    """Return the bytes held and the peak of an expectation, which may be one number for both."""
    return expected if isinstance(expected, tuple) else (expected, expected)


@pytest.mark.parametrize("case", CASES)
def test_bytes_are_the_sum_of_the_arrays(case):
    memory, counts, device, host = CASES[case]
    assert footprint(memory, counts) == (bytes_of(device), bytes_of(host))


def test_contributions_in_float32_and_float64():
    memory = NONE._replace(vertex=Size(real=1), float32_from=N)
    assert footprint(memory, DEVICE).device.held == 4 * N
    assert footprint(memory, DEVICE, real=8).device.held == 8 * N + VECTOR  # ranks of the float32 phase
    assert footprint(memory._replace(float32_from=N + 1), DEVICE).device.held == 8 * N
    assert footprint(memory._replace(float32_from=N + 1), DEVICE, real=8).device.held == 8 * N
    assert footprint(memory._replace(memory_space="host"), HOST, real=8) == ((0, 0), (8 * N, 8 * N))


def test_many_iterations_take_the_history_as_well():
    memory = NONE._replace(vertex=Size(8), many_vertex=Size(24))
    assert footprint(memory, DEVICE).device.held == VECTOR
    assert footprint(memory, DEVICE, many=True).device.held == 4 * VECTOR


def test_grouping_without_compiled_kernels(monkeypatch):
    """The permutation, and the keys that are sorted or the result."""
    monkeypatch.setattr(model.library, "is_available", lambda: False)
    memory = Memory("host", ("csc", "out_weight"))
    assert footprint(memory, HOST).host == then((0, 8 * M + 8 * M + VECTOR), (HOST_CSC, 0), (VECTOR, 0))
    result = HOST_CSC + WEIGHTS
    sums = (0, 65 * M // 4 + 3 * VECTOR)
    assert footprint(memory, WEIGHTED_HOST).host == then((0, 8 * M + result), (result, 0), sums, (VECTOR, 0))
    assert footprint(*CASES["sums of weights"][:2]).device == CASES["sums of weights"][2]  # they are for the host


def test_types_of_indices_and_offsets():
    large = Counts(2**31 + 1, 2**31 + 1, True, "device")
    assert (large.index, large.offset, large.weight) == (8, 8, 8)
    assert (DEVICE.index, DEVICE.offset, DEVICE.weight) == (4, 4, 0)
    assert (replace(large, n=2**31 - 1).index, replace(large, m=2**31 - 1).offset) == (4, 4)
    assert HOST.offset == 8
    assert vars(HOST.by_target) == vars(grouped(HOST))


def test_stages_count_each_memory_space_by_itself():
    both = NOTHING.then("device", 5, 7).then("host", 3).then("device", 4).then("host", 0, 6)
    assert both == ((9, 12), (3, 9))
    assert (both.on("device"), both.on("host")) == both


def counts_of(adjacency):
    return vars(Counts.of(adjacency))


def test_counts_of_a_graph_are_those_of_its_arrays():
    source, destination = np.array([0, 1, 2, 2], np.int32), np.array([1, 2, 0, 3], np.int32)
    fresh = Counts(4, 4, False, "host")
    listed = Edges(Coo(source, destination, None, 4))
    assert counts_of(listed) == counts_of(fresh) == vars(fresh)
    assert Counts.of(fresh) is fresh
    assert (fresh.frame_space, fresh.spread, fresh.largest_in_degree) == (None, 1.0, 0)  # nothing is known
    by_target = listed.get(Csc)
    assert counts_of(listed) == vars(replace(fresh, **built("rows", "csc")))
    assert listed.get(Csr).indices.size == listed.out_weight.size == 4
    assert counts_of(listed) == vars(replace(fresh, **built("rows", "csc", "csr", "out_weight")))
    weighted = Coo(source, destination, np.ones(4), 4)
    assert counts_of(Edges(weighted)) == vars(replace(fresh, weighted=True))
    moved = replace(weighted, frame_space="device")
    assert counts_of(Edges(moved)) == vars(replace(fresh, weighted=True, frame_space="device"))

    made = replace(fresh, given=Csc, **built("csc", "out_weight"))
    grouped_by_target = Edges.of_in_edges(by_target, listed.out_weight)
    assert counts_of(grouped_by_target) == vars(made)
    assert grouped_by_target.get(Coo).source.size == 4  # which makes both columns
    assert counts_of(grouped_by_target) == vars(replace(made, **built("rows", "csc", "out_weight")))

    grouped_by_target.given = Blocks
    assert Counts.of(grouped_by_target).blocked

    in_pieces = packed.packed_graph(listed)
    packed_made = replace(fresh, given=PackedRows, **built("out_weight"))
    assert counts_of(in_pieces) == vars(packed_made)
    in_parts = Edges(Grouped(PackedParts(False, (), by_target[1], 0, (), None, None), listed.out_weight, 4))
    assert Counts.of(in_parts).built == {"csc", "out_weight"}  # as they are read as they are
    assert in_pieces.get(Csc).indices.size == 4  # unpacks them
    assert counts_of(in_pieces) == vars(replace(packed_made, **built("csc", "out_weight")))

    unsampled = Edges(Coo(source, destination, None, 4))
    for adjacency, expected in ((listed, 0.5), (unsampled, 1.0)):  # of in-edges that exist
        vars(adjacency)["spread"] = 0.5
        assert Counts.of(adjacency).spread == expected

    before = Counts.of(listed)
    parts = PackedParts(False, (), np.zeros((0, 5)), 0, (np.zeros(3),), None, None)
    for layout, expected in ((parts, {"packed_bytes": 24}), (Blocks(*16 * [None]), {"blocked": True})):
        listed.keep(layout)
        assert counts_of(listed) == vars(replace(before, **expected))
