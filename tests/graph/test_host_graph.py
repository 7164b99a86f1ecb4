"""Graph building by compiled kernels on the CPU: the same bits as NumPy, for any number of threads."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.cpu import factorize, group
from prplugin.frames import host_columns
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.edges import Edges, edges_by_id, factorize_ids, sectors_per_edge
from prplugin.machine import Machine
from prplugin.types.edges import Coo, Csc

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.fixture(params=[1, 2, 5], ids="{} threads".format)
def threads(request, monkeypatch):
    """Return the requested number of threads, whatever the machine has, and make pieces small enough for each."""
    monkeypatch.setattr("prplugin.cpu.threads.PIECE", 100)
    for module in ("graph.edges", "cpu.factorize"):
        monkeypatch.setattr(f"prplugin.{module}.this_machine", lambda: Machine(request.param))
    return request.param


def columns_of(kind, span, m=3000):
    info, random = np.iinfo(kind), np.random.default_rng(m)
    low, high = {
        "one": (7, 8),
        "few": (3, 20),
        "around 0": (max(info.min, -40), 70),
        "smallest": (info.min, info.min + 90),
        "largest": (info.max - 90, info.max),
        "about as wide as row count": (max(info.min, -m), min(info.max, m)),
        "full range": (info.min, info.max),
    }[span]
    ids = random.integers(low, high, 700, kind, endpoint=span != "one")
    ids[:2] = low, high - (span == "one")  # among them the values that mark free slots
    return [random.choice(ids, m), random.choice(ids, m)]


@pytest.mark.parametrize(
    "span", ["one", "few", "around 0", "smallest", "largest", "about as wide as row count", "full range"]
)
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("few", [True, False])
def test_ids_of_every_integer_type(kind, span, few, threads, monkeypatch):
    monkeypatch.setattr(factorize, "FEW_VALUES", 6000 if few else 0)
    columns = columns_of(kind, span)
    ids, codes = np.unique(np.concatenate(columns), return_inverse=True)
    codes = np.split(codes.astype(np.int32), 2)
    found, found_ids = factorize.factorize_ids(columns, threads)
    assert (found_ids.dtype, found_ids.tolist()) == (ids.dtype, ids.tolist())
    for array, reference in zip(found, codes, strict=True):
        assert array.dtype == reference.dtype
        assert (array == reference).all()
    for lasting in (True, False):
        found, edge_ids = edges_by_id(columns, grouped=True, lasting=lasting)
        edges = Edges(found)
        in_edges, listed = edges.get(Csc), edges.get(Coo)
        assert (edge_ids.dtype, edge_ids.tolist()) == (ids.dtype, ids.tolist())
        assert (edges.n, edges.m) == (ids.size, columns[0].size)
        order = np.argsort(codes[1], kind="stable")
        assert (in_edges.indices == codes[0][order]).all()
        assert (np.diff(in_edges.offsets) == np.bincount(codes[1], minlength=ids.size)).all()
        assert (edges.out_weight == np.bincount(codes[0], minlength=ids.size)).all()
        assert in_edges.indices.dtype == listed.source.dtype == codes[0].dtype
        assert (listed.source == codes[0]).all()
        assert (listed.destination == codes[1]).all()


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_grouped_sorts_stably(n, weighted, threads):
    random = np.random.default_rng(n)
    rows, columns = (np.minimum(random.integers(0, n, 4000), random.integers(0, n, 4000)) for _ in range(2))
    weights = random.random(4000) if weighted else None
    order = np.argsort(rows, kind="stable")
    for dtype, low in (("int32", 0), ("int64", 0), ("int64", -(2**63)), ("int64", 2**63 - 1 - n)):
        endpoints = [end.astype(dtype) + np.int64(low).astype(dtype) for end in (rows, columns)]
        offsets, indices, sorted_weights = group.grouped(*endpoints, weights, n, threads, low)
        assert (np.diff(offsets) == np.bincount(rows, minlength=n)).all()
        assert (indices == columns[order]).all()
        assert weights is None or (sorted_weights == weights[order]).all()
        assert (group.degrees(endpoints[0], n, threads, low) == np.diff(offsets)).all()


def test_hash_table_grows_before_threads_fill_it(threads, monkeypatch):
    """Insert distinct ids only: threads that insert at the same time see the same number of free slots."""
    monkeypatch.setattr(factorize, "MIN_TABLE_BITS", 3)
    monkeypatch.setattr(factorize, "VALUES_PER_SLOT", 10**9)
    ids = np.random.default_rng(1).permutation(20_000) * 2**40
    codes, found = factorize.factorize_ids([ids, ids[::-1]], threads)
    assert found.tolist() == sorted(ids.tolist())
    assert (found[codes[0]] == ids).all()
    assert (found[codes[1]] == ids[::-1]).all()


@pytest.mark.usefixtures("threads")
def test_strided_id_columns():
    matrix = np.random.default_rng(2).integers(-(2**40), 2**40, (900, 2))
    strided = pd.DataFrame(matrix, columns=["src", "dst"], copy=False)
    assert strided.pagerank().equals(pd.DataFrame({"src": matrix[:, 0], "dst": matrix[:, 1]}).pagerank())


def test_ids_are_factorized_in_ascending_order_without_compiled_kernels(group_in_numpy):
    group_in_numpy()
    columns = columns_of("int64", "full range")
    known, codes = np.unique(np.concatenate(columns), return_inverse=True)
    found, ids = factorize_ids(columns)
    assert ids.tolist() == known.tolist()
    assert np.concatenate(found).tolist() == codes.tolist()


@pytest.mark.parametrize("ids", ["int32", "int64", "scattered int32", "scattered"])
def test_peak_memory_of_call(ids):
    """Check that a call allocates at most twice the id columns, plus 40 bytes per vertex."""
    n, m = 60_000, 1 << 21
    random = np.random.default_rng(3)
    vertex_ids = (
        np.arange(n) if not ids.startswith("scattered") else random.permutation(2**31 - 1 - np.arange(n) * 30_000)
    )
    dtype = ids.removeprefix("scattered").strip() or "int64"
    if ids == "scattered":
        vertex_ids = vertex_ids * 2**30
    edges = pd.DataFrame({"src": random.choice(vertex_ids, m), "dst": random.choice(vertex_ids, m)}).astype(dtype)
    edges.pagerank()  # compile kernels and import modules before measuring
    tracemalloc.start()
    try:
        edges.pagerank()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * edges.memory_usage(index=False).sum() + 40 * n


def test_graph_does_not_alias_frame():
    random = np.random.default_rng(4)
    for low, high in ((0, 1000), (-(2**62), 2**62)):
        vertex_ids = random.integers(low, high, 900)
        edges = pd.DataFrame({end: random.choice(vertex_ids, 1 << 20) for end in ("src", "dst")}, copy=False)
        before = edges.copy()
        graph, other = prplugin.Graph(edges), prplugin.Graph(before)
        edges.iloc[:, :] = 1
        for array, reference in zip(graph.csr()[:2], other.csr()[:2], strict=True):
            np.testing.assert_array_equal(array, reference)


class TestObjects:
    """Object columns, factorized by address and by text: the same codes as by pandas alone."""

    @pytest.fixture(autouse=True)
    def _treat_all_columns_as_long(self, monkeypatch):
        monkeypatch.setattr(host_columns, "MANY_OBJECTS", 1)

    @pytest.mark.parametrize("shared", [True, False])
    @pytest.mark.parametrize(
        "to_id",
        [
            lambda number: f"vertex {number}",
            lambda number: f"\0{number}\0é",
            lambda number: "\ud800" * number,
            lambda number: str(number).encode(),
            lambda number: number * 10**5,
            lambda number: (number, "a"),
        ],
        ids=["text", "odd text", "surrogates", "bytes", "integers", "tuples"],
    )
    def test_compiled_kernels_agree_with_pandas(self, to_id, shared, group_in_numpy):
        random = np.random.default_rng(5)
        vertex_ids = [to_id(number) for number in range(50)]
        picked = {end: random.integers(0, 50, 999) for end in ("src", "dst")}
        edges = pd.DataFrame(
            {
                end: pd.Series(
                    [vertex_ids[number] if shared else to_id(number) for number in numbers.tolist()], dtype=object
                )
                for end, numbers in picked.items()
            }
        )
        found = prplugin.Graph(edges)
        group_in_numpy()
        expected = prplugin.Graph(edges)
        for array, reference in zip(found.csr()[:2], expected.csr()[:2], strict=True):
            np.testing.assert_array_equal(array, reference)
            assert array.dtype == reference.dtype
        assert found.rank().frame.equals(expected.rank().frame)

    def test_equal_ids_at_different_addresses_are_one_vertex(self):
        one, other = "".join(["ver", "tex"]), "".join(["vert", "ex"])
        assert one is not other
        edges = pd.DataFrame({"src": pd.Series([one, one, other, "b"], dtype=object), "dst": ["b", "b", "b", "c"]})
        assert edges.pagerank()["vertex"].tolist() == ["vertex", "b", "c"]

    def test_messages_name_rows_of_frame(self):
        vertex_ids = pd.Series(["a", "b", "a", "a", None, "a"] * 9, dtype=object)
        with pytest.raises(prplugin.InvalidEdgesError, match=r"9 nulls, in rows 4, 10, 16"):
            pd.DataFrame({"src": vertex_ids, "dst": vertex_ids}).pagerank()
        mixed = pd.Series(["a", "b", "a", "a", 5, "a"] * 9, dtype=object)
        with pytest.raises(prplugin.InvalidEdgesError, match="int in row 4"):
            pd.DataFrame({"src": mixed, "dst": mixed}).pagerank()


@pytest.mark.parametrize("truncates_strings", [True, host_columns.TRUNCATES_STRINGS])
@pytest.mark.parametrize("dtype", [object, "string[python]", "str", "category"])
def test_ids_differ_by_what_follows_a_null_character(dtype, truncates_strings, monkeypatch):
    monkeypatch.setattr(host_columns, "TRUNCATES_STRINGS", truncates_strings)
    vertices = ["\0a", "\0b", "b\0", "b"]
    ids = pd.Series(pd.Categorical.from_codes(range(4), pd.Index(vertices, dtype=object)))
    ids = ids if dtype == "category" else pd.Series(vertices, dtype=object).astype(dtype)
    graph = prplugin.Graph(pd.DataFrame({"src": ids, "dst": ids[::-1].reset_index(drop=True)}))
    assert graph.vertices.tolist() == ["\0a", "b", "\0b", "b\0"]
    assert graph.vertices.dtype == ids.dtype
    assert graph.rank(among=["\0b"]).frame["vertex"].tolist() == ["\0b"]


def test_ids_with_lone_surrogates_are_found():
    ids = pd.Series(["\ud800", "\ud800\ud800", "a", "b"], dtype=object)
    graph = prplugin.Graph(pd.DataFrame({"src": ids, "dst": ids[::-1].reset_index(drop=True)}))
    assert graph.number_of_vertices == 4
    ranks = graph.rank(alpha=0.1, personalization={ids[1]: 1}).ranks
    assert graph.vertices[int(np.argmax(ranks))] == ids[1]


@pytest.mark.parametrize(("name", "least", "most"), [("chain", 0.0, 0.1), ("random", 0.8, 1.0)])
def test_sectors_per_edge(name, least, most):
    n, m = 100_000, 1_000_000
    chain = (np.arange(m) * n // m + np.arange(m) % 3) % n
    sources = chain if name == "chain" else np.random.default_rng(0).integers(0, n, m)
    assert least < sectors_per_edge(sources) <= most


def test_dense_unsigned_ids_on_both_sides_of_the_signed_range():
    ids = np.uint64(2**63 - 10_000) + np.random.default_rng(2).integers(0, 20_000, (2, 50_000)).astype(np.uint64)
    edges = pd.DataFrame({"src": ids[0], "dst": ids[1]})
    shifted = pd.DataFrame({name: (edges[name] - np.uint64(2**63 - 10_000)).astype(np.int64) for name in edges})
    found, expected = edges.pagerank(), shifted.pagerank()
    assert (found["vertex"] - np.uint64(2**63 - 10_000)).tolist() == expected["vertex"].tolist()
    assert found["pagerank"].tolist() == expected["pagerank"].tolist()


@pytest.mark.parametrize("loops", [0, 3])
def test_undirected_edges_have_their_in_degrees_as_out_degrees(loops):
    random = np.random.default_rng(loops)
    source, destination = random.integers(0, 5, 40), random.integers(5, 9, 40)
    source[:loops] = destination[:loops]
    edges = with_reverse_edges(Coo(source, destination, None, 10))
    assert edges.m == 80 - loops
    pairs = sorted(zip(edges.source.tolist(), edges.destination.tolist(), strict=True))
    assert pairs == sorted((target, source) for source, target in pairs)
    graph = Edges(edges, symmetric=True)
    assert graph.get(Csc).indices.size == edges.m
    assert graph.out_weight.tolist() == np.bincount(edges.source, minlength=10).tolist()
    assert graph.out_weight.dtype == np.float64


@pytest.mark.parametrize("directed", [True, False])
def test_pairs_whose_keys_exceed_64_bits_are_told_apart(directed):
    """(0, 5) and (2**31, 5) have equal keys modulo 2**64 among 2**33 vertices, and are sorted by their endpoints."""
    source, destination = np.array([0, 1 << 31, 0, 1 << 31], np.int64), np.array([5, 5, 5, 6], np.int64)
    edges = Coo(source, destination, np.arange(4.0), 1 << 33)
    assert drop_duplicates(edges, "first", directed=directed).weights.tolist() == [0, 1, 3]
    assert drop_duplicates(edges, "last", directed=directed).weights.tolist() == [1, 2, 3]
    with pytest.raises(prplugin.InvalidEdgesError, match=r"1 row of the edge frame repeats .*: 2 "):
        drop_duplicates(edges, "error", directed=directed)
