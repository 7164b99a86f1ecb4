"""Types, signatures and names as type checkers and editors see them."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys

import pytest
from code_blocks import ROOT

import prplugin

CODE = """
import duckdb
import polars as pl
import prplugin

frame = pl.DataFrame({"src": [1], "dst": [2]})
graph = prplugin.Graph(frame, "src", "dst")
reveal_type(prplugin.pagerank(frame, alpha=0.9, threads=2))  # polars.dataframe.frame.DataFrame
reveal_type(prplugin.pagerank(frame.lazy(), "src", "dst"))  # polars.dataframe.frame.DataFrame
reveal_type(prplugin.pagerank(edges=frame))  # polars.dataframe.frame.DataFrame
reveal_type(frame.pipe(prplugin.pagerank))  # polars.dataframe.frame.DataFrame
reveal_type(prplugin.pagerank("edges.parquet"))  # Any
reveal_type(graph.rank(top=3))  # prplugin.result.ranking.Ranking
reveal_type(graph.rank(seeds=[1], alpha=0.9, threads=2))  # prplugin.result.ranking.Rankings
reveal_type(prplugin.Graph.from_csr([0, 1], [0]))  # prplugin.api.Graph
prplugin.pagerank(frame, alpha="0.9")  # error: "str"
prplugin.Graph(frame, alpha=0.9)  # error: alpha
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Return the messages of mypy by line of the code."""
    pytest.importorskip("mypy")
    pytest.importorskip("polars")
    folder = tmp_path_factory.mktemp("typed")
    path = folder / "code.py"
    path.write_text(CODE)
    flags = ["--strict", "--config-file=", f"--cache-dir={folder / 'cache'}", "--hide-error-context"]
    command = [sys.executable, "-m", "mypy", *flags, "--ignore-missing-imports", str(path)]
    # mypy runs in a process of its own, because its syntax trees would stay in the heap of this one.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert not done.stderr
    messages = {}
    for number, text in re.findall(r"code\.py:(\d+): (?:note|error): (.*)", done.stdout):
        messages.setdefault(int(number), []).append(text)
    return messages


LINES = [(number, line) for number, line in enumerate(CODE.splitlines(), 1) if "#" in line]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "line"), LINES, ids=[line.split("  #")[0] for _, line in LINES])
def test_types(checked, number, line):
    expected = line.split("  # ")[1]
    if expected.startswith("error: "):
        assert expected.removeprefix("error: ") in checked[number][0]
    else:
        assert checked[number] == [f'Revealed type is "{expected}"']


@pytest.mark.slow
def test_other_lines_have_no_errors(checked):
    assert not set(checked) - {number for number, _ in LINES}


@pytest.mark.parametrize("function", [prplugin.pagerank, prplugin.Graph.rank, prplugin.estimate])
def test_help_lists_each_parameter(function):
    shown = pydoc.plain(pydoc.render_doc(function))
    parameters = re.search("Parameters\n *-+\n(.*?)(Returns|Raises)\n *-+\n", shown, re.DOTALL)[1]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name != "self":
            assert parameter.name in shown.split("\n")[2]
            assert re.search(rf"^ *[\w, *]*\b{parameter.name}\b.*$", parameters, re.MULTILINE), parameter


def test_dir_lists_the_public_names():
    assert dir(prplugin) == sorted(prplugin.__all__)
