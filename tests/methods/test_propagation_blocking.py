"""`propagation-blocking`: spans, layout, and ranks with small tiles and pieces. The first part needs no GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from method_params import param

import prplugin
from conformance.shapes import SHAPES
from prplugin.gpu import blocks
from prplugin.gpu.blocks import CHUNK
from prplugin.graph.edges import Edges
from prplugin.methods import propagation_blocking
from prplugin.types.arrays import to_host
from prplugin.types.edges import Blocks, Coo

BLOCKED = [param("propagation-blocking")]

# --- spans --------------------------------------------------------------------------------------------------------


@given(
    chunks=st.lists(st.sampled_from([0, 1, 31, 32, 33, 5_000, 100_000]), min_size=1, max_size=8),
    most=st.sampled_from([1, 12, 32, 1000, 9_000]),
)
def test_spans_cover_every_chunk_once(chunks, most):
    chunks = np.array(chunks)
    bounds = blocks.split(chunks, most)
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


@given(
    chunks=st.lists(st.sampled_from([0, 1, 31, 33, 5_000, 100_000]), min_size=1, max_size=8),
    most=st.sampled_from([1, 12, 1000, 9_000]),
)
def test_units_cover_every_chunk_once(chunks, most):
    bounds, several = blocks.units_of(np.array(chunks), most)
    assert bounds.dtype == np.int64
    assert bounds.flags.c_contiguous
    lengths = bounds[:, 2] - bounds[:, 1]
    assert (np.diff(lengths) <= 0).all()
    ends = np.cumsum(chunks)
    numbers = []
    for piece, (begin, end) in enumerate(zip(ends - chunks, ends, strict=True)):
        units = bounds[bounds[:, 0] == piece]
        units = units[np.argsort(units[:, 3])]
        assert units[0, 1] == begin
        assert units[-1, 2] == end
        assert (units[1:, 1] == units[:-1, 2]).all()
        assert units[:, 3].tolist() == units[::-1, 4].tolist() == list(range(len(units)))
        assert len(set(units[:, 5])) == 1
        assert (units[0, 5] >= 0) == (len(units) > 1)
        numbers += [units[0, 5]] if len(units) > 1 else []
    assert numbers == list(range(several))
    assert lengths.max(initial=0) <= most


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("tile", 48, "tile must be a positive multiple of 32 and at most 16,384, not 48."),
        ("tile", 96, "tile must be a power of two, not 96."),
        ("tile", 32_768, "tile must be a positive multiple of 32 and at most 16,384, not 32768."),
        ("piece", 0, "piece must be a positive multiple of 32 and at most 8,192, not 0."),
        ("piece", True, "piece must be a positive multiple of 32 and at most 8,192, not True."),
    ],
)
def test_invalid_options_raise(monkeypatch, option, value, message):
    monkeypatch.setattr(blocks, "most_bits", lambda: (14, 13))
    adjacency = Edges(Coo(np.zeros(1, np.int32), np.zeros(1, np.int32), None, 1))
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        propagation_blocking.BlockedPlan(adjacency, **{option: value})
    assert str(caught.value) == message


# --- layout -------------------------------------------------------------------------------------------------------


def skewed(n: int, m: int, weighted: bool = False) -> Edges:
    """Return a graph with hubs, empty rows, and tiles with few out-edges."""
    random = np.random.default_rng(n + m)
    source, target = ((n * random.random(m) ** power).astype(np.int32) for power in (3, 5))
    return Edges(Coo(source, target, random.integers(0, 9, m).astype(float) if weighted else None, n))


GRAPHS = {"no edges": (5, 0), "one tile": (30, 500), "hubs": (2_000, 30_000), "few edges": (9_000, 3_000)}


@pytest.mark.parametrize("method", BLOCKED)
@pytest.mark.parametrize("sizes", [(5, 5), (5, 10), (6, 8), (10, 6), (14, 13)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("shape", GRAPHS.values(), ids=GRAPHS)
def test_layout_has_every_edge_in_both_orders(method, shape, sort, dtype, sizes):
    import cupy

    n, m = shape
    edges = skewed(n, m).get(Coo)
    source, target = edges.source.astype(np.int64), edges.destination.astype(np.int64)
    if sort:
        source, target = source[order := np.argsort(target)], target[order]
    low = np.iinfo(dtype).min + 5
    ids = [cupy.asarray((end + low).astype(dtype)) for end in (source, target)]
    layout, out_degrees = blocks.build(*ids, low, n, n, *sizes, ordered=True)
    layout = replace(layout, marks=blocks.all_marks(n))
    chunks = layout.chunk_by_piece.get()
    assert sorted(chunks) == list(range(chunks.size))
    places = (chunks[:, None] * CHUNK + np.arange(CHUNK)).ravel()  # by piece, of each entry by tile
    tile, piece = (
        np.repeat(np.arange(begins.size - 1), np.diff(begins) * CHUNK)
        for begins in (layout.tile_begins, layout.piece_begins)
    )
    local, piece = layout.tile_sources.get(), piece[places]
    row, order = (array.get()[places] for array in (layout.piece_rows, layout.piece_edges))
    real = order < m
    assert (local[~real] == 1 << sizes[0]).all()
    assert (row[~real] == 1 << sizes[1]).all()
    assert sorted(order[real]) == list(range(m))
    assert ((tile << sizes[0]) + local)[real].tolist() == source[order[real]].tolist()
    assert ((piece << sizes[1]) + row)[real].tolist() == target[order[real]].tolist()
    assert np.count_nonzero(~real) <= (CHUNK - 1) * len(set(zip(tile[real], piece[real], strict=True)))
    assert (np.bincount(source, minlength=n) == out_degrees[:n].get()).all()
    assert (np.bincount(target, minlength=n) == layout.in_degrees[:n].get()).all()
    ends = zip(*map(to_host, blocks.endpoints(layout, n)), strict=True)
    assert sorted(zip(source, target, strict=True)) == sorted((one, other) for one, other in ends if other < n)


@pytest.mark.parametrize("method", BLOCKED)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_frames_arranged_in_blocks_agree_with_sorted_ones(method, dtype, monkeypatch):
    import cudf

    from prplugin.gpu import factorize

    random = np.random.default_rng(8)
    ids = np.sort(random.choice(60_000, 40_000, replace=False)) - 7_000  # some ids of the range do not occur
    columns = {name: ids[(40_000 * random.random(400_000) ** 3).astype(int)].astype(dtype) for name in ("src", "dst")}
    frame = cudf.DataFrame(columns)
    by_pandas = prplugin.Graph(pd.DataFrame(columns)).rank(method="numpy", tol=1e-10)
    monkeypatch.setattr(factorize, "BLOCKED", 1)
    monkeypatch.setattr(factorize, "BLOCKED_RANGE", 1)
    graph = prplugin.Graph(frame)
    assert graph._graph.adjacency.given is Blocks
    for how in "propagation-blocking", "persistent", "dense":
        ranking = graph.rank(method=how, tol=1e-10)
        assert ranking.frame["vertex"].to_pandas().tolist() == by_pandas.frame["vertex"].tolist()
        assert np.abs(ranking.ranks.get() - by_pandas.ranks).sum() <= 2e-10
    monkeypatch.setattr(factorize, "BLOCKED", 1 << 40)
    for kind in "csc", "csr":
        ours, sorted_by_target = getattr(graph, kind)(), getattr(prplugin.Graph(frame), kind)()
        assert (ours.offsets == sorted_by_target.offsets).all()
        for row in random.integers(0, graph.number_of_vertices, 50).tolist():
            first, last = ours.offsets[row : row + 2].tolist()
            assert sorted(ours.indices[first:last].tolist()) == sorted(sorted_by_target.indices[first:last].tolist())


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
    for tile, piece in (32, 32), (64, 1_024), (1_024, 64):
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
        prplugin.Graph(frame, weight=weight), dtype, tile=16_384 if dtype == "float64" else 8_192, piece=4_096
    )


@pytest.mark.parametrize("method", BLOCKED)
def test_start_by_in_degree_saves_iterations(method):
    # Ranks of an undirected graph are nearly proportional to its degrees. A limit of iterations asks for equal ranks.
    adjacency = skewed(20_000, 200_000)
    frame = pd.DataFrame({"src": adjacency.get(Coo).source, "dst": adjacency.get(Coo).destination})
    graph = prplugin.Graph(frame, directed=False)
    by_degree, equal = (graph.rank(method="propagation-blocking", max_iter=most) for most in (None, 1_000))
    assert by_degree.iterations < equal.iterations
    assert np.abs(by_degree.ranks - equal.ranks).sum() <= by_degree.error_bound + equal.error_bound
