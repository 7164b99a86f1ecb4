"""A limit of the GPU memory in which prplugin allocates."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager


@contextmanager
def limited_memory(size):
    """Limit what is allocated within to `size` bytes: by RMM if it is loaded, else by CuPy's pool."""
    gc.collect()
    if (rmm := sys.modules.get("rmm")) is not None:
        upstream = rmm.mr.get_current_device_resource()
        rmm.mr.set_current_device_resource(rmm.mr.LimitingResourceAdaptor(upstream, size))
        try:
            yield
        finally:
            gc.collect()
            rmm.mr.set_current_device_resource(upstream)
        return
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + size)
    try:
        yield
    finally:
        pool.set_limit(size=0)
