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
from prplugin.types.arrays import few_highest, namespace, to_host
from prplugin.types.edges import Floats, Integers
from prplugin.types.records import Order, TieRows

MAX_EQUALITY_TESTS = 1000
"""Number of vertices below the k highest that are tested for equality with the k-th."""

EQUAL_RTOL = 1e-6
"""Relative difference up to which two computed ranks are candidates for equality."""

NEAR = MAX_EQUALITY_TESTS * EQUAL_RTOL
"""Largest gap below the k-th rank that is considered while the margin is large, relative to that rank. No more values
are then considered than may be equal to it: sorting all candidates takes long."""

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
    `early`: Whether to check before `tol` is met. If not, iterations up to there take less time than a check.
    `_order`: Order of the current ranks, if it was determined.
    `_estimated`: Whether a gap was estimated before the first check.
    """

    def __init__(self, k: int, equal: Equal, tol: float, rows: Integers | None = None, *, early: bool = True) -> None:
        self._k, self._equal, self._tol, self._rows = k, equal, tol, rows
        self._order: Order | None = None
        self._due = self._aim = math.sqrt(tol) if early else tol
        self._estimated = not early
        self._latest: tuple[float, Integers, Floats] | None = None  # candidates of the current ranks, and their span

    def prove(self, step: Step, certificate: Certificate, bound: float) -> bool:
        """Return whether the order of the current ranks is proved, given the bound of their L1 error."""
        self._order = self._latest = None
        if self._rows is not None and not self._rows.size:
            self._order = NO_ORDER
            return True
        if bound > self._due:
            if not self._estimated:
                self._estimated = True
                kth = self._candidates(step.ranks(), 0.0, 0.0)[1][: self._k][-1]
                self._aim = min(self._aim, float(kth) / self._k**2)
                self._due = min(self._due, max(self._tol, self._aim / CHECK_FACTOR))
            return False
        ranks = step.ranks()
        margin = self._margin(ranks, certificate, bound)
        gap = math.inf
        if bound > self._tol:
            gap = _least_gap(self._candidates_of(ranks, 2 * margin, NEAR)[1], self._k)
        if gap > 2 * margin:
            self._order = self._order_of(ranks, margin)
            if self._order.proved:
                return True
            gap = _least_gap(self._candidates_of(ranks, 2 * margin, 1.0)[1], self._k)
            if gap > 2 * margin:
                gap = CHECK_FACTOR * bound  # unknown: some candidates for equality are not proved equal
        # No gap exceeds the highest rank, and a gap is needed that exceeds 2 * margin, which is about the bound.
        highest = float(self._candidates_of(ranks, 2 * margin, NEAR)[1][0])
        due = min(max(gap, CHECK_FACTOR * bound), highest)
        self._due, self._aim = due, gap
        return False

    def goal(self, certificate: Certificate) -> float:
        """Return the L1 change at which the bound reaches the estimated gap; -1 if all gaps are infinite."""
        return certificate.change_for(self._aim) if np.isfinite(self._aim) else -1.0

    def final_order(self, ranks: Floats, certificate: Certificate, bound: float) -> Order:
        """Return the order of the final ranks, which are those of the last call of `prove`."""
        if self._order is None:
            self._order = self._order_of(ranks, self._margin(ranks, certificate, bound))
        return self._order

    def _order_of(self, ranks: Floats, margin: float) -> Order:
        """Return the order of the vertices that are asked for, given all ranks."""
        candidates, rows = self._candidates_of(ranks, 2 * margin, 1.0), self._rows
        if rows is None:
            return _order(*candidates, self._k, margin, lambda a, b: self._equal(a, b, ranks))
        order = _order(*candidates, self._k, margin, lambda a, b: self._equal(int(rows[a]), int(rows[b]), ranks))
        return order.at(rows)

    def _candidates_of(self, ranks: Floats, width: float, relative: float) -> tuple[Integers, Floats]:
        """Return `_candidates` of the current ranks, those of the last call where they are the same."""
        if self._latest is not None:
            span, rows, values = self._latest
            if values.size <= self._k or min(width, relative * float(values[self._k - 1])) == span:
                return rows.copy(), values.copy()
        rows, values = self._candidates(ranks, width, relative)
        span = min(width, relative * float(values[self._k - 1])) if values.size > self._k else math.inf
        self._latest = span, rows.copy(), values.copy()
        return rows, values

    # Workers of a cluster replace what follows: each has the ranks of its own vertices.

    def _margin(self, ranks: Floats, certificate: Certificate, bound: float) -> float:
        """Return a bound of the error of each rank, given a bound of their L1 error."""
        return certificate.of_vertex(bound, total(ranks))

    def _candidates(self, ranks: Floats, width: float, relative: float) -> tuple[Integers, Floats]:
        """Return `_candidates` of the ranks that are asked for; their positions count these ranks only."""
        asked = ranks if self._rows is None else ranks[namespace(ranks).asarray(self._rows)]
        return _candidates(asked, self._k, width, relative)


def order_of(ranks: Floats, k: int, margin: float, equal: Equal) -> Order:
    """Return the order of the k highest ranks, each with an error of at most `margin`, and the unproved ties."""
    return _order(*_candidates(ranks, k, 2 * margin, 1.0), k, margin, lambda a, b: equal(a, b, ranks))


def _order(rows: Integers, values: Floats, k: int, margin: float, equal: Callable[[int, int], bool]) -> Order:
    """Return the order of the k highest of the candidates at `rows`, in descending order of their `values`."""
    k = min(k, rows.size)
    gaps = values[:-1] - values[1:]
    tied, same = gaps <= 2 * margin, np.zeros(gaps.size, bool)
    for place in np.flatnonzero((tied & _near(gaps, values))[: k + MAX_EQUALITY_TESTS]):
        if place >= k and not same[place - 1]:
            break  # no longer in the tie of the k-th
        same[place] = equal(int(rows[place]), int(rows[place + 1]))
    ends = np.flatnonzero(~tied) + 1
    ties = []
    for first, end in pairwise([0, *ends.tolist(), rows.size]):
        if end - first > 1 and first < k:
            all_equal = bool(same[first : end - 1].all())
            if all_equal:
                rows[first:end].sort()
            ties.append(TieRows(first, rows[first:end].copy(), all_equal))
    return Order(rows[:k].copy(), tuple(ties), margin)


def least_gap(ranks: Floats, k: int, margin: float) -> float:
    """Return the smallest gap of computed ranks that has to exceed 2 * margin for the order of the k highest.

    Candidates for equality (`EQUAL_RTOL`) are assumed to be provably equal. Without any other gap it is infinite.
    """
    return _least_gap(_candidates(ranks, k, 2 * margin, NEAR)[1], k)


def _least_gap(values: Floats, k: int) -> float:
    gaps = values[:-1] - values[1:]
    near = _near(gaps, values)
    last = k - 1 + int(np.argmin(np.append(near[k - 1 :], False)))  # last candidate for equality with the k-th
    return float(gaps[: last + 1][~near[: last + 1]].min(initial=np.inf))


def _near(gaps: Floats, values: Floats) -> NDArray[np.bool_]:
    return gaps <= EQUAL_RTOL * values[:-1]


def _candidates(ranks: Floats, k: int, width: float, relative: float) -> tuple[Integers, Floats]:
    """Return the k + 1 highest ranks, and those at most `width` and `relative` below the k-th: positions and values.

    Both are in descending order of the ranks.
    """
    rows, values = _falling(ranks, few_highest(ranks, max(1, min(k + 1, ranks.size))))
    if k >= ranks.size:
        return rows, values
    kth, below = values[k - 1 : k + 1].tolist()
    # No rounding is lost: a rank whose exact distance is at most the width is at least the rounded difference.
    lowest = min(below, kth - min(width, relative * kth))
    if lowest < values[-1]:
        rows, values = _falling(ranks, namespace(ranks).flatnonzero(ranks >= lowest))
    reached = int(np.count_nonzero(values >= lowest))
    return rows[:reached], values[:reached]


def _falling(ranks: Floats, rows: Integers) -> tuple[Integers, Floats]:
    """Return positions and values, on the host and in descending order of the ranks at `rows`, which ascend."""
    rows, values = to_host(rows), to_host(ranks[rows])
    falling = np.argsort(-values, kind="stable")
    return rows[falling].astype(np.int64), values[falling]
