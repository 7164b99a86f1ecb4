"""The graph of imports."""

from __future__ import annotations

import pytest

from prplugin.cli.imports import imports


@pytest.fixture
def packages(tmp_path):
    """Write source files by path, and return their import graph."""

    def read(**sources):
        for name, source in sources.items():
            path = tmp_path / (name.replace("__init", "/__init__").replace("_in_", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return imports(str(tmp_path))

    return read


def rows(found):
    return list(found[0].itertuples(index=False, name=None))


def test_a_row_for_each_name_that_is_imported(packages):
    found = packages(a="import os, sys as system\nimport b\nimport b\nfrom b import x, y\n", b="x = y = 1\n")
    assert rows(found) == [("a", "os"), ("a", "sys"), ("a", "b"), ("a", "b"), ("a", "b"), ("a", "b")]
    assert found[1:] == (2, 0)


def test_a_name_that_is_a_module_counts_as_that_module(packages):
    found = packages(p__init="", p_in_q="", a="from p import q, other\nimport p.q\nfrom p.q import *\n")
    assert rows(found) == [("a", "p.q"), ("a", "p"), ("a", "p.q"), ("a", "p.q")]


def test_relative_imports_are_resolved(packages):
    found = packages(
        p__init="from . import q\nfrom .q import f\n",
        p_in_q="from . import r, s\nfrom .r import f\nfrom .. import too_far\n",
        p_in_r="",
    )
    assert rows(found) == [("p", "p.q"), ("p", "p.q"), ("p.q", "p.r"), ("p.q", "p"), ("p.q", "p.r")]


def test_what_only_looks_like_an_import_is_none(packages):
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
    assert sorted(target for _, target in rows(packages(a=source))) == ["yes1", "yes2", "yes3", "yes4", "yes4", "yes5"]


@pytest.mark.parametrize("broken", ["import\n", "from x import (\n", "import x y\n"])
def test_files_that_do_not_parse_are_counted(packages, broken):
    found = packages(a="import b\n", b=broken)
    assert rows(found) == [("a", "b")]
    assert found[1:] == (1, 1)
