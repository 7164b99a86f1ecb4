"""Repeated pairs of vertices, and the reverse edges of undirected graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from prplugin.cpu.sorting import packs, run_starts, stable_order
from prplugin.errors import InvalidEdgesError, PageRankError, RefusedRows, counted, listed, refusal
from prplugin.options import Duplicates
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import is_host, namespace
from prplugin.types.edges import ANY, Coo, Integers

MOST_PAIRED = 1 << 32  # number of vertices up to which a pair of positions fits in 64 bits


def drop_duplicates(edges: Coo, duplicates: Duplicates, *, directed: bool) -> Coo:
    """Keep the first or the last row of each pair, in the order of the frame, or raise for repeated pairs.

    "sum" keeps every row. If not `directed`, (a, b) and (b, a) are one pair.

    Raises InvalidEdgesError: with ``duplicates="error"``, if a pair has more than one row.
    """
    if duplicates == "sum":
        return edges
    xp = namespace(edges.source)
    if not is_host(edges.source) and edges.n <= MOST_PAIRED:
        from prplugin.gpu import dedup  # imports CuPy, which holds the edges

        marks, count = dedup.mark_repeated(edges, last=duplicates == "last", directed=directed)
        if duplicates == "error" and count:
            raise _repeated(xp.flatnonzero(marks))
        return dedup.drop_marked(edges, marks, count) if count else edges
    order, starts = _by_pair(edges if directed else oriented(edges))
    if duplicates == "error" and not starts.all():
        raise _repeated(xp.sort(order[~starts]))
    if duplicates == "last":
        starts = xp.roll(starts, -1)  # the last row of each pair
    return edges.take(xp.sort(order[starts]))


def with_reverse_edges(edges: Coo) -> Coo:
    """Append the reverse of each edge that is not a self-loop."""
    loops = edges.source == edges.destination
    chosen = namespace(loops).flatnonzero(~loops) if loops.any() else slice(None)
    return replace(concatenated(edges, reversed_edges(edges), chosen), extent=edges.extent)


def pair_keys(edges: Coo, n: int) -> Integers:
    """Return an int64 for each edge that identifies its pair of vertices; n * n is less than 2**63."""
    return edges.source.astype(np.int64) * n + edges.destination


def oriented(edges: Coo) -> Coo:
    """Orient each edge from its lower to its higher vertex."""
    xp = namespace(edges.source)
    low, high = xp.minimum(edges.source, edges.destination), xp.maximum(edges.source, edges.destination)
    return replace(edges, source=low, destination=high)


def reversed_edges(edges: Coo) -> Coo:
    """Return the reverse of each edge."""
    return replace(edges, source=edges.destination, destination=edges.source)


def concatenated(first: Coo, second: Coo, chosen: Integers | slice = slice(None)) -> Coo:
    """Concatenate the first edges and the chosen of the second, with weights and times if both have them."""
    joined: dict[str, Any] = {  # the chosen of one column at a time, the widest first, which bounds the peak of memory
        name: None if (one := getattr(first, name)) is None or (other := getattr(second, name)) is None
        else namespace(one).concatenate([one, other[chosen]])
        for name in ("weights", "times", "source", "destination")
    }  # fmt: skip
    return replace(first, **joined, extent=joint_extent(first.extent, second.extent))


def joint_extent(*extents: tuple[float, float]) -> tuple[float, float]:
    """Return the extent of the weights of several sets of edges; see `Coo`."""
    filled = [extent for extent in extents if extent[1] > 0] or [ANY]  # 0: no weight above 0
    return min(low for low, _ in filled), max(high for _, high in filled)


def _repeated(rows: Integers) -> PageRankError:
    return refusal(InvalidEdgesError, RefusedRows(_pairs, rows.size, rows[:5].tolist(), []))


def _pairs(repeated: RefusedRows) -> str:
    return (
        f"{counted(repeated.count, 'row')} of the edge frame {'repeats' if repeated.count == 1 else 'repeat'} "
        f"a pair of vertices that an earlier row has: {listed(repeated.padded(repeated.rows))} (counted from 0). "
        "Drop them, or pass duplicates='sum', 'first' or 'last'."
    )


def _by_pair(edges: Coo) -> tuple[Integers, Booleans]:
    """Sort rows by pair, stably; return the permutation, and a mask of the sorted rows in which a pair starts."""
    if packs(edges.n * edges.n, edges.m):
        order = stable_order(pair_keys(edges, edges.n))
    else:
        order = stable_order(edges.destination)
        order = order[stable_order(edges.source[order])]
    return order, run_starts(edges.source[order], edges.destination[order])
