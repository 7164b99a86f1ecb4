"""Adapter of cudf.pandas frames: proxies of a cuDF or a pandas frame.

The adapter of the wrapped frame reads it, and results are proxies again. Types that cuDF does not support, such as
objects, stay on the host, as in cudf.pandas.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from prplugin.frames import cudf, pandas
from prplugin.frames.columns import Columns, Frame, always, labelled
from prplugin.frames.vertices import Boundary, Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import is_a
from prplugin.types.edges import Coo, Grouped


@dataclass(eq=False, repr=False)
class Proxies(Boundary):
    """Converts arguments from proxies, and results to proxies."""

    on_gpu: bool  # whether the cuDF adapter reads the wrapped frame
    proxied: bool  # whether results are proxies, because the edges were

    def convert(self, given: object, what: str) -> Any:
        return unwrap(given, on_gpu=self.on_gpu)

    def wrap(self, frame: object) -> Any:
        return sys.modules["cudf.pandas"].as_proxy_object(frame) if self.proxied else frame

    def active(self) -> AbstractContextManager[object]:
        return _proxies_disabled()


def accepts(frame: object) -> bool:
    """Return whether a frame is a proxy, or a frame of cuDF or pandas while cudf.pandas is in use.

    Also plain frames: other arguments may be proxies, and pandas objects created by adapters would be.
    """
    frames = is_a(frame, "cudf", "DataFrame") or is_a(frame, "pandas", "DataFrame")
    return "cudf.pandas" in sys.modules and frames


memory_space_of = always("device")
open_frame = labelled


def read(frame: Frame, columns: Columns, how: EdgeOptions, **options: bool) -> tuple[Coo | Grouped, Vertices]:
    """Unwrap a proxy, and read the frame with its adapter."""
    proxied = _is_proxy(frame)
    if proxied:
        positions, columns = columns.in_use()  # other columns may be of types that cuDF does not support
        frame = unwrap(frame.iloc[:, positions], on_gpu=True)
    on_gpu = is_a(frame, "cudf", "DataFrame")
    how = replace(how, vertices=unwrap(how.vertices, on_gpu=on_gpu))
    with _proxies_disabled():
        edges, known = (cudf if on_gpu else pandas).read(frame, columns, how, **options)
    return edges, replace(known, boundary=Proxies(on_gpu, proxied))


def _is_proxy(given: object) -> bool:
    return sys.modules["cudf.pandas"].is_proxy_object(given)


def unwrap(given: Any, *, on_gpu: bool) -> Any:
    """Return the object in a proxy: a cuDF object if `on_gpu` is set and cuDF supports it, else a pandas object."""
    if type(given) in (list, tuple):
        return type(given)(unwrap(item, on_gpu=on_gpu) for item in given)
    if type(given) is dict:
        return {unwrap(key, on_gpu=on_gpu): unwrap(value, on_gpu=on_gpu) for key, value in given.items()}
    if not _is_proxy(given):
        return given
    if on_gpu:
        try:
            return given.as_gpu_object()
        except (TypeError, ValueError, NotImplementedError, OverflowError):
            pass  # cuDF does not support the type
    return given.as_cpu_object()


def _proxies_disabled() -> AbstractContextManager[object]:
    from cudf.pandas.module_accelerator import disable_module_accelerator  # loaded with cudf.pandas

    return disable_module_accelerator()
