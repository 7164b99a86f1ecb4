"""`prplugin save`, and saved graphs as arguments of the other commands."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import prplugin
from prplugin.cli import main
from prplugin.io import read_edges, write_frame

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


def ranks_of(path) -> dict:
    return pd.read_csv(path).set_index("vertex")["pagerank"].to_dict()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_update_changes_ranks_and_saves(files, suffix):
    """The next update starts from the saved ranks; the bound is proved for the changed edges."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"src": rng.integers(0, 300, 4000), "dst": rng.integers(0, 300, 4000), "w": rng.random(4000)})
    new, old = pd.DataFrame({"src": [7, 900], "dst": [900, 3], "w": [2.0, 1.0]}), rows.iloc[[5, 8]]
    graph, ranks = files / "graph", files / "ranks.csv"
    added, removed = files / f"new.{suffix}", files / f"old.{suffix}"
    write_frame(new, str(added))
    write_frame(old[["src", "dst"]], str(removed))
    prplugin.Graph(rows.drop_duplicates(["src", "dst"]), weight="w").save(graph)
    first = run("update", graph, "--add", added, "--remove", removed, "--output", ranks)
    assert "graph and ranks saved to" in first
    kept = pd.concat([rows.drop_duplicates(["src", "dst"]).drop(index=[5, 8]), new])
    expected = kept.pagerank(weight="w", tol=1e-12).set_index("vertex")["pagerank"]
    assert sum(abs(rank - expected[vertex]) for vertex, rank in ranks_of(ranks).items()) <= 1.1e-6
    second = run("update", graph, "--remove", added, "--explain")
    assert "the ranks have changed little since the last ranking" in second
    assert prplugin.Graph.load(graph).number_of_edges == len(kept) - 2


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_update_of_groups(files, suffix):
    edges = EDGES.assign(country=["FR", "DE", "FR", "DE"])
    new = pd.DataFrame({"country": ["ES", "FR"], "src": ["x", "a"], "dst": ["y", "z"], "w": [1.0, 2.0]})
    write_frame(new, str(files / f"new.{suffix}"))
    write_frame(new.drop(columns="w"), str(files / f"old.{suffix}"))
    prplugin.Graph(edges, by="country", weight="w").save(files / "graph")
    run("update", files / "graph", "--add", files / f"new.{suffix}")
    expected = prplugin.Graph(pd.concat([edges, new]), by="country", weight="w").rank().to_dict()
    found = prplugin.Graph.load(files / "graph").rank().to_dict()
    assert found.keys() == expected.keys()
    for group, ranks in expected.items():
        assert found[group] == pytest.approx(ranks, abs=2e-6)
    run("update", files / "graph", "--remove", files / f"old.{suffix}")
    assert prplugin.Graph.load(files / "graph").number_of_edges == len(edges)


def test_update_of_groups_takes_the_types_of_ids_from_the_graph(files):
    edges, more = files / "edges.csv", files / "more.csv"
    edges.write_text("g,src,dst\nx,1,2\ny,1,2\n")
    run("save", edges, files / "graph", "--by", "g")
    more.write_text("g,src,dst\n007,1,2\n")
    run("update", files / "graph", "--add", more)
    assert prplugin.Graph.load(files / "graph").rank().to_dict().keys() == {"x", "y", "007"}
    more.write_text("g,src,dst\nx,a,2\n")
    assert "column 'src' has ids that are not of the graph's type" in run(
        "update", files / "graph", "--add", more, code=1
    )


def test_update_errors_leave_the_folder(files):
    graph = files / "graph"
    prplugin.Graph(EDGES, weight="w").save(graph)
    before = {path.name: path.read_bytes() for path in graph.iterdir()}
    (files / "absent.csv").write_text("src,dst\nc,b\n")
    assert "does not have: 'c' -> 'b'" in run("update", graph, "--remove", files / "absent.csv", code=1)
    assert "there is no column 'w'" in run("update", graph, "--add", files / "absent.csv", code=1)
    assert "pass --add, --remove, or both" in run("update", graph, code=2)
    assert "is not a saved graph" in run("update", files / "edges.parquet", "--add", files / "absent.csv", code=2)
    assert before == {path.name: path.read_bytes() for path in graph.iterdir()}


def test_times_and_exclusions(files):
    times = pd.to_datetime(["2026-01-01", "2026-01-08", "2026-01-02", "2026-01-03"])
    EDGES.assign(at=times).to_parquet(files / "timed.parquet")
    ranks, frame = files / "ranks.csv", EDGES.assign(at=times)
    for options, how in (
        (["--half-life", "7D"], {"half_life": "7D"}),
        (["--window", "6D"], {"window": "6D"}),
        (["--half-life", "2D", "--window", "6D"], {"half_life": "2D", "window": "6D"}),
    ):
        run("rank", files / "timed.parquet", "--time", "at", *options, "--output", ranks)
        assert ranks_of(ranks) == pytest.approx(
            frame.pagerank(time="at", **how).set_index("vertex")["pagerank"].to_dict()
        )
    assert "without a column of times" in run("rank", files / "timed.parquet", "--half-life", "7D", code=2)
    run("save", files / "timed.parquet", files / "graph", "--time", "at", "--half-life", "7D")
    run("update", files / "graph", "--add", files / "timed.parquet", "--quiet")
    assert prplugin.Graph.load(files / "graph").number_of_edges == 8
    options = ["--seeds", "a", "--seeds", "b", "--exclude", "c", "--exclude-seeds", "--output", ranks]
    run("rank", files / "timed.parquet", *options)
    found = pd.read_csv(ranks)
    assert list(zip(found["seed"], found["vertex"], strict=True)) == [("a", "b"), ("b", "a")]
    run("rank", files / "timed.parquet", "--personalization", "a", "--personalization", "z", code=1)
    run("rank", files / "timed.parquet", "--personalization", "a", "--personalization", "z", "--unknown", "ignore")


def test_seconds_include_reading(files, monkeypatch):
    """Regression test: reading, most of the time of a large file, was not in the seconds that are reported."""

    def read_slowly(*arguments, **options):
        time.sleep(0.4)
        return read_edges(*arguments, **options)

    monkeypatch.setattr("prplugin.cli.read_edges", read_slowly)
    for output in (run("rank", files / "edges.parquet"), run("save", files / "edges.parquet", files / "graph")):
        assert float(re.search(r"([0-9.]+) s\b", output.splitlines()[-1]).group(1)) >= 0.4
