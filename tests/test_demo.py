"""The graph of imports."""

from __future__ import annotations

import ast

import pytest

from prplugin.cli.imports import _import_statements, _installed, _modules, installed_imports


@pytest.fixture
def packages(tmp_path):
    """Write source files by path, and give the rows that their imports make."""

    def read(**sources):
        for name, source in sources.items():
            path = tmp_path / (name.replace("__init", "/__init__").replace("_in_", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source if isinstance(source, bytes) else source.encode())
        return installed_imports([str(tmp_path)])

    return read


def rows(imports):
    return list(imports.frame.itertuples(index=False, name=None))


def test_a_row_for_each_name_that_is_imported(packages):
    imports = packages(a="import os, sys as system\nimport b\nimport b\nfrom b import x, y\n", b="x = y = 1\n")
    assert rows(imports) == [("a", "os"), ("a", "sys"), ("a", "b"), ("a", "b"), ("a", "b"), ("a", "b")]
    assert (imports.files, imports.unreadable, imports.unresolved) == (2, 0, 0)


def test_a_name_that_is_a_module_counts_as_that_module(packages):
    imports = packages(p__init="", p_in_q="", a="from p import q, other\nimport p.q\nfrom p.q import *\n")
    assert rows(imports) == [("a", "p.q"), ("a", "p"), ("a", "p.q"), ("a", "p.q")]


def test_relative_imports_are_resolved(packages):
    imports = packages(
        p__init="from . import q\nfrom .q import f\n",
        p_in_q="from . import r, s\nfrom .r import f\nfrom .. import too_far\n",
        p_in_r="",
    )
    assert rows(imports) == [("p", "p.q"), ("p", "p.q"), ("p.q", "p.r"), ("p.q", "p"), ("p.q", "p.r")]
    assert imports.unresolved == 1


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
    assert [target for _, target in rows(packages(a=source))] == ["yes1", "yes2", "yes3", "yes4", "yes4", "yes5"]


@pytest.mark.parametrize("broken", ["import\n", "from x import (\n", "import x y\n"])
def test_files_that_do_not_parse_are_counted(packages, broken):
    imports = packages(a="import b\n", b=broken)
    assert rows(imports) == [("a", "b")]
    assert (imports.files, imports.unreadable) == (1, 1)


def test_the_cheap_parse_finds_what_the_whole_one_does():
    files, _ = _modules(_installed()[:1])
    chosen = files[::10]
    assert len(chosen) > 20
    for module, path in chosen:
        source = path.read_bytes()
        full = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.Import, ast.ImportFrom))]
        cheap = _import_statements(source)
        assert sorted(map(ast.dump, cheap)) == sorted(map(ast.dump, full)), module
