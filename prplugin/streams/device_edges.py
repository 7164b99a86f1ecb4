"""Addition and removal of edges in device memory by one copy of all edges. Changes are in host memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prplugin.cpu.sorting import run_starts, stable_order
from prplugin.graph.dedup import joint_extent, reversed_edges
from prplugin.graph.edges import Edges, sum_out_weight
from prplugin.streams.changes import ChangeError, apply_duplicates
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import expand_values, namespace, to_host
from prplugin.types.edges import Compressed, Coo, Csc, Integers, index_dtype


def changed(
    edges: Edges, n: int, positions: Integers | None, added: Coo, removed: Coo, duplicates: str, *,
    directed: bool,
) -> Edges:  # fmt: skip
    """Return a graph after edges are removed and added; raise ChangeError if the change is invalid.

    Removed edges without weights match any weight. In-edges of a vertex are in the order in which they were added.

    `positions`: Positions of the vertices of `edges` among the n of the change, ascending; None if they are unchanged.
    """
    from prplugin.gpu import splice  # imports CuPy, which holds the edges

    present = _extended(edges, n, positions)

    def have_edge(pairs: Coo) -> Booleans:
        return _find(present, replace(pairs, weights=None)) >= 0

    added, removed, replaced = apply_duplicates(added, removed, duplicates, n, have_edge, directed=directed)
    removals = [removed, replace(replaced, weights=None)]
    entries = [_find(present, each) for each in removals]
    if (entries[0] < 0).any():
        raise ChangeError("missing", np.flatnonzero(entries[0] < 0))
    if not directed:
        # If a removal matches any weight, the weight of the matched edge selects the reverse edge.
        for forth, found in zip(removals, tuple(entries), strict=True):
            weights = present.weights
            if weights is not None:
                weights = to_host(weights[namespace(weights).asarray(found)])
            back = reversed_edges(replace(forth, weights=weights))
            entries.append(_find(present, back.take(back.source != back.destination)))
    added = added.take(stable_order(added.destination))
    extent = joint_extent(edges.extent, added.extent)
    out_degrees = None if edges.weighted else expand_values(edges.out_weight, n, positions, 0.0)
    in_edges = splice.spliced(present, np.concatenate(entries), added, out_degrees)
    if out_degrees is None:
        out_weight, depth = sum_out_weight(in_edges.indices, in_edges.weights, n, extent)
    else:
        out_weight, depth = out_degrees, 0
    built = Edges.of_in_edges(in_edges, out_weight, depth, extent)
    overflowing = built.overflowing_vertices()
    if overflowing.size:
        raise ChangeError("overflow", overflowing)
    return built


def _extended(adjacency: Edges, n: int, positions: Integers | None) -> Compressed:
    """Return the in-edges of a graph extended to n vertices, with the new positions of its vertices."""
    offsets, sources, weights = adjacency.get(Csc)
    if n > adjacency.n:
        xp = namespace(sources)
        positions = xp.arange(adjacency.n) if positions is None else positions
        offsets = offsets[xp.searchsorted(positions, xp.arange(n + 1))]
        sources = positions[sources]
    return Compressed(offsets, sources.astype(index_dtype(n), copy=False), weights)


def _find(present: Compressed, wanted: Coo) -> Integers:
    """Return a different entry of a CSC for each wanted edge, or -1; without weights, any edge of its pair matches.

    The first matching entries are assigned; if there are too few, the last wanted edges get -1.
    """
    from prplugin.gpu import splice  # imports CuPy, which holds the edges

    if not wanted.m:
        return np.empty(0, np.int64)
    columns = [column for column in (wanted.weights, wanted.source, wanted.destination) if column is not None]
    order = np.arange(wanted.m) if wanted.weights is None else np.argsort(wanted.weights, kind="stable")
    for endpoint in (wanted.source, wanted.destination):
        order = order[stable_order(endpoint[order])]
    starts = run_starts(*(column[order] for column in columns))
    nth = np.empty(wanted.m, np.int64)
    nth[order] = np.arange(wanted.m) - np.maximum.accumulate(np.where(starts, np.arange(wanted.m), 0))
    return splice.find_edges(present, wanted, nth)
