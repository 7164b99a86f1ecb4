"""PageRank of graph_mate, in float32, on all cores.

It drops the rank of dangling vertices. Divided by their sum, its ranks converge to the correct ones, after more
iterations, up to a few 1e-7 of float32 rounding.
"""

from __future__ import annotations

from typing import Any

import graph_mate
import numpy as np
import pandas as pd

from benchmarks.peers._factorize import by_arrow

THREADS = None
MOST_EDGES = 5_000_000


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Factorize the ids and build a graph in which every parallel edge counts."""
    source, target, ids = by_arrow(edges)
    return ids, graph_mate.DiGraph.from_numpy(np.column_stack([source, target]).astype(np.uint32))


def rank(graph: Any, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Iterate until the change is at most tol."""
    result = graph.page_rank(max_iterations=10_000, tolerance=tol, damping_factor=alpha)
    ranks = result.scores().astype(float)
    return ranks / ranks.sum(), result.ran_iterations
