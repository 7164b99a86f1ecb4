"""NetworkX, of small graphs alone: its PageRank is a SciPy loop, its graph one of Python's dictionaries.

Parallel edges are summed into weights first: a third of the time of a `MultiDiGraph`.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

__all__ = ["MOST_EDGES", "THREADS", "build", "rank"]

THREADS = 1
MOST_EDGES = 2_000_000


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Make a graph of the ids as they are."""
    counts = edges.groupby(["src", "dst"], sort=False).size().reset_index(name="weight")
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(zip(*(counts[name].tolist() for name in counts), strict=True))
    return list(graph), graph


def rank(graph: Any, alpha: float, tol: float) -> tuple[np.ndarray, None]:
    """Step until the change in L1 is less than n * (tol / n)."""
    ranks = nx.pagerank(graph, alpha=alpha, tol=tol / len(graph), max_iter=10_000)
    return np.fromiter(ranks.values(), float, len(ranks)), None
