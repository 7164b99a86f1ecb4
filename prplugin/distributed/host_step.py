"""Iteration on the CPU over the vertices of a rank, with an exchange of the contributions of ghosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from prplugin.cpu.inverse_out_weight import inverse_out_weight
from prplugin.cpu.repeated_work import RepeatedWork, equal_work
from prplugin.cpu.sorting import rows_of
from prplugin.cpu.sums import GroupSums, group_sum_depth, total
from prplugin.distributed.communicator import Communicator, summed
from prplugin.distributed.shard import Shard
from prplugin.distributed.vectors import vector_depth
from prplugin.methods.base import Sums
from prplugin.methods.engines.host_step import HostStep
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.edges import Floats

__all__ = ["CompiledStep", "NumpyStep"]


class _SpreadStep(HostStep, ABC):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, for the vertices of this rank.

    Each iteration has one exchange, of the contributions of ghosts together with the sums of each rank.
    """

    def __init__(self, communicator: Communicator, shard: Shard, alpha: float, v: Floats | None, w: Floats | None):
        self._communicator, self._shard, self._alpha = communicator, shard, alpha
        self._rows, n = shard.rows, shard.adjacency.n
        out_weight = shard.adjacency.out_weight[: self._rows]
        self._inverse_out_weight = inverse_out_weight(out_weight, weighted=shard.adjacency.weighted)
        uniform = np.array([1.0 / shard.n])
        v = uniform if v is None else v
        self._target = v if w is None else w
        self._teleport = (1 - alpha) * v
        # Contributions of the vertices of this rank, then those of its ghosts.
        self._contributions, self._next = np.empty(n), np.empty(n)

    def _rounding(self, row: int, sums: int) -> StepRounding:
        """Return the rounding depths of a step, from those of a row sum and of a sum over the vertices of a rank."""
        shard, ranks = self._shard, self._communicator.size
        return StepRounding(
            row=row,
            edge=shard.out_weight_depth + 4 if shard.adjacency.weighted else 2,
            dangling=sums + ranks,
            vectors=vector_depth(shard),
            norm=sums + ranks + 1,
        )

    def start(self, ranks: Floats | float) -> None:
        self._ranks = np.empty(self._rows)
        self._ranks[:] = ranks
        np.multiply(self._ranks, self._inverse_out_weight, out=self._contributions[: self._rows])
        self._exchange(self._contributions, 0.0, 0.0, total(np.where(self._inverse_out_weight == 0, self._ranks, 0.0)))

    def __call__(self, moves: Any = None) -> Sums:
        measured = self._step(self._contributions, self._next, moves)
        self._contributions, self._next = self._next, self._contributions
        return self._exchange(self._contributions, *measured)

    @abstractmethod
    def _step(self, contributions: Floats, following: Floats, moves: Any) -> tuple[float, float, float]:
        """Replace x on this rank and write its new contributions to `following`.

        Return the sums of this rank: L1 change, largest change of a vertex, and dangling mass.
        """

    def _exchange(self, contributions: Floats, change: float, largest: float, dangling: float) -> Sums:
        """Exchange contributions of ghosts and sums; return the sums over all ranks, added in the order of ranks."""
        mine = np.array([change, largest, dangling])
        came = self._communicator.exchange([(contributions[vertices], mine) for vertices in self._shard.sent])
        ghost = self._rows
        for brought, _ in came:
            contributions[ghost : ghost + brought.size] = brought
            ghost += brought.size
        sums = np.array([measured for _, measured in came])
        self._mass = float(sum(sums[:, 2].tolist()))
        return Sums(float(sum(sums[:, 0].tolist())), float(sums[:, 1].max()))

    def ranks(self) -> Floats:
        return self._ranks

    def add(self, values: Any) -> Any:
        return summed(self._communicator, values)


class NumpyStep(_SpreadStep):
    """A step in NumPy, which needs no compilation."""

    def __init__(self, communicator: Communicator, shard: Shard, alpha: float, v: Floats | None, w: Floats | None):
        super().__init__(communicator, shard, alpha, v, w)
        offsets, self._sources, weights = shard.adjacency.csc
        self._row_sums = GroupSums(rows_of(offsets[: self._rows + 1]), self._rows)
        self._normalized_weights: Floats | None = None
        if weights is not None:
            of_source = shard.adjacency.out_weight[self._sources]
            self._normalized_weights = np.divide(weights, of_source, out=np.zeros_like(weights), where=of_source > 0)
        most = int(np.diff(shard.offsets).max())
        self.rounding = self._rounding(group_sum_depth(shard.longest), rounding_depth(most))

    def _step(self, contributions: Floats, following: Floats, moves: Any) -> tuple[float, float, float]:
        terms = contributions[self._sources]
        if self._normalized_weights is not None:
            terms *= self._normalized_weights
        ranks = self._row_sums(terms)
        ranks *= self._alpha
        ranks += self._alpha * self._mass * self._target + self._teleport
        change = ranks - self._ranks
        if moves is not None:
            moves[:] = change
        np.abs(change, out=change)
        self._ranks = ranks
        np.multiply(ranks, self._inverse_out_weight, out=following[: self._rows])
        return total(change), float(change.max(initial=0.0)), total(np.where(self._inverse_out_weight == 0, ranks, 0.0))


class CompiledStep(_SpreadStep):
    """A step with the kernels of method `numba`, with the same bits for any number of threads."""

    def __init__(
        self,
        communicator: Communicator,
        shard: Shard,
        alpha: float,
        v: Floats | None,
        w: Floats | None,
        threads: int,
    ):
        from prplugin.cpu import pull_kernels as kernels  # imports Numba

        super().__init__(communicator, shard, alpha, v, w)
        self._kernels = kernels
        offsets, sources, weights = shard.adjacency.csc
        offsets = offsets[: self._rows + 1]
        csc = (offsets, sources, weights)
        self._offsets, self._sources, self._normalized_weights = kernels.in_edges(csc, shard.adjacency.out_weight)
        blocks = -(-self._rows // kernels.BLOCK)
        self._sums = np.zeros((blocks, 3))
        self._work = RepeatedWork(equal_work(offsets, kernels.BLOCK, 8 * threads) if blocks else [], threads)
        self._fan_in = np.uint64(kernels.fan_in_for(shard.longest))
        most = int(np.diff(shard.offsets).max())
        sums = max(rounding_depth(most), kernels.block_depth() + rounding_depth(-(-most // kernels.BLOCK)))
        self.rounding = self._rounding(kernels.group_sum_depth(shard.longest), sums)

    def _step(self, contributions: Floats, following: Floats, moves: Any) -> tuple[float, float, float]:
        def step(first: int, last: int) -> None:
            self._kernels.step(
                first, last, self._offsets, self._sources, self._normalized_weights, self._fan_in,
                self._inverse_out_weight,
                contributions, self._alpha, self._alpha * self._mass, self._target, self._teleport,
                self._ranks, following, self._kernels.NO_MOVES if moves is None else moves, False, self._sums,
            )  # fmt: skip

        self._work.run(step)
        change, largest, dangling = self._sums.T
        return total(change), float(largest.max(initial=0.0)), total(dangling)
