"""Frames of pandas under cudf.pandas: proxies of a cuDF or a pandas frame, whichever holds the data at the time.

The adapter of what they hold reads them, and the result is a proxy again. What cuDF cannot hold, objects for instance,
cudf.pandas keeps on the host; so does prplugin.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from prplugin.frames import cudf, pandas
from prplugin.frames.base import opened
from prplugin.frames.columns import Columns
from prplugin.frames.wrapped import WrappedVertices
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges

__all__ = ["Vertices", "accepts", "memory_space", "opened", "read"]

memory_space: MemorySpace = "device"


@dataclass(frozen=True)
class Vertices(WrappedVertices):
    """The vertices as the adapter of the frame has them.

    Attributes
    ----------
    inner : vertices of the cuDF or pandas adapter
    on_gpu : bool
        Whether it is the cuDF adapter.
    proxied : bool
        Whether the result is a proxy, as the edges were.
    """

    inner: Any
    on_gpu: bool
    proxied: bool

    def convert(self, given: Any, what: str) -> Any:
        return _unwrapped(given, on_gpu=self.on_gpu)

    def wrap(self, frame: Any) -> Any:
        return sys.modules["cudf.pandas"].as_proxy_object(frame) if self.proxied else frame

    def active(self) -> AbstractContextManager[Any]:
        return _without_proxies()


def accepts(frame: object) -> bool:
    """Return whether this is a frame of cuDF, pandas or cudf.pandas, where the last is loaded.

    All three, because their arguments may be proxies, and because what the other adapters take for pandas would be
    proxies, too.
    """
    return "cudf.pandas" in sys.modules and (cudf.accepts(frame) or pandas.accepts(frame))


def read(frame: Any, columns: Columns, vertices: object, **how: bool) -> tuple[Edges | GroupedEdges, Vertices]:
    """Read the frame in the proxy, as its adapter does."""
    proxied = _is_proxy(frame)
    if proxied:
        positions, columns = columns.alone()  # which may be all that the GPU can hold of it
        frame = _unwrapped(frame.iloc[:, positions], on_gpu=True)
    on_gpu = cudf.accepts(frame)
    vertices = _unwrapped(vertices, on_gpu=on_gpu)
    with _without_proxies():
        edges, known = (cudf if on_gpu else pandas).read(frame, columns, vertices, **how)
    return edges, Vertices(known, on_gpu, proxied)


def _is_proxy(given: object) -> bool:
    proxied: bool = sys.modules["cudf.pandas"].is_proxy_object(given)
    return proxied


def _unwrapped(given: Any, *, on_gpu: bool) -> Any:
    """Return what is in a proxy: on the GPU if it is wanted there and can be, else on the host."""
    if type(given) in (list, tuple):
        return type(given)(_unwrapped(item, on_gpu=on_gpu) for item in given)
    if type(given) is dict:
        return {_unwrapped(key, on_gpu=on_gpu): _unwrapped(value, on_gpu=on_gpu) for key, value in given.items()}
    if not _is_proxy(given):
        return given
    if on_gpu:
        try:
            return given.as_gpu_object()
        except (TypeError, ValueError, NotImplementedError, OverflowError):
            pass  # of a type that the GPU does not have
    return given.as_cpu_object()


def _without_proxies() -> AbstractContextManager[Any]:
    """Return the context in which pandas makes no proxies, which the adapters would otherwise get."""
    from cudf.pandas.module_accelerator import disable_module_accelerator  # loaded with cudf.pandas

    context: AbstractContextManager[Any] = disable_module_accelerator()
    return context
