"""Shared parts of all GPU methods: vectors and their mixing, ranks from row sums, and layouts of the in-edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import cupy, runtime
from prplugin.gpu.structs import EQUATION
from prplugin.graph.memory import Counts, footprint
from prplugin.methods.base import Array, Edges, Floats, Integers, Machine, Memory, Problem, Rate, Step, Sums
from prplugin.numerics import StepRounding, depth_for
from prplugin.types.arrays import to_host
from prplugin.types.edges import Csc

THREADS, BLOCKS = 256, 1024  # grid of sums over all vertices, the same on every GPU so that these have the same bits
MIXING_BLOCKS, GROUPS = 128, 8  # blocks of a mix, and for many seeds groups of threads per block, one per seed in each
ITERATIONS = 20  # of which `cost` is: social networks take 10 to 20 at the default tolerance, web graphs some 60
SMALL = runtime.FEW_BYTES >> 8  # vertices and edges that fit on any GPU, unless a method stores pairs of vertices

BUS = 45e9  # bytes per second of copies from page-locked memory to the GPU
TOTALS = 3  # number of doubles in the struct of that name in finish.cu: change, largest, dangling
TOTALS_DEPTH = 12  # rounding depth of a block's sum: compensated in two threads, and ten levels of plain additions
ROW_DEPTH = 2  # rounding depth of a compensated sum of up to 2**26 terms: see sums.cuh


# Memory of a `DeviceStep` that pulls over the in-edges.
MEMORY = Memory(
    step=Rate(0, 4, 3 * 8 + 4),  # normalized weights; inverse out-weights, row sums, ranks and contributions
    float64=Rate(0, 4, 4),
    more=Rate(vertex=8 + 4 * depth_for(1.0).rows),  # ranks of the float32 phase, and a history
)


class Pull(Protocol):
    """Computation of the row sums, which differs by method."""

    rounding_depth: int  # of a row sum, as counted by `StepRounding.row`

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        """Write to each of the n entries of `row_sums` the sum over the row's in-edges.

        `contributions` are n float64 or float32. In weighted graphs each term is multiplied by the edge's normalized
        weight, stored in the same type.
        """


class MixedOnDevice(Step):
    """A step whose ranks are in device memory: a vector, or a matrix with one column per seed."""

    keeps_history = True
    _ranks: Floats  # n float64, or n x seeds

    def history(self, rows: int) -> Array | None:
        # Temporary vectors beside the history: of a mix, of its division by the sum, and of the start from it.
        if not runtime.fits((4 * rows + 4 * 8) * self._ranks.size):
            return None
        return cupy.empty((rows, *self._ranks.shape), np.float32)

    def products(self, moves: Array, rows: list[int]) -> Floats:
        count, n, *seeds = moves.shape
        shape, threads = self._shape(seeds)
        partials = cupy.empty((shape, count * (count + 1) // 2, *seeds))
        self._mixing("products", moves)((MIXING_BLOCKS,), threads, (n, moves, partials))
        found = np.zeros((count, count, *seeds))
        row, column = np.tril_indices(count)
        found[row, column] = found[column, row] = self.add(partials.get().sum(axis=0))
        products = np.moveaxis(found, -1, 0) if seeds else found
        return products[..., rows, :][..., rows]

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        _, n, *seeds = moves.shape
        shape, threads = self._shape(seeds)
        sums = cupy.empty((shape, *seeds))
        transposed = cupy.asarray(np.ascontiguousarray(weights.T))
        self._mixing("mix", moves)((MIXING_BLOCKS,), threads, (n, moves, transposed, self._ranks, jump, sums))
        totals = self.add(sums.get().sum(axis=0))
        norms = cupy.asarray(np.where(weights.any(axis=-1) & (totals > 0), totals, 1.0))
        self._ranks /= norms
        if not seeds:  # the kernel wrote z - y
            jump -= (norms - 1.0) * self._ranks
        self.start(self._ranks)

    def _shape(self, seeds: list[int]) -> tuple[int, tuple[int, ...]]:
        """Return the number of partial sums, and the shape of a block."""
        return (MIXING_BLOCKS * GROUPS, (seeds[0], GROUPS)) if seeds else (MIXING_BLOCKS, (THREADS,))

    def _mixing(self, name: str, moves: Array) -> runtime.Kernel:
        return runtime.kernel("gpu/mixing.cu", ("seeds_" if moves.ndim == 3 else "") + name, ROWS=len(moves))


class DeviceStep(MixedOnDevice):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v on the GPU, with the row sums of a method's `Pull`.

    All arrays stay in device memory, and kernels run on the current stream; only the sums of each step are copied back.

    `order`: The vertex at each position of the vectors, in the memory space of the graph; None: that of its own number.
    """

    float32_is_faster = True

    def __init__(self, problem: Problem, pull: Pull, order: Integers | None = None) -> None:
        adjacency, n = problem.adjacency, problem.adjacency.n
        self._pull = pull
        self._n, self._alpha, self._weighted = n, problem.alpha, adjacency.weighted
        self._inverse_out_weight = inverse_out_weight(adjacency, order)
        v, w = (
            vector if vector is None or order is None else vector[order]
            for vector in (problem.personalization, problem.dangling)
        )
        # w and (1 - alpha) * v: arrays of n entries, or of one for all vertices, and their strides, 1 or 0.
        v = np.full(1, 1.0 / n) if v is None else v
        w = v if w is None else w
        target, teleport = cupy.asarray(w), cupy.asarray((1 - problem.alpha) * v)
        self._equation = EQUATION(
            {}, alpha=problem.alpha, target=target, target_step=target.size // n, teleport=teleport,
            teleport_step=teleport.size // n, inverse_out_weight=self._inverse_out_weight,
        )  # fmt: skip
        self._ranks: Floats = cupy.empty(n)
        self._blocks = min(runtime.blocks_for(n, THREADS), BLOCKS)
        sizes = n, self._blocks * TOTALS, TOTALS
        self._row_sums, self._partials, self._totals = runtime.allocate(*((size, np.float64) for size in sizes))
        self._rounding = step_rounding(problem, pull.rounding_depth)
        self.set_contribution_dtype("float64")

    def set_contribution_dtype(self, dtype: str) -> None:
        self._contributions: Any = None  # frees their memory first
        self._contributions = cupy.empty(self._n, dtype)
        self.rounding = rounding_in(self._rounding, dtype, weighted=self._weighted)
        self._begin, self._finish, self._total = (
            _of_finish(name, self._contributions.dtype) for name in ("begin", "finish", "total")
        )

    def start(self, ranks: Floats | float) -> None:
        if ranks is not self._ranks:
            self._ranks[:] = ranks if isinstance(ranks, float) else cupy.asarray(ranks)
        arrays = self._ranks, self._inverse_out_weight, self._contributions, self._partials
        runtime.launch(self._begin, self._blocks, THREADS, self._n, *arrays)
        runtime.launch(self._total, 1, BLOCKS, self._blocks, self._partials, self._totals)

    def __call__(self, moves: Array | None = None) -> Sums:
        self._pull(self._contributions, self._row_sums)
        runtime.launch(
            self._finish, self._blocks, THREADS, self._n, self._equation, self._row_sums, self._totals, self._ranks,
            self._contributions, moves, self._partials,
        )  # fmt: skip
        runtime.launch(self._total, 1, BLOCKS, self._blocks, self._partials, self._totals)
        change, largest, _ = to_host(self._totals).tolist()
        return Sums(change, largest)

    def ranks(self) -> Floats:
        return self._ranks


# --- the equation -------------------------------------------------------------------------------------------------


def inverse_out_weight(adjacency: Edges, order: Integers | None = None) -> Floats:
    """Do the same as `prplugin.graph.edges.inverse_out_weight` on the GPU, for the vertices in this order."""
    out_weight = cupy.asarray(adjacency.out_weight if order is None else adjacency.out_weight[order])
    flow: Floats = cupy.empty(adjacency.n)
    grid = min(runtime.blocks_for(adjacency.n, THREADS), BLOCKS), THREADS
    weighted = np.int32(adjacency.weighted)
    runtime.launch(_of_finish("inverse_out_weight", flow.dtype), *grid, adjacency.n, weighted, out_weight, flow)
    return flow


def step_rounding(problem: Problem, row: int) -> StepRounding:
    """Return the rounding depths of a step, given those of its row sums."""
    adjacency = problem.adjacency
    sums = 2 * TOTALS_DEPTH  # in a block, and of the blocks
    return StepRounding(
        row=row,
        # 1 / W and its product; or w as a float, the terms of W as floats, W, w / W, and x * (w / W)
        edge=adjacency.out_weight_depth + 4 if adjacency.weighted else 2,
        dangling=sums,
        vectors=problem.vector_depth,
        norm=sums + 1,
    )


def rounding_in(rounding: StepRounding, dtype: str, *, weighted: bool) -> StepRounding:
    """Add the roundings to `dtype` of contributions, and of the normalized weights of weighted edges."""
    return rounding._replace(single=0 if dtype == "float64" else 1 + weighted)


def launch_collect(kernel: runtime.Kernel, pieces: int, *arguments: object) -> None:
    """Launch a kernel that adds up the partial sums of rows that cross pieces, by one warp per piece."""
    runtime.launch(kernel, runtime.blocks_for(32 * pieces, THREADS), THREADS, pieces, *arguments)


def _of_finish(name: str, dtype: np.dtype[np.generic]) -> runtime.Kernel:
    return runtime.kernel("gpu/finish.cu", name, real_t=dtype)


# --- edges in runs ------------------------------------------------------------------------------------------------


class NormalizedWeights:
    """The normalized weights w / W of the edges, in the order of a layout; stored in one type at a time."""

    def __init__(self, weights: Floats | None, of: Edges | NormalizedWeights, sources: Integers) -> None:
        self._weights, self._sources = weights, sources
        # Not the graph, which may hold this in turn.
        self.out_weight: Floats | None = None if weights is None else of.out_weight
        self._held: Array | None = None

    def of(self, dtype: DTypeLike) -> Array | None:
        """Return the normalized weights in this type, 0 where the source is dangling; None for unweighted graphs."""
        if self._weights is None or self.out_weight is None:
            return None
        if self._held is None or self._held.dtype != dtype:
            self._held = None  # frees their memory first
            self._held = normalized(self._weights, self._sources, self.out_weight, dtype)
        return self._held

    @property
    def nbytes(self) -> int:
        """Bytes of the normalized weights that are held."""
        return 0 if self._held is None else int(self._held.nbytes)

    def take(self, edges: Integers) -> NormalizedWeights:
        """Return the normalized weights of some edges of the layout."""
        weights = None if self._weights is None else self._weights[edges]
        return NormalizedWeights(weights, self, self._sources[edges])


def normalized(weights: Floats, sources: Integers, out_weight: Floats, dtype: DTypeLike) -> Floats:
    """Do the same as `prplugin.graph.edges.normalized_weights` on the GPU, in this type."""
    m = sources.size
    found: Floats = cupy.empty(m, dtype)
    if m:
        types = {"index_t": sources.dtype, "real_t": found.dtype}
        grid, arrays = (runtime.blocks_for_each(m), runtime.THREADS), (sources, weights, out_weight, found)
        runtime.run("gpu/normalized_weights.cu", "normalized_weights", *grid, m, *arrays, **types)
    return found


class Layout(NamedTuple):
    """Runs of in-edges, one per row: run k is ``sources[begins[k]:ends[k]]``."""

    rows: Integers | None  # the row of each run; None: run k belongs to row k
    begins: Integers
    ends: Integers
    sources: Integers
    normalized_weights: NormalizedWeights


def csc_layout(adjacency: Edges) -> Layout:
    """Return the layout of the in-edges of a graph in device memory, row by row."""
    offsets, sources, weights = adjacency.get(Csc)
    return Layout(None, offsets[:-1], offsets[1:], sources, NormalizedWeights(weights, adjacency, sources))


def pull_types(layout: Layout, dtype: np.dtype[np.generic]) -> dict[str, runtime.Macro]:
    """Return the macros of a kernel that pulls over a layout, with contributions of this type."""
    return {
        "index_t": layout.sources.dtype,
        "offset_t": layout.begins.dtype,
        "real_t": dtype,
        "WEIGHTED": int(layout.normalized_weights.of(dtype) is not None),
    }


# --- what methods check, and their costs --------------------------------------------------------------------------


def unavailable_reason(
    memory: Memory, adjacency: Edges | Counts | None, machine: Machine, remedy: str = runtime.MEMORY_ADVICE
) -> str | None:
    """Return why a method cannot run on this GPU, or why this graph does not fit in its memory; None if it can run."""
    if (reason := runtime.unavailable_reason()) or adjacency is None:
        return reason
    if not memory.pair and adjacency.n + adjacency.m <= SMALL:
        return None
    needed = footprint(memory, Counts.of(adjacency)).device.peak
    if runtime.fits(needed):
        return None
    available = runtime.available_bytes()
    return f"it needs about {needed:,} bytes of GPU memory for this graph, and {available:,} are free. {remedy}"


def reason_of(memory: Memory) -> Callable[[Edges | None, Machine], str | None]:
    """Return the function `unavailable_reason` of a method, given its memory."""
    return partial(unavailable_reason, memory)


def cost_of(
    iteration: float, *, edge: float = 0.0, weighted_edge: float | None = None, vertex: float = 0.0, pair: float = 0.0,
    longest: float = 0.0, layout: float = 0.0, layout_edge: float = 0.0, layout_vertex: float = 0.0,
    copied: tuple[float, int] = (0.0, 0),
) -> Callable[[Edges, Machine], float]:  # fmt: skip
    """Return the function `cost` of a method, given its seconds per iteration and for the layout.

    `edge`, `weighted_edge`, `vertex`, `pair`, `longest`: Seconds per iteration for each edge, also in a weighted graph
    if not given for that, each vertex, each pair of vertices, and each edge of the longest row.
    `layout`, `layout_edge`, `layout_vertex`: Seconds before the first iteration, and those for each edge and vertex.
    `copied`: Bytes per edge that each iteration copies from the host, and 8 more for a weight; and bytes that it keeps.
    """

    def cost(adjacency: Edges, machine: Machine) -> float:
        n, m = adjacency.n, adjacency.m
        per_edge = edge if weighted_edge is None or not adjacency.weighted else weighted_edge
        # Without rows, those of equal in-degrees.
        of_longest = longest and longest * (adjacency.largest_in_degree or -(-m // max(1, n)))
        bytes_copied = max(0.0, m * (copied[0] + 8 * adjacency.weighted) - copied[1]) if copied[0] else 0.0
        step = iteration + per_edge * m + vertex * n + pair * n**2 + of_longest + bytes_copied / BUS
        return layout + layout_edge * m + layout_vertex * n + ITERATIONS * step

    return cost
