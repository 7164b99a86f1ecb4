"""Duplicates and errors of changes of edges, on the host and on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from prplugin.graph.dedup import oriented, pair_keys
from prplugin.types.edges import Edges, Integers


class ChangeError(Exception):
    """Invalid change.

    `kind`: "missing": edges to remove do not exist. "repeated": edges to add have a pair of vertices that has an edge.
    "underflow": the remaining edges of vertices are so much older than the removed ones that their weights underflow.
    "overflow": out-weights overflow float64.
    `positions`: Positions of the edges in the change, or of the vertices.
    """

    def __init__(self, kind: Literal["missing", "repeated", "underflow", "overflow"], positions: Integers) -> None:
        super().__init__(kind, positions)
        self.kind, self.positions = kind, positions


def apply_duplicates(
    added: Edges, removed: Edges, duplicates: str, n: int, have_edge: Callable[[Edges], Any], *, directed: bool
) -> tuple[Edges, Edges]:
    """Return the edges to add, and those to replace, of any weight, given pairs of vertices that keep an edge.

    `removed`: Edges that are removed before; `oriented` if the graph is undirected.
    `have_edge`: Returns a mask of the pairs of vertices that have an edge.
    """
    if duplicates == "sum" or not added.m:
        return added, added.take(slice(0))
    pairs = added if directed else oriented(added)
    found = have_edge(pairs) & ~np.isin(pair_keys(pairs, n), pair_keys(removed, n))
    if duplicates == "error" and found.any():
        raise ChangeError("repeated", np.flatnonzero(found))
    if duplicates == "first":
        return added.take(~found), added.take(slice(0))
    return added, replace(pairs.take(found), weights=None, times=None)
