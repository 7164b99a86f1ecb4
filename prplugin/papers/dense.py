"""The dense power method: an n x n matrix in GPU memory (Swaroop 2021)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from prplugin.cpu.sorting import run_starts
from prplugin.gpu import blocks, cupy, runtime
from prplugin.methods.base import Array, Edges, Floats, Integers, Machine, Made, Problem, Rate, Step
from prplugin.methods.engines import gpu_pull
from prplugin.numerics import compensated_depth
from prplugin.options import validate_int
from prplugin.papers._forms import WARP_LANES, DensePowerMethod, Form, launch_of, step_of
from prplugin.papers._rows import RowsPull
from prplugin.types.arrays import synchronize
from prplugin.types.edges import Blocks, Coo


class DenseMatrix(NamedTuple):
    """The layout of this method: n rows of n numbers, or weights, of edges."""

    entries: Array


name = "dense"
runs_on = "gpu"
reads = DenseMatrix, Coo
memory = gpu_pull.MEMORY._replace(
    layout="matrix",  # which the graph does not keep
    made=Made(Rate(40, 8, 8), Rate(vertex=8)),  # pairs, their order and their entries, with buffers for sorting
    step=Rate(vertex=28),
    pair=4,  # an int32, or a normalized weight
)
unavailable_reason = gpu_pull.reason_of(memory)

ROWS = 256  # of the full matrix that are converted at a time
PART_OF_A_WARP = (8, 16)  # valid threads per block that are fewer than a warp; the paper's first two

# Iterations are fitted to benchmarks/results/kernels.md; `layout_edge` is the time of 50 million edges among 10,000
# vertices on an H100.
cost = gpu_pull.cost_of(56e-6, pair=1.9e-12, layout_edge=9e-11)

forms = {"paper": Form("Swaroop 2021, Section 5: store_rank, matmul, rank_diff", {"threads": 32})}


def prepare(problem: Problem, machine: Machine, *, threads: int | None = None, form: str | None = None) -> Step:
    """Build the dense matrix.

    The paper's matrix has 1/n in dangling columns, and alpha and the teleport in every entry. Without `form` it holds
    only the edges; dangling mass and teleport are added to the product, which is equivalent and adds no rounding error.

    Parameters
    ----------
    threads : int, optional
        Threads per block: 8, 16 or a multiple of 32, 1024 at most; 256 if not given, or those of the form.
    form : "paper", optional
        Iterate by the kernels of Swaroop as printed, with one thread per row of the full matrix in float32; a step over
        the edges then proves the result. It has uniform teleport.
    """
    given, adjacency = problem.adjacency, problem.adjacency.on("device")
    threads = launch_of(forms, form, threads=threads)["threads"]
    dense = DensePull(adjacency, 256 if threads is None else threads, keeper=given)
    # The exact step of the form needs no second matrix.
    pull = dense if form is None else RowsPull(gpu_pull.csc_layout(adjacency), "warp", lanes=WARP_LANES)

    matrix = partial(google_matrix, adjacency, problem.alpha)
    return step_of(problem, pull, form, lambda: DensePowerMethod(matrix(), dense.threads), values=True)


def google_matrix(adjacency: Edges, alpha: float) -> Array:
    """Return alpha * P + (1 - alpha) / n, n x n float32 on the GPU; dangling columns of P are 1 / n."""
    n, out = adjacency.n, adjacency.out_weight
    entries = _matrix(adjacency, np.float32 if adjacency.weighted else np.int32)
    matrix = entries.view(np.float32)
    for first in range(0, n, ROWS):  # in place: a second matrix may not fit
        matrix[first : first + ROWS] = entries[first : first + ROWS].astype(np.float32)
    inverse = gpu_pull.inverse_out_weight(adjacency)
    matrix *= (alpha * inverse).astype(np.float32)
    matrix += cupy.where(out == 0, 1 / n, (1 - alpha) / n).astype(np.float32)
    return matrix


class DensePull:
    """Multiplies contributions by the matrix whose entry (i, j) is the number, or weight, of the edges from j to i.

    `keeper`: the graph that keeps the matrix for further rankings; `adjacency` may be a copy of it.
    """

    def __init__(self, adjacency: Edges, threads: int, *, keeper: Edges) -> None:
        small = threads in PART_OF_A_WARP
        self.threads = validate_int("threads", threads, multiple_of=8 if small else 32, at_most=1024)
        self._adjacency, self._keeper = adjacency, keeper
        kept = keeper.kept(DenseMatrix)
        self._matrix: Array | None = None if kept is None else kept.entries
        # Normalized weights of parallel edges are summed first; a count of edges is exact, but its product is rounded.
        self.rounding_depth = gpu_pull.ROW_DEPTH + (compensated_depth(adjacency.m) if adjacency.weighted else 1)

    def __call__(self, contributions: Floats, row_sums: Array) -> None:
        entry = contributions.dtype if self._adjacency.weighted else np.dtype(np.int32)
        if self._matrix is None or self._matrix.dtype != entry:
            self._matrix = None
            self._keeper.keep(None)  # frees its memory first
            self._matrix = _matrix(self._adjacency, entry)
            synchronize("device")
            self._keeper.keep(DenseMatrix(self._matrix))
        n, types = self._adjacency.n, {"real_t": contributions.dtype, "entry_t": entry}
        arrays = self._matrix, contributions, row_sums
        runtime.run("papers/dense.cu", "dense_pull", runtime.blocks_for(n, 1), self.threads, n, *arrays, **types)


def _matrix(adjacency: Edges, dtype: DTypeLike) -> Array:
    """Count the edges of each pair, or add up their weights in the order of the frame, which fixes the rounding."""
    n, arranged = adjacency.n, adjacency.held(Blocks)
    matrix = cupy.zeros((n + 1, n), dtype)  # with a row for padding
    if adjacency.m and not adjacency.weighted:
        ends = _endpoints(adjacency) if arranged is None else blocks.endpoints(arranged, n)
        sources, targets = (end.astype(np.int32, copy=False) for end in ends)
        grid, types = runtime.blocks_for_each(sources.size), {"real_t": np.dtype(np.float32), "entry_t": matrix.dtype}
        arrays = sources, targets, matrix
        runtime.run("papers/dense.cu", "count_pairs", grid, runtime.THREADS, sources.size, n, *arrays, **types)
    elif adjacency.m:
        _add_weights(matrix, adjacency)
    return matrix[:n]


def _endpoints(adjacency: Edges) -> tuple[Integers, Integers]:
    edges = adjacency.get(Coo)
    return edges.source, edges.destination


def _add_weights(matrix: Array, adjacency: Edges) -> None:
    from prplugin.gpu import group

    n, edges = adjacency.n, adjacency.get(Coo)
    pairs = edges.destination.astype("int64") * n + edges.source
    order = cupy.argsort(pairs)
    pairs = pairs[order]
    starts = cupy.flatnonzero(run_starts(pairs))
    normalized_weights = gpu_pull.NormalizedWeights(edges.weights, adjacency, edges.source).of("float64")
    assert normalized_weights is not None
    sums = group.run_sums(normalized_weights[order], cupy.append(starts, edges.m))
    matrix.ravel()[pairs[starts]] = sums.astype(matrix.dtype)
