"""Stable sorting and offsets in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np

from prplugin.types.array_module import Booleans
from prplugin.types.arrays import Array, is_host, namespace
from prplugin.types.edges import Integers, index_dtype


def offsets_of(counts: Integers) -> Integers:
    """Return the n + 1 offsets of n groups, as int64: the number of entries may exceed 2**31 where n does not."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def stable_order(keys: Integers) -> Integers:
    """Return the permutation that sorts non-negative keys stably.

    Where key and position fit into one 64-bit integer together, these are sorted: several times faster than
    `numpy.argsort` with ``kind="stable"``.
    """
    if not is_host(keys):
        return namespace(keys).argsort(keys, kind="stable")
    largest = int(keys.max(initial=0))
    position_bits = keys.size.bit_length()
    if not packs(largest, keys.size):
        return np.argsort(keys, kind="stable")
    packed = keys.astype(np.int64) << position_bits
    packed |= np.arange(keys.size)
    packed.sort()
    packed &= (1 << position_bits) - 1
    return packed


def packs(largest: int, count: int) -> bool:
    """Return whether a key up to `largest` and a position below `count` fit into 63 bits together."""
    return largest.bit_length() + count.bit_length() <= 63


def factorize_sorted(columns: Sequence[Array], dtype: np.dtype[np.generic]) -> tuple[list[Integers], Integers]:
    """Factorize columns by sorting their values as `dtype`; return codes of each, and the distinct values ascending."""
    values, codes = np.unique(np.concatenate(columns).astype(dtype, copy=False), return_inverse=True)
    ends = np.cumsum([column.size for column in columns])
    return np.split(codes.astype(index_dtype(values.size)), ends[:-1].tolist()), values


def rows_of(offsets: Integers) -> Integers:
    """Return the row of each entry of compressed rows."""
    n = offsets.size - 1
    rows: Integers = np.repeat(np.arange(n, dtype=index_dtype(n)), np.diff(offsets))
    return rows


def run_starts(*columns: Array) -> Booleans:
    """Return a mask of the rows that differ from the previous row in any column; it is True for the first row."""
    xp = namespace(columns[0])
    starts = xp.ones(columns[0].size, np.bool_)
    starts[1:] = reduce(or_, (column[1:] != column[:-1] for column in columns))
    return starts
