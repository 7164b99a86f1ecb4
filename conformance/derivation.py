"""Bounds of prplugin beside those of `conformance.bounds`, over measurements of many magnitudes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from conformance import bounds
from prplugin.numerics import StepRounding
from prplugin.solver.certificate import Certificate
from prplugin.streams import bounds as of_sums

__all__ = ["MOST", "Ratios", "ratios"]

MOST = 1.001
"""Largest ratio of a bound of prplugin and the derived one; the smallest is 1."""

ALPHAS = 0.0, 0.85, 0.999, 1 - 2.0**-40
SIZES = 1, 2**20, 2**40
ROW_DEPTHS = 0, 2**40
OTHERS = (3, 0), (90, 0), (2**20, 2)
"""Depths of the other sums, and roundings to float32."""

RESULTS = ("float64", 1), ("float64", "n"), ("float32", 1)
CHANGES = 1e-15, 2.0


class Ratios(NamedTuple):
    """Ratios of a bound of prplugin and the derived one, where both are finite."""

    name: str
    measurements: int
    least: float
    largest: float

    @property
    def failed(self) -> bool:
        """Return whether the bound is less than the derived one, or much more."""
        return not 1 <= self.least <= self.largest <= MOST


@lru_cache(1)
def ratios() -> list[Ratios]:
    """Compare all bounds. Where one of both is infinite, and the other is not, their ratio is infinite."""
    found: dict[str, list[float]] = {}
    for name, bound, derived in _bounds():
        if derived == bound == math.inf:
            continue
        ratio = math.inf
        if derived < math.inf and bound < math.inf:
            # Fractions of floats, rounded towards what would fail.
            exact = Fraction(bound) / Fraction(derived)
            ratio = float(exact) if exact >= 1 else min(float(exact), math.nextafter(1, 0))
        found.setdefault(name, []).append(ratio)
    return [Ratios(name, len(values), min(values), max(values)) for name, values in found.items()]


def _bounds() -> Iterator[tuple[str, float, Fraction | float]]:
    """Yield the name, the bound of prplugin and the derived one of each set of measurements."""
    for alpha, row, (sums, single) in product(ALPHAS, ROW_DEPTHS, OTHERS):
        rounding = StepRounding(row, 4, sums, sums, sums, single)
        stated = bounds.Depths(*rounding)
        for dtype, scale in RESULTS:
            certificate = Certificate(alpha, 1000, rounding, dtype, scale)  # type: ignore[arg-type]
            of_seeds = certificate.of_step(np.array(CHANGES)).tolist()
            for change, of_seed in zip(CHANGES, of_seeds, strict=True):
                derived = bounds.step(alpha, change, stated, dtype, scale)
                yield "a step", certificate.of_step(change), derived
                yield "a seed of a batch", of_seed, derived
                yield "a start", certificate.of_start(change), bounds.start(alpha, change, stated, dtype, scale)
    exact = StepRounding(0, 0, 0, 0, 0)
    for n, bound, total in product(SIZES, (1e-15, 1e-6, 0.1), (0.9, 1.0, 1 + 1e-12)):
        certificate = Certificate(0.85, n, exact, "float64", 1)
        yield "one rank", certificate.of_vertex(bound, total), bounds.one_rank(bound, total, n)
    for alpha, n, norm, rounding_error in product(ALPHAS, SIZES, (1e-12, 1.0, 1e6), (0.0, 1.0, 2.0**40)):
        rho, three, two = bounds.U * Fraction(rounding_error), (float(n), norm, norm / 2), (norm, float(n))
        found = of_sums.of_residual(alpha, n, three, rounding_error, 3)
        yield "a residual", found, bounds.residual(alpha, n, three, rho, 3)
        yield "pushes", of_sums.of_pushes(alpha, n, two, rounding_error), bounds.pushed(alpha, n, two, rho)
        yield "order by pushes", of_sums.of_gap(alpha, n, two, rounding_error), bounds.pushed_gap(alpha, n, two, rho)
