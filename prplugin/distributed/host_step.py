"""Iteration on the CPU over the vertices of a rank, with an exchange of the contributions of ghosts."""

from __future__ import annotations

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.sums import BLOCK_ROWS, norm_depth, total
from prplugin.distributed.communicator import Communicator, all_reduce_sum
from prplugin.distributed.shard import Shard
from prplugin.graph.edges import Problem, inverse_out_weight
from prplugin.methods.base import Sum, Sums
from prplugin.methods.engines.numpy_step import HostStep, product_of
from prplugin.numerics import fan_in_for, group_sum_depth, rounding_depth
from prplugin.types.arrays import Array
from prplugin.types.edges import Csc, Floats


class HostRows(HostStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, for the vertices of this rank.

    Each iteration has one exchange, which carries the contributions of ghosts and the sums of each rank.

    `threads`: Number of threads of the compiled kernels of method `native`, on which no bit depends. None: use NumPy,
    which needs no compiled kernels.
    """

    def __init__(self, communicator: Communicator, shard: Shard, threads: int | None, problem: Problem) -> None:
        self._communicator, self._shard, self._threads, self._alpha = communicator, shard, threads, problem.alpha
        adjacency, rows, n = shard.adjacency, shard.rows, shard.adjacency.n
        self._rows = rows
        self._inverse_out_weight = inverse_out_weight(adjacency.out_weight[:rows], weighted=adjacency.weighted)
        v = np.array([1.0 / shard.n]) if problem.personalization is None else problem.personalization
        self._target = v if problem.dangling is None else problem.dangling
        self._teleport = (1 - problem.alpha) * v
        # Contributions of the vertices of this rank, then those of its ghosts.
        self._contributions, self._next = np.empty(n), np.empty(n)
        depth = rounding_depth(shard.max_rows)
        if threads is None:
            self._product, _ = product_of(adjacency)
        else:
            offsets, sources, _ = adjacency.get(Csc)
            self._in_edges = offsets[: rows + 1], sources, adjacency.normalized_weights
            self._fan_in = fan_in_for(shard.largest_in_degree)
            self._sums = np.zeros((-(-rows // BLOCK_ROWS), 4))
            depth = max(depth, norm_depth(shard.max_rows))
        self.rounding = shard.step_rounding(group_sum_depth(shard.largest_in_degree), depth + communicator.size)

    def start(self, ranks: Floats | float) -> None:
        self._ranks = np.empty(self._rows)
        self._ranks[:] = ranks
        np.multiply(self._ranks, self._inverse_out_weight, out=self._contributions[: self._rows])
        self._exchange(0.0, 0.0, total(np.where(self._inverse_out_weight == 0, self._ranks, 0.0)))

    def __call__(self, moves: Array | None = None) -> Sums:
        measured = self._numpy_step(moves) if self._threads is None else self._compiled_step(moves)
        self._contributions, self._next = self._next, self._contributions
        return self._exchange(*measured)

    # Both replace x on this rank and write its new contributions to `_next`. They return the sums of this rank: L1
    # change, largest change of a vertex, and dangling mass.

    def _numpy_step(self, moves: Array | None) -> tuple[float, float, float]:
        ranks = self._product(self._contributions)[: self._rows]
        ranks *= self._alpha
        ranks += self._alpha * self._mass * self._target + self._teleport
        change = ranks - self._ranks
        if moves is not None:
            moves[:] = change
        np.abs(change, out=change)
        self._ranks = ranks
        np.multiply(ranks, self._inverse_out_weight, out=self._next[: self._rows])
        return total(change), float(change.max(initial=0.0)), total(np.where(self._inverse_out_weight == 0, ranks, 0.0))

    def _compiled_step(self, moves: Array | None) -> tuple[float, float, float]:
        if self._rows:
            offsets, sources, weights = self._in_edges
            kernels.step_rows(
                offsets=offsets, sources=sources, weights=weights, inverse=self._inverse_out_weight,
                target=self._target, teleport=self._teleport, alpha=self._alpha, fan_in=self._fan_in,
                dangling=self._mass, ranks=self._ranks, contributions=self._contributions, next=self._next,
                moves=moves, sums=self._sums, threads=self._threads,
            )  # fmt: skip
        change, largest, dangling, _ = self._sums.T
        return total(change), float(largest.max(initial=0.0)), total(dangling)

    def _exchange(self, *measured: float) -> Sums:
        """Exchange contributions of ghosts and sums; return the sums over all ranks, added in the order of ranks."""
        received = self._communicator.all_to_all(
            [(self._contributions[vertices], measured) for vertices in self._shard.ghost_sources]
        )
        np.concatenate([ghosts for ghosts, _ in received], out=self._contributions[self._rows :])
        change, largest, dangling = zip(*(sums for _, sums in received), strict=True)
        self._mass = sum(dangling)
        return Sums(sum(change), max(largest))

    def ranks(self) -> Floats:
        return self._ranks

    def add(self, values: Sum) -> Sum:
        return all_reduce_sum(self._communicator, values)
