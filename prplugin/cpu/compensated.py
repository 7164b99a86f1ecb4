"""Compensated sums by group on the CPU, compiled: see ingest.cpp."""

from __future__ import annotations

import numpy as np

from prplugin.cpu import kernels
from prplugin.numerics import compensated_depth
from prplugin.types.edges import Floats, Integers


class CompensatedSums:
    """Compensated sums of non-negative terms by group, in the order of the terms."""

    def __init__(self, n: int) -> None:
        self._sums, self._errors = np.zeros(n), np.zeros(n)
        self._count = 0

    def add(self, groups: Integers, terms: Floats) -> None:
        """Add terms to their groups 0 .. n - 1."""
        kernels.add_compensated(np.ascontiguousarray(groups), np.ascontiguousarray(terms), self._sums, self._errors)
        self._count += groups.size

    def values(self) -> tuple[Floats, int]:
        """Return the n sums and their rounding depth."""
        with np.errstate(invalid="ignore", over="ignore"):  # the caller refuses sums that overflow
            return self._sums + self._errors, compensated_depth(self._count)


def compensated_sums(groups: Integers, terms: Floats, n: int) -> tuple[Floats, int]:
    """Return the sums of non-negative terms by group, and their rounding depth."""
    sums = CompensatedSums(n)
    sums.add(groups, terms)
    return sums.values()
