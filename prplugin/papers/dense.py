"""The dense power method: an n x n matrix in GPU memory (Swaroop 2021)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prplugin.cpu.sorting import run_starts
from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Adjacency, Array, Floats, Machine, Problem, Size, Step
from prplugin.methods.engines import gpu_pull
from prplugin.numerics import compensated_depth
from prplugin.options import validate_int
from prplugin.papers._forms import WARP_LANES, DensePowerMethod, Form, launch_of, step_of
from prplugin.papers._rows import RowsPull

name = "dense"
runs_on = "gpu"
memory = gpu_pull.MEMORY._replace(
    arrays=("rows", "out_weight"),
    edge=Size(),
    preparing_edge=Size(40, weight=1),  # pairs, their order and their entries, with buffers for sorting
    pair=Size(4, normalized_weight=1, weight=-0.5),  # an int32, or a normalized weight
)
unavailable_reason = gpu_pull.reason_of(memory)

PART_OF_A_WARP = (8, 16)  # valid threads per block that are fewer than a warp; the paper's first two

cost = gpu_pull.cost_of(56e-6, pair=1.9e-12)  # fitted to benchmarks/results/kernels.md

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
    adjacency = problem.adjacency.on("device")
    threads = launch_of(forms, form, threads=threads)["threads"]
    dense = DensePull(adjacency, 256 if threads is None else threads)
    # The exact step of the form needs no second matrix.
    pull = dense if form is None else RowsPull(gpu_pull.csc_layout(adjacency), "warp", lanes=WARP_LANES)

    matrix = partial(google_matrix, adjacency, problem.alpha)
    return step_of(problem, pull, form, lambda: DensePowerMethod(matrix(), dense.threads), values=True)


def google_matrix(adjacency: Adjacency, alpha: float) -> Any:
    """Return alpha * P + (1 - alpha) / n, n x n float32 on the GPU; dangling columns of P are 1 / n."""
    n, out = adjacency.n, adjacency.out_weight
    matrix = _matrix(adjacency, np.float32)  # numbers of edges, or sums of normalized weights
    inverse = gpu_pull.inverse_out_weight(adjacency)
    matrix *= (alpha * inverse).astype(np.float32)
    matrix += cupy.where(out == 0, 1 / n, (1 - alpha) / n).astype(np.float32)
    return matrix


class DensePull:
    """Multiplies contributions by the matrix whose entry (i, j) is the number, or weight, of the edges from j to i."""

    def __init__(self, adjacency: Adjacency, threads: int) -> None:
        small = threads in PART_OF_A_WARP
        self.threads = validate_int("threads", threads, multiple_of=8 if small else 32, at_most=1024)
        self._adjacency = adjacency
        self._matrix: Any = None
        # Normalized weights of parallel edges are summed first; a count of edges is exact, but its product is rounded.
        self.rounding_depth = gpu_pull.ROW_DEPTH + (compensated_depth(adjacency.m) if adjacency.weighted else 1)

    def __call__(self, contributions: Floats, row_sums: Array) -> None:
        entry = contributions.dtype if self._adjacency.weighted else np.dtype(np.int32)
        if self._matrix is None or self._matrix.dtype != entry:
            self._matrix = None  # frees its memory first
            self._matrix = _matrix(self._adjacency, entry)
        n, types = self._adjacency.n, {"real_t": contributions.dtype, "entry_t": entry}
        arrays = self._matrix, contributions, row_sums
        runtime.run("papers/dense.cu", "dense_pull", runtime.blocks_for(n, 1), self.threads, n, *arrays, **types)


def _matrix(adjacency: Adjacency, dtype: DTypeLike) -> Any:
    """Add up the edges of each pair in the order of the frame; atomic additions would have no fixed order."""
    from prplugin.gpu import group

    n, edges = adjacency.n, adjacency.edges
    matrix = cupy.zeros((n, n), dtype)
    if not edges.m:
        return matrix
    pairs = edges.destination.astype("int64") * n + edges.source
    order = cupy.argsort(pairs)
    pairs = pairs[order]
    starts = cupy.flatnonzero(run_starts(pairs))
    bounds = cupy.append(starts, edges.m)
    if adjacency.weighted:
        normalized_weights = gpu_pull.NormalizedWeights(edges.weights, adjacency, edges.source).of("float64")
        entries = group.run_sums(normalized_weights[order], bounds)
    else:
        entries = cupy.diff(bounds)
    matrix.ravel()[pairs[starts]] = entries.astype(dtype)
    return matrix
