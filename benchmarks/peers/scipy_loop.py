"""Power iteration as usually written: `pandas.factorize`, a compressed SciPy matrix, NumPy vectors, all in float64.

Compressed columns, or a matrix with the values 1 / out-degree, take as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

from benchmarks.peers._factorize import Factorized, by_pandas

THREADS = 1


class Matrix(NamedTuple):
    """In-edges by target; 1 / out-degree, or 0; and the dangling vertices."""

    edges: Any
    inverse: np.ndarray
    dangling: np.ndarray


def build(edges: pd.DataFrame) -> tuple[Any, Matrix]:
    """Factorize the ids and compress the edges by target; parallel edges are summed."""
    source, target, ids = factorized = by_pandas(edges)
    n = len(ids)
    matrix = scipy.sparse.csr_array((np.ones(len(source)), (target, source)), shape=(n, n))
    return ids, with_out_degrees(matrix, factorized)


def with_out_degrees(matrix: Any, factorized: Factorized) -> Matrix:
    """Return the matrix with the inverse out-degrees and the dangling vertices."""
    source, _, ids = factorized
    out = np.bincount(source, minlength=len(ids)).astype(float)
    return Matrix(matrix, np.divide(1, out, out=np.zeros(out.size), where=out > 0), np.flatnonzero(out == 0))


def rank(matrix: Matrix, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Iterate until alpha / (1 - alpha) times the change in L1 is at most tol."""
    edges, inverse, dangling = matrix
    n, passes = inverse.size, 0
    x = np.full(n, 1 / n)
    while True:
        y = alpha * (edges @ (x * inverse)) + (alpha * x[dangling].sum() + 1 - alpha) / n
        passes += 1
        if alpha / (1 - alpha) * np.abs(y - x).sum() <= tol:
            return y, passes
        x = y
