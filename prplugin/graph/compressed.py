"""Graphs that come as compressed rows or columns, whose vertices are positions already."""

from __future__ import annotations

from prplugin.graph.adjacency import Adjacency, Compressed
from prplugin.graph.arrays import namespace, settle
from prplugin.graph.edges import Edges, Integers, index_dtype

__all__ = ["adjacency_of"]


def adjacency_of(compressed: Compressed, *, by_target: bool) -> Adjacency:
    """Make the graph of out-edges by source, or of in-edges by target.

    Parameters
    ----------
    compressed : Compressed
        Valid, and of the types that `Adjacency` has. The graph keeps these arrays.
    """
    offsets, members, weights = compressed
    n = offsets.size - 1
    groups = _expanded(offsets, members.size)
    source, destination = (members, groups) if by_target else (groups, members)
    adjacency = Adjacency(Edges(source, destination, weights, n))
    if by_target:
        adjacency.csc = compressed
    else:
        adjacency.csr = compressed
    settle(adjacency.place)
    return adjacency


def _expanded(offsets: Integers, m: int) -> Integers:
    """Write the number of its row beside each of m entries."""
    xp, dtype = namespace(offsets), index_dtype(offsets.size - 1)
    if xp.__name__ == "numpy":
        groups: Integers = xp.repeat(xp.arange(offsets.size - 1, dtype=dtype), xp.diff(offsets))
        return groups
    # CuPy repeats by one number alone. An entry is in the row that is the last to begin at it or before.
    rows: Integers = (xp.searchsorted(offsets, xp.arange(m), side="right") - 1).astype(dtype)
    return rows
