"""The proof behind `error_bound`: how far computed ranks can be from the exact PageRank.

Let G x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v be one exact step on the exact graph. It is an affine map whose
linear part A has columns of sum alpha. So ||A z|| <= alpha * ||z|| for every z (all norms are L1), I - A has an inverse
of norm 1 / (1 - alpha), and with x* = G x*, for *every* vector x, of whatever sum,

    ||x - x*|| = ||(I - A)^-1 (x - G x)|| <= ||x - G x|| / (1 - alpha).                                         (1)

A computed step is y = G x + e. Then y - G y = e + A (x - y), and by (1)

    ||y - x*|| <= (alpha * ||y - x|| + ||e||) / (1 - alpha),                                                    (2)
    ||x - x*|| <= (||y - x|| + ||e||) / (1 - alpha).                                                            (3)

Every number in a step is non-negative and is only ever multiplied, divided and added. So a rank that comes out of a
chain of k roundings is off by a relative gamma(k) = k u / (1 - k u), u = 2**-53 (Higham 2002, "Accuracy and Stability
of Numerical Algorithms", section 3.1), and ||e|| <= gamma(k) * ||G x|| + underflow. A method states its k: see
`StepRounding`.

Terms of row sums may have been rounded to float32 on the way (`StepRounding.single`): those roundings count as of
2**-24, and only on the alpha-part of G x.

Every column of I - A sums to 1 - alpha, v to 1: so x* sums to 1. Let p be what all ranks of y that are too high are off
by together, and q those that are too low: p + q = ||y - x*||, and q - p = 1 - sum(y). No rank is off by more than the
larger of the two, and so

    |y_i - x*_i| <= (||y - x*|| + |1 - sum(y)|) / 2,                                                             (4)

half the bound on all errors together, but for roundings in sum(y).

Scaling and a cast of the result add `Certificate.cast`. The few floating-point operations of this module itself are
covered by `UP`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from prplugin.numerics.rounding import StepRounding, rounding_depth

__all__ = ["Certificate"]

U = 2.0**-53
"""Unit roundoff of float64."""

UP = 1 + 2.0**-48
"""Rounds a result upward: more than the relative error of thirty operations, each off by u at most."""

TINY = 2.0**-1074
"""The least positive float64: no product or quotient that underflows is off by more."""

U32 = 2.0**-24
TINY32 = 2.0**-149
"""The same two for float32, in which the result may be returned."""


class Certificate:
    """Turns what a step measured into a proved bound.

    Parameters
    ----------
    alpha : float
        Damping, in [0, 1).
    n, m : int
        Vertices and edges.
    rounding : StepRounding
        How the method rounds.
    dtype : {"float64", "float32"}
        What the ranks are cast to in the end.
    scale : {1, "n"}
        Whether they are multiplied by n before; errors stay in the measure of ranks that sum to 1.
    """

    def __init__(
        self, alpha: float, n: int, m: int, rounding: StepRounding, dtype: str, scale: Literal[1, "n"]
    ) -> None:
        self.alpha, self.n = alpha, n
        self._size, self._result = (n, m), (dtype, scale)
        gamma, gamma32 = _gamma(rounding.rank), _gamma(rounding.single, U32)
        # ||y|| <= (1 + gamma) * (alpha * (1 + gamma32) * ||x|| + 1 - alpha): no iterate's sum passes the fixed point.
        growth = alpha * (1 + gamma) * (1 + gamma32) * UP
        if growth >= 1:
            self._mass = self.noise = math.inf
        else:
            self._mass = (1 + gamma) * (1 - alpha) / (1 - growth) * UP
            # Underflow: share and product on an edge; contribution, entries and three products on a vertex.
            self.noise = ((gamma + alpha * gamma32 * (1 + gamma)) * self._mass + (2 * m + 8 * n) * TINY) * UP
            self.noise += rounding.single * m * TINY32
        self._norm = 1 + _gamma(rounding.norm)
        self.cast = 0.0
        if scale == "n":
            self.cast += U * self._mass + n * TINY
        if dtype == "float32":
            self.cast += U32 * self._mass * UP + n * TINY32

    def for_rounding(self, rounding: StepRounding) -> Certificate:
        """Give the certificate of steps that round in another way."""
        return Certificate(self.alpha, *self._size, rounding, *self._result)

    def of_step(self, change: Any) -> Any:
        """Bound ||y - x*|| for a step from x to y with the computed ||y - x|| = `change`, or an array of them: (2)."""
        return self._bound(self.alpha * change)

    def of_start(self, change: Any) -> Any:
        """Bound ||x - x*|| for the vector that a step began from: (3)."""
        return self._bound(change)

    def of_vertex(self, bound: float, total: float) -> float:
        """Bound |y_i - x*_i| for every i, given a bound on ||y - x*|| and `prplugin.cpu.sums.total` of y: (4)."""
        astray = abs(1 - total) + _gamma(rounding_depth(self.n)) * total
        return min(bound, (bound + astray) / 2 * UP)

    def change_for(self, tol: float) -> float:
        """Give what a step may change for `of_step` to come to `tol`, about; below 0 if no change is so small."""
        room = (tol / UP - self.cast) * (1 - self.alpha) - self.noise
        if math.isinf(self.noise):
            return -1.0
        return room / (self.alpha * self._norm) if self.alpha > 0 else math.inf

    def _bound(self, residual: Any) -> Any:
        proved = (residual * self._norm + self.noise) / (1 - self.alpha)
        # No two vectors of non-negative entries and sum 1 are further apart than 2.
        return np.minimum((np.minimum(proved, 1 + self._mass) + self.cast) * UP, 2.0)[()]

    @property
    def floor(self) -> float:
        """The bound of a step that changed nothing."""
        return (self.noise / (1 - self.alpha) + self.cast) * UP

    @property
    def provable(self) -> float:
        """The least tolerance that `prplugin.solver.loop` promises to prove, on any graph: see there."""
        return (5 * self.noise / (1 - self.alpha) + self.cast) * UP

    def steps(self, tol: float) -> int:
        """Give how many steps, one at least, bring the bound to `tol` from any start of sum 1, rounding aside.

        ||x_1 - x_0|| <= 2 and each change is at most alpha times the one before, so the k-th bound is at most
        2 * alpha**k / (1 - alpha) + floor.
        """
        room = tol - self.floor
        if room <= 0:
            raise ValueError("tol is below the floor")
        return max(1, _powers(self.alpha, room * (1 - self.alpha) / 2))

    def moves(self, threshold: float) -> int:
        """Give how many steps bring the L1 change of one of them to `threshold` from any start, rounding aside."""
        return 1 + _powers(self.alpha, threshold / 2)


def _gamma(k: int, unit: float = U) -> float:
    return k * unit / (1 - k * unit) * UP if k * unit < 1 else math.inf


def _powers(alpha: float, target: float) -> int:
    """Give the least k with alpha**k <= target."""
    if target >= 1:
        return 0
    if alpha == 0:
        return 1
    return math.ceil(math.log(target) / math.log(alpha))
