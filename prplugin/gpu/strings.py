"""Factorization of strings in the order of first appearance, on the GPU: see strings.cu."""

from __future__ import annotations

from typing import NamedTuple

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.gpu.factorize import INDEX, STATE, slots_needed
from prplugin.gpu.runtime import THREADS, blocks_for_each
from prplugin.gpu.sort import sorted_by, state_type
from prplugin.gpu.structs import STRINGS, Argument
from prplugin.types.arrays import fill_bytes
from prplugin.types.edges import Integers, bits_of, index_dtype, offset_dtype

WARP = 32


class Strings(NamedTuple):
    """A column of strings without nulls, in Arrow's layout."""

    chars: Integers  # uint8; may include bytes before the first string and after the last
    offsets: Integers  # int32 or int64

    @property
    def rows(self) -> int:
        """Number of strings."""
        return self.offsets.size - 1


def factorize_strings(columns: list[Strings]) -> tuple[list[Integers], Strings] | None:
    """Factorize strings as they first appear: row by row, source before destination, then additional vertices.

    `columns` are sources, destinations, and additional vertices, if any, with at least one string in all. Return the
    codes of each column, of type `index_dtype(n)`, and the n distinct strings, in order; None if 64-bit hashes of
    different strings collide, or the hash table is too small. Peak memory: 12 bytes per string, or 4 bytes per string
    and 63 per distinct one.
    """
    bytes_at_most = sum(column.chars.size for column in columns)
    columns = _of_one_width(columns, offset_dtype(bytes_at_most))
    m, places = columns[0].rows, sum(column.rows for column in columns)
    given = [_argument(column) for column in columns]
    hashes = [_hashed(column, argument) for column, argument in zip(columns, given, strict=True)]
    given += [STRINGS({}, chars=None, offsets=None, rows=0)] * (3 - len(given))
    capacity = slots_needed(hashes)
    index = index_dtype(capacity)
    state = state_type(bytes_at_most)

    def launch(name: str, blocks: int, *arguments: object) -> None:
        runtime.launch(_kernel(name, columns[0], index, state), blocks, THREADS, *arguments)

    table: Integers = cupy.empty(2 * (capacity + 1), np.uint64)
    fill_bytes(table, 0xFF)
    found = cupy.zeros(5, np.uint64)
    listed, outcome = found[2:], found[3:]
    codes = [cupy.empty(column.rows, index) for column in columns]
    for nth, (column, slots) in enumerate(zip(hashes, codes, strict=True)):
        blocks = min(blocks_for_each(column.size), 8 * runtime.multiprocessors())
        launch("insert", blocks, m, np.int32(nth), column, column.size, capacity, table, slots, found)
    del hashes, column
    n, failures = found[:2].get().tolist()
    if failures:
        return None

    first, slots = cupy.empty(n, np.uint64), cupy.empty(n, index)
    launch("collect", blocks_for_each(capacity + 1), capacity, table, listed, first, slots)
    first, slots = sorted_by(first, bits_of(places), slots)
    tiles = blocks_for_each(n)
    states = cupy.zeros(tiles + 1, state)
    begins = cupy.empty(n + 1, columns[0].offsets.dtype)
    launch("place", tiles, n, first, slots, *given, states[tiles:], states, table, begins, outcome)
    for nth, column in enumerate(codes):
        blocks = runtime.blocks_for(column.size, THREADS)
        launch("recode", blocks, *given, np.int32(nth), column.size, table, column, outcome)
    size, collisions = outcome.get().tolist()
    if collisions:
        return None
    chars = cupy.empty(size, np.uint8)
    launch("copy_strings", runtime.blocks_for(WARP * n, THREADS), n, first, *given, begins, chars)
    distinct = Strings(chars, begins.astype(offset_dtype(size), copy=False))
    return [column.astype(index_dtype(n), copy=False) for column in codes], distinct


def _of_one_width(columns: list[Strings], least: np.dtype[np.generic]) -> list[Strings]:
    dtype = np.result_type(least, *(column.offsets.dtype for column in columns))
    return [Strings(column.chars, cupy.ascontiguousarray(column.offsets, dtype)) for column in columns]


def _hashed(column: Strings, argument: object) -> Integers:
    """Return a 64-bit hash of each string."""
    hashes: Integers = cupy.empty(column.rows, np.uint64)
    blocks = runtime.blocks_for(column.rows, THREADS)
    runtime.launch(_kernel("hash_strings", column), blocks, THREADS, argument, hashes)
    return hashes


def _argument(column: Strings) -> Argument:
    types = {"offset_t": column.offsets.dtype}
    return STRINGS(types, chars=column.chars, offsets=column.offsets, rows=column.rows)


def _kernel(
    name: str, column: Strings, index: np.dtype[np.generic] = INDEX, state: np.dtype[np.generic] = STATE
) -> runtime.Kernel:
    return runtime.kernel("gpu/strings.cu", name, offset_t=column.offsets.dtype, index_t=index, state_t=state)
