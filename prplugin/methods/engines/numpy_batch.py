"""Many seeds in NumPy: operations on matrices with one column per seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu import mixing
from prplugin.cpu.sums import totals
from prplugin.graph.problem import Problem
from prplugin.methods.engines.host_batch import HostBatch, width_for
from prplugin.numerics.extrapolation import depth_for
from prplugin.numerics.rounding import FAN_IN, StepRounding, rounding_depth
from prplugin.types.edges import Floats, Integers

__all__ = ["NumpyBatch"]


class NumpyBatch(HostBatch):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once."""

    def __init__(self, problem: Problem, seeds: int) -> None:
        adjacency = problem.adjacency
        n = adjacency.n
        # Per seed: ranks old and new, contributions, and the history; and the terms of all edges, twice if weighted.
        of_ranks = (3 * 8 + 4 * depth_for(problem.alpha, seeds).rows) * n
        super().__init__(problem, width_for(seeds, of_ranks + 2 * 8 * adjacency.m))
        offsets, self._sources, _ = adjacency.csc
        self._row_sums = _RowSums(offsets)
        out_weight = adjacency.out_weight
        self._dangling = out_weight == 0
        self._divisor = np.maximum(out_weight, 1.0)[:, None]
        weights = adjacency.normalized_weights
        self._normalized_weights = None if weights is None else weights[:, None]
        self.rounding = StepRounding(
            row=self._row_sums.rounding_depth,
            edge=1 if weights is None else adjacency.out_weight_depth + 4,
            dangling=rounding_depth(n),
            vectors=problem.vector_depth,
            norm=rounding_depth(n) + 1,
        )

    def _prepare(self) -> Floats:
        return totals(self._ranks[self._dangling])

    def _step(self, moves: Any) -> tuple[Floats, Floats, Floats]:
        x = self._ranks
        if self._normalized_weights is None:
            terms = (x / self._divisor)[self._sources]
        else:
            terms = x[self._sources] * self._normalized_weights
        y = self._row_sums(terms)
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


class _RowSums:
    """Sums of consecutive runs of rows of a matrix, in groups of `FAN_IN` rows, level by level."""

    def __init__(self, offsets: Integers) -> None:
        self._n = offsets.size - 1
        starts, lengths = offsets[:-1], np.diff(offsets)
        self.rounding_depth = rounding_depth(int(lengths.max(initial=0)))
        self._levels: list[Any] = []
        self._rows = np.flatnonzero(lengths)
        starts, lengths = starts[self._rows], lengths[self._rows]
        while lengths.max(initial=0) > FAN_IN:
            groups = -(-lengths // FAN_IN)
            first = np.cumsum(groups) - groups
            within = np.arange(int(groups.sum())) - np.repeat(first, groups)
            self._levels.append(np.repeat(starts, groups) + FAN_IN * within)
            starts, lengths = first, groups
        self._levels.append(starts)

    def __call__(self, terms: Floats) -> Floats:
        sums = np.zeros((self._n, terms.shape[1]))
        if self._rows.size:
            for starts in self._levels:
                terms = np.add.reduceat(terms, starts, axis=0)
            sums[self._rows] = terms
        return sums
