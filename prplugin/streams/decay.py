"""Edge weights that decay exponentially with age: w * 2**(-(now - t) / half_life).

PageRank depends on weights only through w / W, the weight of an edge divided by the sum over the out-edges of its
source. All out-edges of a vertex can therefore be divided by the same power of 2, 2**k, where k is the reference
exponent of the vertex. With such references the out-weights neither overflow nor underflow, however old the edges are,
and the stored weights do not change as `now` advances.

A weight is faint if it would be stored as less than 2**-1022, the least normal float64. A subnormal number is stored
instead, whose 52 digits are a fingerprint of the weight: faint edges of a pair differ, and an edge to remove matches
the one that it names. All other weights are divided without rounding. What is stored is therefore a function of the
weight and the present reference, in whichever steps that was raised. A change that leaves a vertex an out-weight below
`MIN_OUT_WEIGHT`, of which faint edges could be a part, is refused.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from prplugin.types.edges import ANY, Coo, Floats, Integers

ZERO_EXPONENT = -(1 << 40)
"""Exponent of a weight that is 0 or faint, and reference of a vertex without others; below those of all others."""

LEAST_NORMAL = sys.float_info.min
MIN_OUT_WEIGHT = 2.0**-900
MAX_EXPONENT = 500  # exponent of a weight, relative to that of its source, above which the latter is raised

FINGERPRINTS = np.uint64((1 << 52) - 1)  # number of the subnormals
EXPONENT_FACTOR = np.uint64(0x9E3779B97F4A7)  # spreads exponents over all digits, as digits of weights are often 0


class ScaledWeights(NamedTuple):
    """Weights as significand * 2**exponent, whose range exceeds that of float64.

    Faint weights have the exponent `ZERO_EXPONENT`, and as their significand what is stored of them.
    """

    significands: Floats
    exponents: Integers

    @classmethod
    def of(cls, weights: Floats | None, times: Floats) -> Self:
        """Return w * 2**t, with w = 1 for each edge if `weights` is None; see `times_of_stored`."""
        floors = np.floor(times)
        significands = np.exp2(times - floors)
        exponents = floors.astype(np.int64)
        if weights is not None:
            fractions, powers = np.frexp(weights)
            significands = np.where(times > ZERO_EXPONENT, significands * fractions, weights)
            exponents = np.where((times > ZERO_EXPONENT) & (fractions > 0), exponents + powers, ZERO_EXPONENT)
        return cls(significands, exponents)

    @classmethod
    def of_stored(cls, weights: Floats, references: Integers) -> Self:
        """Return the weights that are stored with these reference exponents."""
        return cls.of(weights, times_of_stored(weights, references))

    def stored(self, references: Integers) -> Floats:
        """Return each weight divided by 2**reference, as it is stored."""
        known = self.exponents > ZERO_EXPONENT
        # Beyond +-2000 the result is 0 or infinite in float64 in any case.
        exponents = np.where(known, np.clip(self.exponents - references, -2000, 2000), 0)
        with np.errstate(over="ignore", under="ignore"):  # infinite only for edges that do not exist
            stored = np.ldexp(self.significands, exponents)
        faint = np.flatnonzero(known & (stored < LEAST_NORMAL))
        if faint.size:
            fractions, powers = np.frexp(self.significands[faint])
            digits = fractions.view(np.uint64) & FINGERPRINTS
            digits += (powers + self.exponents[faint]).view(np.uint64) * EXPONENT_FACTOR
            stored[faint] = (digits % FINGERPRINTS + np.uint64(1)).view(np.float64)
        return stored


def times_of_stored(weights: Floats, references: Integers) -> Floats:
    """Return the times for which `ScaledWeights.of` returns the weights that are stored with these references.

    Faint weights have the time `ZERO_EXPONENT`, which no edge has.
    """
    return np.where(weights < LEAST_NORMAL, ZERO_EXPONENT, references).astype(np.float64)


def decay_weights(edges: Coo) -> tuple[Coo, Integers]:
    """Return the edges with decayed weights instead of times, and the reference exponent of each vertex."""
    assert edges.times is not None
    weights = ScaledWeights.of(edges.weights, edges.times)
    references = np.full(edges.n, ZERO_EXPONENT)
    np.maximum.at(references, edges.source, weights.exponents)
    scaled, roundings = weights.stored(references.take(edges.source)), roundings_of(edges.times)
    return replace(edges, weights=scaled, times=None, extent=(ANY[0], 2.0), roundings=roundings), references


def roundings_of(times: Floats) -> int:
    """Return the most relative roundings, each of 2**-53, in a weight that has decayed to these times."""
    # A time t in half-lives has at most 4 relative roundings, which change 2**t by 4 * ln(2) * |t| <= 2.773 * |t|
    # roundings. The 8 cover the conversion of the weight, exp2, frexp, ldexp, the products, and faint weights: together
    # they are less than 2**-60 of an out-weight.
    return math.ceil(2.773 * float(np.abs(times).max(initial=0.0))) + 8


def weights_at(weights: Floats, references: Integers, shift: float) -> Floats:
    """Return the weights `shift` half-lives after the origin, given the reference exponent of each edge's source.

    Faint weights are 0.
    """
    times = np.where(weights < LEAST_NORMAL, -4000.0, references - shift)
    with np.errstate(under="ignore"):
        significands, exponents = ScaledWeights.of(weights, np.maximum(times, -4000.0))
        return np.ldexp(significands, exponents)
