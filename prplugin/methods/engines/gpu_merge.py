"""Steps that sum and end rows in one pass over equal pieces, many of them in one launch: the host's side of merge.cuh.

A method brings a kernel that reads the edges in its way, and everything else is here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np

from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Size
from prplugin.graph.problem import Problem
from prplugin.methods.base import Sums
from prplugin.methods.engines import gpu_pull
from prplugin.methods.engines.device_mixing import MixedOnDevice
from prplugin.types.edges import Floats, Integers

__all__ = [
    "NO_MIXING",
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

LEAST_AT_ONCE = 4
"""Iterations that a launch needs for a mix: the one before it, the one that shows what it brought, and one to go on."""

LONG_ROW = 32
"""Terms that a lane adds up: see merge.cuh."""

MANY = 20
"""Iterations left, at the pace of the last one, from which mixing is worth its history and another launch.

On an H100 these take 0.12 ms, as long as four iterations over a graph of a million edges.
"""

FAR = 250
"""Iterations that the contraction may have left from which a longer window is."""

WINDOWS = ((8, 4), (16, 4))
"""Differences that a mix goes by, and iterations from one mix to the next: of the short window and of the long one."""

MIXING_ROOM = 4608
"""Bytes of shared memory that mixing takes: 32 rows of 17 residuals, and a column more. See mixing.cuh."""

WIDEST = 256
"""Rows of residuals that a block brings to shared memory at a time, at most."""

NO_MIXING = (*np.zeros(4, np.int32), *(None,) * 6)
"""Arguments of a kernel for plain iterations alone."""

HISTORY = 16
"""Doubles that `History` of mixing.cuh takes, at most."""

COUNT, GOAL, STALL, FAR_AWAY = range(4)
"""Why a launch ended: `Reason` of merge.cuh."""


class Ending(NamedTuple):
    """When a launch ends: after `steps`, at an L1 change of `goal`, or where changes fall by less than `stall`."""

    steps: int
    goal: float = -1.0
    stall: float = math.inf


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
    def rounding_depth(self) -> int:
        """Additions that a term of a row sum goes through."""
        in_a_piece = max(LONG_ROW, -(-self.size // 32)) + 5
        return in_a_piece + gpu_pull.ROW_DEPTH + 1


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


class MergeStep(MixedOnDevice):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, several times a launch, on the current stream."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        import cupy  # there: `unavailable_reason` has looked

        adjacency, pieces = problem.adjacency, plan.pieces
        n, totals = adjacency.n, gpu_pull.TOTALS
        self.at_once = max(LEAST_AT_ONCE, min(MOST_AT_ONCE, EDGES_AT_ONCE // (adjacency.m + n + 1)))
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
            fronts, self._tails, measured, self._begun, self._constants, self._before, self._inverse_out_weight,
            self._both,
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
        self._equation = problem.alpha, *vectors, self._inverse_out_weight
        rounding = gpu_pull.step_rounding(problem, pieces.rounding_depth)
        # After a mix, ranks and what is made of them are scaled: two roundings on the way of each.
        self._rounding = self.rounding = replace(
            rounding, edge=rounding.edge + 2, dangling=rounding.dangling + 2
        )  # in float64
        self._alpha = problem.alpha
        self._kept: tuple[Any, ...] | None = None
        self._fresh = self._can_mix = True
        self._contributions: list[Any] = []

    def contribute_in(self, dtype: str) -> None:
        """Hold contributions and shares in this type from the next `start` on: "float64", or "float32"."""
        self._edges: tuple[Any, ...] = ()  # makes room
        self.rounding = gpu_pull.rounding_in(self._rounding, dtype, weighted=self._weighted)
        both = self._both.view(dtype)
        self._contributions = [both[: self._n], both[self._n : 2 * self._n]]
        self._launch = self._plan.kernel(dtype).kernel
        self._room = max(self._plan.room(dtype), MIXING_ROOM)
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
                self._ranks, self._inverse_out_weight, self._contributions[0], self._begun,
            ),
        )  # fmt: skip
        self._uncleared = self._uncleared[:0]
        self._latest, self._change = (self._starting, self._begun), np.inf
        self._fresh = True

    def __call__(self, moves: Any = None) -> Sums:
        return self._launched(Ending(1), mixes=True)[0][0]  # one alone is only kept in the history

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        taken: list[Sums] = []
        stall = (1 + self._alpha) / 2  # the contraction brings exact plain iterations below alpha
        while (left := budget - len(taken)) > 0:
            ending = Ending(min(left, self.at_once), goal, stall)
            steps, reason = self._launched(ending, mixes=True)
            taken += steps
            if reason in (GOAL, STALL):
                break
            if reason == FAR_AWAY:
                # The first iterations are faster than those to come; none is slower than this.
                self._remember(math.log(goal / self._change) / math.log(self._alpha))
        return len(taken), taken[-1]

    def history(self, rows: int) -> None:
        return  # its launches mix

    def _remember(self, left: float) -> None:
        """Allocate the history that mixing takes, if there is room, with so many plain iterations left at most."""
        import cupy

        blocks = min(self._plan.pieces.count, most_blocks_of(self._plan))
        for window, period in WINDOWS[::-1] if left > FAR else WINDOWS[:1]:
            if runtime.holds(history_bytes(self._n, window, period)):
                residuals = cupy.empty((window + 1, self._n), np.float32)
                corrections = cupy.empty((window // period, self._n), np.float32)
                known, weights = cupy.empty(HISTORY), cupy.empty(window)
                products = cupy.empty(blocks * window * (window + 3) // 2)
                self._kept = window, period, residuals, corrections, self._before, known, weights, products
                return
        self._can_mix = False

    def _arguments_for_mixing(self) -> tuple[Any, ...]:
        """Give the arguments of a launch whose iterations are kept in the history."""
        if self._kept is None:
            return NO_MIXING
        window, period, *arrays = self._kept
        width = min(WIDEST, (self._room // 8 // (window + 1) - 1) // 32 * 32)
        return *np.array([window, period, self._fresh, width], np.int32), *arrays

    def _launched(self, ending: Ending, *, mixes: bool = False) -> tuple[list[Sums], int]:
        """Iterate in one launch, and wait for what each iteration measured; tell why it ended as well.

        What is not kept in the history leaves a gap, and the next that is begins a new one.
        """
        many = MANY if mixes and self._kept is None and self._can_mix else math.inf
        self._launch(
            (self._blocks,),
            (self._plan.threads,),
            (
                np.int32(ending.steps), ending.goal, ending.stall, self._change, many, *self._cuts, *self._edges,
                *self._equation, self._ranks, *self._contributions, np.int32(self._latest[0]), self._latest[1],
                self._totals[0], self._partials, self._arrived,
                *(self._arguments_for_mixing() if mixes else NO_MIXING),
            ),
            shared_mem=self._room,
            enable_cooperative_groups=True,
        )  # fmt: skip
        (taken, reason, _), *measured = self._totals[0][: 1 + ending.steps].get().tolist()
        steps = [Sums(change, largest) for change, largest, _ in measured[: int(taken)]]
        self._latest, self._change = (1, self._totals[0][int(taken)]), steps[-1].change
        self._totals.reverse()
        if int(taken) % 2:
            self._contributions.reverse()
        self._fresh = not mixes or self._kept is None
        return steps, int(reason)

    def ranks(self) -> Floats:
        return self._ranks


def history_bytes(n: int, window: int, period: int) -> int:
    """Count the bytes of the residuals and corrections that mixing keeps."""
    return 4 * n * (window + 1 + window // period)


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
