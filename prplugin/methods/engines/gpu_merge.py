"""Steps on the GPU of several iterations per launch: see iterate.cuh.

A method supplies a `Plan`: a kernel that reads the edges in its layout. `Pieces` are those of merge.cuh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import cupy, runtime
from prplugin.gpu.structs import EQUATION, LAUNCH, PIECES, SETUP, START, STORE, Argument, Workspace
from prplugin.methods.base import Array, Floats, Integers, Problem, StepRounding, Sums
from prplugin.methods.engines import gpu_pull
from prplugin.types.arrays import to_host

THREADS = 256
MAX_ITERATIONS = 256  # iterations per launch, at most
EDGES_PER_LAUNCH = 1 << 32  # about, so that a launch takes no longer than a few tenths of a second
LONG_ROW = 32  # terms that one lane adds up: see merge.cuh
MAX_CHANGE = 2.0  # L1 distance of two distributions, at most
COUNT, GOAL, STALL, FAR_FROM_GOAL = range(4)  # why a launch ended: `Reason` of iterate.cuh

# Mixing within launches: see mixing.cuh.
WAITING, BEGINNING, CONTINUING = range(3)  # phase before a launch: not begun, beginning with it, continuing
MIN_ITERATIONS = 4  # least per launch for a mix: one before it, one that follows it, and a plain one at the end
WINDOWS = ((8, 4), (16, 12))  # residual differences per mix, and iterations between mixes: short and long window
LONG_WINDOW_FROM = 250  # largest number of iterations left, by the contraction, that the short window is used for
EARLY_HISTORY = 1 << 16  # vertices up to which the history is allocated before the first launch, to save another
HISTORY_STATE = 16  # doubles in the struct `History`, at most
MIXING_SMEM = 4608  # bytes of shared memory: 32 rows of 17 residuals, and one column of padding
MAX_TILE_ROWS = 256  # rows of residuals that a block loads into shared memory at a time, at most


MIXING_FROM = 10.0
"""Iterations left, at the convergence rate of the last one, from which mixing is worth its history and another launch.

On an H100 those cost 0.12 ms, as long as four iterations over a graph of a million edges.
"""

KEPT_PART = 8  # a step is kept if so many times its memory can be allocated

VERTEX = 4 * 8  # bytes per vertex: inverse out-weight, contributions twice, and ranks
HISTORY_VERTEX = 4 * (WINDOWS[1][0] + 1 + WINDOWS[1][0] // WINDOWS[1][1])  # those of the long window


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows and edges partitioned into equal pieces: see merge.cuh."""

    n: int
    m: int
    size: int  # rows plus edges per piece; the last may have fewer
    cuts: Integers  # number of rows that end before each piece, and n
    offsets: Integers  # of the rows in the edges, n + 1

    @property
    def count(self) -> int:
        """Number of pieces."""
        return self.cuts.size - 1


def even_size(items: int, blocks: int, least: int, most: int) -> int:
    """Return the piece size, within bounds, for which each of `blocks` blocks gets as many pieces of `items`."""
    turns = -(-items // (blocks * most))
    return min(most, max(least, -(-items // (blocks * turns))))


def cut(offsets: Integers, m: int, size: int, index: DTypeLike) -> Pieces:
    """Partition compressed rows into pieces of `size` rows and edges; row positions are of type `index`."""
    n = offsets.size - 1
    count = -(-(n + m) // size)
    cuts = cupy.empty(count + 1, index)
    grid = runtime.blocks_for(count + 1, THREADS), THREADS
    runtime.run(
        "gpu/cut.cu", "cut", *grid, n, m, size, count, offsets, cuts, index_t=cuts.dtype, offset_t=offsets.dtype
    )
    return Pieces(n, m, size, cuts, offsets)


def most_blocks_of(plan: Plan) -> int:
    """Return the largest grid of the plan's block size, whatever registers it needs: resident blocks, one per part."""
    resident = runtime.multiprocessors() * (runtime.attribute("MaxThreadsPerMultiProcessor") // plan.threads)
    return min(plan.parts, resident)


class Plan(Protocol):
    """Passes over the edges, which differ by method."""

    m: int
    parts: int  # blocks that have work, at most
    crossing: int  # length of `fronts` and `tails`: sums of rows that cross pieces
    threads: int  # per block
    float32_is_faster: bool  # whether float32 contributions make an iteration faster
    in_degrees: (
        Integers | None
    )  # of the rows, as uint32, if ranks near those by in-degree are a better start than equal ones

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the plan keeps between rankings."""

    def rounding_depth(self, dtype: DTypeLike) -> int:
        """Return the rounding depth of a row sum, as in `StepRounding.row`, with contributions of this type."""

    def rest(self) -> bool:
        """Free what only a ranking needs; return whether the last `arguments` remain valid."""

    def kernel(self, dtype: DTypeLike) -> runtime.Kernel:
        """Return the kernel for contributions of this type."""

    def smem(self, dtype: DTypeLike) -> int:
        """Return the bytes of shared memory that a block needs for terms or sums."""

    def arguments(self, dtype: DTypeLike, fronts: object, tails: object) -> tuple[object, ...]:
        """Return the kernel arguments that describe rows and edges."""


class PiecesPlan:
    """A `Plan` of rows and edges in equal pieces."""

    crossing: int
    in_degrees: Integers | None = None

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self.m = pieces.m
        self.parts = self.crossing = pieces.count

    def rounding_depth(self, dtype: DTypeLike) -> int:
        """Return the depth of the sums of merge.cuh, of which those within a piece are plain."""
        piece_depth = max(LONG_ROW, -(-self._pieces.size // 32)) + 5
        return piece_depth + gpu_pull.ROW_DEPTH + 1

    def piece_arguments(self, fronts: object, tails: object) -> Argument:
        """Return the kernel argument that describes the pieces."""
        pieces = self._pieces
        return PIECES(
            {"index_t": pieces.cuts.dtype, "offset_t": pieces.offsets.dtype},
            n=pieces.n, m=pieces.m, size=pieces.size, count=pieces.count, cuts=pieces.cuts, offsets=pieces.offsets,
            fronts=fronts, tails=tails,
        )  # fmt: skip


class MergedRows(gpu_pull.MixedOnDevice):
    """Vectors of a merge-based step over the first vertices of a graph, and its launches on the current stream."""

    _plan: Any  # a `Plan`; None if there are no rows
    _rounding: StepRounding  # in float64
    _row_depths: dict[str, int]  # rounding depths of a row sum, by type of the contributions

    def _allocate(
        self, problem: Problem, plan: Plan | None, rows: int, n: int, blocks: int, *sizes: int
    ) -> list[Floats]:
        """Allocate the vectors of `rows` vertices of a graph of `n`, and arrays of the given sizes, which are returned.

        The first of these is cleared by the first `start`, whose grid has the given number of blocks.
        """
        adjacency, totals = problem.adjacency, gpu_pull.TOTALS
        self._plan, self._rows, self._n, self._starting = plan, rows, adjacency.n, blocks
        self._weighted, self._dtype, self._mean = adjacency.weighted, np.dtype(np.float64), 1.0 / n
        self._edge_count = adjacency.m
        crossing = 0 if plan is None else plan.crossing
        most = 0 if plan is None else most_blocks_of(plan)
        own = {f"own {i}": size for i, size in enumerate(sizes)}
        self._workspace = workspace = Workspace(
            fronts=crossing, tails=crossing, begun=totals * blocks, constants=2, inverse_out_weight=rows,
            contributions=2 * self._n, partials=2 * totals * max(1, most), arrived=1, **own,
        )  # fmt: skip
        self._begun = workspace.array("begun")
        arrays = [workspace.array(name) for name in own]
        self._to_clear = arrays[0]
        self._setup = SETUP(
            {}, n=rows, pieces=crossing, out_weight=adjacency.out_weight, weighted=adjacency.weighted,
            target=self._mean, teleport=0.0, tails=workspace["tails"], constants=workspace["constants"],
            inverse_out_weight=workspace["inverse_out_weight"], arrived=workspace["arrived"], begun=workspace["begun"],
        )  # fmt: skip
        self._contributions: list[Floats] = []
        self._alpha, self._is_uniform = problem.alpha, False
        self._set_equation(problem)
        return arrays

    def _set_equation(self, problem: Problem) -> None:
        """Set alpha, w and (1 - alpha) * v, each of these an array and its stride, which is 0 for a uniform vector."""
        workspace, alpha, before = self._workspace, problem.alpha, self._alpha
        v = problem.personalization
        was_uniform, self._is_uniform, self._alpha = self._is_uniform, v is problem.dangling is None, alpha
        if was_uniform and self._is_uniform and before == alpha:
            return
        self._setup.set(teleport=(1 - alpha) * self._mean)
        w = v if problem.dangling is None else problem.dangling
        self._equation = EQUATION(
            {}, alpha=alpha, target=workspace["constants"] if w is None else w, target_step=int(w is not None),
            teleport=workspace["constants"] + 8 if v is None else (1 - alpha) * v, teleport_step=int(v is not None),
            inverse_out_weight=workspace["inverse_out_weight"],
        )  # fmt: skip

    def set_contribution_dtype(self, dtype: str) -> None:
        rounding = self._rounding._replace(row=self._row_depths[dtype])
        self.rounding = gpu_pull.rounding_in(rounding, dtype, weighted=self._weighted)
        self._dtype = np.dtype(dtype)

    def _prepare_launches(self) -> None:
        """Set what depends on the type of the contributions."""
        self._edges: tuple[object, ...] = ()  # frees their memory first
        real, first = self._dtype, self._workspace["contributions"]
        both = first, first + real.itemsize * self._n
        self._contributions = [cupy.ndarray(self._n, real, pointer) for pointer in both]
        self._begin = runtime.kernel("gpu/merge_start.cu", "merge_start", real_t=real)
        if self._plan is not None:
            self._launch = self._plan.kernel(real).kernel
            self._smem = max(self._plan.smem(real), MIXING_SMEM)
            # As many blocks as are resident at once, as grid barriers need, or one per part.
            resident = _resident_blocks(self._launch, self._plan.threads, self._smem, runtime.device())
            self._blocks = min(self._plan.parts, resident)
            self._edges = self._plan.arguments(real, self._workspace["fronts"], self._workspace["tails"])

    def start(self, ranks: Floats | float) -> None:
        if not self._contributions or self._contributions[0].dtype != self._dtype:
            self._prepare_launches()
        given, uniform = (None, ranks) if isinstance(ranks, float) else (cupy.asarray(ranks, np.float64), 0.0)
        per_edge, in_degrees = 0.0, None
        by_degree = None if self._plan is None else self._plan.in_degrees
        if given is None and self.free_start and by_degree is not None and self._edge_count:
            # x_i = (1 - alpha) / n + alpha * in-degree / m: the step from ranks proportional to the out-degrees.
            uniform *= 1 - self._alpha
            per_edge, in_degrees = self._alpha / self._edge_count, by_degree
        self._ranks: Floats = cupy.empty(self._rows)
        initial = START({}, given=given, uniform=uniform, per_edge=per_edge, in_degrees=in_degrees)
        runtime.launch(
            self._begin, self._starting, THREADS, self._setup, initial, self._ranks, self._contributions[0],
            self._to_clear.size, self._to_clear,
        )  # fmt: skip
        self._to_clear = self._to_clear[:0]

    def _iterate(
        self, latest: tuple[int, object], measured: Array, steps: int = 1, goal: float = -1.0, stall: float = math.inf,
        change: float = math.inf, mixing_from: float = math.inf, mixing: Argument | None = None,
    ) -> None:  # fmt: skip
        """Launch up to `steps` iterations; `latest` are the number and the array of the sums of the last one."""
        contributions, following = self._contributions
        launch = LAUNCH(
            {"real_t": contributions.dtype}, count=steps, parts=latest[0], goal=goal, stall=stall, before=change,
            mixing_from=mixing_from, latest=latest[1], totals=measured, partials=self._workspace["partials"],
            arrived=self._workspace["arrived"], ranks=self._ranks, contributions=contributions, following=following,
        )  # fmt: skip
        self._launch(
            (self._blocks,),
            (self._plan.threads,),
            (launch, self._equation, mixing or no_mixing(), *self._edges),
            shared_mem=self._smem,
            enable_cooperative_groups=True,
        )

    def ranks(self) -> Floats:
        return self._ranks


class MergeStep(MergedRows):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, several iterations per launch."""

    keeps_history = False  # mixing happens within the launches
    reusable = True

    def __init__(self, problem: Problem, plan: Plan) -> None:
        m, n, totals = problem.adjacency.m, problem.adjacency.n, gpu_pull.TOTALS
        self.iterations_per_launch = max(MIN_ITERATIONS, min(MAX_ITERATIONS, EDGES_PER_LAUNCH // (m + n + 1)))
        self.float32_is_faster = plan.float32_is_faster
        starting = min(runtime.blocks_for(n, THREADS), gpu_pull.BLOCKS)
        (measured,) = self._allocate(problem, plan, n, n, starting, 2 * totals * (1 + self.iterations_per_launch))
        # Double-buffered: the sums of the step before a launch are still needed after it.
        self._totals: list[Any] = list(measured.reshape(2, 1 + self.iterations_per_launch, totals))
        rounding = gpu_pull.step_rounding(problem, plan.rounding_depth("float64"))
        self._row_depths = {dtype: plan.rounding_depth(dtype) for dtype in ("float32", "float64")}
        # After a mix, ranks and the contributions and dangling mass of them are scaled: two roundings more for each.
        self._rounding = self.rounding = rounding._replace(edge=rounding.edge + 2, dangling=rounding.dangling + 2)
        self._stored: Argument | None = None  # history of this ranking or of one before
        self._kept = 0  # bytes, of which there were enough
        self._slow: tuple[Any, ...] = ()  # a ranking that needed a history, and the window of that
        self.reuse(problem)

    def rest(self) -> bool:
        stored = 0 if self._stored is None else self._stored.values["vectors"].nbytes
        if not self._plan.rest():
            self._contributions, self._edges = [], ()
        kept = self._workspace.nbytes + stored + self._plan.nbytes
        if kept > self._kept and runtime.fits(KEPT_PART * kept):  # not each time, since it may query the memory
            self._kept = kept
        return kept <= self._kept

    def reuse(self, problem: Problem) -> None:
        self._set_equation(problem.on("device"))
        self._history: Argument | None = None
        self._fits_history, self._phase = True, WAITING

    def start(self, ranks: Floats | float) -> None:
        super().start(ranks)
        self._repeats = isinstance(ranks, float) and self._is_uniform
        self._latest: tuple[int, object] = self._starting, self._begun
        self._change = np.inf
        self._phase = min(self._phase, BEGINNING)

    def __call__(self, moves: Array | None = None) -> Sums:
        change, largest, _ = self._launch_iterations(1)[0][0]  # a single iteration only enters the history
        return Sums(change, largest)

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        taken: list[list[float]] = []
        stall = (1 + self._alpha) / 2  # exact plain iterations contract by alpha or less
        ranking = (goal, budget, self._alpha, self._dtype, self.free_start) if self._repeats else None
        self._repeats = False
        if self._history is None and self._fits_history and self._n <= EARLY_HISTORY:
            self._allocate_history(goal, MAX_CHANGE)
        elif ranking is not None and self._slow[:1] == (ranking,):
            self._set_history(*self._slow[1])  # the launch need not end where mixing begins
        while (left := budget - len(taken)) > 0:
            steps, reason = self._launch_iterations(min(left, self.iterations_per_launch), goal, stall)
            taken += steps
            if reason in (GOAL, STALL):
                break
            if reason == FAR_FROM_GOAL:
                self._allocate_history(goal, self._change)
                self._phase = BEGINNING
                if self._history is not None and ranking is not None and budget <= self.iterations_per_launch:
                    self._slow = ranking, (self._history.values["window"], self._history.values["period"])
        change, largest, _ = taken[-1]
        return len(taken), Sums(change, largest, [earlier for earlier, *_ in taken[:-1]])

    def _allocate_history(self, goal: float, change: float) -> None:
        """Allocate the history for mixing, if it fits, for the iterations from an L1 change to the goal."""
        # The first iterations are faster than later ones; alpha bounds the rate of all.
        left = math.log(goal / change) / math.log(self._alpha) if goal > 0 and self._alpha > 0 else math.inf
        windows = WINDOWS[::-1] if left > LONG_WINDOW_FROM else WINDOWS[:1]
        self._fits_history = any(self._set_history(*window) for window in windows)

    def _set_history(self, window: int, period: int) -> bool:
        """Set a history, in the memory of the last one of this window; return whether it fits."""
        if self._stored is None or self._stored.values["window"] != window:
            self._stored = None
            vectors = (window + 1 + window // period) * self._n  # of residuals and corrections
            if not runtime.fits(4 * vectors):
                return False
            state = HISTORY_STATE + window + most_blocks_of(self._plan) * window * (window + 3) // 2
            store, sums = runtime.allocate((vectors, np.float32), (state, np.float64))
            self._stored = STORE({}, window=window, period=period, phase=0, width=0, vectors=store, state=sums)
        self._history = self._stored
        return True

    def _launch_iterations(
        self, steps: int, goal: float = -1.0, stall: float = math.inf
    ) -> tuple[list[list[float]], int]:
        """Iterate up to `steps` times in one launch; return the totals of each iteration and why the launch ended.

        It ends at an L1 change of `goal`, or when changes shrink by less than `stall`.
        """
        mixing_from = MIXING_FROM if self._fits_history and self._phase == WAITING else math.inf
        if self._history is not None:
            window = self._history.values["window"]
            width = min(MAX_TILE_ROWS, (self._smem // 8 // (window + 1) - 1) // 32 * 32)
            self._history.set(phase=self._phase, width=width)
        self._iterate(self._latest, self._totals[0], steps, goal, stall, self._change, mixing_from, self._history)
        found = to_host(self._totals[0][: 1 + steps])
        taken, reason, mixes = found[0].tolist()
        measured = found[1 : 1 + int(taken)].tolist()
        self._latest, self._change = (1, self._totals[0].data + 8 * gpu_pull.TOTALS * int(taken)), measured[-1][0]
        self._totals.reverse()
        if int(taken) % 2:
            self._contributions.reverse()
        if mixes:
            self._phase = CONTINUING
        return measured, int(reason)


@cache
def no_mixing() -> Argument:
    """Return the kernel argument for plain iterations."""
    return STORE({}, window=0, period=0, phase=WAITING, width=0, vectors=None, state=None)


@cache
def _resident_blocks(launch: runtime.Kernel, threads: int, smem: int, device: int) -> int:
    """Return the number of blocks that the current GPU holds at once."""
    return runtime.multiprocessors() * int(
        cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(launch.ptr, threads, smem)
    )
