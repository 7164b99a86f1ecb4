"""The methods that there are: modules of two packages of prplugin, and entry points of other distributions."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from prplugin.errors import PageRankWarning
from prplugin.methods.base import Method

PACKAGES = "prplugin.methods", "prplugin.papers"
"""Packages of which each module with a processor is a method. The core imports the second in no other way."""

GROUP = "prplugin.methods"
"""Group of the entry points by which other distributions add methods: the name of a method, and its module."""

RUNS_ON = re.compile('^runs_on = "(cpu|gpu)"$', re.MULTILINE)
"""Declaration of the processor in the source of a method. All modules together take as long to import as a ranking."""


class Methods(Mapping[str, Method]):
    """All methods by name, in alphabetical order. Those of prplugin are imported when they are used.

    `built_in`: Name of the module of each method of prplugin, and its processor.
    `others`: Imported methods of other distributions.
    """

    def __init__(self, built_in: Mapping[str, tuple[str, str]], others: Mapping[str, Method]) -> None:
        self._built_in, self._imported = built_in, dict(others)
        self._names = sorted({*built_in, *others})
        self._of: dict[str, dict[str, Method]] = {}

    def __getitem__(self, name: str) -> Method:
        if name not in self._imported:
            self._imported[name] = importlib.import_module(self._built_in[name][0])
        return self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names  # without importing the module

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def runs_on(self, name: str) -> str:
        """Return the processor of a method, "cpu" or "gpu"."""
        return self._built_in[name][1] if name in self._built_in else self[name].runs_on

    def of(self, processor: str) -> dict[str, Method]:
        """Return the methods of one processor."""
        if processor not in self._of:
            self._of[processor] = {name: self[name] for name in self if self.runs_on(name) == processor}
        return self._of[processor]


@cache
def methods() -> Methods:
    """Return all methods; a method of another distribution does not replace one of prplugin."""
    built_in = {}
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        folder = Path(spec.origin).parent  # type: ignore[arg-type, union-attr]  # both are packages of files
        for info in pkgutil.iter_modules([str(folder)]):
            source = folder / f"{info.name}.py"
            if not info.ispkg and (runs_on := RUNS_ON.search(source.read_text(encoding="utf-8"))):
                built_in[info.name.replace("_", "-")] = f"{package}.{info.name}", runs_on[1]
    return Methods(built_in, {name: method for name, method in _others().items() if name not in built_in})


def _others() -> dict[str, Method]:
    """Import the methods of other distributions; warn about those that cannot be imported."""
    # `importlib.metadata` takes as long as a small ranking: it is used only if a file names the group.
    if not any(map(_names_group, _installed())):
        return {}
    from importlib.metadata import entry_points

    found = {}
    for point in entry_points(group=GROUP):
        try:
            found[point.name] = point.load()
        except Exception as error:  # of foreign code
            warnings.warn(
                f"method {point.name!r} ({point.value}) cannot be imported: {error}", PageRankWarning, stacklevel=2
            )
    return found


def _installed() -> Iterator[str]:
    """Yield the folders with the metadata of the installed distributions."""
    for folder in filter(os.path.isdir, sys.path):
        yield from (entry.path for entry in os.scandir(folder) if entry.name.endswith((".dist-info", ".egg-info")))


def _names_group(folder: str) -> bool:
    try:
        with open(f"{folder}/entry_points.txt", "rb") as file:
            return f"[{GROUP}]".encode() in file.read()
    except OSError:  # the distribution has no entry points
        return False
