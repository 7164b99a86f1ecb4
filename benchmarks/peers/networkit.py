"""PageRank of NetworKit, on all cores.

`NoSinkHandling` needs four to nine times the iterations for the same ranks on graphs with sinks. Ids must be int64:
int32 crashes the process.
"""

from __future__ import annotations

from typing import Any

import networkit as nk
import numpy as np
import pandas as pd
from networkit.centrality import Norm, PageRank, SinkHandling

from benchmarks.peers._factorize import by_arrow

THREADS = None


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Factorize the ids and build a graph in which every parallel edge counts."""
    source, target, ids = by_arrow(edges)
    pairs = source.astype(np.int64, copy=False), target.astype(np.int64, copy=False)
    return ids, nk.GraphFromCoo(pairs, n=len(ids), directed=True)


def rank(graph: Any, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Iterate until the L1 change is at most tol; the rank of sinks is distributed uniformly."""
    steps = PageRank(graph, damp=alpha, tol=tol, distributeSinks=SinkHandling.DistributeSinks)
    steps.norm = Norm.L1_NORM
    steps.run()
    return np.array(steps.scores()), steps.numberOfIterations()
