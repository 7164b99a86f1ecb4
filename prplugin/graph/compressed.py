"""Graphs that come as compressed rows or columns, whose vertices are positions already."""

from __future__ import annotations

from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.types.arrays import settle
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges

__all__ = ["adjacency_of"]


def adjacency_of(compressed: Compressed, *, by_target: bool) -> Adjacency:
    """Make the graph of out-edges by source, or of in-edges by target.

    `compressed`: Valid, and of the types that `Adjacency` has. The graph keeps these arrays.
    """
    offsets, members, weights = compressed
    n = offsets.size - 1
    groups = rows_of(offsets, members.size)
    source, destination = (members, groups) if by_target else (groups, members)
    adjacency = Adjacency(Edges(source, destination, weights, n))
    if by_target:
        adjacency.csc = compressed
    else:
        adjacency.csr = compressed
    settle(adjacency.place)
    return adjacency
