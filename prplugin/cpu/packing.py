"""Sorting of in-edges by source, and their compression: see packing.cpp."""

from __future__ import annotations

import numpy as np

from prplugin.cpu import kernels
from prplugin.types.edges import Floats, Integers, PackedRows, bits_of

PIECE = 2048
"""Edges per piece, as in packing.cpp and streamed.cu; the last piece of a part may have fewer."""

ALIGNMENT = 16
"""Bytes of which the offset of a piece is a multiple."""

SPARE = 16
"""Bytes after packed edges that packing.cpp may read."""

MAX_EDGE_BYTES, MAX_PIECE_BYTES = 10, 128
"""Bytes per packed edge, and more per piece, at most."""


def sort_rows(
    rows: Integers, starts: Integers, offsets: Integers, sources: Integers, position: Integers | None,
    weights: Floats | None, threads: int, *, sorts: bool = True,
) -> tuple[Integers, Floats | None]:  # fmt: skip
    """Return the sources of `rows`, sorted within each if `sorts`, and their weights; row k begins at ``starts[k]``.

    Sources are mapped through `position` first, unless that is None. Parallel edges keep their order.
    """
    size = int(starts[-1])
    found, scratch = (
        (np.empty(length, sources.dtype), None if weights is None else np.empty(length))
        for length in (size, size * sorts)
    )
    given = scratch if sorts else (None, None)
    kernels.sort_rows(rows, starts, offsets, sources, position, weights, *found, *given, threads)
    return found


def pack(
    starts: Integers, sources: Integers, bits: int, begins: Integers, threads: int
) -> list[tuple[Integers, Integers]]:
    """Pack the parts ``begins[p]:begins[p + 1]`` of the edges of consecutive rows, whose first edges are `starts`.

    Return the bytes of each part, and the offset in them and the row of the first edge of each of its pieces.
    """
    longest = int(np.diff(begins).max(initial=0))
    pieces = -(-longest // PIECE)
    data = np.empty((min(threads, begins.size - 1), MAX_EDGE_BYTES * longest + MAX_PIECE_BYTES * pieces), np.uint8)
    found: list[tuple[Integers, Integers]] = []
    for first in range(0, begins.size - 1, max(threads, 1)):
        some = begins[first : first + threads + 1]
        table, sizes = np.empty((some.size - 1, pieces, 2), np.int64), np.empty(some.size - 1, np.int64)
        kernels.pack_parts(starts, sources, bits, some, data[: sizes.size], table, sizes, threads)
        counts = (-(-np.diff(some) // PIECE)).tolist()
        found += [
            (packed[:size].copy(), places[:count])
            for packed, size, places, count in zip(data, sizes.tolist(), table, counts, strict=False)
        ]
    return found


def unpack(packed: PackedRows, n: int, m: int, threads: int) -> tuple[Integers, Integers]:
    """Return the offsets of n rows and the sources of their m edges."""
    offsets, sources = np.zeros(n + 1, np.int64), np.empty(m, np.int32)
    check(packed, n, m, threads, sources, offsets[1:])
    np.cumsum(offsets, out=offsets)
    return offsets, sources


def check(
    packed: PackedRows, n: int, m: int, threads: int, sources: Integers | None = None,
    in_degrees: Integers | None = None,
) -> None:  # fmt: skip
    """Raise ValueError unless these are m edges between n vertices; unpack them to the arrays that are given."""
    data, begins, rows = packed
    rises = begins[0] == 0 and begins[-1] <= data.size - SPARE and bool((np.diff(begins) >= SPARE).all())
    if not rises or (begins % ALIGNMENT).any():
        raise ValueError(f"the offsets of its packed edges do not rise from 0 to their end in multiples of {ALIGNMENT}")
    firsts = np.zeros(begins.size, np.int64)
    np.cumsum(data[begins[:-1]] + 256 * data[begins[:-1] + 1].astype(np.int64), out=firsts[1:])
    if firsts[-1] != m:
        raise ValueError(f"{firsts[-1]:,} edges are packed instead of {m:,}")
    lasts, first_rows = np.empty(rows.size, np.int64), np.where(rows < 0, ~rows, rows)
    kernels.unpack_pieces(n, data, begins, rows, firsts, bits_of(n), lasts, sources, in_degrees, threads)
    before = np.append(-1, lasts[:-1])
    damaged = (lasts < 0) | np.where(rows < 0, first_rows != before, first_rows <= before)
    if damaged.any():
        raise ValueError(f"the packed edges from edge {firsts[damaged.argmax()]:,} on (counted from 0) are damaged")
