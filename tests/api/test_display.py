"""Representations of objects: `repr`, and HTML for notebooks."""

from __future__ import annotations

import html
import re

import numpy as np
import pandas as pd
import pytest

import prplugin

RANDOM = np.random.default_rng(1)
EDGES = pd.DataFrame({"src": RANDOM.integers(0, 300, 2000), "dst": RANDOM.integers(0, 300, 2000)})
GRAPH = prplugin.Graph(EDGES)


def cells(shown):
    """Return the rows of the HTML table without its header, as lists of text."""
    rows = re.findall("<tr>(.*?)</tr>", shown._repr_html_())
    found = [[html.unescape(cell) for cell in re.findall("<td[^>]*>(.*?)</td>", row)] for row in rows]
    return [row for row in found if row]


def test_undirected_edges_are_counted_once():
    edges = pd.DataFrame({"src": range(10), "dst": [*range(1, 9), 8, 3]})  # a self-loop at 8
    graph = prplugin.Graph(edges, directed=False)
    assert repr(graph).startswith("Graph of 10 vertices and 10 undirected edges")
    graph.update(add=pd.DataFrame({"src": [1, 2], "dst": [1, 9]}), remove=edges.head(1))
    assert repr(graph).startswith("Graph of 10 vertices and 11 undirected edges")
    assert repr(prplugin.Graph(edges)).startswith("Graph of 10 vertices and 10 directed edges")


def test_ranking_shows_its_ten_highest():
    ranking = GRAPH.rank()
    title, head, *rows = repr(ranking).splitlines()
    assert title == str(ranking)
    assert all(word in title for word in ("300 vertices", ranking.method, "error at most", "converged"))
    assert head.split() == ["vertex", "pagerank"]
    highest = ranking.frame.nlargest(10, "pagerank")
    expected = [[str(v), f"{r:#.6g}"] for v, r in zip(highest["vertex"], highest["pagerank"], strict=True)]
    assert [row.split() for row in rows] == expected == cells(ranking)
    assert html.escape(title) in ranking._repr_html_()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"top": 3}, lambda frame: frame),
        ({"top": 30}, lambda frame: frame.head(10)),
        ({"top": 4, "certified": True}, lambda frame: frame),
        ({"among": [5, 3, 9]}, lambda frame: frame.sort_values("pagerank", ascending=False)),
        ({"among": [5, 3, 9], "top": 2}, lambda frame: frame),
        ({"tol": 0, "max_iter": 0}, lambda frame: frame.head(10)),
    ],
)
def test_ranking_shows_only_vertices_of_its_frame(options, expected):
    ranking = GRAPH.rank(**options)
    assert [row[0] for row in cells(ranking)] == expected(ranking.frame)["vertex"].astype(str).tolist()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_rankings_of_other_libraries_show_the_same(library):
    edges = EDGES.astype(str)
    table = pytest.importorskip("pyarrow").Table.from_pandas(edges)
    if library == "polars":
        table = pytest.importorskip("polars").from_arrow(table)
    assert cells(prplugin.Graph(table).rank()) == cells(prplugin.Graph(edges).rank())


def test_vertices_of_several_columns_and_escaped_names():
    edges = pd.DataFrame({"a": ["<b>", "x"], "n": [1, 2], "c": ["x", "<b>"], "m": [2, 1]})
    ranking = prplugin.Graph(edges, ["a", "n"], ["c", "m"]).rank()
    assert [row[0] for row in cells(ranking)] == ["<b>, 1", "x, 2"]
    assert "<b>" not in ranking._repr_html_()
    assert "[red]" in repr(prplugin.Graph(pd.DataFrame({"src": ["[red]"], "dst": ["b"]})).rank())


def test_empty_graph():
    empty = EDGES.head(0)
    assert cells(prplugin.Graph(empty).rank()) == []
    assert repr(prplugin.Graph(empty)).startswith("Graph of 0 vertices and 0 directed edges")


def test_rankings_of_errors_can_be_shown():
    with pytest.raises(prplugin.NotConvergedError) as caught:
        EDGES.pagerank(max_iter=1)
    assert len(cells(caught.value.ranking)) == 10
    assert "not converged" in repr(caught.value.ranking)


@pytest.mark.parametrize("options", [{}, {"top": 5}, {"among": [5, 6, 7, 8]}, {"among": [5, 6, 7, 8], "top": 3}])
def test_rankings_show_the_highest_of_each_seed(options):
    rankings = GRAPH.rank(seeds=list(range(20)), **options)
    rows = cells(rankings)
    for row, (seed, frame) in zip(rows, rankings.frame.groupby("seed"), strict=False):
        highest = frame.sort_values("pagerank", ascending=False, kind="stable").head(3)
        assert row[0] == str(seed)
        assert re.findall(r"(\d+) \(", row[1]) == highest["vertex"].astype(str).tolist()
        assert int(row[2]) == rankings.each_iterations[seed]
        assert float(row[3]) >= rankings.each_error_bound[seed]
    assert len(rows) == 10
    assert repr(rankings).splitlines()[-1] == "and 10 more seeds"


def test_rankings_show_the_names_of_seeds():
    frame = pd.DataFrame({"seed": ["x", "x", "y"], "vertex": [1, 2, 3]})
    assert [row[0] for row in cells(GRAPH.rank(seeds=frame))] == ["x", "y"]
    assert [row[0] for row in cells(GRAPH.rank(seeds=[{1: 1.0}, {2: 1.0}]))] == ["0", "1"]
    assert [row[0] for row in cells(prplugin.Graph.from_csr([0, 1, 2], [1, 0]).rank(seeds=np.eye(2)))] == ["0", "1"]


def test_graph_shows_its_counts():
    assert repr(GRAPH).splitlines()[0] == "Graph of 300 vertices and 2,000 directed edges"
    assert ["weights", "every edge counts 1"] in cells(GRAPH)
    assert ["auto takes", GRAPH.rank().method] in cells(GRAPH)
    weighted = prplugin.Graph(EDGES.assign(w=2.0), weight="w")
    assert ["weights", "column 'w'"] in cells(weighted)
    assert [line.split()[0] for line in repr(weighted).splitlines()[1:]] == ["weights", "edges", "auto"]


def test_graph_with_times_shows_them():
    timed = EDGES.assign(day=range(len(EDGES)), w=2.0)
    decaying = prplugin.Graph(timed, time="day", half_life=3)
    assert ["times", "column 'day', half-life 3"] in cells(decaying)
    assert ["weights", "every edge counts 1"] in cells(decaying)
    both = cells(prplugin.Graph(timed, weight="w", time="day", half_life=3, window=100))
    assert ["times", "column 'day', half-life 3, window 100"] in both
    assert ["weights", "column 'w'"] in both


def test_estimate_shows_a_row_per_method():
    estimate = GRAPH.estimate()
    assert repr(estimate) == str(estimate)
    assert sorted(row[0] for row in cells(estimate)) == [one.method for one in estimate.methods]
    assert [row[0] for row in cells(estimate) if row[-1] == "auto takes it"] == [estimate.chosen.method]
    reasons = {one.reason for one in estimate.methods} - {None}
    assert all(repr(estimate).count(reason) == 1 for reason in reasons)
