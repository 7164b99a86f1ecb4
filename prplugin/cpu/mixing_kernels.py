"""Anderson mixing compiled by Numba: see `prplugin.numerics.extrapolation`; the kernels release the GIL."""

from __future__ import annotations

import numba
import numpy as np

from prplugin.cpu.memory import OPTIONS

CHUNK = 128
"""Columns per chunk, so that a chunk of all rows stays in the L1 cache."""

ZERO = np.uint64(0)

vectorized = numba.njit(**OPTIONS, fastmath={"reassoc", "contract", "nsz"})


@vectorized
def products(first, last, rows, of, sums):
    """Add the dot products of all pairs of the rows `of`, over columns `first` to `last`, to ``sums[i, j]``, i >= j."""
    begin, last = np.uint64(first), np.uint64(last)
    while begin < last:
        width = min(np.uint64(CHUNK), last - begin)
        for i in range(of.size):
            for j in range(i + 1):
                left, right = np.uint64(of[i]), np.uint64(of[j])
                product = 0.0
                for column in range(ZERO, width):
                    product += np.float64(rows[left, begin + column]) * rows[right, begin + column]
                sums[i, j] += product
        begin += width


@vectorized
def combine(first, last, rows, of, weights, buffer, combined):
    """Write the sum of the rows `of`, times their weights, to `combined`, which may alias one of the rows.

    `buffer` holds `CHUNK` float64.
    """
    begin, last = np.uint64(first), np.uint64(last)
    while begin < last:
        width = min(np.uint64(CHUNK), last - begin)
        for column in range(ZERO, width):
            buffer[column] = 0.0
        for i in range(of.size):
            row, weight = np.uint64(of[i]), weights[i]
            for column in range(ZERO, width):
                buffer[column] += weight * rows[row, begin + column]
        for column in range(ZERO, width):
            combined[begin + column] = buffer[column]
        begin += width
