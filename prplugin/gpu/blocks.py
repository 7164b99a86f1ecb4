"""Edges in blocks, from tiles of sources to pieces of rows: see blocks.cuh."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import cupy, runtime
from prplugin.gpu.structs import GROUPS, ORDERS
from prplugin.types.arrays import synchronize, to_host
from prplugin.types.edges import Blocks, Csc, Floats, Integers, bits_of, offset_dtype

CHUNK = 8  # edges per chunk: see blocks.cuh
THREADS, COPIES = 1024, 4  # as in blocks.cu
FINISHING = 1 << 17  # least number of threads of `finish_cells`, so that few cells with many edges take no longer
BLOCKS = 2  # blocks per multiprocessor, as in the launch bounds of `propagate`
STATIC = 4096  # bytes of shared memory reserved for the kernels' static arrays

# log2 of places per tile, and per piece, at most. On an H100 a multiprocessor holds the sums of two pieces, even of
# three words, and the contributions of two tiles as float32, of one as float64.
TILE_BITS, PIECE_BITS, LEAST_PIECE_BITS = 14, 13, 10
PLACE_BYTES, SUM_BYTES = 8, 12

SPAN = 6  # edges per span for each place of a tile, so that loading the tile is a small part of the memory traffic
LEAST_SPAN = 512  # least number of chunks per span: as many as a block processes at a time
LEAST_UNIT = 4  # edges per unit for each row of a piece, so that adding its sums to those of others takes less time


MOST_EDGES = 2**32 - 64  # padding included: kernels count edges in 32 bits


def arranged(blocks: Blocks, normalized_weights: Floats) -> Floats:
    """Return the normalized weights of the edges given, by piece; padding has 0."""
    assert blocks.piece_edges is not None
    count, m = blocks.piece_edges.size, np.uint32(normalized_weights.size)
    found: Floats = cupy.empty(count, normalized_weights.dtype)
    grid = runtime.blocks_for_each(count), runtime.THREADS
    kernel = _kernel("arrange_normalized_weights", real=found.dtype)
    runtime.launch(kernel, *grid, count, m, blocks.piece_edges, normalized_weights, found)
    return found


def endpoints(blocks: Blocks, n: int) -> tuple[Integers, Integers]:
    """Return source and target of each edge and of padding, by position; the target of padding is n."""
    chunks = blocks.chunk_by_piece.size
    tile_begins, piece_begins = (cupy.asarray(x.astype(np.uint32)) for x in (blocks.tile_begins, blocks.piece_begins))
    sources, targets = (cupy.empty(CHUNK * chunks, np.int32) for _ in range(2))
    grid = runtime.blocks_for_each(chunks), runtime.THREADS
    groups = GROUPS(
        {}, tile_bits=blocks.tile_bits, piece_bits=blocks.piece_bits, tiles=tile_begins.size - 1,
        pieces=piece_begins.size - 1, tile_begins=tile_begins, piece_begins=piece_begins,
    )  # fmt: skip
    runtime.launch(
        _kernel("endpoints"), *grid, np.uint32(chunks), groups, np.int32(n), blocks.marks, blocks.chunk_by_piece,
        blocks.tile_sources, blocks.piece_rows, sources, targets,
    )  # fmt: skip
    return sources, targets


def in_edges(blocks: Blocks, n: int, m: int) -> Csc:
    """Return the m edges of n vertices by target, sorted by source in each row, and without weights."""
    from prplugin.gpu.sort import sorted_by  # imports CuPy, which holds the edges

    sources, targets = endpoints(blocks, n)
    sources, targets = sorted_by(sources, bits_of(n), targets, owned=True)
    _, sources = sorted_by(targets, bits_of(n + 1), sources, owned=True)
    offsets = cupy.zeros(n + 1, offset_dtype(m))
    cupy.cumsum(blocks.in_degrees, out=offsets[1:])
    synchronize("device")
    return Csc(offsets, sources[:m], None)


def bits(rows: int) -> tuple[int, int]:
    """Return the log2 of places per tile, and per piece such that all blocks have one: see `Blocks`."""
    tile, piece = most_bits()
    while piece > LEAST_PIECE_BITS and -(-rows >> piece) < 0.9 * resident_blocks():
        piece -= 1
    return tile, piece


def most_bits() -> tuple[int, int]:
    """Return the log2 of places per tile, and per piece, that fit the shared memory of a block, or half of it."""
    room = runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC
    places, sums = room // PLACE_BYTES, room // 2 // SUM_BYTES
    return min(TILE_BITS, places.bit_length() - 1), min(PIECE_BITS, sums.bit_length() - 1)


def unavailable_reason(
    rows: int, columns: int, m: int, *, weighted: bool, sizes: tuple[int, int] | None = None
) -> str | None:
    """Return why edges among so many places cannot be arranged in blocks, by default of the sizes that `bits` gives."""
    tile_bits, piece_bits = sizes or bits(rows)
    tiles, pieces = _groups(columns, tile_bits), _groups(rows, piece_bits)
    if not _items(tiles, pieces, weighted):
        return f"{columns:,} vertices are too many for this GPU's shared memory, which counts edges by tile and piece."
    if m + (CHUNK - 1) * min(m, pieces * tiles) >= MOST_EDGES:
        return f"{m:,} edges are too many: with padding, fewer than {MOST_EDGES:,} can be numbered."
    return None


def _items(tiles: int, pieces: int, ordered: bool) -> int:
    """Return the edges per thread of a partition that fit shared memory beside its counts, a power of two, or 0."""
    room = (runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC) // 4
    fit = min(8 if ordered else 16, (room - max(2 * tiles, 3 * pieces) - 1) // (THREADS * (2 + ordered)))
    return 1 << fit.bit_length() - 1 if fit > 0 and COPIES * tiles <= room else 0


def all_marks(places: int) -> Integers:
    """Return the marks of a range of places, each of which has a vertex."""
    words = -(-places // 32)
    marks: Integers = cupy.empty(words, np.uint64)
    grid = runtime.blocks_for(words, runtime.THREADS), runtime.THREADS
    runtime.launch(_kernel("mark_all"), *grid, places, marks)
    return marks


def build(
    sources: Integers, targets: Integers, low: int, rows: int, columns: int, tile_bits: int, piece_bits: int, *,
    ordered: bool,
) -> tuple[Blocks, Integers]:  # fmt: skip
    """Arrange edges, given by ids of 4 or 8 bytes in any order, in blocks; return as well their out-degrees.

    A place is an id less `low`; degrees are by place, and share their memory with temporary arrays. `ordered`: whether
    the positions of the edges are kept, as weights need them. `marks` are still missing. Peak memory is 10.5 bytes per
    edge, 18.5 if `ordered`.
    """
    m, tiles, pieces = sources.size, _groups(columns, tile_bits), _groups(rows, piece_bits)
    sizes, counts = np.array([tile_bits, piece_bits], np.int32), np.array([tiles, pieces], np.int32)
    items = _items(tiles, pieces, ordered)
    batches, batch_smem = -(-m // (THREADS * items)), 4 * (1 + (2 + ordered) * THREADS * items)

    def kernel(name: str) -> runtime.Kernel:
        return _kernel(name, sources.dtype, ordered, items=items)

    begins, chunk_begins, cells, out_degrees, in_degrees = runtime.allocate(
        *_words(tiles + 2, tiles + pieces + 3, tiles * pieces, tiles << tile_bits, pieces << piece_bits), cleared=True
    )
    next_in_tile, batch_begins, *places, targets_by_tile, numbers, sources_by_tile = runtime.allocate(
        *_words(tiles, tiles + 1, cells.size, cells.size, m, ordered * m), (m, np.uint16)
    )
    edges = sources_by_tile, targets_by_tile, numbers if ordered else None
    of_tiles = np.uint64(low % 2**64), sizes[0], counts[0]
    arrays: tuple[object, ...] = begins, next_in_tile, batch_begins
    _launch(kernel("count_tiles"), resident_blocks(), 4 * COPIES * tiles, m, sources, *of_tiles, *arrays)
    if m:
        ends, smem = (m, sources, targets, *of_tiles), batch_smem + 8 * tiles
        _launch(kernel("by_tile"), batches, smem, *ends, next_in_tile, *edges)
    smem = 4 * (pieces + (1 << tile_bits))
    _launch(kernel("count_cells"), resident_blocks(), smem, *sizes, *counts, begins, *edges[:2], cells, out_degrees)
    starts, done = (chunk_begins[: tiles + 1], chunk_begins[tiles + 1 : -1]), chunk_begins[-1:]
    _launch(kernel("cell_chunks"), tiles + pieces, 0, *counts, cells, *places, *starts, done)
    grid = runtime.blocks_for(cells.size, runtime.THREADS), runtime.THREADS
    runtime.launch(kernel("place_cells"), *grid, *counts, *starts, *places)
    on_host = to_host(chunk_begins).astype(np.int64)
    chunks = int(on_host[tiles])
    chunk_by_piece, numbers, tile_sources, piece_rows = runtime.allocate(
        *_words(chunks, ordered * CHUNK * chunks), *2 * ((CHUNK * chunks, np.uint16),)
    )
    piece_edges = numbers if ordered else None
    orders = ORDERS({}, tile_sources=tile_sources, piece_rows=piece_rows, piece_edges=piece_edges)
    arrays = begins, batch_begins, *edges, *places, orders
    _launch(kernel("by_piece"), batches + tiles, batch_smem + 12 * pieces, sizes[1], *counts, *arrays)
    lanes = max(CHUNK, FINISHING // cells.size)
    grid = runtime.blocks_for(lanes * cells.size, runtime.THREADS), runtime.THREADS
    arrays = cells, *places, chunk_by_piece, orders
    runtime.launch(kernel("finish_cells"), *grid, *sizes, np.int32(lanes), cells.size, np.uint32(m), *arrays)
    arrays = starts[1], piece_rows, in_degrees
    _launch(kernel("in_degrees"), resident_blocks(), 4 * ((1 << piece_bits) + 1), sizes[1], counts[1], *arrays)
    # The host does this while the GPU partitions the edges.
    chunks_of_tiles, chunks_of_pieces = on_host[: tiles + 1], on_host[tiles + 1 : -1]
    share = chunks // resident_blocks() + 1
    # With few chunks, one span per block.
    spans = split(np.diff(chunks_of_tiles), min((SPAN << tile_bits) // CHUNK, max(LEAST_SPAN, share)))
    longest = max((LEAST_UNIT << piece_bits) // CHUNK, share // 2, int(1.25 * chunks / pieces))
    units, shared = units_of(np.diff(chunks_of_pieces), longest)
    bounds = cupy.asarray(np.concatenate([spans.ravel(), units.ravel()]))
    layout = Blocks(
        rows, columns, None, tile_bits, piece_bits, tile_begins=chunks_of_tiles, piece_begins=chunks_of_pieces,
        chunk_by_piece=chunk_by_piece, tile_sources=tile_sources, piece_rows=piece_rows, piece_edges=piece_edges,
        spans=spans, units=len(units), shared=shared, bounds=(bounds[: spans.size], bounds[spans.size :]),
        in_degrees=in_degrees,
    )  # fmt: skip
    return layout, out_degrees


def _words(*counts: int) -> list[tuple[int, DTypeLike]]:
    return [(count, np.uint32) for count in counts]


def _groups(places: int, bits: int) -> int:
    return -(-places >> bits)


def resident_blocks() -> int:
    """Return the number of blocks of this layout's kernels that the GPU holds at once."""
    return BLOCKS * runtime.multiprocessors()


def _launch(kernel: runtime.Kernel, blocks: int, smem: int, *arguments: object) -> None:
    runtime.launch(runtime.with_dynamic_smem(kernel, smem), blocks, THREADS, *arguments, smem=smem)


def _kernel(
    name: str, ids: DTypeLike = np.int32, ordered: bool = False, real: DTypeLike = np.float32, items: int = 1
) -> runtime.Kernel:
    types = {"id_t": np.dtype(ids), "real_t": np.dtype(real)}
    return runtime.kernel("gpu/blocks.cu", name, **types, ORDER=int(ordered), ITEMS=items)


def split(chunks: Integers, most: int) -> Integers:
    """Split each group's chunks into equal parts of at most `most`; return group, first chunk and end of each part."""
    parts = -(-chunks // most)
    length = -(-chunks // np.maximum(parts, 1))
    parts = -(-chunks // np.maximum(length, 1))  # rounding up may leave fewer parts
    groups = np.repeat(np.arange(chunks.size), parts)
    nth = np.arange(groups.size) - np.repeat(np.cumsum(parts) - parts, parts)
    ends = np.cumsum(chunks)
    first = (ends - chunks)[groups] + nth * length[groups]
    end = np.minimum(first + length[groups], ends[groups])
    return np.stack([groups, first, end], axis=1)


def units_of(chunks: Integers, most: int) -> tuple[Integers, int]:
    """Return the units of pieces with these chunks, longest first, as the kernel needs them, and how many have several.

    A piece without chunks has a unit as well, which finishes its rows.
    """
    ends = np.cumsum(chunks)
    empty = np.flatnonzero(chunks == 0)
    bounds = np.concatenate([split(chunks, most), np.stack([empty, ends[empty], ends[empty]], axis=1)])
    piece, first, end = bounds[np.argsort(bounds[:, 0], kind="stable")].T
    parts = np.bincount(piece, minlength=chunks.size)
    before = np.arange(piece.size) - (np.cumsum(parts) - parts)[piece]
    several = parts > 1
    number = np.where(several, np.cumsum(several) - 1, -1)[piece]
    found = np.stack([piece, first, end, before, parts[piece] - 1 - before, number], axis=1)
    order = np.argsort(first - end, kind="stable")
    return np.ascontiguousarray(found[order]), int(np.count_nonzero(several))
