"""Edges by row, and degrees, on the CPU: a counting sort in two passes, compiled by Numba and parallel.

The first pass partitions edges into buckets, ranges of rows; the second sorts each bucket in the cache. Both keep the
order of the frame, so that the result is the same for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.compensated import CompensatedSums
from prplugin.cpu.memory import compiled, prefetch, read_only
from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.cpu.threads import Threads, cut
from prplugin.types.edges import Floats, GroupedEdges, Integers, index_dtype

BUCKET_BITS = 8
"""log2 of the number of buckets: with 256 output streams, a core does not thrash its TLB and caches."""

AHEAD = 64
"""Prefetch distance in rows."""

FETCHED_FROM = 1 << 20
"""Number of counts above which they are prefetched: they exceed the L2 cache of a core."""


def as_int64(low: int) -> Any:
    """Reinterpret an id as int64; differences of ids are exact modulo 2**64."""
    return np.uint64(low % 2**64).astype(np.int64)


def degrees(ids: Any, n: int, threads: Threads, low: int = 0) -> Integers:
    """Count how often each of the ids low, low + 1, ..., low + n - 1 occurs."""
    ids, least = read_only(ids), as_int64(low)
    # One vector per thread, as long as all of them together take only a few bytes per edge.
    most = min(threads.count, max(1, ids.size // max(1, n)))
    ahead = AHEAD if n > FETCHED_FROM else 0
    vectors = [np.zeros(n, index_dtype(ids.size)) for _ in range(most)]

    def count(first: int, last: int) -> None:
        counts = vectors.pop()
        count_ids(ids, least, 0, first, last, ahead, counts)
        vectors.append(counts)

    threads.for_each(cut(ids.size), count, most)
    return np.sum(vectors, axis=0, dtype=vectors[0].dtype) if most > 1 else vectors[0]


def grouped(
    rows: Any, columns: Any, weights: Floats | None, n: int, threads: Threads, low: int = 0
) -> tuple[Integers, Integers, Floats | None]:
    """Group edges by row, in the order of the frame within each row.

    `rows` and `columns` are ids from `low` to low + n - 1. Return the offsets of the rows, the columns less `low`, and
    the weights.
    """
    bits = max(n - 1, 1).bit_length()
    shift = max(bits - BUCKET_BITS, 0)
    index = index_dtype(n)
    bounds, pairs, bucket_weights = _by_bucket(
        read_only(rows), read_only(columns), weights, n, as_int64(low), shift, bits, threads
    )
    del rows, columns  # so that their memory may be freed
    offsets = np.zeros(n + 1, np.int64)
    indices = np.empty(pairs.size, index)
    sorted_weights = None if bucket_weights is None else np.empty_like(bucket_weights)

    def sort(bucket: int) -> None:
        ends = offsets[(bucket << shift) + 1 : ((bucket + 1) << shift) + 1]
        _sort(bounds[bucket], bounds[bucket + 1], bits, pairs, bucket_weights, ends, indices, sorted_weights)

    threads.for_each([(bucket,) for bucket in np.argsort(-np.diff(bounds), kind="stable").tolist()], sort)
    return offsets, indices, sorted_weights


def _by_bucket(
    rows: Any, columns: Any, weights: Any, n: int, low: Any, shift: int, bits: int, threads: Threads
) -> tuple[Integers, Any, Any]:
    """Partition edges into buckets of 2**shift rows; return the offsets of the buckets, edges and weights.

    An edge is an int64 with the row within its bucket in the upper bits and the column in the lower `bits`, which
    suffices for any n that fits in memory.
    """
    pieces = [(nth, *piece) for nth, piece in enumerate(cut(rows.size))]
    counts = np.zeros((len(pieces), ((n - 1) >> shift) + 1), np.int32)
    threads.for_each(pieces, lambda nth, first, last: count_ids(rows, low, shift, first, last, 0, counts[nth]))
    bounds = offsets_of(counts.sum(axis=0))
    places = np.cumsum(counts, axis=0, dtype=np.int64)
    places += bounds[:-1]
    places -= counts
    pairs = np.empty(rows.size, np.int64)
    bucket_weights = None if weights is None else np.empty_like(weights)

    def fill(nth: int, first: int, last: int) -> None:
        _fill(rows, columns, weights, low, shift, bits, first, last, places[nth], pairs, bucket_weights)

    threads.for_each(pieces, fill)
    return bounds, pairs, bucket_weights


class CscBuilder:
    """Builder of a CSC layout from parts of the edge list, given the degrees of the whole list.

    Beside the result it holds a few numbers per vertex.
    """

    def __init__(self, in_degrees: Integers, out_degrees: Integers, *, weighted: bool) -> None:
        self._offsets = offsets_of(in_degrees)
        self._next = self._offsets[:-1].copy()
        n, m = in_degrees.size, int(self._offsets[-1])
        self._out_degrees = out_degrees
        self._sources = np.empty(m, index_dtype(n))
        self._weights: Floats | None = np.empty(m) if weighted else None
        self._sums = CompensatedSums(n) if weighted else None

    def add(self, source: Integers, destination: Integers, weights: Floats | None) -> None:
        """Add some edges, after those added before."""
        source, destination = read_only(source), read_only(destination)
        if self._sums is not None:
            assert weights is not None
            self._sums.add(source, weights)
            weights = read_only(weights)
        _scatter(source, destination, weights, self._next, self._sources, self._weights)

    def edges(self) -> GroupedEdges:
        """Return the grouped edges, once all have been added."""
        offsets, sources = self._offsets, self._sources
        out_weight, rounding_depth = (
            (self._out_degrees.astype(np.float64), 0) if self._sums is None else self._sums.values()
        )
        return GroupedEdges(
            (offsets, sources, self._weights), out_weight, lambda: (sources, rows_of(offsets)), rounding_depth
        )


# Indices are cast to unsigned integers: Numba checks signed ones for negative values at each access.


@compiled
def count_ids(ids, low, shift, first, last, ahead, counts):
    """Count the ids of each bucket in some rows; `ahead` is the prefetch distance, or 0."""
    for row in range(first, last):
        if ahead > 0 and row + ahead < last:
            prefetch(counts, (np.int64(ids[row + ahead]) - low) >> shift)  # type: ignore[call-arg]
        counts[np.uint64((np.int64(ids[row]) - low) >> shift)] += 1


@compiled
def _fill(rows, columns, weights, low, shift, bits, first, last, places, pairs, bucket_weights):
    """Write the endpoints of some edges (and their weights, unless None) to the next free entry of the row's bucket."""
    mask = (1 << shift) - 1
    for edge in range(first, last):
        row = np.int64(rows[edge]) - low
        column = np.int64(columns[edge]) - low
        bucket = np.uint64(row >> shift)
        place = np.uint64(places[bucket])
        places[bucket] += 1
        pairs[place] = (row & mask) << bits | column
        if weights is not None:
            bucket_weights[place] = weights[edge]


@compiled
def _sort(begin, end, bits, pairs, bucket_weights, ends, indices, weights):
    """Sort the edges of a bucket by row, and write the end of each row to `ends`, which must be zero."""
    for edge in range(begin, end):
        ends[np.uint64(pairs[edge] >> bits)] += 1
    start = begin
    for row in range(ends.size):
        size = ends[row]
        ends[row] = start
        start += size
    mask = (1 << bits) - 1
    for edge in range(begin, end):
        edge_row = np.uint64(pairs[edge] >> bits)
        place = np.uint64(ends[edge_row])
        ends[edge_row] += 1
        indices[place] = pairs[edge] & mask
        if bucket_weights is not None:
            weights[place] = bucket_weights[edge]


@compiled
def _scatter(source, destination, weights, places, sources, placed_weights):
    """Write the source of each edge (and its weight, unless None) to the next free entry of its target."""
    for edge in range(source.size):
        target = np.uint64(destination[edge])
        place = np.uint64(places[target])
        places[target] += 1
        sources[place] = source[edge]
        if weights is not None:
            placed_weights[place] = weights[edge]
