"""Mistakes in IPython end in a short message, and rankings convert to arrays."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pandas as pd
import pytest

import prplugin

EDGES = pd.DataFrame({"follower": [1, 2, 3], "followee": [2, 3, 1], "weight": [1.0, np.nan, 1.0]})

MISTAKES = [
    "EDGES.pagerank()",
    "prplugin.Graph(EDGES, 'follower', 'followee', 'weight')",
    "EDGES.pagerank('follower', 'followee', weights='weight')",
    "prplugin.Graph(EDGES, 'follower', 'followee').rank(personalization=[9])",
    "prplugin.Graph(EDGES, 'follower', 'followee').rank(alpha=2)",
]


@pytest.mark.parametrize("cell", MISTAKES)
def test_tracebacks_in_ipython_show_the_cell_the_raising_line_and_the_message(cell):
    """IPython omits hidden frames, but always shows the last."""
    ultratb = pytest.importorskip("IPython.core.ultratb")
    linecache.cache["<cell>"] = len(cell), None, [cell + "\n"], "<cell>"
    with pytest.raises(prplugin.PageRankError) as caught:
        exec(compile(cell, "<cell>", "exec"), {"EDGES": EDGES, "prplugin": prplugin})
    text = ultratb.VerboseTB(include_vars=False).text(caught.type, caught.value, caught.tb.tb_next).rstrip()
    lines = re.sub("\x1b\\[[0-9;]*m", "", text).splitlines()
    assert len(lines) <= 20, text
    assert str(caught.value) in lines[-1]


OF_FILES = [
    "prplugin.pagerank('absent.csv')",
    "prplugin.pagerank(FILE, 'a', 'b')",
    "prplugin.Graph.from_file(FILE, weight='w')",
]


@pytest.mark.parametrize(
    "cell",
    [*MISTAKES, *OF_FILES, "prplugin.Graph(EDGES, 'follower', 'followee').rank()[9]", "prplugin.pagerank([EDGES])"],
)
def test_cells_of_ipython_show_no_frame_of_the_package(cell, capsys, tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("src,dst,w\n1,2,3\n2,1,\n")
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell.instance()
    try:
        shell.user_ns.update(EDGES=EDGES, prplugin=prplugin, FILE=str(file))
        error = shell.run_cell(f"def inner():\n    {cell}\n\ninner()").error_in_exec
    finally:
        interactive.InteractiveShell.clear_instance()
    lines = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert isinstance(error, prplugin.PageRankError)
    assert "prplugin/" not in "".join(lines[:-1]), lines
    assert sum("-> " in line for line in lines) == 2  # both lines of the cell
    assert len(lines) <= 12
    assert lines[-1].endswith(str(error))


def test_explain_takes_a_file_only():
    ranking = prplugin.Graph(EDGES, "follower", "followee").rank()
    for given in (0, 37, "name"):
        with pytest.raises(prplugin.InvalidOptionError, match=r"takes a file to print to.*contributions"):
            ranking.explain(given)


def test_a_ranking_is_an_array_of_ranks():
    graph = prplugin.Graph(EDGES, "follower", "followee")
    ranking = graph.rank()
    np.testing.assert_array_equal(np.asarray(ranking), ranking.ranks)
    assert np.asarray(ranking, dtype="float32").dtype == np.float32
    rankings = graph.rank(seeds=[1, 2])
    np.testing.assert_array_equal(np.asarray(rankings), rankings.ranks)
