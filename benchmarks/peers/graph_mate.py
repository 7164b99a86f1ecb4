"""graph_mate's own PageRank, in float32, on all cores.

It drops the rank of vertices without out-edges. Divided by their sum its ranks are right, after more iterations, to the
few 1e-7 that float32 leaves.
"""

from __future__ import annotations

from typing import Any

import graph_mate
import numpy as np
import pandas as pd

from benchmarks.peers._factorize import by_arrow

__all__ = ["MOST_EDGES", "THREADS", "build", "rank"]

THREADS = None
MOST_EDGES = 5_000_000


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Factorize the ids and make a graph, in which parallel edges count each."""
    source, target, ids = by_arrow(edges)
    return ids, graph_mate.DiGraph.from_numpy(np.column_stack([source, target]).astype(np.uint32))


def rank(graph: Any, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Step until the change is at most tol."""
    result = graph.page_rank(max_iterations=10_000, tolerance=tol, damping_factor=alpha)
    ranks = result.scores().astype(float)
    return ranks / ranks.sum(), result.ran_iterations
