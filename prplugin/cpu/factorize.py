"""Factorization of integer ids on the CPU, and grouping of edges by them, in parallel: see ingest.cpp.

All threads insert sparse ids into one hash table. The slot of an id depends on the order of insertions, but codes are
assigned in ascending order of id afterwards, and do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from prplugin.cpu.group import as_int64, degrees, grouped
from prplugin.cpu.library import Kernel
from prplugin.cpu.threads import Threads, cut
from prplugin.machine import this_machine
from prplugin.types.edges import GroupedEdges, Integers, index_dtype

_Rows: TypeAlias = tuple[int, int, int]
"""A column, and the first and last + 1 of some of its rows."""

EMPTY = np.iinfo(np.int64).min
"""Marks an empty slot. The id of this value has its own slot, after all others."""

_insert = Kernel(
    "insert_ids",
    "ids:I[m] first:i8 last:i8 slots:i8[size+1]! bits:i8 codes:K[m]! limit:i8 found:i8[2]!",
)

MIN_TABLE_BITS = 16
VALUES_PER_SLOT = 32
"""A table starts with 2**16 slots, or one per 32 values if that is more."""


def factorize_ids(columns: Sequence[Integers], threads: Threads) -> tuple[list[Integers], Integers]:
    """Factorize columns of one integer type; return codes, and the distinct ids in ascending order and that type."""
    dtype = columns[0].dtype
    columns = [as_int(column) for column in columns]
    dense = dense_range(columns, dtype, threads)
    if dense is None:
        return by_hash(columns, dtype, threads)
    low, n = dense
    codes = [shifted(column, low, n, threads) for column in columns]
    position, found = positions_of(sum(degrees(column, n, threads.count) for column in codes) > 0)
    return replace_codes(codes, position, threads), ids_at(found, low, dtype)


def edges_by_id(columns: list[Integers], *, lasting: bool) -> tuple[GroupedEdges, Integers]:
    """Factorize the endpoints of edges in ascending order of id, and group the edges by target.

    `columns` are sources and destinations, at least one of each, of one integer type. `lasting`: whether `edge_list`
    must return codes after the caller has changed the columns; a one-shot graph may alias them. Return the edges, and
    the distinct ids, ascending, in the type of the columns.
    """
    threads = Threads(this_machine().threads_for(columns[0].size))
    dtype = columns[0].dtype
    endpoints = [as_int(column) for column in columns]
    dense = dense_range(endpoints, dtype, threads)
    if dense is not None:
        return _by_range(columns, endpoints, *dense, lasting, threads)
    codes, ids = by_hash(endpoints, dtype, threads)
    del endpoints
    edge_list = partial(tuple, codes.copy()) if lasting else partial(_factorized, columns)
    out_degrees = degrees(codes[0], ids.size, threads.count)
    # removed from the list, so that their memory is free before the last pass
    offsets, indices, _ = grouped(codes.pop(), codes.pop(), None, ids.size, threads.count)
    return GroupedEdges((offsets, indices, None), out_degrees, edge_list), ids


def _by_range(
    columns: list[Integers], endpoints: list[Any], low: int, span: int, lasting: bool, threads: Threads
) -> tuple[GroupedEdges, Integers]:
    """Group edges by id - low, then remove ids of the range that have no edges."""
    dtype, least = columns[0].dtype, low
    if lasting:
        endpoints, least = [shifted(ids, low, span, threads) for ids in endpoints], 0
    source, destination = endpoints
    out_degrees = degrees(source, span, threads.count, least)
    offsets, indices, _ = grouped(destination, source, None, span, threads.count, least)
    position, found = positions_of((out_degrees > 0) | (offsets[1:] > offsets[:-1]))
    (indices,) = replace_codes([indices], position, threads)
    if position is not None:
        offsets, out_degrees = np.append(offsets[found], offsets[-1]), out_degrees[found]
    edge_list = (
        (lambda: tuple(replace_codes(endpoints, position, threads))) if lasting else partial(_factorized, columns)
    )
    return GroupedEdges((offsets, indices, None), out_degrees, edge_list), ids_at(found, low, dtype)


def _factorized(columns: list[Integers]) -> tuple[Integers, ...]:
    """Factorize the ids again, and return the codes of both columns."""
    return tuple(factorize_ids(columns, Threads(this_machine().threads_for(columns[0].size)))[0])


def as_int(column: Integers) -> Any:
    """Return contiguous ids as int32 or int64; uint64 is reinterpreted."""
    if column.dtype == np.uint64:
        column = column.view(np.int64)
    wide = np.int64 if column.dtype in (np.int64, np.uint32) else np.int32
    return np.ascontiguousarray(column, wide)


def dense_range(columns: Sequence[Any], dtype: np.dtype[Any], threads: Threads) -> tuple[int, int] | None:
    """Return the least id and the size of the range of ids, or None if the size exceeds half the number of values.

    `dtype` is the type of the ids before `as_int`.
    """
    most = sum(column.size for column in columns) // 2
    lows: list[int] = []
    highs: list[int] = []

    def find_extremes(column: Any, first: int, last: int) -> None:
        if lows and max(highs) - min(lows) >= most:
            return  # the range is too large already
        ids = column[first:last].view(dtype) if dtype == np.uint64 else column[first:last]
        highs.append(int(ids.max()))
        lows.append(int(ids.min()))

    threads.for_each([(column, *piece) for column in columns for piece in cut(column.size)], find_extremes)
    low, span = min(lows), max(highs) - min(lows) + 1
    return (low, span) if span <= most else None


def shifted(column: Any, low: int, n: int, threads: Threads) -> Integers:
    """Subtract `low` from ids in the range low, ..., low + n - 1."""
    codes = np.empty(column.size, index_dtype(n))
    least = np.int64(as_int64(low))

    def shift(first: int, last: int) -> None:
        np.subtract(column[first:last], least, out=codes[first:last], dtype=np.int64, casting="unsafe")

    threads.for_each(cut(column.size), shift)
    return codes


def positions_of(seen: Any) -> tuple[Integers | None, Integers]:
    """Return the position of each id of a range among those seen (None if all are), and the ids that are seen."""
    found = np.flatnonzero(seen)
    if found.size == seen.size:
        return None, found
    position = np.cumsum(seen, dtype=index_dtype(found.size))
    position -= 1
    return position, found


def ids_at(found: Integers, low: int, dtype: np.dtype[Any]) -> Integers:
    """Add `low` modulo 2**64 and cast to the type of the ids; exact, since every id fits it."""
    ids: Integers = (found.view(np.uint64) + np.uint64(low % 2**64)).astype(dtype)
    return ids


def replace_codes(columns: list[Any], position: Any, threads: Threads) -> list[Any]:
    """Replace each code by its position, in place where the type allows; return codes unchanged for None."""
    if position is None:
        return columns
    _place_rows(columns, _rows_of(columns), position, threads)
    return [column.astype(position.dtype, copy=False) for column in columns]


def _rows_of(columns: Sequence[Any]) -> list[_Rows]:
    return [(nth, *piece) for nth, column in enumerate(columns) for piece in cut(column.size)]


def _place_rows(columns: list[Any], rows: list[_Rows], position: Any, threads: Threads) -> None:
    def put(column: int, first: int, last: int) -> None:
        codes = columns[column][first:last]
        # All codes are in bounds; mode="clip" saves NumPy a buffer.
        np.take(position, codes, out=codes, mode="clip")

    threads.for_each(rows, put)


def by_hash(columns: list[Any], dtype: np.dtype[Any], threads: Threads) -> tuple[list[Integers], Integers]:
    """Insert all ids into a hash table, sort the distinct ones, and map each slot to the position of its id.

    A table that is half full is replaced by one of twice the slots. Rows processed before keep their slots in the
    smaller table, which are mapped to slots of the larger one at the end.
    """
    bits = max(MIN_TABLE_BITS, (sum(column.size for column in columns) // VALUES_PER_SLOT).bit_length())
    codes: list[Any] = [np.empty(column.size, index_dtype(2 << bits)) for column in columns]
    left = _rows_of(columns)
    done: list[list[_Rows]] = []
    traces: list[tuple[Any, Any, int]] = []
    table = _Table(bits)
    while True:
        inserted, left = table.insert(columns, codes, left, threads)
        done.append(inserted)
        if not left:
            break
        smaller, table = table, _Table(table.bits + 1)
        slots, keys = smaller.used()
        traces.append((slots, table.slots_of(keys, threads), smaller.slots.size))
        if (index := index_dtype(table.slots.size)) != codes[0].dtype:
            codes[:] = [column.astype(index) for column in codes]
    ids, slots, position = table.ascending(dtype, threads)
    del table, slots
    while True:
        _place_rows(codes, done.pop(), position, threads)
        if not traces:
            return codes, ids
        slots, later, size = traces.pop()
        earlier = np.empty(size, position.dtype)
        earlier[slots] = position[later]
        position = earlier


class _Table:
    """A concurrent hash table of ids with 2**bits slots; the slot is the upper bits of a product."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.slots = np.full((1 << bits) + 1, EMPTY)
        self._count = 0

    def insert(
        self, columns: list[Any], codes: list[Any], pieces: list[_Rows], threads: Threads
    ) -> tuple[list[_Rows], list[_Rows]]:
        """Write the slot of each id to `codes` until half of the slots are in use; return the pieces done and left.

        Each thread may add an equal part of the free slots of that half. The load may exceed one half when threads run
        concurrently, but the table is never full.
        """
        done: list[_Rows] = []
        left: list[_Rows] = []
        lock = Lock()

        def insert(column: int, first: int, last: int) -> None:
            limit = ((self.slots.size >> 1) - self._count) // threads.count
            stop, count = first, 0
            if limit > 0:
                stop, count = self._insert(columns[column], first, last, codes[column], limit)
            with lock:
                self._count += count
            done.append((column, first, stop))
            if stop < last:
                left.append((column, stop, last))

        threads.for_each(pieces, insert)
        return done, left

    def slots_of(self, keys: Any, threads: Threads) -> Integers:
        """Insert distinct ids, which must fit in the table, and return the slot of each."""
        slots = np.empty(keys.size, index_dtype(self.slots.size))
        counts: list[int] = []

        def insert(first: int, last: int) -> None:
            counts.append(self._insert(keys, first, last, slots, keys.size)[1])

        threads.for_each(cut(keys.size), insert)
        self._count += sum(counts)
        return slots

    def _insert(self, ids: Any, first: int, last: int, slots: Any, limit: int) -> tuple[int, int]:
        """Insert some ids until `limit` are new; return the end of those inserted, and the number of new ones."""
        found = np.zeros(2, np.int64)
        _insert(ids, first, last, self.slots, self.bits, slots, limit, found)
        return int(found[0]), int(found[1])

    def used(self) -> tuple[Integers, Any]:
        """Return the slots in use and their ids."""
        used = np.flatnonzero(self.slots != EMPTY)
        keys = self.slots[used]
        if used.size and used[-1] == self.slots.size - 1:
            keys[-1] = EMPTY
        return used, keys

    def ascending(self, dtype: np.dtype[Any], threads: Threads) -> tuple[Integers, Integers, Integers]:
        """Return the ids in ascending order, as `dtype`, their slots, and for each slot the position of its id."""
        ids: Any = np.sort(self.used()[1].astype(dtype))
        slots = self.slots_of(as_int(ids), threads)
        positions = np.empty(self.slots.size, index_dtype(ids.size))
        positions[slots] = np.arange(ids.size)
        return ids, slots, positions


class PartwiseFactorizer:
    """Factorization of the endpoints of edges that are read twice, part by part; all ids are of one integer type.

    Beside a part it holds a hash table, with the degrees of each id.
    """

    def __init__(self, edges: int) -> None:
        self._threads, self._table = Threads(this_machine().threads_for(edges)), _Table(MIN_TABLE_BITS)
        self._degrees = np.zeros((2, self._table.slots.size), index_dtype(edges))

    def add(self, source: Integers, destination: Integers) -> None:
        """Count the endpoints of some edges."""
        slots = self._slots_of([destination, source])

        def count(column: int) -> None:
            self._degrees[column] += degrees(slots[column], self._table.slots.size, 1)

        self._threads.for_each([(0,), (1,)], count)

    def vertices(self, dtype: np.dtype[Any]) -> tuple[Integers, Integers]:
        """Return all ids, in ascending order and their type, and their in- and out-degrees."""
        ids, slots, self._positions = self._table.ascending(dtype, self._threads)
        degrees = self._degrees[:, slots]
        del self._degrees
        return ids, degrees

    def positions_of(self, endpoints: list[Integers]) -> list[Integers]:
        """Return the positions of ids that were added, after `vertices`."""
        return replace_codes(self._slots_of(endpoints), self._positions, self._threads)

    def _slots_of(self, endpoints: list[Integers]) -> list[Any]:
        columns = [as_int(ids) for ids in endpoints]
        while True:
            slots: list[Any] = [np.empty(ids.size, index_dtype(self._table.slots.size)) for ids in columns]
            _, left = self._table.insert(columns, slots, _rows_of(columns), self._threads)
            if not left:
                return slots
            used, ids = self._table.used()
            degrees, self._table = self._degrees[:, used], _Table(self._table.bits + 1)
            self._degrees = np.zeros((2, self._table.slots.size), degrees.dtype)
            self._degrees[:, self._table.slots_of(ids, self._threads)] = degrees
