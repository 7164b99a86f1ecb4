"""Many seeds on the GPU, one lane per seed: launches the kernels of batch.cu."""

from __future__ import annotations

import numpy as np

from prplugin.errors import MethodUnavailableError
from prplugin.gpu import cupy, runtime
from prplugin.gpu.structs import ENTRIES, LAYOUT, VECTORS
from prplugin.graph.memory import NORMALIZED, Counts, footprint
from prplugin.methods.base import Array, Floats, Integers, Memory, Problem, Seeds, SeedsStep, Sums
from prplugin.methods.engines import gpu_merge, gpu_pull
from prplugin.numerics import depth_for
from prplugin.types.edges import Csc

WIDTHS = (8, 32)  # seeds per batch: 32 lanes are a warp, and 32 float32 are a cache line
SIZE = 256  # rows and edges per piece
BYTES = 3 * 8 + 4 * depth_for(0.0, WIDTHS[-1]).rows  # per rank: the rank, its contributions old and new, its history

# As in batch.cu.
GROUPS, TOTAL_GROUPS = 8, 32  # groups of threads per block, one thread per seed in each; of the block that sums all
COLUMN, MEASURED, STATE = 3, 3, 3  # number of doubles in the structs of those names
BLOCK_SUM_FROM = 16  # number of partial sums of a row from which a whole block adds them up


# Largest grids, twice the number of blocks of the greatest width that an H100 holds at once. They are the same on every
# GPU and for every width, so that the sums have the same bits.
BLOCKS, CROSSING_BLOCKS = 1056, 256

# Rounding depth of a sum over all vertices: compensated in a thread, over the groups of a block, compensated in a
# thread again, and in five levels.
TOTALS_DEPTH = 2 + GROUPS + 2 + 5


class DeviceBatch(gpu_pull.MixedOnDevice, SeedsStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once, on the current stream."""

    def __init__(self, problem: Problem, seeds: int) -> None:
        adjacency = problem.adjacency
        self._n, self._m, self._alpha, self._target = adjacency.n, adjacency.m, problem.alpha, problem.dangling
        of_graph = footprint(Memory(step=NORMALIZED), Counts.of(adjacency))
        self.width = _width_for(seeds, of_graph.device.peak, adjacency.n)
        offsets, self._sources, weights = adjacency.get(Csc)
        self._normalized_weights = gpu_pull.NormalizedWeights(weights, adjacency, self._sources)
        self._weighted = weights is not None
        self._pieces = gpu_merge.cut(offsets, adjacency.m, SIZE, self._sources.dtype)
        self._crossing, self._long_crossings = _crossing(self._pieces)
        self._inverse_out_weight = gpu_pull.inverse_out_weight(adjacency)
        self._fronts, self._tails = (cupy.empty((self._pieces.count, self.width)) for _ in range(2))
        self._measured = cupy.empty((BLOCKS + CROSSING_BLOCKS, self.width, MEASURED))
        self._states, self._columns = cupy.empty((self.width, STATE)), cupy.empty((self.width, COLUMN))
        self._norms = cupy.empty(self.width)
        self._ranks: Floats = cupy.empty((self._n, self.width))
        self._live = np.ones(self.width, np.bool_)
        rounding = gpu_pull.step_rounding(problem, SIZE + gpu_pull.ROW_DEPTH + 1)
        self._rounding = rounding._replace(dangling=TOTALS_DEPTH, norm=TOTALS_DEPTH + 1)
        self._contributions: list[Array] = []
        self.set_contribution_dtype("float64")

    def set_contribution_dtype(self, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self.rounding = gpu_pull.rounding_in(self._rounding, dtype, weighted=self._weighted)

    def seed(self, seeds: Seeds) -> None:
        self.seeds = seeds.count
        rows, columns, values = seeds.on("device").entries_by_vertex()
        cuts = cupy.searchsorted(rows, self._pieces.cuts.astype(np.int64))
        arrays = (array.astype(np.int64) for array in (cuts, rows, columns))
        self._entries = ENTRIES({}, **dict(zip(("cuts", "rows", "columns"), arrays, strict=True)), values=values)
        self._live = np.arange(self.width) < seeds.count

    def start(self, ranks: Floats | float | None) -> None:
        if ranks is not self._ranks:
            self._ranks.fill(0.0)
            if ranks is None:
                entries = self._entries.values
                self._ranks[entries["rows"], entries["columns"]] = entries["values"]
            else:
                one = not isinstance(ranks, float) and ranks.ndim == 1
                self._ranks[:, : self.seeds] = cupy.asarray(ranks)[:, None] if one else ranks
        self._begin()

    def set_live(self, live: Array) -> None:
        if (live == self._live[: live.size]).all():
            return
        self._live[: live.size] = live
        self._states[:, -1] = cupy.asarray(self._live)
        self._columns.view(np.int32)[:, 2 * (COLUMN - 1)] = cupy.asarray(self._live)

    def _begin(self) -> None:
        """Compute contributions and D of the ranks."""
        if not self._contributions or self._contributions[0].dtype != self._dtype:
            self._contributions = []  # frees their memory first
            self._contributions = [cupy.empty((self._n + 1, self.width), self._dtype) for _ in range(2)]
            for contributions in self._contributions:
                contributions[-1] = 0  # the row of zeros for missing edges: see batch.cu
        self._states[:, -1] = cupy.asarray(self._live)
        grid = min(runtime.blocks_for(self._n, GROUPS), BLOCKS)
        self._launch(
            "begin", grid, GROUPS, self._n, cupy.ones(self.width), self._inverse_out_weight, self._ranks,
            self._contributions[0], self._measured,
        )  # fmt: skip
        self._total(grid, starting=True)

    def __call__(self, moves: Array | None = None) -> Sums:
        pieces, crossings = self._pieces, self._crossing.size
        grid = min(runtime.blocks_for(pieces.count, GROUPS), BLOCKS)
        crossing_grid = min(self._long_crossings - (self._long_crossings - crossings) // GROUPS, CROSSING_BLOCKS)
        before, after = self._contributions
        layout = LAYOUT(
            self._types, n=self._n, m=self._m, size=pieces.size, pieces=pieces.count, cuts=pieces.cuts,
            offsets=pieces.offsets, sources=self._sources,
            normalized_weights=self._normalized_weights.of(self._dtype),
        )  # fmt: skip
        vectors = VECTORS(
            self._types, ranks=self._ranks, to=after, moves=moves, inverse_out_weight=self._inverse_out_weight,
            target=self._target,
        )  # fmt: skip
        common = layout, self._entries, vectors, self._alpha, self._columns
        self._launch("step", grid, GROUPS, *common, before, self._fronts, self._tails, self._measured)
        if crossings:
            self._launch(
                "cross", crossing_grid, GROUPS, *common, crossings, self._long_crossings, self._crossing, self._fronts,
                self._tails, self._measured[grid:],
            )  # fmt: skip
        self._total(grid + (crossing_grid if crossings else 0))
        self._contributions.reverse()
        change, largest, _ = self._states.get()[: self.seeds].T
        return Sums(change, largest)

    def products(self, moves: Array, rows: list[int]) -> Floats:
        return super().products(moves, rows)[: self.seeds]

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        padded = np.zeros((self.width, weights.shape[1]))
        padded[: self.seeds] = weights
        super().mix(moves, padded, jump)

    def _total(self, blocks: int, *, starting: bool = False) -> None:
        self._launch(
            "total", 1, TOTAL_GROUPS, blocks, self._measured, np.int32(starting), self._alpha,
            np.int32(self._target is not None), self._states, self._columns, self._norms,
        )  # fmt: skip

    @property
    def _types(self) -> dict[str, runtime.Macro]:
        return {"real_t": self._dtype, "index_t": self._sources.dtype, "offset_t": self._pieces.offsets.dtype}

    def _launch(self, name: str, blocks: int, groups: int, *arguments: object) -> None:
        macros = {"SEEDS": self.width, "WEIGHTED": int(self._weighted), **self._types}
        runtime.run("gpu/batch.cu", f"batch_{name}", blocks, groups * self.width, *arguments, **macros)

    def ranks(self) -> Floats:
        return self._ranks[:, : self.seeds]

    def transposed(self) -> Floats:
        return cupy.ascontiguousarray(self._ranks[:, : self.seeds].T)


def _width_for(seeds: int, graph_bytes: int, n: int) -> int:
    """Return the batch width: the least that holds all seeds, else the largest that fits in GPU memory."""
    fitting = [width for width in WIDTHS if runtime.fits(graph_bytes + width * BYTES * n)]
    if not fitting:
        raise MethodUnavailableError(
            f"a batch of {WIDTHS[0]} seeds needs about {graph_bytes + WIDTHS[0] * BYTES * n:,} bytes of GPU memory, "
            f"and {runtime.available_bytes():,} are free. Rank one seed at a time, with method='streamed' if necessary."
        )
    return next((width for width in fitting if width >= seeds), fitting[-1])


def _crossing(pieces: gpu_merge.Pieces) -> tuple[Integers, int]:
    """Return the pieces that end a row begun in an earlier piece, and the number of rows with many partial sums.

    The pieces of rows with many partial sums come first.
    """
    first, last = pieces.cuts[:-1].astype(np.int64), pieces.cuts[1:]
    begins = cupy.arange(pieces.count) * pieces.size - first
    offsets = pieces.offsets[first].astype(np.int64)
    crossing = cupy.flatnonzero((first < last) & (offsets < begins))
    began = (first + offsets)[crossing] // pieces.size
    is_long = crossing - began >= BLOCK_SUM_FROM
    many, few = crossing[is_long], crossing[~is_long]
    return cupy.concatenate([many, few]).astype(np.int64), int(many.size)
