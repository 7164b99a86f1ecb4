"""One ranking in Numba: threads pull over the in-edges of pieces of rows, with the same bits for any number of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prplugin.cpu import mixing_kernels
from prplugin.cpu import pull_kernels as kernels
from prplugin.cpu.normalization import inverse_out_weight
from prplugin.cpu.sums import fan_in_for, total
from prplugin.cpu.threads import Threads, cut, equal_work
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Sums
from prplugin.methods.engines.host_step import HostStep, compiled_rounding
from prplugin.methods.engines.sweeps import STREAMS, Sweeps, iterates_size, least_steps_for_sweeps
from prplugin.numerics.extrapolation import depth_for, symmetric
from prplugin.types.arrays import to_host
from prplugin.types.edges import Floats


class NumbaPull(HostStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, over pieces of rows that threads take."""

    def __init__(self, problem: Problem, threads: int, machine: Machine) -> None:
        adjacency = problem.adjacency
        n = adjacency.n
        offsets, sources, _ = adjacency.csc
        self._offsets, self._sources = kernels.as_unsigned(offsets, sources)
        self._normalized_weights = adjacency.normalized_weights
        self._inverse_out_weight = inverse_out_weight(adjacency.out_weight, weighted=adjacency.weighted)
        self._alpha = problem.alpha
        v = np.array([1.0 / n]) if problem.personalization is None else problem.personalization
        self._target = v if problem.dangling is None else problem.dangling
        self._teleport = (1 - problem.alpha) * v
        self._sums = np.empty((-(-n // kernels.BLOCK), 3))
        self._problem, self._threads = problem, Threads(threads)
        self._ranks: Floats = np.empty(0)
        self._contributions: Any = None
        self._next: Any = None
        self._moves: Any = None
        self._buffer: Any = None
        # Sweeps use at most `STREAMS` threads. The machine decides, so that `threads` does not change the bits.
        self._least_steps = least_steps_for_sweeps(adjacency) if machine.threads <= STREAMS else math.inf
        self._sweeps: Sweeps | None = None
        self._changes: list[float] = []
        self._pieces = np.array(equal_work(offsets, kernels.BLOCK, 8 * threads))
        self._rows = [(nth, *rows) for nth, rows in enumerate(cut(n, mixing_kernels.PIECE))]
        self._sums_of_pieces = np.empty(len(self._rows))
        self._fan_in = np.uint64(fan_in_for(adjacency.largest_in_degree))
        self.rounding = compiled_rounding(problem)

    def start(self, ranks: Floats | float) -> None:
        self._ranks = np.empty(self._inverse_out_weight.size)
        self._ranks[:] = to_host(ranks)
        self._begin(1.0)

    def _begin(self, norm: float) -> None:
        """Divide the ranks by `norm`, and compute the contributions of the next step."""
        if self._contributions is None:
            self._contributions, self._next = np.empty_like(self._ranks), np.empty_like(self._ranks)
        self._changes, self._moves, self._swept = [], None, False
        masses = self._sums_of_pieces

        def begin(piece: int, first: int, last: int) -> None:
            ranks, inverse = self._ranks[first:last], self._inverse_out_weight[first:last]
            ranks /= norm
            np.multiply(ranks, inverse, out=self._contributions[first:last])
            masses[piece] = total(ranks[inverse == 0.0])

        self._threads.for_each(self._rows, begin)
        self._mass = total(masses)

    def __call__(self, moves: Any = None) -> Sums:
        before = self._mass
        self._moves = moves

        def step(taken: Any) -> None:
            kernels.step(
                self._pieces, taken, self._offsets, self._sources, self._normalized_weights, self._fan_in,
                self._inverse_out_weight,
                self._contributions, self._alpha, self._alpha * before, self._target, self._teleport,
                self._ranks, self._next, kernels.NO_MOVES if moves is None else moves, self._swept, self._sums,
            )  # fmt: skip

        self._threads.share(len(self._pieces), step)
        self._contributions, self._next = self._next, self._contributions
        change, largest, dangling = self._sums.T
        self._mass = total(dangling)
        self._dangling_change = self._mass - before
        measured = total(change)
        if self._swept:
            # G x depends on the ranks of dangling vertices only through their sum. The ranks of y for these vertices,
            # scaled to the sum in x, give a vector with the same G x. Its distance from y is that of the other
            # vertices, plus the difference of the sums.
            measured += abs(self._dangling_change) + 2.0**-52 * self.rounding.dangling * self._mass
            self._swept = False
        self._changes.append(measured)
        return Sums(measured, float(largest.max()))

    def ranks(self) -> Floats:
        return self._ranks

    def history(self, rows: int) -> Any:
        # Sweeps end the history, and reuse its memory for their iterates.
        n, least = self._ranks.size, 0
        if self._least_steps < math.inf:
            least = iterates_size(int(np.count_nonzero(self._inverse_out_weight)), depth_for(self._alpha))
        self._buffer = np.empty(max(rows * n, least), np.float32)
        return self._buffer[: rows * n].reshape(rows, n)

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Improve the ranks of the last step by Gauss-Seidel sweeps: see `prplugin.methods.engines.sweeps`."""
        changes, self._changes = self._changes, self._changes[-1:]
        # Not by `goal` alone: it may be a guess of where an order is proved.
        if self._moves is None or budget < 2 or not self._sweeps_pay(changes, min(goal, self.final_goal)):
            return 0, None
        self._contributions = self._next = None  # frees memory for the sweeps; `_begin` allocates them again
        if self._sweeps is None:
            self._sweeps = Sweeps(self._problem, self._target, self._teleport, self._threads.count)
        dangling_change, count = self._sweeps.solve(
            self._ranks, self._moves, self._dangling_change, goal, budget - 1, self._buffer
        )
        np.maximum(self._ranks, 0.0, out=self._ranks)
        norm = total(self._ranks) + dangling_change
        if not 0 < norm < math.inf:  # the sweeps overflowed float32: restart with plain steps
            self._sweeps, self._least_steps = None, math.inf
            self.start(1.0 / self._ranks.size)
            return count, None
        self._begin(norm)
        self._mass = max(0.0, self._mass + dangling_change / norm)
        self._swept = True
        return count, None

    def _sweeps_pay(self, changes: list[float], goal: float) -> bool:
        """Return whether as many plain steps are left as make sweeps pay off, at the rate of the last two changes."""
        if self._sweeps is not None:
            return changes[-1] > goal
        if len(changes) < 2 or not 0 < goal < changes[-1] < changes[-2]:
            return False
        return math.log(goal / changes[-1]) / math.log(changes[-1] / changes[-2]) >= self._least_steps

    def products(self, moves: Any, rows: list[int]) -> Floats:
        of = np.array(rows)
        sums = np.zeros((len(self._rows), of.size, of.size))
        self._threads.for_each(
            self._rows, lambda piece, *columns: mixing_kernels.products(*columns, moves, of, sums[piece])
        )
        return symmetric(sums.sum(axis=0))

    def mix(self, moves: Any, weights: Floats, jump: Any) -> None:
        of = np.flatnonzero(weights)
        used, sums = weights[of], self._sums_of_pieces

        def mix(piece: int, first: int, last: int) -> None:
            ranks = self._ranks[first:last]
            correction = mixing_kernels.combined(first, last, moves, of, used)
            mixed = np.maximum(np.subtract(ranks, correction, out=correction), 0.0, out=correction)
            np.subtract(mixed, ranks, out=jump[first:last], casting="same_kind")
            ranks[:] = mixed
            sums[piece] = total(mixed)

        self._threads.for_each(self._rows, mix)
        self._begin(total(sums))
