"""Anderson mixing compiled by Numba: see `prplugin.cpu.mixing`. The kernels release the GIL and are cached on disk."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["CHUNK", "combine", "mix", "products"]

CHUNK = 128
"""Columns per chunk, so that a chunk of all rows stays in the L1 cache."""

ZERO, ONE = np.uint64(0), np.uint64(1)

vectorized = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@vectorized
def products(first, last, rows, after, before, buffer, sums):
    """Add the dot products of all pairs of residuals, over columns `first` to `last`, to ``sums[i, j]`` for i >= j.

    Residual i is row ``after[i]`` minus row ``before[i]``, or row ``after[i]`` if ``before[i]`` is negative. `buffer`
    holds ``after.size`` x `CHUNK` float64.
    """
    count = after.size
    begin, last = np.uint64(first), np.uint64(last)
    while begin < last:
        width = min(np.uint64(CHUNK), last - begin)
        for i in range(count):
            row = np.uint64(after[i])
            for column in range(ZERO, width):
                buffer[i, column] = rows[row, begin + column]
            if before[i] >= 0:
                row = np.uint64(before[i])
                for column in range(ZERO, width):
                    buffer[i, column] -= rows[row, begin + column]
        for i in range(count):
            for j in range(i + 1):
                product = 0.0
                for column in range(ZERO, width):
                    product += buffer[i, column] * buffer[j, column]
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


@vectorized
def mix(first, last, ranks, rows, weights, jump, buffer):
    """Replace ranks y by z = max(y - weights @ rows, 0), write z - y to `jump`, and return the sum of z."""
    total = 0.0
    begin, last = np.uint64(first), np.uint64(last)
    while begin < last:
        width = min(np.uint64(CHUNK), last - begin)
        part = 0.0
        for column in range(ZERO, width):
            buffer[column] = ranks[begin + column]
        for i in range(weights.size):
            weight = weights[i]
            if weight != 0.0:
                for column in range(ZERO, width):
                    buffer[column] -= weight * rows[np.uint64(i), begin + column]
        for column in range(ZERO, width):
            rank = buffer[column] if buffer[column] > 0.0 else 0.0
            jump[begin + column] = rank - ranks[begin + column]
            ranks[begin + column] = rank
            part += rank
        total += part
        begin += width
    return total
