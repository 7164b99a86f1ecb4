"""Pull over the in-edges in NumPy: the plain reference, and what ranks where no kernels could be compiled."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.sums import total
from prplugin.methods.base import Array, Edges, Floats, Machine, Made, Memory, Problem, Rate, Step, StepRounding, Sums
from prplugin.methods.engines.numpy_step import HostStep, Product, product_of
from prplugin.numerics import rounding_depth
from prplugin.types.arrays import to_host
from prplugin.types.edges import Coo, Csc

name = "numpy"
runs_on = "cpu"
reads = Coo, Csc
memory = Memory(
    memory_space="host",
    layout="product",
    made=Made(Rate(28, 8, 24), Rate(16.25, 8, 8)),
    # A term per edge; old and new ranks, contributions and factors, 7 rows of history, a mix.
    step=Rate(8, 0, 4 * 8 + 7 * 4 + 2 * 8),
    more=Rate(vertex=12 * 4),  # rows of history
)


def unavailable_reason(adjacency: Edges | None, machine: Machine) -> str | None:
    """Return None: NumPy is a dependency of prplugin."""
    return None


def cost(adjacency: Edges, machine: Machine) -> float:
    """Estimate 40 iterations: benchmarks/results/steps.md."""
    return 40 * (15e-6 + 3.6e-9 * adjacency.m + 1e-9 * adjacency.n)


def prepare(problem: Problem, machine: Machine) -> Step:
    """Return a step that computes row sums over the CSC layout."""
    problem = problem.on("host")
    return Pull(problem, *product_of(problem.adjacency))


def batch_cost(adjacency: Edges, machine: Machine, seeds: int) -> float:
    """Estimate the rankings of the seeds one after another: docs/decisions/0016-batched-seeds.md."""
    return seeds * cost(adjacency, machine)


class Pull(HostStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v in NumPy, by any product with the edges.

    `product`: Returns for each vertex a new array with the sum of ``vector[source]``, in weighted graphs times the
    normalized weight w / W, over its in-edges. `depth`: Its rounding depth, such as the largest number of additions.
    """

    def __init__(self, problem: Problem, product: Product, depth: int) -> None:
        adjacency = problem.adjacency
        n = self._n = adjacency.n
        self._dangling = adjacency.dangling
        self._alpha = problem.alpha
        # alpha * c = x * (alpha / W) per vertex; in weighted graphs x * alpha, since the product multiplies by w / W.
        # Dangling vertices have no out-edges, so their factor is arbitrary.
        divisor = 1.0 if adjacency.weighted else np.maximum(adjacency.out_weight, 1.0)
        self._factor = np.asarray(problem.alpha / divisor)  # NumPy takes longer for a Python float
        self._product = product
        self._contributions = np.empty(n)
        self._v: Floats | float = 1.0 / n if problem.personalization is None else problem.personalization
        self._w = problem.dangling
        self._teleport: Floats | float = (1 - self._alpha) * self._v
        self.rounding = StepRounding(
            row=depth,
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

    def __call__(self, moves: Array | None = None) -> Sums:
        x = self._x
        y = self._x = self._product(np.multiply(x, self._factor, self._contributions))
        mass = self._alpha * total(x.take(self._dangling)) if self._dangling.size else 0.0
        # alpha * D * w + (1 - alpha) * v
        y += (mass + (1 - self._alpha)) * self._v if self._w is None else mass * self._w + self._teleport
        change = np.subtract(y, x, x)
        if moves is not None:
            moves[:] = change
        np.absolute(change, change)
        return Sums(float(np.add.reduce(change)), float(np.maximum.reduce(change)))

    def ranks(self) -> Floats:
        return self._x
