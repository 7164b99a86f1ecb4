"""Graph.update: error bounds, adjacency and errors after edges are added and removed."""

from __future__ import annotations

import io
import sys
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples
from rational_pagerank import distance, solve

import prplugin
from prplugin.streams.decay import ScaledWeights, roundings_of

COLUMNS = ["src", "dst", "w"]
STREAMS = Path(prplugin.__file__).parent / "streams"


def frame(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype({"src": "int64", "dst": "int64", "w": "float64"})


def assert_exact(graph, rows, *, alpha=0.85, tol=1e-6, directed=True, **options):
    """Check the error bound of the next ranking against the exact solution of a graph of these rows."""
    ranking = graph.rank(alpha=alpha, tol=tol, **options)
    ids = graph.vertices.tolist()
    position = {vertex: index for index, vertex in enumerate(ids)}
    both = [*rows, *([] if directed else [(v, u, w) for u, v, w in rows if u != v])]
    if not ids:
        return ranking
    exact = solve(len(ids), [(position[u], position[v], Fraction(float(w))) for u, v, w in both], alpha)
    assert distance(ranking.ranks, exact) <= Fraction(ranking.error_bound)
    assert ranking.error_bound <= tol
    assert ranking.ranks.min() >= 0
    assert graph.number_of_edges == len(both)
    return ranking


IDS = st.integers(-3, 9)
EDGE = st.tuples(IDS, IDS, st.sampled_from([0.0, 0.25, 1.0, 3.0]))
CHANGES = st.lists(
    st.tuples(st.lists(EDGE, max_size=4), st.lists(st.integers(0, 40), max_size=4, unique=True)), max_size=6
)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(EDGE, max_size=14), CHANGES, st.booleans(), st.booleans(), st.sampled_from([0.5, 0.85, 0.95]))
def test_error_bound_and_adjacency_hold_after_updates(rows, changes, weighted, directed, alpha):
    weight = "w" if weighted else None
    rows = rows if weighted else [(u, v, 1.0) for u, v, _ in rows]
    graph = prplugin.Graph(frame(rows), weight=weight, directed=directed)
    graph.rank(alpha=alpha)
    for added, removed_positions in changes:
        more = added if weighted else [(u, v, 1.0) for u, v, _ in added]
        removed = [rows[index] for index in removed_positions if index < len(rows)]
        graph.update(add=frame(more), remove=frame(removed))
        rows = [row for index, row in enumerate(rows) if index not in removed_positions] + more
        ids = graph.vertices.tolist()
        assert ids == sorted(set(ids))
        assert_exact(graph, rows, alpha=alpha, directed=directed)
        csr, csc = graph.csr(), graph.csc()
        position = {vertex: index for index, vertex in enumerate(ids)}
        both = [*rows, *([] if directed else [(v, u, w) for u, v, w in rows if u != v])]
        expected = Counter((position[u], position[v], w) for u, v, w in both)
        for compressed, turned in ((csr, False), (csc, True)):
            major = np.repeat(np.arange(len(ids)), np.diff(compressed.offsets)).tolist()
            minor = compressed.indices.tolist()
            weights = [1.0] * len(minor) if compressed.weights is None else compressed.weights.tolist()
            found = zip(minor, major, weights, strict=True) if turned else zip(major, minor, weights, strict=True)
            assert Counter(found) == expected


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(EDGE, max_size=14), st.lists(st.tuples(st.lists(EDGE, max_size=4), st.integers(0, 5)), max_size=5),
    st.sampled_from(["first", "last"]), st.booleans(),
)  # fmt: skip
def test_duplicates_are_resolved_as_in_one_frame(rows, changes, duplicates, directed):
    graph = prplugin.Graph(frame(rows), weight="w", duplicates=duplicates, directed=directed)
    kept: dict[tuple[int, int], tuple[int, int, float]] = {}

    def keep(edges):
        for u, v, w in edges:
            pair = (u, v) if directed else (min(u, v), max(u, v))
            if duplicates == "last" or pair not in kept:
                kept[pair] = (u, v, w)

    keep(rows)
    for added, count in changes:
        removed = [kept.pop(pair) for pair in list(kept)[:count]]
        graph.update(add=frame(added), remove=frame(removed)[["src", "dst"]])
        keep(added)
        assert_exact(graph, list(kept.values()), directed=directed)


def test_push_proves_small_changes_of_large_graph():
    rng, ids = np.random.default_rng(3), np.arange(5000)
    torus = [(ids + step) % 5000 for step in (1, -1, 70, -70)]
    edges = pd.DataFrame({"src": np.tile(ids, 4), "dst": np.concatenate(torus)})
    graph = prplugin.Graph(edges, vertices=range(5000))
    graph.rank(tol=1e-3)
    methods, pushed = Counter(), None
    for round_number in range(30):
        added = pd.DataFrame({"src": rng.integers(0, 5000, 2), "dst": rng.integers(0, 5000, 2)})
        removed = edges.iloc[[round_number, round_number + 100]]
        edges = pd.concat([edges.drop(removed.index), added], ignore_index=True)
        graph.update(add=added, remove=removed)
        ranking = graph.rank(tol=1e-3)
        methods[ranking.method] += 1
        pushed = ranking if ranking.method == "push" else pushed
        exact = prplugin.pagerank(edges, vertices=range(5000), tol=1e-9)
        assert np.abs(ranking.ranks - exact["pagerank"]).sum() <= ranking.error_bound + 1e-9
        assert ranking.error_bound <= 1e-3
    assert methods["push"] >= 20
    explained = io.StringIO()
    pushed.explain(explained)
    assert "residuals pushed" in explained.getvalue()


def test_a_method_starts_from_the_ranks_of_pushes():
    rng, n = np.random.default_rng(4), 3000
    graph = prplugin.Graph(pd.DataFrame(rng.integers(0, n, (4 * n, 2)), columns=["src", "dst"]), vertices=range(n))
    first = graph.rank(method="numpy")
    graph.update(add=pd.DataFrame({"src": [1], "dst": [2]}))
    assert graph.rank().method == "push"
    assert graph.rank(method="numpy").iterations < first.iterations / 2


@pytest.mark.parametrize(
    "options", [{"personalization": {3: 1.0, 7: 2.0}}, {"dangling": {3: 1.0}}, {"method": "numpy"}]
)
def test_rank_options_after_updates(options):
    rng = np.random.default_rng(4)
    edges = pd.DataFrame({"src": rng.integers(0, 300, 900), "dst": rng.integers(0, 300, 900)})
    graph = prplugin.Graph(edges, vertices=range(301))
    graph.rank(**options)
    for round_number in range(5):
        added = pd.DataFrame({"src": [round_number, 400 + round_number], "dst": [400 + round_number, 7]})
        edges = pd.concat([edges, added], ignore_index=True)
        graph.update(add=added)
        found = graph.rank(**options)
        expected = prplugin.pagerank(
            edges, vertices=range(301), tol=1e-10, **{k: v for k, v in options.items() if k != "method"}
        )
        assert found.frame["vertex"].tolist() == expected["vertex"].tolist()
        assert np.abs(found.ranks - expected["pagerank"]).sum() <= found.error_bound + 1e-10
        assert (
            np.abs(
                graph.rank(alpha=0.5).ranks - prplugin.pagerank(edges, vertices=range(301), alpha=0.5)["pagerank"]
            ).sum()
            < 2e-6
        )


@pytest.mark.parametrize("personalization", [None, {3: 1.0, 7: 2.0}])
@pytest.mark.parametrize("tol", [1e-6, 1e-11])
def test_push_proves_large_changes(personalization, tol):
    rng = np.random.default_rng(6)
    edges = pd.DataFrame(rng.integers(0, 300, (1500, 2)), columns=["src", "dst"])
    graph = prplugin.Graph(edges, vertices=range(300))
    graph.rank(personalization=personalization, tol=tol)
    methods = Counter()
    for round_number in range(10):
        added = pd.DataFrame(rng.integers(0, 300, (75, 2)), columns=["src", "dst"])
        if personalization is None:
            added.iloc[0] = [-round_number, 300 + round_number]  # before and after the existing vertices
        removed = edges.iloc[:75]
        edges = pd.concat([edges.iloc[75:], added], ignore_index=True)
        graph.update(add=added, remove=removed)
        found = graph.rank(personalization=personalization, tol=tol)
        methods[found.method] += 1
        expected = prplugin.pagerank(edges, vertices=graph.vertices, personalization=personalization, tol=1e-12)
        assert found.frame["vertex"].tolist() == expected["vertex"].tolist()
        assert np.abs(found.ranks - expected["pagerank"]).sum() <= found.error_bound + 1e-12
        assert found.error_bound <= tol
    assert methods["push"] >= 8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1, "n"])
def test_dtype_and_scale_after_update(dtype, scale):
    graph = prplugin.Graph(frame([(1, 2, 1), (2, 3, 1), (3, 1, 1), (1, 3, 1)]))
    graph.rank()
    graph.update(add=frame([(3, 2, 1)]))
    ranking = graph.rank(dtype=dtype, scale=scale)
    assert ranking.ranks.dtype == dtype
    assert ranking.ranks.sum() == pytest.approx(3 if scale == "n" else 1, rel=1e-5)


def test_hundreds_of_updates_neither_drift_nor_grow():
    rng = np.random.default_rng(5)
    rows = [(int(u), int(v), 1.0) for u, v in rng.integers(0, 9, (20, 2))]
    graph = prplugin.Graph(frame(rows), weight="w", vertices=range(9))
    sizes = []
    for round_number in range(200):
        added = [
            (int(u), int(v), float(w)) for (u, v), w in zip(rng.integers(0, 9, (2, 2)), rng.random(2), strict=True)
        ]
        removed, rows = rows[:2], rows[2:] + added
        graph.update(add=frame(added), remove=frame(removed))
        if round_number % 50 == 0:
            assert_exact(graph, rows, tol=1e-12)
        else:
            assert graph.rank(tol=1e-12).error_bound <= 1e-12
        sizes.append(graph._graph._state.edges.out_edges.indices.size)
    assert max(sizes) <= sizes[0] + 20


def test_updates_are_reproducible():
    def ranks():
        rng = np.random.default_rng(6)
        edges = pd.DataFrame({"src": rng.integers(0, 2000, 9000), "dst": rng.integers(0, 2000, 9000)})
        graph = prplugin.Graph(edges)
        graph.rank()
        for round_number in range(5):
            graph.update(
                add=pd.DataFrame({"src": rng.integers(0, 2000, 3), "dst": rng.integers(0, 2000, 3)}),
                remove=edges.iloc[[round_number]],
            )
            found = graph.rank().ranks
        return found

    np.testing.assert_array_equal(ranks(), ranks())


@pytest.mark.parametrize(
    "convert",
    [
        lambda ids: [f"v{one}" for one in ids],
        lambda ids: pd.array([f"v{one}" for one in ids], dtype="string[pyarrow]"),
        lambda ids: pd.to_datetime(ids, unit="D"),
        lambda ids: pd.array(ids, dtype="Int32"),
        lambda ids: np.array(ids, np.uint64),
        lambda ids: pd.Categorical([f"v{one}" for one in ids]),
    ],
    ids=["objects", "arrow", "datetimes", "nullable", "unsigned", "categories"],
)
def test_ids_of_any_kind(convert):
    first = pd.DataFrame({"src": convert([5, 2, 9]), "dst": convert([2, 5, 5])})
    more = pd.DataFrame({"src": convert([7, 2]), "dst": convert([5, 8])})
    removed = pd.DataFrame({"src": convert([9]), "dst": convert([5])})
    graph = prplugin.Graph(first)
    graph.rank(tol=1e-8)
    graph.update(add=more, remove=removed)
    whole = pd.concat([first, more], ignore_index=True)
    assert graph.vertices.tolist() == prplugin.Graph(whole).vertices.tolist()
    expected = whole.drop(index=2).pagerank(vertices=graph.vertices, tol=1e-9).set_index("vertex")["pagerank"]
    found = graph.rank(tol=1e-8)
    assert found.frame["vertex"].tolist() == graph.vertices.tolist()
    assert np.abs(found.ranks - expected[graph.vertices.tolist()].to_numpy()).sum() < 2e-8
    with pytest.raises(prplugin.InvalidEdgesError, match="remove has 1 edge that the graph does not have"):
        graph.update(remove=removed)


@pytest.mark.parametrize(
    ("source", "destination"),
    [("int8", "uint16"), (">i8", ">i8"), ("category", "category"), ("Int64", "int64"), ("uint64", "int64")],
)
def test_changes_of_other_integer_types(source, destination):
    first = pd.DataFrame({"src": [5, 2, 9], "dst": [2, 5, 5]}, dtype="int32")
    graph = prplugin.Graph(first)
    types = {"src": source, "dst": destination}
    graph.update(add=pd.DataFrame({"src": [9, 2], "dst": [2, 9]}).astype(types), remove=first.iloc[[2]].astype(types))
    assert (graph.vertices.tolist(), graph.vertices.dtype) == ([2, 5, 9], "int32")
    assert graph.csr().offsets.tolist() == [0, 2, 3, 4]
    assert graph.csr().indices.tolist() == [1, 2, 0, 0]
    with pytest.raises(prplugin.InvalidEdgesError, match="remove has 1 edge that the graph does not have: 9 -> 5"):
        graph.update(remove=first.iloc[[2]].astype(types))


TYPES = ["int64", "int32", "uint8", "Int64", "Int16", "int64[pyarrow]", "category", pd.CategoricalDtype([1, 2, 7, 9])]


@pytest.mark.parametrize("new", TYPES, ids=[*TYPES[:-1], "categories"])
@pytest.mark.parametrize("old", TYPES, ids=[*TYPES[:-1], "categories"])
def test_new_vertices_have_the_type_of_a_graph_of_all_rows(old, new):
    """Regression test: int64 became Int64, and new categories became nulls."""
    first, more = (
        pd.DataFrame({"src": src, "dst": dst}).astype(dtype)
        for src, dst, dtype in (([2, 1, 9], [1, 2, 1], old), ([7, 2], [1, 7], new))
    )
    graph, expected = prplugin.Graph(first), prplugin.Graph(pd.concat([first, more])).vertices
    if expected.dtype == object:  # pandas has no common type of nullable and Arrow integers
        expected = expected.astype("Int64" if isinstance(old, str) and old.startswith("Int") else old)
    graph.update(add=more)
    pd.testing.assert_series_equal(graph.vertices, expected)
    graph.update(add=more, remove=more)  # finds them again
    pd.testing.assert_series_equal(graph.vertices, expected)
    assert graph.number_of_edges == 5


@pytest.mark.parametrize("old", ["category", "int64"])
@pytest.mark.parametrize("new", ["category", "int64", "Int32"])
def test_integers_in_one_of_several_columns_have_the_type_of_a_graph_of_all_rows(old, new):
    first = pd.DataFrame({"a": [2, 1], "b": ["x", "y"], "c": [1, 2], "d": ["y", "x"]}).astype({"a": old, "c": old})
    more = pd.DataFrame({"a": [7, 2], "b": ["x", "x"], "c": [9, 7], "d": ["y", "x"]}).astype({"a": new, "c": new})
    graph = prplugin.Graph(first, ["a", "b"], ["c", "d"])
    graph.update(add=more)
    pd.testing.assert_frame_equal(
        graph.vertices, prplugin.Graph(pd.concat([first, more]), ["a", "b"], ["c", "d"]).vertices
    )


def test_first_vertices_of_an_empty_graph_keep_their_type():
    for dtype in ("int16", "Int16", "category"):
        graph = prplugin.Graph(pd.DataFrame({"src": [], "dst": []}))
        graph.update(add=pd.DataFrame({"src": [5, 1], "dst": [1, 5]}, dtype=dtype))
        assert graph.vertices.dtype == pd.Series([1, 5], dtype=dtype).dtype


def test_new_vertices_that_have_a_category_in_the_graph_have_the_type_of_all_rows():
    categories = pd.CategoricalDtype(["a", "b", "c"])
    first, more = (pd.DataFrame({"src": [one], "dst": ["a"]}) for one in ("b", "c"))
    for dtype in (categories, "str"):
        graph = prplugin.Graph(first.astype(categories))
        graph.update(add=more.astype(dtype))
        expected = prplugin.Graph(pd.concat([first.astype(categories), more.astype(dtype)])).vertices
        assert sorted(graph.vertices) == ["a", "b", "c"]
        assert graph.vertices.dtype == expected.dtype


def test_lower_tolerance_without_further_update():
    rng = np.random.default_rng(9)
    edges = pd.DataFrame({"src": rng.integers(0, 2000, 9000), "dst": rng.integers(0, 2000, 9000)})
    graph = prplugin.Graph(edges)
    graph.rank()
    graph.update(remove=edges.iloc[:5])
    exact = prplugin.pagerank(edges.iloc[5:], vertices=graph.vertices, tol=1e-11)["pagerank"].to_numpy()
    for tol in (1e-6, 1e-6, 1e-8):
        ranking = graph.rank(tol=tol)
        assert ranking.method == "push"
        assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound + 1e-11
        assert ranking.error_bound <= tol


def test_vertices_of_several_columns():
    first = pd.DataFrame({"a": ["x", "y"], "b": [1, 2], "c": ["y", "x"], "d": [2, 1]})
    graph = prplugin.Graph(first, ["a", "b"], ["c", "d"])
    graph.rank()
    more = pd.DataFrame({"a": ["x", "z"], "b": [2, 1], "c": ["x", "x"], "d": [1, 1]})
    graph.update(add=more, remove=first.iloc[[1]])
    assert graph.vertices.values.tolist() == [["x", 1], ["y", 2], ["x", 2], ["z", 1]]
    expected = prplugin.pagerank(pd.concat([first.iloc[[0]], more]), ["a", "b"], ["c", "d"])
    assert np.abs(graph.rank().ranks - expected["pagerank"]).sum() < 2e-6


def test_frames_of_other_libraries():
    graph = prplugin.Graph(
        pl.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}, schema={"src": pl.Int32, "dst": pl.Int32})
    )
    graph.rank()
    graph.update(add=pa.table({"src": [1, 1 << 40], "dst": [3, 2]}), remove=pd.DataFrame({"src": [2], "dst": [1]}))
    result = graph.rank().frame
    assert isinstance(result, pl.DataFrame)
    assert result["vertex"].to_list() == [1, 2, 3, 1 << 40]
    assert graph.vertices.to_list() == [1, 2, 3, 1 << 40]


def test_update_of_graphs_not_built_from_frames():
    graph = prplugin.Graph.from_csr([0, 1, 2, 2], [1, 0], [0.5, 2.0])
    added, removed = (
        frame(rows).rename(columns={"w": "weight"}) for rows in ([(2, 0, 1.5), (4, 2, 1.0)], [(1, 0, 2.0)])
    )
    graph.update(add=added, remove=removed)
    assert_exact(graph, [(0, 1, 0.5), (2, 0, 1.5), (4, 2, 1.0)])
    assert graph.rank().frame["vertex"].tolist() == [0, 1, 2, 4]
    import networkx as nx

    graph = prplugin.Graph.from_networkx(nx.path_graph(4))
    graph.update(remove=frame([(2, 1, 1.0)]))
    assert graph.number_of_edges == 4


def test_update_of_a_matrix_of_vertices_of_several_columns():
    """Regression test: the error was Python's, about the arguments of zip."""
    vertices = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    graph = prplugin.Graph.from_csr([0, 1, 2, 2], [1, 0], vertices=vertices)
    graph.update()
    for change in ("add", "remove"):
        with pytest.raises(prplugin.InvalidEdgesError, match="vertices of 1 column, but the graph's have 2"):
            graph.update(**{change: pd.DataFrame({"src": [1], "dst": [2]})})
    assert graph.number_of_edges == 2


def test_update_of_empty_graph():
    graph = prplugin.Graph(pd.DataFrame({"src": [], "dst": []}))
    graph.update(add=pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]}))
    assert graph.rank().frame["vertex"].tolist() == ["a", "b", "c"]
    graph.update(add=None, remove=None)
    assert graph.number_of_edges == 2


def test_removal_matches_weight_of_parallel_edges():
    rows = [(1, 2, 1.0), (1, 2, 3.0), (1, 3, 1.0), (2, 1, 1.0)]
    for directed in (True, False):
        graph = prplugin.Graph(frame(rows), weight="w", directed=directed)
        graph.update(remove=frame([(1, 2, 3.0)]))
        assert_exact(graph, [rows[0], *rows[2:]], directed=directed)
        with pytest.raises(prplugin.InvalidEdgesError, match="1 -> 2 of weight 3"):
            graph.update(remove=frame([(1, 2, 3.0)]))


def test_update_of_decaying_weights():
    rng = np.random.default_rng(8)
    edges = pd.DataFrame({"src": rng.integers(0, 30, 200), "dst": rng.integers(0, 30, 200), "w": rng.random(200)})
    edges["at"] = np.sort(rng.integers(0, 5000, 200))
    graph = prplugin.Graph(edges.iloc[:100], weight="w", time="at", half_life=7)
    graph.rank(tol=1e-8)
    kept = edges.iloc[:100]
    for first in range(100, 200, 10):
        added, removed = edges.iloc[first : first + 10], kept.iloc[[0, 3]]
        graph.update(add=added, remove=removed)
        kept = pd.concat([kept.drop(removed.index), added])
        expected = prplugin.pagerank(kept, weight="w", time="at", half_life=7, vertices=graph.vertices, tol=1e-9)
        found = graph.rank(tol=1e-8)
        assert np.abs(found.ranks - expected["pagerank"]).sum() <= 1e-8 + 1e-9
        age = kept["at"].max() - kept["at"]
        np.testing.assert_allclose(
            np.sort(graph.csr().weights), np.sort(kept["w"] * 2.0 ** (-age / 7)), rtol=1e-12, atol=0
        )
        np.testing.assert_allclose(np.sort(graph.csc().weights), np.sort(graph.csr().weights), rtol=1e-15)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_update_of_decaying_weights_by_times_of_another_unit(unit):
    """Regression test: differences to times of another unit overflowed."""
    days = pd.to_datetime(["2020-01-01", "2019-06-01", "1990-01-01", "2018-01-01"]).as_unit("ns")
    edges = pd.DataFrame({"src": [1, 1, 2, 3], "dst": [2, 3, 1, 1], "at": days})
    old = np.array(["1700-01-01", "1969-12-31", "2100-01-01"], f"datetime64[{unit}]")
    added = pd.DataFrame({"src": [2, 3, 1], "dst": [3, 2, 1], "at": old})
    graph = prplugin.Graph(edges, time="at", half_life="3650D")
    graph.update(add=added, remove=edges.iloc[[1]].assign(at=lambda frame: frame["at"].astype(f"datetime64[{unit}]")))
    whole = pd.concat([edges.drop(1).astype({"at": "datetime64[us]"}), added.astype({"at": "datetime64[us]"})])
    expected = prplugin.Graph(whole, time="at", half_life="3650D")
    np.testing.assert_array_equal(graph.csr().indices, expected.csr().indices)
    np.testing.assert_allclose(graph.csr().weights, expected.csr().weights, rtol=1e-12)
    assert np.abs(graph.rank().ranks - expected.rank().ranks).sum() <= 2e-6
    graph.update(remove=added)
    np.testing.assert_array_equal(graph.csr().indices, [1, 0, 0])


def test_update_with_times_beyond_the_range_of_weights_changes_nothing():
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 1], "at": [0, 1]})
    graph = prplugin.Graph(edges, time="at", half_life=1)
    for at in (1 << 50, -(1 << 50), 1e308):
        with pytest.raises(prplugin.InvalidEdgesError, match=r"1 time more than .* half-lives .* in row 0"):
            graph.update(add=pd.DataFrame({"src": [1], "dst": [1], "at": [at]}))
    assert graph.csr().weights.tolist() == [0.5, 1.0]


def test_removal_that_leaves_only_outdated_edges_raises():
    edges = pd.DataFrame({"src": [1, 1, 2], "dst": [2, 3, 1], "at": [0, 5000, 0]})
    graph = prplugin.Graph(edges, time="at", half_life=1)
    before = graph.rank().ranks
    with pytest.raises(prplugin.InvalidEdgesError, match=r"remove leaves 1 vertex \(1\) with edges .* older"):
        graph.update(remove=edges.iloc[[1]])
    np.testing.assert_allclose(graph.rank().ranks, before, atol=1e-6)
    graph.update(remove=edges.iloc[[0]])
    assert graph.number_of_edges == 2


# --- atomicity ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"remove": frame([(1, 2, 1), (7, 2, 1)])}, r"remove has 1 edge that the graph does not have: 7 -> 2"),
        ({"remove": frame([(1, 2, 1), (1, 2, 1)])}, "remove has 1 edge that the graph does not have: 1 -> 2"),
        ({"remove": frame([(1, 2, 2)])}, "1 -> 2 of weight 2"),
        ({"add": frame([(5, 6, 1), (6, 7, -1)])}, "column 'w' has 1 value below 0"),
        ({"add": frame([(5, 6, 1)]), "remove": frame([(5, 6, 1)])}, "5 -> 6"),
        ({"add": pd.DataFrame({"src": ["a"], "dst": ["b"], "w": [1.0]})}, "add names vertices by ids of kind string, but the graph's are of kind integer"),
        ({"add": frame([(1, 2, 1e308), (1, 2, 1e308)])}, r"edges that leave 1 vertex \(1\) sum to more than float64 holds"),
        ({"add": pd.DataFrame({"src": [1], "dst": [2]})}, "no column 'w'"),
        ({"add": 3}, "edges must be a DataFrame"),
    ],
)  # fmt: skip
def test_failed_update_changes_nothing(change, message):
    graph = prplugin.Graph(frame([(1, 2, 1), (2, 3, 1), (3, 1, 1)]), weight="w")
    graph.rank()
    with pytest.raises(prplugin.PageRankError, match=message):
        graph.update(**change)
    assert_exact(graph, [(1, 2, 1), (2, 3, 1), (3, 1, 1)])
    assert graph.vertices.tolist() == [1, 2, 3]


def test_duplicates_error_applies_to_updates():
    graph = prplugin.Graph(frame([(1, 2, 1), (2, 1, 1)]), duplicates="error")
    with pytest.raises(prplugin.InvalidEdgesError, match="add has 1 edge that the graph has already: 2 -> 1"):
        graph.update(add=frame([(2, 3, 1), (2, 1, 1)]))
    with pytest.raises(prplugin.InvalidEdgesError, match="repeats a pair"):
        graph.update(add=frame([(2, 3, 1), (2, 3, 1)]))
    graph.update(add=frame([(2, 1, 1)]), remove=frame([(2, 1, 1)]))
    assert graph.number_of_edges == 2


def interrupt_update(graph, line, **change) -> bool:
    """Update a graph, raise KeyboardInterrupt at the given line executed, and return whether it was reached."""
    lines = 0

    def interrupt(code, event, argument):
        nonlocal lines
        within = Path(code.f_code.co_filename).parent == STREAMS
        # Unlike a signal, a trace function can raise before `with` releases a lock.
        if not within or code.f_code.co_name == "updating":
            return None
        if event == "line":
            lines += 1
            if lines == line:
                raise KeyboardInterrupt
        return interrupt

    sys.settrace(interrupt)
    try:
        graph.update(**change)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("line", range(3, 120, 9))
def test_interrupted_update_is_atomic(line):
    graph = prplugin.Graph(frame([(1, 2, 1), (2, 3, 1), (3, 1, 1)]), weight="w")
    graph.rank()
    graph.update(add=frame([(3, 2, 1)]))
    graph.rank()
    before, after = [(1, 2, 1), (2, 3, 1), (3, 1, 1), (3, 2, 1)], [(2, 3, 1), (3, 1, 1), (3, 2, 1), (2, 9, 1)]
    interrupt_update(graph, line, add=frame([(2, 9, 1)]), remove=frame([(1, 2, 1)]))
    assert_exact(graph, before if len(graph.vertices) == 3 else after)


OLD = pd.DataFrame({"src": [1, 1, 2, 3], "dst": [2, 3, 1, 1], "at": [0, 1, 0, 0]})
NEW = pd.DataFrame({"src": [1], "dst": [2], "at": [600]})
"""An edge so much newer than those of `OLD` that the exponent of its source is raised."""


def weights_and_ranks(graph):
    """Return the weights relative to the largest, and the ranks."""
    ranks, weights = graph.rank(tol=1e-9, method="numpy").ranks, np.sort(graph.csr().weights)
    np.testing.assert_array_equal(np.sort(graph.csc().weights), weights)
    return np.append(weights / weights[-1], ranks)


def test_interrupted_rescaling_of_decaying_weights_is_atomic():
    complete = prplugin.Graph(OLD, time="at", half_life=1)
    complete.update(add=NEW)
    for line in range(1, 1000):
        graph = prplugin.Graph(OLD, time="at", half_life=1)
        graph.update(add=OLD.iloc[:0])
        before = weights_and_ranks(graph)
        if not interrupt_update(graph, line, add=NEW):
            break
        found = weights_and_ranks(graph)
        expected = before if graph.number_of_edges == 4 else weights_and_ranks(complete)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found[:-3], expected[:-3], rtol=1e-12)  # the weights
    assert line > 60


def test_failed_update_keeps_exponents():
    graph = prplugin.Graph(OLD, time="at", half_life=1)
    graph.update(add=OLD.iloc[:0])
    before = weights_and_ranks(graph)
    with pytest.raises(prplugin.InvalidEdgesError, match="remove has 1 edge that the graph does not have: 2 -> 3"):
        graph.update(add=NEW, remove=pd.DataFrame({"src": [2], "dst": [3]}))
    np.testing.assert_allclose(weights_and_ranks(graph), before, rtol=1e-8)


@pytest.mark.parametrize("directed", [True, False])
def test_raised_exponents_change_no_other_edge(directed):
    edges = pd.concat([OLD, pd.DataFrame({"src": [4], "dst": [2], "at": [590]})])
    graph = prplugin.Graph(edges, time="at", half_life=1, directed=directed)
    graph.update(add=NEW, remove=OLD.iloc[[2]])
    whole = pd.concat([edges.iloc[[0, 1, 3, 4]], NEW])
    expected = prplugin.Graph(whole, time="at", half_life=1, directed=directed)
    np.testing.assert_allclose(weights_and_ranks(graph), weights_and_ranks(expected), rtol=1e-8)


@pytest.mark.parametrize("newer", [501, 510])
def test_residual_is_computed_anew_after_a_raised_exponent(newer):
    """By chance the out-weights before and after are nearly equal, though in units of different exponents."""
    graph = prplugin.Graph(OLD, time="at", half_life=1)
    graph.rank(tol=1e-9)
    graph.update(add=OLD.iloc[:1])
    graph.rank(tol=1e-9)
    added = pd.DataFrame({"src": [1, 1], "dst": [2, 1], "at": [newer, newer]})
    graph.update(add=added)
    expected = pd.concat([OLD, OLD.iloc[:1], added]).pagerank(time="at", half_life=1, tol=1e-10)
    found = graph.rank(tol=1e-9)
    assert found.method == "push"
    assert np.abs(found.ranks - expected["pagerank"]).sum() <= found.error_bound + 1e-10


@pytest.mark.parametrize("at", [-3000, 3000])
def test_first_edges_of_a_vertex_set_its_reference(at):
    """They are as far from all others as the range of float64, and their own weights as 1 to 2."""
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 3], "at": [0, 0]})
    graph = prplugin.Graph(edges, time="at", half_life=1)
    added = pd.DataFrame({"src": [3, 3, 4], "dst": [1, 2, 3], "at": [at, at + 1, at]})
    graph.update(add=added)
    whole = pd.concat([edges, added])
    assert (
        np.abs(graph.rank(tol=1e-8).ranks - whole.pagerank(time="at", half_life=1, tol=1e-8)["pagerank"]).sum() < 2e-8
    )
    graph.update(remove=added.iloc[:2])
    graph.update(add=added.iloc[:2].assign(at=-at))  # of a vertex that had edges
    whole = pd.concat([edges, added.iloc[2:], added.iloc[:2].assign(at=-at)])
    assert (
        np.abs(graph.rank(tol=1e-8).ranks - whole.pagerank(time="at", half_life=1, tol=1e-8)["pagerank"]).sum() < 2e-8
    )


@pytest.mark.parametrize("far", [1 << 20, 1 << 30])
def test_bounds_cover_the_roundings_of_times_far_from_the_origin(far):
    """Regression test: those of added edges were not counted. 2**t loses digits in proportion to t."""
    edges = pd.DataFrame({"src": [1, 1, 2], "dst": [2, 3, 1], "at": [far, far - 1, 0]})
    late = pd.DataFrame({"src": [3], "dst": [1], "at": [0]})
    for change in (None, late):
        graph = prplugin.Graph(edges if change is None else edges[:2], time="at", half_life=3)
        if change is not None:
            graph.update(add=change)  # farther from the origin than the others
        ranking = graph.rank(tol=1e-4, method="numpy")
        assert ranking.error_bound >= 2.8 * far / 3 * 2.0**-53


def test_decayed_weights_round_no_more_than_they_say():
    random = np.random.default_rng(0)
    for far in (1, 1000, 1 << 20, 1 << 30):
        at = random.integers(far // 2, far, 200)
        times = at / 3
        weights = ScaledWeights.of(None, times)
        # Multiplied by 2**-floor(t), so that the rest is in [1, 2); without rounding to 60 digits.
        rest = [Fraction(int(each), 3) - int(exponent) for each, exponent in zip(at, weights.exponents, strict=True)]
        with localcontext(prec=60):
            exact = [Decimal(2) ** (Decimal(one.numerator) / Decimal(one.denominator)) for one in rest]
            errors = [
                abs(Decimal(float(found)) / one - 1) for found, one in zip(weights.significands, exact, strict=True)
            ]
        largest = float(max(errors)) * 2.0**53
        assert largest <= roundings_of(times)
        assert far < 1000 or largest > far / 40  # the term is needed


def test_edge_is_replaced_where_pair_keys_exceed_32_bits():
    ids = range(0, 100_000, 2)
    edges = pd.DataFrame({"src": [90_000, 0], "dst": [90_002, 2]})
    graph = prplugin.Graph(edges, vertices=ids, duplicates="error")
    more = pd.DataFrame({"src": [90_000, 1], "dst": [90_002, 0]})
    graph.update(add=more, remove=edges.iloc[[0]])
    assert graph.number_of_edges == 3


def test_update_of_windowed_graph_raises():
    graph = prplugin.Graph(pd.DataFrame({"src": [1], "dst": [2], "at": [3]}), time="at", window=4)
    with pytest.raises(prplugin.MethodUnavailableError, match="window="):
        graph.update(add=pd.DataFrame({"src": [1], "dst": [2], "at": [9]}))


def test_update_needs_compiled_kernels(hide_kernels):
    graph = prplugin.Graph(frame([(0, 1, 1.0)]))
    hide_kernels("there is no compiler")
    with pytest.raises(
        prplugin.MethodUnavailableError,
        match="update needs the compiled CPU kernels: there is no compiler",
    ):
        graph.update(add=frame([(1, 0, 1.0)]))
    assert graph.number_of_edges == 1


def test_a_frame_both_added_and_removed_needs_weights_to_be_added():
    graph = prplugin.Graph(frame([(1, 2, 1), (2, 1, 1)]), weight="w")
    rows = frame([(1, 2, 1)])[["src", "dst"]]
    with pytest.raises(prplugin.ColumnNotFoundError, match="w"):
        graph.update(add=rows, remove=rows)
    assert graph.number_of_edges == 2
