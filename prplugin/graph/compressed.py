"""Graphs from CSR or CSC arrays, whose vertices are positions."""

from __future__ import annotations

from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.types.arrays import synchronize
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges

__all__ = ["adjacency_of"]


def adjacency_of(compressed: Compressed, *, by_target: bool) -> Adjacency:
    """Return the graph of a valid CSR or, with `by_target`, CSC; it keeps these arrays, of the types of `Adjacency`."""
    offsets, members, weights = compressed
    groups = rows_of(offsets, members.size)
    source, destination = (members, groups) if by_target else (groups, members)
    adjacency = Adjacency(Edges(source, destination, weights, offsets.size - 1))
    if by_target:
        adjacency.csc = compressed
    else:
        adjacency.csr = compressed
    synchronize(adjacency.memory_space)
    return adjacency
