"""Errors are part of the API: each names what is wrong, where, how often, and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bad_input import EDGE_CASES, EDGES, OPTION_CASES

import prplugin


@pytest.mark.parametrize("name", EDGE_CASES)
def test_bad_edges_are_refused(name):
    edges, arguments, message = EDGE_CASES[name]
    with pytest.raises(prplugin.InvalidEdgesError) as caught:
        edges.pagerank(**arguments)
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_overflowing_sum_of_weights_in_numpy(group_in_numpy):
    group_in_numpy()
    test_bad_edges_are_refused("overflowing sum of weights")


def test_missing_values_as_column_labels():
    named = EDGES.set_axis(pd.Index([float("nan"), "dst", pd.NA], dtype=object), axis="columns")
    expected = EDGES.pagerank(weight="w")
    pd.testing.assert_frame_equal(named.pagerank(float("nan"), "dst", weight=pd.NA), expected)
    edges = EDGES[["w", "src", "dst"]].set_axis(pd.Index([pd.NA, "src", "dst"], dtype=object), axis="columns")
    pd.testing.assert_frame_equal(edges.pagerank(), EDGES.pagerank())
    with pytest.raises(prplugin.InvalidEdgesError, match="column nan is in the frame 2 times"):
        EDGES.set_axis([float("nan"), "dst", float("nan")], axis="columns").pagerank(float("nan"), "dst")


MISSING_COLUMNS = {
    "no known pair": (
        pd.DataFrame({"a": [1], "b": [2]}),
        {},
        "src/dst, source/destination, source/target, from/to is in the frame. Its columns are 'a', 'b'. Name the two",
    ),
    "no columns": (pd.DataFrame(), {}, "It has no columns."),
    "missing source": (EDGES, {"source": "x", "destination": "dst"}, "there is no column 'x' in the frame. Its columns are 'src', 'dst', 'w'."),
    "missing weight": (EDGES, {"weight": "x"}, "there is no column 'x' in the frame"),
    "missing column of several": (EDGES, {"source": ["src", "x"], "destination": ["dst", "w"]}, "there is no column 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING_COLUMNS)
def test_missing_columns_are_refused(name):
    edges, arguments, message = MISSING_COLUMNS[name]
    with pytest.raises(prplugin.ColumnNotFoundError) as caught:
        edges.pagerank(**arguments)
    assert str(caught.value).startswith(message) or message in str(caught.value)
    assert isinstance(caught.value, KeyError)


NOT_A_FRAME = [[(1, 2)], {"src": [1], "dst": [2]}, np.zeros((2, 2)), EDGES["src"], None]


@pytest.mark.parametrize("edges", NOT_A_FRAME, ids=lambda edges: type(edges).__name__)
def test_edges_that_are_not_a_frame_are_refused(edges):
    with pytest.raises(
        prplugin.InvalidEdgesError, match=r"edges must be a DataFrame of cuDF, pandas, polars or Dask, .*, not \w+"
    ):
        prplugin.pagerank(edges)


@pytest.mark.parametrize("name", OPTION_CASES)
def test_bad_options_are_refused(name):
    arguments, message = OPTION_CASES[name]
    edges = EDGES.astype({"w": "int64"}) if isinstance(arguments.get("source"), list) else EDGES
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        edges.pagerank(**arguments)
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_source_column_named_pagerank_is_refused():
    edges = pd.DataFrame([[1, 2, 3, 4]], columns=["pagerank", "a", "b", "c"])
    with pytest.raises(prplugin.InvalidOptionError, match="a source column is named 'pagerank'"):
        prplugin.pagerank(edges, ["pagerank", "a"], ["b", "c"])


def test_unavailable_method_is_refused_with_the_reason(monkeypatch):
    from prplugin.methods.registry import methods

    monkeypatch.setattr(methods()["native"], "unavailable_reason", lambda adjacency, machine: "there is no compiler")
    with pytest.raises(prplugin.MethodUnavailableError, match="method 'native' cannot run here: there is no compiler"):
        EDGES.pagerank(method="native")
    with pytest.warns(prplugin.PageRankWarning, match="'numpy': there is no compiler"):
        assert prplugin.Graph(EDGES).rank().method == "numpy"


def test_not_converged_error_carries_the_ranking():
    with pytest.raises(
        prplugin.NotConvergedError, match="3 iterations did not reach a proved error of 1e-09"
    ) as caught:
        pd.DataFrame({"src": [1, 1, 2, 3], "dst": [2, 3, 3, 1]}).pagerank(tol=1e-9, max_iter=3)
    ranking = caught.value.ranking
    assert not ranking.converged
    assert ranking.iterations == 3
    assert 1e-9 < ranking.error_bound < 2
    assert ranking.frame["pagerank"].sum() == pytest.approx(1)


def test_all_errors_are_page_rank_errors():
    for name in prplugin.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(prplugin, name), prplugin.PageRankError)
