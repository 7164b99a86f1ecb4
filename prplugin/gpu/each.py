"""Launch configuration of the kernels that use each.cuh."""

from __future__ import annotations

from prplugin.gpu import runtime

__all__ = ["THREADS", "blocks_for_each"]

THREADS = 256

LOADS_IN_FLIGHT = 8
"""Items per thread, as in each.cuh."""


def blocks_for_each(count: int) -> int:
    """Return the number of blocks of THREADS threads for `count` items, LOADS_IN_FLIGHT per thread."""
    return runtime.blocks_for(count, THREADS * LOADS_IN_FLIGHT)
