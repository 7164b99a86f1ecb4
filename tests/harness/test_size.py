"""Upper bounds of the package's size, of the files that a call passes through, and of parameters typed `Any`.

Bounds of lines have room, so that a mended bug need not shrink something else. Raise one in the commit of a feature that
needs it, and say there what the feature is worth; lower one when code is deleted.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import prplugin

PACKAGE = Path(prplugin.__file__).parent
EDGES = pd.DataFrame({"src": [i * i % 101 for i in range(500)], "dst": [i * 7 % 103 for i in range(500)]})


def files_of(call):
    """Return the files of the package that have a function which the call enters."""
    files = set()

    def profile(frame, event, argument):
        if event == "call":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {file for file in files if Path(file).is_relative_to(PACKAGE)}


@pytest.mark.parametrize(
    ("call", "most"),
    [(EDGES.pagerank, 26), (prplugin.Graph(EDGES).rank, 16)],
    ids=["a pandas frame", "a prepared graph"],
)
def test_a_call_passes_through_few_files(call, most):
    call()  # what is imported, compiled or arranged once does not count
    files = files_of(call)
    assert str(PACKAGE / "solver" / "loop.py") in files
    assert len(files) <= most, sorted(files)


def test_few_parameters_are_typed_any():
    arguments = [
        argument.annotation
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.arguments)
        for argument in (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg)
        if argument is not None
    ]
    assert sum(isinstance(annotation, ast.Name) and annotation.id == "Any" for annotation in arguments) <= 115


def test_any_stands_seldom():
    words = [re.findall(r"\bAny\b", path.read_text()) for path in PACKAGE.rglob("*.py")]
    assert sum(map(len, words)) <= 620


MAX_LINES = {
    "": 4_300,
    "cli": 1_340,
    "cpu": 1_380,
    "distributed": 3_310,
    "frames": 7_590,
    "gpu": 1_800,
    "graph": 1_320,
    "integrations": 240,
    "io": 3_070,
    "methods": 3_560,
    "papers": 2_090,
    "result": 1_280,
    "solver": 1_430,
    "streams": 1_790,
    "types": 650,
}
"""Lines of Python that each package may have; the first bound is of the modules beside the packages."""


def test_packages_keep_to_their_size():
    lines = Counter()
    for path in PACKAGE.rglob("*.py"):
        folder = path.parent.relative_to(PACKAGE).as_posix().partition("/")[0].strip(".")
        lines[folder] += len(path.read_text().splitlines())
    assert set(lines) == set(MAX_LINES)
    assert {name: count for name, count in lines.items() if count > MAX_LINES[name]} == {}


def test_benchmarks_keep_to_their_size():
    """The code of one that has answered its question is dropped; its page names the commit that has it."""
    files = (PACKAGE.parent / "benchmarks").rglob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) <= 10_500


def test_the_kernels_of_the_cpu_do_not_grow():
    files = [path for path in (PACKAGE / "cpu").iterdir() if path.suffix in (".cpp", ".hpp")]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 2_740
