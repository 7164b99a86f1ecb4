"""Sums whose rounding error has a small proved bound, whatever order the additions are done in.

A sum of k non-negative terms, in any order, is off by a relative (k - 1) * u at most to first order, u = 2**-53. Adding
in groups of `FAN` and then the group sums, level by level, makes that (FAN - 1) * ceil(log_FAN k): 90 for ten million
terms where a plain loop has ten million. It is the length of the longest chain of additions that counts, so each
function here comes with one that says how long its chains are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.sorting import stable_order
from prplugin.numerics.rounding import FAN
from prplugin.types.edges import Floats, Integers

__all__ = ["GroupSums", "depth_of", "fan_for", "total", "totals"]


def total(terms: Floats) -> float:
    """Sum a vector, in chains no longer than `rounding_depth(terms.size)`.

    Each level is one pass that adds `FAN` contiguous rows, so NumPy adds whole vectors.
    """
    while terms.size > FAN:
        width = -(-terms.size // FAN)
        full = terms.size // width * width
        folded = np.add.reduce(terms[:full].reshape(-1, width), axis=0)
        folded[: terms.size - full] += terms[full:]
        terms = folded
    return float(np.add.reduce(terms))  # without the detour of ndarray.sum through Python


def totals(terms: Floats) -> Floats:
    """Sum each column of a matrix, in chains no longer than `rounding_depth` says of its rows, as `total`."""
    while len(terms) > FAN:
        width = -(-len(terms) // FAN)
        full = len(terms) // width * width
        folded = terms[:full].reshape(-1, width, terms.shape[1]).sum(axis=0)
        folded[: len(terms) - full] += terms[full:]
        terms = folded
    sums: Floats = terms.sum(axis=0)
    return sums


PIECE = 1 << 14
"""Terms whose positions are computed at once, so that the memory for them does not grow with the edges."""


def fan_for(longest: int) -> int:
    """Return how many terms, and how many sums of terms, are added at a time: three levels reach `longest` terms."""
    fan = FAN
    while fan**3 < longest:
        fan += 1
    return fan


def depth_of(longest: int) -> int:
    """Return the most additions that a term of a sum by group goes through: in its piece, in the group of pieces, last.

    The rounding depth of `GroupSums`, and of the compiled kernels that add in the same order.
    """
    fan = fan_for(longest)
    return min(longest, fan) + min(longest // fan + 1, fan) + longest // fan**2 + 1


class GroupSums:
    """Sums of terms by group, wherever the terms of a group stand: in one order of additions, and so with one result.

    The terms of a group are cut, in the order in which they come, into pieces of `fan_for(longest)`, their sums into
    pieces of as many again; each piece is added up from first to last. Each level is one `numpy.bincount` over a map
    from term to piece, which adds in this order.

    Parameters
    ----------
    groups : array of integers
        The group of each term, below n.
    n : int

    Attributes
    ----------
    depth : int
        The most additions that a term goes through.
    """

    def __init__(self, groups: Integers, n: int) -> None:
        groups = groups.astype(np.intp, copy=False)  # as bincount takes them, which would copy them each time
        sizes = np.bincount(groups, minlength=n)
        longest = int(sizes.max(initial=0))
        fan = fan_for(longest)
        self.depth = depth_of(longest)
        self._n = n
        self._levels: list[Integers] = []
        while longest > fan:
            pieces = -(-sizes // fan)
            piece, seen = (np.cumsum(pieces) - pieces).take(groups), np.zeros_like(sizes)
            for begin in range(0, groups.size, PIECE):
                some = groups[begin : begin + PIECE]
                cut = np.flatnonzero((sizes > fan).take(some))
                some = some[cut]
                piece[begin + cut] += (seen.take(some) + _places(some)) // fan
                seen += np.bincount(some, minlength=sizes.size)
            self._levels.append(piece)
            groups, sizes, longest = np.repeat(np.arange(n), pieces), pieces, -(-longest // fan)
        self._levels.append(groups)

    def __call__(self, terms: Floats) -> Floats:
        """Sum the terms of each group; a group of none sums to 0."""
        sums: Any = terms
        for pieces in self._levels[:-1]:
            sums = np.bincount(pieces, sums)
        # bincount forgets its weights where there is nothing to count, and returns integers.
        summed: Floats = np.bincount(self._levels[-1], sums, self._n).astype(np.float64, copy=False)
        return summed


def _places(groups: Integers) -> Integers:
    """Return the place of each term among those of its group."""
    order = stable_order(groups)
    sizes = np.bincount(groups)
    ranked = np.arange(order.size)
    ranked -= np.repeat(np.cumsum(sizes) - sizes, sizes)
    places: Integers = np.empty_like(order)
    places[order] = ranked
    return places
