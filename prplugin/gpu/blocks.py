"""Edges in blocks, from tiles of sources to pieces of rows: see blocks.cuh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import cupy, runtime
from prplugin.types.edges import Floats, GroupedEdges, Integers, bits_of, index_dtype, offset_dtype

CHUNK = 8  # edges per chunk: see blocks.cuh
THREADS, COPIES, LANES = 1024, 4, 8  # as in blocks.cu
BLOCKS = 2  # blocks per multiprocessor
STATIC = 8192  # bytes of shared memory reserved for the kernels' static arrays

# Places per tile, and per piece, at most. As float64, and as sums of three words, they fit the shared memory of a block
# on an H100. As float32, and as sums of two words, two blocks fit, and leave 30 KB of L1 cache.
TILE, PIECE = 24_000, 12_000
PLACE_BYTES, SUM_BYTES = 8, 12

MOST_EDGES = 2**32  # padding included: kernels count edges in 32 bits


@dataclass(frozen=True, slots=True)
class Blocks:
    """The edges in both orders."""

    rows: int  # places of rows
    columns: int  # places of sources
    marks: Any  # which places have a vertex: see marks.cuh
    tile: int
    piece: int
    tile_begins: Integers  # chunks before each tile, and all, on the host
    piece_begins: Integers
    tile_sources: Integers
    chunk_by_piece: Integers
    piece_rows: Integers
    piece_edges: Integers | None  # by piece: position of the edge among those given, and their number for padding

    def arranged(self, normalized_weights: Floats) -> Floats:
        """Return the normalized weights of the edges given, by piece; padding has 0."""
        assert self.piece_edges is not None
        count, m = self.piece_edges.size, np.uint32(normalized_weights.size)
        arranged: Floats = cupy.empty(count, normalized_weights.dtype)
        kernel = _kernel("arrange_normalized_weights", self.tile, self.piece, real=arranged.dtype)
        grid = runtime.blocks_for_each(count), runtime.THREADS
        runtime.launch(kernel, *grid, count, m, self.piece_edges, normalized_weights, arranged)
        return arranged

    def out_degrees(self) -> Integers:
        """Count the edges from each place of a tile."""
        tiles = self.tile_begins.size - 1
        degrees: Integers = cupy.zeros(tiles * self.tile, np.int32)
        kernel, smem = _kernel("out_degrees", self.tile, self.piece), 4 * (self.tile + 1)
        _launch(kernel, _grid(), smem, np.int32(tiles), self._on_device(self.tile_begins), self.tile_sources, degrees)
        return degrees

    def endpoints(self, n: int) -> tuple[Integers, Integers]:
        """Return source and target of each edge and of padding, by position; the target of padding is n."""
        chunks, begins = self.chunk_by_piece.size, (self.piece_begins, self.tile_begins)
        sources, targets = (cupy.empty(CHUNK * chunks, np.int32) for _ in range(2))
        grid = runtime.blocks_for_each(chunks), runtime.THREADS
        runtime.launch(
            _kernel("endpoints", self.tile, self.piece), *grid, np.uint32(chunks),
            *(np.int32(groups.size - 1) for groups in begins), np.int32(n), self.marks,
            *map(self._on_device, begins), self.tile_sources, self.chunk_by_piece, self.piece_rows, sources, targets,
        )  # fmt: skip
        return sources, targets

    @staticmethod
    def _on_device(begins: Integers) -> Any:
        return cupy.asarray(begins.astype(np.uint32))


class BlockedEdges(GroupedEdges):
    """Unweighted edges in blocks; `in_edges` are sorted on first access, and then kept as well.

    `in_offsets`: Offsets of the rows, of the type that CSC has.
    """

    def __init__(self, blocks: Blocks, in_offsets: Integers, out_weight: Floats, m: int) -> None:
        nothing: Any = None, out_weight[:0], None
        super().__init__(nothing, out_weight, lambda: (self.in_edges[1], self._targets()))
        self.blocks, self.in_offsets, self.m = blocks, in_offsets, m
        del self.in_edges

    @cached_property
    def in_edges(self) -> Any:  # type: ignore[override]  # an attribute of other edges
        """Offsets and sources of the CSC layout, and no weights. The sources of a row are ascending."""
        from prplugin.gpu.sort import sorted_by  # imports CuPy, which holds the edges

        sources, targets = sorted_by(*self._by_source())
        _, sources = sorted_by(targets, bits_of(self.n + 1), sources)
        return self.in_offsets, sources[: self.m], None

    def _by_source(self) -> tuple[Integers, int, Integers]:
        sources, targets = self.blocks.endpoints(self.n)
        return sources, bits_of(self.n), targets

    def _targets(self) -> Integers:
        from prplugin.gpu import group  # imports CuPy, which holds the edges

        return group.groups_of(self.in_offsets, self.m, index_dtype(self.n))


def most(itemsize: int, limit: int) -> int:
    """Return how many items of this size fit the shared memory of a block, a multiple of 32, at most `limit`."""
    return min(limit, (_shared_memory() // itemsize - 1) // 32 * 32)


def unavailable_reason(rows: int, columns: int, m: int, *, weighted: bool) -> str | None:
    """Return why edges among so many places cannot be arranged in blocks of the greatest size."""
    pieces, tiles = -(-rows // most(SUM_BYTES, PIECE)), -(-columns // most(PLACE_BYTES, TILE))
    if max(_smem_by_piece(pieces, weighted), _smem_by_tile(tiles, weighted)) > _shared_memory():
        return f"{columns:,} vertices are too many for tiles of {TILE:,}, which is what this GPU's shared memory holds."
    if m + (CHUNK - 1) * min(m, pieces * tiles) >= MOST_EDGES:
        return f"{m:,} edges are too many: with padding, at most {MOST_EDGES:,} can be numbered."
    return None


def all_marks(count: int) -> Any:
    """Return the marks of a range of `count` places, each of which has a vertex."""
    words = -(-count // 32)
    marks = np.empty((words, 2), np.uint32)
    marks[:, 0], marks[:, 1] = 32 * np.arange(words), 2**32 - 1
    if count % 32:
        marks[-1, 1] = (1 << count % 32) - 1
    return cupy.asarray(marks)


def build(
    sources: Integers, targets: Integers, low: int, rows: int, columns: int, tile: int, piece: int, *, ordered: bool
) -> tuple[Blocks, Integers]:
    """Arrange edges, given by ids of 4 or 8 bytes in any order, in blocks; return the number of edges into each place.

    A place is an id less `low`. `ordered`: whether the positions of the edges are kept, as weights need them. The marks
    are those of places that all have a vertex. Peak memory is 10.5 bytes per edge, 18.5 if `ordered`.
    """
    m, pieces, tiles = sources.size, -(-rows // piece), -(-columns // tile)
    counts = np.int32(pieces), np.int32(tiles)

    def kernel(name: str) -> Any:
        return _kernel(name, tile, piece, sources.dtype, ordered)

    begins = cupy.zeros(pieces + 2, np.uint32)
    least = np.uint64(low % 2**64)
    _launch(kernel("count_pieces"), _grid(), 4 * COPIES * pieces, m, targets, least, counts[0], begins)
    edges = cupy.empty(m, np.uint32), cupy.empty(m, np.uint16), cupy.empty(m, np.uint32) if ordered else None
    if m:
        blocks, smem = -(-m // _batch(ordered)), _smem_by_piece(pieces, ordered)
        _launch(kernel("by_piece"), blocks, smem, m, sources, targets, least, counts[0], begins.copy(), *edges)
    cells, in_degrees = cupy.zeros(pieces * tiles, np.uint32), cupy.zeros(pieces * piece, np.int32)
    _launch(kernel("count_cells"), _grid(), 4 * (tiles + piece), *counts, begins, *edges[:2], cells, in_degrees)
    in_piece, in_tile = cupy.empty_like(cells), cupy.empty_like(cells)
    ends = cupy.zeros(pieces + tiles + 3, np.uint32)
    piece_begins, tile_begins, done = ends[: pieces + 1], ends[pieces + 1 : -1], ends[-1:]
    starts = in_piece, in_tile, piece_begins, tile_begins
    _launch(kernel("cell_chunks"), pieces + tiles, 0, *counts, cells, *starts, done)
    on_host = ends.get().astype(np.int64)
    chunks = int(on_host[pieces])
    tile_sources, piece_rows = cupy.empty(CHUNK * chunks, np.uint16), cupy.empty(CHUNK * chunks, np.uint16)
    piece_edges = cupy.empty(CHUNK * chunks, np.uint32) if ordered else None
    orders = tile_sources, piece_rows, piece_edges
    filled, smem = cupy.zeros_like(cells), _smem_by_tile(tiles, ordered)
    _launch(kernel("by_tile"), _grid(), smem, *counts, begins, *edges, *starts, filled, *orders)
    chunk_by_piece = cupy.empty(chunks, np.uint32)
    grid = runtime.blocks_for(LANES * cells.size, runtime.THREADS), runtime.THREADS
    finish = kernel("finish_cells")
    runtime.launch(finish, *grid, *counts, np.uint32(m), cells, *starts, chunk_by_piece, *orders)
    bounds = on_host[pieces + 1 : -1], on_host[: pieces + 1]
    marks = all_marks(columns)
    return Blocks(rows, columns, marks, tile, piece, *bounds, tile_sources, chunk_by_piece, *orders[1:]), in_degrees


def offsets_of(degrees: Integers, m: int) -> Integers:
    """Return the offsets of rows with these in-degrees, m edges in all."""
    offsets: Integers = cupy.zeros(degrees.size + 1, offset_dtype(m))
    cupy.cumsum(degrees, out=offsets[1:])
    return offsets


def _batch(ordered: bool) -> int:
    return THREADS * (8 if ordered else 16)


def _smem_by_piece(pieces: int, ordered: bool) -> int:
    return 4 * (2 * pieces + 1 + (2 + ordered) * _batch(ordered))


def _smem_by_tile(tiles: int, ordered: bool) -> int:
    return 4 * (3 * tiles + 1 + (1 + ordered) * _batch(ordered)) + 2 * _batch(ordered)


def _shared_memory() -> int:
    """Return the bytes of dynamic shared memory that a block of the current GPU can use."""
    return runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC


def _grid() -> int:
    return BLOCKS * runtime.multiprocessors()


def _launch(kernel: Any, blocks: int, smem: int, *arguments: Any) -> None:
    runtime.launch(runtime.with_dynamic_smem(kernel, smem), blocks, THREADS, *arguments, smem=smem)


def _kernel(
    name: str, tile: int, piece: int, ids: DTypeLike = np.int32, ordered: bool = False, real: DTypeLike = np.float32
) -> Any:
    types = {"id_t": np.dtype(ids), "real_t": np.dtype(real)}
    return runtime.kernel("gpu/blocks.cu", name, **types, TILE=tile, PIECE=piece, ORDER=int(ordered))
