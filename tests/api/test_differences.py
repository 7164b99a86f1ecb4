"""Each line of docs/semantics.md: the results of NetworkX, cuGraph and prplugin for the same graph.

Tests of cuGraph have the suffix `_cugraph`. They state the behaviour of cuGraph 26.10, and need cuGraph and a GPU.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import prplugin

LOOP = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 0, 0]})
"""Edges 0 -> 1 and 0 -> 2, and back."""

SINK = pd.DataFrame({"src": [0, 1], "dst": [1, 2]})
"""0 -> 1 -> 2, where 2 is dangling."""

EXACT = 1e-13
"""Tolerance of float64 rankings of graphs of a few vertices."""


def prplugin_ranks(frame: pd.DataFrame, **options: Any) -> dict[Any, float]:
    ranks = frame.pagerank(**{"tol": EXACT, **options})
    return dict(zip(ranks["vertex"], ranks["pagerank"], strict=True))


def digraph(frame: pd.DataFrame, kind: Any = nx.DiGraph) -> Any:
    weight = "weight" if "weight" in frame else None
    return nx.from_pandas_edgelist(frame, "src", "dst", edge_attr=weight, create_using=kind)


def networkx_ranks(graph: Any, **options: Any) -> dict[Any, float]:
    return nx.pagerank(graph, **{"tol": EXACT / len(graph), "max_iter": 1_000, **options})


def same(a: dict[Any, float], b: dict[Any, float], within: float = 1e-12) -> bool:
    """Return whether two rankings have the same vertices and an L1 distance of at most `within`.

    With the tolerance `EXACT`, prplugin's error is at most 1e-13. NetworkX stops when a step changes less than 1e-13;
    its error is at most alpha / (1 - alpha) times that, 6e-13 for alpha = 0.85.
    """
    return a.keys() == b.keys() and sum(abs(a[vertex] - b[vertex]) for vertex in a) <= within


def on_gpu(test: Any) -> Any:
    """Mark a test of cuGraph, and ignore the warnings of cuGraph."""
    return pytest.mark.gpu(pytest.mark.filterwarnings("ignore")(test))


def cugraph_modules() -> tuple[Any, Any]:
    reason = "cuGraph is not installed: tests of docs/semantics.md that use it need a GPU with RAPIDS"
    return pytest.importorskip("cudf", reason=reason), pytest.importorskip("cugraph", reason=reason)


def cugraph_graph(frame: pd.DataFrame, *, weight: str | None = None, directed: bool = True, multi: bool = False) -> Any:
    cudf, cugraph = cugraph_modules()
    graph = (cugraph.MultiGraph if multi else cugraph.Graph)(directed=directed)
    edges = cudf.DataFrame({name: cudf.Series(frame[name]) for name in frame})
    graph.from_cudf_edgelist(edges, source="src", destination="dst", weight=weight, store_transposed=True)
    return graph


def cugraph_call(graph: Any, **options: Any) -> Any:
    _, cugraph = cugraph_modules()
    return cugraph.pagerank(graph, **options)


def cugraph_ranks(graph: Any, **options: Any) -> dict[Any, float]:
    return as_dict(cugraph_call(graph, **{"tol": 1e-6, "max_iter": 1_000, **options}))


def as_dict(frame: Any) -> dict[Any, float]:
    ranks = frame.to_pandas()
    return dict(zip(ranks["vertex"].tolist(), ranks["pagerank"].tolist(), strict=True))


SINGLE = 1e-5
"""Tolerance for cuGraph's ranks of a few vertices: float32, stopped at an L1 change of 1e-6 with alpha = 0.85."""


# --- the graph ----------------------------------------------------------------------------------------------------

REPEATED = pd.DataFrame({"src": [0, 0, 0, 1, 2], "dst": [1, 1, 2, 0, 0], "weight": [1.0, 3.0, 1.0, 1.0, 1.0]})
"""0 -> 1 twice, with weights 1 and 3."""


def test_duplicates() -> None:
    summed, last = (
        prplugin_ranks(REPEATED, weight="weight"),
        prplugin_ranks(REPEATED, weight="weight", duplicates="last"),
    )
    assert same(networkx_ranks(digraph(REPEATED, nx.MultiDiGraph)), summed)
    assert same(networkx_ranks(digraph(REPEATED)), last)
    assert not same(summed, last, within=0.01)
    with pytest.raises(prplugin.InvalidEdgesError, match="repeats a pair"):
        prplugin_ranks(REPEATED, duplicates="error")


@on_gpu
def test_duplicates_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(REPEATED, weight="weight"))
    kept = [prplugin_ranks(REPEATED, weight="weight", duplicates=which) for which in ("first", "last")]
    assert any(same(ranks, one, SINGLE) for one in kept)
    summed = prplugin_ranks(REPEATED, weight="weight")
    assert not same(ranks, summed, 0.01)
    assert same(cugraph_ranks(cugraph_graph(REPEATED, weight="weight", multi=True)), summed, SINGLE)


def test_undirected_pair_given_both_ways() -> None:
    both = pd.DataFrame({"src": [0, 1, 1], "dst": [1, 0, 2]})
    assert same(networkx_ranks(digraph(both, nx.Graph)), prplugin_ranks(both, directed=False, duplicates="last"))
    assert same(networkx_ranks(digraph(both, nx.MultiGraph)), prplugin_ranks(both, directed=False))
    assert not same(
        prplugin_ranks(both, directed=False), prplugin_ranks(both, directed=False, duplicates="last"), within=0.01
    )


@on_gpu
def test_undirected_pair_given_both_ways_cugraph() -> None:
    both = pd.DataFrame({"src": [0, 1, 1], "dst": [1, 0, 2]})
    ranks = cugraph_ranks(cugraph_graph(both, directed=False))
    assert same(ranks, prplugin_ranks(both, directed=False, duplicates="last"), SINGLE)


def test_self_loop_in_undirected_graph() -> None:
    looped = pd.DataFrame({"src": [0, 0], "dst": [0, 1]})
    once = prplugin_ranks(pd.DataFrame({"src": [0, 0, 1], "dst": [0, 1, 0]}))
    assert same(prplugin_ranks(looped, directed=False), once)
    assert same(networkx_ranks(digraph(looped, nx.Graph)), once)


@on_gpu
def test_self_loop_in_undirected_graph_cugraph() -> None:
    looped = pd.DataFrame({"src": [0, 0], "dst": [0, 1]})
    assert same(cugraph_ranks(cugraph_graph(looped, directed=False)), prplugin_ranks(looped, directed=False), SINGLE)


def test_nulls() -> None:
    holes = pd.DataFrame({"src": pd.array([0, None, 2], "Int64"), "dst": [1, 2, 0]})
    with pytest.raises(prplugin.InvalidEdgesError, match=r"column 'src' has 1 null, in row 1"):
        prplugin_ranks(holes)
    nan_for_null = digraph(pd.DataFrame({"src": [0, math.nan, math.nan], "dst": [1, 2, 0]}))
    assert len(nan_for_null) == 5
    with pytest.raises(nx.NetworkXError):
        nx.DiGraph([(0, 1), (None, 2)])


@on_gpu
def test_nulls_cugraph() -> None:
    cudf, cugraph = cugraph_modules()
    holes = cudf.DataFrame({"src": cudf.Series([0, None, 2], dtype="int64"), "dst": cudf.Series([1, 2, 0])})
    graph = cugraph.Graph(directed=True)
    graph.from_cudf_edgelist(holes, source="src", destination="dst", store_transposed=True)
    assert len(cugraph_call(graph)) >= 3


# --- weights ------------------------------------------------------------------------------------------------------


def test_weights_by_default() -> None:
    graph = digraph(REPEATED)
    unweighted = prplugin_ranks(REPEATED, duplicates="last")
    assert same(networkx_ranks(graph), prplugin_ranks(REPEATED, weight="weight", duplicates="last"))
    assert same(networkx_ranks(graph, weight=None), unweighted)
    assert not same(networkx_ranks(graph), unweighted, within=0.01)


@on_gpu
def test_weights_by_default_cugraph() -> None:
    assert same(cugraph_ranks(cugraph_graph(REPEATED)), prplugin_ranks(REPEATED, duplicates="last"), SINGLE)


@pytest.mark.parametrize(
    ("weight", "message"), [(-0.25, "below 0"), (math.nan, "missing or NaN"), (math.inf, "infinite")]
)
def test_negative_and_nan_weights(weight: float, message: str) -> None:
    with pytest.raises(prplugin.InvalidEdgesError, match=message):
        prplugin_ranks(LOOP.assign(weight=[1.0, weight, 1.0, 1.0]), weight="weight")


def test_negative_and_nan_weights_networkx() -> None:
    negative = networkx_ranks(digraph(LOOP.assign(weight=[1.0, -0.25, 1.0, 1.0])))
    assert negative[2] < 0
    assert sum(negative.values()) == pytest.approx(1)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        networkx_ranks(digraph(LOOP.assign(weight=[1.0, math.nan, 1.0, 1.0])))
    infinite = networkx_ranks(digraph(LOOP.assign(weight=[1.0, math.inf, 1.0, 1.0])))
    without_edges = prplugin_ranks(pd.DataFrame({"src": [1, 2], "dst": [0, 0]}))
    assert same(infinite, without_edges) or sum(infinite.values()) < 0.5  # NetworkX 3.6; 3.7


@on_gpu
@pytest.mark.parametrize("weight", [-0.25, math.nan])
def test_negative_and_nan_weights_cugraph(weight: float) -> None:
    graph = cugraph_graph(LOOP.assign(weight=[1.0, weight, 1.0, 1.0]), weight="weight")
    ranks, _ = cugraph_call(graph, fail_on_nonconvergence=False)
    assert len(ranks) == 3


ZEROS = LOOP.assign(weight=[0.0, 0.0, 1.0, 2.0])
"""The weights of all out-edges of vertex 0 are 0."""


def test_zero_weights() -> None:
    dangling = prplugin_ranks(pd.DataFrame({"src": [1, 2], "dst": [0, 0]}))
    assert same(prplugin_ranks(ZEROS, weight="weight"), dangling)
    assert same(networkx_ranks(digraph(ZEROS)), dangling)


@on_gpu
def test_zero_weights_cugraph() -> None:
    assert same(cugraph_ranks(cugraph_graph(ZEROS, weight="weight")), prplugin_ranks(ZEROS, weight="weight"), SINGLE)


DENORMAL = LOOP.assign(weight=[1e-310, 3e-310, 1.0, 1.0])


def test_denormal_weights() -> None:
    assert same(
        prplugin_ranks(DENORMAL, weight="weight"),
        prplugin_ranks(LOOP.assign(weight=[1.0, 3.0, 1.0, 1.0]), weight="weight"),
    )
    with np.errstate(all="ignore"), pytest.raises(nx.PowerIterationFailedConvergence):
        networkx_ranks(digraph(DENORMAL))


@on_gpu
def test_denormal_weights_cugraph() -> None:
    ranks, _ = cugraph_call(cugraph_graph(DENORMAL, weight="weight"), fail_on_nonconvergence=False)
    assert not same(as_dict(ranks), prplugin_ranks(DENORMAL, weight="weight"), 0.01)


# --- vectors ------------------------------------------------------------------------------------------------------


def cugraph_vector(values: dict[int, float], dtype: str = "float32") -> Any:
    cudf, _ = cugraph_modules()
    vertices = cudf.Series(list(values), dtype="int64")
    return cudf.DataFrame({"vertex": vertices, "values": cudf.Series(list(values.values()), dtype=dtype)})


def test_dangling() -> None:
    elsewhere = prplugin_ranks(SINK, dangling={0: 2, 1: 1})
    assert same(networkx_ranks(digraph(SINK), dangling={0: 2, 1: 1}), elsewhere)
    assert not same(prplugin_ranks(SINK), elsewhere, within=0.01)


@on_gpu
def test_dangling_cugraph() -> None:
    assert same(cugraph_ranks(cugraph_graph(SINK), dangling={0: 2, 1: 1}), prplugin_ranks(SINK), SINGLE)


def test_dangling_of_a_personalized_graph() -> None:
    ranks = prplugin_ranks(SINK, personalization={0: 1})
    assert same(networkx_ranks(digraph(SINK), personalization={0: 1}), ranks)
    assert same(prplugin_ranks(SINK, personalization={0: 1}, dangling={0: 1}), ranks)


@on_gpu
def test_dangling_of_a_personalized_graph_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(SINK), personalization=cugraph_vector({0: 1}))
    assert same(ranks, prplugin_ranks(SINK, personalization={0: 1}), SINGLE)


def test_unknown_vertex_in_personalization() -> None:
    with pytest.raises(prplugin.InvalidOptionError, match="1 vertex not in the graph: 9"):
        prplugin_ranks(SINK, personalization={0: 1, 9: 3})
    assert same(
        networkx_ranks(digraph(SINK), personalization={0: 1, 9: 3}), prplugin_ranks(SINK, personalization={0: 1})
    )
    with pytest.raises(ZeroDivisionError):
        networkx_ranks(digraph(SINK), personalization={9: 3})


@on_gpu
def test_unknown_vertex_in_personalization_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(SINK), personalization=cugraph_vector({0: 1, 9: 3}))
    assert sum(ranks.values()) < 0.9


def test_vertices_left_out_of_personalization() -> None:
    ranks = prplugin_ranks(LOOP, personalization={0: 1, 1: 2})
    assert same(prplugin_ranks(LOOP, personalization={0: 1, 1: 2, 2: 0}), ranks)
    assert same(networkx_ranks(digraph(LOOP), personalization={0: 1, 1: 2}), ranks)


@on_gpu
def test_vertices_left_out_of_personalization_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(LOOP), personalization=cugraph_vector({0: 1, 1: 2}))
    assert same(ranks, prplugin_ranks(LOOP, personalization={0: 1, 1: 2}), SINGLE)


def test_nstart_by_default() -> None:
    """With an infinite tolerance NetworkX returns the first iterate, from uniform ranks with any personalization."""
    for personalization in (None, {0: 1}):
        first = prplugin_ranks(SINK, personalization=personalization, tol=0, max_iter=1)
        uniform = prplugin_ranks(
            SINK, personalization=personalization, nstart=dict.fromkeys(range(3), 1), tol=0, max_iter=1
        )
        assert same(first, uniform, within=1e-15)
        assert same(networkx_ranks(digraph(SINK), personalization=personalization, tol=math.inf), first, within=1e-15)


@on_gpu
def test_nstart_by_default_cugraph() -> None:
    vector = cugraph_vector({0: 1})
    first, _ = cugraph_call(cugraph_graph(SINK), personalization=vector, max_iter=1, fail_on_nonconvergence=False)
    assert same(as_dict(first), prplugin_ranks(SINK, personalization={0: 1}, tol=0, max_iter=1), 1e-6)


# --- stopping -----------------------------------------------------------------------------------------------------


def slow_path() -> pd.DataFrame:
    """Return an undirected path of 300 vertices, on which the power method converges slowly."""
    ids = np.arange(299)
    return pd.DataFrame({"src": np.append(ids, ids + 1), "dst": np.append(ids + 1, ids), "weight": 1.0})


SLOW: dict[str, Any] = {"alpha": 0.99, "personalization": {0: 1}}


def test_tolerance() -> None:
    path = slow_path()
    exact = prplugin_ranks(path, tol=1e-11, **SLOW)
    assert same(prplugin_ranks(path, tol=1e-6, **SLOW), exact, within=1e-6 + 1e-11)
    assert not same(nx.pagerank(digraph(path), tol=1e-6, max_iter=1_000, **SLOW), exact, within=1e-3)
    assert not same(prplugin_ranks(path, tol=1e-6, stop="delta", **SLOW), exact, within=1e-5)


@on_gpu
def test_tolerance_cugraph() -> None:
    path = slow_path()
    vector = cugraph_vector({0: 1}, "float64")
    ranks = cugraph_ranks(cugraph_graph(path, weight="weight"), alpha=0.99, personalization=vector, max_iter=5_000)
    assert not same(ranks, prplugin_ranks(path, tol=1e-11, **SLOW), 1e-5)


def test_stop_as_networkx() -> None:
    path = slow_path()
    for tol in (1e-5, 1e-7, 1e-9):
        ranks = nx.pagerank(digraph(path), tol=tol, max_iter=5_000, **SLOW)
        assert same(prplugin_ranks(path, tol=tol, stop="networkx", **SLOW), ranks, within=1e-12)


@on_gpu
def test_stop_as_cugraph_cugraph() -> None:
    path, vector = slow_path(), cugraph_vector({0: 1}, "float64")
    graph = cugraph_graph(path, weight="weight")
    for tol in (1e-5, 1e-7, 1e-9):
        ranks = cugraph_ranks(graph, alpha=0.99, personalization=vector, tol=tol, max_iter=5_000)
        assert same(ranks, prplugin_ranks(path, tol=tol, stop="delta", **SLOW), 1e-12)


def test_not_converged() -> None:
    with pytest.raises(prplugin.NotConvergedError) as caught:
        prplugin_ranks(SINK, max_iter=2)
    ranking = caught.value.ranking
    reached = dict(zip(ranking.frame["vertex"], ranking.frame["pagerank"], strict=True))
    assert not ranking.converged
    assert ranking.iterations == 2
    assert same(reached, prplugin_ranks(SINK), within=ranking.error_bound)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        networkx_ranks(digraph(SINK), max_iter=2)


@on_gpu
def test_not_converged_cugraph() -> None:
    _, cugraph = cugraph_modules()
    graph = cugraph_graph(SINK)
    with pytest.raises(cugraph.exceptions.FailedToConvergeError):
        cugraph_call(graph, tol=1e-6, max_iter=2)
    ranks, converged = cugraph_call(graph, tol=1e-6, max_iter=2, fail_on_nonconvergence=False)
    assert not converged
    assert same(as_dict(ranks), prplugin_ranks(SINK, tol=0, max_iter=2), 1e-6)


def test_tol_0() -> None:
    with pytest.raises(prplugin.InvalidOptionError, match="pass max_iter=k"):
        prplugin_ranks(SINK, tol=0)
    assert prplugin_ranks(SINK, tol=0, max_iter=0) == pytest.approx(dict.fromkeys(range(3), 1 / 3))
    second = networkx_ranks(digraph(SINK), nstart=networkx_ranks(digraph(SINK), tol=math.inf), tol=math.inf)
    assert same(prplugin_ranks(SINK, tol=0, max_iter=2), second, within=1e-15)
    for options in ({"tol": 0}, {"max_iter": 0}):
        with pytest.raises(nx.PowerIterationFailedConvergence):
            networkx_ranks(digraph(SINK), **options)


@on_gpu
@pytest.mark.parametrize("options", [{"tol": 0.0}, {"max_iter": 0}], ids=["tol", "max_iter"])
def test_tol_0_cugraph(options: dict[str, Any]) -> None:
    _, cugraph = cugraph_modules()
    with pytest.raises(cugraph.exceptions.FailedToConvergeError):
        cugraph_call(cugraph_graph(SINK), **options)


def test_alpha_1() -> None:
    with pytest.raises(prplugin.InvalidOptionError, match="less than 1"):
        prplugin_ranks(SINK, alpha=1)
    assert sum(networkx_ranks(digraph(SINK), alpha=1).values()) == pytest.approx(1)
    assert nx.pagerank(nx.DiGraph([(0, 1)]), alpha=1.5)


@on_gpu
def test_alpha_1_cugraph() -> None:
    assert sum(cugraph_ranks(cugraph_graph(SINK), alpha=1.0).values()) == pytest.approx(1, abs=1e-5)


# --- the result ---------------------------------------------------------------------------------------------------

STAR = pd.DataFrame({"src": [5, 9, 1, 7], "dst": [8, 8, 8, 8]})


def test_order_of_the_result() -> None:
    assert list(prplugin_ranks(STAR)) == [1, 5, 7, 8, 9]
    assert list(prplugin_ranks(STAR.astype(str))) == ["5", "8", "9", "1", "7"]
    assert list(networkx_ranks(digraph(STAR))) == [5, 8, 9, 1, 7]


@on_gpu
def test_order_of_the_result_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(STAR))
    assert sorted(ranks) == [1, 5, 7, 8, 9]
    assert list(ranks) != sorted(ranks)


def test_type_of_the_result() -> None:
    assert str(LOOP.pagerank()["pagerank"].dtype) == "float64"
    assert str(LOOP.pagerank(dtype="float32")["pagerank"].dtype) == "float32"
    assert {type(rank) for rank in networkx_ranks(digraph(LOOP)).values()} == {float}


@on_gpu
def test_type_of_the_result_cugraph() -> None:
    weighted = LOOP.assign(weight=1.0)
    assert str(cugraph_call(cugraph_graph(LOOP))["pagerank"].dtype) == "float32"
    assert str(cugraph_call(cugraph_graph(weighted, weight="weight"))["pagerank"].dtype) == "float64"


def test_iterations_and_error() -> None:
    ranking = prplugin.Graph(SINK).rank(tol=1e-8)
    assert ranking.iterations > 1
    assert 0 < ranking.error_bound <= 1e-8
    assert set(networkx_ranks(digraph(SINK))) == {0, 1, 2}


@on_gpu
def test_iterations_and_error_cugraph() -> None:
    assert set(cugraph_call(cugraph_graph(SINK)).columns) == {"vertex", "pagerank"}


# --- the page -----------------------------------------------------------------------------------------------------


def test_page_and_tests_correspond() -> None:
    page = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text(encoding="utf-8")
    page = page.partition("\n## Differences from NetworkX and cuGraph\n")[2].partition("\n## ")[0]
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| ---")][1:]
    assert len(rows) >= 15
    for row in rows:
        assert re.search(r"`test_\w+`", row), row
    named = set(re.findall(r"`(test_\w+)`", page))
    defined = {name for name in globals() if name.startswith("test_")}
    assert named == defined - {"test_page_and_tests_correspond"}
