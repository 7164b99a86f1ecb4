"""PageRank of igraph by PRPACK, which solves to float64 precision and has no tolerance.

igraph reads sorted pairs of Python integers fastest (R-MAT 18: 1.2 s; unsorted 3.3, as a NumPy array 7.5; with
parallel edges summed into weights 2.2).
"""

from __future__ import annotations

from typing import Any

import igraph
import numpy as np
import pandas as pd

from benchmarks.peers._factorize import by_arrow

THREADS = 1
TOLERANCE = False


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Factorize the ids and build a graph."""
    source, target, ids = by_arrow(edges)
    n = len(ids)
    order = np.argsort(source.astype(np.int64) * n + target)
    pairs = zip(source[order].tolist(), target[order].tolist(), strict=True)
    return ids, igraph.Graph(n, pairs, directed=True)


def rank(graph: Any, alpha: float, tol: float) -> tuple[np.ndarray, None]:
    """Solve; tol is ignored."""
    return np.array(graph.pagerank(damping=alpha)), None
