"""`prplugin save`, and saved graphs as arguments of the other commands."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import prplugin
from prplugin.cli import main

EDGES = pd.DataFrame({"src": ["a", "b", "c", "a"], "dst": ["b", "a", "a", "c"], "w": [1.0, 2.0, 3.0, 4.0]})


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def files(tmp_path):
    EDGES.to_parquet(tmp_path / "edges.parquet")
    return tmp_path


def test_save_and_rank(files):
    graph, ranks = files / "graph", files / "ranks.csv"
    output = run("save", files / "edges.parquet", graph, "--weight", "w", "--undirected", "--vertices", "z")
    assert "4 vertices, 8 edges saved to" in output
    expected = EDGES.pagerank(weight="w", directed=False, vertices=["z"])
    assert prplugin.Graph.load(graph).rank().frame.equals(expected)
    assert "a" in run("rank", f"{graph}/", "--output", ranks, "--explain")
    pd.testing.assert_frame_equal(pd.read_csv(ranks), expected, check_dtype=False)
    assert run("rank", graph, "--quiet") == ""
    for option in (["--seeds", "a"], ["--among", "c"], ["--personalization", "b=2"]):
        run("rank", graph, *option, "--output", ranks)
    assert "auto chooses" in run("methods", graph)
    assert "z" in run("save", graph, files / "copy") + run("rank", files / "copy")
    assert run("save", files / "edges.parquet", graph, "--quiet") == ""
    assert prplugin.Graph.load(graph).number_of_edges == 4


def test_graphs_of_any_library(files):
    for ends in (["src", "dst"], [["src", "x"], ["dst", "y"]]):
        frame = pl.from_pandas(EDGES.assign(x=[1, 2, 1, 1], y=[2, 1, 1, 1]))
        prplugin.Graph(frame, *ends).save(files / "graph")
        output = run("rank", files / "graph", "--output", files / "ranks.parquet")
        assert "ranks written" in output
        found = pd.read_parquet(files / "ranks.parquet")
        expected = prplugin.Graph(frame, *ends).rank().frame.to_pandas()
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    prplugin.Graph(pl.from_pandas(EDGES)).save(files / "graph")
    run("rank", files / "graph", "--seeds", "a", "--personalization", "b", code=2)
    run("rank", files / "graph", "--seeds", "a")
    run("save", files / "graph", files / "copy", "--packed")
    assert isinstance(prplugin.Graph.load(files / "copy").rank().frame, pl.DataFrame)


def test_options_about_edges_are_refused(files):
    prplugin.Graph(EDGES).save(files / "graph")
    for option in ("--source=src", "--weight=w", "--undirected", "--duplicates=last", "--format=csv", "--vertices=z"):
        output = run("rank", files / "graph", option, code=2)
        assert f"{option.split('=')[0]} describes edges" in output
    assert "verify reads the file of edges" in run("verify", files / "graph", code=2)


def test_errors(files):
    assert "is a file: a graph is saved to a new folder" in run("save", "absent.csv", files / "edges.parquet", code=1)
    prplugin.Graph(EDGES).save(files / "graph")
    manifest = json.loads((files / "graph" / "manifest.json").read_text())
    (files / "graph" / "manifest.json").write_text(json.dumps(manifest | {"version": 9}))
    assert "Update prplugin" in run("rank", files / "graph", code=1)
    (files / "graph" / "in_sources.npy").unlink()
    (files / "graph" / "manifest.json").write_text(json.dumps(manifest))
    assert "it lacks in_sources.npy" in run("rank", files / "graph", code=1)
