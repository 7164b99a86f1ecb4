"""Compensated sums on the CPU, compiled by Numba: by group, and of rows by several threads.

Kernels add the rounding errors of additions beside the terms, as in sums.cuh. Rows longer than `RUN` are split into
runs that are summed separately, so that several threads share a long row; the split does not depend on their number.
"""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled, read_only, take
from prplugin.numerics.rounding import compensated_depth
from prplugin.types.edges import Floats, Integers

RUN = 1 << 14
"""Edges per run, at most: about ten microseconds of work."""


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


@compiled
def sum_runs(pieces, taken, bounds, places, normalized_weights, contributions, high, low, sums):
    """Sum the runs of the pieces that this thread takes; run r is the edges bounds[r]..bounds[r + 1].

    The first ``high.size`` runs are parts of long rows and keep sum and error separate; each later run is a whole row.
    Terms are computed in float64 for any type of contributions and normalized weights.
    """
    parts = high.size
    piece = take(taken)
    while piece < len(pieces):
        for run in range(pieces[piece, 0], pieces[piece, 1]):
            total, errors = 0.0, 0.0
            for edge in range(bounds[run], bounds[run + 1]):
                term = np.float64(contributions[places[edge]])
                if normalized_weights is not None:
                    term *= np.float64(normalized_weights[edge])
                total, error = two_sum(total, term)
                errors += error
            if run < parts:
                high[run] = total
                low[run] = errors
            else:
                sums[run - parts] = total + errors
        piece = take(taken)


@compiled
def join_runs(runs_of, high, low, sums):
    """Add up the runs of each long row in order; those of row t are runs_of[t]..runs_of[t + 1]."""
    for row in range(runs_of.size - 1):
        total, errors = 0.0, 0.0
        for run in range(runs_of[row], runs_of[row + 1]):
            total, error = two_sum(total, high[run])
            errors += error + low[run]
        sums[row] = total + errors
