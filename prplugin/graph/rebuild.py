"""Addition and removal of edges in device memory by one copy of all edges. Changes are in host memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from prplugin.cpu.sorting import run_starts
from prplugin.graph.adjacency import Adjacency, endpoints_by_target
from prplugin.graph.changes import ChangeError, apply_duplicates
from prplugin.graph.dedup import concatenated, oriented, reversed_edges, with_reverse_edges
from prplugin.types.arrays import namespace, to_host
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

__all__ = ["RebuiltEdges"]


@dataclass
class RebuiltEdges:
    """Edges with the operations of `prplugin.graph.update.ChangingEdges`; each update allocates new arrays.

    The in-edges of a vertex are in the order in which they were added.

    `n`: Number of vertices.
    `positions`: New positions of the vertices of the stored graph, ascending; None if they are unchanged.
    """

    _adjacency: Adjacency
    n: int
    positions: Integers | None = None
    roundings: int = 0
    references: ClassVar[None] = None
    """Decaying weights require the host."""

    @property
    def m(self) -> int:
        """Number of edges."""
        return self._adjacency.m

    @property
    def gpu(self) -> Any:
        """The GPU that holds the edges, a context manager; None on the host."""
        return self._adjacency.gpu

    def adjacency(self) -> Adjacency:
        """Return the current graph."""
        return self._adjacency

    def with_vertices(self, n: int, positions: Integers | None) -> RebuiltEdges:
        """Return the edges of a graph extended to n vertices, to plan a change of them."""
        return replace(self, n=n, positions=positions)

    def plan(self, added: Edges, removed: Edges, duplicates: str, *, directed: bool) -> Adjacency:
        """Return the changed graph; raise ChangeError if the change is invalid.

        Removed edges without weights match any weight.
        """
        from prplugin.gpu import splice  # imports CuPy, which holds the edges

        present = self._with_positions()
        removed = removed if directed else oriented(removed)

        def have_edge(pairs: Edges) -> Any:
            return _find(present, replace(pairs, weights=None)) >= 0

        added, replaced = apply_duplicates(added, removed, duplicates, self.n, have_edge, directed=directed)
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
            added = with_reverse_edges(added)
        none = replace(added.take(slice(0)), extent=self._adjacency.edges.extent)
        return _grouped(splice.spliced(present, np.concatenate(entries), added), concatenated(none, added).extent)

    def commit(self, plan: Adjacency) -> None:
        """Make a planned change visible."""
        self._adjacency, self.positions = plan, None

    def _with_positions(self) -> Compressed:
        """Return the in-edges, with the new positions of their vertices."""
        offsets, sources, weights = self._adjacency.csc
        if self.n > self._adjacency.n:
            xp = namespace(sources)
            positions = xp.arange(self._adjacency.n) if self.positions is None else self.positions
            offsets = offsets[xp.searchsorted(positions, xp.arange(self.n + 1))]
            sources = positions[sources]
        return Compressed(offsets, sources.astype(index_dtype(self.n), copy=False), weights)


def _find(present: Compressed, wanted: Edges) -> Integers:
    """Return a different entry of a CSC for each wanted edge, or -1; without weights, any edge of its pair matches.

    The first matching entries are assigned; if there are too few, the last wanted edges get -1.
    """
    from prplugin.gpu import splice  # imports CuPy, which holds the edges

    if not wanted.m:
        return np.empty(0, np.int64)
    columns = [column for column in (wanted.weights, wanted.source, wanted.destination) if column is not None]
    order = np.lexsort(columns)
    starts = run_starts(*(column[order] for column in columns))
    nth = np.empty(wanted.m, np.int64)
    nth[order] = np.arange(wanted.m) - np.maximum.accumulate(np.where(starts, np.arange(wanted.m), 0))
    return splice.find_edges(present, wanted, nth)


def _grouped(present: Compressed, extent: tuple[float, float]) -> Adjacency:
    """Return the graph of a CSC; raise ChangeError if an out-weight overflows."""
    offsets, sources, weights = present
    edge_list = partial(endpoints_by_target, offsets, sources)
    built = Adjacency(Edges(*edge_list(), weights, offsets.size - 1, extent))
    overflowing = built.overflowing_vertices()
    if overflowing.size:
        raise ChangeError("overflow", overflowing)
    return Adjacency(GroupedEdges(present, built.out_weight, edge_list, built.out_weight_depth, extent))
