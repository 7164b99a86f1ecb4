"""NetworKit's own PageRank, on all cores.

`NoSinkHandling` leads to the same ranks in four to nine times the iterations where there are sinks. Ids must be int64:
int32 ends the process.
"""

from __future__ import annotations

from typing import Any

import networkit as nk
import numpy as np
import pandas as pd
from networkit.centrality import Norm, PageRank, SinkHandling

from benchmarks.peers._factorize import by_arrow

__all__ = ["THREADS", "build", "rank"]

THREADS = None


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Factorize the ids and make a graph, in which parallel edges count each."""
    source, target, ids = by_arrow(edges)
    pairs = source.astype(np.int64, copy=False), target.astype(np.int64, copy=False)
    return ids, nk.GraphFromCoo(pairs, n=len(ids), directed=True)


def rank(graph: Any, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Step until the change in L1 is at most tol; the ranks of sinks go to all vertices."""
    steps = PageRank(graph, damp=alpha, tol=tol, distributeSinks=SinkHandling.DistributeSinks)
    steps.norm = Norm.L1_NORM
    steps.run()
    return np.array(steps.scores()), steps.numberOfIterations()
