"""Frames of pandas under cudf.pandas: proxies of a cuDF or a pandas frame, whichever holds the data at the time.

They are taken apart at the door, go to the adapter of what they hold, and the result is a proxy again. What cuDF cannot
hold, objects for instance, cudf.pandas keeps on the host; so does prplugin.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from prplugin.frames import cudf, pandas
from prplugin.frames.base import Labels, SeedValues
from prplugin.frames.columns import Columns
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

__all__ = [
    "Vertices",
    "accepts",
    "opened",
    "place",
    "read",
    "read_positions",
    "read_seeds",
    "read_values",
    "write",
    "write_ids",
]

place = "device"


@dataclass(frozen=True)
class Vertices:
    """The vertices as another adapter has them.

    Attributes
    ----------
    adapter : module
        That of the frame in the proxy.
    vertices : its `Vertices`
    proxied : bool
        Whether the result is to be a proxy.
    """

    adapter: ModuleType
    vertices: Any
    proxied: bool

    def __len__(self) -> int:
        return len(self.vertices)

    def described(self, rows: Integers) -> list[str]:
        """Spell out the ids of some vertices for a message."""
        with _without_proxies():
            described: list[str] = self.vertices.described(rows)
            return described


def accepts(frame: object) -> bool:
    """Say whether this is a frame of cuDF, pandas or cudf.pandas, where the last is loaded.

    All three, because their arguments may be proxies, and because what the other adapters take for pandas would be
    proxies, too.
    """
    return "cudf.pandas" in sys.modules and (cudf.accepts(frame) or pandas.accepts(frame))


def opened(frame: Any) -> tuple[Any, list[Hashable]]:
    """Give the frame, and the names of its columns."""
    return frame, list(frame.columns)


def read(
    frame: Any, columns: Columns, vertices: object, *, by_row: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Read the frame in the proxy, as its adapter does."""
    proxied = _is_proxy(frame)
    if proxied:
        positions, columns = columns.alone()  # which may be all that the GPU can hold of it
        frame = _unwrapped(frame.iloc[:, positions], cudf)
    adapter = cudf if cudf.accepts(frame) else pandas
    vertices = _unwrapped(vertices, adapter)
    with _without_proxies():
        edges, known = adapter.read(frame, columns, vertices, by_row=by_row, lasting=lasting)
    return edges, Vertices(adapter, known, proxied)


def read_values(given: object, vertices: Vertices, what: str) -> Floats:
    """Spread values given for some vertices over all of them, as the adapter of the frame does."""
    given = _unwrapped(given, vertices.adapter)
    with _without_proxies():
        values: Floats = vertices.adapter.read_values(given, vertices.vertices, what)
        return values


def read_seeds(given: object, vertices: Vertices, what: str) -> SeedValues:
    """Return the distributions of many seeds, as the adapter of the frame does."""
    given = _unwrapped(given, vertices.adapter)
    with _without_proxies():
        seeds: SeedValues = vertices.adapter.read_seeds(given, vertices.vertices, what)
        return seeds


def read_positions(given: object, vertices: Vertices, what: str) -> Integers:
    """Return the positions of the vertices asked for, as the adapter of the frame does."""
    given = _unwrapped(given, vertices.adapter)
    with _without_proxies():
        rows: Integers = vertices.adapter.read_positions(given, vertices.vertices, what)
        return rows


def write(vertices: Vertices, ranks: np.ndarray, rows: Integers | None, labels: Labels | None = None) -> Any:
    """Put the ranks of all vertices, or of those at `rows`, in a frame; in a proxy, if the edges were."""
    with _without_proxies():
        frame = vertices.adapter.write(vertices.vertices, ranks, rows, labels)
    return sys.modules["cudf.pandas"].as_proxy_object(frame) if vertices.proxied else frame


def write_ids(vertices: Vertices) -> Any:
    """Return the vertices as a Series or a frame; as a proxy, if the edges were one."""
    with _without_proxies():
        ids = vertices.adapter.write_ids(vertices.vertices)
    return sys.modules["cudf.pandas"].as_proxy_object(ids) if vertices.proxied else ids


def _is_proxy(given: object) -> bool:
    proxied: bool = sys.modules["cudf.pandas"].is_proxy_object(given)
    return proxied


def _unwrapped(given: Any, adapter: ModuleType) -> Any:
    """Take what is in a proxy, on the GPU for cuDF if it can be there, else on the host."""
    if isinstance(given, (list, tuple)) and type(given) in (list, tuple):
        return type(given)(_unwrapped(item, adapter) for item in given)
    if type(given) is dict:
        return {_unwrapped(key, adapter): _unwrapped(value, adapter) for key, value in given.items()}
    if not _is_proxy(given):
        return given
    if adapter is cudf:
        try:
            return given.as_gpu_object()
        except (TypeError, ValueError, NotImplementedError, OverflowError):
            pass  # of a type that the GPU does not have
    return given.as_cpu_object()


@contextmanager
def _without_proxies() -> Iterator[None]:
    """Let pandas be pandas for the adapters, which would otherwise make proxies of their own."""
    from cudf.pandas.module_accelerator import disable_module_accelerator  # loaded with cudf.pandas

    with disable_module_accelerator():
        yield
