"""Adapter of cudf.pandas frames: proxies of a cuDF or a pandas frame.

The adapter of the wrapped frame reads it, and results are proxies again. Types that cuDF does not support, such as
objects, stay on the host, as in cudf.pandas.
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
    """Vertices of the adapter of the wrapped frame.

    Attributes
    ----------
    inner : Vertices
        Vertices of the cuDF or the pandas adapter.
    on_gpu : bool
        Whether that is the cuDF adapter.
    proxied : bool
        Whether results are proxies, because the edges were.
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
    """Return whether cudf.pandas is loaded, and this is a frame of cuDF, pandas or cudf.pandas.

    Plain cuDF and pandas frames are included, since other arguments may be proxies, and since pandas objects that the
    adapters create would be proxies.
    """
    return "cudf.pandas" in sys.modules and (cudf.accepts(frame) or pandas.accepts(frame))


def read(frame: Any, columns: Columns, vertices: object, **how: bool) -> tuple[Edges | GroupedEdges, Vertices]:
    """Unwrap a proxy, and read the frame with its adapter."""
    proxied = _is_proxy(frame)
    if proxied:
        positions, columns = columns.alone()  # other columns may be of types that cuDF does not support
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
    """Return the object in a proxy: a cuDF object if `on_gpu` is set and cuDF supports it, else a pandas object."""
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
            pass  # cuDF does not support the type
    return given.as_cpu_object()


def _without_proxies() -> AbstractContextManager[Any]:
    """Return the context manager in which pandas creates plain objects, not proxies."""
    from cudf.pandas.module_accelerator import disable_module_accelerator  # loaded with cudf.pandas

    context: AbstractContextManager[Any] = disable_module_accelerator()
    return context
