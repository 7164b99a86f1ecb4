"""Edges that are not a frame: graphs and matrices of other libraries, text files, lists of pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from shown_text import error_message, explanation

import prplugin
from prplugin.cli import main

EDGES = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "a", "a"], "weight": [1.0, 2.0, 3.0]})


def test_networkx_graphs():
    nx = pytest.importorskip("networkx")
    graph = nx.from_pandas_edgelist(EDGES, "src", "dst", ["weight"], nx.DiGraph)
    ranks = prplugin.pagerank(graph)
    pd.testing.assert_frame_equal(ranks, prplugin.Graph.from_networkx(graph).rank().frame)
    expected = nx.pagerank(graph, tol=1e-9, max_iter=1000)
    assert ranks.set_index("vertex")["pagerank"].to_dict() == pytest.approx(expected, abs=1e-6)
    assert prplugin.Graph(nx.karate_club_graph(), weight=None).number_of_edges == 2 * 78
    assert "directed= applies to frames only" in error_message(lambda: prplugin.pagerank(graph, directed=False))
    assert "source= applies to frames only" in error_message(lambda: prplugin.Graph(graph, "src", "dst"))


def test_igraph_graphs():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(n=3, edges=[(0, 1), (1, 0), (2, 0)], directed=True, edge_attrs={"w": [1.0, 2.0, 3.0]})
    pd.testing.assert_frame_equal(
        prplugin.pagerank(graph, weight="w"), prplugin.Graph.from_igraph(graph, "w").rank().frame
    )
    pd.testing.assert_frame_equal(prplugin.pagerank(graph), prplugin.Graph.from_igraph(graph).rank().frame)
    assert "vertices= applies to frames only" in error_message(lambda: prplugin.pagerank(graph, vertices=[7]))


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.array([[0, 1.0, 0], [2, 0, 0], [3, 0, 0]]))
    pd.testing.assert_frame_equal(prplugin.pagerank(matrix), prplugin.Graph.from_csr(matrix).rank().frame)
    pd.testing.assert_frame_equal(prplugin.pagerank(matrix.tocoo()), prplugin.Graph.from_csr(matrix).rank().frame)
    assert "weight= applies to frames only" in error_message(lambda: prplugin.pagerank(matrix, weight="w"))


def test_classes_missing_arrays_and_labels_that_are_missing():
    assert "It is the class DataFrame: pass a frame of it." in error_message(lambda: prplugin.pagerank(pd.DataFrame))
    assert "has indices, but no offsets" in error_message(lambda: prplugin.Graph.from_csr(None, [1]))
    labels = pd.Index([pd.NA, "Dst", "Src"], dtype=object)
    frame = EDGES[["weight", "dst", "src"]].set_axis(labels, axis=1)
    pd.testing.assert_frame_equal(prplugin.pagerank(frame), EDGES.pagerank())
    assert "Its columns are <NA>, 'b', 'c'" in error_message(
        lambda: prplugin.pagerank(frame.set_axis(pd.Index([pd.NA, "b", "c"], dtype=object), axis=1))
    )


@pytest.mark.parametrize("name", ["edges.csv", "edges.csv.gz", "edges.tsv"])
def test_text_files(tmp_path, name):
    path = tmp_path / name
    EDGES.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    for given in (path, str(path)):
        pd.testing.assert_frame_equal(prplugin.pagerank(given), EDGES.pagerank(), check_dtype=False)
    ranks = prplugin.pagerank(path, "dst", ["src"], "weight", vertices=["z"], directed=False)
    expected = EDGES.pagerank("dst", "src", "weight", vertices=["z"], directed=False)
    pd.testing.assert_frame_equal(ranks, expected, check_dtype=False)


def test_file_that_defines_its_vertices(tmp_path):
    path = tmp_path / "matrix.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n")
    assert prplugin.Graph(path).number_of_vertices == 3
    assert "names all vertices itself" in error_message(lambda: prplugin.Graph(path, vertices=[9]))


def test_file_of_unknown_format(tmp_path):
    path = tmp_path / "edges.dat"
    path.write_text("src,dst\n1,2\n")
    assert "pass format='csv'" in error_message(lambda: prplugin.pagerank(path))
    assert len(prplugin.pagerank(path, format="csv")) == 2
    assert prplugin.Graph.from_file(path, format="csv").number_of_edges == 1


@pytest.mark.parametrize(
    ("given", "call"),
    [
        ([(1, 2), (2, 1)], "pandas.DataFrame(edges, columns=['src', 'dst'])"),
        ({"src": [1], "dst": [2]}, "pandas.DataFrame(edges)"),
        (np.ones((4, 3)), "columns=['src', 'dst', 'weight']"),
        (np.eye(3), "prplugin.Graph.from_csr(scipy.sparse.csr_array(matrix))"),
        (EDGES["src"], "Put the two endpoints of each edge in two columns of a frame."),
    ],
)
def test_other_objects_are_refused_with_the_call_to_use(given, call):
    assert call in error_message(lambda: prplugin.pagerank(given))
    assert call in error_message(lambda: prplugin.Graph(given))


# --- weights that are not used -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["weight", "Weight", "weights", "edge_weight", "wgt", "w"])
def test_unused_weight_column_is_mentioned_once(name):
    edges = EDGES.rename(columns={"weight": name})
    for graph in (prplugin.Graph(edges), prplugin.Graph(edges, directed=False)):
        for ranking in (graph.rank(), graph.rank(seeds=["a"])):
            assert explanation(ranking).count(f"column {name!r} is not used") == 1
    assert "not used" not in explanation(prplugin.Graph(edges, weight=name).rank())


def test_other_unused_columns_are_not_mentioned():
    edges = EDGES.rename(columns={"weight": "clicks"})
    assert "not used" not in explanation(prplugin.Graph(edges).rank())
    edges = EDGES.rename(columns={"src": "weight", "weight": "x"})
    assert "not used" not in explanation(prplugin.Graph(edges, "weight", "dst").rank())


def test_unused_weight_column_of_a_file_is_mentioned(tmp_path):
    path, parquet = tmp_path / "edges.csv", tmp_path / "edges.parquet"
    EDGES.to_csv(path, index=False)
    EDGES.to_parquet(parquet)
    for given in (path, parquet):
        for graph in (prplugin.Graph(given), prplugin.Graph.from_file(given)):
            assert explanation(graph.rank()).count("column 'weight' is not used") == 1
        assert "not used" not in explanation(prplugin.Graph.from_file(given, weight="weight").rank())
        shown = CliRunner().invoke(main, ["rank", str(given)])
        assert shown.stdout.count("column 'weight' is not used") == 1
        assert "--weight weight" in shown.stdout
        assert "not used" not in CliRunner().invoke(main, ["rank", str(given), "--weight", "weight"]).stdout
        written = CliRunner().invoke(main, ["rank", str(given), "--output", "-"])
        assert "not used" not in written.stdout
        assert written.stderr.count("column 'weight' is not used") == 1
        assert "not used" not in CliRunner().invoke(main, ["rank", str(given), "--quiet"]).output
