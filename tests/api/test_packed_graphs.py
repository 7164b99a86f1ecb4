"""Graphs whose edges stay packed on the host: ranks, round trips, damaged and hostile files."""

from __future__ import annotations

import json
import math
import pickle
import zlib
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from bv_files import DEFAULT, Writer, random_graph
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from in_degrees import IN_DEGREES, graph, web
from method_params import examples, param
from shown_text import error_message

import prplugin
from prplugin import machine
from prplugin.cli import main
from prplugin.cpu import library, packing
from prplugin.cpu.packing import PIECE
from prplugin.cpu.sums import packed_depth
from prplugin.errors import InvalidEdgesError, InvalidOptionError
from prplugin.io import webgraph
from prplugin.methods.engines.packed_rows import Rows, joined, packed_graph
from prplugin.methods.native import Pull
from prplugin.numerics import fan_in_for
from prplugin.types.edges import Csc, PackedRows

pytestmark = pytest.mark.skipif(not library.is_available(), reason="there are no compiled kernels")


def sorted_rows(csc):
    offsets, sources, _ = csc
    return [sorted(sources[begin:end].tolist()) for begin, end in pairwise(offsets.tolist())]


def is_unpacked(packed):
    return adjacency_of(packed).held(Csc) is not None


@pytest.fixture
def folder(tmp_path):
    prplugin.Graph(web()).save(tmp_path / "graph", packed=True)
    return tmp_path / "graph"


@settings(max_examples=examples(60), deadline=None)
@given(
    in_degrees=st.lists(st.integers(0, 40) | st.integers(0, 5000), max_size=60), seed=st.integers(0, 2**32 - 1),
    ranges=st.integers(1, 5), threads=st.integers(1, 4),
)  # fmt: skip
def test_what_is_packed_is_unpacked(in_degrees, seed, ranges, threads):
    random, n, m = np.random.default_rng(seed), len(in_degrees), sum(in_degrees)
    offsets = np.append(0, np.cumsum(in_degrees, dtype=np.int64))
    sources = random.integers(0, random.integers(1, n + 1) if n else 1, m).astype(np.int32)
    cuts = np.sort(np.concatenate([[0, n], random.integers(0, n + 1, ranges)]))
    packed = joined(
        (
            Rows(offsets[a : b + 1] - offsets[a], sources[offsets[a] : offsets[b]], None, first=a, vertices=n)
            for a, b in pairwise(cuts.tolist())
        ),
        threads,
    )
    found = packing.unpack(packed, n, m, threads)
    assert found[0].tolist() == offsets.tolist()
    assert sorted_rows((*found, None)) == sorted_rows((offsets, sources, None))


@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_row_sums(in_degrees):
    """With alpha near 1 a step from given ranks is the row sums."""
    plain = graph(in_degrees, weighted=False)
    packed, n = packed_graph(plain).held(PackedRows), plain.n
    ranks = np.random.default_rng(0).random(n)
    offsets, sources, _ = plain.get(Csc)
    exact = np.array([math.fsum(ranks[sources[begin:end]]) for begin, end in pairwise(offsets.tolist())])
    alpha, results = 1 - 2.0**-53, []
    for threads in (1, 2, 5):
        zeros = np.zeros(1)
        pull = Pull(packed, None, np.ones(n), zeros, zeros, alpha, fan_in_for(PIECE), threads)
        pull.start(ranks)
        pull.iterate(1)
        results.append(pull.ranks.tobytes())
        np.testing.assert_allclose(pull.ranks, exact, rtol=(packed_depth(plain.m) + 3) * 2.0**-53, atol=0)
    assert len({*results}) == 1


@pytest.mark.parametrize("options", [{}, {"tol": 1e-12}, {"tol": 0, "max_iter": 3}, {"alpha": 0.99}, {"stop": "vertex"}, {"dtype": "float32"}], ids=str)  # fmt: skip
def test_ranks(folder, options):
    expected = prplugin.Graph(web()).rank(**options, method="numpy" if options.get("tol") else "native")
    packed = prplugin.Graph.load(folder)
    found = packed.rank(**options)
    assert found.method == "native"
    assert not is_unpacked(packed)
    assert np.abs(found.ranks - expected.ranks).sum() <= found.error_bound + expected.error_bound
    assert found.frame["vertex"].tolist() == expected.frame["vertex"].tolist()
    again = [packed.rank(**options, method="native", threads=threads).ranks.tobytes() for threads in (1, 2, 7)]
    assert {*again} == {packed.rank(**options, method="native").ranks.tobytes()}


def test_personalized_and_distributed_dangling_mass(folder):
    options = {"personalization": {1: 2.0, 7: 1.0}, "dangling": {3: 1.0}, "tol": 1e-10}
    packed = prplugin.Graph.load(folder)
    found, expected = packed.rank(**options), prplugin.Graph(web()).rank(**options)
    assert np.abs(found.ranks - expected.ranks).sum() <= found.error_bound + expected.error_bound
    assert not is_unpacked(packed)
    seeds = packed.rank(seeds=[1, 7], method="native", top=3, tol=1e-12)
    expected = prplugin.Graph(web()).rank(seeds=[1, 7], method="native", top=3, tol=1e-12).frame
    pd.testing.assert_frame_equal(seeds.frame, expected, rtol=1e-9)


def test_other_uses_unpack(folder):
    packed, plain = prplugin.Graph.load(folder), prplugin.Graph(web())
    assert sorted_rows(packed.csc()) == sorted_rows(plain.csc())
    assert packed.csr().offsets.tolist() == plain.csr().offsets.tolist()
    changed = pd.DataFrame({"src": [1, 9], "dst": [2, 123_456]})
    for each in (packed, plain):
        each.update(add=changed)
    found, expected = packed.rank(tol=1e-10), plain.rank(tol=1e-10)
    assert np.abs(found.ranks - expected.ranks).sum() <= found.error_bound + expected.error_bound
    other = prplugin.Graph.load(folder).rank(method="numpy")
    assert np.abs(other.ranks - prplugin.Graph(web()).rank(method="numpy").ranks).sum() < 1e-6


def test_a_packed_graph_stays_one(folder, tmp_path):
    loaded = prplugin.Graph.load(folder)
    loaded.save(tmp_path / "again")
    copies = (
        prplugin.Graph.load(tmp_path / "again"),
        pickle.loads(pickle.dumps(loaded)),
        prplugin.Graph.from_file(folder, packed=True),
    )
    for copy in copies:
        assert copy.rank().ranks.tobytes() == loaded.rank().ranks.tobytes()
        assert not is_unpacked(copy)
    content = (tmp_path / "again" / "packed.npy").read_bytes()
    assert content == (folder / "packed.npy").read_bytes()
    assert len(content) < 3 * loaded.number_of_edges


def test_memory_is_estimated_without_unpacking(folder):
    packed, plain = prplugin.Graph.load(folder), prplugin.Graph.load(folder)
    plain.csc()
    assert packed.estimate()["native"].host == plain.estimate()["native"].host
    assert packed.estimate()["numpy"].host > plain.estimate()["numpy"].host
    assert "native" in repr(packed)
    assert not is_unpacked(packed)


def test_undirected_graph_is_shown_without_unpacking(tmp_path):
    prplugin.Graph(pd.DataFrame({"src": [0, 1], "dst": [1, 2]}), directed=False).save(tmp_path / "graph", packed=True)
    loaded = prplugin.Graph.load(tmp_path / "graph")
    assert repr(loaded).startswith("Graph of 3 vertices and 4 directed edges")
    assert not is_unpacked(loaded)


def test_no_edges_and_no_vertices(tmp_path):
    for ids in ([], [3, 4]):
        empty = prplugin.Graph(pd.DataFrame({"src": [], "dst": []}, dtype=int), vertices=ids)
        empty.save(tmp_path / "graph", packed=True)
        assert prplugin.Graph.load(tmp_path / "graph").rank().ranks.tolist() == empty.rank().ranks.tolist()


def test_weights_are_refused(tmp_path):
    weighted = prplugin.Graph(web().assign(w=2.0), weight="w")
    with pytest.raises(InvalidOptionError, match="packed edges have no weights"):
        weighted.save(tmp_path / "graph", packed=True)
    assert not (tmp_path / "graph").exists()


def test_command(tmp_path):
    web().to_parquet(tmp_path / "edges.parquet")
    run = CliRunner().invoke(main, ["save", str(tmp_path / "edges.parquet"), str(tmp_path / "graph"), "--packed"])
    assert run.exit_code == 0, run.output
    run = CliRunner().invoke(main, ["rank", str(tmp_path / "graph"), "--top", "3", "-o", str(tmp_path / "ranks.csv")])
    assert run.exit_code == 0, run.output
    found = pd.read_csv(tmp_path / "ranks.csv")
    assert found["vertex"].tolist() == prplugin.Graph(web()).rank(top=3).frame["vertex"].tolist()


@pytest.mark.parametrize("arcs", [1, 100, 10**6])
@pytest.mark.parametrize("names", [("destination", "source"), (None, None)])
def test_webgraph_by_ranges(tmp_path, monkeypatch, arcs, names):
    monkeypatch.setattr(webgraph, "RANGE", arcs)
    monkeypatch.setattr(webgraph, "PIECE_BITS", 200)
    monkeypatch.setattr(webgraph, "this_machine", lambda: machine.Machine(threads=2))
    random = np.random.default_rng(5)
    path = Writer(DEFAULT, 3, 7, 4).write(tmp_path / "g", random_graph(random, 300), random, offsets=True)
    plain, packed = (prplugin.Graph.from_file(path, *names, packed=packed) for packed in (False, True))
    assert adjacency_of(packed).held(PackedRows) is not None
    assert sorted_rows(packed.csc()) == sorted_rows(plain.csc())
    found, expected = packed.rank(tol=1e-12), plain.rank(tol=1e-12)
    assert np.abs(found.ranks - expected.ranks).sum() <= found.error_bound + expected.error_bound


@pytest.mark.slow
def test_a_crawl(data_dir):
    path = data_dir / "webgraph" / "cnr-2000-t.graph"
    packed = prplugin.Graph.from_file(path, "destination", "source", packed=True)
    held = adjacency_of(packed).held(PackedRows)
    assert sum(array.nbytes for array in held) < 1.05 * packed.number_of_edges
    found, expected = packed.rank(tol=1e-12), prplugin.Graph.from_file(path, "destination", "source").rank(tol=1e-12)
    assert np.abs(found.ranks - expected.ranks).sum() <= found.error_bound + expected.error_bound


# --- damaged and hostile files ------------------------------------------------------------------------------------


def altered(folder, name, change):
    """Change an array of a saved graph, with its checksum in the manifest."""
    path = folder / f"{name}.npy"
    np.save(path, change(np.load(path)))
    content = path.read_bytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][path.name] = {"bytes": len(content), "crc32": zlib.crc32(content)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(("name", "change"), [
    *(("piece_begins", put(place, value)) for place in (0, 3, -1) for value in (-16, 5, 10**12, 2**63 - 1)),
    ("piece_begins", lambda array: array + 8 * (np.arange(array.size) == 3)),
    *(("piece_rows", put(place, value)) for place in (0, 3, -1) for value in (10**6, -(10**6), 2**62, -9, 2**63 - 1)),
    *(("packed", put(place, value)) for place in range(6) for value in (254, 255)),
    ("packed", lambda array: array[:-16]),
    ("piece_rows", lambda array: array.astype(np.int32)),
    ("out_weight", put(3, -1)), ("out_weight", put(3, 10**6)),
])  # fmt: skip
def test_hostile_arrays(folder, name, change):
    altered(folder, name, change)
    message = error_message(lambda: prplugin.Graph.load(folder).rank())
    assert "is a damaged saved graph" in message


def test_any_bit_of_packed_edges_may_be_wrong():
    """Checked edges are between vertices of the graph; others are refused."""
    in_degrees = [*range(80), 0, 0, 3000, 5]
    packed = packed_graph(graph(in_degrees, weighted=False)).held(PackedRows)
    n, m, refused = len(in_degrees), sum(in_degrees), 0
    random = np.random.default_rng(0)
    for _ in range(3000):
        arrays = [array.copy() for array in packed]
        harmed = arrays[random.choice(3, p=[0.8, 0.1, 0.1])]
        harmed.view(np.uint8)[random.integers(harmed.nbytes)] ^= 1 << random.integers(8)
        try:
            offsets, sources = packing.unpack(PackedRows(*arrays), n, m, 2)
        except ValueError:
            refused += 1
            continue
        assert offsets[0] == 0
        assert offsets[-1] == m
        assert (np.diff(offsets) >= 0).all()
        assert sources.min() >= 0
        assert sources.max() < n
        pull = Pull(PackedRows(*arrays), None, np.ones(n), np.zeros(1), np.zeros(1), 0.5, fan_in_for(PIECE), 2)
        pull.start(np.ones(n))
        pull.iterate(1)
        assert (pull.ranks == 0.5 * np.diff(offsets)).all()
    assert refused > 300


def test_truncated_and_foreign_folders(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] == 2
    for name in manifest["files"]:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1])
        with pytest.raises(InvalidEdgesError, match=rf"{name} has .* bytes instead of"):
            prplugin.Graph.load(folder)
        (folder / name).write_bytes(content)
    for key, value in [("pieces", -1), ("pieces", 3), ("packed", 10), ("n", 2**40), ("m", 7), ("weighted", True), ("memory_space", "device")]:  # fmt: skip
        hostile = {**manifest, "graph": {**manifest["graph"], key: value}}
        (folder / "manifest.json").write_text(json.dumps(hostile))
        with pytest.raises(InvalidEdgesError, match="damaged saved graph"):
            prplugin.Graph.load(folder).rank()


# --- on a GPU -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [param("packed")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packed_edges_are_copied_to_the_gpu_as_they_are(folder, method, dtype):
    packed = prplugin.Graph.load(folder)
    found, expected = packed.rank(method="packed", dtype=dtype), packed.rank(method="native", tol=1e-10)
    assert np.abs(found.ranks - expected.ranks).sum() <= found.error_bound + expected.error_bound
    assert not is_unpacked(packed)
