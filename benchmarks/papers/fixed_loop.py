"""CUDA design 2 of Kumar, Sondhi and Mittal 2012 in the paper's form: a loop of fixed length, one host thread.

Rows are in the order of the vertices. All contributions are copied to the host, and one sum per row comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers import loops
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.methods.engines import gpu_pull
from prplugin.papers._host_rows import Recorder, unrecorded

__all__ = ["FixedLoopPull", "step_of"]

FILE = str(Path(__file__).with_name("fixed_loop.cu"))

THREADS = 256

UNROLL = 8
"""Turns of the unrolled loop, which the paper does not state: 1.6 to 1.9 times as fast with every edge on an H200."""


def step_of(problem: Problem, limits: Sequence[int]) -> gpu_pull.DeviceStep:
    """Return an iteration; equal blocks of vertices have one limit N each."""
    return gpu_pull.DeviceStep(problem, FixedLoopPull(problem.adjacency, limits))


class FixedLoopPull:
    """Row sums of a graph without weights: the first N in-edges on the GPU, the others by one thread of the host.

    The buffers are reused as in `HostPull`: none is overwritten while it is in use.
    """

    def __init__(self, adjacency: Adjacency, limits: Sequence[int]) -> None:
        import cupy  # lazy import: callers run on the GPU

        here, there = adjacency.on("host"), adjacency.on("device")
        self._offsets, self._sources, _ = there.csc
        self._host_offsets, self._host_sources, _ = here.csc
        self._n = adjacency.n
        self._rows_per_block = -(-adjacency.n // len(limits))
        longest = adjacency.largest_in_degree
        self._limits = np.minimum(np.asarray(limits, np.int64), longest)
        self._device_limits = cupy.asarray(self._limits)
        # Plain additions on the GPU and on the host, and one of both sums.
        self.rounding_depth = longest + 1
        self.tail_edges = int(tail_lengths(self._host_offsets, self._limits, self._rows_per_block).sum())
        self.span: Recorder = unrecorded
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._device_sums = cupy.empty(self._n)
        self._contributions: Any = None

    def __call__(self, contributions: Any, row_sums: Any) -> None:
        """Compute the sum of each row."""
        import cupy

        main = cupy.cuda.get_current_stream()
        if self.tail_edges:
            self._allocate(contributions.dtype)
            self._stream.wait_event(main.record())
            with self.span("down", "copy", self._stream):
                contributions.get(stream=self._stream, out=self._contributions, blocking=False)
        with self.span("heads", "GPU", main):
            launch = runtime.kernel(
                FILE, "fixed_loop", index_t=runtime.ctype(self._sources.dtype),
                offset_t=runtime.ctype(self._offsets.dtype), real_t=runtime.ctype(contributions.dtype), UNROLL=UNROLL,
            )  # fmt: skip
            launch(
                (runtime.blocks_for(self._n, THREADS),),
                (THREADS,),
                (
                    self._n, self._rows_per_block, self._device_limits, self._offsets, self._sources, contributions,
                    row_sums,
                ),
            )  # fmt: skip
        if not self.tail_edges:
            return
        self._stream.synchronize()
        with self.span("tails", "host", None):
            loops.sum_tails(
                self._rows_per_block, self._limits, self._host_offsets, self._host_sources, self._contributions,
                self._sums,
            )  # fmt: skip
        with self.span("up", "copy", self._stream):
            self._device_sums.set(self._sums, stream=self._stream)
        main.wait_event(self._stream.record())
        with self.span("add", "GPU", main):
            cupy.add(row_sums, self._device_sums, out=row_sums)

    def _allocate(self, dtype: Any) -> None:
        import cupyx

        if self._contributions is None or self._contributions.dtype != dtype:
            self._stream.synchronize()
            self._contributions, self._sums = cupyx.empty_pinned(self._n, dtype), cupyx.empty_pinned(self._n)


def tail_lengths(offsets: Any, limits: Any, rows_per_block: int) -> Any:
    """Return the number of in-edges of each row beyond the limit of its block."""
    degrees = np.diff(offsets)
    return np.maximum(degrees - limits[np.arange(degrees.size) // rows_per_block], 0)
