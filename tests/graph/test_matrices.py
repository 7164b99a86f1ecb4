"""Graph.from_csr: arrays and sparse matrices, whose vertices are positions."""

from __future__ import annotations

import math
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from method_params import METHODS, same_ranks

import prplugin
from prplugin.gpu.runtime import unavailable_reason

sparse = pytest.importorskip("scipy.sparse")

# Row by row: a dangling and isolated vertex 3, a self-loop, a parallel entry, an explicit 0, columns out of order.
OFFSETS, INDICES = [0, 3, 5, 7, 7, 8], [2, 1, 2, 1, 0, 0, 4, 0]
WEIGHTS = [1.0, 2.0, 0.5, 3.0, 1.0, 0.0, 2.0, 1.5]
SOURCES = [0, 0, 0, 1, 1, 2, 2, 4]


def frame(**columns):
    return pd.DataFrame({"src": SOURCES, "dst": INDICES, **columns})


def matrix(layout, kind="array", dtype=np.float64):
    """Return the same edges as a sparse matrix, with duplicate entries and unsorted indices kept."""
    weights = np.array(WEIGHTS, dtype)
    if layout == "csr":
        return getattr(sparse, f"csr_{kind}")((weights, INDICES, OFFSETS), shape=(5, 5))
    if layout == "coo":
        return getattr(sparse, f"coo_{kind}")((weights, (SOURCES, INDICES)), shape=(5, 5))
    order = np.argsort(INDICES, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(INDICES, minlength=5))])
    return getattr(sparse, f"csc_{kind}")((weights[order], np.array(SOURCES)[order], offsets), shape=(5, 5))


def entries(graph):
    """Return the edges of a graph with their weights, sorted."""
    offsets, targets, weights = graph.csr()
    weights = np.ones(targets.size) if weights is None else weights
    sources = np.repeat(np.arange(graph.number_of_vertices), np.diff(offsets))
    return sorted(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_matrix_entries_are_edges(layout, kind):
    given = matrix(layout, kind)
    before = given.copy()
    graph = prplugin.Graph.from_csr(given)
    expected = prplugin.Graph(frame(w=WEIGHTS), weight="w", vertices=range(5))
    assert entries(graph) == entries(expected)
    offsets, sources, weights = graph.csc()
    targets = np.repeat(np.arange(5), np.diff(offsets))
    assert sorted(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True)) == entries(expected)
    assert (offsets.dtype, sources.dtype, weights.dtype) == (np.int64, np.int32, np.float64)
    ranks = graph.rank(tol=1e-13).frame
    assert ranks.dtypes.tolist() == [np.dtype("int64"), np.dtype("float64")]
    pd.testing.assert_frame_equal(ranks, expected.rank(tol=1e-13).frame, rtol=0, atol=2e-13)
    assert given.nnz == before.nnz == 8
    assert abs(given - before).sum() == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ranks_matrices(method):
    random = np.random.default_rng(2)
    given = sparse.random_array((300, 300), density=0.02, rng=random, format="csr")
    coo = given.tocoo()
    edges = pd.DataFrame({"src": coo.row, "dst": coo.col, "w": coo.data})
    expected = prplugin.Graph(edges, weight="w", vertices=np.arange(300)).rank(tol=1e-11)
    for variant in (given, given.tocsc(), coo):
        graph = prplugin.Graph.from_csr(variant)
        ranking = graph.rank(method=method, tol=1e-11)
        assert np.abs(ranking.ranks - expected.ranks).sum() <= ranking.error_bound + expected.error_bound
        assert same_ranks(method, graph.rank(method=method, tol=1e-11).ranks, ranking.ranks)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "bool", "longdouble"])
def test_weights_of_any_numeric_type(dtype):
    weights = np.array([1, 2, 1, 3, 1, 0, 2, 1], dtype)
    graph = prplugin.Graph.from_csr(OFFSETS, INDICES, weights)
    expected = prplugin.Graph(frame(w=weights.astype(float)), weight="w", vertices=range(5))
    assert entries(graph) == entries(expected)


@pytest.mark.parametrize("integer", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_offsets_and_indices_of_any_integer_type(integer):
    graph = prplugin.Graph.from_csr(np.array(OFFSETS, integer), np.array(INDICES, integer))
    assert entries(graph) == entries(prplugin.Graph(frame(), vertices=range(5)))


def test_unit_weights_are_dropped():
    assert prplugin.Graph.from_csr(matrix("csr")).csr().weights is not None
    assert prplugin.Graph.from_csr(OFFSETS, INDICES, np.ones(8)).csr().weights is None
    assert prplugin.Graph.from_csr(OFFSETS, INDICES).csr().weights is None


def test_values_by_vertex():
    graph = prplugin.Graph.from_csr(OFFSETS, INDICES)
    expected = graph.rank(alpha=0.5, personalization={1: 1, 3: 3}, dangling={4: 2}, nstart={0: 1}, max_iter=7, tol=0)
    for convert in (dict, lambda given: pd.Series(given).rename_axis("vertex"), as_array, as_frame):
        vectors = {
            "personalization": convert({1: 1, 3: 3}),
            "dangling": convert({4: 2}),
            "nstart": convert({0: 1}),
        }
        assert graph.rank(alpha=0.5, max_iter=7, tol=0, **vectors).ranks.tolist() == expected.ranks.tolist()
    assert graph.rank(top=2).frame["vertex"].tolist() == [0, 1]
    with pytest.raises(prplugin.InvalidOptionError, match=r"personalization is an array of shape \(3,\).*5 vertices"):
        graph.rank(personalization=np.ones(3))
    with pytest.raises(prplugin.InvalidOptionError, match=r"nstart has 1 value below 0: -1.0 in entry 2"):
        graph.rank(nstart=np.array([1, 1, -1.0, 0, 0]))
    with pytest.raises(prplugin.InvalidOptionError, match="not in the graph: 5"):
        graph.rank(dangling={5: 1})
    with pytest.raises(prplugin.InvalidOptionError, match="sums to 0"):
        graph.rank(dangling=np.zeros(5))


def as_array(given):
    values = np.zeros(5)
    values[list(given)] = list(given.values())
    return values


def as_frame(given):
    return pd.DataFrame({"vertex": list(given), "values": list(given.values())})


def test_graphs_without_edges_or_vertices():
    assert prplugin.Graph.from_csr([0], []).rank().frame.shape == (0, 2)
    assert prplugin.Graph.from_csr([0, 0, 0], []).rank().frame["pagerank"].tolist() == [0.5, 0.5]
    assert prplugin.Graph.from_csr(sparse.csr_array((0, 0))).number_of_vertices == 0
    assert prplugin.Graph.from_csr(sparse.coo_array((3, 3))).rank().frame["vertex"].tolist() == [0, 1, 2]
    assert prplugin.Graph.from_csr(np.array([0], np.int32), np.array([], np.int32), np.array([])).number_of_edges == 0


def test_graph_does_not_alias_arrays():
    for given in (matrix("csr"), matrix("csc"), matrix("coo")):
        graph = prplugin.Graph.from_csr(given)
        before = entries(prplugin.Graph.from_csr(given))
        arrays = ("row", "col", "data") if given.format == "coo" else ("indptr", "indices", "data")
        for name in arrays:
            getattr(given, name)[:] = 0
        assert entries(graph) == before


INVALID_INPUT = {
    "no offsets": (([], []), "offsets has 0 entries: it needs at least one entry."),
    "offsets from 1": (([1, 2], [0]), "offsets goes from 1 to 2: it must begin with 0 and end with the length of indices, 1."),
    "offsets past indices": (([0, 2], [0]), "offsets goes from 0 to 2"),
    "decreasing offsets": (([0, 2, 1, 3], [0, 1, 2]), "offsets falls 1 time, after entry 1 (counted from 0)"),
    "negative offsets": (([0, -1, 2], [0, 1]), "offsets falls 1 time, after entry 0"),
    "offsets of floats": (([0.0, 1.0], [0]), "offsets must be an array of integers of one dimension, not of float64 of 1."),
    "offsets of two dimensions": (([[0, 1]], [0]), "offsets must be an array of integers of one dimension, not of int64 of 2."),
    "indices past the end": (([0, 2, 4], [0, 2, 1, -1]), "indices has 2 values that are no vertex of 0 to 1: 2 in entry 1, -1 in entry 3"),
    "indices past 32 bits": (([0, 1], [2**32]), "indices has 1 value that is no vertex of 0 to 0: 4294967296 in entry 0"),
    "indices of floats": (([0, 1], [0.0]), "indices must be an array of integers"),
    "indices of bools": (([0, 1], [False]), "indices must be an array of integers"),
    "too few weights": (([0, 2], [0, 0], [1.0]), "weights has the shape (1,): it needs one value for each of 2 edges."),
    "weights of two dimensions": (([0, 1], [0], [[1.0]]), "weights has the shape (1, 1): it needs one value for each of 1 edges."),
    "indices past 53 bits": (([0, 1], [2**53 + 1]), "indices has 1 value that is no vertex of 0 to 0: 9007199254740993 in entry 0"),
    "negative weights": (([0, 2], [0, 0], [-1.0, -2.0]), "weights has 2 values below 0: -1.0 in entry 0, -2.0 in entry 1"),
    "NaN weights": (([0, 1], [0], [np.nan]), "weights has 1 value missing or NaN: nan in entry 0"),
    "infinite weights": (([0, 1], [0], [np.inf]), "weights has 1 value infinite"),
    "complex weights": (([0, 1], [0], [1j]), "weights holds complex128, not real numbers"),
    "weights of strings": (([0, 1], [0], ["a"]), "weights holds str"),
    "weights that overflow": (([0, 2], [0, 0], [1e308, 1e308]), "weights: the weights that leave 1 vertex (0) sum to more than float64 holds. Divide weights by"),
    "one list": (([0, 1],), "from_csr takes offsets, indices and perhaps weights, or one sparse matrix of SciPy or CuPy, or a frame with a row and a column per vertex, not builtins.list alone."),
    "dense array": ((np.eye(2),), "not numpy.ndarray alone"),
    "frame of edges": ((frame(),), "the frame has 8 rows and 2 columns: a frame that is a matrix has one of each per vertex"),
    "frame with other columns": ((pd.DataFrame(np.eye(2), ["a", "b"], ["a", "c"]),), "the names of the columns"),
    "frame with a negative cell": ((pd.DataFrame([[0, -1], [1, 0]]),), "column 1 has 1 value below 0: -1 in entry 0"),
    "matrix and weights": ((sparse.eye_array(2, format="csr"), None, [1, 1]), "leave out weights="),
    "non-square matrix": ((sparse.csr_array((2, 3)),), "the matrix has the shape (2, 3): an adjacency matrix has as many rows as columns"),
    "one-dimensional matrix": ((sparse.coo_array(np.ones(3)),), "the matrix has the shape (3,)"),
    "unsupported format": ((sparse.eye_array(2, format="lil"),), "the matrix is in the format 'lil', of which from_csr reads csr, csc and coo: convert it"),
    "complex matrix": ((sparse.csr_array(np.eye(2) * 1j),), "data holds complex128, not real numbers"),
    "matrix with negative entries": ((sparse.csc_array(-np.eye(2)),), "data has 2 values below 0: -1.0 in entry 0, -1.0 in entry 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID_INPUT)
def test_invalid_input_raises(name):
    given, message = INVALID_INPUT[name]
    with pytest.raises(prplugin.InvalidEdgesError, match=re.escape(message)):
        prplugin.Graph.from_csr(*given)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_invalid_indices_of_scipy_matrix_raise(layout):
    given = matrix(layout)
    name = "row" if layout == "coo" else "indices"
    getattr(given, name)[2] = -1 if layout == "coo" else 7
    with pytest.raises(
        prplugin.InvalidEdgesError, match=f"{name} has 1 value that is no vertex of 0 to 4: -?[17] in entry 2"
    ):
        prplugin.Graph.from_csr(given)


def test_compiled_grouping_agrees_with_numpy(group_in_numpy):
    random = np.random.default_rng(4)
    given = sparse.random_array((500, 500), density=0.05, rng=random, format="csr")
    seen = []
    for choose in (lambda: None, group_in_numpy):
        choose()
        graph = prplugin.Graph.from_csr(given)
        seen.append([array.tolist() for array in (*graph.csr(), *graph.csc())])
    assert seen[0] == seen[1]


def test_from_cugraph_rejects_other_types():
    with pytest.raises(prplugin.InvalidEdgesError, match=r"from_cugraph takes a cugraph.Graph or .*, not builtins.int"):
        prplugin.Graph.from_cugraph(7)


# --- on the GPU ---------------------------------------------------------------------------------------------------

GPU = [pytest.mark.gpu, pytest.mark.skipif(unavailable_reason() is not None, reason=str(unavailable_reason()))]


def cupy_matrix(layout):
    cupyx = pytest.importorskip("cupyx.scipy.sparse")
    return getattr(cupyx, f"{layout}_matrix")(matrix(layout, "matrix"))


class TestDeviceArrays:
    pytestmark = GPU

    @pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
    def test_cupy_matrices(self, layout):
        given = cupy_matrix(layout)
        graph = prplugin.Graph.from_csr(given)
        expected = prplugin.Graph.from_csr(matrix(layout)).rank(tol=1e-12)
        ranking = graph.rank(tol=1e-12)
        assert type(ranking.ranks).__module__.startswith("cupy")
        assert ranking.method not in ("numpy", "native")
        ranks = ranking.frame if isinstance(ranking.frame, pd.DataFrame) else ranking.frame.to_pandas()
        assert ranks["vertex"].tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(ranks["pagerank"], expected.ranks, rtol=0, atol=2e-12)
        numpy_ranks = graph.rank(method="numpy", tol=1e-12).ranks.get()
        np.testing.assert_allclose(numpy_ranks, expected.ranks, rtol=0, atol=2e-12)

    def test_cupy_arrays(self):
        import cupy

        offsets, indices, weights = (cupy.asarray(array) for array in (OFFSETS, INDICES, WEIGHTS))
        graph = prplugin.Graph.from_csr(offsets, indices, weights)
        expected = prplugin.Graph.from_csr(OFFSETS, INDICES, WEIGHTS)
        for found, reference in zip((*graph.csr(), *graph.csc()), (*expected.csr(), *expected.csc()), strict=True):
            assert found.get().tolist() == reference.tolist()
        v = cupy.asarray([0, 1.0, 0, 3.0, 0])
        for given in (v, v.get(), {1: 1, 3: 3}):
            ranks = graph.rank(personalization=given, tol=1e-12).ranks
            np.testing.assert_allclose(ranks.get(), expected.rank(personalization=v.get(), tol=1e-12).ranks, atol=2e-12)
        with pytest.raises(prplugin.InvalidEdgesError, match="are partly on the GPU"):
            prplugin.Graph.from_csr(offsets, INDICES)
        for name in (
            "decreasing offsets",
            "indices past the end",
            "negative weights",
            "NaN weights",
            "complex weights",
        ):
            given, message = INVALID_INPUT[name]
            with pytest.raises(prplugin.InvalidEdgesError, match=re.escape(message)):
                prplugin.Graph.from_csr(*(cupy.asarray(array) for array in given))

    def test_large_matrices(self):
        import cupy

        given = sparse.random_array((70_000, 70_000), density=1e-4, rng=np.random.default_rng(1), format="csr")
        graph = prplugin.Graph.from_csr(*(cupy.asarray(array) for array in (given.indptr, given.indices, given.data)))
        ranking, expected = graph.rank(tol=1e-11), prplugin.Graph.from_csr(given).rank(tol=1e-11)
        distance = np.abs(ranking.ranks.get() - expected.ranks).sum()
        assert distance <= ranking.error_bound + expected.error_bound


class TestCuGraph:
    pytestmark = GPU

    @pytest.mark.parametrize("ids", ["integers", "strings", "several columns"])
    @pytest.mark.parametrize("directed", [True, False])
    @pytest.mark.parametrize("multi", [True, False])
    @pytest.mark.parametrize("weight", [None, "w"])
    def test_ranks_agree_with_cugraph(self, ids, directed, multi, weight):
        from conformance import rapids

        if reason := rapids.missing("cugraph"):
            pytest.skip(reason)
        random = np.random.default_rng(3)
        endpoints = random.integers(0, 40, (2, 200))
        edges = pd.DataFrame({"src": endpoints[0] * 3 + 5, "dst": endpoints[1] * 3 + 5, "w": 1 + random.random(200)})
        source, destination = "src", "dst"
        if ids == "strings":
            edges = edges.astype({"src": str, "dst": str})
        if ids == "several columns":
            edges = edges.assign(s2=edges["src"] % 7, d2=edges["dst"] % 7)
            source, destination = ["src", "s2"], ["dst", "d2"]
        cugraph_graph = rapids.graph(edges, source, destination, weight=weight, directed=directed, multi=multi)
        with rapids.quietly():
            graph = prplugin.Graph.from_cugraph(cugraph_graph)
        found = graph.rank(tol=1e-9).frame.to_pandas()
        ranks, converged = rapids.pagerank(cugraph_graph, tol=1e-7, max_iter=500)
        assert converged
        names = [name for name in found.columns if name != "pagerank"]
        assert names == (["vertex"] if ids != "several columns" else source)
        ranks = ranks.rename(columns=dict(zip(sorted(set(ranks.columns) - {"pagerank"}), names, strict=True)))
        merged = found.merge(ranks, on=names, suffixes=("", "_cugraph"))
        assert len(merged) == len(found) == len(ranks)
        assert abs(merged["pagerank"] - merged["pagerank_cugraph"]).sum() < 1e-5

    @pytest.mark.parametrize("transposed", [True, False])
    @pytest.mark.parametrize("ranked_before", [True, False])
    @pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4]])
    @pytest.mark.parametrize("endpoints", [([5, 6, 6, 7], [6, 7, 5, 5]), ([5, 6, 6, 7], [6, 5, 7, 6])])
    def test_edges_keep_their_direction(self, transposed, ranked_before, weights, endpoints):
        from conformance import rapids

        if reason := rapids.missing("cugraph"):
            pytest.skip(reason)
        edges = pd.DataFrame({"src": endpoints[0], "dst": endpoints[1]} | ({} if weights is None else {"w": weights}))
        weight = None if weights is None else "w"
        with rapids.quietly():
            cugraph_graph = rapids.module("cugraph").Graph(directed=True)
            cugraph_graph.from_cudf_edgelist(
                rapids.as_cudf(edges), source="src", destination="dst", weight=weight, store_transposed=transposed
            )
            if ranked_before:
                rapids.pagerank(cugraph_graph)
            found = prplugin.Graph.from_cugraph(cugraph_graph).rank(tol=1e-9).frame.to_pandas()
        expected = edges.pagerank(weight=weight, tol=1e-9)
        assert found["vertex"].tolist() == expected["vertex"].tolist()
        assert found["pagerank"].to_numpy() == pytest.approx(expected["pagerank"].to_numpy(), abs=1e-8)

    def test_isolated_vertices(self):
        from conformance import rapids

        if reason := rapids.missing("cugraph"):
            pytest.skip(reason)
        cugraph_graph = rapids.graph(pd.DataFrame({"src": [0, 1], "dst": [1, 0]}), vertices=np.arange(5))
        with rapids.quietly():
            ranks = prplugin.Graph.from_cugraph(cugraph_graph).rank().frame.to_pandas()
        assert ranks["vertex"].tolist() == [0, 1, 2, 3, 4]


# --- ids of the rows --------------------------------------------------------------------------------------------------

IDS = {
    "strings": list("ecadb"),
    "ascending integers": [1, 5, 7, 8, 9],
    "integers": [5, 3, 1, 2**40, 4],
    "integers in an array": np.array([5, 3, 1, 2, 4], np.uint8),
    "nullable": pd.Series([5, 3, 1, 2, 4], dtype="Int32"),
    "index": pd.date_range("2026", periods=5, tz="Europe/Berlin"),
    "category": pd.Categorical(list("ecadb")),
    "tuples": [(1,), (), (2, 3), ("a",), (4,)],
    "columns": pd.DataFrame({"a": [1, 1, 2, 2, 3], "b": list("xyxyx")}),
}


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "arrays"])
@pytest.mark.parametrize("kind", IDS)
def test_ids_of_the_rows(kind, layout):
    matrix = sparse.random_array((5, 5), density=0.5, rng=np.random.default_rng(1), format="csr")
    given = (matrix.indptr, matrix.indices, matrix.data) if layout == "arrays" else (matrix.asformat(layout),)
    ids = IDS[kind]
    graph = prplugin.Graph.from_csr(*given, vertices=ids)
    ranks = graph.rank(tol=1e-13)
    keys = list(ids.itertuples(index=False, name=None)) if kind == "columns" else list(ids)
    expected = prplugin.Graph.from_csr(matrix).rank(tol=1e-13).ranks
    np.testing.assert_allclose([ranks[key] for key in keys], expected, rtol=0, atol=1e-12)
    ascending = "integer" in kind or kind == "nullable"
    assert list(ranks) == (sorted(keys) if ascending else keys)
    if hasattr(ids, "dtype"):
        assert graph.vertices.dtype == ids.dtype
    first = graph.csr().offsets[list(ranks).index(keys[0]) + 1] - graph.csr().offsets[list(ranks).index(keys[0])]
    assert first == matrix.indptr[1]


def test_ids_of_lists_have_the_types_of_pandas():
    for ids, dtype in ((["a", "b"], pd.Series(["a", "b"]).dtype), ([2, 1], np.dtype(np.int64))):
        assert prplugin.Graph.from_csr([0, 1, 2], [1, 0], vertices=ids).vertices.dtype == dtype


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a"], "vertices has 1 id, but the matrix has 3 rows: pass one id per row"),
        (list("abcd"), "vertices has 4 ids, but the matrix has 3 rows"),
        (["a", "b", "a"], "vertices names 1 id more than once: 'a'. Each row of the matrix needs its own id."),
        ([7, 7, 7], "vertices names 1 id more than once: 7"),
        (["a", 1, 2], "mixes kinds of ids"),
        (["a", None, "b"], "has 1 null, in row 1"),
        ([1.0, 2.0, 3.0], "float"),
        ("abc", "vertices must be a list, an array, a Series or a frame of ids, not 'abc'"),
        ({7, 8, 9}, "is a set, which has no order"),
        (pd.DataFrame({"a": [1, 1, 1], "b": [2, 2, 3]}), r"names 1 id more than once: \(1, 2\)"),
    ],
    ids=str,
)
def test_invalid_ids_of_the_rows(ids, message):
    with pytest.raises(prplugin.PageRankError, match=message):
        prplugin.Graph.from_csr([0, 1, 2, 3], [1, 2, 0], vertices=ids)


def test_sparse_frames_are_read_without_their_zeros():
    n = 3000
    rng = np.random.default_rng(1)
    given = sparse.coo_array((rng.random(n) + 0.5, (rng.permutation(n), rng.permutation(n))), shape=(n, n))
    wide = pd.DataFrame.sparse.from_spmatrix(given, index=range(n))
    tracemalloc.start()
    graph = prplugin.Graph.from_csr(wide)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * n  # a byte per cell
    assert entries(graph) == entries(prplugin.Graph.from_csr(given))


@pytest.mark.parametrize("fill", [0, 2, math.nan])
def test_sparse_frames_with_any_fill_value(fill):
    wide = pd.DataFrame([[0.0, 2, 3], [2, 2, 0], [1, 0, 0]])
    stored = wide.astype(pd.SparseDtype(float, fill))
    assert entries(prplugin.Graph.from_csr(stored)) == entries(prplugin.Graph.from_csr(wide))
    with pytest.raises(prplugin.InvalidEdgesError, match=r"column 1 has 1 value below 0: -5.0 in entry 2 "):
        prplugin.Graph.from_csr(wide.replace({1: {0: -5.0}}).astype(pd.SparseDtype(float, fill)))
    with pytest.raises(prplugin.InvalidEdgesError, match="the frame has 4 cells without a value"):
        prplugin.Graph.from_csr(wide.replace({0: math.nan}).astype(pd.SparseDtype(float, fill)))


def test_lazy_frames_name_their_columns_without_a_warning(recwarn):
    polars = pytest.importorskip("polars")
    lazy = polars.LazyFrame({"id": ["b", "a"], "a": [2, 0], "b": [0, 1]})
    graph = prplugin.Graph.from_csr(lazy)
    assert entries(graph) == [(0, 1, 2.0), (1, 0, 1.0)]
    graph.rank(personalization=(lazy, "id", "b"))
    assert not recwarn.list


def test_updates_of_a_matrix_with_ids():
    graph = prplugin.Graph.from_csr([0, 1, 2, 3], [1, 2, 0], vertices=["a", "b", "c"])
    graph.update(add=pd.DataFrame({"src": ["a"], "dst": ["d"]}), remove=pd.DataFrame({"src": ["a"], "dst": ["b"]}))
    expected = pd.DataFrame({"src": ["b", "c", "a"], "dst": ["c", "a", "d"]}).pagerank()
    assert graph.rank().to_dict() == pytest.approx(dict(expected.itertuples(index=False)), abs=2e-6)
