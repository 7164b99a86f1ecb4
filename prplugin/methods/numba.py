"""Pull over the in-edges in kernels compiled by Numba, on every core: the same bits for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.crew import Crew, equal_work
from prplugin.cpu.outflow import outflow
from prplugin.cpu.sums import total
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.machine import COMPILED_FROM, Machine
from prplugin.methods.base import BatchStep, Step, Sums
from prplugin.methods.engines.sweeps import Sweeps, worth_from
from prplugin.numerics.rounding import StepChain, chain
from prplugin.options import whole
from prplugin.types.arrays import moved
from prplugin.types.edges import Floats

name = "numba"
runs_on = "cpu"
memory = Memory(
    place="host",
    edge=Size(weight=1),  # normalized weights
    # Inverse out-weights, ranks, contributions old and new, moves in float32, and which vertices dangle.
    vertex=Size(4 * 8 + 4 + 1),
    # The layout and the iterates of sweeps, in float32, in place of the contributions.
    many_edge=Size(4, weight=0.5),
    many_vertex=Size(61, weight=0.75),
)


def unfit(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Run anywhere: Numba comes with prplugin."""
    return None


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate 40 iterations (benchmarks/results/steps.md), and Numba's start where the graph was built without."""
    start = 0.0 if adjacency.m >= COMPILED_FROM else 0.4
    return start + 40 * (30e-6 + (1e-9 * adjacency.m + 1.5e-9 * adjacency.n) / machine.threads)


def prepare(problem: Problem, machine: Machine, *, threads: int | None = None) -> Step:
    """Sort the edges by target and share out the rows.

    Parameters
    ----------
    threads : int, optional
        How many threads; all that this process may use if not given. Any number gives the same bits.
    """
    threads = machine.threads if threads is None else whole("threads", threads)
    return _ThreadedPull(problem.on("host"), threads)


def batch(problem: Problem, machine: Machine, seeds: int, *, threads: int | None = None) -> BatchStep:
    """Sort the edges by target and share out the rows, as `prepare`, for many seeds."""
    from prplugin.methods.engines.numba_batch import NumbaBatch  # imports Numba

    return NumbaBatch(problem.on("host"), seeds, machine.threads if threads is None else whole("threads", threads))


def batch_cost(adjacency: Adjacency, machine: Machine, seeds: int) -> float:
    """Estimate 40 iterations of each seed: docs/decisions/0016-many-seeds-side-by-side.md."""
    start = 0.0 if adjacency.m >= COMPILED_FROM else 0.4
    return start + 40 * seeds * (5e-6 + (0.5e-9 * adjacency.m + 2e-9 * adjacency.n) / machine.threads)


class _ThreadedPull:
    def __init__(self, problem: Problem, threads: int) -> None:
        from prplugin.cpu import pull_kernels as kernels  # imports Numba

        self._kernels = kernels
        adjacency = problem.adjacency
        n = adjacency.n
        offsets, sources, weights = adjacency.csc
        self._offsets, self._sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
        out_weight = adjacency.out_weight
        self._outflow = outflow(out_weight, weighted=weights is not None)
        self._shares: Floats | None = None
        if weights is not None:
            self._shares = np.empty_like(weights)
            kernels.edge_shares(weights, sources, out_weight, self._shares)
        self._alpha = problem.alpha
        v = np.array([1.0 / n]) if problem.personalization is None else problem.personalization
        self._target = v if problem.dangling is None else problem.dangling
        self._teleport = (1 - problem.alpha) * v
        blocks = -(-n // kernels.BLOCK)
        self._sums = np.empty((blocks, 3))
        self._problem, self._threads = problem, threads
        self._ranks: Floats = np.empty(0)
        self._contributions: Any = None
        self._next: Any = None
        self._moves: Any = None
        self._sweeps: Sweeps | None = None
        self._crew = Crew(equal_work(offsets, kernels.BLOCK, 8 * threads), threads)
        largest = adjacency.largest_in_degree
        self._fan = np.uint64(kernels.fan_for(largest))
        self.chain = StepChain(
            row=kernels.pull_chain(largest),
            edge=2 if weights is None else adjacency.out_weight_chain + 4,
            dangling=max(chain(n), kernels.step_chain() + chain(blocks)),
            vectors=problem.vector_chain,
            norm=kernels.step_chain() + chain(blocks) + 1,
        )

    def start(self, ranks: Floats | float) -> None:
        n = self._outflow.size
        if ranks is not self._ranks:  # its own nobody else has
            self._ranks = np.empty(n)
            self._ranks[:] = moved(ranks, "host")
        if self._contributions is None:
            self._contributions, self._next = np.empty(n), np.empty(n)
        np.multiply(self._ranks, self._outflow == 0, out=self._next)
        self._mass = total(self._next)
        np.multiply(self._ranks, self._outflow, out=self._contributions)

    def __call__(self) -> Sums:
        def sweep(first: int, last: int) -> None:
            self._kernels.sweep(
                first, last, self._offsets, self._sources, self._shares, self._fan, self._outflow,
                self._contributions, self._alpha, self._alpha * self._mass, self._target, self._teleport,
                self._ranks, self._next, self._moves, self._sums,
            )  # fmt: skip

        self._crew.work(sweep)
        self._contributions, self._next = self._next, self._contributions
        change, largest, dangling = self._sums.T
        self._mass = total(dangling)
        return Sums(total(change), float(largest.max()))

    def ranks(self) -> Floats:
        return self._ranks

    def foresee(self) -> float:
        self._moves = np.empty(self._ranks.size, np.float32)
        return worth_from(self._problem.adjacency)

    def foreseen(self, goal: float, limit: int) -> tuple[Floats, int]:
        self._contributions = self._next = None  # room for sweeps: `start` makes them anew
        if self._sweeps is None:
            self._sweeps = Sweeps(self._problem, self._target, self._teleport, self._threads)
        dangling = self._sweeps.live.size < self._ranks.size
        ranks, gained, count = self._sweeps.solve(self._ranks, self._moves, goal, limit - dangling)
        np.maximum(ranks, 0.0, out=ranks)
        whole = total(ranks) + gained
        ranks /= whole
        self._ranks = ranks
        if dangling:  # what they gain together is known: a step gives each its own
            self.start(ranks)
            self._mass = max(0.0, self._mass + gained / whole)
            self()
            ranks /= total(ranks)
            count += 1
        return ranks, count
