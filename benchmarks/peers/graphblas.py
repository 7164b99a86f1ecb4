"""Power iteration in python-graphblas, on SuiteSparse:GraphBLAS and all cores.

The matrix is built from SciPy's compressed rows, which sum parallel edges faster than `Matrix.from_coo` (R-MAT 18:
0.3 s instead of 0.5 to 0.9).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import graphblas as gb
import numpy as np
import pandas as pd
import scipy.sparse

from benchmarks.peers._factorize import by_arrow

THREADS = None


class Graph(NamedTuple):
    """In-edges by target; 1 / out-degree; indicator vector of the dangling vertices."""

    edges: Any
    inverse: Any
    dangling: Any


def build(edges: pd.DataFrame) -> tuple[Any, Graph]:
    """Factorize the ids and compress the edges by target."""
    source, target, ids = by_arrow(edges)
    n = len(ids)
    matrix = scipy.sparse.csr_array((np.ones(len(source)), (target, source)), shape=(n, n))
    out = np.bincount(source, minlength=n)
    inverse = np.divide(1, out, out=np.zeros(n), where=out > 0)
    dangling = gb.Vector.from_coo(np.flatnonzero(out == 0), 1.0, size=n)
    return ids, Graph(gb.io.from_scipy_sparse(matrix), gb.Vector.from_dense(inverse), dangling)


def rank(graph: Graph, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Iterate until alpha / (1 - alpha) times the change in L1 is at most tol."""
    edges, inverse, dangling = graph
    n, passes = inverse.size, 0
    scaled = (alpha * inverse).new()
    x, y, contributions = gb.Vector(float, n), gb.Vector(float, n), gb.Vector(float, n)
    x << 1 / n
    while True:
        lost = gb.semiring.plus_times(x @ dangling).new().get(0.0)
        contributions << gb.binary.times(x & scaled)
        y << (alpha * lost + 1 - alpha) / n
        y(gb.binary.plus) << gb.semiring.plus_times(edges @ contributions)
        x << gb.binary.minus(x & y)
        x << gb.unary.abs(x)
        change = x.reduce(gb.monoid.plus).new().get(0.0)
        passes += 1
        if alpha / (1 - alpha) * change <= tol:
            return y.to_dense(), passes
        x, y = y, x
