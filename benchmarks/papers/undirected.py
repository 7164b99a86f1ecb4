"""Undirected edges, one row each: Algorithm 2 of Kim 2013 with its line 6."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from prplugin.gpu import runtime
from prplugin.types.edges import Edges, Integers

__all__ = ["UndirectedPush", "rows_of_pairs"]

FILE = str(Path(__file__).with_name("undirected.cu"))


def rows_of_pairs(edges: Edges) -> tuple[Integers, Integers] | None:
    """Return one row per undirected edge of a host graph with a row per direction; None if the graph is directed."""
    source, target = edges.source, edges.destination
    forward, backward = source <= target, source > target
    if np.count_nonzero(source < target) != np.count_nonzero(backward):
        return None
    ends, others = source[forward], target[forward]
    loops = ends == others
    keys = np.sort(ends[~loops].astype(np.int64) * edges.n + others[~loops])
    if not np.array_equal(keys, np.sort(target[backward].astype(np.int64) * edges.n + source[backward])):
        return None
    return ends, others


class UndirectedPush:
    """Adds the terms of both directions of each undirected edge to the sums.

    Parameters
    ----------
    ends, others : device arrays
        Endpoints, one row per undirected edge.
    largest_degree : int
    blocks, threads : int
        Launch configuration.
    """

    def __init__(self, ends: Any, others: Any, largest_degree: int, *, blocks: int, threads: int) -> None:
        self.rounding_depth = largest_degree
        self._ends, self._others, self._launch = ends, others, ((blocks,), (threads,))

    def __call__(self, contributions: Any, row_sums: Any) -> None:
        """Compute the sum of each vertex."""
        types = {"index_t": runtime.ctype(self._ends.dtype), "real_t": runtime.ctype(contributions.dtype)}
        row_sums.fill(0.0)
        runtime.kernel(FILE, "edge_push_both", **types)(
            *self._launch, (self._ends.size, self._ends, self._others, contributions, row_sums)
        )
