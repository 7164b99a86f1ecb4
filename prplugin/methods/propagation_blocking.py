"""Propagation blocking: contributions reach their rows through shared memory (Beamer 2017); `tile=`, `piece=`."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import blocks, gpu_merge, gpu_pull
from prplugin.options import validate_int

name = "propagation-blocking"
runs_on = "gpu"

MOST = 24_000
"""Vertices per tile, and rows plus edges per piece, at most.

As float64 they fill a block's shared memory on an H100. As float32 two blocks fit, and leave 60 KB of L1 cache.
"""

LEAST = 2048
"""Least rows plus edges per piece: with smaller pieces, more blocks cost more than they save."""

BLOCKS = 2
"""Blocks per multiprocessor at once, as in the launch bounds of the kernel."""

memory = Memory(
    # Two 16-bit indices, an eighth of a 32-bit one, the contribution, and the normalized weight in both orders.
    edge=Size(4.5, real=1, normalized_weight=2),
    vertex=gpu_merge.VERTEX,
    many_vertex=Size(40),
    tile=MOST,
)


def unavailable_reason(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Return why the layout does not fit: GPU memory for the in-edges in two orders, shared memory for the tiles."""
    reason = gpu_pull.unavailable_reason(memory, adjacency, machine)
    if reason or adjacency is None:
        return reason
    most = _most()
    if blocks.room_for(most, -(-adjacency.n // most)) <= blocks.shared_memory():
        return None
    return f"{adjacency.n:,} vertices are too many for tiles of {most:,}, which is what this GPU's shared memory holds."


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate the layout and a ranking, fitted to benchmarks/results/kernels.md."""
    n, m = adjacency.n, adjacency.m
    an_edge = 1.2e-11 if adjacency.weighted else 5.3e-12
    layout = 3.5e-4 + 5e-12 * m + 5e-11 * n
    return layout + gpu_pull.ITERATIONS * (35e-6 + an_edge * m + 2.4e-11 * n)


def prepare(problem: Problem, machine: Machine, *, tile: int | None = None, piece: int | None = None) -> Step:
    """Group the edges by target, partition rows and edges into pieces, and order each piece by tile of the source.

    Parameters
    ----------
    tile : int, optional
        Vertices whose contributions a block keeps in shared memory: a multiple of 32, at most 24000, and less on GPUs
        with less shared memory. The default is the maximum.
    piece : int, optional
        Rows plus edges whose terms a block keeps in shared memory, with the same limits. By default, all blocks of the
        largest grid get equally many pieces.
    """
    problem = problem.on("device")
    return gpu_merge.MergeStep(problem, BlockedPlan(problem.adjacency, tile=tile, piece=piece))


class BlockedPlan:
    """Reads contributions by tile, and terms by piece.

    `rows`: number of leading vertices that are rows; the others have no in-edges. All if not given.
    """

    threads = 512
    float32_is_faster = True

    def __init__(
        self, adjacency: Adjacency, *, tile: int | None = None, piece: int | None = None, rows: int | None = None
    ) -> None:
        offsets = gpu_merge.first_rows(adjacency, rows)
        most, items = _most(), offsets.size - 1 + adjacency.m
        tile = most if tile is None else validate_int("tile", tile, multiple_of=32, at_most=most)
        size = _even(items, most) if piece is None else validate_int("piece", piece, multiple_of=32, at_most=most)
        import cupy  # lazy import; availability was checked by `unavailable_reason`

        self._adjacency = adjacency
        csc = adjacency.csc
        self.pieces = gpu_merge.cut(offsets, adjacency.m, size, csc.indices.dtype)
        grid = runtime.multiprocessors() * BLOCKS
        self._blocks = blocks.lay_out(self.pieces, csc.indices, tile, grid, adjacency.n)
        self._values: Any = None
        self._early = 0 if rows is None else self._blocks.early
        self._next = cupy.full(1, self._early, np.uint32)

    def kernel(self, dtype: Any) -> Any:
        return runtime.with_dynamic_smem(self._kernel("propagate", dtype), self.room(dtype))

    def _kernel(self, name: str, dtype: Any) -> Any:
        return runtime.kernel(
            "methods/propagation_blocking.cu",
            name,
            index_t=runtime.ctype(self.pieces.cuts.dtype),
            offset_t=runtime.ctype(self.pieces.offsets.dtype),
            real_t=runtime.ctype(dtype),
            WEIGHTED=int(self._adjacency.weighted),
        )

    def room(self, dtype: Any) -> int:
        real = int(np.dtype(dtype).itemsize)
        # Including a dummy entry for padding.
        return max(self._blocks.tile * real, (self.pieces.size + 2) * (8 if self._adjacency.weighted else real))

    def edges(self, dtype: Any) -> tuple[Any, ...]:
        import cupy

        blocks, normalized_weights = self._blocks, None
        self._values = None  # frees its memory first
        self._values = cupy.empty(blocks.spots.size, dtype)
        if self._adjacency.weighted:
            normalized_weights = blocks.arranged(gpu_pull.csc_layout(self._adjacency).normalized_weights.of(dtype))
        return (
            self._adjacency.n, np.int32(blocks.tile), np.uint32(len(blocks.bounds)), blocks.bounds, blocks.locals,
            blocks.goals, blocks.begins, blocks.spots, normalized_weights, self._values, self._next,
            np.uint32(self._early),
        )  # fmt: skip

    def begin(self, contributions: Any) -> None:
        """Start the part of an iteration that needs only the contributions of rows; others may not have arrived yet."""
        if not self._early:
            return
        blocks = self._blocks
        launch = self._kernel("send_early", contributions.dtype)
        room = blocks.tile * contributions.itemsize
        runtime.with_dynamic_smem(launch, room)(
            (min(self._early, BLOCKS * runtime.multiprocessors()),),
            (self.threads,),
            (
                self._adjacency.n, np.int32(blocks.tile), np.uint32(self._early), blocks.bounds, blocks.locals,
                blocks.goals, self._values, contributions,
            ),
            shared_mem=room,
        )  # fmt: skip


def _most() -> int:
    """Return the number of float64 that a block's shared memory holds, a multiple of 32, at most MOST."""
    return min(MOST, blocks.shared_memory() // 8 // 32 * 32)


def _even(items: int, most: int) -> int:
    """Return the piece size, a multiple of 32, for which all blocks of the largest grid get equally many pieces."""
    size = gpu_merge.even_size(items, runtime.multiprocessors() * BLOCKS, LEAST, most)
    return min(most, -(-size // 32) * 32)
