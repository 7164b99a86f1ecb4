"""Many seeds in NumPy: a matrix with one column per seed, and the product of single rankings column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu import mixing
from prplugin.cpu.sums import totals
from prplugin.graph.problem import Problem
from prplugin.graph.product import product_of
from prplugin.methods.engines.host_batch import HostBatch, width_for
from prplugin.numerics.extrapolation import depth_for
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.edges import Floats

__all__ = ["NumpyBatch"]


class NumpyBatch(HostBatch):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once."""

    def __init__(self, problem: Problem, seeds: int) -> None:
        adjacency = problem.adjacency
        n = adjacency.n
        # Per rank: the rank before and after a step, their difference, and the history.
        super().__init__(problem, width_for(seeds, (3 * 8 + 4 * depth_for(problem.alpha, seeds).rows) * n))
        self._product = product_of(adjacency)
        self._dangling = adjacency.dangling
        self._divisor = None if adjacency.weighted else np.maximum(adjacency.out_weight, 1.0)
        self.rounding = StepRounding(
            row=self._product.depth,
            edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 1,
            dangling=rounding_depth(n),
            vectors=problem.vector_depth,
            norm=rounding_depth(n) + 1,
        )

    def _prepare(self) -> Floats:
        return totals(self._ranks[self._dangling])

    def _step(self, moves: Any) -> tuple[Floats, Floats, Floats]:
        x = self._ranks
        y = np.zeros_like(x)
        for column in np.flatnonzero(self._live).tolist():
            ranks = np.ascontiguousarray(x[:, column])
            y[:, column] = self._product(ranks if self._divisor is None else ranks / self._divisor)
        y *= self._alpha
        if self._target is not None:
            y += self._mass * self._target[:, None]
        rows, columns, values = self._entries
        y[rows, columns] += self._teleport_factor[columns] * values
        y[:, ~self._live] = x[:, ~self._live]
        self._ranks = y
        change = y - x
        if moves is not None:
            self._first_columns(moves)[:] = change
        np.abs(change, out=change)
        return totals(change), change.max(axis=0), totals(y[self._dangling])

    def _products(self, moves: Any, rows: list[int]) -> Floats:
        products: Floats = mixing.products(self._first_columns(moves), rows)
        return products

    def _mix(self, moves: Any, weights: Floats, jump: Any) -> Floats:
        ranks = mixing.mixed(self._ranks, self._first_columns(moves), weights, self._first_columns(jump))
        ranks /= np.where(weights.any(axis=-1), totals(ranks), 1.0)
        self._ranks = ranks
        return self._prepare()

    def _first_columns(self, moves: Any) -> Any:
        """Return a view of the first columns, as many as `_ranks` has."""
        return moves[..., : self._columns.size]
