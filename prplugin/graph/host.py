"""Graph building on the CPU, compiled by Numba: the parts that NumPy has no fast way to say.

Kernels release the GIL, are single-threaded loops over scalars (quick to compile), and are cached on disk.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np

from prplugin.graph.edges import Floats, Integers, index_dtype
from prplugin.graph.sums import compensated_chain

__all__ = ["compensated_sums", "gather_groups", "number_ids"]

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


PARTITIONED_FROM = 12_000_000
"""Values from which their hash table outgrows the caches: docs/decisions/0004-partition-before-hashing.md."""

PARTITION_BITS = 8
"""As many partitions, 256, as a core writes to at once without losing its place."""


def number_ids(columns: list[Any], dtype: np.dtype[Any]) -> tuple[list[Integers], Integers]:
    """Replace ids by their rank among all distinct ids, through a hash table.

    Parameters
    ----------
    columns : list of int64 arrays
        The ids, or their bits.
    dtype : integer type
        What the bits mean.

    Returns
    -------
    codes : list of int32 or int64 arrays
    ids : array of `dtype`
        The distinct ids, ascending.
    """
    if sum(column.size for column in columns) < PARTITIONED_FROM:
        codes, keys = _hash_codes(columns)
        position, ids = _ascending(keys.astype(dtype))
        return [position[column_codes] for column_codes in codes], ids
    values, rows, bounds = _partitioned(columns)
    parts = [_hash_codes([values[first:last]]) for first, last in pairwise(bounds)]
    position, ids = _ascending(np.concatenate([keys for _, keys in parts]).astype(dtype))
    ranked = np.empty(rows.size, position.dtype)
    base = 0
    for (codes, keys), (first, last) in zip(parts, pairwise(bounds), strict=True):
        ranked[rows[first:last]] = position[base : base + keys.size][codes[0]]
        base += keys.size
    return np.split(ranked, np.cumsum([column.size for column in columns])[:-1]), ids


def _ascending(ids: Integers) -> tuple[Integers, Integers]:
    """Sort distinct ids; also give where each went."""
    order = np.argsort(ids)
    position = np.empty(ids.size, index_dtype(ids.size))
    position[order] = np.arange(ids.size)
    return position, ids[order]


def _partitioned(columns: list[Any]) -> tuple[Any, Integers, list[int]]:
    """Bring values together by part of their hash, so that the table of each partition stays in the cache.

    Returns
    -------
    values, rows : arrays
        The values, partition by partition, and the row of each in all columns put end to end.
    bounds : list of int
        Where the partitions begin, and where the last one ends.
    """
    counts = np.zeros(1 << PARTITION_BITS, np.int64)
    for column in columns:
        _count_partitions(column, counts)
    bounds = np.append(0, np.cumsum(counts))
    values = np.empty(bounds[-1], np.int64)
    rows = np.empty(bounds[-1], index_dtype(int(bounds[-1])))
    places, row = bounds[:-1].copy(), 0
    for column in columns:
        _fill_partitions(column, row, places, values, rows)
        row += column.size
    return values, rows, bounds.tolist()


def _hash_codes(columns: list[Any]) -> tuple[list[Integers], Any]:
    """Number the distinct values of int64 columns in the order in which they first appear.

    Returns
    -------
    codes : list of int32 or int64 arrays
        The number of each value.
    keys : int64 array
        The values by number.
    """
    narrow = index_dtype(sum(column.size for column in columns))
    codes: list[Any] = [np.empty(column.size, narrow) for column in columns]
    bits = 16
    slots = np.full(1 << bits, -1, narrow)
    keys = np.empty(slots.size // 2, np.int64)
    used = 0
    for column, column_codes in zip(columns, codes, strict=True):
        done = 0
        while done < column.size:
            done, used = _number(column, column_codes, slots, np.uint64(64 - bits), keys, done, used)
            if used == keys.size:
                # Numbering the keys themselves, which are distinct and in order, enters each under its own number.
                bits += 1
                slots = np.full(1 << bits, -1, narrow)
                full, keys = keys, np.empty(2 * keys.size, np.int64)
                _number(full, np.empty(used, narrow), slots, np.uint64(64 - bits), keys, 0, 0)
    return codes, keys[:used]


@compiled
def _count_partitions(column, counts):
    """Count the values of each partition."""
    shift = np.uint64(64 - PARTITION_BITS)
    for row in range(column.size):
        counts[np.int64((np.uint64(column[row]) * np.uint64(0xD1B54A32D192ED03)) >> shift)] += 1


@compiled
def _fill_partitions(column, first_row, places, values, rows):
    """Write each value and its row to the next place of its partition.

    The partition is the upper bits of a product too, with a factor of its own, so that the slots of its values still
    spread over the whole table.
    """
    shift = np.uint64(64 - PARTITION_BITS)
    for row in range(column.size):
        value = column[row]
        partition = np.int64((np.uint64(value) * np.uint64(0xD1B54A32D192ED03)) >> shift)
        place = places[partition]
        places[partition] = place + 1
        values[place] = value
        rows[place] = first_row + row


@compiled
def _number(column, codes, slots, shift, keys, start, used):
    """Number the values from row `start` on, by open addressing, until the rows or the room for keys run out.

    A slot holds the number of a key, or -1: no value of the ids is reserved. The first slot is chosen by Fibonacci
    hashing: the upper 64 - shift bits of the product with 2**64 over the golden ratio.
    """
    mask = slots.size - 1
    for row in range(start, column.size):
        key = column[row]
        slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> shift)
        number = slots[slot]
        while number >= 0 and keys[number] != key:
            slot = (slot + 1) & mask
            number = slots[slot]
        if number < 0:
            if used == keys.size:
                return row, used
            number = used
            slots[slot] = used
            keys[used] = key
            used += 1
        codes[row] = number
    return column.size, used


@compiled
def gather_groups(groups, members, weights, offsets, indices, grouped):
    """Write members (and weights, unless None) group by group, each group in the order of its rows.

    `offsets` says where each group begins; it is used up, and ends one group further on.
    """
    for edge in range(groups.size):
        place = offsets[groups[edge]]
        offsets[groups[edge]] = place + 1
        indices[place] = members[edge]
        if weights is not None:
            grouped[place] = weights[edge]


def compensated_sums(groups: Integers, terms: Floats, n: int) -> tuple[Floats, int]:
    """Sum non-negative terms by group, in the order of the rows, with Neumaier's compensation.

    Returns
    -------
    sums : array of n float64
    chain : int
        How many roundings a sum is worth.
    """
    sums = np.zeros(n)
    errors = np.zeros(n)
    _add_compensated(groups, terms, sums, errors)
    with np.errstate(invalid="ignore"):  # a sum past range is infinite, and its error not a number
        np.add(sums, errors, out=sums)
    return sums, compensated_chain(groups.size)


@compiled
def _add_compensated(groups, terms, sums, errors):
    """Add each term to its group's sum, and what that addition rounded away to the group's error."""
    for edge in range(groups.size):
        group = groups[edge]
        before = sums[group]
        term = terms[edge]
        after = before + term
        sums[group] = after
        if before >= term:
            errors[group] += (before - after) + term
        else:
            errors[group] += (term - after) + before
