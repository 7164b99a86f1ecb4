"""Contributions copied to edge order, summed in equal pieces (Kumar 2012, Cell)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Array, Edges, Floats, Integers, Machine, Problem, Rate, Step
from prplugin.methods.engines import gpu_pull
from prplugin.options import validate_int
from prplugin.types.arrays import namespace
from prplugin.types.edges import Csc

name = "expanded"
runs_on = "gpu"

SIZE = 2048  # edges per piece: 16 KB of terms, the size of a DMA transfer to a local store of the Cell processor
PIECE_BYTES = 40  # bytes per piece on the GPU: two compensated sums and a head
TERM = 8  # bytes of a term in shared memory: float64 for any type of contributions
LEAST = 32 * TERM  # a piece is a multiple of 32 edges
MOST = 32_768  # limit of a piece in bytes; every GPU allows a block 48 KB of shared memory without opt-in

memory = gpu_pull.MEMORY._replace(
    step=Rate(PIECE_BYTES / SIZE + 4, 4, 36),  # contributions in edge order, and runs of edges
    float64=Rate(4, 4, 4),
)
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(83e-6, edge=1.2e-11, vertex=5.3e-11)  # fitted to benchmarks/results/kernels.md


def prepare(problem: Problem, machine: Machine, *, piece_bytes: int = SIZE * TERM, threads: int = 128) -> Step:
    """Group the edges by target, and partition them into pieces.

    Parameters
    ----------
    piece_bytes : int, default 16384
        Shared memory for the terms of a piece, 8 bytes per edge: a multiple of 256, 32768 at most. 16 KB was the limit
        of a transfer to a local store of Kumar's Cell processor.
    threads : int, default 128
        Threads per block, a multiple of 32, 1024 at most.
    """
    pull = ExpandedPull(problem.adjacency.on("device"), piece_bytes=piece_bytes, threads=threads)
    return gpu_pull.DeviceStep(problem, pull)


class ExpandedPull:
    """Copies contributions to edge order, and sums runs of them without a gather."""

    # A term goes through 128 additions and those of a warp; a partial sum through one per 512 edges of its row, and
    # those of a warp. All are compensated, and fewer than the 2**26 of the bound, up to 2**34 edges in the least
    # pieces.
    rounding_depth = gpu_pull.ROW_DEPTH

    def __init__(self, adjacency: Edges, *, piece_bytes: int = SIZE * TERM, threads: int = 128) -> None:
        size = validate_int("piece_bytes", piece_bytes, multiple_of=LEAST, at_most=MOST) // TERM
        self.threads = validate_int("threads", threads, multiple_of=32, at_most=1024)
        self._layout = gpu_pull.csc_layout(adjacency)
        self._pieces = cut(adjacency.get(Csc).offsets, size, self._layout.sources.dtype)
        self._partials = cupy.empty((self._pieces.heads.size - 1, 4))
        self._expanded: Array | None = None

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        row_sums.fill(0.0)  # rows without edges are in no piece
        pieces, count = self._pieces, len(self._partials)
        if not count:
            return
        if self._expanded is None or self._expanded.dtype != contributions.dtype:
            self._expanded = None  # frees its memory first
            self._expanded = cupy.empty(self._layout.sources.size, contributions.dtype)
        expanded, layout, m = self._expanded, self._layout, self._expanded.size
        types = gpu_pull.pull_types(layout, contributions.dtype)
        expand, sum_pieces, collect = (
            runtime.kernel("papers/expanded.cu", name, **types) for name in ("expand", "sum_expanded", "collect")
        )
        runtime.launch(expand, runtime.blocks_for(m, 256), 256, m, layout.sources, contributions, expanded)
        terms = expanded, layout.normalized_weights.of(contributions.dtype)
        runtime.launch(
            sum_pieces, count, self.threads, m, *pieces, *terms, row_sums, self._partials, smem=pieces.size * TERM
        )
        gpu_pull.launch_collect(collect, count, *pieces, self._partials, row_sums)


class ExpandedPieces(NamedTuple):
    """Runs of edges, one per non-empty row, and the boundaries of pieces among them: see pieces.cuh."""

    size: int  # edges per piece; the last may have fewer
    rows: Integers  # the row of each run
    starts: Integers  # begin of each run, then m twice: the end of the last run, and that of an empty run after all
    heads: Integers  # the run of the first edge of each piece, then the empty run


def cut(offsets: Integers, size: int, index: DTypeLike) -> ExpandedPieces:
    """Partition the edges of compressed rows into pieces of `size`; row positions are of type `index`."""
    xp = namespace(offsets)
    rows = xp.flatnonzero(offsets[1:] > offsets[:-1])
    starts = xp.concatenate((offsets[rows], offsets[-1:], offsets[-1:]))
    cuts = xp.arange(0, int(offsets[-1]), size, dtype=starts.dtype)
    heads = xp.full(cuts.size + 1, rows.size, np.int64)
    heads[:-1] = xp.searchsorted(starts[:-2], cuts, side="right") - 1
    return ExpandedPieces(size, rows.astype(index), starts, heads)
