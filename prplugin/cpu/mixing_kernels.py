"""Sums of Anderson mixing compiled by Numba: see `prplugin.numerics.extrapolation`; the kernels release the GIL."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from prplugin.cpu.memory import OPTIONS
from prplugin.types.edges import Floats, Integers

PIECE = 1 << 14
"""Columns per call of `products` and `combined`, so that all rows stay in the L2 cache.

Pieces have their own sums: any number of threads gives the same bits.
"""

vectorized = numba.njit(**OPTIONS, fastmath={"reassoc", "contract", "nsz"})


@vectorized
def products(first, last, rows, of, sums):
    """Add the dot products of all pairs of the rows `of`, over columns `first` to `last`, to ``sums[i, j]``, i >= j."""
    for i in range(of.size):
        for j in range(i + 1):
            left, right = np.uint64(of[i]), np.uint64(of[j])
            product = 0.0
            for column in range(np.uint64(first), np.uint64(last)):
                product += np.float64(rows[left, column]) * rows[right, column]
            sums[i, j] += product


def combined(first: int, last: int, rows: Any, of: Integers, weights: Floats) -> Floats:
    """Return the sum of the rows `of`, times their weights, over columns `first` to `last`."""
    sums = np.zeros(last - first)
    _combine(first, last, rows, of, weights, sums)
    return sums


@vectorized
def _combine(first, last, rows, of, weights, sums):
    """Add the rows `of`, times their weights, over columns `first` to `last`, to `sums`."""
    begin, width = np.uint64(first), np.uint64(last - first)
    for i in range(of.size):
        row, weight = np.uint64(of[i]), weights[i]
        for column in range(np.uint64(0), width):
            sums[column] += weight * rows[row, begin + column]
