"""Many seeds by compiled kernels: each edge is read once for all seeds, and adds one row of contributions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from prplugin.cpu import batch as kernels
from prplugin.cpu.normalization import inverse_out_weight
from prplugin.cpu.pull import BLOCK_ROWS
from prplugin.cpu.sums import fan_in_for, totals
from prplugin.graph.problem import Problem, Seeds
from prplugin.methods.base import SeedsStep, Sums
from prplugin.numerics.extrapolation import depth_for, symmetric
from prplugin.numerics.rounding import StepRounding
from prplugin.types.arrays import Array, to_host
from prplugin.types.edges import Floats, Integers

WIDEST = 64
"""Largest number of seeds per batch. More seeds share the work per edge and per row: docs/decisions/0016."""

MULTIPLE = 8
"""The number of columns is a multiple of this: compiled loops process several columns at a time."""

LINE = 64
"""Bytes per cache line."""

MOST_BYTES = 1 << 32
"""Largest size of the matrices of a batch that is wider than `MULTIPLE`."""


def _width_for(seeds: int, bytes_per_seed: int) -> int:
    """Return the number of columns for batches of about equal size, at most `WIDEST` and within `MOST_BYTES`."""
    widest = max(MULTIPLE, min(WIDEST, MOST_BYTES // bytes_per_seed))
    batches = math.ceil(seeds / (widest // MULTIPLE * MULTIPLE))
    return _rounded_up(math.ceil(seeds / batches))


def _rounded_up(columns: int) -> int:
    return MULTIPLE * max(1, math.ceil(columns / MULTIPLE))


class NativeBatch(SeedsStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once.

    Ranks are a matrix of `width` columns, one per seed; the columns past the last seed are 0. The order of additions
    within a column does not depend on the width. When at most three quarters of the seeds are live, steps continue in a
    narrower matrix of the live columns, filled up to a multiple of `MULTIPLE` with others.

    `_columns`: The seed of each column of `_ranks`.
    `_all_ranks`: The ranks of all seeds, where `_ranks` is narrower; the entries of `_columns` in it are stale.
    """

    float32_is_faster = True

    def __init__(self, problem: Problem, seeds: int, threads: int, rounding: StepRounding) -> None:
        adjacency = problem.adjacency
        n = adjacency.n
        # Per rank: the rank, a copy in a narrower matrix, contributions of this step and the next, v, and the history.
        self.width = _width_for(seeds, (5 * 8 + 4 * depth_for(problem.alpha, seeds).rows) * n)
        self._alpha, self._target, self._n = problem.alpha, problem.dangling, n
        self._history: Any = None
        offsets, sources, _ = adjacency.csc
        self._in_edges = offsets, sources, adjacency.normalized_weights
        inverse = inverse_out_weight(adjacency.out_weight, weighted=adjacency.weighted)
        self._inverse_out_weight = problem.alpha * inverse
        self._blocks, self._threads = -(-n // BLOCK_ROWS), threads
        self._fan_in = fan_in_for(adjacency.largest_in_degree)
        self._in_float64 = rounding
        self.set_contribution_dtype("float64")

    def set_contribution_dtype(self, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._contributions: Any = None
        self.rounding = replace(self._in_float64, single=int(dtype == "float32"))

    def seed(self, seeds: Seeds) -> None:
        self._count, self.seeds = seeds.count, self.width
        seeds = seeds.on("host")
        # v without its rows of zeros, which are most rows of a few vertices per seed.
        self._teleport_rows = np.full(self._n, -1)
        self._teleport_rows[seeds.rows] = 0
        rows = np.flatnonzero(self._teleport_rows == 0)
        self._teleport_rows[rows] = np.arange(rows.size)
        self._all_teleport = np.zeros((rows.size, self.width))
        columns = np.repeat(np.arange(seeds.count), np.diff(seeds.bounds))
        self._all_teleport[self._teleport_rows[seeds.rows], columns] = seeds.values

    def start(self, ranks: Floats | float | None) -> None:
        all_ranks: Any = ranks
        if not (isinstance(ranks, np.ndarray) and ranks.ndim == 2):
            all_ranks = np.zeros((self._n, self.width))
            if ranks is None:
                all_ranks[self._teleport_rows >= 0] = self._all_teleport
            else:
                all_ranks[:, : self._count] = ranks if isinstance(ranks, float) else to_host(ranks)[:, None]
        self._all_ranks: Any = None
        self._select_columns(np.arange(self.width), all_ranks)

    def _select_columns(self, columns: Integers, ranks: Floats) -> None:
        """Continue with the ranks of these seeds."""
        self._columns, self._ranks = columns, ranks
        every = columns.size == self.width
        self._teleport = self._all_teleport if every else np.take(self._all_teleport, columns, axis=1)
        self._live = np.ones(columns.size, np.bool_)
        self._has_moves = False
        self._mass = self._alpha * self._divided_by(np.ones(columns.size))

    def set_live(self, live: Array) -> None:
        narrow = _rounded_up(int(np.count_nonzero(live)))
        # A copy takes about as long as a few steps in the columns that it saves. The moves since the last mix have the
        # width of the matrix at that time.
        if 4 * narrow <= 3 * self._columns.size and not self._has_moves:
            self._all_ranks = self.ranks()
            columns = np.sort(np.argsort(~live, kind="stable")[:narrow])
            self._select_columns(columns, np.take(self._all_ranks, columns, axis=1))
        self._live = live[self._columns]

    def _divided_by(self, norms: Floats) -> Floats:
        """Divide the ranks of each column by its norm, and write contributions; return D of each column."""
        shape = self._n, self._columns.size
        if self._contributions is None or self._contributions.shape != shape:
            self._contributions = self._next = None  # frees their memory first
            self._sums = np.empty((self._blocks, 3, self._columns.size))
            self._contributions, self._next = _empty_lines(shape, self._dtype), _empty_lines(shape, self._dtype)

        kernels.begin(self._inverse_out_weight, norms, self._ranks, self._contributions, self._sums, self._threads)
        return totals(self._sums[:, 2])

    def __call__(self, moves: Any = None) -> Sums:
        self._has_moves = moves is not None
        # Factor of each column's values v: 1 - alpha, plus alpha * D where w = v.
        teleport_factor = np.full(self._columns.size, 1 - self._alpha)
        if self._target is None:
            teleport_factor += self._mass
        kernels.step(
            *self._in_edges, self._fan_in, self._inverse_out_weight, self._contributions, self._mass, self._target,
            teleport_factor, self._teleport, self._teleport_rows, self._live, self._ranks, self._next,
            None if moves is None else self._own(moves), self._sums, self._threads,
        )  # fmt: skip
        self._contributions, self._next = self._next, self._contributions
        self._mass = self._alpha * totals(self._sums[:, 2])
        return Sums(self._per_seed(totals(self._sums[:, 0])), self._per_seed(self._sums[:, 1].max(axis=0)))

    def history(self, rows: int) -> Any:
        # Reused for all batches: the first write to newly allocated memory takes longer than a step.
        if self._history is None or len(self._history) != rows:
            self._history = np.empty((rows, self._n, self.width), np.float32)
        return self._history

    def products(self, moves: Array, rows: list[int]) -> Floats:
        of = np.array(rows)
        sums = np.empty((self._blocks, of.size, of.size, self._columns.size))
        kernels.products(moves.reshape(len(moves), -1), of, self._ranks, sums, self._threads)
        products = np.zeros(sums.shape[1:])
        lower = np.tril_indices(of.size)
        products[lower] = sums[:, *lower].sum(axis=0)
        return self._per_seed(symmetric(np.moveaxis(products, -1, 0)))

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        weights = weights[self._columns]
        kernels.mix(
            moves.reshape(len(moves), -1), np.ascontiguousarray(weights.T), self._ranks, self._own(jump), self._sums,
            self._threads,
        )  # fmt: skip
        sums = totals(self._sums[:, 0])
        norms = np.where(weights.any(axis=-1) & (sums > 0), sums, 1.0)
        self._mass = self._alpha * self._divided_by(norms)
        self._has_moves = False

    def _own(self, moves: Array) -> Any:
        """Return the part of an array for the widest matrix that a matrix of the present width takes."""
        return moves.reshape(-1)[: self._ranks.size].reshape(self._ranks.shape)

    def _per_seed(self, values: Floats) -> Floats:
        """Return values per column as values per seed: 0 for a seed without a column."""
        spread = np.zeros((self.width, *values.shape[1:]))
        spread[self._columns] = values
        return spread

    def ranks(self) -> Floats:
        if self._all_ranks is None:
            return self._ranks
        self._all_ranks[:, self._columns] = self._ranks
        all_ranks: Floats = self._all_ranks
        return all_ranks

    def transposed(self) -> Floats:
        transposed: Floats = np.empty((self._count, self._n))
        kernels.transpose(self.ranks(), transposed, self._threads)
        return transposed


def _empty_lines(shape: tuple[int, int], dtype: Any) -> Any:
    """Return a matrix that begins at a cache line: otherwise rows of 32 float32 are in three lines instead of two."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(dtype).reshape(shape)
