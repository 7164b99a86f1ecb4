"""The memory model on graphs of known counts; `test_estimates.py` compares it with measured peaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prplugin.graph.edges import Edges
from prplugin.graph.memory import COPIED, CSC, NONE, Counts, Footprint, Made, Memory, Rate, footprint
from prplugin.methods.engines import packed_rows
from prplugin.types.edges import Blocks, Coo, Csc, Csr, Grouped, PackedParts, PackedRows

N, M = 1_000, 50_000
DEVICE, WEIGHTED = Counts(N, M, False, "device"), Counts(N, M, True, "device")
HOST, WEIGHTED_HOST = Counts(N, M, False, "host"), Counts(N, M, True, "host")
READY = Memory(layout=Coo)  # reads what there is
CSC_THERE, CSC_HERE = CSC["device"].kept.of(DEVICE), CSC["host"].kept.of(HOST)


def grouped(counts, **other):
    return replace(counts, layouts=frozenset({Csc}), given=Csc, **other)


def peaks(memory, counts, **options):
    found = footprint(memory, counts, **options)
    return found.device.peak, found.host.peak


@pytest.mark.parametrize(
    ("memory", "counts", "device", "host"),
    [
        (Memory(), DEVICE, 16.5 * M, 0),
        (Memory(), WEIGHTED, 32.5 * M, 0),
        (Memory(), grouped(DEVICE), 0, 0),
        (Memory("host"), HOST, 0, 12.1 * M + 8 * N),
        (Memory("host", normalizes=True), WEIGHTED_HOST, 0, 28.1 * M + 8 * N),
        (Memory("host", normalizes=True), grouped(WEIGHTED_HOST), 0, 8 * M),
        (Memory(made=Made(Rate(3), Rate(2, 0, 8)), step=Rate(4, 9, 1)), DEVICE, 6 * M + 9 * N, 0),
        (Memory(made=Made(Rate(30), Rate(2, 0, 8)), step=Rate(4, 9, 1)), DEVICE, 30 * M, 0),
        (READY._replace(step=Rate(3, 16, 5)), WEIGHTED, 19 * M + 5 * N, 0),
        (READY._replace(preparing=Rate(3, vertex=7), step=Rate(2)), DEVICE, 3 * M + 7 * N, 0),
        (READY._replace(preparing=Rate(3), preparing_edges=20_000), DEVICE, 3 * 20_000, 0),
        (READY._replace(preparing=Rate(3), preparing_edges=2 * M), DEVICE, 3 * M, 0),
        (READY._replace(pair=4), DEVICE, 4 * N * N, 0),
        # Of the other memory space, with the result; weighted edges have their out-weights summed.
        (READY, HOST, 8 * M, 8 * N),
        (READY, WEIGHTED_HOST, 16 * M, 16 * N),
        (Memory("host", layout=Coo), WEIGHTED, 12.5 * M + 24 * N, 16 * M),
        (Memory(), grouped(HOST), CSC_THERE, 8 * N),
        (Memory(), replace(HOST, other_memory=grouped(DEVICE)), 0, 8 * N),
        (Memory(layout_in="host", step=Rate(1)), HOST, M, 12.1 * M + 8 * N),
        (Memory(layout_in="edges", step=Rate(1)), DEVICE, 16.5 * M, 0),
        (READY._replace(lists=True), grouped(DEVICE), 16.5 * M, 0),
        (Memory(lists=True), grouped(DEVICE), 4 * M, 0),
        # Chunks of packed edges on the host.
        (READY._replace(host=Rate(2, 4, 3), chunks=10**9), WEIGHTED, 6 * M, 6 * M + 3 * N),
        (READY._replace(host=Rate(2, 4, 3), chunks=1000), WEIGHTED, 1000, 6 * M + 3 * N),
        # Packed edges of the graph.
        (READY._replace(packs=True, step=Rate(2, 8, 8), preparing=Rate(9)), replace(DEVICE, packed_bytes=7), 8 * N, 0),
        (Memory(packs=True, step=Rate(2, 8, 8)), replace(grouped(DEVICE), given=PackedParts), 8 * N, 0),
        (Memory(step=Rate(2)), grouped(DEVICE, packed_bytes=3 * N), 2 * M - 3 * N, 0),
        (Memory("host", packs=True), replace(HOST, layouts=frozenset({PackedRows}), given=PackedRows), 0, 0),
        (Memory("host"), replace(HOST, layouts=frozenset({PackedRows}), given=PackedRows), 0, 12.1 * M + 8 * N),
        (
            Memory("host", layout="product", made=Made(NONE, Rate(9))),
            replace(HOST, layouts=frozenset({PackedRows}), given=PackedRows), 0, CSC_HERE + 9 * M,
        ),
    ],
)  # fmt: skip
def test_bytes_are_those_of_the_coefficients(memory, counts, device, host):
    assert peaks(memory, counts) == pytest.approx((device, host), rel=0, abs=2)


def test_many_iterations_take_float64_and_the_history():
    memory = READY._replace(step=Rate(vertex=8), float64=Rate(0, 4, 4), float32_from=N + 1, more=Rate(vertex=24))
    assert peaks(memory, WEIGHTED) == (4 * M + 12 * N, 0)
    assert peaks(memory._replace(float32_from=N), WEIGHTED) == (8 * N, 0)
    assert peaks(memory._replace(float32_from=N), WEIGHTED, many=True) == (4 * M + 36 * N, 0)
    assert peaks(READY._replace(pair=4), WEIGHTED, many=True) == (8 * N * N, 0)
    assert peaks(READY._replace(host=Rate(1, 4)), WEIGHTED, many=True) == (0, 9 * M)


def test_positions_of_many_vertices_take_twice_as_much():
    few, many = (Rate(3, 8, 5).of(Counts(n, M, True, "host")) for n in (2**31 - 1, 2**31))
    assert (few, many) == (11 * M + 5 * (2**31 - 1), 14 * M + 5 * 2**31)
    assert COPIED.of(WEIGHTED, 100) == 1_600


def test_stages_count_each_memory_space_by_itself():
    both = Footprint().then("device", 5, 12).then("host", 3).then("device", 4).then("host", 0, 6)
    assert both == ((9, 12), (3, 9))
    assert (both.on("device"), both.on("host")) == both


def test_counts_of_a_graph_are_those_of_its_layouts():
    source, destination = np.array([0, 1, 2, 2], np.int32), np.array([1, 2, 0, 3], np.int32)
    listed = Edges(Coo(source, destination, None, 4))
    counts = Counts.of(listed)
    assert Counts.of(counts) is counts
    assert (counts.n, counts.m, counts.weighted, counts.memory_space) == (4, 4, False, "host")
    assert (counts.frame_space, counts.spread, counts.largest_in_degree, counts.packed_bytes) == (None, 1.0, 0, 0)
    assert Coo in counts.layouts
    assert not counts.layouts & {Csc, Csr, "product", "normalized_weights"}
    by_target = listed.get(Csc)
    assert listed.get(Csr).indices.size == listed.out_weight.size == 4
    assert Counts.of(listed).layouts >= {Coo, Csc, Csr}
    weighted = Edges(Coo(source, destination, np.ones(4), 4, frame_space="device"))
    assert weighted.normalized_weights.size == 4
    counts = Counts.of(weighted)
    assert counts.weighted
    assert counts.frame_space == "device"
    assert "normalized_weights" in counts.layouts

    made = Edges.of_in_edges(by_target, listed.out_weight)
    assert (Counts.of(made).given, Coo in Counts.of(made).layouts, Csc in Counts.of(made).layouts) == (Csc, False, True)
    in_pieces = packed_rows.packed_graph(listed)
    assert Csc not in Counts.of(in_pieces).layouts
    in_parts = Edges(Grouped(PackedParts(False, (), by_target[1], 0, (), None, None), listed.out_weight, 4))
    assert Csc in Counts.of(in_parts).layouts  # as they are read as they are
    assert in_pieces.get(Csc).indices.size == 4  # unpacks them
    assert Csc in Counts.of(in_pieces).layouts

    unsampled = Edges(Coo(source, destination, None, 4))
    for adjacency, expected in ((listed, 0.5), (unsampled, 1.0)):  # of in-edges that exist
        vars(adjacency)["spread"] = 0.5
        assert Counts.of(adjacency).spread == expected

    listed.keep(PackedParts(False, (), np.zeros((0, 5)), 0, (np.zeros(3),), None, None))
    assert Counts.of(listed).packed_bytes == 24
    listed.keep(Blocks(*16 * [None]))
    assert Blocks in Counts.of(listed).layouts


def test_what_stays_of_a_layout_and_its_out_weights():
    assert footprint(Memory(), WEIGHTED).device.held == 12 * M + 12 * N
    assert footprint(Memory("host"), WEIGHTED_HOST).host.held == 12 * M + 16 * N
