"""Many seeds in Numba: each edge is read once for all seeds, and adds one row of contributions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from prplugin.cpu.normalization import inverse_out_weight
from prplugin.cpu.pull_kernels import NO_MOVES, as_unsigned, fan_in_for, group_sum_depth
from prplugin.cpu.sums import totals
from prplugin.cpu.threads import Threads, equal_work
from prplugin.graph.problem import Problem
from prplugin.methods.engines.host_batch import HostBatch, width_for
from prplugin.numerics.extrapolation import depth_for, symmetric
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.edges import Floats

__all__ = ["NumbaBatch"]


class NumbaBatch(HostBatch):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once."""

    float32_is_faster = True

    def __init__(self, problem: Problem, seeds: int, threads: int) -> None:
        from prplugin.cpu import batch_kernels as kernels

        self._kernels = kernels
        adjacency = problem.adjacency
        n = adjacency.n
        # Per rank: the rank, a copy in a narrower matrix, contributions of this step and the next, and the history.
        super().__init__(problem, width_for(seeds, (4 * 8 + 4 * depth_for(problem.alpha, seeds).rows) * n))
        offsets, sources, _ = adjacency.csc
        self._offsets, self._sources = as_unsigned(offsets, sources)
        self._normalized_weights = adjacency.normalized_weights
        self._inverse_out_weight = inverse_out_weight(adjacency.out_weight, weighted=adjacency.weighted)
        self._blocks = -(-n // kernels.BLOCK)
        self._bounds = np.minimum(np.arange(self._blocks + 1) * kernels.BLOCK, n)
        self._threads, self._pieces = Threads(threads), equal_work(offsets, kernels.BLOCK, 8 * threads)
        self._kernel_target = np.zeros(1) if problem.dangling is None else problem.dangling
        largest = adjacency.largest_in_degree
        self._fan_in = np.uint64(-(-fan_in_for(largest) // 4) * 4)
        block_depth = 2 * kernels.GROUP
        self._in_float64 = StepRounding(
            row=group_sum_depth(largest) + 4,
            edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 2,
            dangling=max(rounding_depth(n), block_depth + rounding_depth(self._blocks)),
            vectors=problem.vector_depth,
            norm=block_depth + rounding_depth(self._blocks) + 1,
        )
        self.set_contribution_dtype("float64")

    def set_contribution_dtype(self, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._contributions: Any = None
        self.rounding = replace(self._in_float64, single=int(dtype == "float32"))

    def _prepare(self) -> Floats:
        rows, columns, values = self._entries
        self._by_block = np.searchsorted(rows, self._bounds), rows.view(np.uint64), columns, values
        return self._divided_by(np.ones(self._columns.size))

    def _divided_by(self, norms: Floats) -> Floats:
        """Divide the ranks of each column by its norm, and write contributions; return D of each column."""
        shape = self._n + 1, self._columns.size
        if self._contributions is None or self._contributions.shape != shape:
            self._contributions = self._next = None  # frees their memory first
            self._sums = np.empty((self._blocks, 3, self._columns.size))
            self._contributions, self._next = np.empty(shape, self._dtype), np.empty(shape, self._dtype)
            self._contributions[-1], self._next[-1] = 0, 0

        def begin(first: int, last: int) -> None:
            for block in range(first, last):
                rows = slice(*self._bounds[block : block + 2])
                own, inverse = self._ranks[rows], self._inverse_out_weight[rows]
                own /= norms
                np.multiply(own, inverse[:, None], out=self._contributions[rows])
                self._sums[block, 2] = totals(own[inverse == 0.0])

        self._threads.for_each(self._pieces, begin)
        return totals(self._sums[:, 2])

    def _step(self, moves: Any) -> tuple[Floats, Floats, Floats]:
        teleport_factor = self._teleport_factor
        flat_moves = NO_MOVES if moves is None else _flat(moves)

        def step(first: int, last: int) -> None:
            self._kernels.step(
                first, last, self._offsets, self._sources, self._normalized_weights, self._fan_in,
                self._inverse_out_weight,
                _flat(self._contributions), self._alpha, self._mass, self._kernel_target, teleport_factor,
                *self._by_block,
                self._live, _flat(self._ranks), _flat(self._next), flat_moves, self._sums,
            )  # fmt: skip

        self._threads.for_each(self._pieces, step)
        self._contributions, self._next = self._next, self._contributions
        return totals(self._sums[:, 0]), self._sums[:, 1].max(axis=0), totals(self._sums[:, 2])

    def _products(self, moves: Any, rows: list[int]) -> Floats:
        kernels, of, width = self._kernels, np.array(rows), np.uint64(self._columns.size)
        sums = np.zeros((self._blocks, of.size, of.size, self._columns.size))
        flat = moves.reshape(len(moves), -1)

        def multiply(first: int, last: int) -> None:
            buffer = np.empty((of.size, self._columns.size))
            for block in range(first, last):
                kernels.products(*self._bounds[block : block + 2], flat, of, width, buffer, sums[block])

        self._threads.for_each(self._pieces, multiply)
        return symmetric(np.moveaxis(sums.sum(axis=0), -1, 0))

    def _mix(self, moves: Any, weights: Floats, jump: Any) -> Floats:
        transposed, flat = np.ascontiguousarray(weights.T), moves.reshape(len(moves), -1)
        self._sums[:, 0] = 0

        def mix(first: int, last: int) -> None:
            buffer = np.empty(self._columns.size)
            for block in range(first, last):
                self._kernels.mix(
                    *self._bounds[block : block + 2], _flat(self._ranks), flat, transposed, _flat(jump), buffer,
                    self._sums[block, 0],
                )  # fmt: skip

        self._threads.for_each(self._pieces, mix)
        norms = np.where(weights.any(axis=-1), totals(self._sums[:, 0]), 1.0)
        return self._divided_by(norms)

    def transposed(self) -> Floats:
        transposed: Floats = np.empty((self._count, self._n))
        ranks = _flat(self.ranks())
        self._threads.for_each(
            self._pieces, lambda first, last: self._kernels.transpose(first, last, ranks, self.width, transposed)
        )
        return transposed


def _flat(matrix: Any) -> Any:
    return matrix.reshape(-1)
