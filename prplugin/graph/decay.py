"""Weights that decay: an edge weighs w * 2**(-(now - t) / half_life).

PageRank takes weights divided by their sum over the out-edges of a vertex. So each vertex may have a reference of its
own, 2**k, by which its weights are divided: they neither overflow nor vanish, however old its edges are, and time that
goes by changes none of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from prplugin.types.edges import ANY, Edges, Floats, Integers

__all__ = ["Decaying", "decayed", "shown"]

NONE = -(1 << 40)
"""Exponent of a weight of 0."""


class Decaying(NamedTuple):
    """Weights as significand * 2**exponent: too large or too small for float64 alone."""

    significands: Floats
    exponents: Integers

    @classmethod
    def of(cls, weights: Floats | None, times: Floats) -> Decaying:
        """Return w * 2**t; without weights, 2**t."""
        whole = np.floor(times)
        significands = np.exp2(times - whole)
        exponents = whole.astype(np.int64)
        if weights is not None:
            fractions, powers = np.frexp(weights)
            significands *= fractions
            exponents = np.where(fractions == 0, NONE, exponents + powers)
        return cls(significands, exponents)

    def over(self, references: Integers) -> Floats:
        """Return the weights, each divided by 2**reference."""
        # Past these a weight is 0, or infinite, anyway.
        scaled: Floats = np.ldexp(self.significands, np.clip(self.exponents - references, -2000, 2000))
        return scaled


def decayed(edges: Edges) -> tuple[Edges, Integers]:
    """Return edges with the weights that they have by their times, and the exponent of each vertex's reference."""
    assert edges.times is not None
    weights = Decaying.of(edges.weights, edges.times)
    references = np.full(edges.n, NONE)
    np.maximum.at(references, edges.source, weights.exponents)
    references[references == NONE] = 0
    # A time in half-lives carries three roundings, 2**t the ln 2 of their sum; and the functions and products, some.
    roundings = math.ceil(2.1 * float(np.abs(edges.times).max(initial=0.0))) + 8
    scaled = weights.over(references.take(edges.source))
    return replace(edges, weights=scaled, times=None, extent=(ANY[0], 2.0), roundings=roundings), references


def shown(weights: Floats, references: Integers, shift: float) -> Floats:
    """Return weights as of `shift` half-lives after the origin, given the reference of each one's source."""
    with np.errstate(under="ignore"):
        return Decaying.of(weights, references - shift).over(np.int64(0))  # type: ignore[arg-type]
