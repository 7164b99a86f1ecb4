"""Codes of strings in the order of their first appearance: see strings.cpp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prplugin.cpu import kernels
from prplugin.types.arrays import Array
from prplugin.types.edges import Integers

AT_A_TIME = 1 << 20
"""Rows between two reports of the progress."""

FEW = 1 << 14
"""Number of distinct strings for which there is room at first."""


def factorize(offsets: Integers, data: Array, report: Callable[[int], None]) -> tuple[Integers, Integers]:
    """Return the code of each string, and the row in which each code first appears.

    `offsets`, `data`: Offsets and bytes of the strings, of which there are fewer than 2**31, as in Arrow.
    `report`: Called with a number of rows when these are done.
    """
    n, row, size = offsets.size - 1, 0, 2 * FEW
    codes, count = np.empty(n, np.int32), np.zeros(1, np.int64)
    slots, known = np.zeros(size, np.int64), np.empty((FEW, 3), np.int64)
    while row < n:
        last = min(n, row + AT_A_TIME)
        done = kernels.factorize_strings(offsets, data, row, last, slots, known, codes, count)
        if done < last:
            size *= 4
            slots, more = np.zeros(size, np.int64), np.empty((size // 2, 3), np.int64)
            more[: count[0]] = known[: count[0]]
            kernels.enter_strings(data, more[: count[0]], slots)
            known = more
        report(done - row)
        row = done
    return codes, known[: count[0], 0].copy()
