"""Graphs of WebGraph in the BV format."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bv_files import DEFAULT, Writer, packed, random_graph
from damaged_files import graphs_of_damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from prplugin import machine
from prplugin.cpu import library
from prplugin.errors import InvalidEdgesError, InvalidOptionError, OutOfMemoryError, PageRankError
from prplugin.io import webgraph

pytestmark = pytest.mark.skipif(not library.is_available(), reason="there are no compiled kernels")

CODES = {
    "OUTDEGREES": ["GAMMA", "DELTA", "UNARY", "ZETA"], "REFERENCES": ["UNARY", "GAMMA", "DELTA"],
    "BLOCK_COUNT": ["GAMMA", "DELTA", "UNARY"], "BLOCKS": ["GAMMA", "DELTA"], "INTERVALS": ["GAMMA", "DELTA"],
    "RESIDUALS": ["ZETA", "GAMMA", "DELTA", "NIBBLE", "GOLOMB", "UNARY"], "OFFSETS": ["GAMMA", "DELTA"],
}  # fmt: skip


def decoded(graph):
    offsets, indices, weights = graph.csr()
    assert weights is None
    return [row.tolist() for row in np.split(indices, offsets[1:-1])] if offsets.size > 1 else []


@pytest.fixture
def in_pieces(monkeypatch):
    """Divide small graphs among two threads."""
    monkeypatch.setattr(webgraph, "PIECE_BITS", 200)
    monkeypatch.setattr(machine, "MIN_THREADED_EDGES", 0)
    monkeypatch.setattr(webgraph, "this_machine", lambda: machine.Machine(threads=2))


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(0, 120), k=st.integers(1, 7), window=st.sampled_from([0, 1, 3, 7, 70]),
    shortest=st.sampled_from([0, 1, 2, 4, 9]), offsets=st.booleans(),
    codes=st.fixed_dictionaries({part: st.sampled_from(codes) for part, codes in CODES.items()}),
)  # fmt: skip
def test_what_is_encoded_is_decoded(tmp_path, in_pieces, seed, n, k, window, shortest, offsets, codes):
    random = np.random.default_rng(seed)
    rows = random_graph(random, n)
    (tmp_path / "g.offsets").unlink(missing_ok=True)
    path = Writer(codes, k, window, shortest).write(tmp_path / "g", rows, random, offsets=offsets)
    assert decoded(prplugin.Graph.from_file(path)) == rows


@pytest.mark.parametrize("code", ["ZETA", "GOLOMB"])
@pytest.mark.parametrize("k", range(1, 8))
def test_codes_of_every_parameter(tmp_path, code, k):
    random = np.random.default_rng(k)
    rows = random_graph(random, 60)
    path = Writer(DEFAULT | {"RESIDUALS": code, "OUTDEGREES": "ZETA"}, k).write(tmp_path / "g", rows, random)
    assert decoded(prplugin.Graph.from_file(path)) == rows


@pytest.mark.parametrize("name", ["g.graph", "g.properties", "g.offsets", "g"])
def test_every_name_of_a_graph(tmp_path, name):
    random = np.random.default_rng(1)
    rows = random_graph(random, 50)
    Writer().write(tmp_path / "g", rows, random)
    edges = pd.DataFrame([(v, x) for v, row in enumerate(rows) for x in row], columns=["src", "dst"])
    expected = edges.pagerank(vertices=range(50), tol=1e-12)
    for given_name in (str(tmp_path / name), tmp_path / name):
        found = prplugin.pagerank(given_name, tol=1e-12)
        pd.testing.assert_frame_equal(found, expected, atol=1e-12, rtol=0)


def test_columns_the_other_way_round_give_the_transposed_graph(tmp_path):
    random = np.random.default_rng(2)
    rows = random_graph(random, 40)
    path = Writer().write(tmp_path / "g", rows, random)
    transposed = [[v for v, row in enumerate(rows) if x in row] for x in range(40)]
    other = Writer().write(tmp_path / "g-t", transposed, random)
    straight = prplugin.pagerank(path, tol=1e-12)
    turned = prplugin.pagerank(other, "destination", "source", tol=1e-12)
    assert straight["pagerank"].tolist() == turned["pagerank"].tolist()
    assert decoded(prplugin.Graph.from_file(other, "destination", "source")) == rows
    assert decoded(prplugin.Graph.from_file(other)) == transposed


def test_options_of_the_graph(tmp_path):
    path = Writer().write(tmp_path / "g", [[1], [0, 1], [1]], np.random.default_rng(3))
    edges = pd.DataFrame({"src": [0, 1, 1, 2], "dst": [1, 0, 1, 1]})
    for options in ({"directed": False}, {"directed": False, "duplicates": "first"}, {"duplicates": "last"}):
        found, expected = prplugin.pagerank(path, **options), edges.pagerank(**options)
        pd.testing.assert_frame_equal(found, expected, atol=1e-9, rtol=0)
    graph = prplugin.Graph.from_file(path)
    graph.update(add=pd.DataFrame({"source": [2], "destination": [0]}))
    assert decoded(graph) == [[1], [0, 1], [1, 0]]
    with pytest.raises(InvalidOptionError, match="names all vertices itself"):
        prplugin.pagerank(path, vertices=[7])


@pytest.mark.parametrize("form", ["one file", "parts"])
def test_names_of_common_crawl(tmp_path, form):
    random = np.random.default_rng(4)
    Writer().write(tmp_path / "crawl", [[1, 2], [0], []], random)
    Writer().write(tmp_path / "crawl-t", [[1], [0], [0]], random)
    lines = ["0\tcom.a\t3\n", "1\tcom.b\t1\n", "2\torg.c\t1\n"]
    if form == "parts":
        (tmp_path / "vertices").mkdir()
        for part, text in enumerate([lines[:2], lines[2:]]):
            (tmp_path / "vertices" / f"part-{part}.txt.gz").write_bytes(gzip.compress("".join(text).encode()))
    else:
        (tmp_path / "crawl-vertices.txt.gz").write_bytes(gzip.compress("".join(lines).encode()))
    expected = prplugin.pagerank(tmp_path / "crawl.graph")
    assert expected["vertex"].tolist() == ["com.a", "com.b", "org.c"]
    found = prplugin.pagerank(tmp_path / "crawl-t.graph", "destination", "source", seeds=["com.a"])
    assert found["vertex"].tolist() == ["com.a", "com.b", "org.c"]
    Writer().write(tmp_path / "crawl", [[1], [0]], random)
    with pytest.raises(InvalidEdgesError, match=r"names 3 vertices, but .*crawl\.graph has 2"):
        prplugin.pagerank(tmp_path / "crawl.graph")


def test_the_two_numbers_of_blocks_have_one_code_in_webgraph_rs(tmp_path):
    random = np.random.default_rng(5)
    rows = random_graph(random, 60)
    path = Writer({"BLOCKS": "DELTA", "BLOCK_COUNT": "DELTA"}).write(tmp_path / "g", rows, random)
    properties = tmp_path / "g.properties"
    text = properties.read_text().replace("BLOCK_COUNT_DELTA | ", "")
    properties.write_text(text + "endianness=big\n")
    assert decoded(prplugin.Graph.from_file(path)) == rows


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("RESIDUALS_DELTA", "RESIDUALS_PI2", "code RESIDUALS_PI2 is not known"),
        ("RESIDUALS_DELTA", "LINKS_DELTA", "code LINKS_DELTA is not known"),
        ("RESIDUALS_DELTA", "RESIDUALS_GAMMA3", "code RESIDUALS_GAMMA3 is not known"),
        ("version=0", "version=2", "version 2 is not known"),
        ("version=0", "endianness=little", "little-endian order"),
        ("webgraph.BVGraph", "webgraph.EFGraph", "a graph of class EFGraph is not read"),
        ("nodes=30", "nodes=-1", "nodes is '-1', and must be an integer"),
        ("nodes=30", "knots=30", "it has no nodes"),
        ("nodes=30", f"nodes={10**15}", "announces 1,000,000,000,000,000 vertices, for which .* is too short"),
        ("nodes=30", "nodes=31", "cut short or damaged: it holds 31 of 32 positions|places the 31 records"),
        ("nodes=30", "nodes=29", "announces .* arcs, but|no vertex"),
        ("arcs=", "arcs=1", "announces 1[0-9,]+ arcs, but"),
        ("windowsize=7", "windowsize=0", "vertex [0-9]+, byte [0-9]+: "),
        ("zetak=3", "zetak=9", "zeta codes is 9, and must be 1 to 7"),
    ],
)
def test_property_files_that_are_wrong(tmp_path, old, new, message):
    random = np.random.default_rng(6)
    path = Writer({"RESIDUALS": "DELTA"}).write(tmp_path / "g", random_graph(random, 30), random)
    properties = tmp_path / "g.properties"
    assert old in properties.read_text()
    properties.write_text(properties.read_text().replace(old, new))
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(path)


def test_files_that_are_absent_or_compressed(tmp_path):
    path = Path(Writer().write(tmp_path / "g", [[0]], np.random.default_rng(7)))
    (tmp_path / "g.graph.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InvalidOptionError, match="decompress it first"):
        prplugin.pagerank(tmp_path / "g.graph.gz")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"g\.graph"):
        prplugin.pagerank(path)


def test_positions_that_do_not_begin_at_the_first_bit(tmp_path):
    """Offsets and graph that agree from the second byte on."""
    writer = Writer()
    path = Path(writer.write(tmp_path / "g", [[1], []], np.random.default_rng(7)))
    content = path.read_bytes()
    path.write_bytes(b"\xff" + content)
    gaps = [8, *(len(writer.record(np.random.default_rng(7), v, [[1], []])) for v in range(2))]
    (tmp_path / "g.offsets").write_bytes(packed("".join(writer.put("OFFSETS", gap) for gap in gaps)))
    with pytest.raises(InvalidEdgesError, match=r"g\.offsets places the 2 records at bits 8 to"):
        prplugin.pagerank(path)


def test_a_few_bytes_that_announce_much(tmp_path, set_available_bytes):
    path = Writer().write(tmp_path / "g", [[1], [0]], np.random.default_rng(8))
    set_available_bytes(40)
    with pytest.raises(OutOfMemoryError, match="announces 2 vertices"):
        prplugin.pagerank(path)


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize("codes", [{}, DEFAULT | {"RESIDUALS": "GOLOMB", "OUTDEGREES": "DELTA"}])
def test_damaged_files(tmp_path, in_pieces, offsets, codes):
    """Truncate a file, and flip each of its bits: either an error, or another valid graph."""
    random = np.random.default_rng(9)
    rows = random_graph(random, 30)
    path = Path(Writer(codes).write(tmp_path / "g", rows, random, offsets=offsets))
    files = [path, tmp_path / "g.offsets"] if offsets else [path]
    outcomes = [each for file in files for each in graphs_of_damaged(file, path, bits=1)]
    errors = [error for error in outcomes if isinstance(error, PageRankError)]
    assert all(str(tmp_path) in str(error) for error in errors)
    assert len(errors) > len(outcomes) / 2
    for graph in outcomes:
        if isinstance(graph, prplugin.Graph):
            found = decoded(graph)
            assert len(found) == len(rows)
            assert sum(map(len, found)) == sum(map(len, rows))
            assert all(sorted(set(row)) == row and all(0 <= x < len(rows) for x in row) for row in found)
    assert decoded(prplugin.Graph.from_file(path)) == rows


@pytest.mark.parametrize("with_offsets", [pytest.param(True, marks=pytest.mark.slow), False])
def test_cnr_2000(data_dir, tmp_path, with_offsets):
    graphs = []
    for name in ("cnr-2000", "cnr-2000-t"):
        for end in ("graph", "properties", *(["offsets"] * with_offsets)):
            (tmp_path / f"{name}.{end}").symlink_to(data_dir / "webgraph" / f"{name}.{end}")
        graphs.append(prplugin.Graph.from_file(tmp_path / f"{name}.graph"))
    (offsets, targets, _), (transposed_offsets, sources, _) = graphs[0].csc(), graphs[1].csr()
    assert (offsets == transposed_offsets).all()
    assert (targets == sources).all()
    # The Parquet file has the same graph with other numbers of the vertices.
    edges = pd.read_parquet(data_dir / "graphs" / "cnr-2000.parquet")
    assert len(edges) == graphs[0].number_of_edges
    expected = np.sort(edges.pagerank(tol=1e-10)["pagerank"])
    assert np.abs(np.sort(graphs[0].rank(tol=1e-10).ranks) - expected).sum() <= 2e-10  # both bounds
