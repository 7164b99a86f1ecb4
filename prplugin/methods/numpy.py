"""Pull over the in-edges in NumPy, without compilation: small frames have no startup cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.graph.product import product_of
from prplugin.machine import Machine
from prplugin.methods.base import Step, Sums
from prplugin.methods.engines.host_step import CHUNK, HostStep
from prplugin.numerics import StepRounding, rounding_depth
from prplugin.types.arrays import Array, to_host
from prplugin.types.edges import Floats

name = "numpy"
runs_on = "cpu"
memory = Memory(
    memory_space="host",
    arrays=("product", "out_weight"),
    # Old and new ranks, contributions and, in unweighted graphs, factors.
    vertex=Size(4 * 8, weight=-1),
    # 19 rows of history.
    many_vertex=Size(19 * 4),
)

MIXING_FROM = 25
"""Iterations left, at the rate between the last two measurements, from which mixing pays on large graphs."""

CALL_OVERHEAD = 30_000
"""Vertices plus edges for which a plain iteration takes as long as the extra NumPy calls of a mixed one."""

MIXING_FROM_AT_MOST = 1000
"""Iterations left from which mixing pays on every graph."""

MAX_UNMEASURED = 4
"""Maximum number of iterations between two measurements of the change."""

ONES = np.ones(CHUNK)
"""Sums as dot products with ones take half the time of `numpy.add.reduce` for small vectors."""


def unavailable_reason(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Return None: NumPy is a dependency of prplugin."""
    return None


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate 40 iterations: benchmarks/results/steps.md."""
    return 40 * (15e-6 + 3.6e-9 * adjacency.m + 1e-9 * adjacency.n)


def prepare(problem: Problem, machine: Machine) -> Step:
    """Return a step that computes row sums over the CSC layout."""
    return _Pull(problem.on("host"))


def batch_cost(adjacency: Adjacency, machine: Machine, seeds: int) -> float:
    """Estimate the rankings of the seeds one after another: docs/decisions/0016-batched-seeds.md."""
    return seeds * cost(adjacency, machine)


class _Pull(HostStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v in NumPy."""

    def __init__(self, problem: Problem) -> None:
        adjacency = problem.adjacency
        n = self._n = adjacency.n
        self._dangling = adjacency.dangling
        self._alpha = problem.alpha
        # alpha * c = x * (alpha / W) per vertex; in weighted graphs x * alpha, since the product multiplies by w / W.
        # Dangling vertices have no out-edges, so their factor is arbitrary.
        divisor = 1.0 if adjacency.weighted else np.maximum(adjacency.out_weight, 1.0)
        self._factor = np.asarray(problem.alpha / divisor)  # NumPy takes longer for a Python float
        self._product, row_depth = product_of(adjacency)
        self._contributions = np.empty(n)
        self._sum: Callable[[Floats], Any] = ONES[:n].dot if n <= CHUNK else np.add.reduce
        self._mixing_from = min(MIXING_FROM * (1 + CALL_OVERHEAD / (n + adjacency.m)), MIXING_FROM_AT_MOST)
        self._mixes = False
        self._v: Floats | float = 1.0 / n if problem.personalization is None else problem.personalization
        self._w = problem.dangling
        self._teleport: Floats | float = (1 - self._alpha) * self._v
        self.rounding = StepRounding(
            row=row_depth,
            # alpha / W, counted elsewhere, and its product with x; or w as a float, the terms of W as floats, W, w / W,
            # and the product with it
            edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 1,
            dangling=rounding_depth(n),
            vectors=problem.vector_depth,
            norm=n,  # of any order of additions: the depth of this sum hardly affects the bound
        )

    def start(self, ranks: Floats | float) -> None:
        self._x: Floats = np.empty(self._n)  # a copy: steps overwrite the ranks that they replace
        self._x[:] = to_host(ranks)
        self._change = math.inf

    def __call__(self, moves: Array | None = None) -> Sums:
        if moves is None and self._mixes:  # mixing has ended: it does not pay
            self._mixing_from, self._mixes = math.inf, False
        x = self._x
        y = self._x = self._pulled(x)
        if self._dangling.size:
            self._teleport_to(y, self._alpha * total(x.take(self._dangling)))
        else:
            y += self._teleport
        change = np.subtract(y, x, x)
        if moves is not None:
            moves[:] = change
        self._change = float(self._sum(np.absolute(change, change)))
        return Sums(self._change, float(np.maximum.reduce(change)) if self.final_goal < 0 else math.inf)

    def history(self, rows: int) -> Any:
        return super().history(rows) if self._mixes else None

    def _pulled(self, x: Floats) -> Floats:
        """Return alpha * P^T x."""
        return self._product(np.multiply(x, self._factor, self._contributions))

    def _teleport_to(self, y: Floats, mass: float) -> None:
        """Add mass * w + (1 - alpha) * v to y."""
        y += (mass + (1 - self._alpha)) * self._v if self._w is None else mass * self._w + self._teleport

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Iterate without proof and history, unless convergence is so slow that mixing pays."""
        change, passes, left = self._change, 0, 1.0
        # Ends when the next iteration, which the solver proves, is expected to reach the goal.
        while passes < budget - 1 and goal < change < math.inf and not self._mixes:
            count = min(int(left), MAX_UNMEASURED, budget - 1 - passes)
            x = self._iterate(count)
            passes += count
            difference = np.subtract(self._x, x, x)
            before, change = change, float(self._sum(np.absolute(difference, difference)))
            if not goal < change < before:
                break
            if goal > 0:
                rate = math.log(before / change) / count
                left = math.log(change / goal) / rate
                if left <= 1:
                    break
                # Not by `goal`: it may be a guess of where an order is proved, and the rate may fall before.
                self._mixes = math.log(change / min(goal, self.final_goal)) / rate > self._mixing_from
        return passes, None

    def _iterate(self, count: int) -> Floats:
        """Take `count` steps without a proof, and return the ranks before the last one."""
        y = self._x
        for _ in range(count):
            x, y = y, self._pulled(y)
            if self._dangling.size:  # alpha * D = alpha - sum(alpha * P^T x), as x sums to 1
                self._teleport_to(y, self._alpha - float(self._sum(y)))
            else:
                y += self._teleport
        self._x = y
        return x

    def ranks(self) -> Floats:
        return self._x
