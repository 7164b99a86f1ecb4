"""The equation to solve: x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prplugin.cpu.sorting import rows_of, stable_order
from prplugin.cpu.sums import GroupSums, total
from prplugin.graph.adjacency import Adjacency
from prplugin.numerics.rounding import chain
from prplugin.types.arrays import Place, moved, namespace
from prplugin.types.edges import Floats, Integers

__all__ = ["Problem", "Seeds", "normalised", "sums_of_runs"]


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


@dataclass(frozen=True, slots=True)
class Seeds:
    """Personalizations side by side, as the values that are given: most give one vertex all.

    Attributes
    ----------
    bounds : array of k + 1 int64, on the host
        Seed j gives ``values[bounds[j]:bounds[j + 1]]`` to the vertices ``rows[bounds[j]:bounds[j + 1]]``.
    rows : array of int64
        Positions of vertices, each once a seed.
    values : array of float64
        Of sum 1, for each seed.
    """

    bounds: Integers
    rows: Integers
    values: Floats

    @property
    def count(self) -> int:
        """How many seeds there are."""
        return self.bounds.size - 1

    def part(self, first: int, last: int) -> Seeds:
        """Give the seeds `first` to `last`."""
        begin, end = self.bounds[first], self.bounds[last]
        return Seeds(self.bounds[first : last + 1] - begin, self.rows[begin:end], self.values[begin:end])

    def on(self, place: Place) -> Seeds:
        """Give the same seeds in the memory of the processor ("host") or of the GPU ("device")."""
        return Seeds(self.bounds, moved(self.rows, place), moved(self.values, place))

    def by_row(self) -> tuple[Integers, Integers, Floats]:
        """Give row, seed and value of each entry, by row and then by seed."""
        columns = namespace(self.rows).asarray(np.repeat(np.arange(self.count), np.diff(self.bounds)))
        order = stable_order(self.rows)
        return self.rows[order], columns[order], self.values[order]

    def vector(self, seed: int, n: int) -> Floats:
        """Spread one seed over all n vertices."""
        begin, end = self.bounds[seed], self.bounds[seed + 1]
        spread: Floats = namespace(self.values).zeros(n)
        spread[self.rows[begin:end]] = self.values[begin:end]
        return spread


def sums_of_runs(values: Floats, bounds: Integers) -> Floats:
    """Sum consecutive runs of non-negative values, where they lie; `bounds` are on the host."""
    if (xp := namespace(values)) is np:
        return GroupSums(rows_of(bounds), bounds.size - 1)(values)
    from prplugin.gpu import group  # imports CuPy, which holds the values

    return group.run_sums(values, xp.asarray(bounds))


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
