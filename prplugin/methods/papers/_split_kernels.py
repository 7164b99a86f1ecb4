"""The kernels of `cpu-split` on the GPU: cpu_split.cu, how it is specialised, and how it is launched."""

from __future__ import annotations

from typing import Any

from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency

__all__ = ["FILE", "WARP", "launch", "types"]

FILE = "methods/papers/cpu_split.cu"
THREADS = 256
WARP = 32


def types(adjacency: Adjacency) -> dict[str, str | int]:
    """Give the macros of the kernels, all but the type of contributions."""
    offsets, sources, weights = adjacency.csc
    return {
        "index_t": runtime.ctype(sources.dtype),
        "offset_t": runtime.ctype(offsets.dtype),
        "WEIGHTED": int(weights is not None),
    }


def launch(kernel: Any, count: int, *arguments: Any, threads_each: int = 1) -> None:
    """Launch a kernel over so many things, with a thread or more for each; their count is its first argument."""
    kernel((runtime.blocks_for(threads_each * count, THREADS),), (THREADS,), (count, *arguments))
