"""Packed edges: their format, that of streamed.cu, and compression on the host, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from prplugin.cpu import packing
from prplugin.cpu.packing import PIECE
from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.threads import Piece
from prplugin.errors import InvalidOptionError
from prplugin.graph import edges
from prplugin.graph.edges import SAMPLE_EDGES, SAMPLES, Edges, group_sizes, sectors_per_edge
from prplugin.machine import this_machine
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import namespace
from prplugin.types.edges import Csc, Floats, Grouped, Integers, PackedRows, bits_of

GROUP = 8  # numbers per group, as in streamed.cu
COLUMNS = 5  # values per piece in the table of streamed.cu
PIECE_BYTES = 8 * COLUMNS + 32  # bytes per piece in device memory: those values, and two compensated sums
PART = 1 << 18  # edges per part, which one thread sorts and packs; a longer row is a part of its own

SCATTERED, SCATTERED_IF_DANGLING = 0.5, 0.9
"""Sectors per edge from which vertices are sorted by out-degree, unless, or if, most of them are dangling.

See `prplugin.graph.edges.sectors_per_edge`, and docs/decisions/0021-packed-edges.md for graphs in each order."""


class Rows(NamedTuple):
    """In-edges by target, as in `Compressed`, on the host; and the order of the vertices in the packed edges."""

    offsets: Integers
    sources: Integers
    weights: Floats | None
    order: Integers | None = None  # the vertex at each new position; None: vertices keep their positions
    position: Integers | None = None  # the new position of each vertex
    first: int = 0  # row of the graph, if these are some of its rows
    vertices: int | None = None  # number of vertices of the graph, likewise

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.offsets.size - 1

    def sorted_by(self, key: Integers | Floats) -> Rows:
        """Reorder the vertices by descending key."""
        order, position = by_key(key, self.sources.dtype)
        return self._replace(order=order, position=position)

    def in_packing_order(self, out_weight: Floats) -> Rows:
        """Reorder the vertices by `sort_key`, of out-degrees also where edges have weights."""
        key = sort_key(self.sources, out_weight if self.weights is None else group_sizes(self.sources, self.n))
        return self if key is None else self.sorted_by(key)


def sort_key(sources: Integers, out_weight: Integers | Floats) -> Integers | Floats | None:
    """Return the key by which vertices are sorted, descending, before edges are packed; None to keep their order.

    `sources`: Those of some or all edges, by target. If they are scattered, the key is `out_weight`, or out-degrees
    given for it: most sources, and their differences, are then small. Otherwise, if most vertices are dangling, these
    come last, and the others are closer together.
    """
    if sources.size <= SAMPLES * SAMPLE_EDGES:
        return None
    linking = (out_weight > 0).astype(np.int8)
    mostly_dangling = 2 * int(linking.sum(dtype=np.int64)) < linking.size
    if sectors_per_edge(sources) > (SCATTERED_IF_DANGLING if mostly_dangling else SCATTERED):
        return out_weight
    return linking if mostly_dangling else None


def by_key(key: Integers | Floats, dtype: DTypeLike) -> tuple[Integers, Integers]:
    """Return the vertices by descending key, and the place of each vertex in this order."""
    xp = namespace(key)
    order: Integers = xp.argsort(-key, kind="stable").astype(dtype)
    position: Integers = xp.empty_like(order)
    position[order] = xp.arange(order.size, dtype=dtype)
    return order, position


class Packed(NamedTuple):
    """Consecutive packed pieces."""

    data: Integers  # uint8
    begins: Integers  # offsets of the pieces in `data`, one more than there are pieces
    rows: Integers  # the row of the first edge of each piece
    continued: Booleans  # whether that row begins in an earlier piece
    edges: Integers  # number of edges of each piece


def packed(rows: Rows, threads: int) -> Iterator[Packed]:
    """Yield all edges in order, packed; at most two parts per thread are in memory."""
    for parts in _parts(rows, threads):
        yield from _packed(rows, parts, threads)


def packed_graph(adjacency: Edges) -> Edges:
    """Return a graph with its edges packed on the host; raise InvalidOptionError if they are weighted or too wide."""
    if adjacency.given is PackedRows:
        return adjacency
    if adjacency.weighted:
        raise InvalidOptionError("packed edges have no weights, and these have: omit packed=True or the weights.")
    if reason := too_many(adjacency.n):
        raise InvalidOptionError(reason)
    adjacency = adjacency.on("host")
    rows = joined([Rows(*adjacency.get(Csc))], this_machine().threads_for(adjacency.m))
    return Edges(Grouped(rows, adjacency.out_weight.astype(np.int64), adjacency.m))


def joined(ranges: Iterable[Rows], threads: int) -> PackedRows:
    """Pack consecutive ranges of the rows of a graph; one range is in memory at a time."""
    data, begins, firsts, size = [], [], [], 0
    for some in ranges:
        for part in packed(some, threads):
            data.append(part.data)
            begins.append(part.begins[:-1] + size)
            firsts.append(np.where(part.continued, ~(part.rows + some.first), part.rows + some.first))
            size += part.data.size
    data.append(np.zeros(packing.SPARE, np.uint8))
    none = np.empty(0, np.int64)
    return PackedRows(np.concatenate(data), np.concatenate([*begins, [size]]), np.concatenate([none, *firsts]))


def normalized_weights(rows: Rows, out_weight: Floats, dtype: DTypeLike, threads: int) -> Iterator[Floats]:
    """Yield the normalized weights w / W in the order of the packed edges; 0 for a dangling source, whose W is 0.

    `out_weight` is in the new order of the vertices.
    """
    for parts in _parts(rows, threads):
        sources, weights, _ = _sorted(rows, parts, threads)
        assert weights is not None
        yield edges.normalized_weights(weights, sources, out_weight).astype(dtype, copy=False)


def row_begins(rows: Integers, continued: Booleans) -> Integers:
    """Return the piece in which the first row of each piece begins, given these rows and whether they are continued."""
    follows = np.append(False, rows[1:] == rows[:-1])
    # The row begins in the piece itself, in the previous piece, or where the previous piece has it.
    begins: Integers = np.maximum.accumulate(np.where(continued & follows, 0, np.arange(rows.size) - continued))
    return begins


def too_many(n: int) -> str | None:
    """Return why the edges of a graph of n vertices cannot be packed, or None."""
    return f"{n:,} vertices are too many: packed edges store positions in 31 bits." if n > 2**31 else None


def _parts(rows: Rows, threads: int) -> Iterator[list[Piece]]:
    """Partition rows into parts of about `PART` edges; yield one part per thread at a time."""
    counts = np.diff(rows.offsets)
    ends = offsets_of(counts if rows.order is None else counts[rows.order])
    cuts = np.searchsorted(ends, np.arange(0, ends[-1], PART), "left")
    bounds = np.unique(np.append(cuts, rows.n)).tolist()
    parts = [(first, last) for first, last in pairwise(bounds) if ends[first] < ends[last]]
    for first in range(0, len(parts), threads):
        yield parts[first : first + threads]


def _sorted(rows: Rows, parts: list[Piece], threads: int) -> tuple[Integers, Floats | None, Integers]:
    """Return sources and weights of parts of the rows in the new order, sorted by source, and the rows' offsets."""
    chosen = np.concatenate([np.arange(first, last) for first, last in parts])
    if rows.order is not None:
        chosen = rows.order[chosen].astype(np.int64)
    starts = offsets_of(rows.offsets[chosen + 1] - rows.offsets[chosen])
    sources, weights = packing.sort_rows(
        chosen, starts, rows.offsets, rows.sources, rows.position, rows.weights, threads
    )
    return sources, weights, starts


def _packed(rows: Rows, parts: list[Piece], threads: int) -> list[Packed]:
    """Pack parts of the rows in the new order."""
    sources, _, starts = _sorted(rows._replace(weights=None), parts, threads)
    # Rows of different parts are in no common piece; a long row is in several parts.
    places = offsets_of(np.array([last - first for first, last in parts]))
    begins = [np.arange(starts[place], starts[following], PART) for place, following in pairwise(places.tolist())]
    cuts = np.append(np.concatenate(begins), sources.size)
    shifts = np.repeat([first for first, _ in parts] - places[:-1], [part.size for part in begins])
    found = []
    for (data, table), shift, (begin, end) in zip(
        packing.pack(starts, sources, bits_of(rows.vertices or rows.n), cuts, threads),
        shifts.tolist(),
        pairwise(cuts.tolist()),
        strict=True,
    ):
        offsets, firsts = table.T
        edges = np.minimum(begin + PIECE * np.arange(firsts.size + 1), end)
        found.append(
            Packed(data, np.append(offsets, data.size), firsts + shift, starts[firsts] < edges[:-1], np.diff(edges))
        )
    return found
