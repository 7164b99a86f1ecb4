"""Many iterations per launch, over equal pieces of rows and edges (Merrill and Garland 2016)."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import runtime
from prplugin.methods.base import Array, Edges, Machine, Memory, Problem, Rate, SeedsStep, Step
from prplugin.methods.engines import gpu_merge, gpu_pull
from prplugin.types.edges import Csc

name = "persistent"
runs_on = "gpu"

BLOCKS = 4  # blocks per multiprocessor at once, as in the launch bounds of the kernel

# Rows plus edges per piece. At most: each thread of a block loads eight edges at once. At least: with smaller pieces,
# more blocks cost more at the barriers than they save.
MOST, LEAST = 8 * gpu_merge.THREADS, 512

# Vertices whose contributions fit in the L2 cache of an H100, about: as float32, and as float64. Below the second,
# float32 saves nothing: a gather moves a sector of 32 bytes in either type.
IN_CACHE, NARROW_FROM = 6_500_000, 4_000_000

memory = Memory(
    step=Rate(20 / LEAST, 4, gpu_merge.VERTEX),  # pieces, and normalized weights
    float64=Rate(0, 4),
    float32_from=NARROW_FROM,
    more=Rate(vertex=8 + gpu_merge.HISTORY_VERTEX),
)
unavailable_reason = gpu_pull.reason_of(memory)


def cost(adjacency: Edges, machine: Machine) -> float:
    """Estimate a ranking, fitted to docs/decisions/0005-gpu-cost-model.md; gathers miss the cache on large graphs."""
    n, m, spread = adjacency.n, adjacency.m, adjacency.spread
    per_edge = (9.5e-12 if adjacency.weighted else 7.5e-12) - 3.2e-12 * (1 - spread)
    beyond = spread**2 * max(0.0, 1 - IN_CACHE / (n + 1))
    return gpu_pull.ITERATIONS * (10e-6 + per_edge * m + 2.5e-11 * n + 2.2e-11 * beyond * m)


def prepare(problem: Problem, machine: Machine) -> Step:
    """Group the edges by target, and partition rows and edges into pieces."""
    problem = problem.on("device")
    return gpu_merge.MergeStep(problem, PersistentPlan(problem.adjacency))


def batch(problem: Problem, machine: Machine, seeds: int) -> SeedsStep:
    """Return the step for many seeds, with one launch per iteration."""
    from prplugin.methods.engines.gpu_batch import DeviceBatch  # imported only for many seeds

    return DeviceBatch(problem.on("device"), seeds)


def batch_cost(adjacency: Edges, machine: Machine, seeds: int) -> float:
    """Estimate from the memory traffic; no other GPU method ranks many seeds."""
    return gpu_pull.ITERATIONS * seeds / 32 * (20e-6 + 32 * (1.2e-12 * adjacency.m + 8e-12 * adjacency.n))


def compile_ahead(weighted: bool) -> None:
    """Start to compile the kernels that most graphs need."""
    index, real, file = np.dtype(np.int32), np.dtype(np.float64), "methods/persistent.cu"
    runtime.compile_ahead(file, "persist", index_t=index, offset_t=index, real_t=real, WEIGHTED=int(weighted))
    runtime.compile_ahead("gpu/merge_start.cu", "merge_start", real_t=real)


class PersistentPlan(gpu_merge.PiecesPlan):
    """Reads the in-edges in CSC order and gathers their contributions.

    `rows`: number of leading vertices that are rows; the others have no in-edges. All if not given.
    """

    threads = gpu_merge.THREADS

    def __init__(self, adjacency: Edges, *, rows: int | None = None) -> None:
        offsets, self._sources, weights = adjacency.get(Csc)
        offsets = offsets if rows is None else offsets[: rows + 1]
        self._normalized_weights = gpu_pull.NormalizedWeights(weights, adjacency, self._sources)
        self._weighted, self.float32_is_faster = adjacency.weighted, adjacency.n >= NARROW_FROM
        size = gpu_merge.even_size(offsets.size - 1 + adjacency.m, runtime.multiprocessors() * BLOCKS, LEAST, MOST)
        super().__init__(gpu_merge.cut(offsets, adjacency.m, size, self._sources.dtype))

    def kernel(self, dtype: DTypeLike) -> runtime.Kernel:
        index, offset = self._sources.dtype, self._pieces.offsets.dtype
        types = {"index_t": index, "offset_t": offset, "real_t": np.dtype(dtype), "WEIGHTED": int(self._weighted)}
        return runtime.kernel("methods/persistent.cu", "persist", **types)

    def smem(self, dtype: DTypeLike) -> int:
        return MOST * (8 if self._weighted or dtype == "float64" else 4)

    def arguments(self, dtype: DTypeLike, fronts: object, tails: object) -> tuple[object, ...]:
        return self.piece_arguments(fronts, tails), self._sources, self._normalized_weights.of(dtype)

    @property
    def nbytes(self) -> int:
        return self._normalized_weights.nbytes

    def rest(self) -> bool:
        return True

    def begin(self, contributions: Array) -> None:
        """Do nothing: this plan has no work that needs only the contributions of rows."""
