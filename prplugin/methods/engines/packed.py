"""Compression of edges on the host, in parts, for the transfers of `streamed`. See streamed.cu for the format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu import normalization
from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.threads import Threads
from prplugin.types.edges import Floats, Integers, index_dtype

PIECE = 2048
"""Edges per piece, as in streamed.cu; the last piece of a part may have fewer."""

GROUP = 8
"""Numbers per group, as in streamed.cu."""

PART = 1 << 18
"""Edges per part, which one thread sorts and packs; a longer row is a part of its own."""

MAX_EDGE_BYTES = 10
"""Bytes per packed edge, at most."""

SAMPLE_EDGES, SAMPLES = 1 << 14, 64
"""Edges per sample when orders of vertices are compared, and number of samples."""


class Rows(NamedTuple):
    """In-edges by target, as in `Compressed`, on the host; and the order of the vertices in the packed edges."""

    offsets: Integers
    sources: Integers
    weights: Floats | None
    order: Integers | None = None  # the vertex at each new position; None: vertices keep their positions
    position: Integers | None = None  # the new position of each vertex

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.offsets.size - 1

    def by_out_degree(self, out_degree: Integers) -> Rows:
        """Reorder the vertices by descending out-degree: most sources, and their differences, are then small."""
        order = np.argsort(-out_degree, kind="stable").astype(index_dtype(self.n))
        position = np.empty_like(order)
        position[order] = np.arange(order.size, dtype=order.dtype)
        return self._replace(order=order, position=position)


class Packed(NamedTuple):
    """Consecutive packed pieces."""

    data: Any  # uint8
    begins: Integers  # offsets of the pieces in `data`, one more than there are pieces
    rows: Integers  # the row of the first edge of each piece
    continued: Any  # whether that row begins in an earlier piece
    edges: Integers  # number of edges of each piece


def packed(rows: Rows, threads: Threads) -> Iterator[Packed]:
    """Yield all edges in order, packed; at most two parts per thread are in memory."""
    bounds = _parts(rows)
    for group in range(0, len(bounds), 2 * threads.count):
        found: dict[int, list[Packed]] = {}

        def pack(part: int, found: dict[int, list[Packed]] = found) -> None:
            found[part] = _packed(rows, *bounds[part])

        parts = range(group, min(group + 2 * threads.count, len(bounds)))
        threads.for_each([(part,) for part in parts], pack)
        for part in parts:
            yield from found.pop(part)


def normalized_weights(rows: Rows, out_weight: Floats, dtype: Any) -> Iterator[Floats]:
    """Yield the normalized weights w / W in the order of the packed edges; 0 for a dangling source, whose W is 0.

    `out_weight` is in the new order of the vertices.
    """
    for first, last in _parts(rows):
        sources, weights, _ = _sorted(rows, first, last)
        yield normalization.normalized_weights(weights, sources, out_weight).astype(dtype, copy=False)


def bits_of(n: int) -> int:
    """Return the number of bits of a position among n vertices."""
    return max(1, (n - 1).bit_length())


def choose_order(rows: Rows, threads: Threads) -> Rows:
    """Return the rows in the order that packs a sample into fewer bytes: the present one, or by out-degree."""
    from prplugin.cpu.group import degrees  # imports Numba

    if not rows.sources.size:
        return rows
    other = rows.by_out_degree(degrees(rows.sources, rows.n, threads))
    firsts = np.unique(np.linspace(0, rows.n, SAMPLES, endpoint=False).astype(np.int64)).tolist()

    def size(ordered: Rows) -> int:
        # Sample the same rows of the graph for both orders.
        total = 0
        for first in firsts:
            last = max(first + 1, int(np.searchsorted(rows.offsets, rows.offsets[first] + SAMPLE_EDGES, "right")) - 1)
            sample = Rows(rows.offsets, rows.sources, None, None, ordered.position)
            total += sum(part.data.size for part in _packed(sample, first, min(last, rows.n)))
        return total

    return other if size(other) < size(rows) else rows


def _parts(rows: Rows) -> list[tuple[int, int]]:
    """Partition rows into parts of about `PART` edges: first and last + 1 of each."""
    counts = np.diff(rows.offsets)
    ends = offsets_of(counts if rows.order is None else counts[rows.order])
    cuts = np.searchsorted(ends, np.arange(0, ends[-1], PART), "left")
    bounds = np.unique(np.append(cuts, rows.n)).tolist()
    return [(first, last) for first, last in pairwise(bounds) if ends[first] < ends[last]]


def _sorted(rows: Rows, first: int, last: int) -> tuple[Any, Any, Integers]:
    """Return sources and weights of the rows first..last of the new order, sorted by source, and their offsets."""
    from prplugin.cpu import packed_kernels as kernels
    from prplugin.cpu.memory import read_only  # imports Numba

    chosen = np.arange(first, last) if rows.order is None else rows.order[first:last].astype(np.int64)
    starts = offsets_of(rows.offsets[chosen + 1] - rows.offsets[chosen])
    given = (
        None if array is None else read_only(array)
        for array in (rows.offsets, rows.sources, rows.position, rows.weights)
    )
    sources = np.empty(int(starts[-1]), rows.sources.dtype)
    weights = None if rows.weights is None else np.empty(sources.size)
    kernels.sort_rows(*given, chosen, sources, weights)
    return sources, weights, starts


def _packed(rows: Rows, first: int, last: int) -> list[Packed]:
    """Pack the rows first..last of the new order."""
    from prplugin.cpu import packed_kernels as kernels  # imports Numba

    sources, _, starts = _sorted(rows, first, last)
    parts = []
    for begin in range(0, sources.size, PART):
        end = min(begin + PART, sources.size)
        count = -(-(end - begin) // PIECE)
        data, table = np.zeros(MAX_EDGE_BYTES * (end - begin) + 128 * count, np.uint8), np.empty((count, 2), np.int64)
        size = kernels.pack(starts, sources, bits_of(rows.n), PIECE, begin, end, first, data, table)
        cuts = np.minimum(begin + PIECE * np.arange(count + 1), end)
        continued = starts[table[:, 1] - first] < cuts[:-1]
        parts.append(Packed(data[:size].copy(), np.append(table[:, 0], size), table[:, 1], continued, np.diff(cuts)))
    return parts
