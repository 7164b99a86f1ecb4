"""Integer ids to positions on the CPU, compiled by Numba and shared among threads.

Sparse ids go through one hash table that all threads enter ids into. Which slot an id gets depends on the race, but
ids are numbered in ascending order in the end, so that nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from prplugin.cpu.group import AHEAD, bits_of, counted, cut
from prplugin.cpu.memory import claim, compiled, prefetch, read_only
from prplugin.cpu.threads import Threads
from prplugin.types.edges import Integers, index_dtype

__all__ = ["by_hash", "dense_range", "ids_from", "number", "place", "plain", "positions_of", "shifted"]

_Rows: TypeAlias = tuple[int, int, int]
"""A column, the first of some of its rows, and the one after their last."""

FREE = np.iinfo(np.int64).min
"""What marks a free slot. As an id it has a slot of its own, after all others."""

LEAST_BITS = 16
VALUES_A_SLOT = 32
"""A table begins with 2**16 slots, or one for so many values."""


def number(columns: Sequence[Integers], threads: Threads) -> tuple[list[Integers], Integers]:
    """Replace ids by their rank among all distinct ids.

    `columns` (list of arrays of ids): Of one integer type.

    Returns `codes` (list of int32 or int64 arrays).
    Returns `ids` (array): The distinct ids, ascending, in the type of the columns.
    """
    dtype = columns[0].dtype
    columns = [plain(column) for column in columns]
    dense = dense_range(columns, dtype, threads)
    if dense is None:
        return by_hash(columns, dtype, threads)
    low, n = dense
    codes = [shifted(column, low, n, threads) for column in columns]
    position, found = positions_of(sum(counted(column, n, threads) for column in codes) > 0)
    if position is not None:
        for column in codes:
            place(column, position, threads)
        codes = [column.astype(position.dtype, copy=False) for column in codes]
    return codes, ids_from(found, low, dtype)


def plain(column: Integers) -> Any:
    """Give ids in one piece, as int32 or int64; those of 64 bits by their bits."""
    if column.dtype == np.uint64:
        column = column.view(np.int64)
    wide = np.int64 if column.dtype in (np.int64, np.uint32) else np.int32
    return np.ascontiguousarray(column, wide)


def dense_range(columns: Sequence[Any], dtype: np.dtype[Any], threads: Threads) -> tuple[int, int] | None:
    """Give the least id and how many there are from it to the greatest, or None where those are too many.

    Up to half as many as there are values, ids are numbered by the place in that range. `dtype` is what the bits mean.
    """
    most = sum(column.size for column in columns) // 2
    lows: list[int] = []
    highs: list[int] = []

    def look(column: Any, first: int, last: int) -> None:
        if lows and max(highs) - min(lows) >= most:
            return  # the rest will not bring them nearer
        ids = column[first:last].view(dtype) if dtype == np.uint64 else column[first:last]
        highs.append(int(ids.max()))
        lows.append(int(ids.min()))

    threads.share([(column, *piece) for column in columns for piece in cut(column.size)], look)
    low, span = min(lows), max(highs) - min(lows) + 1
    return (low, span) if span <= most else None


def shifted(column: Any, low: int, n: int, threads: Threads) -> Integers:
    """Subtract the least id from ids in a range of n."""
    codes = np.empty(column.size, index_dtype(n))
    least = bits_of(low)

    def shift(first: int, last: int) -> None:
        np.subtract(column[first:last], least, out=codes[first:last], dtype=np.int64, casting="unsafe")

    threads.share(cut(column.size), shift)
    return codes


def positions_of(seen: Any) -> tuple[Integers | None, Integers]:
    """Give the position of each id of a range among those seen, None if that is all; and which are."""
    found = np.flatnonzero(seen)
    if found.size == seen.size:
        return None, found
    position = np.cumsum(seen, dtype=index_dtype(found.size))
    position -= 1
    return position, found


def ids_from(found: Integers, low: int, dtype: np.dtype[Any]) -> Integers:
    """Add the least id: modulo 2**64, cut to the type of the ids, which is exact since every id fits that type."""
    ids: Integers = (found.view(np.uint64) + np.uint64(low % 2**64)).astype(dtype)
    return ids


def place(codes: Any, position: Any, threads: Threads) -> None:
    """Replace each code by its position."""
    _place_rows([codes], [(0, *piece) for piece in cut(codes.size)], position, threads)


def _place_rows(columns: list[Any], rows: list[_Rows], position: Any, threads: Threads) -> None:
    def put(column: int, first: int, last: int) -> None:
        codes = columns[column][first:last]
        # In bounds all of them: to say so keeps NumPy from a buffer of its own.
        np.take(position, codes, out=codes, mode="clip")

    threads.share(rows, put)


def by_hash(columns: list[Any], dtype: np.dtype[Any], threads: Threads) -> tuple[list[Integers], Integers]:
    """Enter all ids into a table, put those in it in order, and look up where each slot's went.

    A table that is half full gives way to one of twice as many slots. Rows that are done by then keep their slots in
    the smaller one, which are traced to those in the larger one in the end.
    """
    bits = max(LEAST_BITS, (sum(column.size for column in columns) // VALUES_A_SLOT).bit_length())
    columns = [read_only(column) for column in columns]
    codes: list[Any] = [np.empty(column.size, index_dtype(2 << bits)) for column in columns]
    left = [(end, *piece) for end, column in enumerate(columns) for piece in cut(column.size)]
    done: list[list[_Rows]] = []
    traces: list[tuple[Any, Any, int]] = []
    table = _Table(bits)
    while True:
        entered, left = table.enter(columns, codes, left, threads)
        done.append(entered)
        if not left:
            break
        smaller, table = table, _Table(table.bits + 1)
        slots, keys = smaller.used()
        traces.append((slots, table.slots_of(keys, threads), smaller.slots.size))
        if (index := index_dtype(table.slots.size)) != codes[0].dtype:
            codes[:] = [column.astype(index) for column in codes]
    ids: Any = np.sort(table.used()[1].astype(dtype))
    position = np.empty(table.slots.size, index_dtype(ids.size))
    position[table.slots_of(plain(ids), threads)] = np.arange(ids.size)
    del table
    while True:
        _place_rows(codes, done.pop(), position, threads)
        if not traces:
            return codes, ids
        slots, later, size = traces.pop()
        earlier = np.empty(size, position.dtype)
        earlier[slots] = position[later]
        position = earlier


class _Table:
    """A hash table of ids that all threads enter ids into.

    `bits`: It has 2**bits slots. The first to look at is the upper bits of a product.
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.slots = np.full((1 << bits) + 1, FREE)
        self._shift = np.uint64(64 - bits)
        self._count = 0

    def enter(
        self, columns: list[Any], codes: list[Any], pieces: list[_Rows], threads: Threads
    ) -> tuple[list[_Rows], list[_Rows]]:
        """Write the slot of each id to `codes` until half of the slots are in use.

        Threads that are at it together find room for an equal share each, so that together they go past half the
        slots, but never fill them.

        Returns `done, left` (lists of pieces).
        """
        done: list[_Rows] = []
        left: list[_Rows] = []
        lock = Lock()

        def enter(end: int, first: int, last: int) -> None:
            room = ((self.slots.size >> 1) - self._count) // threads.count
            stop, count = first, 0
            if room > 0:
                stop, count = _enter(columns[end], first, last, self.slots, self._shift, codes[end], room)
            with lock:
                self._count += count
            done.append((end, first, stop))
            if stop < last:
                left.append((end, stop, last))

        threads.share(pieces, enter)
        return done, left

    def slots_of(self, keys: Any, threads: Threads) -> Integers:
        """Enter distinct ids, if they are not in it, for all of which there is room; give the slot of each."""
        slots, keys = np.empty(keys.size, index_dtype(self.slots.size)), read_only(keys)
        counts: list[int] = []

        def enter(first: int, last: int) -> None:
            counts.append(_enter(keys, first, last, self.slots, self._shift, slots, keys.size)[1])

        threads.share(cut(keys.size), enter)
        self._count += sum(counts)
        return slots

    def used(self) -> tuple[Integers, Any]:
        """Give the slots in use, and their ids."""
        used = np.flatnonzero(self.slots != FREE)
        keys = self.slots[used]
        if used.size and used[-1] == self.slots.size - 1:
            keys[-1] = FREE
        return used, keys


@compiled
def _enter(ids, first, last, slots, shift, codes, room):
    """Write the slot of each id to `codes`, and the id into it, by open addressing; up to `room` ids that are new.

    Fibonacci hashing: the factor is 2**64 over the golden ratio. The slot of a row further on is fetched meanwhile.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    mask = slots.size - 2
    new = 0
    for row in range(first, last):
        if row + AHEAD < last:
            ahead = np.uint64(ids[row + AHEAD])
            prefetch(slots, np.int64((ahead * golden) >> shift))  # type: ignore[call-arg]
        key = np.int64(ids[row])
        slot = np.int64((np.uint64(key) * golden) >> shift)
        if key == FREE:
            slot = mask + 1
            slots[slot] = 0
        else:
            held = slots[np.uint64(slot)]
            while held != key:
                if held == FREE:
                    if new == room:
                        return row, new
                    held = claim(slots, slot, FREE, key)  # type: ignore[call-arg]
                    if held == FREE:
                        new += 1
                        break
                else:
                    slot = (slot + 1) & mask
                    held = slots[np.uint64(slot)]
        codes[row] = slot
    return last, new
