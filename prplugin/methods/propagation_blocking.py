"""Propagation blocking: contributions reach their rows through shared memory (Beamer 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import runtime
from prplugin.gpu.lazy import cupy
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_merge, gpu_pull
from prplugin.options import validate_int
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats, Integers

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

CHUNK = 8
"""Edges per chunk, the unit of transfer between the two orders: see blocks.cuh."""

SPAN = 3
"""Edges per span for each vertex of a tile, so that loading the tile is a small part of the memory traffic."""

LEAST_SPAN = 512
"""Least number of chunks per span: as many as a block processes at a time."""

STATIC = 8192
"""Bytes of shared memory reserved for the kernels' static arrays."""

memory = Memory(
    # Two 16-bit indices, an eighth of a 32-bit one, the contribution, and the normalized weight in both orders.
    edge=Size(4.5, real=1, normalized_weight=2),
    vertex=gpu_merge.VERTEX,
    many_vertex=gpu_merge.HISTORY_VERTEX,
    tile=MOST,
)


def unavailable_reason(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Return why the layout does not fit: GPU memory for the in-edges in two orders, shared memory for the tiles."""
    reason = gpu_pull.unavailable_reason(memory, adjacency, machine)
    if reason or adjacency is None:
        return reason
    most = _most()
    tiles = -(-adjacency.n // most)
    if 4 * (most + (CHUNK - 1) * min(tiles, most) + tiles) <= _shared_memory():  # to arrange a piece
        return None
    return f"{adjacency.n:,} vertices are too many for tiles of {most:,}, which is what this GPU's shared memory holds."


cost = gpu_pull.cost_of(
    35e-6, edge=5.3e-12, weighted_edge=1.2e-11, vertex=2.4e-11,
    layout=3.5e-4, layout_edge=5e-12, layout_vertex=5e-11,
)  # fmt: skip
"""Fitted to benchmarks/results/kernels.md."""


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
    starts_by_in_degree = True  # see docs/decisions/0009-propagation-blocking.md

    def __init__(
        self, adjacency: Adjacency, *, tile: int | None = None, piece: int | None = None, rows: int | None = None
    ) -> None:
        offsets = adjacency.csc.offsets[: None if rows is None else rows + 1]
        most, items = _most(), offsets.size - 1 + adjacency.m
        tile = most if tile is None else validate_int("tile", tile, multiple_of=32, at_most=most)
        grid = runtime.multiprocessors() * BLOCKS
        size = _even(items, most) if piece is None else validate_int("piece", piece, multiple_of=32, at_most=most)
        self._adjacency = adjacency
        csc = adjacency.csc
        self.pieces = gpu_merge.cut(offsets, adjacency.m, size, csc.indices.dtype)
        self._blocks = build_blocks(self.pieces, csc.indices, tile, grid, adjacency.n)
        self._values: Any = None
        self._row_spans = 0 if rows is None else self._blocks.row_spans
        self._next = cupy.full(1, self._row_spans, np.uint32)

    def kernel(self, dtype: DTypeLike) -> Any:
        return runtime.with_dynamic_smem(self._kernel("propagate", dtype), self.smem(dtype))

    def _kernel(self, name: str, dtype: Any) -> Any:
        return runtime.kernel(
            "methods/propagation_blocking.cu", name, index_t=self.pieces.cuts.dtype,
            offset_t=self.pieces.offsets.dtype, real_t=dtype, WEIGHTED=int(self._adjacency.weighted),
        )  # fmt: skip

    def smem(self, dtype: DTypeLike) -> int:
        real = int(np.dtype(dtype).itemsize)
        # Including a dummy entry for padding.
        return max(self._blocks.tile * real, (self.pieces.size + 2) * (8 if self._adjacency.weighted else real))

    def edges(self, dtype: DTypeLike) -> tuple[Any, ...]:
        blocks, normalized_weights = self._blocks, None
        self._values = None  # frees its memory first
        self._values = cupy.empty(blocks.piece_edges.size, dtype)
        if self._adjacency.weighted:
            normalized_weights = blocks.arranged(gpu_pull.csc_layout(self._adjacency).normalized_weights.of(dtype))
        return (
            self._adjacency.n, np.int32(blocks.tile), np.uint32(len(blocks.bounds)), blocks.bounds, blocks.tile_sources,
            blocks.chunk_by_piece, blocks.begins, blocks.piece_edges, normalized_weights, self._values, self._next,
            np.uint32(self._row_spans),
        )  # fmt: skip

    def begin(self, contributions: Array) -> None:
        """Start the part of an iteration that needs only the contributions of rows; others may not have arrived yet."""
        if not self._row_spans:
            return
        blocks, grid = self._blocks, min(self._row_spans, BLOCKS * runtime.multiprocessors())
        smem = blocks.tile * contributions.itemsize
        kernel = runtime.with_dynamic_smem(self._kernel("scatter_row_spans", contributions.dtype), smem)
        runtime.launch(
            kernel, grid, self.threads, self._adjacency.n, np.int32(blocks.tile), np.uint32(self._row_spans),
            blocks.bounds, blocks.tile_sources, blocks.chunk_by_piece, self._values, contributions, smem=smem,
        )  # fmt: skip


def _most() -> int:
    """Return the number of float64 that a block's shared memory holds, a multiple of 32, at most MOST."""
    return min(MOST, _shared_memory() // 8 // 32 * 32)


def _even(items: int, most: int) -> int:
    """Return the piece size, a multiple of 32, for which all blocks of the largest grid get equally many pieces."""
    size = gpu_merge.even_size(items, runtime.multiprocessors() * BLOCKS, LEAST, most)
    return min(most, -(-size // 32) * 32)


# --- the layout, from tiles of sources to pieces of rows: see blocks.cuh --------------------------------------------


@dataclass(frozen=True, slots=True)
class Blocks:
    """The edges in both orders, and spans of them: see blocks.cuh."""

    pieces: gpu_merge.Pieces
    tile: int  # vertices per tile
    bounds: Integers  # tile, first chunk and end of each span, by tile
    row_spans: int  # number of leading spans whose tiles have only sources that are rows themselves
    tile_sources: Integers
    chunk_by_piece: Integers
    begins: Integers
    piece_edges: Integers

    def arranged(self, normalized_weights: Floats) -> Floats:
        """Permute normalized weights from the order of rows to the order of chunks within each piece."""
        pieces = self.pieces
        arranged: Floats = cupy.empty(self.piece_edges.size, normalized_weights.dtype)
        kernel = _layout_kernel("arrange_normalized_weights", pieces, self.tile, arranged.dtype)
        arrays = pieces.cuts, self.begins, self.piece_edges, normalized_weights, arranged
        runtime.launch(kernel, pieces.count, 1024, pieces.n + pieces.m, pieces.size, *arrays)
        return arranged


def build_blocks(
    pieces: gpu_merge.Pieces, sources: Integers, tile: int, blocks: int = 1, columns: int | None = None
) -> Blocks:
    """Return the edges of pieces in both orders, for a grid of at most `blocks` thread blocks.

    `columns`: number of vertices that may be sources; the number of rows if not given.
    """
    count = pieces.count
    tiles = -(-(pieces.n if columns is None else columns) // tile)
    common = pieces.n + pieces.m, pieces.size, count, np.int32(tiles), pieces.cuts, sources
    chunks, ends = (cupy.empty((tiles, count), dtype) for dtype in (np.uint16, np.uint32))
    begins, tile_ends = cupy.empty(count + 1, np.uint32), cupy.zeros(tiles + 2, np.uint32)
    kernel = runtime.with_dynamic_smem(_layout_kernel("count", pieces, tile), 4 * tiles)
    runtime.launch(kernel, count, 1024, *common, chunks, begins, smem=4 * tiles)
    kernel = _layout_kernel("add_up", pieces, tile)
    runtime.launch(kernel, tiles + 1, 1024, count, np.int32(tiles), chunks, ends, begins, tile_ends)
    # One transfer for all that the host needs.
    *of_tiles, longest, _ = tile_ends.get().tolist()

    of_tile = cupy.empty(of_tiles[-1] * CHUNK, np.uint16)
    piece_edges = cupy.empty(of_tiles[-1] * CHUNK, np.uint16)
    chunk_by_piece = cupy.empty(of_tiles[-1], np.uint32)
    smem = 4 * (longest * CHUNK + tiles)
    kernel = runtime.with_dynamic_smem(_layout_kernel("arrange", pieces, tile), smem)
    orders = of_tile, chunk_by_piece, piece_edges
    runtime.launch(kernel, count, 1024, *common, chunks, ends, tile_ends, begins, *orders, smem=smem)
    # With few chunks, one span per block.
    most = min(SPAN * tile // CHUNK, max(LEAST_SPAN, of_tiles[-1] // max(1, blocks - tiles)))
    bounds = spans(np.diff(np.array(of_tiles, np.int64), prepend=0), most)
    row_spans = int(np.count_nonzero((bounds[:, 0] + 1) * tile <= pieces.n))
    return Blocks(pieces, tile, cupy.asarray(bounds), row_spans, of_tile, chunk_by_piece, begins, piece_edges)


def spans(chunks: Integers, most: int) -> Integers:
    """Split each tile's chunks into equal spans of at most `most`; return tile, first chunk and end of each span."""
    parts = -(-chunks // most)
    length = -(-chunks // np.maximum(parts, 1))
    parts = -(-chunks // np.maximum(length, 1))  # rounding up may leave fewer parts
    tiles = np.repeat(np.arange(chunks.size), parts)
    nth = np.arange(tiles.size) - np.repeat(np.cumsum(parts) - parts, parts)
    ends = np.cumsum(chunks)
    first = (ends - chunks)[tiles] + nth * length[tiles]
    end = np.minimum(first + length[tiles], ends[tiles])
    return np.stack([tiles, first, end], axis=1)


def _shared_memory() -> int:
    """Return the bytes of dynamic shared memory that a block of the current GPU can use."""
    return runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC


def _layout_kernel(name: str, pieces: gpu_merge.Pieces, tile: int, real: DTypeLike = np.float32) -> Any:
    types = {"index_t": pieces.cuts.dtype, "real_t": np.dtype(real)}
    return runtime.kernel("methods/propagation_blocking_layout.cu", name, **types, TILE=tile)
