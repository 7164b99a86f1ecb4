"""Certified order of the k highest ranks.

If every computed rank differs from the exact one by at most `margin` (`Certificate.of_vertex`), two vertices whose
computed ranks differ by more than 2 * margin are in the right order. Vertices that are closer form a tie. Some ties are
proved to have equal ranks (`prplugin.graph.equal_ranks`), which no margin could prove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from prplugin.cpu.sums import total
from prplugin.methods.base import Step
from prplugin.solver.certificate import Certificate
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import Floats, Integers
from prplugin.types.order import Order, TieRows

MAX_EQUALITY_TESTS = 1000
"""Number of vertices below the k highest that are tested for equality with the k-th."""

EQUAL_RTOL = 1e-6
"""Relative difference up to which two computed ranks are candidates for equality."""

CHECK_FACTOR = 1 / 16
"""Fraction of its value to which the error bound falls at most between two checks of the order. A check takes at most
about as long as a step."""

NO_ORDER = Order(np.empty(0, np.int64), (), 0.0)
"""Order of no vertices."""

Equal: TypeAlias = Callable[[int, int, Floats], bool]
"""Returns whether the exact ranks of two vertices are proved equal, from their positions and all computed ranks."""


class OrderProof:
    """Checks, as the error bound falls, whether the order of the k highest ranks is proved.

    The order is proved once the error bound is about as small as the smallest gap between these ranks. A check
    estimates that gap, but poorly while the bound is much larger. Before the first check the k-th rank divided by k**2
    takes its place. A check is due when half of the digits of `tol` are proved and the bound has fallen to the gap
    divided by `CHECK_FACTOR`; the next when it has fallen to the gap, or to `CHECK_FACTOR` times its value, whichever
    is reached first. Methods that iterate without proof aim for the gap, or for `tol` if that is larger, since a check
    costs them a proof.

    `equal` proves that two vertices have equal ranks. It is called only for ties.
    `rows`: Positions of the vertices whose order is asked for, on the host; None for all.
    `_order`: Order of the current ranks, if it was determined.
    `_estimated`: Whether a gap was estimated before the first check.
    """

    def __init__(self, k: int, equal: Equal, tol: float, rows: Integers | None = None) -> None:
        self._k, self._equal, self._tol, self._rows = k, equal, tol, rows
        self._order: Order | None = None
        self._due = self._aim = math.sqrt(tol)
        self._estimated = False

    def prove(self, step: Step, certificate: Certificate, bound: float) -> bool:
        """Return whether the order of the current ranks is proved, given the bound of their L1 error."""
        self._order = None
        if self._rows is not None and not self._rows.size:
            self._order = NO_ORDER
            return True
        if bound > self._due:
            if not self._estimated:
                ranks, self._estimated = self._asked(step.ranks()), True
                k = min(self._k, ranks.size)
                self._aim = min(self._aim, _lower_bound_of_kth(ranks, k) / k**2)
                self._due = min(self._due, max(self._tol, self._aim / CHECK_FACTOR))
            return False
        every = step.ranks()
        margin, ranks = certificate.of_vertex(bound, total(every)), self._asked(every)
        gap = least_gap(ranks, self._k, margin) if bound > self._tol else math.inf
        if gap > 2 * margin:
            self._order = self._order_of(every, margin)
            if self._order.proved:
                return True
            gap = least_gap(ranks, self._k, margin, 1.0)
            if gap > 2 * margin:
                gap = CHECK_FACTOR * bound  # unknown: some candidates for equality are not proved equal
        # No gap exceeds the highest rank, and a gap is needed that exceeds 2 * margin, which is about the bound.
        due = min(max(gap, CHECK_FACTOR * bound), float(ranks.max()))
        self._due, self._aim = due, gap
        return False

    def goal(self, certificate: Certificate) -> float:
        """Return the L1 change at which the bound reaches the estimated gap; -1 if all gaps are infinite."""
        return certificate.change_for(self._aim) if np.isfinite(self._aim) else -1.0

    def final_order(self, ranks: Floats, certificate: Certificate, bound: float) -> Order:
        """Return the order of the final ranks, which are those of the last call of `prove`."""
        if self._order is None:
            self._order = self._order_of(ranks, certificate.of_vertex(bound, total(ranks)))
        return self._order

    def _asked(self, ranks: Floats) -> Floats:
        """Return the ranks of the vertices whose order is asked for."""
        return ranks if self._rows is None else ranks[namespace(ranks).asarray(self._rows)]

    def _order_of(self, ranks: Floats, margin: float) -> Order:
        """Return the order of the vertices that are asked for, given all ranks."""
        if (rows := self._rows) is None:
            return order_of(ranks, self._k, margin, self._equal)

        def equal(a: int, b: int, _: Floats) -> bool:
            return self._equal(int(rows[a]), int(rows[b]), ranks)

        return order_of(self._asked(ranks), self._k, margin, equal).at(rows)


def order_of(ranks: Floats, k: int, margin: float, equal: Equal) -> Order:
    """Return the order of the k highest ranks, each with an error of at most `margin`, and the unproved ties."""
    rows, values = _candidates(ranks, k, 2 * margin)
    k = min(k, rows.size)
    gaps = values[:-1] - values[1:]
    tied, same = gaps <= 2 * margin, np.zeros(gaps.size, bool)
    for place in np.flatnonzero((tied & _near(gaps, values))[: k + MAX_EQUALITY_TESTS]):
        if place >= k and not same[place - 1]:
            break  # no longer in the tie of the k-th
        same[place] = equal(int(rows[place]), int(rows[place + 1]), ranks)
    ends = np.flatnonzero(~tied) + 1
    ties = []
    for first, end in pairwise([0, *ends.tolist(), rows.size]):
        if end - first > 1 and first < k:
            all_equal = bool(same[first : end - 1].all())
            if all_equal:
                rows[first:end].sort()
            ties.append(TieRows(first, rows[first:end].copy(), all_equal))
    return Order(rows[:k].copy(), tuple(ties), margin)


def least_gap(ranks: Floats, k: int, margin: float, relative: float = MAX_EQUALITY_TESTS * EQUAL_RTOL) -> float:
    """Return the smallest gap of computed ranks that has to exceed 2 * margin for the order of the k highest.

    Candidates for equality (`EQUAL_RTOL`) are assumed to be provably equal. Without any other gap it is infinite.

    `relative`: Largest gap below the k-th rank that is found, relative to that rank. By default no more values are
    considered than may be equal to it: while the margin is large, sorting all candidates takes long.
    """
    _, values = _candidates(ranks, k, 2 * margin, relative)
    gaps = values[:-1] - values[1:]
    near = _near(gaps, values)
    last = k - 1 + int(np.argmin(np.append(near[k - 1 :], False)))  # last candidate for equality with the k-th
    return float(gaps[: last + 1][~near[: last + 1]].min(initial=np.inf))


def _near(gaps: Floats, values: Floats) -> NDArray[np.bool_]:
    return gaps <= EQUAL_RTOL * values[:-1]


def _candidates(ranks: Floats, k: int, width: float, relative: float = 1.0) -> tuple[Integers, Floats]:
    """Return the k + 1 highest ranks, and those at most `width` and `relative` below the k-th: positions and values.

    Both are in descending order of the ranks.
    """
    xp = namespace(ranks)
    if k < ranks.size:
        highest = np.sort(to_host(ranks[ranks >= _lower_bound_of_kth(ranks, k + 1)]))[-k - 1 :]
        lowest = float(highest[1]) * (1 - 2.0**-50) - min(width, relative * float(highest[1]))  # rounded downward
        rows = xp.flatnonzero(ranks >= min(float(highest[0]), lowest))
    else:
        rows = xp.arange(ranks.size)
    rows, values = to_host(rows), to_host(ranks[rows])
    falling = np.argsort(-values, kind="stable")
    return rows[falling].astype(np.int64), values[falling]


def _lower_bound_of_kth(ranks: Floats, count: int) -> float:
    """Return a lower bound of the `count`-th highest rank: the `count`-th highest of the maxima of equal pieces."""
    pieces = min(4 * count, ranks.size)
    width = ranks.size // pieces
    maxima = to_host(ranks[: pieces * width].reshape(pieces, width).max(axis=1))
    return float(np.sort(maxima)[pieces - count])
