"""Graphs built by compiled kernels on the CPU: as NumPy builds them, to the bit, for any number of threads."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.cpu import factorize, group
from prplugin.cpu.threads import Threads
from prplugin.graph import factorize as graph_factorize
from prplugin.graph.factorize import edges_by_id, factorize_ids
from prplugin.machine import COMPILED_FROM, Machine

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.fixture(params=[1, 2, 5], ids="{} threads".format)
def threads(request, monkeypatch):
    """Several threads, whatever the machine has, and pieces so small that all of them get some."""
    monkeypatch.setattr(group, "PIECE", 100)
    for module in ("graph.factorize", "graph.adjacency", "cpu.edges"):
        monkeypatch.setattr(f"prplugin.{module}.this_machine", lambda: Machine(request.param))
    return Threads(request.param)


def columns_of(kind, where, m=3000):
    info, random = np.iinfo(kind), np.random.default_rng(m)
    low, high = {
        "one": (7, 8),
        "few": (3, 20),
        "about 0": (max(info.min, -40), 70),
        "least": (info.min, info.min + 90),
        "greatest": (info.max - 90, info.max),
        "as many as values": (max(info.min, -m), min(info.max, m)),
        "anywhere": (info.min, info.max),
    }[where]
    ids = random.integers(low, high, 700, kind, endpoint=where != "one")
    ids[:2] = low, high - (where == "one")  # the marks of free slots among them
    return [random.choice(ids, m), random.choice(ids, m)]


@pytest.mark.parametrize("where", ["one", "few", "about 0", "least", "greatest", "as many as values", "anywhere"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_ids_of_every_type(kind, where, threads, monkeypatch):
    columns = columns_of(kind, where)
    codes, ids = factorize_ids(columns)
    found, found_ids = factorize.factorize_ids(columns, threads)
    assert (found_ids.dtype, found_ids.tolist()) == (ids.dtype, ids.tolist())
    for ours, theirs in zip(found, codes, strict=True):
        assert ours.dtype == theirs.dtype
        assert (ours == theirs).all()
    monkeypatch.setattr("prplugin.machine.COMPILED_FROM", 1)
    for lasting in (True, False):
        edges, edge_ids = edges_by_id(columns, grouped=True, lasting=lasting)
        assert (edge_ids.dtype, edge_ids.tolist()) == (ids.dtype, ids.tolist())
        assert (edges.n, edges.m) == (ids.size, columns[0].size)
        order = np.argsort(codes[1], kind="stable")
        assert (edges.in_edges[1] == codes[0][order]).all()
        assert (np.diff(edges.in_edges[0]) == np.bincount(codes[1], minlength=ids.size)).all()
        assert (edges.out_weight == np.bincount(codes[0], minlength=ids.size)).all()
        assert edges.in_edges[1].dtype == edges.source.dtype == codes[0].dtype
        assert (edges.source == codes[0]).all()
        assert (edges.destination == codes[1]).all()


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_grouped_is_a_stable_sort(n, weighted, threads):
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


def test_a_table_that_many_threads_fill_grows_in_time(threads, monkeypatch):
    """Each new id is one more to make room for, and threads that enter some at once see the same room."""
    monkeypatch.setattr(factorize, "MIN_TABLE_BITS", 3)
    monkeypatch.setattr(factorize, "VALUES_PER_SLOT", 10**9)
    ids = np.random.default_rng(1).permutation(20_000) * 2**40
    codes, found = factorize.factorize_ids([ids, ids[::-1]], threads)
    assert found.tolist() == sorted(ids.tolist())
    assert (found[codes[0]] == ids).all()
    assert (found[codes[1]] == ids[::-1]).all()


def test_ids_in_a_column_of_a_matrix(threads, monkeypatch):
    monkeypatch.setattr("prplugin.machine.COMPILED_FROM", 1)
    matrix = np.random.default_rng(2).integers(-(2**40), 2**40, (900, 2))
    strided = pd.DataFrame(matrix, columns=["src", "dst"], copy=False)
    assert strided.pagerank().equals(pd.DataFrame({"src": matrix[:, 0], "dst": matrix[:, 1]}).pagerank())


@pytest.mark.parametrize("factor", [graph_factorize.GOLDEN, np.uint64(2**60), np.uint64(0)])
def test_ids_that_share_a_hash_are_told_apart(factor, monkeypatch):
    columns = columns_of("int64", "anywhere")
    known, codes = np.unique(np.concatenate(columns), return_inverse=True)
    monkeypatch.setattr(graph_factorize, "GOLDEN", factor)
    found, ids = factorize_ids(columns)
    assert ids.tolist() == known.tolist()
    assert np.concatenate(found).tolist() == codes.tolist()


@pytest.mark.parametrize("ids", ["int32", "int64", "scattered int32", "scattered"])
def test_memory_beside_the_columns(ids):
    """A call takes no more than twice the columns of ids, and 40 bytes a vertex."""
    n, m = 60_000, 2 * COMPILED_FROM
    random = np.random.default_rng(3)
    names = np.arange(n) if not ids.startswith("scattered") else random.permutation(2**31 - 1 - np.arange(n) * 30_000)
    dtype = ids.removeprefix("scattered").strip() or "int64"
    if ids == "scattered":
        names = names * 2**30
    edges = pd.DataFrame({"src": random.choice(names, m), "dst": random.choice(names, m)}).astype(dtype)
    edges.pagerank()  # kernels are compiled, and imports done
    tracemalloc.start()
    try:
        edges.pagerank()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * edges.memory_usage(index=False).sum() + 40 * n


def test_the_frame_may_change_under_a_graph_but_not_under_a_call():
    random = np.random.default_rng(4)
    for low, high in ((0, 1000), (-(2**62), 2**62)):
        names = random.integers(low, high, 900)
        edges = pd.DataFrame({end: random.choice(names, COMPILED_FROM) for end in ("src", "dst")}, copy=False)
        before = edges.copy()
        graph, other = prplugin.Graph(edges), prplugin.Graph(before)
        edges.iloc[:, :] = 1
        for ours, theirs in zip(graph.csr()[:2], other.csr()[:2], strict=True):
            np.testing.assert_array_equal(ours, theirs)


class TestObjects:
    """Large columns of objects, by address and by text: as pandas would have numbered them."""

    @pytest.fixture(autouse=True)
    def _all_are_large(self, monkeypatch):
        for module in ("_pandas_objects", "_pandas_ids"):
            monkeypatch.setattr(f"prplugin.frames.{module}.COMPILED_FROM", 1)

    @pytest.mark.parametrize("shared", [True, False])
    @pytest.mark.parametrize(
        "name",
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
    def test_large_columns_are_factorized_as_small_ones(self, name, shared, monkeypatch):
        random = np.random.default_rng(5)
        names = [name(number) for number in range(50)]
        picked = {end: random.integers(0, 50, 999) for end in ("src", "dst")}
        edges = pd.DataFrame(
            {
                end: pd.Series([names[number] if shared else name(number) for number in numbers.tolist()], dtype=object)
                for end, numbers in picked.items()
            }
        )
        large = prplugin.Graph(edges)
        for module in ("_pandas_objects", "_pandas_ids"):
            monkeypatch.setattr(f"prplugin.frames.{module}.COMPILED_FROM", 10**9)
        small = prplugin.Graph(edges)
        for ours, theirs in zip(large.csr()[:2], small.csr()[:2], strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype
        assert large.rank().frame.equals(small.rank().frame)

    def test_what_is_equal_is_one_vertex_whatever_its_address(self):
        one, other = "".join(["ver", "tex"]), "".join(["vert", "ex"])
        assert one is not other
        edges = pd.DataFrame({"src": pd.Series([one, one, other, "b"], dtype=object), "dst": ["b", "b", "b", "c"]})
        assert edges.pagerank()["vertex"].tolist() == ["vertex", "b", "c"]

    def test_messages_name_rows_of_the_frame(self):
        names = pd.Series(["a", "b", "a", "a", None, "a"] * 9, dtype=object)
        with pytest.raises(prplugin.InvalidEdgesError, match=r"9 nulls, in rows 4, 10, 16"):
            pd.DataFrame({"src": names, "dst": names}).pagerank()
        mixed = pd.Series(["a", "b", "a", "a", 5, "a"] * 9, dtype=object)
        with pytest.raises(prplugin.InvalidEdgesError, match="int in row 4"):
            pd.DataFrame({"src": mixed, "dst": mixed}).pagerank()
