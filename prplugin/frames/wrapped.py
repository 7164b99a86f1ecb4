"""Base class for the vertices of adapters that delegate to another adapter."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from prplugin.frames.base import Labels
from prplugin.types.edges import Integers

__all__ = ["DelegatedVertices"]


class DelegatedVertices:
    """Vertices that delegate to those of another adapter, with conversion of arguments and results."""

    inner: Any  # `Vertices` of the other adapter

    def convert(self, given: Any, what: str) -> Any:
        """Convert an argument given by vertex for the other adapter."""
        return given

    def wrap(self, frame: Any) -> Any:
        """Convert a frame or a column of the other adapter to the library of this one."""
        return frame

    def active(self) -> AbstractContextManager[Any]:
        """Return the context manager in which methods of the other adapter are called."""
        return nullcontext()

    def __len__(self) -> int:
        return len(self.inner)

    def plain_ids(self, rows: Integers) -> list[Any]:
        return list(self._call("plain_ids", rows))

    def read_values(self, given: Any, what: str) -> Any:
        return self._call("read_values", self.convert(given, what), what)

    def read_seeds(self, given: Any, what: str) -> Any:
        several = type(given) in (list, tuple)
        given = type(given)(self.convert(one, what) for one in given) if several else self.convert(given, what)
        return self._call("read_seeds", given, what)

    def read_positions(self, given: Any, what: str) -> Any:
        return self._call("read_positions", self.convert(given, what), what)

    def write(self, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> Any:
        return self.wrap(self._call("write", ranks, rows, labels))

    def write_ids(self) -> Any:
        return self.wrap(self._call("write_ids"))

    def _call(self, method: str, *arguments: Any) -> Any:
        with self.active():
            return getattr(self.inner, method)(*arguments)
