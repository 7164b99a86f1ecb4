"""Compensated sums by group on the CPU, compiled by Numba.

Kernels add the rounding errors of additions beside the terms, as in sums.cuh.
"""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled, read_only
from prplugin.numerics.rounding import compensated_depth
from prplugin.types.edges import Floats, Integers


class CompensatedSums:
    """Compensated sums of non-negative terms by group, in the order of the terms."""

    def __init__(self, n: int) -> None:
        self._sums, self._errors = np.zeros(n), np.zeros(n)
        self._count = 0

    def add(self, groups: Integers, terms: Floats) -> None:
        """Add terms to their groups 0 .. n - 1."""
        _add_compensated(read_only(groups), read_only(terms), self._sums, self._errors)
        self._count += groups.size

    def values(self) -> tuple[Floats, int]:
        """Return the n sums and their rounding depth."""
        with np.errstate(invalid="ignore"):  # the error of a sum that overflows is NaN
            return self._sums + self._errors, compensated_depth(self._count)


def compensated_sums(groups: Integers, terms: Floats, n: int) -> tuple[Floats, int]:
    """Return the sums of non-negative terms by group, and their rounding depth."""
    sums = CompensatedSums(n)
    sums.add(groups, terms)
    return sums.values()


@compiled
def two_sum(total, term):
    """Return the rounded sum of two numbers and its rounding error (Knuth's TwoSum)."""
    after = total + term
    added = after - total
    return after, (total - (after - added)) + (term - added)


@compiled
def _add_compensated(groups, terms, sums, errors):
    """Add each term to its group's sum, and the rounding error of that addition to the group's error."""
    for edge in range(groups.size):
        group = groups[edge]
        sums[group], error = two_sum(sums[group], terms[edge])
        errors[group] += error
