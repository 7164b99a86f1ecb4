"""Sums whose rounding error has a small proved bound, whatever order the additions are done in.

A sum of k non-negative terms, in any order, is off by a relative (k - 1) * u at most to first order, u = 2**-53. Adding
in groups of `FAN` and then the group sums, level by level, makes that (FAN - 1) * ceil(log_FAN k): 90 for ten million
terms where a plain loop has ten million. It is the length of the longest chain of additions that counts, so each
function here comes with one that says how long its chains are.
"""

from __future__ import annotations

import numpy as np

from prplugin.numerics.rounding import FAN, chain
from prplugin.types.edges import Floats, Integers

__all__ = ["RowSums", "total", "totals"]


def total(terms: Floats) -> float:
    """Sum a vector, in chains no longer than `chain(terms.size)`.

    Each level is one pass that adds `FAN` contiguous rows, so NumPy adds whole vectors.
    """
    while terms.size > FAN:
        width = -(-terms.size // FAN)
        whole = terms.size // width * width
        folded = terms[:whole].reshape(-1, width).sum(axis=0)
        folded[: terms.size - whole] += terms[whole:]
        terms = folded
    return float(terms.sum())


def totals(terms: Floats) -> Floats:
    """Sum each column of a matrix, in chains no longer than `chain` says of its rows: as `total` does a vector."""
    while len(terms) > FAN:
        width = -(-len(terms) // FAN)
        whole = len(terms) // width * width
        folded = terms[:whole].reshape(-1, width, terms.shape[1]).sum(axis=0)
        folded[: len(terms) - whole] += terms[whole:]
        terms = folded
    sums: Floats = terms.sum(axis=0)
    return sums


class RowSums:
    """Sums of consecutive runs of a vector: one run a row, as given by n + 1 offsets.

    Long runs are cut into groups of `FAN` terms, their sums into groups of `FAN` again, and so on, each level by
    one `numpy.bincount` over a map from term to group.
    """

    def __init__(self, offsets: Integers) -> None:
        self.rows = offsets.size - 1
        lengths = np.diff(offsets)
        self.chain = chain(int(lengths.max(initial=0)))
        self._levels: list[Integers] = []
        while lengths.max(initial=0) > FAN:
            groups = -(-lengths // FAN)
            first = np.cumsum(groups) - groups
            within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            self._levels.append(np.repeat(first, lengths) + within // FAN)
            lengths = groups
        self._levels.append(np.repeat(np.arange(self.rows), lengths))

    def __call__(self, terms: Floats) -> Floats:
        """Sum each run of `terms`; a run of none sums to 0."""
        for groups in self._levels[:-1]:
            terms = _added(groups, terms)
        return _added(self._levels[-1], terms, self.rows)


def _added(groups: Integers, terms: Floats, count: int = 0) -> Floats:
    # bincount forgets its weights where there is nothing to count, and returns integers.
    return np.bincount(groups, terms, count).astype(np.float64, copy=False)
