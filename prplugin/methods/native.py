"""Pull over the in-edges on all CPU cores, compiled with the package; the same bits for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu import kernels, library
from prplugin.cpu.packing import PIECE
from prplugin.cpu.sums import BLOCK_ROWS, norm_depth, packed_depth, total
from prplugin.graph.edges import Edges, Problem
from prplugin.graph.lumping import LUMPED_EDGES, Lumped, lumped_of
from prplugin.graph.memory import Memory, Rate
from prplugin.machine import Machine
from prplugin.methods.base import SeedsStep, Step, Sums
from prplugin.numerics import (
    Depth,
    StepRounding,
    compensated_depth,
    depth_for,
    fan_in_for,
    group_sum_depth,
    rounding_depth,
)
from prplugin.options import validate_int
from prplugin.types.arrays import Array, to_host
from prplugin.types.edges import Compressed, Csc, Floats, Integers, PackedRows, bits_of

name = "native"
runs_on = "cpu"
reads = PackedRows, Csc
memory = Memory(
    memory_space="host",
    normalizes=True,
    # Ranks before and after their division, contributions old and new, 7 rows of history and their products; inverse
    # out-weights and the order of rows, which the graph keeps. Not the in-edges with dangling vertices as one, which
    # few graphs keep: `prplugin.graph.lumping`.
    step=Rate(vertex=5 * 8 + 7 * 4 + 3),
    more=Rate(vertex=12 * 4),  # rows of history
    packs=True,
)


def unavailable_reason(adjacency: Edges | None, machine: Machine) -> str | None:
    """Return why the compiled kernels cannot be used, or None."""
    return library.unavailable_reason()


EDGES_PER_THREAD = 50_000
"""Edges whose iterations take less time than the start of another thread and the waiting of all for each other."""


def cost(adjacency: Edges, machine: Machine) -> float:
    """Estimate 40 iterations: benchmarks/results/steps.md."""
    return 40 * (2e-6 + (1e-9 * adjacency.m + 1.5e-9 * adjacency.n) / machine.threads)


def prepare(problem: Problem, machine: Machine, *, threads: int | None = None) -> Step:
    """Group the edges by target.

    Parameters
    ----------
    threads : int, optional
        Number of threads. Default: one per 50,000 edges, at most all that this process may use. The bits are the same
        for any number.
    """
    if threads is None:
        threads = max(1, min(machine.threads, problem.adjacency.m // EDGES_PER_THREAD))
    else:
        threads = validate_int("threads", threads)
    return NativeStep(problem.on("host"), threads)


def batch(problem: Problem, machine: Machine, seeds: int, *, threads: int | None = None) -> SeedsStep:
    """Return the step for many seeds; options as for `prepare`."""
    from prplugin.methods.engines.native_batch import NativeBatch

    threads = machine.threads_for(seeds * problem.adjacency.m) if threads is None else validate_int("threads", threads)
    return NativeBatch(problem.on("host"), seeds, threads, rounding_of(problem))


batch_from = 2
"""Number of seeds from which a batch is used: docs/decisions/0016-batched-seeds.md. It depends on no number of threads,
as the bits must not."""


def batch_cost(adjacency: Edges, machine: Machine, seeds: int) -> float:
    """Estimate individual rankings: what a batch saves differs by graph (docs/decisions/0016-batched-seeds.md)."""
    return seeds * cost(adjacency, machine)


FLOAT32_FROM = 150_000
"""Number of vertices from which iterations begin with contributions in float32: docs/decisions/0019. Those of fewer fit
a cache, and the bound in float32 is larger, which takes more of them."""


def rounding_of(problem: Problem, row: int | None = None, *, lumps: bool = False) -> StepRounding:
    """Return the rounding depths of a step of the compiled kernels; `row` is that of the row sums of packed edges.

    `lumps`: Whether dangling vertices are lumped.
    """
    adjacency = problem.adjacency
    depth = norm_depth(adjacency.n)
    row = group_sum_depth(adjacency.largest_in_degree) if row is None else row
    if lumps:  # a term of the sum of b_j x_j is a product more than that of an edge, of a sum of normalized weights
        row = max(row, depth + 1 + compensated_depth(adjacency.m))
    # One more for row and D, the division by the sum of the ranks; the norm has four operations of `Pull::after_step`,
    # and one addition of D.
    return StepRounding(
        row=1 + row,
        edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 2,
        dangling=1 + max(rounding_depth(adjacency.n), depth),
        vectors=problem.vector_depth,
        norm=depth + 1 + 4 + lumps,
    )


CHUNK_ROWS = 16 * BLOCK_ROWS
"""Rows per piece of work on whole vectors, as in pull.cpp."""

PRODUCTS = 24 * 24
"""Dot products per chunk: the square of `MOST_ROWS` in mixing.hpp."""

PLAIN = Depth(0, 0)
"""Depth of the history of an iteration without mixing."""


class Pull:
    """Iteration of one vector by pull.cpp; `ranks` and what belongs to it stay in the arrays of this object.

    `in_edges`: Offsets, sources and normalized weights, or unweighted packed edges.
    `order`: Order of rows by `order_rows`; None for their own.
    `inverse_out_weight`: 1 / W of each vertex, 0 for dangling ones; in weighted graphs 1 instead of 1 / W.
    `target`, `teleport`: w and (1 - alpha) * v: n entries, or one for all vertices.
    `outside`, `lump_scale`: If the last vertex stands for all dangling ones: b of `prplugin.graph.lumping`, and the
    factor of its entries, which the least squares of mixing then weigh as those of so many equal ranks.
    """

    def __init__(
        self, in_edges: Compressed | PackedRows, order: Integers | None, inverse_out_weight: Floats, target: Floats,
        teleport: Floats, alpha: float, fan_in: int, threads: int, outside: Floats | None = None,
        lump_scale: float = 1.0,
    ) -> None:  # fmt: skip
        n = inverse_out_weight.size
        edges: tuple[object, ...]
        if isinstance(in_edges, PackedRows):
            edges = (None, None, None, *in_edges, bits_of(n), np.zeros(n), np.empty(in_edges.rows.size))
        else:
            edges = (*in_edges, None, None, None, 0, None, None)
        self._graph = (*edges, inverse_out_weight, target, teleport, alpha, fan_in, order, outside, lump_scale)
        self._sums = np.empty((-(-n // BLOCK_ROWS), 4))
        self._memory, self._norm = np.zeros(704), 1.0
        self._contributions: Array = np.empty((2, n))
        self._history: Any = (None, None)
        self._threads = threads
        self._ranks: Floats = np.empty(n)
        self.largest = 0.0

    def start(self, ranks: Floats | float) -> None:
        """Set the ranks."""
        self._ranks[:] = ranks
        self._norm = self._memory[3] = 1.0

    def set_dtype(self, dtype: str) -> None:
        """Set the type of contributions; `start` follows."""
        self._contributions = np.empty((2, self._ranks.size), dtype)

    @property
    def ranks(self) -> Floats:
        """Ranks of sum 1; those of a sweep are divided by their sum."""
        return self._ranks if self._memory[3] == 1 else self._ranks / self._memory[3]

    def iterate(self, budget: int, goal: float = -1.0, depth: Depth = PLAIN) -> Floats:
        """Make steps until one changes the ranks by at most `goal`, at most `budget`; return the change of each.

        Iterates are mixed in between, with a history of the given depth, until a call without; they may then be swept,
        whose changes bound the error as well. The ranks do not depend on the number of steps per call.
        """
        changes = np.empty(budget)
        if depth.rows > 0 and self._history[0] is None:
            n = self._ranks.size
            self._history = np.empty((depth.rows, n), np.float32), np.empty((-(-n // CHUNK_ROWS), PRODUCTS))
        # By position: 27 names cost 4 % of a call on a small frame.
        steps = kernels.iterate(
            *self._graph, self._ranks, self._contributions, self._sums, self._memory, self._norm, goal, *depth[:2],
            *self._history, changes, self._threads,
        )  # fmt: skip
        self._norm, self.largest = 0.0, float(self._memory[2])
        return changes[:steps]


class LumpedPull(Pull):
    """Iteration with dangling vertices as one, whose own ranks are computed when they are asked for."""

    def __init__(
        self, lumped: Lumped, target: Floats, teleport: Floats, alpha: float, fan_in: int, threads: int
    ) -> None:
        self._lumped, self._alpha, self._fan_in = lumped, alpha, fan_in
        linking, dangling, in_edges, order, inverse, outside, _ = lumped
        n, self._scale = linking.size + dangling.size, dangling.size**-0.5
        vectors = [np.broadcast_to(vector, n) for vector in (target, teleport)]
        self._of_dangling = [vector[dangling] for vector in vectors]
        joined = [
            np.append(vector[linking], total(part)) for vector, part in zip(vectors, self._of_dangling, strict=True)
        ]
        super().__init__(in_edges, order, inverse, joined[0], joined[1], alpha, fan_in, threads, outside, self._scale)

    def start(self, ranks: Floats | float) -> None:
        """Set the ranks of all vertices."""
        linking, dangling = self._lumped[:2]
        ranks = np.broadcast_to(ranks, linking.size + dangling.size)
        super().start(np.append(ranks[linking], total(ranks[dangling]) * self._scale))

    @property
    def ranks(self) -> Floats:
        """Ranks of sum 1 of all vertices after a step."""
        linking, dangling, *_, rest = self._lumped
        current, swept = self._memory[[0, 8]].view(np.int64)
        _, _, _, total_now, _, dangling_before, total_before = self._memory[:7]
        sums, ranks = np.empty(dangling.size), np.empty(linking.size + dangling.size)
        contributions = self._contributions[current if swept else 1 - current]  # of x, or after a sweep of y
        kernels.sum_rows(*rest, self._fan_in, contributions, sums, self._threads)
        target, teleport = self._of_dangling
        ranks[dangling] = self._alpha * sums + (self._alpha * dangling_before * target + total_before * teleport)
        ranks[linking] = self._ranks[:-1]
        ranks /= total_now
        return ranks


class NativeStep(Step):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, with all iterations of a ranking in one call."""

    def __init__(self, problem: Problem, threads: int) -> None:
        adjacency = problem.adjacency
        in_edges: Compressed | PackedRows
        if (packed := adjacency.held(PackedRows)) is None:
            in_edges = adjacency.get(Csc)._replace(weights=adjacency.normalized_weights)
            order, fan_in, row = adjacency.row_order, fan_in_for(adjacency.largest_in_degree), None
        else:
            in_edges, order, fan_in, row = packed, None, fan_in_for(PIECE), packed_depth(adjacency.m)
        v = np.array([1.0 / adjacency.n]) if problem.personalization is None else problem.personalization
        w = v if problem.dangling is None else problem.dangling
        given = w, (1 - problem.alpha) * v, problem.alpha, fan_in, threads
        self._pull = self._plain = Pull(in_edges, order, adjacency.inverse_out_weight, *given)
        often = packed is None and adjacency.lasting and adjacency.m in LUMPED_EDGES
        lumped = lumped_of(adjacency) if often else None
        self._lumped = None if lumped is None else LumpedPull(lumped, *given)
        self._depth = depth_for(problem.alpha)
        self.rounding = rounding_of(problem, row, lumps=lumped is not None)
        self.least_float32_goal = 0.65  # else a looser tolerance may take more passes than one that float64 takes over
        self.float32_is_faster = (adjacency.n if lumped is None else lumped.linking.size) >= FLOAT32_FROM

    def set_contribution_dtype(self, dtype: str) -> None:
        for pull in (self._plain, self._lumped):
            if pull is not None:
                pull.set_dtype(dtype)
        self.rounding = self.rounding._replace(single=int(dtype == "float32"))

    def start(self, ranks: Floats | float) -> None:
        self._pull = self._plain
        self._pull.start(to_host(ranks))

    def _use(self, pull: Pull) -> None:
        if self._pull is not pull:
            pull.start(self._pull.ranks)
            self._pull = pull

    def __call__(self, moves: Array | None = None) -> Sums:
        self._use(self._plain)
        return Sums(float(self._pull.iterate(1)[-1]), self._pull.largest)

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Iterate with Anderson mixing, by plain steps or Gauss-Seidel sweeps, whose changes prove as much."""
        if self._lumped is not None:
            self._use(self._lumped)
        return self._iterated(goal, budget, self._depth)

    def repeat(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        self._use(self._plain)
        return self._iterated(goal, budget)

    def _iterated(self, goal: float, budget: int, *depth: Depth) -> tuple[int, Sums]:
        changes = self._pull.iterate(1 if self.every_pass else budget, goal, *depth)
        return changes.size, Sums(float(changes[-1]), self._pull.largest, changes[:-1].tolist())

    def ranks(self) -> Floats:
        return self._pull.ranks
