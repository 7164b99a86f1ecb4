"""Strings to positions in the order of first appearance, on the GPU: see strings.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.gpu.each import THREADS, blocks_for_each
from prplugin.gpu.factorize import INDEX, STATE, slots_needed
from prplugin.gpu.sort import KEYS, VALUES, bits_for, sorted_by, state_type
from prplugin.types.edges import Integers, index_dtype, offset_dtype

__all__ = ["Strings", "number_strings"]

WARP = 32


class Strings(NamedTuple):
    """A column of strings, none of them null, as Arrow holds it.

    `chars` (array of uint8): All strings; there may be bytes before the first and after the last.
    `offsets` (array of int32 or int64): Where each string begins in `chars`, and where the last ends.
    """

    chars: Integers
    offsets: Integers

    @property
    def rows(self) -> int:
        """How many strings there are."""
        return self.offsets.size - 1


def number_strings(columns: list[Strings]) -> tuple[list[Integers], Strings] | None:
    """Number distinct strings as they first appear: row by row, source before destination, then more vertices.

    While it works it holds 12 bytes a string, later 4 and 63 a distinct one.

    `columns` (list of Strings): Sources, destinations, and if there are more vertices, those; in all at least one
    string.

    Returns `codes` (list of arrays): For each column, the number of each string; of type `index_dtype(n)`.
    Returns `distinct` (Strings): The n different ones, in order.

    None if two different strings have one hash of 64 bits, or if the table of these was too small.
    """
    bytes_at_most = sum(column.chars.size for column in columns)
    columns = _of_one_width(columns, offset_dtype(bytes_at_most))
    m, places = columns[0].rows, sum(column.rows for column in columns)
    hashes = [_hashed(column) for column in columns]
    capacity = slots_needed(hashes)
    index = index_dtype(capacity)
    state = state_type(bytes_at_most)

    def launch(name: str, threads: int, *arguments: Any) -> None:
        _kernel(name, columns[0], index, state)((threads,), (THREADS,), arguments)

    table: Any = cupy.empty(2 * (capacity + 1), np.uint64)
    table.data.memset_async(0xFF, table.nbytes)
    found = cupy.zeros(5, np.uint64)
    listed, outcome = found[2:], found[3:]
    codes = [cupy.empty(column.rows, index) for column in columns]
    for end, (column, slots) in enumerate(zip(hashes, codes, strict=True)):
        blocks = min(blocks_for_each(column.size), 8 * runtime.multiprocessors())
        launch("insert", blocks, m, np.int32(end), column, column.size, capacity, table, slots, found)
    del hashes, column
    n, failures = found[:2].get().tolist()
    if failures:
        return None

    first, slots = cupy.empty(n, np.uint64), cupy.empty(n, index)
    launch("collect", blocks_for_each(capacity + 1), capacity, table, listed, first, slots)
    first, slots = sorted_by(first, bits_for(places), slots)
    tiles = blocks_for_each(n)
    states = cupy.zeros(tiles + 1, state)
    begins = cupy.empty(n + 1, columns[0].offsets.dtype)
    launch("place", tiles, n, first, slots, *_offsets(columns), states[tiles:], states, table, begins, outcome)
    for end, column in enumerate(codes):
        blocks = runtime.blocks_for(column.size, THREADS)
        launch("recode", blocks, *_arguments(columns), np.int32(end), column.size, table, column, outcome)
    size, collisions = outcome.get().tolist()
    if collisions:
        return None
    chars = cupy.empty(size, np.uint8)
    launch("copy_strings", runtime.blocks_for(WARP * n, THREADS), n, first, *_arguments(columns), begins, chars)
    distinct = Strings(chars, begins.astype(offset_dtype(size), copy=False))
    return [column.astype(index_dtype(n), copy=False) for column in codes], distinct


def _of_one_width(columns: list[Strings], least: np.dtype[Any]) -> list[Strings]:
    dtype = np.result_type(least, *(column.offsets.dtype for column in columns))
    return [Strings(column.chars, cupy.ascontiguousarray(column.offsets, dtype)) for column in columns]


def _hashed(column: Strings) -> Integers:
    """Give 64 bits of a hash of each string."""
    hashes: Integers = cupy.empty(column.rows, np.uint64)
    launch = _kernel("hash_strings", column)
    launch((runtime.blocks_for(column.rows, THREADS),), (THREADS,), (*_arguments([column])[:3], hashes))
    return hashes


def _arguments(columns: list[Strings]) -> list[Any]:
    """Give the kernel's three columns: bytes, offsets and rows; those that are absent have none."""
    arguments: list[Any] = []
    for column in columns:
        arguments += column.chars, column.offsets, column.rows
    return arguments + [0, 0, 0] * (3 - len(columns))


def _offsets(columns: list[Strings]) -> list[Any]:
    """Give three columns without their bytes."""
    arguments = _arguments(columns)
    return [argument for place, argument in enumerate(arguments) if place % 3]


def _kernel(
    name: str,
    column: Strings,
    index: np.dtype[Any] = INDEX,
    state: np.dtype[Any] = STATE,
) -> Any:
    return runtime.kernel(
        "gpu/strings.cu",
        name,
        offset_t=VALUES[column.offsets.dtype.itemsize],
        index_t=VALUES[index.itemsize],
        state_t=KEYS[state.itemsize],
    )
