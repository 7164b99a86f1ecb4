"""Merge-based steps on the GPU: several iterations per launch, each one pass over equal pieces. See merge.cuh.

A method supplies a `Plan`: a kernel that reads the edges in its layout.
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
"""Iterations per launch, at most."""

EDGES_AT_ONCE = 1 << 32
"""Edges that a launch reads, about, so that it takes no longer than a few tenths of a second."""

VERTEX = Size(5 * 8)
"""Bytes per vertex: inverse out-weight, contributions twice, and ranks now and before a launch."""

LEAST_AT_ONCE = 4
"""Least number of iterations per launch for a mix: one before it, one that measures its effect, one that follows."""

LONG_ROW = 32
"""Terms that one lane adds up: see merge.cuh."""

MANY = 20
"""Iterations left, at the convergence rate of the last one, from which mixing is worth its history and another launch.

On an H100 those cost 0.12 ms, as long as four iterations over a graph of a million edges.
"""

FAR = 250
"""Largest number of iterations left, by the contraction, that the short window is used for."""

WINDOWS = ((8, 4), (16, 4))
"""Residual differences per mix, and iterations between mixes, of the short and of the long window."""

MIXING_ROOM = 4608
"""Bytes of shared memory for mixing: 32 rows of 17 residuals, and one column of padding. See mixing.cuh."""

WIDEST = 256
"""Rows of residuals that a block loads into shared memory at a time, at most."""

NO_MIXING = (*np.zeros(4, np.int32), *(None,) * 6)
"""Kernel arguments for plain iterations."""

HISTORY = 16
"""Doubles in the struct `History` of mixing.cuh, at most."""

COUNT, GOAL, STALL, FAR_AWAY = range(4)
"""Why a launch ended: `Reason` of merge.cuh."""


class Ending(NamedTuple):
    """When a launch ends: after `steps`, at an L1 change of `goal`, or when changes shrink by less than `stall`."""

    steps: int
    goal: float = -1.0
    stall: float = math.inf


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows and edges partitioned into equal pieces: see merge.cuh.

    Attributes
    ----------
    n, m : int
    size : int
        Rows plus edges per piece; the last may have fewer.
    cuts : array of positions
        Number of rows that end before each piece, and n.
    offsets : array of n + 1 offsets
        Offsets of the rows in the edges.
    """

    n: int
    m: int
    size: int
    cuts: Integers
    offsets: Integers

    @property
    def count(self) -> int:
        """Number of pieces."""
        return self.cuts.size - 1

    @property
    def rounding_depth(self) -> int:
        """Most additions that a term of a row sum goes through."""
        in_a_piece = max(LONG_ROW, -(-self.size // 32)) + 5
        return in_a_piece + gpu_pull.ROW_DEPTH + 1


def even_size(items: int, blocks: int, least: int, most: int) -> int:
    """Return the piece size, within bounds, for which all blocks of a grid get equally many pieces.

    Parameters
    ----------
    items : int
        Rows plus edges.
    blocks : int
        Blocks of the largest grid.
    """
    turns = -(-items // (blocks * most))
    return min(most, max(least, -(-items // (blocks * turns))))


def cut(offsets: Integers, m: int, size: int, index: Any) -> Pieces:
    """Partition compressed rows into pieces of `size` rows and edges; row positions are of type `index`."""
    import cupy  # loaded already: device arrays exist

    n = offsets.size - 1
    count = -(-(n + m) // size)
    cuts = cupy.empty(count + 1, index)
    launch = runtime.kernel("gpu/cut.cu", "cut", index_t=runtime.ctype(index), offset_t=runtime.ctype(offsets.dtype))
    launch((runtime.blocks_for(count + 1, THREADS),), (THREADS,), (n, m, size, count, offsets, cuts))
    return Pieces(n, m, size, cuts, offsets)


def first_rows(adjacency: Adjacency, rows: int | None) -> Integers:
    """Return the offsets of the in-edges of the first `rows` vertices, or of all for None."""
    offsets: Integers = adjacency.csc.offsets
    return offsets if rows is None else offsets[: rows + 1]


def most_blocks_of(plan: Plan) -> int:
    """Return the most blocks that the GPU can hold at once for the plan's block size, whatever registers they need."""
    return runtime.multiprocessors() * (runtime.attribute("MaxThreadsPerMultiProcessor") // plan.threads)


class Plan(Protocol):
    """How a method reads the edges.

    Attributes
    ----------
    pieces : Pieces
    threads : int
        Threads per block.
    float32_is_faster : bool
        Whether float32 contributions make an iteration faster.
    """

    pieces: Pieces
    threads: int
    float32_is_faster: bool

    def kernel(self, dtype: Any) -> Any:
        """Return the kernel for contributions of this type."""

    def room(self, dtype: Any) -> int:
        """Return the bytes of shared memory that a block needs for terms."""

    def edges(self, dtype: Any) -> tuple[Any, ...]:
        """Return the kernel arguments that describe the edges."""


class MergeStep(MixedOnDevice):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, several iterations per launch, on the current stream."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        import cupy  # lazy import; availability was checked by `unavailable_reason`

        adjacency, pieces = problem.adjacency, plan.pieces
        n, totals = adjacency.n, gpu_pull.TOTALS
        self.at_once = max(LEAST_AT_ONCE, min(MOST_AT_ONCE, EDGES_AT_ONCE // (adjacency.m + n + 1)))
        self.float32_is_faster = plan.float32_is_faster
        self._plan, self._n, self._weighted = plan, n, adjacency.weighted
        self._out_weight = adjacency.out_weight
        self._starting = min(runtime.blocks_for(n, THREADS), gpu_pull.BLOCKS)
        # One allocation: each costs as much as a kernel launch.
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
        # Double-buffered: the sums of the step before a launch are still needed after it.
        self._totals = list(measured.reshape(2, 1 + self.at_once, totals))
        self._uncleared = measured
        self._uniform = 1.0 / n, (1 - problem.alpha) * (1.0 / n)
        if problem.personalization is None and problem.dangling is None:
            vectors: tuple[Any, ...] = self._constants, 0, self._constants[1:], 0
        else:
            vectors = gpu_pull.vectors(problem)
        self._equation = problem.alpha, *vectors, self._inverse_out_weight
        rounding = gpu_pull.step_rounding(problem, pieces.rounding_depth)
        # After a mix, ranks and the contributions and dangling mass of them are scaled: two roundings more for each.
        self._rounding = self.rounding = replace(
            rounding, edge=rounding.edge + 2, dangling=rounding.dangling + 2
        )  # in float64
        self._alpha = problem.alpha
        self._kept: tuple[Any, ...] | None = None
        self._fresh = self._can_mix = True
        self._contributions: list[Any] = []

    def set_contribution_dtype(self, dtype: str) -> None:
        """Store contributions and normalized weights as "float64" or "float32", from the next `start` on."""
        self._edges: tuple[Any, ...] = ()  # frees their memory first
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
            self.set_contribution_dtype("float64")
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
        return self._launched(Ending(1), mixes=True)[0][0]  # a single iteration only enters the history

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        taken: list[Sums] = []
        stall = (1 + self._alpha) / 2  # exact plain iterations contract by alpha or less
        while (left := budget - len(taken)) > 0:
            ending = Ending(min(left, self.at_once), goal, stall)
            steps, reason = self._launched(ending, mixes=True)
            taken += steps
            if reason in (GOAL, STALL):
                break
            if reason == FAR_AWAY:
                # The first iterations are faster than later ones; alpha bounds the rate of all.
                self._remember(math.log(goal / self._change) / math.log(self._alpha))
        return len(taken), taken[-1]

    def history(self, rows: int) -> None:
        return  # mixing happens within the launches

    def _remember(self, left: float) -> None:
        """Allocate the history for mixing if it fits; at most `left` plain iterations are left."""
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
        """Return the mixing arguments of a launch whose iterations enter the history."""
        if self._kept is None:
            return NO_MIXING
        window, period, *arrays = self._kept
        width = min(WIDEST, (self._room // 8 // (window + 1) - 1) // 32 * 32)
        return *np.array([window, period, self._fresh, width], np.int32), *arrays

    def _launched(self, ending: Ending, *, mixes: bool = False) -> tuple[list[Sums], int]:
        """Iterate in one launch, and return the sums of each iteration and the reason why the launch ended.

        Iterations that do not enter the history leave a gap; the next launch that mixes begins a new history.
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
    """Return the bytes of the residuals and corrections that mixing keeps."""
    return 4 * n * (window + 1 + window // period)


def blocks_of(plan: Plan, launch: Any, room: int) -> int:
    """Return the grid size: as many blocks as are resident at once, as grid barriers need, or one per piece."""
    return min(plan.pieces.count, _most_blocks(launch, plan.threads, room, runtime.device()))


@cache
def _most_blocks(launch: Any, threads: int, room: int, device: int) -> int:
    """Return the number of blocks that the current GPU holds at once."""
    import cupy

    return runtime.multiprocessors() * int(
        cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(launch.ptr, threads, room)
    )
