"""Graphs of the 9th DIMACS implementation challenge."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest

import prplugin
from prplugin.errors import InvalidEdgesError
from prplugin.io import read_edges

ROADS = "c a comment\np sp 5 4\nc\na 1 2 17\na 2 1 17\nc another\na 1 3 10\na 4 3 1\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("name", ["roads.gr", "roads.gr.gz"])
def test_arcs_weights_and_isolated_vertices(write, name):
    edges = pd.DataFrame({"source": [1, 2, 1, 4], "destination": [2, 1, 3, 3], "weight": [17.0, 17.0, 10.0, 1.0]})
    path = write(name, gzip.compress(ROADS.encode()) if name.endswith("gz") else ROADS.replace("a 2", "a\t2"))
    file = read_edges(path)
    pd.testing.assert_frame_equal(file.frame, edges)
    expected = edges.pagerank(weight="weight", vertices=range(1, 6))
    pd.testing.assert_frame_equal(prplugin.pagerank(path), expected)
    assert read_edges(path, unweighted=True).columns.weight is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("c nothing\n", "has no line 'p sp', and no arcs"),
        ("a 1 2 3\n", "line 1: it is not 'p sp'"),
        (ROADS.replace("sp", "max"), "line 2: it is not 'p sp'"),
        (ROADS.replace("p sp 5 4", "p sp 5 5"), "line 2: it announces 5 arcs, but 4 follow"),
        (ROADS.replace("p sp 5 4", "p sp 5 3"), "line 2: it announces 3 arcs, but 4 follow"),
        (
            ROADS.replace("a 1 3 10", "a 1 6 10"),
            "line 7: column 'destination' has '6', but the size line allows 1 to 5",
        ),
        (ROADS.replace("a 1 3 10", "a 0 3 10"), "line 7: column 'source' has '0'"),
        (ROADS.replace("a 1 3 10", "a 1 3 -10"), "line 7: column 'weight' has '-10', which is below 0"),
        (ROADS.replace("a 1 3 10", "a 1 3"), "line 7: it has 2 fields where the first has 3"),
        (
            ROADS.replace("a 1 3 10", "1 3 10"),
            "line 7: a line begins with c, p or a, a blank and a number, but this one is '1 3 10'",
        ),
        (ROADS.replace("a 1 3 10", "arc 1 3 10"), "line 7: a line begins with c, p or a"),
        (ROADS.replace("a 1 3 10", "a 1 3 10\na #1 2 1"), "line 8: a line begins.*this one is 'a #1 2 1'"),
        (ROADS.replace("a 1 3 10", "a\t% 1 2 1"), "line 7: a line begins"),
        (ROADS.replace("a 1 3 10", "p sp 5 4"), "line 7: it is a second line 'p sp'"),
    ],
)
def test_files_that_are_wrong(write, content, message):
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(write("roads.gr", content))
