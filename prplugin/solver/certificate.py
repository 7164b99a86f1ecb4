"""Proof of `error_bound`, an upper bound of the L1 distance of computed ranks to the exact PageRank.

Let G x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v be one step in exact arithmetic. It is an affine map whose
linear part A has columns of sum alpha. So ||A z|| <= alpha * ||z|| for every z (all norms are L1), I - A has an inverse
of norm 1 / (1 - alpha), and with x* = G x*, for every vector x, whatever its sum,

    ||x - x*|| = ||(I - A)^-1 (x - G x)|| <= ||x - G x|| / (1 - alpha).                                         (1)

A computed step is y = G x + e. Then y - G y = e + A (x - y), and by (1)

    ||y - x*|| <= (alpha * ||y - x|| + ||e||) / (1 - alpha),                                                    (2)
    ||x - x*|| <= (||y - x|| + ||e||) / (1 - alpha).                                                            (3)

(2) also holds for sweeps of `native`, with the change that pull.cpp derives. All numbers in a step are non-negative,
and a step only multiplies, divides and adds them. A rank of rounding depth k therefore has a relative error of at most
gamma(k) = k u / (1 - k u), u = 2**-53 (Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1), and
||e|| <= gamma(k) * ||G x||. Each method states its k in `StepRounding`.

Terms of row sums may also be rounded to float32 (`StepRounding.single`). These roundings have u = 2**-24 and affect
only the part of G x that is multiplied by alpha.

Underflow adds at most 2**-1074 for each product and quotient, and 2**-149 for each rounding to float32, of which a step
has a few per edge and per vertex. As k >= 4, that is less than 2**-49 * gamma(k) for up to 2**47 edges, and covered by
`ROUND_UP`.

Every column of I - A sums to 1 - alpha and v sums to 1, so x* sums to 1. Let p be the sum of y_i - x*_i over the ranks
that are too high, and q that of x*_i - y_i over those that are too low. Then p + q = ||y - x*|| and
q - p = 1 - sum(y). The error of a single rank is at most max(p, q), so

    |y_i - x*_i| <= (||y - x*|| + |1 - sum(y)|) / 2.                                                             (4)

Scaling the result and casting it to float32 add `Certificate.cast`. `ROUND_UP` covers the floating-point operations of
this module. docs/semantics.md names all terms, and `conformance.bounds` computes them in rational arithmetic.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, TypeVar

import numpy as np

from prplugin.numerics import StepRounding, rounding_depth
from prplugin.stopping import Norm
from prplugin.types.edges import Floats

U = 2.0**-53
"""Unit roundoff of float64."""

ROUND_UP = 1 + 2.0**-48
"""Factor that makes a computed bound an upper bound: covers the relative error of thirty operations."""

U32 = 2.0**-24
"""Unit roundoff of float32."""


Number = TypeVar("Number", float, Floats, Norm)


class Certificate:
    """Computes proved error bounds from the L1 change of a step.

    `dtype` and `scale` are those of the returned ranks. Error bounds always refer to ranks that sum to 1.
    """

    def __init__(self, alpha: float, n: int, rounding: StepRounding, dtype: str, scale: Literal[1, "n"]) -> None:
        self.alpha, self.n = alpha, n
        self._result = dtype, scale
        of_rank, of_single = gamma(depth_of_rank(rounding)), gamma(rounding.single, U32)
        # ||y|| <= (1 + of_rank) * (alpha * (1 + of_single) * ||x|| + 1 - alpha). `_mass` is the fixed point of this
        # recurrence and bounds the sum of every iterate. `left` is 1 - alpha * (1 + of_rank) * (1 + of_single), without
        # the cancellation of digits where alpha is near 1.
        left = (1 - alpha) - alpha * (of_rank + of_single * (1 + of_rank)) * ROUND_UP
        if not left > 0:
            self._mass = self.noise = math.inf
        else:
            self._mass = (1 + of_rank) * (1 - alpha) / left * ROUND_UP
            self.noise = (of_rank + alpha * of_single * (1 + of_rank)) * self._mass * ROUND_UP
        self._norm = 1 + gamma(rounding.norm)
        of_result = rounding_of_result(dtype, scale)
        self.cast = of_result * self._mass if of_result else 0.0  # `_mass` may be infinite, and was rounded up

    def for_rounding(self, rounding: StepRounding) -> Certificate:
        """Return the same certificate for steps with other rounding depths."""
        return Certificate(self.alpha, self.n, rounding, *self._result)

    def of_step(self, change: Number) -> Number:
        """Bound ||y - x*|| after a step from x to y by (2); `change` is the computed ||y - x||, or an array of them."""
        return self._bound(self.alpha * change)

    def of_start(self, change: Number) -> Number:
        """Bound ||x - x*|| before a step from x to y by (3); `change` is the computed ||y - x||."""
        return self._bound(change)

    def of_vertex(self, bound: float, total: float) -> float:
        """Bound |y_i - x*_i| for every i by (4), from a bound of ||y - x*|| and `prplugin.cpu.sums.total` of y."""
        sum_error = abs(1 - total) + gamma(rounding_depth(self.n)) * total
        return min(bound, (bound + sum_error) / 2 * ROUND_UP)

    def change_for(self, tol: float) -> float:
        """Return approximately the change at which `of_step` equals `tol`; negative if no change is small enough."""
        room = (tol / ROUND_UP - self.cast) * (1 - self.alpha) - self.noise
        if math.isinf(self.noise):
            return -1.0
        return room / (self.alpha * self._norm) if self.alpha > 0 else math.inf

    def _bound(self, residual: Number) -> Number:
        proved = (residual * self._norm + self.noise) / (1 - self.alpha)
        # The L1 distance of two non-negative vectors is at most the sum of their norms, here 1 and `_mass`.
        least = min if isinstance(proved, float) else np.minimum  # `min` takes a tenth of the time
        return (least(proved, 1 + self._mass) + self.cast) * ROUND_UP

    @property
    def provable(self) -> float:
        """Smallest tolerance that the loop proves on every graph."""
        return (5 * self.noise / (1 - self.alpha) + self.cast) * ROUND_UP

    def steps(self, tol: float) -> int:
        """Return the number of steps, at least 1, after which the bound is at most `tol`, for any start of sum 1.

        ||x_1 - x_0|| <= 2 and, rounding aside, each change is at most alpha times the previous one: the k-th bound is
        at most 2 * alpha**k / (1 - alpha) + floor, where floor is the bound after a step of change 0.
        """
        room = tol - (self.noise / (1 - self.alpha) + self.cast) * ROUND_UP
        if room <= 0:
            raise ValueError("tol is below the floor")
        return max(1, _least_exponent(self.alpha, room * (1 - self.alpha) / 2))

    def moves(self, threshold: float) -> int:
        """Return the number of steps after which the L1 change of a step is at most `threshold`, rounding aside."""
        return 1 + _least_exponent(self.alpha, threshold / 2)


certificate_of = lru_cache(64)(Certificate)  # shared by repeated rankings of a graph


def rounding_of_result(dtype: str, scale: object) -> float:
    """Bound the relative error of scaling a rank and casting it."""
    return (U if scale == "n" else 0.0) + (U32 if dtype == "float32" else 0.0)


def depth_of_rank(rounding: StepRounding) -> int:
    """Return the most roundings from x to a rank of y.

    Through an edge: the term, its row sum, the product with alpha, and two additions. Through D: its sum, the product
    with alpha, the entry of w, their product, and two additions. From v: 1 - alpha, the entry, their product, and one
    or two additions.
    """
    return max(rounding.edge + rounding.row + 3, rounding.dangling + rounding.vectors + 4)


def gamma(k: int, unit: float = U) -> float:
    """Bound the relative error of k roundings; infinite if they are too many."""
    return k * unit / (1 - k * unit) * ROUND_UP if k * unit < 1 else math.inf


@lru_cache(1024)
def _least_exponent(alpha: float, target: float) -> int:
    """Return the smallest k >= 0 with alpha**k <= target."""
    if target >= 1:
        return 0
    if alpha == 0:
        return 1
    return math.ceil(math.log(target) / math.log(alpha))
