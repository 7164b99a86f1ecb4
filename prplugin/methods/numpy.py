"""Pull over the in-edges in NumPy: nothing to compile, so small frames are served at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.graph.product import product_of
from prplugin.machine import Machine, worked_on
from prplugin.methods.base import SeedsStep, Step, Sums
from prplugin.methods.engines.host_step import HostStep
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.arrays import to_host
from prplugin.types.edges import Floats

name = "numpy"
runs_on = "cpu"
memory = Memory(
    memory_space="host",
    arrays=("product", "out_weight"),
    # Old and new ranks, contributions or what the ranks differ by, and 7 rows of history; without weights, divisors.
    vertex=Size(4 * 8 + 7 * 4, weight=-1),
    # 12 more rows.
    many_vertex=Size(12 * 4),
)


def unavailable_reason(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Run anywhere."""
    return None


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate 40 iterations: benchmarks/results/steps.md."""
    return 40 * (15e-6 + 3.6e-9 * adjacency.m + 1e-9 * adjacency.n)


def prepare(problem: Problem, machine: Machine) -> Step:
    """Sort the edges by target, and keep every vertex's in-edges in one run."""
    return _Pull(problem.on("host"))


def batch(problem: Problem, machine: Machine, seeds: int) -> SeedsStep:
    """Sort the edges by target, as `prepare`, for many seeds."""
    from prplugin.methods.engines.numpy_batch import NumpyBatch

    return NumpyBatch(problem.on("host"), seeds)


def batch_cost(adjacency: Adjacency, machine: Machine, seeds: int) -> float:
    """Estimate 40 iterations of each seed: docs/decisions/0016-many-seeds-side-by-side.md."""
    return 40 * seeds * (5e-6 + 12e-9 * adjacency.m)


class _Pull(HostStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, whole vectors at a time."""

    def __init__(self, problem: Problem) -> None:
        adjacency = problem.adjacency
        n = self._n = adjacency.n
        worked_on(adjacency.m)
        self._product = product_of(adjacency)
        out_weight = adjacency.out_weight
        self._dangling = np.flatnonzero(out_weight == 0)
        # c = x / W, once per vertex; a dangling vertex is nobody's source, so what it is divided by is all one.
        self._divisor = None if adjacency.weighted else np.maximum(out_weight, 1.0)
        self._alpha = problem.alpha
        v = 1.0 / n if problem.personalization is None else problem.personalization
        self._dangling_target: Floats | float = v if problem.dangling is None else problem.dangling
        self._teleport: Floats | float = (1 - problem.alpha) * v
        self.rounding = StepRounding(
            row=self._product.depth,
            # x / W; or w as a float, the terms of W as floats, W, w / W, and x * (w / W)
            edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 1,
            dangling=rounding_depth(n),
            vectors=problem.vector_depth,
            norm=rounding_depth(n) + 1,
        )

    def start(self, ranks: Floats | float) -> None:
        self._x: Floats = np.full(self._n, ranks) if isinstance(ranks, float) else to_host(ranks)
        self._mass = total(self._x[self._dangling])

    def __call__(self, moves: Any = None) -> Sums:
        x = self._x
        y = self._product(x if self._divisor is None else x / self._divisor)
        y *= self._alpha
        y += self._alpha * self._mass * self._dangling_target + self._teleport
        self._x, self._mass = y, total(y.take(self._dangling))
        change = y - x
        if moves is not None:
            moves[:] = change
        np.abs(change, out=change)
        return Sums(total(change), float(change.max()))

    def ranks(self) -> Floats:
        return self._x
