"""Graph building on the CPU, compiled by Numba: the parts that NumPy has no fast way to say.

Kernels release the GIL, are single-threaded loops over scalars (quick to compile), and are cached on disk.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from prplugin.graph.edges import Floats, Integers, index_dtype

__all__ = ["compensated_sums", "gather_groups", "hash_codes"]

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


def hash_codes(columns: list[Any]) -> tuple[list[Integers], Any]:
    """Number the distinct values of int64 columns in the order in which they first appear.

    Returns
    -------
    codes : list of int32 or int64 arrays
        The number of each value.
    keys : int64 array
        The values by number.
    """
    count = sum(column.size for column in columns)
    narrow = index_dtype(count)
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
        How many roundings a sum is worth: with k terms its relative error is at most u + (k * u)**2, u = 2**-53
        (Ogita, Rump and Oishi 2005, "Accurate sum and dot product", Sum2), and k * k * u <= 1 + (k / 2**26)**2.
    """
    sums = np.zeros(n)
    errors = np.zeros(n)
    _add_compensated(groups, terms, sums, errors)
    with np.errstate(invalid="ignore"):  # a sum past range is infinite, and its error not a number
        np.add(sums, errors, out=sums)
    return sums, 2 + (groups.size >> 26) ** 2


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
