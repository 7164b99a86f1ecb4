"""How kernels are launched whose threads go through items with each.cuh."""

from __future__ import annotations

from prplugin.gpu import runtime

__all__ = ["THREADS", "blocks_for_each"]

THREADS = 256

AT_A_TIME = 8
"""Items that a thread takes at once: that of each.cuh."""


def blocks_for_each(count: int) -> int:
    """Give the blocks of THREADS threads that so many items need, AT_A_TIME a thread."""
    return runtime.blocks_for(count, THREADS * AT_A_TIME)
