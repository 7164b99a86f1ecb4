"""Graphs from CSR or CSC arrays; the vertices are 0..n-1."""

from __future__ import annotations

from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.types.arrays import synchronize
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges

__all__ = ["adjacency_of"]


def adjacency_of(compressed: Compressed, *, by_target: bool) -> Adjacency:
    """Return the graph of a valid CSR or, with `by_target`, CSC, without a copy; dtypes are those of `Compressed`."""
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
