"""Undirected edges, one row each: Algorithm 2 of Kim 2013 with its line 6."""

from __future__ import annotations

import numpy as np

from prplugin.types.edges import Coo, Integers

__all__ = ["rows_of_pairs"]


def rows_of_pairs(edges: Coo) -> tuple[Integers, Integers] | None:
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
