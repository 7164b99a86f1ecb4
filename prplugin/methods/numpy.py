"""Pull over the in-edges in NumPy, without compilation: small frames have no startup cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.graph.product import product_of
from prplugin.machine import Machine, count_processed_edges
from prplugin.methods.base import Step, Sums
from prplugin.methods.engines.host_step import HostStep
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.types.arrays import to_host
from prplugin.types.edges import Floats

name = "numpy"
runs_on = "cpu"
memory = Memory(
    memory_space="host",
    arrays=("product", "out_weight"),
    # Old and new ranks, contributions or change, and 7 rows of history; in unweighted graphs, divisors.
    vertex=Size(4 * 8 + 7 * 4, weight=-1),
    # 12 more rows of history.
    many_vertex=Size(12 * 4),
)

MIXING_FROM = 30
"""Iterations left, at the rate of the last two, from which mixing pays on large graphs."""

CALL_OVERHEAD = 60_000
"""Vertices plus edges for which a plain iteration takes as long as the extra NumPy calls of a mixed one."""

MIXING_FROM_AT_MOST = 1000
"""Iterations left from which mixing pays on every graph."""


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
        count_processed_edges(adjacency.m)
        self._product = product_of(adjacency)
        out_weight = adjacency.out_weight
        self._dangling = adjacency.dangling
        # c = x / W per vertex. Dangling vertices have no out-edges, so their divisor is arbitrary.
        self._divisor = None if adjacency.weighted else np.maximum(out_weight, 1.0)
        self._alpha = problem.alpha
        self._mixing_from = min(MIXING_FROM * (1 + CALL_OVERHEAD / (n + adjacency.m)), MIXING_FROM_AT_MOST)
        self._mixes = False
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
        self._x: Floats = np.empty(self._n)  # a copy: steps overwrite the ranks that they replace
        self._x[:] = to_host(ranks)
        self._change = math.inf

    def __call__(self, moves: Any = None) -> Sums:
        if moves is None:  # mixing does not pay
            self._mixing_from, self._mixes = math.inf, False
        x = self._x
        y = self._pulled(x)
        self._teleport_to(y, self._alpha * total(x.take(self._dangling)) if self._dangling.size else 0.0)
        self._x = y
        change = np.subtract(y, x, x)
        if moves is not None:
            moves[:] = change
        self._change = total(np.absolute(change, change))
        return Sums(self._change, float(np.maximum.reduce(change)))

    def _pulled(self, x: Floats) -> Floats:
        """Return alpha * P^T x."""
        y = self._product(x if self._divisor is None else x / self._divisor)
        y *= self._alpha
        return y

    def _teleport_to(self, y: Floats, mass: float) -> None:
        """Add mass * w + (1 - alpha) * v to y."""
        y += mass * self._dangling_target + self._teleport if mass else self._teleport

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Iterate without proof and history, unless convergence is so slow that mixing pays."""
        before, change, passes = math.inf, self._change, 0
        # Ends when the next iteration, which the solver proves, is expected to reach the goal.
        while passes < budget - 1 and goal < change < before and not self._mixes:
            x = self._x
            y = self._pulled(x)
            # alpha * D = alpha - sum(alpha * P^T x), as x sums to 1.
            self._teleport_to(y, self._alpha - float(np.add.reduce(y)) if self._dangling.size else 0.0)
            difference = np.subtract(y, x, x)
            before, change = change, float(np.add.reduce(np.absolute(difference, difference)))
            self._x, passes = y, passes + 1
            if 0 < goal < change < before:
                rate = math.log(before / change)
                if math.log(change / goal) / rate <= 1:
                    break
                # Not by `goal`: it may be a guess of where an order is proved, and the rate may fall before.
                self._mixes = math.log(change / min(goal, self.final_goal)) / rate > self._mixing_from
        return passes, None

    def ranks(self) -> Floats:
        return self._x
