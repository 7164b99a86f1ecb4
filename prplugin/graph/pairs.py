"""What becomes of a row when another names the same pair of vertices, and of a row in an undirected graph."""

from __future__ import annotations

import numpy as np

from prplugin.errors import InvalidEdgesError, counted, listed
from prplugin.graph.adjacency import packs, stable_order
from prplugin.graph.arrays import namespace
from prplugin.graph.edges import Edges, Floats, Integers
from prplugin.options import Duplicates

__all__ = ["both_ways", "one_edge_a_pair"]


def one_edge_a_pair(edges: Edges, duplicates: Duplicates, *, directed: bool) -> Edges:
    """Keep the first or the last row of each pair, or refuse repeated pairs; "sum" keeps every row.

    Parameters
    ----------
    edges : Edges
        The rows of the frame, in its order, which the result keeps.
    directed : bool
        False: (a, b) and (b, a) are one pair.

    Raises
    ------
    InvalidEdgesError
        With ``duplicates="error"``, where a pair has more than one row.
    """
    if duplicates == "sum":
        return edges
    tails, heads = edges.source, edges.destination
    xp = namespace(tails)
    if not directed:
        tails, heads = xp.minimum(tails, heads), xp.maximum(tails, heads)
    order, starts = _by_pair(tails, heads, edges.n)
    if duplicates == "error" and not starts.all():
        repeats = xp.sort(order[~starts])
        raise InvalidEdgesError(
            f"{counted(repeats.size, 'row')} of the edge frame {'repeats' if repeats.size == 1 else 'repeat'} "
            f"a pair of vertices that an earlier row has: {listed(repeats)} (counted from 0). "
            "Drop them, or pass duplicates='sum', 'first' or 'last'."
        )
    if duplicates == "last":
        starts = xp.concatenate([starts[1:], starts[:1]])  # where a pair ends: before the next, and at the end
    return _rows(edges, xp.sort(order[starts]))


def both_ways(edges: Edges) -> Edges:
    """Add to each row its reverse; a self-loop counts once."""
    xp = namespace(edges.source)
    back = xp.flatnonzero(edges.source != edges.destination)
    weights = edges.weights
    return Edges(
        xp.concatenate([edges.source, edges.destination[back]]),
        xp.concatenate([edges.destination, edges.source[back]]),
        None if weights is None else xp.concatenate([weights, weights[back]]),
        edges.n,
    )


def _by_pair(tails: Integers, heads: Integers, n: int) -> tuple[Integers, Integers]:
    """Sort rows by pair, stably; also say where in that order each pair starts."""
    xp = namespace(tails)
    if packs(n * n, tails.size):
        order = stable_order(tails.astype(np.int64) * n + heads)
    else:
        order = stable_order(heads)
        order = order[stable_order(tails[order])]
    starts = xp.ones(order.size, np.bool_)
    starts[1:] = (xp.diff(tails[order]) != 0) | (xp.diff(heads[order]) != 0)
    return order, starts


def _rows(edges: Edges, rows: Integers) -> Edges:
    weights: Floats | None = None if edges.weights is None else edges.weights[rows]
    return Edges(edges.source[rows], edges.destination[rows], weights, edges.n)
