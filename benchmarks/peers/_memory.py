"""The most memory that a call holds beside what there was before it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pyarrow as pa

__all__ = ["peak_bytes"]

_pools: list[pa.MemoryPool] = []
"""Kept, for what they gave may outlive the call."""


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
