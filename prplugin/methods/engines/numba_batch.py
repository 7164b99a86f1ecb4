"""Many seeds in Numba: each edge is read once for all seeds, and adds one row of contributions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from prplugin.cpu import batch_kernels as kernels
from prplugin.cpu.normalization import inverse_out_weight
from prplugin.cpu.sums import fan_in_for, group_sum_depth, totals
from prplugin.cpu.threads import Threads, equal_work
from prplugin.graph.problem import Problem, Seeds
from prplugin.methods.base import SeedsStep, Sums
from prplugin.numerics.extrapolation import depth_for, symmetric
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.arrays import to_host
from prplugin.types.edges import Floats, Integers

WIDEST = 64
"""Largest number of seeds per batch. More seeds share the work per edge and per row: docs/decisions/0016."""

MULTIPLE = 8
"""The number of columns is a multiple of this: compiled loops process several columns at a time."""

MOST_BYTES = 1 << 32
"""Largest size of the matrices of a batch that is wider than `MULTIPLE`."""


def _width_for(seeds: int, bytes_per_seed: int) -> int:
    """Return the number of columns for batches of about equal size, at most `WIDEST` and within `MOST_BYTES`."""
    widest = max(MULTIPLE, min(WIDEST, MOST_BYTES // bytes_per_seed))
    batches = math.ceil(seeds / (widest // MULTIPLE * MULTIPLE))
    return _rounded_up(math.ceil(seeds / batches))


def _rounded_up(columns: int) -> int:
    return MULTIPLE * max(1, math.ceil(columns / MULTIPLE))


class NumbaBatch(SeedsStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once.

    Ranks are a matrix of `width` columns, one per seed; the columns past the last seed are 0. The order of additions
    within a column does not depend on the width. When at most three quarters of the seeds are live, steps continue in a
    narrower matrix of the live columns, filled up to a multiple of `MULTIPLE` with others.

    `_columns`: The seed of each column of `_ranks`.
    `_all_ranks`: The ranks of all seeds, where `_ranks` is narrower; the entries of `_columns` in it are stale.
    """

    float32_is_faster = True

    def __init__(self, problem: Problem, seeds: int, threads: int) -> None:
        adjacency = problem.adjacency
        n = adjacency.n
        # Per rank: the rank, a copy in a narrower matrix, contributions of this step and the next, v, and the history.
        self.width = _width_for(seeds, (5 * 8 + 4 * depth_for(problem.alpha, seeds).rows) * n)
        self._alpha, self._target, self._n = problem.alpha, problem.dangling, n
        self._history: Any = None
        offsets, sources, _ = adjacency.csc
        self._offsets, self._sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
        self._normalized_weights = adjacency.normalized_weights
        inverse = inverse_out_weight(adjacency.out_weight, weighted=adjacency.weighted)
        self._inverse_out_weight = problem.alpha * inverse
        self._blocks = -(-n // kernels.BLOCK)
        self._bounds = np.minimum(np.arange(self._blocks + 1) * kernels.BLOCK, n)
        self._threads, self._pieces = Threads(threads), equal_work(offsets, kernels.BLOCK, 8 * threads)
        self._kernel_target = np.empty(0) if problem.dangling is None else problem.dangling
        self._fan_in = np.uint64(fan_in_for(adjacency.largest_in_degree))
        self._in_float64 = _rounding_of(problem)
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

    def set_live(self, live: Any) -> None:
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

        def begin(first: int, last: int) -> None:
            for block in range(first, last):
                rows = slice(*self._bounds[block : block + 2])
                own, inverse = self._ranks[rows], self._inverse_out_weight[rows]
                own /= norms
                np.multiply(own, inverse[:, None], out=self._contributions[rows])
                self._sums[block, 2] = totals(own[inverse == 0.0])

        self._threads.for_each(self._pieces, begin)
        return totals(self._sums[:, 2])

    def __call__(self, moves: Any = None) -> Sums:
        self._has_moves = moves is not None
        # Factor of each column's values v: 1 - alpha, plus alpha * D where w = v.
        teleport_factor = np.full(self._columns.size, 1 - self._alpha)
        if self._target is None:
            teleport_factor += self._mass
        flat_moves = np.empty(0, np.float32) if moves is None else _flat(moves)

        def step(first: int, last: int) -> None:
            kernels.step(
                first, last, self._offsets, self._sources, self._normalized_weights, self._fan_in,
                self._inverse_out_weight,
                _flat(self._contributions), self._mass, self._kernel_target, teleport_factor, _flat(self._teleport),
                self._teleport_rows, self._live, _flat(self._ranks), _flat(self._next), flat_moves, self._sums,
            )  # fmt: skip

        self._threads.for_each(self._pieces, step)
        self._contributions, self._next = self._next, self._contributions
        self._mass = self._alpha * totals(self._sums[:, 2])
        return Sums(self._per_seed(totals(self._sums[:, 0])), self._per_seed(self._sums[:, 1].max(axis=0)))

    def history(self, rows: int) -> Any:
        # Reused for all batches: the first write to newly allocated memory takes longer than a step.
        if self._history is None or len(self._history) != rows:
            self._history = np.empty((rows, self._n, self.width), np.float32)
        return self._history

    def products(self, moves: Any, rows: list[int]) -> Floats:
        of, width = np.array(rows), np.uint64(self._columns.size)
        sums = np.zeros((self._blocks, of.size, of.size, self._columns.size))
        flat = moves.reshape(len(moves), -1)

        def multiply(first: int, last: int) -> None:
            buffer = np.empty((of.size, self._columns.size))
            for block in range(first, last):
                kernels.products(*self._bounds[block : block + 2], flat, of, width, buffer, sums[block])

        self._threads.for_each(self._pieces, multiply)
        return self._per_seed(symmetric(np.moveaxis(sums.sum(axis=0), -1, 0)))

    def mix(self, moves: Any, weights: Floats, jump: Any) -> None:
        weights = weights[self._columns]
        transposed, flat = np.ascontiguousarray(weights.T), moves.reshape(len(moves), -1)
        self._sums[:, 0] = 0

        def mix(first: int, last: int) -> None:
            buffer = np.empty(self._columns.size)
            for block in range(first, last):
                kernels.mix(
                    *self._bounds[block : block + 2], _flat(self._ranks), flat, transposed, _flat(jump), buffer,
                    self._sums[block, 0],
                )  # fmt: skip

        self._threads.for_each(self._pieces, mix)
        norms = np.where(weights.any(axis=-1), totals(self._sums[:, 0]), 1.0)
        self._mass = self._alpha * self._divided_by(norms)
        self._has_moves = False

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
        ranks = _flat(self.ranks())
        self._threads.for_each(
            self._pieces, lambda first, last: kernels.transpose(first, last, ranks, self.width, transposed)
        )
        return transposed


def _rounding_of(problem: Problem) -> StepRounding:
    adjacency = problem.adjacency
    in_blocks = 2 * kernels.GROUP + rounding_depth(-(-adjacency.n // kernels.BLOCK))
    return StepRounding(
        row=group_sum_depth(adjacency.largest_in_degree),
        edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 2,
        dangling=max(rounding_depth(adjacency.n), in_blocks),
        vectors=problem.vector_depth,
        norm=in_blocks + 1,
    )


def _flat(matrix: Any) -> Any:
    return matrix.reshape(-1)


def _empty_lines(shape: tuple[int, int], dtype: Any) -> Any:
    """Return a matrix that begins at a cache line: otherwise rows of 32 float32 are in three lines instead of two."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + kernels.LINE, np.uint8)
    first = -memory.ctypes.data % kernels.LINE
    return memory[first : first + size].view(dtype).reshape(shape)
