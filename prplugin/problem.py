"""The equation to solve: x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prplugin.graph.adjacency import Adjacency
from prplugin.graph.arrays import Place, moved
from prplugin.graph.edges import Floats
from prplugin.graph.sums import chain, total

__all__ = ["Problem", "normalised"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One PageRank equation.

    Attributes
    ----------
    adjacency : Adjacency
        Gives P: row u is the weights that leave u, divided by their sum.
    alpha : float
        Damping, in [0, 1).
    personalization : array of n float64, or None
        v, of sum 1. None: 1/n each.
    dangling : array of n float64, or None
        w, of sum 1. None: as v.
    """

    adjacency: Adjacency
    alpha: float
    personalization: Floats | None = None
    dangling: Floats | None = None

    def on(self, place: Place) -> Problem:
        """Give the same equation in the memory of the processor ("host") or of the GPU ("device")."""
        return Problem(
            self.adjacency.on(place), self.alpha, moved(self.personalization, place), moved(self.dangling, place)
        )

    @property
    def vector_chain(self) -> int:
        """Roundings in an entry of v or w: of the value as given, of the sum, and of their quotient."""
        return chain(self.adjacency.n) + 2


def normalised(values: Floats, sum_of: Callable[[Floats], float] = total) -> tuple[Floats, float]:
    """Divide non-negative values by their sum; also give the sum, which may turn out to be 0 or infinite.

    Parameters
    ----------
    sum_of : function
        Gives the sum; of values that are a part of all, that of all.
    """
    whole = sum_of(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return values / whole, whole
