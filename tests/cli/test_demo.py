"""The import graph of `prplugin demo`."""

from __future__ import annotations

import pytest

from prplugin.cli.imports import imports


@pytest.fixture
def import_graph(tmp_path):
    """Return a function that writes source files by path, and returns their import graph."""

    def of_sources(**sources):
        for name, source in sources.items():
            path = tmp_path / (name.replace("__init", "/__init__").replace("_in_", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return imports(str(tmp_path))

    return of_sources


def rows(graph):
    return list(graph[0].itertuples(index=False, name=None))


def test_each_imported_name_is_a_row(import_graph):
    graph = import_graph(a="import os, sys as system\nimport b\nimport b\nfrom b import x, y\n", b="x = y = 1\n")
    assert rows(graph) == [("a", "os"), ("a", "sys"), ("a", "b"), ("a", "b"), ("a", "b"), ("a", "b")]
    assert graph[1:] == (2, 0)


def test_imported_names_that_are_modules(import_graph):
    graph = import_graph(p__init="", p_in_q="", a="from p import q, other\nimport p.q\nfrom p.q import *\n")
    assert rows(graph) == [("a", "p.q"), ("a", "p"), ("a", "p.q"), ("a", "p.q")]


def test_relative_imports_are_resolved(import_graph):
    graph = import_graph(
        p__init="from . import q\nfrom .q import f\n",
        p_in_q="from . import r, s\nfrom .r import f\nfrom .. import too_far\n",
        p_in_r="",
    )
    assert rows(graph) == [("p", "p.q"), ("p", "p.q"), ("p.q", "p.r"), ("p.q", "p"), ("p.q", "p.r")]


def test_strings_and_comments_that_look_like_imports_are_ignored(import_graph):
    source = '''"""
import no1
"""
text = "\\
import no2"
x = \'\'\'it's
from no3 import a
\'\'\' # import no4
try: import yes1
except ImportError: import yes2; import yes3
from yes4 import (a, # import no5
    b)
from yes5 \\
    import c
def f():
    yield from import_nothing
    raise ValueError("x") from None
'''
    assert sorted(target for _, target in rows(import_graph(a=source))) == [
        "yes1",
        "yes2",
        "yes3",
        "yes4",
        "yes4",
        "yes5",
    ]


@pytest.mark.parametrize("broken", ["import\n", "from x import (\n", "import x y\n"])
def test_files_that_cannot_be_parsed_are_counted(import_graph, broken):
    graph = import_graph(a="import b\n", b=broken)
    assert rows(graph) == [("a", "b")]
    assert graph[1:] == (1, 1)
