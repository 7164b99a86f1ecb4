"""The memory space that a call reads files and lazy frames to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec

from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

memory_space: ContextVar[MemorySpace | None] = ContextVar("memory_space", default=None)


@contextmanager
def reading_to(wanted: MemorySpace | None) -> Iterator[None]:
    """Read files within the block to one memory space; None: to that of the GPU if that takes less time."""
    token = memory_space.set(wanted)
    try:
        yield
    finally:
        memory_space.reset(token)


def polars_engine_unavailable() -> str | None:
    """Return why polars collects a lazy frame by another engine than that of the GPU, or None.

    The order of rows and the last bits of sums may be those of the engine, so "auto", which may be given with or
    without cuDF loaded, does not choose it. What it cannot run, polars collects on the host.
    """
    if memory_space.get() != "device":
        return "the call names no method of the GPU"
    if os.environ.get("POLARS_ENGINE_AFFINITY", "auto") != "auto":
        return "polars is configured to use another one, or that already"
    return "cudf-polars is not installed" if find_spec("cudf_polars") is None else runtime.unavailable_reason()
