"""Sums whose rounding error has a small proved bound, for any order of additions.

To first order, a sum of k non-negative terms has a relative error of at most (k - 1) * u in any order, u = 2**-53. It
is enough to count the additions that a term goes through: adding in groups of `FAN_IN`, then the group sums, level by
level, makes that (FAN_IN - 1) * ceil(log_FAN_IN k), 90 for ten million terms, where a plain loop has ten million. Each
function here has a counterpart that returns this count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.sorting import stable_order
from prplugin.numerics import FAN_IN, fan_in_for, group_sum_depth
from prplugin.types.edges import Floats, Integers

GROUPS = np.arange(0, 1 << 13, FAN_IN)
"""First term of each group of `FAN_IN` terms, for vectors so short that `numpy.add.reduceat` takes half the time."""


def total(terms: Floats) -> float:
    """Sum a vector: see `totals`. Each level of a short vector on the host adds contiguous groups of `FAN_IN` terms."""
    if isinstance(terms, np.ndarray) and terms.size <= FAN_IN * GROUPS.size:
        while terms.size > FAN_IN:
            terms = np.add.reduceat(terms, GROUPS[: -(-terms.size // FAN_IN)])
        return float(np.add.reduce(terms))
    return float(totals(terms))


def totals(terms: Floats) -> Floats:
    """Sum a vector, or each column of a matrix, with rounding depth `rounding_depth(len(terms))`.

    Each level adds `FAN_IN` contiguous rows, so that NumPy adds whole vectors. Methods of the array add: when an
    allocation on the device fails, `np.add.reduce` never releases its CuPy argument.
    """
    while len(terms) > FAN_IN:
        width = -(-len(terms) // FAN_IN)
        full = len(terms) // width * width
        folded = terms[:full].reshape(-1, width, *terms.shape[1:]).sum(axis=0)
        if full < len(terms):
            folded[: len(terms) - full] += terms[full:]
        terms = folded
    sums: Floats = terms.sum(axis=0)
    return sums


PIECE = 1 << 14
"""Terms processed at a time, so that temporary memory does not grow with the number of edges."""


class GroupSums:
    """Sums of terms by group, in an order of additions that depends only on the order of terms within each group.

    The terms of a group are partitioned into pieces of ``fan_in = fan_in_for(longest)``, their sums into pieces of
    `fan_in` again; each piece is added from first to last. Each level is one `numpy.bincount` over a map from term to
    piece, which adds in this order.

    `groups`: The group of each term, below n.
    `depth`: The most additions that a term goes through.
    """

    def __init__(self, groups: Integers, n: int) -> None:
        groups = groups.astype(np.intp, copy=False)  # the type that bincount converts to on each call
        sizes = np.bincount(groups, minlength=n)
        longest = int(sizes.max(initial=0))
        fan_in = fan_in_for(longest)
        self.depth = group_sum_depth(longest)
        self._n = n
        self._levels: list[Integers] = []
        while longest > fan_in:
            pieces = -(-sizes // fan_in)
            piece, seen = (np.cumsum(pieces) - pieces).take(groups), np.zeros_like(sizes)
            for begin in range(0, groups.size, PIECE):
                some = groups[begin : begin + PIECE]
                cut = np.flatnonzero((sizes > fan_in).take(some))
                some = some[cut]
                piece[begin + cut] += (seen.take(some) + _indices_in_group(some)) // fan_in
                seen += np.bincount(some, minlength=sizes.size)
            self._levels.append(piece)
            groups, sizes, longest = np.repeat(np.arange(n), pieces), pieces, -(-longest // fan_in)
        self._levels.append(groups)

    def __call__(self, terms: Floats) -> Floats:
        """Return the sum of the terms of each group, 0 for a group without terms."""
        if not terms.size:
            return np.zeros(self._n)  # `bincount` would return integers
        sums: Any = terms
        for pieces in self._levels[:-1]:
            sums = np.bincount(pieces, sums)
        summed: Floats = np.bincount(self._levels[-1], sums, self._n)  # type: ignore[assignment]
        return summed


def _indices_in_group(groups: Integers) -> Integers:
    """Return the index of each term among those of its group."""
    order = stable_order(groups)
    sizes = np.bincount(groups)
    ranked = np.arange(order.size)
    ranked -= np.repeat(np.cumsum(sizes) - sizes, sizes)
    indices: Integers = np.empty_like(order)
    indices[order] = ranked
    return indices
