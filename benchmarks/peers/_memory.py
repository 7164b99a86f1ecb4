"""The most memory that a call holds beside what there was before it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks.peers._fit import Fitted, Posed

__all__ = ["COLUMNS", "TITLE", "WHAT", "peak_bytes", "rows"]

WHAT = "memory"
TITLE = "Memory, from frame to frame"
COLUMNS = (
    "graph",
    "edges",
    "vertices",
    "error asked",
    "method",
    "columns MB",
    "prplugin peak MB",
    "limit MB",
    "of limit",
)

_pools: list[pa.MemoryPool] = []
"""Kept, for what they gave may outlive the call."""


def rows(here: Posed, mine: Fitted) -> Iterator[dict[str, Any]]:
    """Measure ours at each error asked."""
    n, columns = len(here.exact), int(here.frame.memory_usage(index=False).sum())
    limit = 2 * columns + 40 * n
    for asked, fit in mine.fits.items():
        peak = peak_bytes(partial(mine.side.frame_to_frame, here.frame, here.case.alpha, fit.tol))
        yield {
            "vertices": n,
            "error asked": asked,
            "columns MB": columns / 1e6,
            "prplugin peak MB": peak / 1e6,
            "limit MB": limit / 1e6,
            "of limit": peak / limit,
        }


def peak_bytes(do: Callable[[], object]) -> int:
    """Do it once, and give the most bytes of Python and NumPy, and beside them the most of Arrow.

    The two need not be held at the same time: the sum is at least the true peak of both.
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
