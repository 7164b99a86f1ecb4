"""Pull over the in-edges in NumPy: nothing to compile, so small frames are served at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.sums import RowSums, total
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import NOTHING, Counts, Footprint, brought, csc, levels_of_row_sums, out_weight
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import SeedsStep, Step, Sums
from prplugin.methods.engines.host_step import HostStep
from prplugin.numerics.extrapolation import window_bytes
from prplugin.numerics.rounding import StepChain, chain
from prplugin.types.arrays import moved
from prplugin.types.edges import Floats

name = "numpy"
runs_on = "cpu"


def unfit(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Run anywhere."""
    return None


def footprint(graph: Counts, machine: Machine) -> Footprint:
    """Count the bytes of the in-edges, of the maps of their row sums, of a term an edge, and of the vectors."""
    return _footprint(graph)


def leaping_footprint(graph: Counts, machine: Machine) -> Footprint:
    """Add the history of the iterates."""
    return _footprint(graph, window_bytes(graph.n))


def _footprint(graph: Counts, window: int = 0) -> Footprint:
    here, so_far = csc(*brought(graph, "host", NOTHING))
    n, m = here.n, here.m
    maps, mapping = levels_of_row_sums(here)
    so_far = so_far.then("host", maps, mapping)
    here, so_far = out_weight(here, so_far)
    # The out-weight of every edge's source, and whether it is more than 0; or one divisor a vertex.
    so_far = so_far.then("host", 8 * m, 9 * m) if here.weighted else so_far.then("host", 8 * n)
    so_far = so_far.then("host", 8 * n + window, 8 * m + 4 * 8 * n)  # terms; old and new ranks, and what they differ by
    return so_far if graph.place == "host" else so_far.then("device", 8 * n)


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
        offsets, self._sources, weights = adjacency.csc
        self._row_sums = RowSums(offsets)
        out_weight = adjacency.out_weight
        self._dangling = np.flatnonzero(out_weight == 0)
        self._shares: Floats | None = None
        if weights is None:
            # c = x / W, once a vertex; a dangling vertex is nobody's source, so what it is divided by is all one.
            self._divisor = np.maximum(out_weight, 1.0)
        else:
            # The edge's share w / W, never x / W: 1 / W overflows where weights are denormal.
            self._shares = _shares(weights, out_weight[self._sources])
        self._alpha = problem.alpha
        v = 1.0 / n if problem.personalization is None else problem.personalization
        self._dangling_target: Floats | float = v if problem.dangling is None else problem.dangling
        self._teleport: Floats | float = (1 - problem.alpha) * v
        self.chain = StepChain(
            row=self._row_sums.chain,
            # x / W; or w as a float, the terms of W as floats, W, w / W, and x * (w / W)
            edge=1 if weights is None else adjacency.out_weight_chain + 4,
            dangling=chain(n),
            vectors=problem.vector_chain,
            norm=chain(n) + 1,
        )

    def start(self, ranks: Floats | float) -> None:
        self._x: Floats = np.full(self._n, ranks) if isinstance(ranks, float) else moved(ranks, "host")
        self._mass = total(self._x[self._dangling])

    def __call__(self, moves: Any = None) -> Sums:
        x = self._x
        if self._shares is None:
            terms = (x / self._divisor)[self._sources]
        else:
            terms = x[self._sources] * self._shares
        y = self._row_sums(terms)
        y *= self._alpha
        y += self._alpha * self._mass * self._dangling_target + self._teleport
        self._x, self._mass = y, total(y[self._dangling])
        change = y - x
        if moves is not None:
            moves[:] = change
        np.abs(change, out=change)
        return Sums(total(change), float(change.max()))

    def ranks(self) -> Floats:
        return self._x


def _shares(weights: Floats, out_weights: Floats) -> Floats:
    """Divide; 0 where all weights of the source are 0, which makes it dangling."""
    return np.divide(weights, out_weights, out=np.zeros_like(weights), where=out_weights > 0)
