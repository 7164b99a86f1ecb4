"""A limit of the GPU memory in which prplugin allocates."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def limited_memory(size: int = 2**40) -> Iterator[Callable[[], int]]:
    """Limit further allocations, by RMM if loaded, else by CuPy, and yield a function that returns the bytes in use."""
    gc.collect()
    rmm = sys.modules.get("rmm")
    if rmm is not None:
        before = rmm.mr.get_current_device_resource()
        limit = rmm.mr.LimitingResourceAdaptor(before, size)
        rmm.mr.set_current_device_resource(limit)
        try:
            yield limit.get_allocated_bytes
        finally:
            gc.collect()
            rmm.mr.set_current_device_resource(before)
        return
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + size)
    try:
        yield pool.used_bytes
    finally:
        pool.set_limit(size=before)
