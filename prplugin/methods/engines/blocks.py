"""The blocked layout of `propagation_blocking`, from tiles of sources to pieces of rows: see blocks.cuh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.gpu import runtime
from prplugin.methods.engines.gpu_merge import Pieces
from prplugin.types.edges import Floats, Integers

__all__ = ["CHUNK", "Blocks", "lay_out", "room_for", "shared_memory", "spans"]

CHUNK = 8
"""Edges per chunk, the unit of transfer between the two orders: see blocks.cuh."""

SPAN = 3
"""Edges per span for each vertex of a tile, so that loading the tile is a small part of the memory traffic."""

LEAST_SPAN = 512
"""Least number of chunks per span: as many as a block processes at a time."""

STATIC = 8192
"""Bytes of shared memory reserved for the kernels' static arrays."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The edges in both orders, and spans of them: see blocks.cuh.

    `tile`: Vertices per tile.
    `bounds` (array of spans x 3 int64): Tile, first chunk and end of each span, by tile.
    `early`: Number of leading spans whose tiles have only sources that are rows themselves.
    `locals`, `goals`, `begins`, `spots`: arrays.
    """

    pieces: Pieces
    tile: int
    bounds: Integers
    early: int
    locals: Integers
    goals: Integers
    begins: Integers
    spots: Integers

    def arranged(self, normalized_weights: Floats) -> Floats:
        """Permute normalized weights from the order of rows to the order of chunks within each piece."""
        import cupy  # loaded already: device arrays exist

        pieces = self.pieces
        arranged: Floats = cupy.empty(self.spots.size, normalized_weights.dtype)
        launch = _kernel(
            "arrange_normalized_weights", pieces, self.tile, real_t=runtime.ctype(normalized_weights.dtype)
        )
        items = pieces.n + pieces.m
        launch(
            (pieces.count,),
            (1024,),
            (items, pieces.size, pieces.cuts, self.begins, self.spots, normalized_weights, arranged),
        )
        return arranged


def lay_out(pieces: Pieces, sources: Integers, tile: int, blocks: int = 1, columns: int | None = None) -> Blocks:
    """Lay out edges that are sorted by row, for a grid of at most `blocks` blocks.

    `columns`: number of vertices that may be sources; the number of rows if not given.
    """
    import cupy  # loaded already: device arrays exist

    count = pieces.count
    tiles = -(-(pieces.n if columns is None else columns) // tile)
    common = pieces.n + pieces.m, pieces.size, count, np.int32(tiles), pieces.cuts, sources
    chunks = cupy.empty((tiles, count), np.uint16)
    runtime.with_dynamic_smem(_kernel("count", pieces, tile), 4 * tiles)(
        (count,), (1024,), (*common, chunks), shared_mem=4 * tiles
    )
    ends = cupy.cumsum(chunks, dtype=np.uint32).reshape(chunks.shape)
    begins = cupy.zeros(count + 1, np.uint32)
    cupy.cumsum(chunks.sum(axis=0, dtype=np.uint32), dtype=np.uint32, out=begins[1:])
    # One transfer for all that the host needs.
    *of_tiles, longest = cupy.concatenate([ends[:, -1], cupy.diff(begins).max()[None]]).tolist()

    of_tile = cupy.empty(of_tiles[-1] * CHUNK, np.uint16)
    spots = cupy.empty(of_tiles[-1] * CHUNK, np.uint16)
    goals = cupy.empty(of_tiles[-1], np.uint32)
    room = 4 * (longest * CHUNK + tiles)
    arrange = runtime.with_dynamic_smem(_kernel("arrange", pieces, tile), room)
    arrange((count,), (1024,), (*common, chunks, ends, begins, of_tile, goals, spots), shared_mem=room)
    # With few chunks, one span per block.
    most = min(SPAN * tile // CHUNK, max(LEAST_SPAN, of_tiles[-1] // max(1, blocks - tiles)))
    bounds = spans(np.diff(np.array(of_tiles, np.int64), prepend=0), most)
    early = int(np.count_nonzero((bounds[:, 0] + 1) * tile <= pieces.n))
    return Blocks(pieces, tile, cupy.asarray(bounds), early, of_tile, goals, begins, spots)


def spans(chunks: Integers, most: int) -> Integers:
    """Split the chunks of each tile into spans of about equal length, at most `most` chunks.

    Returns `array of spans x 3 int64`: Tile, first chunk and end of each.
    """
    parts = -(-chunks // most)
    length = -(-chunks // np.maximum(parts, 1))
    parts = -(-chunks // np.maximum(length, 1))  # rounding up may leave fewer parts
    tiles = np.repeat(np.arange(chunks.size), parts)
    nth = np.arange(tiles.size) - np.repeat(np.cumsum(parts) - parts, parts)
    ends = np.cumsum(chunks)
    first = (ends - chunks)[tiles] + nth * length[tiles]
    end = np.minimum(first + length[tiles], ends[tiles])
    return np.stack([tiles, first, end], axis=1)


def room_for(size: int, tiles: int) -> int:
    """Return the bytes of shared memory that arranging a piece takes, at most."""
    return 4 * (size + (CHUNK - 1) * min(tiles, size) + tiles)


def shared_memory() -> int:
    """Return the bytes of dynamic shared memory that a block of the current GPU can use."""
    return runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC


def _kernel(name: str, pieces: Pieces, tile: int, real_t: str = "float") -> Any:
    index = runtime.ctype(pieces.cuts.dtype)
    return runtime.kernel("methods/propagation_blocking_layout.cu", name, index_t=index, real_t=real_t, TILE=tile)
