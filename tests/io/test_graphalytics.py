"""Graphs of LDBC Graphalytics, and its PageRank."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import prplugin
from prplugin.cli import main
from prplugin.errors import ColumnNotFoundError, InvalidEdgesError

RELATIVE_ERROR = 1e-4
"""Greatest relative error of the value of a vertex that the benchmark accepts."""

CASES = ["example-directed", "example-undirected", "validation-directed", "validation-undirected"]


def write_graph(folder, name, vertices, edges, *, directed, weights=None, more=""):
    lines = [" ".join(map(str, edge)) for edge in edges]
    if weights is not None:
        lines = [f"{line} {weight}" for line, weight in zip(lines, weights, strict=True)]
    (folder / f"{name}.v").write_text("".join(f"{vertex}\n" for vertex in vertices))
    (folder / f"{name}.e").write_text("".join(f"{line}\n" for line in lines))
    items = {
        "vertex-file": f"{name}.v", "edge-file": f"{name}.e", "directed": str(directed).lower(),
        "meta.vertices": len(vertices), "bfs.source-vertex": 1,
    }  # fmt: skip
    text = "# Properties\n" + "".join(f"graph.{name}.{key} = {value}\n" for key, value in items.items())
    path = folder / f"{name}.properties"
    path.write_text(text + more)
    return path


def rule(name, alpha=0.85, iterations=2):
    return f"graph.{name}.pr.damping-factor = {alpha}\ngraph.{name}.pr.num-iterations = {iterations}\n"


@pytest.fixture
def path(tmp_path):
    edges = [(3, 10), (10, 3), (7, 3)]
    names = "graph.g.edge-properties.names = cost\n"
    return write_graph(tmp_path, "g", [3, 7, 8, 10], edges, directed=True, weights=[2, 1, 1], more=names + rule("g"))


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.mark.parametrize("case", CASES)
def test_published_values(data_dir, tmp_path, case):
    file = data_dir / "expected" / f"ldbc-{case}.json"
    if not file.exists():
        pytest.skip(f"{file} is absent")
    known = json.loads(file.read_text())
    more = rule(case, known["alpha"], known["iterations"])
    path = write_graph(tmp_path, case, known["nodes"], known["edges"], directed=known["directed"], more=more)
    output = tmp_path / f"{case}-PR"
    result = run("rank", path, "--output", output, "--quiet")
    assert result.exit_code == 0, result.output
    lines = [line.split(" ") for line in output.read_text().splitlines()]
    assert [int(vertex) for vertex, _ in lines] == known["nodes"]
    found, expected = np.array([float(value) for _, value in lines]), np.array(known["expected"])
    assert (np.abs(found - expected) <= RELATIVE_ERROR * expected).all()


def test_the_rule_is_that_of_plain_iterations(path, tmp_path):
    edges = pd.DataFrame({"src": [3, 10, 7], "dst": [10, 3, 3]})
    expected = edges.pagerank(vertices=[3, 7, 8, 10], tol=0, max_iter=2)
    for name in ("ranks.csv", "ranks.txt"):
        assert run("rank", path, "-q", "-o", tmp_path / name).exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "ranks.csv"), expected)
    text = pd.read_csv(tmp_path / "ranks.txt", sep=" ", header=None, names=["vertex", "pagerank"])
    pd.testing.assert_frame_equal(text, expected)


@pytest.mark.parametrize("options", [["--tol", "1e-9"], ["--alpha", "0.5"], ["--max-iter", "200"]])
def test_options_replace_the_rule(path, tmp_path, options):
    assert run("rank", path, "-q", "-o", tmp_path / "ranks.csv", *options).exit_code == 0
    edges = pd.DataFrame({"src": [3, 10, 7], "dst": [10, 3, 3]})
    given = {options[0].removeprefix("--").replace("-", "_"): json.loads(options[1])}
    expected = edges.pagerank(vertices=[3, 7, 8, 10], **given)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "ranks.csv"), expected)


@pytest.mark.parametrize("name", ["g.properties", "g.v", "g.e"])
def test_every_name_of_a_graph(path, name):
    edges = pd.DataFrame({"src": [3, 10, 7], "dst": [10, 3, 3], "cost": [2, 1, 1]})
    name = path.with_name(name)
    pd.testing.assert_frame_equal(prplugin.pagerank(name), edges.pagerank(vertices=[3, 7, 8, 10]))
    weighted = edges.pagerank(weight="cost", vertices=[3, 7, 8, 10])
    pd.testing.assert_frame_equal(prplugin.pagerank(name, weight="cost"), weighted)


def test_without_properties(path, tmp_path):
    path.unlink()
    edges = pd.DataFrame({"src": [3, 10, 7], "dst": [10, 3, 3]})
    pd.testing.assert_frame_equal(prplugin.pagerank(tmp_path / "g.e"), edges.pagerank(vertices=[3, 7, 8, 10]))
    found = prplugin.pagerank(tmp_path / "g.v", directed=False)
    pd.testing.assert_frame_equal(found, edges.pagerank(vertices=[3, 7, 8, 10], directed=False))
    for name in ("g.v", "g.e"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        (tmp_path / name).unlink()
    pd.testing.assert_frame_equal(prplugin.pagerank(tmp_path / "g.e.gz"), edges.pagerank(vertices=[3, 7, 8, 10]))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("g.properties", "directed = true", "directed = yes", "g.directed is 'yes', and must be true or false"),
        ("g.properties", "damping-factor = 0.85", "damping-factor = high", "is 'high', and must be a number"),
        ("g.properties", "num-iterations = 2", "num-iterations = -2", "must be an integer of 0 to"),
        ("g.properties", "graph.g.edge-file", "graph.h.edge-file", "it has no graph.g.edge-file"),
        ("g.v", "7\n", "x\n", r"g\.v, line 2: column 'vertex' has 'x'"),
        ("g.v", "7\n", "3\n", r"g\.v has vertex 3 twice"),
        ("g.e", "7 3 1\n", "7 3\n", r"g\.e, line 3: it has 2 fields where the first has 3"),
        ("g.e", "7 3 1\n", "9 3 1\n", r"g\.e: vertex 9 of an edge is not in .*g\.v"),
    ],
)
def test_files_that_are_wrong(path, name, old, new, message):
    file = path.with_name(name)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(path)


@pytest.mark.parametrize("edges", [[(3, 7), (7, 3)], [(3, 7), (7, 8), (3, 7)], [(8, 3), (8, 3)]])
def test_undirected_edges_are_listed_once(tmp_path, edges):
    path = write_graph(tmp_path, "g", [3, 7, 8], edges, directed=False)
    with pytest.raises(InvalidEdgesError, match=rf"g\.e, edge {len(edges)}: .* is listed before"):
        prplugin.pagerank(path)
    path = write_graph(tmp_path, "g", [3, 7, 8], edges[:-1], directed=False)
    assert prplugin.Graph(path).number_of_edges == 2 * len(edges) - 2
    assert prplugin.Graph(write_graph(tmp_path, "g", [3, 7, 8], edges, directed=True)).number_of_edges == len(edges)


def test_absent_files_and_columns(path):
    with pytest.raises(ColumnNotFoundError, match="speed"):
        prplugin.pagerank(path, weight="speed")
    path.with_suffix(".v").unlink()
    with pytest.raises(FileNotFoundError, match=r"g\.v: No such file") as caught:
        prplugin.pagerank(path)
    assert isinstance(caught.value, InvalidEdgesError)
    path.with_suffix(".v").mkdir()
    with pytest.raises(IsADirectoryError, match=r"g\.v: Is a directory"):
        prplugin.pagerank(path)


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret.v", "below/../../secret.v"])
def test_properties_name_no_files_elsewhere(path, name):
    text = path.read_text().replace("vertex-file = g.v", f"vertex-file = {name}")
    path.write_text(text)
    with pytest.raises(prplugin.InvalidEdgesError, match=r"g\.properties: graph\.g\.vertex-file is .*beside it"):
        prplugin.Graph.from_file(path)


def test_properties_may_name_files_below(path):
    (path.parent / "below").mkdir()
    (path.parent / "g.v").rename(path.parent / "below" / "g.v")
    path.write_text(path.read_text().replace("vertex-file = g.v", "vertex-file = below/g.v"))
    assert prplugin.Graph.from_file(path).number_of_vertices == 4


def test_lines_are_no_comments(path):
    vertices = path.with_suffix(".v")
    vertices.write_text("# vertices\n" + vertices.read_text())
    with pytest.raises(prplugin.InvalidEdgesError, match="line 1"):
        prplugin.Graph.from_file(path)
