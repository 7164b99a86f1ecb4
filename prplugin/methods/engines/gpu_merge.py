"""Steps that sum and end rows in one pass over equal pieces, many of them in one launch: the host's side of merge.cuh.

A method brings a kernel that reads the edges in its way, and everything else is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Size
from prplugin.graph.problem import Problem
from prplugin.methods.base import Ending, LaunchStep, Sums
from prplugin.methods.engines import gpu_pull
from prplugin.types.edges import Floats, Integers

__all__ = [
    "THREADS",
    "VERTEX",
    "MergeStep",
    "Pieces",
    "Plan",
    "blocks_of",
    "cut",
    "even_size",
    "first_rows",
    "most_blocks_of",
]

THREADS = 256

MOST_AT_ONCE = 256
"""Iterations of a launch."""

EDGES_AT_ONCE = 1 << 32
"""That a launch goes through, about: so that no launch takes longer than a few tenths of a second."""

VERTEX = Size(5 * 8)
"""Memory of inverse out-weights, contributions twice, and the ranks now and before a launch."""

LONG_ROW = 32
"""Terms that a lane adds up: see merge.cuh."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows and edges cut into equal pieces: see merge.cuh.

    Attributes
    ----------
    n, m : int
    size : int
        Rows and edges together of a piece; the last may have fewer.
    cuts : array of positions
        How many rows end before each piece, and n.
    offsets : array of n + 1 offsets
        Of the rows' edges.
    """

    n: int
    m: int
    size: int
    cuts: Integers
    offsets: Integers

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return self.cuts.size - 1

    @property
    def chain(self) -> int:
        """Additions that a term of a row sum goes through."""
        in_a_piece = max(LONG_ROW, -(-self.size // 32)) + 5
        return in_a_piece + gpu_pull.ROW_CHAIN + 1


def even_size(items: int, blocks: int, least: int, most: int) -> int:
    """Give the size of pieces, within bounds, of which each block of a grid has as many as the others.

    Parameters
    ----------
    items : int
        Rows and edges together.
    blocks : int
        Of the largest grid.
    """
    turns = -(-items // (blocks * most))
    return min(most, max(least, -(-items // (blocks * turns))))


def cut(offsets: Integers, m: int, size: int, index: Any) -> Pieces:
    """Cut compressed rows into pieces of `size` rows and edges; positions of rows are of type `index`."""
    import cupy  # holds the offsets

    n = offsets.size - 1
    count = -(-(n + m) // size)
    cuts = cupy.empty(count + 1, index)
    launch = runtime.kernel("gpu/cut.cu", "cut", index_t=runtime.ctype(index), offset_t=runtime.ctype(offsets.dtype))
    launch((runtime.blocks_for(count + 1, THREADS),), (THREADS,), (n, m, size, count, offsets, cuts))
    return Pieces(n, m, size, cuts, offsets)


def first_rows(adjacency: Adjacency, rows: int | None) -> Integers:
    """Give the offsets of the in-edges of the first so many vertices, or of all."""
    offsets: Integers = adjacency.csc.offsets
    return offsets if rows is None else offsets[: rows + 1]


def most_blocks_of(plan: Plan) -> int:
    """Count the blocks that a grid of the plan's kernel may have, whatever they need."""
    return runtime.multiprocessors() * (runtime.attribute("MaxThreadsPerMultiProcessor") // plan.threads)


class Plan(Protocol):
    """How a method reads the edges.

    Attributes
    ----------
    pieces : Pieces
    threads : int
        Of a block.
    narrow_pays : bool
        Whether contributions in float32 make an iteration faster.
    """

    pieces: Pieces
    threads: int
    narrow_pays: bool

    def kernel(self, dtype: Any) -> Any:
        """Give the kernel for contributions of a type."""

    def room(self, dtype: Any) -> int:
        """Give the bytes of shared memory that a block takes for terms."""

    def edges(self, dtype: Any) -> tuple[Any, ...]:
        """Give the arguments of the kernel that stand for the edges."""


class MergeStep(LaunchStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, several times a launch, on the current stream."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        import cupy  # there: `unfit` has looked

        adjacency, pieces = problem.adjacency, plan.pieces
        n, totals = adjacency.n, gpu_pull.TOTALS
        self.at_once = max(1, min(MOST_AT_ONCE, EDGES_AT_ONCE // (adjacency.m + n + 1)))
        self.narrow_pays = plan.narrow_pays
        self._plan, self._n, self._weighted = plan, n, adjacency.weighted
        self._out_weight = adjacency.out_weight
        self._starting = min(runtime.blocks_for(n, THREADS), gpu_pull.BLOCKS)
        # One array: each of these would take as long to allocate as a kernel to launch.
        sizes = (
            pieces.count, pieces.count, 2 * totals * (1 + self.at_once), totals * self._starting, 2, n, n, 2 * n,
            2 * totals * min(pieces.count, most_blocks_of(plan)), 1,
        )  # fmt: skip
        room = cupy.empty(sum(sizes))
        (
            fronts, self._tails, measured, self._begun, self._constants, self._before, self._outflow, self._both,
            self._partials, arrived,
        ) = (room[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True))  # fmt: skip
        self._arrived = arrived.view(np.uint32)
        self._cuts = (
            pieces.n, pieces.m, pieces.size, pieces.count, pieces.cuts, pieces.offsets, fronts, self._tails,
        )  # fmt: skip
        # Two in turn, so that what the step before a launch measured is still there after it.
        self._totals = list(measured.reshape(2, 1 + self.at_once, totals))
        self._uncleared = measured
        self._uniform = 1.0 / n, (1 - problem.alpha) * (1.0 / n)
        if problem.personalization is None and problem.dangling is None:
            vectors: tuple[Any, ...] = self._constants, 0, self._constants[1:], 0
        else:
            vectors = gpu_pull.vectors(problem)
        self._equation = problem.alpha, *vectors, self._outflow
        self._chain = self.chain = gpu_pull.step_chain(problem, pieces.chain)  # in float64
        self._moves: Any = None
        self._contributions: list[Any] = []

    def contribute_in(self, dtype: str) -> None:
        """Hold contributions and shares in this type from the next `start` on: "float64", or "float32"."""
        self._edges: tuple[Any, ...] = ()  # makes room
        self.chain = gpu_pull.chain_in(self._chain, dtype, weighted=self._weighted)
        both = self._both.view(dtype)
        self._contributions = [both[: self._n], both[self._n : 2 * self._n]]
        self._launch = self._plan.kernel(dtype).kernel
        self._room = self._plan.room(dtype)
        self._blocks = blocks_of(self._plan, self._launch, self._room)
        self._begin = runtime.kernel("gpu/merge_start.cu", "merge_start", real_t=runtime.ctype(dtype))
        self._edges = self._plan.edges(dtype)

    def start(self, ranks: Floats | float) -> None:
        import cupy

        if not self._contributions:
            self.contribute_in("float64")
        given, uniform = (None, ranks) if isinstance(ranks, float) else (cupy.asarray(ranks, np.float64), 0.0)
        self._ranks: Floats = cupy.empty(self._n)
        self._begin(
            (self._starting,),
            (THREADS,),
            (
                self._n, np.int32(self._weighted), self._out_weight, given, uniform, *self._uniform,
                self._tails.size, self._tails, self._uncleared.size, self._uncleared, self._arrived, self._constants,
                self._ranks, self._outflow, self._contributions[0], self._begun,
            ),
        )  # fmt: skip
        self._uncleared = self._uncleared[:0]
        self._latest, self._change = (self._starting, self._begun), np.inf
        self._moves = None

    def __call__(self) -> Sums:
        return self._taken(Ending(1))[0]

    def many(self, count: int) -> list[Sums]:
        return self.until(Ending(count))

    def until(self, ending: Ending) -> list[Sums]:
        self._before.data.copy_from_device_async(self._ranks.data, self._ranks.nbytes)
        self._known = self._latest, self._change
        return self._taken(ending)

    def record(self, moves: Any) -> None:
        self._moves = moves

    def rewind(self, count: int) -> None:
        # Contributions come out of the ranks by the same operation as before, but D is a sum in another order.
        self.start(self._before)
        self._latest, self._change = self._known
        if count:
            self._taken(Ending(count))

    def _taken(self, ending: Ending) -> list[Sums]:
        """Take steps in one launch, and wait for what they measured."""
        self._launch(
            (self._blocks,),
            (self._plan.threads,),
            (
                np.int32(ending.steps), ending.goal, ending.stall, self._change, np.int32(ending.look), ending.many,
                *self._cuts, *self._edges, *self._equation, self._ranks, *self._contributions, self._moves,
                np.int32(self._latest[0]), self._latest[1], self._totals[0], self._partials, self._arrived,
            ),
            shared_mem=self._room,
            enable_cooperative_groups=True,
        )  # fmt: skip
        (taken, _, _), *measured = self._totals[0][: 1 + ending.steps].get().tolist()
        steps = [Sums(change, largest) for change, largest, _ in measured[: int(taken)]]
        self._latest, self._change = (1, self._totals[0][int(taken)]), steps[-1].change
        self._totals.reverse()
        if int(taken) % 2:
            self._contributions.reverse()
        if self._moves is not None:
            self._moves = self._moves[int(taken) :] if int(taken) < len(self._moves) else None
        return steps

    def ranks(self) -> Floats:
        return self._ranks


def blocks_of(plan: Plan, launch: Any, room: int) -> int:
    """Count the blocks of the grid: as many as the GPU holds at once, as barriers need, or as pieces."""
    return min(plan.pieces.count, _most_blocks(launch, plan.threads, room, runtime.device()))


@cache
def _most_blocks(launch: Any, threads: int, room: int, device: int) -> int:
    """Count the blocks that the GPU, the current one, holds at once, as a grid with barriers must be."""
    import cupy

    return runtime.multiprocessors() * int(
        cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(launch.ptr, threads, room)
    )
