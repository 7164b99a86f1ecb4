"""Contributions copied into edge order and summed in equal shares (Kumar 2012, Cell); `piece_bytes=`, `threads=`."""

from __future__ import annotations

from typing import Any

from prplugin import cuda
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.edges import Floats
from prplugin.graph.footprint import Counts, Footprint
from prplugin.machine import Machine
from prplugin.methods import Step, _device, _pieces
from prplugin.options import whole
from prplugin.problem import Problem

name = "expanded"
runs_on = "gpu"

TERM = 8
"""Bytes of a term in shared memory, a double whatever the type of contributions."""

LEAST = 32 * TERM
"""A piece has whole warps of edges."""

MOST = 32_768
"""Every GPU gives a block 48 KB of shared memory unasked."""


def unfit(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Need a GPU, and room for the in-edges and as many contributions."""
    return _device.unfit(adjacency, machine, footprint)


def footprint(graph: Counts, machine: Machine) -> Footprint:
    """Count the bytes of the in-edges, of a contribution for each, of their runs, and of the vectors."""
    there, so_far = _device.csc_footprint(graph)
    n, m = there.n, there.m
    so_far = so_far.then("device", (there.index + there.offset) * n, 8 * n)
    so_far = so_far.then("device", _pieces.BYTES * (m // _pieces.SIZE + 1) + there.real * m)
    return _device.step_footprint(graph, so_far)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate a ranking, as fitted to benchmarks/results/kernels.md."""
    return _device.ITERATIONS * (83e-6 + 1.2e-11 * adjacency.m + 5.3e-11 * adjacency.n)


def prepare(problem: Problem, machine: Machine, *, piece_bytes: int = _pieces.SIZE * TERM, threads: int = 128) -> Step:
    """Sort the edges by target and cut them into pieces.

    Parameters
    ----------
    piece_bytes : int, default 16384
        Shared memory for the terms of a piece, 8 bytes an edge: a multiple of 256, 32768 at most. 16 KB was the most
        that one transfer brought to a local store of Kumar's Cell processor.
    threads : int, default 128
        Threads a block, a multiple of 32, 1024 at most.
    """
    pull = ExpandedPull(problem.adjacency.on("device"), piece_bytes=piece_bytes, threads=threads)
    return _device.DeviceStep(problem, pull)


class ExpandedPull:
    """Copies contributions into the order of the edges, and sums runs of them without a gather."""

    # A term goes through 128 additions and a warp's, and a partial sum through one for each 128 of its row's and a
    # block's, all compensated: far fewer than the 2**26 that this holds for, up to 2**37 edges in the least pieces.
    chain = _device.ROW_CHAIN

    def __init__(self, adjacency: Adjacency, *, piece_bytes: int = _pieces.SIZE * TERM, threads: int = 128) -> None:
        size = whole("piece_bytes", piece_bytes, multiple_of=LEAST, at_most=MOST) // TERM
        self.threads = whole("threads", threads, multiple_of=32, at_most=1024)
        import cupy  # there: `unfit` has looked

        self._layout = _device.csc_layout(adjacency)
        self._pieces = _pieces.cut(adjacency.csc.offsets, size, self._layout.sources.dtype)
        self._partials = cupy.empty((self._pieces.count, 4))
        self._expanded: Any = None

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        pulled.fill(0.0)  # rows without edges are in no piece
        pieces = self._pieces
        if not pieces.count:
            return
        size, rows, starts, heads = pieces.size, pieces.rows, pieces.starts, pieces.heads
        expanded = self._room_for(contributions.dtype)
        m, layout, types = expanded.size, self._layout, _device.pull_types(self._layout, contributions.dtype)
        expand = cuda.kernel("methods/expanded.cu", "expand", **types)
        expand((cuda.blocks_for(m, 256),), (256,), (m, layout.sources, contributions, expanded))
        shares = layout.shares.of(contributions.dtype)
        sum_pieces = cuda.kernel("methods/expanded.cu", "sum_expanded", **types)
        sum_pieces(
            (pieces.count,),
            (self.threads,),
            (m, size, rows, starts, heads, expanded, shares, pulled, self._partials),
            shared_mem=size * TERM,
        )
        collect = cuda.kernel("methods/expanded.cu", "collect", **types)
        collect((pieces.count,), (_pieces.COLLECTORS,), (size, rows, starts, heads, self._partials, pulled))

    def _room_for(self, dtype: Any) -> Any:
        """Give the array of a contribution an edge; one type is held at a time."""
        import cupy

        if self._expanded is None or self._expanded.dtype != dtype:
            self._expanded = None  # before the next is allocated
            self._expanded = cupy.empty(self._layout.sources.size, dtype)
        return self._expanded
