"""Edges by row, and degrees, on the CPU: a counting sort in two passes, compiled: see ingest.cpp.

The first pass partitions edges into buckets, ranges of rows; the second sorts each bucket in the cache. Both keep the
order of the frame, so that the result is the same for any number of threads.
"""

from __future__ import annotations

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.sums import CompensatedSums
from prplugin.cpu.threads import bounds_of_pieces
from prplugin.types.arrays import Array
from prplugin.types.edges import Csc, Floats, Grouped, Integers, index_dtype

BUCKET_BITS = 8
"""log2 of the number of buckets: with 256 output streams, a core does not thrash its TLB and caches."""


def as_int64(low: int) -> int:
    """Reinterpret an id as int64; differences of ids are exact modulo 2**64."""
    return (low + 2**63) % 2**64 - 2**63


def add_degrees(ids: Integers, counts: Integers, low: int = 0) -> None:
    """Add how often each id occurs, from `low` on, to the rows of `counts`, one per thread, which counts a part."""
    kernels.count_ids(ids, low, counts)


def degrees(ids: Integers, n: int, threads: int, low: int = 0) -> Integers:
    """Count how often each of the ids low, low + 1, ..., low + n - 1 occurs."""
    # One vector per thread, as long as all of them together take only a few bytes per edge.
    parts = min(threads, max(1, ids.size // max(1, n)))
    counts: Integers = np.zeros((parts, n), index_dtype(ids.size))
    add_degrees(np.ascontiguousarray(ids), counts, as_int64(low))
    return counts.sum(axis=0, dtype=counts.dtype) if parts > 1 else counts.reshape(-1)


def grouped(
    rows: Array, columns: Array, weights: Floats | None, n: int, threads: int, low: int = 0
) -> tuple[Integers, Integers, Floats | None]:
    """Group edges by row, in the order of the frame within each row.

    `rows` and `columns` are ids from `low` to low + n - 1. Return the offsets of the rows, the columns less `low`, and
    the weights.
    """
    # A pair is an int64 with the row within its bucket in the upper bits and the column in the lower `bits`, which
    # suffices for any n that fits in memory.
    bits = max(n - 1, 1).bit_length()
    shift = max(bits - BUCKET_BITS, 0)
    places = np.zeros((bounds_of_pieces(rows.size).size - 1, ((n - 1) >> shift) + 1), np.int64)
    bounds = np.empty(places.shape[1] + 1, np.int64)
    pairs: Integers = np.empty(rows.size, np.int64)
    bucket_weights = None if weights is None else np.empty(weights.size)
    kernels.partition_edges(
        np.ascontiguousarray(rows), np.ascontiguousarray(columns),
        None if weights is None else np.ascontiguousarray(weights), as_int64(low), shift, bits, places, bounds, pairs,
        bucket_weights, threads,
    )  # fmt: skip
    del rows, columns, weights  # so that their memory may be freed
    offsets = np.zeros(n + 1, np.int64)
    indices: Integers = np.empty(pairs.size, index_dtype(n))
    sorted_weights = None if bucket_weights is None else np.empty(pairs.size)
    order = np.argsort(-np.diff(bounds))  # large buckets first, so that all threads end at about the same time
    kernels.sort_buckets(bounds, shift, bits, pairs, bucket_weights, order, offsets, indices, sorted_weights, threads)
    return offsets, indices, sorted_weights


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
        source, destination = np.ascontiguousarray(source), np.ascontiguousarray(destination)
        if self._sums is not None:
            assert weights is not None
            self._sums.add(source, weights)
            weights = np.ascontiguousarray(weights)
        kernels.scatter(source, destination, weights, self._next, self._sources, self._weights)

    def edges(self) -> Grouped:
        """Return the grouped edges, once all have been added."""
        offsets, sources = self._offsets, self._sources
        out_weight, rounding_depth = (
            (self._out_degrees.astype(np.float64), 0) if self._sums is None else self._sums.values()
        )
        return Grouped(Csc(offsets, sources, self._weights), out_weight, sources.size, None, rounding_depth)
