"""Peak memory of a call, in addition to what was allocated before it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks.peers._fit import Fitted, PreparedCase

WHAT = "memory"
TITLE = "Memory, frame to frame"
COLUMNS = (
    "graph",
    "edges",
    "vertices",
    "required error",
    "method",
    "columns MB",
    "prplugin peak MB",
    "limit MB",
    "of limit",
)

_pools: list[pa.MemoryPool] = []
"""Pools that stay alive, since buffers that they allocated may outlive the call."""


def rows(prepared: PreparedCase, own: Fitted) -> Iterator[dict[str, Any]]:
    """Measure prplugin at each required error."""
    n, columns = len(prepared.exact), int(prepared.frame.memory_usage(index=False).sum())
    limit = 2 * columns + 40 * n
    for asked, fit in own.fits.items():
        peak = peak_bytes(partial(own.library.frame_to_frame, prepared.frame, prepared.case.alpha, fit.tol))
        yield {
            "vertices": n,
            "required error": asked,
            "columns MB": columns / 1e6,
            "prplugin peak MB": peak / 1e6,
            "limit MB": limit / 1e6,
            "of limit": peak / limit,
        }


def peak_bytes(do: Callable[[], object]) -> int:
    """Run a call once and return its peak of bytes in Python and NumPy plus its peak in Arrow.

    The two peaks may occur at different times: the sum is an upper bound of the true peak.
    """
    before = pa.default_memory_pool()
    _pools.append(pa.proxy_memory_pool(before))
    pa.set_memory_pool(_pools[-1])
    tracemalloc.start()
    try:
        do()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    return peak + (_pools[-1].max_memory() or 0)
