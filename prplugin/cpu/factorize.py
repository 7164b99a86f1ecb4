"""Factorization of integer ids on the CPU, and grouping of edges by them, in parallel: see ingest.cpp.

All threads insert sparse ids into one hash table. The slot of an id depends on the order of insertions, but codes are
assigned in ascending order of id afterwards, and do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.group import as_int64, degrees, grouped
from prplugin.cpu.threads import bounds_of_pieces
from prplugin.machine import this_machine
from prplugin.types.array_module import Booleans
from prplugin.types.edges import Csc, Floats, Grouped, Integers, index_dtype

EMPTY = np.iinfo(np.int64).min
"""Marks an empty slot. The id of this value has its own slot, after all others."""

FEW_VALUES = 1 << 15
"""Number of values up to which one call on one thread does everything: its arrays are in the cache of a core."""

MIN_TABLE_BITS = 16
VALUES_PER_SLOT = 32
"""A table starts with 2**16 slots, or one per 32 values if that is more; with two per value if that is less."""


def factorize_ids(columns: Sequence[Integers], threads: int) -> tuple[list[Integers], Integers]:
    """Factorize columns of one integer type; return codes, and the distinct ids in ascending order and that type."""
    dtype = columns[0].dtype
    bounds = [0, *accumulate(column.size for column in columns)]
    if bounds[-1] <= FEW_VALUES:
        together, ids, _ = _factorized_few(columns, grouped=False)
        return [together[first:last] for first, last in pairwise(bounds)], ids
    columns = [as_int(column) for column in columns]
    dense = dense_range(columns, dtype, threads)
    if dense is None:
        return by_hash(columns, dtype, threads)
    low, n = dense
    codes = [shifted(column, low, n, threads) for column in columns]
    position, found = positions_of(
        sum((degrees(column, n, threads) for column in codes[1:]), degrees(codes[0], n, threads)) > 0
    )
    return replace_codes(codes, position, threads), ids_at(found, low, dtype)


def edges_by_id(columns: list[Integers], *, lasting: bool) -> tuple[Grouped, Integers]:
    """Factorize the endpoints of edges in ascending order of id, and group the edges by target.

    `columns` are sources and destinations, at least one of each, of one integer type. `lasting`: whether `endpoints`
    must return codes after the caller has changed the columns; a one-shot graph may alias them. Return the edges, and
    the distinct ids, ascending, in the type of the columns.
    """
    if (m := columns[0].size) <= FEW_VALUES // 2:
        both, ids, (offsets, indices, out_degrees) = _factorized_few(columns, grouped=True)
        return Grouped(Csc(offsets, indices, None), out_degrees, m, lambda: (both[:m], both[m:])), ids
    threads = this_machine().threads_for(m)
    dtype = columns[0].dtype
    endpoints = [as_int(column) for column in columns]
    dense = dense_range(endpoints, dtype, threads)
    if dense is not None:
        return _by_range(columns, endpoints, *dense, lasting, threads)
    codes, ids = by_hash(endpoints, dtype, threads)
    del endpoints
    endpoints_of = partial(tuple, codes.copy()) if lasting else partial(_factorized, columns)
    out_degrees = degrees(codes[0], ids.size, threads)
    # removed from the list, so that their memory is free before the last pass
    offsets, indices, _ = grouped(codes.pop(), codes.pop(), None, ids.size, threads)
    return Grouped(Csc(offsets, indices, None), out_degrees, m, endpoints_of), ids


def _factorized_few(columns: Sequence[Integers], *, grouped: bool) -> tuple[Integers, Integers, list[Integers]]:
    """Return codes of all values, the distinct ids, and offsets, indices and out-degrees of edges grouped by target."""
    values = as_int(np.concatenate(columns))
    count, dtype = values.size, columns[0].dtype
    codes, ids = np.empty(count, np.int32), np.empty_like(values)
    slots, scratch = np.empty(1 << (2 * count).bit_length(), np.int32), np.empty((4, count), np.int64)
    edges: list[Integers] = []
    if grouped:
        edges = [np.empty(count + 1, np.int64), np.empty_like(codes[: count // 2]), np.empty_like(codes)]
    of_edges = edges or (None, None, None)
    n = kernels.factorize_few(values, 0 if dtype == np.uint64 else EMPTY, slots, scratch, codes, ids, *of_edges)
    if grouped:  # copies, so that the graph keeps no more than it needs
        edges = [edges[0][: n + 1].copy(), edges[1], edges[2][:n].copy()]
    return codes, ids[:n].astype(dtype), edges


def _by_range(
    columns: list[Integers], endpoints: list[Integers], low: int, span: int, lasting: bool, threads: int
) -> tuple[Grouped, Integers]:
    """Group edges by id - low, then remove ids of the range that have no edges."""
    dtype, least = columns[0].dtype, low
    if lasting:
        endpoints, least = [shifted(ids, low, span, threads) for ids in endpoints], 0
    source, destination = endpoints
    out_degrees = degrees(source, span, threads, least)
    offsets, indices, _ = grouped(destination, source, None, span, threads, least)
    position, found = positions_of((out_degrees > 0) | (offsets[1:] > offsets[:-1]))
    (indices,) = replace_codes([indices], position, threads)
    if position is not None:
        offsets, out_degrees = np.append(offsets[found], offsets[-1]), out_degrees[found]
    endpoints_of = (
        (lambda: tuple(replace_codes(endpoints, position, threads))) if lasting else partial(_factorized, columns)
    )
    return Grouped(Csc(offsets, indices, None), out_degrees, source.size, endpoints_of), ids_at(found, low, dtype)


def _factorized(columns: list[Integers]) -> tuple[Integers, ...]:
    """Factorize the ids again, and return the codes of both columns."""
    return tuple(factorize_ids(columns, this_machine().threads_for(columns[0].size))[0])


def as_int(column: Integers) -> Integers:
    """Return contiguous ids as int32 or int64; uint64 is reinterpreted."""
    if column.dtype == np.uint64:
        column = column.view(np.int64)
    wide = np.int64 if column.dtype in (np.int64, np.uint32) else np.int32
    return np.ascontiguousarray(column, wide)


def dense_range(columns: Sequence[Integers], dtype: np.dtype[np.generic], threads: int) -> tuple[int, int] | None:
    """Return the least id and the size of the range of ids, or None if the size exceeds half the number of values.

    `dtype` is the type of the ids before `as_int`.
    """
    flip = EMPTY if dtype == np.uint64 else 0  # orders reinterpreted ids
    found = []
    for column in columns:
        parts = np.empty((max(1, min(threads, column.size)), 2), np.int64)
        kernels.extremes(column, flip, parts)
        found.append((int(parts[:, 0].min()), int(parts[:, 1].max())))
    low = min(low for low, _ in found)
    span = max(high for _, high in found) - low + 1
    most = sum(column.size for column in columns) // 2
    return (low + 2**63 if flip else low, span) if 0 < span <= most else None


def shifted(column: Integers, low: int, n: int, threads: int) -> Integers:
    """Subtract `low` from ids in the range low, ..., low + n - 1."""
    codes, bounds = np.empty(column.size, index_dtype(n)), bounds_of_pieces(column.size)
    kernels.map_ids(column, as_int64(low), bounds[:-1], bounds[1:], None, codes, threads)
    return codes


def positions_of(seen: Booleans) -> tuple[Integers | None, Integers]:
    """Return the position of each id of a range among those seen (None if all are), and the ids that are seen."""
    found = np.flatnonzero(seen)
    if found.size == seen.size:
        return None, found
    position = np.cumsum(seen, dtype=index_dtype(found.size))
    position -= 1
    return position, found


def ids_at(found: Integers, low: int, dtype: np.dtype[np.generic]) -> Integers:
    """Add `low` modulo 2**64 and cast to the type of the ids; exact, since every id fits it."""
    ids: Integers = (found.view(np.uint64) + np.uint64(low % 2**64)).astype(dtype)
    return ids


def replace_codes(columns: list[Integers], position: Integers | None, threads: int) -> list[Integers]:
    """Replace each code by its position, in place where the type allows; return codes unchanged for None."""
    if position is None:
        return columns
    found: list[Integers] = []
    for codes in columns:
        bounds = bounds_of_pieces(codes.size)
        found.append(codes if codes.dtype == position.dtype else np.empty(codes.size, position.dtype))
        kernels.map_ids(codes, 0, bounds[:-1], bounds[1:], position, found[-1], threads)
    return found


def by_hash(columns: list[Integers], dtype: np.dtype[np.generic], threads: int) -> tuple[list[Integers], Integers]:
    """Insert all ids into a hash table, sort the distinct ones, and map each slot to the position of its id."""
    values = sum(column.size for column in columns)
    table = _Table(min((2 * values).bit_length(), max(MIN_TABLE_BITS, (values // VALUES_PER_SLOT).bit_length())))
    slots = table.insert(columns, threads)
    ids, _, positions = table.ascending(dtype, threads)
    del table
    return replace_codes(slots, positions, threads), ids


class _Table:
    """A concurrent hash table of ids with 2**bits slots; the slot is the upper bits of a product.

    `values` has numbers of each slot's id, which move with it when the table grows: a row per kind.
    """

    def __init__(self, bits: int, values: Integers | None = None) -> None:
        self.bits = bits
        self.slots = np.full((1 << bits) + 1, EMPTY)
        self.values: Integers = np.zeros((0, self.slots.size), np.int64) if values is None else values
        self._count = 0

    def insert(self, columns: list[Integers], threads: int) -> list[Integers]:
        """Insert the ids of some columns; return the slot of each.

        A table that is half full is replaced by one of twice the slots. Each thread may add an equal part of the free
        slots of that half. The load may exceed one half when threads run concurrently, but the table is never full.
        """
        found: list[Integers] = []
        for ids in columns:
            bounds = bounds_of_pieces(ids.size)
            done = bounds[:-1].copy()
            found.append(np.empty(ids.size, index_dtype(self.slots.size)))
            while True:
                limit = max((self.slots.size >> 1) - self._count, 0)
                self._count += kernels.insert_ids(ids, done, self.slots, self.bits, found[-1], limit, threads)
                if np.array_equal(done, bounds[1:]):
                    break
                moved = self._grow(threads)
                found[:] = [slots.astype(moved.dtype, copy=False) for slots in found]
                for slots in found[:-1]:
                    replace_codes([slots], moved, threads)
                kernels.map_ids(found[-1], 0, bounds[:-1], done, moved, found[-1], threads)
        return found

    def _grow(self, threads: int) -> Integers:
        """Double the slots; return the new slot of each old one in use."""
        used, ids = self.used()
        larger = _Table(self.bits + 1)
        (slots,) = larger.insert([ids], threads)
        moved = np.empty(self.slots.size, slots.dtype)
        moved[used] = slots
        larger.values = np.zeros((len(self.values), larger.slots.size), self.values.dtype)
        larger.values[:, slots] = self.values[:, used]
        self.__dict__.update(larger.__dict__)
        return moved

    def used(self) -> tuple[Integers, Integers]:
        """Return the slots in use and their ids."""
        used = np.flatnonzero(self.slots != EMPTY)
        keys = self.slots[used]
        if used.size and used[-1] == self.slots.size - 1:
            keys[-1] = EMPTY
        return used, keys

    def ascending(self, dtype: np.dtype[np.generic], threads: int) -> tuple[Integers, Integers, Integers]:
        """Return the ids in ascending order, as `dtype`, their slots, and for each slot the position of its id."""
        ids: Integers = np.sort(self.used()[1].astype(dtype))
        (slots,) = self.insert([as_int(ids)], threads)
        positions = np.empty(self.slots.size, index_dtype(ids.size))
        positions[slots] = np.arange(ids.size)
        return ids, slots, positions


class PartwiseFactorizer:
    """Factorizes the endpoints of up to m edges, which are read twice: see `prplugin.frames.parts`.

    All ids are of one integer type. Beside a part it holds a hash table, with the degrees of each id.

    `degrees`: After `vertices`, the in-degree and the out-degree of each vertex.
    """

    degrees: Integers

    def __init__(self, dtype: np.dtype[np.generic], m: int) -> None:
        self._dtype, self._threads = dtype, this_machine().threads_for(m)
        self._table = _Table(MIN_TABLE_BITS, np.zeros((2, (1 << MIN_TABLE_BITS) + 1), index_dtype(m)))

    def add(self, source: Integers, destination: Integers, weights: Floats | None, own: object = None) -> None:
        """Count the endpoints of some edges."""
        slots = self._table.insert([as_int(destination), as_int(source)], self._threads)
        self._table.values += np.stack([degrees(column, self._table.slots.size, self._threads) for column in slots])

    def vertices(self) -> Integers:
        """Return all ids, in ascending order and their type."""
        ids, slots, self._positions = self._table.ascending(self._dtype, self._threads)
        self.degrees = self._table.values[:, slots]
        del self._table.values
        return ids

    def positions_of(self, ends: list[Integers], own: object = None) -> list[Integers]:
        """Return the positions of ids that were added, after `vertices`."""
        slots = self._table.insert([as_int(ids) for ids in ends], self._threads)
        return replace_codes(slots, self._positions, self._threads)
