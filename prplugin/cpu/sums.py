"""Sums whose rounding error has a small proved bound, for any order of additions.

To first order, a sum of k non-negative terms has a relative error of at most (k - 1) * u in any order, u = 2**-53. It
is enough to count the additions that a term goes through: adding in groups of `FAN_IN`, then the group sums, level by
level, makes that (FAN_IN - 1) * ceil(log_FAN_IN k), 90 for ten million terms, where a plain loop has ten million. Each
function here has a counterpart that returns this count.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.packing import PIECE as PACKED_PIECE
from prplugin.cpu.sorting import stable_order
from prplugin.numerics import FAN_IN, compensated_depth, fan_in_for, group_sum_depth, rounding_depth
from prplugin.types.arrays import Array
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
        sums: Array = terms
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


class CompensatedSums:
    """Compensated sums of non-negative terms by group, in the order of the terms, compiled: see ingest.cpp."""

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


# --- sums of pull.cpp ---------------------------------------------------------------------------------------------

BLOCK_ROWS, LANES = 256, 8
"""Rows whose norms are summed together, and interleaved sums of a block, as in row_sums.hpp and pull.cpp."""


@lru_cache(1024)
def norm_depth(rows: int) -> int:
    """Return the most additions that a row's change or rank goes through in the sums of a step over `rows` rows.

    Those of a lane of a block, the lanes (more than in groups of 16 rows, where these are summed), the blocks in groups
    of `FAN_IN` level by level, and the sums of the eight levels.
    """
    return min(rows, BLOCK_ROWS // LANES + 3 + rounding_depth(-(-rows // BLOCK_ROWS)) + 8)


ORDERED_EDGES = range(100_000, 800_000)
"""Numbers of edges of unweighted graphs whose rows are summed by number of in-edges: docs/decisions/0019."""


def order_rows(offsets: Integers, threads: int) -> Integers:
    """Return the rows of each block, counted from its first, by number of in-edges."""
    order: Integers = np.empty(offsets.size - 1, np.uint8)
    kernels.order_rows(offsets, order, threads)
    return order


def packed_depth(m: int) -> int:
    """Return the rounding depth of a row sum of packed edges, of which the graph has m.

    It is that of a run within a piece, summed with the fan-in for `PACKED_PIECE` terms, and of the compensated sum of
    the runs of a row.
    """
    return group_sum_depth(PACKED_PIECE) + compensated_depth(-(-m // PACKED_PIECE) + 1)
