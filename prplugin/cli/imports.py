"""Import graph of Python's standard library: a real graph that is available on every machine."""

from __future__ import annotations

import ast
import gc
import os
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

EXCLUDED_FOLDERS = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3"}
"""Folders that are not part of the library, such as its tests."""


def imports(root: str | None = None) -> tuple[pd.DataFrame, int, int]:
    """Return one row per imported name, the number of parsed files, and the number of files that cannot be parsed.

    The frame has the columns `source`, the importing module, and `destination`.
    """
    files = dict(_modules(Path(root or sysconfig.get_path("stdlib"))))
    known = {*files, *sys.builtin_module_names, *sys.stdlib_module_names}
    rows: list[tuple[str, str]] = []
    unreadable = 0
    with warnings.catch_warnings(), _without_collections():
        warnings.simplefilter("ignore")  # about escape sequences
        for module, path in files.items():
            try:
                nodes = _statements(ast.parse(path.read_bytes()))
            except (OSError, SyntaxError, ValueError, RecursionError):
                unreadable += 1
                continue
            package = module if path.stem == "__init__" else module.rpartition(".")[0]
            rows += [(module, target) for node in nodes for target in _targets(node, package, known)]
    return pd.DataFrame(rows, columns=["source", "destination"], dtype="str"), len(files) - unreadable, unreadable


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the search for cycles, which takes a third of the time of parsing; syntax trees have none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the source file of each module, in the order of the paths."""
    paths: list[Path] = []
    for folder, folders, files in os.walk(root):
        folders[:] = set(folders) - EXCLUDED_FOLDERS
        paths += [Path(folder, name) for name in files if name.endswith(".py")]
    for path in sorted(paths):
        parts = path.relative_to(root).with_suffix("").parts
        if all(map(str.isidentifier, parts)) and parts != ("__init__",):
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _statements(tree: ast.Module) -> list[ast.AST]:
    """Return all statements in the order of `ast.walk`, but visit no expressions, which most nodes are in."""
    found: list[ast.AST] = [tree]
    for node in found:  # which grows
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            found += getattr(node, field, ())
    return found


def _targets(node: ast.AST, package: str, known: set[str]) -> list[str]:
    """Return the module of each name that a statement imports; none if a relative import leaves the package."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parts = package.split(".") if package and node.level else []
    if node.level > len(parts):
        return []
    base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
    return [name if (name := f"{base}.{alias.name}") in known else base for alias in node.names]
