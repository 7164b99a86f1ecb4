"""Source files of the repository, and what they import."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["imported_names", "module_name"]


def module_name(path: Path, root: Path) -> str:
    """Return the name of a module relative to its package, "" for that of the package itself."""
    return ".".join(part for part in path.relative_to(root).with_suffix("").parts if part != "__init__")


def imported_names(source: str) -> list[str]:
    """Return the dotted names that a source imports, lazy and type-only imports included."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno} has a relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names
