"""A real graph that every machine has: which module of the installed Python packages imports which.

Parsing all source takes a minute. So strings and comments, which may hold what only looks like an import, are cut out,
and the lines that then begin like one are parsed; if those make no sense on their own, the whole file is.
"""

from __future__ import annotations

import ast
import os
import re
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Imports", "installed_imports"]

STRING_OR_COMMENT = re.compile(
    rb'"""(?:\\.|[^\\])*?"""'
    rb"|'''(?:\\.|[^\\])*?'''"
    rb'|"(?:\\.|[^"\\\n])*"'
    rb"|'(?:\\.|[^'\\\n])*'"
    rb"|#[^\n]*",
    re.DOTALL,
)
IMPORT = re.compile(rb"(?:^|[:;])[ \t]*((?:from|import)\b(?:\([^)]*\)|\\\r?\n|[^\r\n;(\\])*)", re.MULTILINE)
TESTS = {"test", "tests", "idle_test"}
"""Folders that are left out: a package's tests import it, but nobody uses them."""


class Imports(NamedTuple):
    """The import graph.

    `frame` has a row for each name that an import statement imports: `source`, the importing module, and `destination`.
    `unreadable` files cannot be opened or parsed; `unresolved` relative imports reach above their package.
    """

    frame: pd.DataFrame
    files: int
    unreadable: int
    unresolved: int


def installed_imports(roots: Iterable[str] | None = None) -> Imports:
    """Read the import statements of the packages in `roots`, or of the standard library and of site-packages."""
    import pandas as pd

    files, known = _modules(_installed() if roots is None else list(roots))
    rows: list[tuple[str, str]] = []
    unreadable = unresolved = 0
    for module, path in files:
        try:
            statements = _import_statements(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            unreadable += 1
            continue
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        for statement in statements:
            targets = _targets(statement, package, known)
            unresolved += targets is None
            rows += [(module, target) for target in targets or ()]
    frame = pd.DataFrame(rows, columns=["source", "destination"], dtype="str")
    return Imports(frame, len(files) - unreadable, unreadable, unresolved)


def _installed() -> list[str]:
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")] + site.getsitepackages()
    folders += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(dict.fromkeys(map(os.path.realpath, folders)))


def _modules(roots: list[str]) -> tuple[list[tuple[str, Path]], set[str]]:
    """Find the source files by module, sorted so that the graph is the same each time, and the names of all modules."""
    files: dict[str, Path] = {}
    known = set(sys.builtin_module_names)
    for root in roots:
        for folder, folders, names in os.walk(root):
            here = Path(folder)
            folders[:] = sorted(
                name
                for name in folders
                if name.isidentifier() and name not in TESTS | {"__pycache__"} and str(here / name) not in roots
            )
            for name in sorted(names):
                stem, _, suffix = name.partition(".")
                parts = here.relative_to(root).parts + (() if stem == "__init__" else (stem,))
                if not (parts and stem.isidentifier() and suffix.endswith(("py", "so", "pyd"))):
                    continue
                known.update(accumulate(parts, "{}.{}".format))
                if suffix == "py":
                    files.setdefault(".".join(parts), here / name)
    return list(files.items()), known


def _import_statements(source: bytes) -> list[ast.Import | ast.ImportFrom]:
    code = b"\n".join(IMPORT.findall(STRING_OR_COMMENT.sub(b"", source)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escape sequences in other people's strings
        try:
            nodes: Iterable[ast.AST] = ast.parse(code).body
        except (SyntaxError, ValueError):
            nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


def _targets(statement: ast.Import | ast.ImportFrom, package: str, known: set[str]) -> list[str] | None:
    """Return what a statement imports, a module for each name; None if it reaches above its package."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        parts = package.split(".") if package else []
        if statement.level > len(parts):
            return None
        base = ".".join([*parts[: len(parts) - statement.level + 1], *([base] if base else [])])
    within = [f"{base}.{alias.name}" for alias in statement.names]
    return [name if name in known else base for name in within]
