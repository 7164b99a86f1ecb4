"""Edges in GPU memory that are added and removed by a copy of all edges. The arrays may be NumPy's as well.

An update takes a few passes over the edges, and groups them by target as the construction of a graph does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from prplugin.cpu.sorting import stable_order
from prplugin.graph.adjacency import Adjacency, endpoints_by_target
from prplugin.graph.dedup import concatenated, oriented, pair_keys, reversed_edges, with_reverse_edges
from prplugin.graph.update import ChangeError
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

__all__ = ["RebuiltEdges"]


@dataclass
class RebuiltEdges:
    """Edges with the operations of `prplugin.graph.update.ChangingEdges`, each update of which makes new arrays.

    The in-edges of a vertex are in the order in which they were added.

    `n`: Number of vertices.
    `positions`: New positions of the vertices of the stored graph, ascending; None if they are unchanged.
    """

    _adjacency: Adjacency
    n: int
    positions: Integers | None = None
    roundings: int = 0
    references: ClassVar[None] = None
    """Weights that decay are on the host."""

    @property
    def m(self) -> int:
        """Number of edges."""
        return self._adjacency.m

    @property
    def gpu(self) -> Any:
        """The GPU that holds the edges, a context manager; None on the host."""
        return self._adjacency.gpu

    def adjacency(self) -> Adjacency:
        """Return the graph in its present state."""
        return self._adjacency

    def with_vertices(self, n: int, positions: Integers | None) -> RebuiltEdges:
        """Return the edges of a graph of n vertices, of which the new ones have no edges, to plan a change of them."""
        return replace(self, n=n, positions=positions)

    def plan(self, added: Edges, removed: Edges, duplicates: str, *, directed: bool) -> Adjacency:
        """Return the changed graph; raise ChangeError if the change is invalid.

        Removed edges without weights may have any.
        """
        edges = self._edges()
        xp = namespace(edges.source)
        removed = removed if directed else oriented(removed)
        replaced: list[Integers] = []
        if duplicates != "sum" and added.m:
            pairs = added if directed else oriented(added)
            keys = [pair_keys(each, self.n) for each in (pairs, removed)]
            others = xp.flatnonzero(~xp.isin(keys[0], xp.asarray(keys[1])))
            rows, found = _find(edges, replace(pairs.take(others), weights=None))
            if duplicates == "error" and rows.size:
                raise ChangeError("repeated", others[found])
            if duplicates == "first":
                new = xp.ones(added.m, np.bool_)
                new[others[found]] = False
                added = added.take(new)
            else:
                replaced = [rows]
        rows, found = _find(edges, removed)
        if not found.all():
            raise ChangeError("missing", xp.flatnonzero(~found))
        rows = xp.concatenate([rows, *replaced])
        if not directed:
            # If any of several parallel edges may be removed, the weight of the one that is found selects its reverse.
            forth = edges.take(rows)
            back, _ = _find(edges, reversed_edges(forth.take(forth.source != forth.destination)))
            rows = xp.concatenate([rows, back])
        if rows.size:
            kept = xp.ones(edges.m, np.bool_)
            kept[rows] = False
            edges = edges.take(kept)
        if added.m:
            added = _as_type(added, edges.source.dtype)
            edges = concatenated(edges, added if directed else with_reverse_edges(added))
        return _grouped(edges)

    def commit(self, plan: Adjacency) -> None:
        """Make a planned change visible."""
        self._adjacency, self.positions = plan, None

    def _edges(self) -> Edges:
        """Return the edges by target, with the new positions of their vertices."""
        (offsets, sources, weights), extent = self._adjacency.csc, self._adjacency.edges.extent
        source, destination = endpoints_by_target(offsets, sources)
        if self.positions is not None:
            source, destination = self.positions[source], self.positions[destination]
        return _as_type(Edges(source, destination, weights, self.n, extent), index_dtype(self.n))


def _as_type(edges: Edges, dtype: np.dtype[Any]) -> Edges:
    """Return the edges with positions of an integer type."""
    source, destination = (end.astype(dtype, copy=False) for end in (edges.source, edges.destination))
    return replace(edges, source=source, destination=destination)


def _find(edges: Edges, wanted: Edges) -> tuple[Integers, Any]:
    """Find a different edge for each wanted one; return the rows of those found, and a mask of the wanted ones found.

    Of several edges that match, the first ones are found, and the last wanted ones are not. Without weights, any match.
    """
    xp = namespace(edges.source)
    if not wanted.m:
        return xp.empty(0, np.int64), xp.empty(0, np.bool_)
    # Most edges are excluded by one of their endpoints. The keys of all edges would take 8 bytes per edge, and more to
    # search for them.
    is_source, is_target = xp.zeros((2, edges.n), np.bool_)
    is_source[wanted.source] = is_target[wanted.destination] = True
    rows = xp.flatnonzero(is_source[edges.source] & is_target[edges.destination])
    keys, wanted_keys = (pair_keys(each, edges.n) for each in (edges.take(rows), wanted))
    ordered = xp.sort(wanted_keys)
    codes = xp.minimum(xp.searchsorted(ordered, keys), ordered.size - 1)
    matching = ordered[codes] == keys
    rows, codes, wanted_codes = rows[matching], codes[matching], xp.searchsorted(ordered, wanted_keys)
    if not rows.size:
        return rows, xp.zeros(wanted.m, np.bool_)
    if edges.weights is not None and wanted.weights is not None:
        weights, of_weights = xp.unique(xp.concatenate([edges.weights[rows], wanted.weights]), return_inverse=True)
        codes = codes * weights.size + of_weights[: rows.size]
        wanted_codes = wanted_codes * weights.size + of_weights[rows.size :]
    order, wanted_order = stable_order(codes), stable_order(wanted_codes)
    codes, ranked = codes[order], wanted_codes[wanted_order]
    nth = xp.empty(ranked.size, np.int64)  # number of each wanted edge among those of its code
    nth[wanted_order] = xp.arange(ranked.size) - xp.searchsorted(ranked, ranked)
    at = xp.searchsorted(codes, wanted_codes) + nth
    found = at < xp.searchsorted(codes, wanted_codes, side="right")
    return rows[order[at[found]]], found


def _grouped(edges: Edges) -> Adjacency:
    """Group edges by target, and keep no other copy; raise ChangeError if an out-weight overflows."""
    built = Adjacency(edges)
    csc, out_weight = built.csc, built.out_weight
    overflowing = built.overflowing_vertices()
    if overflowing.size:
        raise ChangeError("overflow", overflowing)
    edge_list = partial(endpoints_by_target, csc.offsets, csc.indices)
    return Adjacency(GroupedEdges(csc, out_weight, edge_list, built.out_weight_depth, edges.extent))
