"""Many seeds on the host: a base class, and the batch in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prplugin.cpu import mixing
from prplugin.cpu.sums import totals
from prplugin.graph.problem import Problem, Seeds
from prplugin.graph.product import product_of
from prplugin.methods.base import SeedsStep, Sums
from prplugin.methods.engines.host_step import HostStep
from prplugin.numerics.extrapolation import depth_for
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.arrays import to_host
from prplugin.types.edges import Floats, Integers

__all__ = ["HostBatch", "NumpyBatch", "width_for"]

WIDTHS = (8, 32)
"""Numbers of seeds per batch: 32 float64 are four cache lines."""

MOST_BYTES = 1 << 32
"""Largest size of the matrices of a batch, for batches wider than the least width."""


def width_for(seeds: int, bytes_per_seed: int) -> int:
    """Return the batch width: the least that holds all seeds, else the largest within `MOST_BYTES`."""
    fitting = [width for width in WIDTHS if width == WIDTHS[0] or width * bytes_per_seed <= MOST_BYTES]
    return next((width for width in fitting if width >= seeds), fitting[-1])


class HostBatch(HostStep, SeedsStep):
    """Ranks as a matrix of `width` columns, one per seed; the columns past the last seed are 0.

    The fixed width makes the order of additions independent of the number of seeds. When few seeds are live, steps
    continue in a narrower matrix of the live columns, filled up to a multiple of the least width with others.

    `_columns`: The seed of each column of `_ranks`.
    `_all_ranks`: The ranks of all seeds, where `_ranks` is narrower; the entries of `_columns` in it are stale.
    """

    def __init__(self, problem: Problem, width: int) -> None:
        self.width = width
        self._alpha, self._target = problem.alpha, problem.dangling
        self._n = problem.adjacency.n
        self._history: Any = None

    def seed(self, seeds: Seeds) -> None:
        self._count, self.seeds = seeds.count, self.width
        self._all_entries = seeds.on("host").entries_by_vertex()

    def start(self, ranks: Floats | float | None) -> None:
        all_ranks: Any = ranks
        if not (isinstance(ranks, np.ndarray) and ranks.ndim == 2):
            all_ranks = np.zeros((self._n, self.width))
            if ranks is None:
                rows, columns, values = self._all_entries
                all_ranks[rows, columns] = values
            else:
                all_ranks[:, : self._count] = ranks if isinstance(ranks, float) else to_host(ranks)[:, None]
        self._all_ranks: Any = None
        self._select_columns(np.arange(self.width), all_ranks)

    def _select_columns(self, columns: Integers, ranks: Floats) -> None:
        """Continue with the ranks of these seeds."""
        self._columns, self._ranks, self._entries = columns, ranks, self._all_entries
        if columns.size < self.width:
            position = np.full(self.width, -1)
            position[columns] = np.arange(columns.size)
            rows, seeds, values = self._all_entries
            held = position[seeds] >= 0
            self._entries = rows[held], position[seeds[held]], values[held]
        self._live = np.ones(columns.size, np.bool_)
        self._has_moves = False
        self._mass = self._alpha * self._prepare()

    def set_live(self, live: Any) -> None:
        narrow = WIDTHS[0] * max(1, math.ceil(np.count_nonzero(live) / WIDTHS[0]))
        # The moves since the last mix have the width of the matrix at that time.
        if narrow < self._columns.size and not self._has_moves:
            self._all_ranks = self.ranks()
            columns = np.sort(np.argsort(~live, kind="stable")[:narrow])
            self._select_columns(columns, np.take(self._all_ranks, columns, axis=1))
        self._live = live[self._columns]

    def __call__(self, moves: Any = None) -> Sums:
        self._has_moves = moves is not None
        change, largest, dangling = self._step(moves)
        self._mass = self._alpha * dangling
        return Sums(self._per_seed(change), self._per_seed(largest))

    def history(self, rows: int) -> Any:
        # Reused for all batches: the first write to newly allocated memory takes longer than a step.
        if self._history is None or len(self._history) != rows:
            self._history = np.empty((rows, self._n, self.width), np.float32)
        return self._history

    def products(self, moves: Any, rows: list[int]) -> Floats:
        return self._per_seed(self._products(moves, rows))

    def mix(self, moves: Any, weights: Floats, jump: Any) -> None:
        self._mass = self._alpha * self._mix(moves, weights[self._columns], jump)
        self._has_moves = False

    def _per_seed(self, values: Floats) -> Floats:
        """Return values per column as values per seed: 0 for a seed without a column."""
        spread = np.zeros((self.width, *values.shape[1:]))
        spread[self._columns] = values
        return spread

    def _prepare(self) -> Floats:
        """Prepare the first step; return D of each column."""
        raise NotImplementedError

    def _step(self, moves: Any) -> tuple[Floats, Floats, Floats]:
        """Iterate once; return ||y - x||, max |y - x| and D(y) of each column."""
        raise NotImplementedError

    def _products(self, moves: Any, rows: list[int]) -> Floats:
        """Return the dot products of some moves, one matrix per column; see `Step.products`."""
        raise NotImplementedError

    def _mix(self, moves: Any, weights: Floats, jump: Any) -> Floats:
        """Mix, with one row of weights per column; return D of each column. See `Step.mix`."""
        raise NotImplementedError

    @property
    def _teleport_factor(self) -> Floats:
        """Factor of each column's values v: 1 - alpha, plus alpha * D where w = v."""
        rest = np.full(self._columns.size, 1 - self._alpha)
        return rest + self._mass if self._target is None else rest

    def ranks(self) -> Floats:
        if self._all_ranks is None:
            return self._ranks
        self._all_ranks[:, self._columns] = self._ranks
        all_ranks: Floats = self._all_ranks
        return all_ranks

    def transposed(self) -> Floats:
        return np.ascontiguousarray(self.ranks()[:, : self._count].T)


class NumpyBatch(HostBatch):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v, with the product of single rankings by column."""

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
