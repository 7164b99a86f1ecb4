"""Dense power method of Swaroop 2021: the full Google matrix in float32, on the CPU and on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers import loops
from prplugin.graph.edges import Edges
from prplugin.papers._forms import DensePowerMethod
from prplugin.papers.segmented import captured
from prplugin.types.arrays import namespace
from prplugin.types.edges import Coo


def google_matrix(adjacency: Edges, alpha: float) -> Any:
    """Return alpha * P + (1 - alpha) / n as an n x n float32 array; dangling columns of P are 1 / n."""
    source, target, n = adjacency.get(Coo).source, adjacency.get(Coo).destination, adjacency.n
    xp = namespace(source)
    out = adjacency.out_weight
    weights = xp.ones(adjacency.m) if adjacency.get(Coo).weights is None else adjacency.get(Coo).weights
    matrix = xp.empty((n, n), np.float32)
    matrix[:] = xp.where(out == 0, 1 / n, (1 - alpha) / n).astype(np.float32)  # dangling columns: 1 / n
    xp.add.at(matrix, (target, source), (alpha * weights / out[source]).astype(np.float32))
    return matrix


class HostRounds:
    """Sequential version of the paper: its loop, compiled, on one thread."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self.ranks = np.full(len(matrix), 1 / len(matrix), np.float32)

    def __call__(self) -> float:
        """Do one iteration; return its change in the 1-norm."""
        before = self.ranks.copy()
        loops.multiply(self._matrix, before, self.ranks)
        return float(np.abs(before - self.ranks).sum())


class GpuRounds:
    """Parallel version of the paper: its kernels, launched together by a CUDA graph.

    Parameters
    ----------
    threads : int
        Threads per block.
    """

    def __init__(self, matrix: Any, threads: int) -> None:
        import cupy  # lazy import; the matrix is on the GPU

        n = len(matrix)
        self.ranks, self._change = cupy.empty(n, np.float32), cupy.empty(n, np.float32)
        self._round = captured([DensePowerMethod(matrix, threads).enqueue], self.ranks, self._change)
        self.ranks.fill(1 / n)

    def __call__(self) -> float:
        """Do one iteration; return its change in the 1-norm."""
        self._round.launch()
        return float(self._change.sum())


class BlasRounds:
    """The same iteration by a library's product: NumPy's BLAS on all CPU threads, or cuBLAS through CuPy."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self.ranks = namespace(matrix).full(len(matrix), 1 / len(matrix), np.float32)

    def __call__(self) -> float:
        """Do one iteration; return its change in the 1-norm."""
        before, self.ranks = self.ranks, self._matrix @ self.ranks
        return float(abs(before - self.ranks).sum())
