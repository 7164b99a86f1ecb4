"""`propagation-blocking`: spans, layout, and ranks with small tiles and pieces. The first part needs no GPU."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from method_params import param

import prplugin
from conformance.shapes import SHAPES
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.methods import propagation_blocking
from prplugin.methods.engines import gpu_merge
from prplugin.methods.propagation_blocking import CHUNK
from prplugin.types.edges import Edges

BLOCKED = [param("propagation-blocking")]

# --- spans --------------------------------------------------------------------------------------------------------


@given(
    chunks=st.lists(st.sampled_from([0, 1, 31, 32, 33, 5_000, 100_000]), min_size=1, max_size=8),
    most=st.sampled_from([1, 12, 32, 1000, 9_000]),
)
def test_spans_cover_every_chunk_once(chunks, most):
    chunks = np.array(chunks)
    bounds = propagation_blocking.spans(chunks, most)
    assert bounds.dtype == np.int64
    assert bounds.flags.c_contiguous
    assert (bounds[:, 2] > bounds[:, 1]).all()
    assert (bounds[:, 2] - bounds[:, 1] <= most).all()
    ends = np.cumsum(chunks)
    for tile, (begin, end) in enumerate(zip(ends - chunks, ends, strict=True)):
        spans = bounds[bounds[:, 0] == tile, 1:]
        assert (spans[:, 1] - spans[:, 0]).sum() == chunks[tile]
        if spans.size:
            assert (spans[0, 0], spans[-1, 1]) == (begin, end)
        assert all(one[1] == other[0] for one, other in pairwise(spans))


@pytest.mark.parametrize("items", [1, 2_048, 10**6, 88 * 10**6, 3 * 10**9])
@pytest.mark.parametrize("most", [7_168, 24_000])
def test_blocks_get_equal_numbers_of_pieces(monkeypatch, items, most):
    monkeypatch.setattr(runtime, "multiprocessors", lambda: 132)
    size = propagation_blocking._even(items, most)
    assert size % 32 == 0
    assert propagation_blocking.LEAST <= size <= most
    pieces, blocks = -(-items // size), 132 * propagation_blocking.BLOCKS
    assert pieces <= blocks or -(-pieces // blocks) * blocks - pieces < 0.02 * pieces + blocks / 4


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("tile", 48, "tile must be a positive multiple of 32 and at most 24,000, not 48."),
        ("tile", 32_000, "tile must be a positive multiple of 32 and at most 24,000, not 32000."),
        ("piece", 0, "piece must be a positive multiple of 32 and at most 24,000, not 0."),
        ("piece", True, "piece must be a positive multiple of 32 and at most 24,000, not True."),
    ],
)
def test_invalid_options_raise(monkeypatch, option, value, message):
    monkeypatch.setattr(propagation_blocking, "_most", lambda: 24_000)
    monkeypatch.setattr(runtime, "multiprocessors", lambda: 132)
    adjacency = Adjacency(Edges(np.zeros(1, np.int32), np.zeros(1, np.int32), None, 1))
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        propagation_blocking.BlockedPlan(adjacency, **{option: value})
    assert str(caught.value) == message


# --- layout -------------------------------------------------------------------------------------------------------


def skewed(n: int, m: int, weighted: bool = False) -> Adjacency:
    """Return a graph with hubs, empty rows, and tiles with few out-edges."""
    random = np.random.default_rng(n + m)
    source, target = ((n * random.random(m) ** power).astype(np.int32) for power in (3, 5))
    return Adjacency(Edges(source, target, random.integers(0, 9, m).astype(float) if weighted else None, n))


GRAPHS = {"no edges": (5, 0), "one tile": (30, 500), "hubs": (2_000, 30_000), "few edges": (9_000, 3_000)}


@pytest.mark.parametrize("method", BLOCKED)
@pytest.mark.parametrize("sizes", [(32, 32), (32, 1_024), (96, 256), (1_024, 96), (12_000, 4_096)])
@pytest.mark.parametrize("shape", GRAPHS.values(), ids=GRAPHS)
def test_layout_has_every_edge_in_both_orders(method, shape, sizes):
    (tile, size), adjacency = sizes, skewed(*shape).on("device")
    pieces = gpu_merge.cut(adjacency.csc.offsets, adjacency.m, size, np.int32)
    layouts = [propagation_blocking.build_blocks(pieces, adjacency.csc.indices, tile) for _ in range(2)]
    names = ("bounds", "tile_sources", "chunk_by_piece", "begins", "piece_edges")
    bounds, local, goals, begins, spots = (getattr(layouts[0], name).get() for name in names)
    cuts, sources = pieces.cuts.get().astype(np.int64), adjacency.csc.indices.get()
    assert begins[0] == 0
    assert local.size == spots.size == CHUNK * goals.size == CHUNK * begins[-1]
    by_piece = {}  # source of each edge, by its position in the layout
    for p in range(pieces.count):
        begin, end = p * size - cuts[p], min((p + 1) * size, pieces.n + pieces.m) - cuts[p + 1]
        places = np.arange(CHUNK * begins[p], CHUNK * begins[p + 1])
        assert (spots[places[spots[places] >= end - begin]] == size).all()
        places = places[spots[places] < end - begin]
        edges = begin + spots[places].astype(np.int64)
        assert sorted(edges) == list(range(begin, end))
        assert (np.diff(sources[edges] // tile) >= 0).all()
        by_piece |= dict(zip(places.tolist(), sources[edges].tolist(), strict=True))
    assert len(by_piece) == adjacency.m
    assert sorted(goals) == list(range(goals.size))
    assert sum(end - first for _, first, end in bounds) == goals.size
    for of_tile, first, end in bounds:
        for chunk in range(first, end):
            for k in range(CHUNK):
                source = by_piece.pop(int(goals[chunk]) * CHUNK + k, of_tile * tile)  # the default is for padding
                assert source == of_tile * tile + local[chunk * CHUNK + k]
    assert not by_piece
    assert all(
        (getattr(layouts[0], name) == getattr(layouts[1], name)).all()
        for name in ("bounds", "chunk_by_piece", "begins")
    )


# --- ranks --------------------------------------------------------------------------------------------------------


def assert_agrees_with_numpy(graph: prplugin.Graph, dtype: str, **options) -> None:
    """Check that ranks agree with `numpy` within both error bounds, and that a second run gives the same bits."""
    tol = 1e-10 if dtype == "float64" else 1e-6
    other = graph.rank(method="numpy", dtype=dtype, tol=tol)
    one, again = (graph.rank(method="propagation-blocking", dtype=dtype, tol=tol, **options) for _ in range(2))
    distance = np.abs(one.ranks.astype(float) - other.ranks.astype(float)).sum()
    assert distance <= one.error_bound + other.error_bound <= 2 * tol
    assert one.ranks.tobytes() == again.ranks.tobytes()


@pytest.mark.parametrize("method", BLOCKED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_small_tiles_and_pieces_agree_with_numpy(method, dtype, shape):
    frame, arguments = SHAPES[shape]()
    graph = prplugin.Graph(frame, **arguments)
    for tile, piece in (32, 32), (64, 1_024), (1_024, 96):
        if len(frame) < 10_000 * piece:
            assert_agrees_with_numpy(graph, dtype, tile=tile, piece=piece)


@pytest.mark.parametrize("method", BLOCKED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_large_tiles_and_pieces_agree_with_numpy(method, dtype, weight):
    random = np.random.default_rng(4)
    n, m = 100_000, 1_000_000
    source, target = ((n * random.random(m) ** power).astype(np.int64) for power in (2, 4))
    frame = pd.DataFrame({"src": source, "dst": target, "w": random.random(m)})
    assert_agrees_with_numpy(prplugin.Graph(frame, weight=weight), dtype)
    assert_agrees_with_numpy(
        prplugin.Graph(frame, weight=weight), dtype, tile=24_000 if dtype == "float64" else 6_400, piece=6_400
    )


@pytest.mark.parametrize("method", BLOCKED)
def test_start_by_in_degree_saves_iterations(method):
    # Ranks of an undirected graph are nearly proportional to its degrees. A limit of iterations asks for equal ranks.
    adjacency = skewed(20_000, 200_000)
    frame = pd.DataFrame({"src": adjacency.edges.source, "dst": adjacency.edges.destination})
    graph = prplugin.Graph(frame, directed=False)
    by_degree, equal = (graph.rank(method="propagation-blocking", max_iter=most) for most in (None, 1_000))
    assert by_degree.iterations < equal.iterations
    assert np.abs(by_degree.ranks - equal.ranks).sum() <= by_degree.error_bound + equal.error_bound


@pytest.mark.parametrize("method", BLOCKED)
@pytest.mark.parametrize("weighted", [False, True])
def test_64_bit_offsets_give_same_bits(method, weighted):
    from prplugin.graph.problem import Problem
    from prplugin.machine import this_machine

    bits = set()
    for wide in (np.int32, np.int64):
        adjacency = skewed(3_000, 20_000, weighted).on("device")
        offsets, sources, weights = adjacency.csc
        adjacency.__dict__["csc"] = type(adjacency.csc)(offsets.astype(wide), sources, weights)
        step = propagation_blocking.prepare(Problem(adjacency, 0.85), this_machine(), tile=64, piece=96)
        for dtype in ("float64", "float32", "float64"):
            step.set_contribution_dtype(dtype)
            step.start(np.full(adjacency.n, 1 / adjacency.n))
            for _ in range(5):
                step()
        bits.add(step.ranks().tobytes())
    assert len(bits) == 1
