"""Edge weights that decay exponentially with age: w * 2**(-(now - t) / half_life).

PageRank depends on weights only through w / W, the weight of an edge divided by the sum over the out-edges of its
source. All out-edges of a vertex can therefore be divided by the same power of 2, 2**k, where k is the reference
exponent of the vertex. With such references the stored weights neither overflow nor underflow, however old the edges
are, and they do not change as `now` advances.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from prplugin.types.edges import ANY, Edges, Floats, Integers

ZERO_EXPONENT = -(1 << 40)  # exponent that represents a weight of 0


class ScaledWeights(NamedTuple):
    """Weights as significand * 2**exponent, whose range exceeds that of float64."""

    significands: Floats
    exponents: Integers

    @classmethod
    def of(cls, weights: Floats | None, times: Floats) -> ScaledWeights:
        """Return w * 2**t, with w = 1 for each edge if `weights` is None."""
        floors = np.floor(times)
        significands = np.exp2(times - floors)
        exponents = floors.astype(np.int64)
        if weights is not None:
            fractions, powers = np.frexp(weights)
            significands *= fractions
            exponents = np.where(fractions == 0, ZERO_EXPONENT, exponents + powers)
        return cls(significands, exponents)

    def divide(self, references: Integers) -> Floats:
        """Return each weight divided by 2**reference, as float64."""
        # Beyond +-2000 the result is 0 or infinite in float64 in any case.
        return np.ldexp(self.significands, np.clip(self.exponents - references, -2000, 2000))


def decay_weights(edges: Edges) -> tuple[Edges, Integers]:
    """Return the edges with decayed weights instead of times, and the reference exponent of each vertex."""
    assert edges.times is not None
    weights = ScaledWeights.of(edges.weights, edges.times)
    references = np.full(edges.n, ZERO_EXPONENT)
    np.maximum.at(references, edges.source, weights.exponents)
    references[references == ZERO_EXPONENT] = 0
    scaled, roundings = weights.divide(references.take(edges.source)), roundings_of(edges.times)
    return replace(edges, weights=scaled, times=None, extent=(ANY[0], 2.0), roundings=roundings), references


def roundings_of(times: Floats) -> int:
    """Return the most relative roundings, each of 2**-53, in a weight that has decayed to these times."""
    # A time t in half-lives has at most 4 relative roundings, which change 2**t by 4 * ln(2) * |t| <= 2.8 * |t|
    # roundings. The 8 cover exp2, frexp, ldexp and the products.
    return math.ceil(2.8 * float(np.abs(times).max(initial=0.0))) + 8


def weights_at(weights: Floats, references: Integers, shift: float) -> Floats:
    """Return the weights `shift` half-lives after the origin, given the reference exponent of each edge's source."""
    with np.errstate(under="ignore"):
        return ScaledWeights.of(weights, references - shift).divide(np.int64(0))  # type: ignore[arg-type]
