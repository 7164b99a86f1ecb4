"""Each line of docs/semantics.md: what NetworkX, cuGraph and prplugin do with the same graph.

The cuGraph sides carry the same name and `_cugraph`; they state what cuGraph 26.10 does, and need it and a GPU.
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
"""0 points at 1 and 2, which point back."""

SINK = pd.DataFrame({"src": [0, 1], "dst": [1, 2]})
"""0 -> 1 -> 2, which dangles."""

EXACT = 1e-13
"""The tolerance of prplugin's side, and what two computations in float64 may differ by on graphs of a few vertices."""


def ours(frame: pd.DataFrame, **options: Any) -> dict[Any, float]:
    ranks = frame.pagerank(**{"tol": EXACT, **options})
    return dict(zip(ranks["vertex"], ranks["pagerank"], strict=True))


def digraph(frame: pd.DataFrame, kind: Any = nx.DiGraph) -> Any:
    weight = "weight" if "weight" in frame else None
    return nx.from_pandas_edgelist(frame, "src", "dst", edge_attr=weight, create_using=kind)


def theirs(graph: Any, **options: Any) -> dict[Any, float]:
    return nx.pagerank(graph, **{"tol": EXACT / len(graph), "max_iter": 1_000, **options})


def same(a: dict[Any, float], b: dict[Any, float], within: float = 1e-12) -> bool:
    """Whether the L1 distance is small. Both sides stop at 1e-13, and alpha = 0.85 turns that into 6e-13 at most."""
    return a.keys() == b.keys() and sum(abs(a[vertex] - b[vertex]) for vertex in a) <= within


def on_gpu(test: Any) -> Any:
    """Mark a test of cuGraph, whose warnings are its own affair."""
    return pytest.mark.gpu(pytest.mark.filterwarnings("ignore")(test))


def cugraph_modules() -> tuple[Any, Any]:
    reason = "cuGraph is not here: its side of docs/semantics.md needs a GPU with RAPIDS"
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
"""What float32 and an L1 change of 1e-6 at alpha = 0.85 may make on graphs of a few vertices."""


# --- the graph ----------------------------------------------------------------------------------------------------

REPEATED = pd.DataFrame({"src": [0, 0, 0, 1, 2], "dst": [1, 1, 2, 0, 0], "weight": [1.0, 3.0, 1.0, 1.0, 1.0]})
"""0 -> 1 twice, of weights 1 and 3."""


def test_duplicates() -> None:
    summed, last = ours(REPEATED, weight="weight"), ours(REPEATED, weight="weight", duplicates="last")
    assert same(theirs(digraph(REPEATED, nx.MultiDiGraph)), summed)
    assert same(theirs(digraph(REPEATED)), last)
    assert not same(summed, last, within=0.01)
    with pytest.raises(prplugin.InvalidEdgesError, match="repeats a pair"):
        ours(REPEATED, duplicates="error")


@on_gpu
def test_duplicates_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(REPEATED, weight="weight"))
    kept = [ours(REPEATED, weight="weight", duplicates=which) for which in ("first", "last")]
    assert any(same(ranks, one, SINGLE) for one in kept)
    summed = ours(REPEATED, weight="weight")
    assert not same(ranks, summed, 0.01)
    assert same(cugraph_ranks(cugraph_graph(REPEATED, weight="weight", multi=True)), summed, SINGLE)


def test_undirected_pair_given_both_ways() -> None:
    both = pd.DataFrame({"src": [0, 1, 1], "dst": [1, 0, 2]})
    assert same(theirs(digraph(both, nx.Graph)), ours(both, directed=False, duplicates="last"))
    assert same(theirs(digraph(both, nx.MultiGraph)), ours(both, directed=False))
    assert not same(ours(both, directed=False), ours(both, directed=False, duplicates="last"), within=0.01)


@on_gpu
def test_undirected_pair_given_both_ways_cugraph() -> None:
    both = pd.DataFrame({"src": [0, 1, 1], "dst": [1, 0, 2]})
    ranks = cugraph_ranks(cugraph_graph(both, directed=False))
    assert same(ranks, ours(both, directed=False, duplicates="last"), SINGLE)


def test_self_loop_in_undirected_graph() -> None:
    looped = pd.DataFrame({"src": [0, 0], "dst": [0, 1]})
    once = ours(pd.DataFrame({"src": [0, 0, 1], "dst": [0, 1, 0]}))
    assert same(ours(looped, directed=False), once)
    assert same(theirs(digraph(looped, nx.Graph)), once)


@on_gpu
def test_self_loop_in_undirected_graph_cugraph() -> None:
    looped = pd.DataFrame({"src": [0, 0], "dst": [0, 1]})
    assert same(cugraph_ranks(cugraph_graph(looped, directed=False)), ours(looped, directed=False), SINGLE)


def test_nulls() -> None:
    holes = pd.DataFrame({"src": pd.array([0, None, 2], "Int64"), "dst": [1, 2, 0]})
    with pytest.raises(prplugin.InvalidEdgesError, match=r"column 'src' has 1 null, in row 1"):
        ours(holes)
    as_pandas_would_read_it = digraph(pd.DataFrame({"src": [0, math.nan, math.nan], "dst": [1, 2, 0]}))
    assert len(as_pandas_would_read_it) == 5
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
    unweighted = ours(REPEATED, duplicates="last")
    assert same(theirs(graph), ours(REPEATED, weight="weight", duplicates="last"))
    assert same(theirs(graph, weight=None), unweighted)
    assert not same(theirs(graph), unweighted, within=0.01)


@on_gpu
def test_weights_by_default_cugraph() -> None:
    assert same(cugraph_ranks(cugraph_graph(REPEATED)), ours(REPEATED, duplicates="last"), SINGLE)


@pytest.mark.parametrize(("weight", "what"), [(-0.25, "below 0"), (math.nan, "missing or NaN"), (math.inf, "infinite")])
def test_negative_and_nan_weights(weight: float, what: str) -> None:
    with pytest.raises(prplugin.InvalidEdgesError, match=what):
        ours(LOOP.assign(weight=[1.0, weight, 1.0, 1.0]), weight="weight")


def test_negative_and_nan_weights_networkx() -> None:
    negative = theirs(digraph(LOOP.assign(weight=[1.0, -0.25, 1.0, 1.0])))
    assert negative[2] < 0
    assert sum(negative.values()) == pytest.approx(1)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        theirs(digraph(LOOP.assign(weight=[1.0, math.nan, 1.0, 1.0])))
    infinite = theirs(digraph(LOOP.assign(weight=[1.0, math.inf, 1.0, 1.0])))
    without_edges = ours(pd.DataFrame({"src": [1, 2], "dst": [0, 0]}))
    assert same(infinite, without_edges) or sum(infinite.values()) < 0.5  # NetworkX 3.6; 3.7


@on_gpu
@pytest.mark.parametrize("weight", [-0.25, math.nan])
def test_negative_and_nan_weights_cugraph(weight: float) -> None:
    graph = cugraph_graph(LOOP.assign(weight=[1.0, weight, 1.0, 1.0]), weight="weight")
    ranks, _ = cugraph_call(graph, fail_on_nonconvergence=False)
    assert len(ranks) == 3


ZEROS = LOOP.assign(weight=[0.0, 0.0, 1.0, 2.0])
"""All that leaves 0 weighs 0."""


def test_zero_weights() -> None:
    dangles = ours(pd.DataFrame({"src": [1, 2], "dst": [0, 0]}))
    assert same(ours(ZEROS, weight="weight"), dangles)
    assert same(theirs(digraph(ZEROS)), dangles)


@on_gpu
def test_zero_weights_cugraph() -> None:
    assert same(cugraph_ranks(cugraph_graph(ZEROS, weight="weight")), ours(ZEROS, weight="weight"), SINGLE)


DENORMAL = LOOP.assign(weight=[1e-310, 3e-310, 1.0, 1.0])


def test_denormal_weights() -> None:
    assert same(ours(DENORMAL, weight="weight"), ours(LOOP.assign(weight=[1.0, 3.0, 1.0, 1.0]), weight="weight"))
    with np.errstate(all="ignore"), pytest.raises(nx.PowerIterationFailedConvergence):
        theirs(digraph(DENORMAL))


@on_gpu
def test_denormal_weights_cugraph() -> None:
    ranks, _ = cugraph_call(cugraph_graph(DENORMAL, weight="weight"), fail_on_nonconvergence=False)
    assert not same(as_dict(ranks), ours(DENORMAL, weight="weight"), 0.01)


# --- vectors ------------------------------------------------------------------------------------------------------


def cugraph_vector(values: dict[int, float], dtype: str = "float32") -> Any:
    cudf, _ = cugraph_modules()
    vertices = cudf.Series(list(values), dtype="int64")
    return cudf.DataFrame({"vertex": vertices, "values": cudf.Series(list(values.values()), dtype=dtype)})


def test_dangling() -> None:
    elsewhere = ours(SINK, dangling={0: 2, 1: 1})
    assert same(theirs(digraph(SINK), dangling={0: 2, 1: 1}), elsewhere)
    assert not same(ours(SINK), elsewhere, within=0.01)


@on_gpu
def test_dangling_cugraph() -> None:
    assert same(cugraph_ranks(cugraph_graph(SINK), dangling={0: 2, 1: 1}), ours(SINK), SINGLE)


def test_dangling_of_a_personalised_graph() -> None:
    ranks = ours(SINK, personalization={0: 1})
    assert same(theirs(digraph(SINK), personalization={0: 1}), ranks)
    assert same(ours(SINK, personalization={0: 1}, dangling={0: 1}), ranks)


@on_gpu
def test_dangling_of_a_personalised_graph_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(SINK), personalization=cugraph_vector({0: 1}))
    assert same(ranks, ours(SINK, personalization={0: 1}), SINGLE)


def test_unknown_vertex_in_personalization() -> None:
    with pytest.raises(prplugin.InvalidOptionError, match="1 vertex not in the graph: 9"):
        ours(SINK, personalization={0: 1, 9: 3})
    assert same(theirs(digraph(SINK), personalization={0: 1, 9: 3}), ours(SINK, personalization={0: 1}))
    with pytest.raises(ZeroDivisionError):
        theirs(digraph(SINK), personalization={9: 3})


@on_gpu
def test_unknown_vertex_in_personalization_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(SINK), personalization=cugraph_vector({0: 1, 9: 3}))
    assert sum(ranks.values()) < 0.9


def test_vertices_left_out_of_personalization() -> None:
    ranks = ours(LOOP, personalization={0: 1, 1: 2})
    assert same(ours(LOOP, personalization={0: 1, 1: 2, 2: 0}), ranks)
    assert same(theirs(digraph(LOOP), personalization={0: 1, 1: 2}), ranks)


@on_gpu
def test_vertices_left_out_of_personalization_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(LOOP), personalization=cugraph_vector({0: 1, 1: 2}))
    assert same(ranks, ours(LOOP, personalization={0: 1, 1: 2}), SINGLE)


def test_nstart_by_default() -> None:
    """A tolerance that anything meets shows the first iterate: personalised or not, from uniform ranks."""
    for personalization in (None, {0: 1}):
        first = ours(SINK, personalization=personalization, tol=0, max_iter=1)
        uniform = ours(SINK, personalization=personalization, nstart=dict.fromkeys(range(3), 1), tol=0, max_iter=1)
        assert same(first, uniform, within=1e-15)
        assert same(theirs(digraph(SINK), personalization=personalization, tol=math.inf), first, within=1e-15)


@on_gpu
def test_nstart_by_default_cugraph() -> None:
    vector = cugraph_vector({0: 1})
    first, _ = cugraph_call(cugraph_graph(SINK), personalization=vector, max_iter=1, fail_on_nonconvergence=False)
    assert same(as_dict(first), ours(SINK, personalization={0: 1}, tol=0, max_iter=1), 1e-6)


# --- when it stops ------------------------------------------------------------------------------------------------


def slow_path() -> pd.DataFrame:
    """300 vertices in a row with edges both ways: rank spreads slowly, and alpha = 0.99 hardly hurries it."""
    here = np.arange(299)
    return pd.DataFrame({"src": np.append(here, here + 1), "dst": np.append(here + 1, here), "weight": 1.0})


SLOW: dict[str, Any] = {"alpha": 0.99, "personalization": {0: 1}}


def test_tolerance() -> None:
    path = slow_path()
    exact = ours(path, tol=1e-11, **SLOW)
    assert same(ours(path, tol=1e-6, **SLOW), exact, within=1e-6 + 1e-11)
    assert not same(nx.pagerank(digraph(path), tol=1e-6, max_iter=1_000, **SLOW), exact, within=1e-3)
    assert not same(ours(path, tol=1e-6, stop="delta", **SLOW), exact, within=1e-5)


@on_gpu
def test_tolerance_cugraph() -> None:
    path = slow_path()
    vector = cugraph_vector({0: 1}, "float64")
    ranks = cugraph_ranks(cugraph_graph(path, weight="weight"), alpha=0.99, personalization=vector, max_iter=5_000)
    assert not same(ranks, ours(path, tol=1e-11, **SLOW), 1e-5)


def test_stop_as_networkx() -> None:
    path = slow_path()
    for tol in (1e-5, 1e-7, 1e-9):
        ranks = nx.pagerank(digraph(path), tol=tol, max_iter=5_000, **SLOW)
        assert same(ours(path, tol=tol, stop="networkx", **SLOW), ranks, within=1e-12)


@on_gpu
def test_stop_as_cugraph_cugraph() -> None:
    path, vector = slow_path(), cugraph_vector({0: 1}, "float64")
    graph = cugraph_graph(path, weight="weight")
    for tol in (1e-5, 1e-7, 1e-9):
        ranks = cugraph_ranks(graph, alpha=0.99, personalization=vector, tol=tol, max_iter=5_000)
        assert same(ranks, ours(path, tol=tol, stop="delta", **SLOW), 1e-12)


def test_not_converged() -> None:
    with pytest.raises(prplugin.NotConvergedError) as caught:
        ours(SINK, max_iter=2)
    ranking = caught.value.ranking
    reached = dict(zip(ranking.frame["vertex"], ranking.frame["pagerank"], strict=True))
    assert not ranking.converged
    assert ranking.iterations == 2
    assert same(reached, ours(SINK), within=ranking.error_bound)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        theirs(digraph(SINK), max_iter=2)


@on_gpu
def test_not_converged_cugraph() -> None:
    _, cugraph = cugraph_modules()
    graph = cugraph_graph(SINK)
    with pytest.raises(cugraph.exceptions.FailedToConvergeError):
        cugraph_call(graph, tol=1e-6, max_iter=2)
    ranks, converged = cugraph_call(graph, tol=1e-6, max_iter=2, fail_on_nonconvergence=False)
    assert not converged
    assert same(as_dict(ranks), ours(SINK, tol=0, max_iter=2), 1e-6)


def test_tol_0() -> None:
    with pytest.raises(prplugin.InvalidOptionError, match="give max_iter=k"):
        ours(SINK, tol=0)
    assert ours(SINK, tol=0, max_iter=0) == pytest.approx(dict.fromkeys(range(3), 1 / 3))
    second = theirs(digraph(SINK), nstart=theirs(digraph(SINK), tol=math.inf), tol=math.inf)
    assert same(ours(SINK, tol=0, max_iter=2), second, within=1e-15)
    for options in ({"tol": 0}, {"max_iter": 0}):
        with pytest.raises(nx.PowerIterationFailedConvergence):
            theirs(digraph(SINK), **options)


@on_gpu
@pytest.mark.parametrize("options", [{"tol": 0.0}, {"max_iter": 0}], ids=["tol", "max_iter"])
def test_tol_0_cugraph(options: dict[str, Any]) -> None:
    _, cugraph = cugraph_modules()
    with pytest.raises(cugraph.exceptions.FailedToConvergeError):
        cugraph_call(cugraph_graph(SINK), **options)


def test_alpha_1() -> None:
    with pytest.raises(prplugin.InvalidOptionError, match="less than 1"):
        ours(SINK, alpha=1)
    assert sum(theirs(digraph(SINK), alpha=1).values()) == pytest.approx(1)
    assert nx.pagerank(nx.DiGraph([(0, 1)]), alpha=1.5)


@on_gpu
def test_alpha_1_cugraph() -> None:
    assert sum(cugraph_ranks(cugraph_graph(SINK), alpha=1.0).values()) == pytest.approx(1, abs=1e-5)


# --- the result ---------------------------------------------------------------------------------------------------

STAR = pd.DataFrame({"src": [5, 9, 1, 7], "dst": [8, 8, 8, 8]})


def test_order_of_the_result() -> None:
    assert list(ours(STAR)) == [1, 5, 7, 8, 9]
    assert list(ours(STAR.astype(str))) == ["5", "8", "9", "1", "7"]
    assert list(theirs(digraph(STAR))) == [5, 8, 9, 1, 7]


@on_gpu
def test_order_of_the_result_cugraph() -> None:
    ranks = cugraph_ranks(cugraph_graph(STAR))
    assert sorted(ranks) == [1, 5, 7, 8, 9]
    assert list(ranks) != sorted(ranks)


def test_type_of_the_result() -> None:
    assert str(LOOP.pagerank()["pagerank"].dtype) == "float64"
    assert str(LOOP.pagerank(dtype="float32")["pagerank"].dtype) == "float32"
    assert {type(rank) for rank in theirs(digraph(LOOP)).values()} == {float}


@on_gpu
def test_type_of_the_result_cugraph() -> None:
    weighted = LOOP.assign(weight=1.0)
    assert str(cugraph_call(cugraph_graph(LOOP))["pagerank"].dtype) == "float32"
    assert str(cugraph_call(cugraph_graph(weighted, weight="weight"))["pagerank"].dtype) == "float64"


def test_iterations_and_error() -> None:
    ranking = prplugin.Graph(SINK).rank(tol=1e-8)
    assert ranking.iterations > 1
    assert 0 < ranking.error_bound <= 1e-8
    assert set(theirs(digraph(SINK))) == {0, 1, 2}


@on_gpu
def test_iterations_and_error_cugraph() -> None:
    assert set(cugraph_call(cugraph_graph(SINK)).columns) == {"vertex", "pagerank"}


# --- the page -----------------------------------------------------------------------------------------------------


def test_every_line_of_the_page_has_its_tests_and_every_test_its_line() -> None:
    page = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| ---")][1:]
    assert len(rows) >= 15
    for row in rows:
        assert re.search(r"`test_\w+`", row), row
    named = set(re.findall(r"`(test_\w+)`", page))
    there = {name for name in globals() if name.startswith("test_")}
    assert named == there - {"test_every_line_of_the_page_has_its_tests_and_every_test_its_line"}
