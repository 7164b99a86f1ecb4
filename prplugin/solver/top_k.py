"""Which vertices rank highest and in what order, proved vertex by vertex.

If no computed rank is further than `margin` from the exact one, two vertices whose computed ranks are more than twice
that apart are in the order that they seem to be in. `Certificate.of_vertex` gives the margin. Vertices that are nearer
than that are a tie: some of them can be proved equal (`prplugin.graph.equal_ranks`), which no margin could do.
"""

from __future__ import annotations

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

__all__ = ["Equal", "OrderProof", "order_of"]

MOST = 1000
"""Vertices beyond the k highest that are tried for equality with them."""

NEAR = 1e-6
"""Of a rank: computed ones that are no further apart seem to be equal."""

LOOK = 1 / 4
"""Of the bound at one look at the order, that at the next, at the least: a look takes as long as a step or less."""

Equal: TypeAlias = Callable[[int, int, Floats], bool]


class OrderProof:
    """Looks at the order of the highest ranks whenever it may be proved.

    A bound proves it that is less than the gaps between them, about. They are known after a look, but not well as long
    as the bound is much larger: so the next look is due when the bound has come down to the least of them, or before.

    Parameters
    ----------
    k : int
        How many ranks.
    equal : function
        Proves that vertices have equal ranks: see `order_of`. It is asked only where a tie remains.
    """

    def __init__(self, k: int, equal: Equal) -> None:
        self._k, self._equal = k, equal
        self._order: Order | None = None
        self._due = self._aim = 1.0

    def prove(self, step: Step, certificate: Certificate, bound: float) -> bool:
        """Say whether a step's ranks have a proved order, by the bound on all errors together."""
        if bound > self._due:
            return False
        ranks = step.ranks()
        margin = certificate.of_vertex(bound, total(ranks))
        gap = least_gap(ranks, self._k, margin)
        if gap > 2 * margin:
            self._order = order_of(ranks, self._k, margin, self._equal)
            if self._order.proved:
                return True
            gap = 0.0  # what seems to be equal is not proved to be
        self._due, self._aim = max(gap, LOOK * bound), gap
        return False

    def goal(self, certificate: Certificate) -> float:
        """Return what a step changes when the bound has come down to the least gap, as far as that is known."""
        return certificate.change_for(self._aim) if np.isfinite(self._aim) else -1.0

    def last(self, ranks: Floats, certificate: Certificate, bound: float) -> Order:
        """Return the order of the ranks that the loop ends with."""
        if self._order is not None and self._order.proved:
            return self._order
        return order_of(ranks, self._k, certificate.of_vertex(bound, total(ranks)), self._equal)


def order_of(ranks: Floats, k: int, margin: float, equal: Equal) -> Order:
    """Find the order of the k highest, as far as a margin proves it.

    Parameters
    ----------
    ranks : array of n float64
    margin : float
        No rank is further from the exact one.
    equal : function
        Says whether the exact ranks of two vertices are proved equal, given their positions and computed ranks.
    """
    rows, values = _hopefuls(ranks, k, 2 * margin)
    k = min(k, rows.size)
    gaps = values[:-1] - values[1:]
    same = np.zeros(gaps.size, bool)
    for place in np.flatnonzero(_near(gaps, values)[: k + MOST]):
        if place >= k and not same[place - 1]:
            break  # what is not equal to the k-th need not be told apart
        same[place] = equal(int(rows[place]), int(rows[place + 1]), ranks)
    ends = np.flatnonzero(gaps > 2 * margin) + 1
    ties = []
    for first, end in pairwise([0, *ends.tolist(), rows.size]):
        if end - first > 1 and first < k:
            alike = bool(same[first : end - 1].all())
            if alike:
                rows[first:end].sort()
            ties.append(TieRows(first, rows[first:end].copy(), alike))
    return Order(rows[:k].copy(), tuple(ties), margin)


def least_gap(ranks: Floats, k: int, margin: float) -> float:
    """Give the least distance of computed ranks that a margin has to tell from 0 to prove the order of the k highest.

    Of vertices that seem to be equal it is taken for granted that they can be proved to be. If nothing is left to be
    told apart, or nothing with this margin, it is infinite.
    """
    _, values = _hopefuls(ranks, k, 2 * margin)
    gaps = values[:-1] - values[1:]
    near = _near(gaps, values)
    last = k - 1 + int(np.argmin(np.append(near[k - 1 :], False)))  # of those that seem to be equal to the k-th
    return float(gaps[: last + 1][~near[: last + 1]].min(initial=np.inf))


def _near(gaps: Floats, values: Floats) -> NDArray[np.bool_]:
    return gaps <= NEAR * values[:-1]


def _hopefuls(ranks: Floats, k: int, width: float) -> tuple[Integers, Floats]:
    """Give all that may be among the k highest, and the one after them: positions and ranks, falling."""
    xp = namespace(ranks)
    if k < ranks.size:
        highest = np.sort(to_host(ranks[ranks >= _reached_by(ranks, k + 1)]))[-k - 1 :]
        lowest = float(highest[1]) * (1 - 2.0**-50) - width  # lower than the difference rounds to
        rows = xp.flatnonzero(ranks >= min(float(highest[0]), lowest))
    else:
        rows = xp.arange(ranks.size)
    rows, values = to_host(rows), to_host(ranks[rows])
    falling = np.argsort(-values, kind="stable")
    return rows[falling].astype(np.int64), values[falling]


def _reached_by(ranks: Floats, count: int) -> float:
    """Give a high value that as many ranks reach: that as many maxima of equal pieces do."""
    pieces = min(4 * count, ranks.size)
    width = ranks.size // pieces
    maxima = to_host(ranks[: pieces * width].reshape(pieces, width).max(axis=1))
    return float(np.sort(maxima)[pieces - count])
