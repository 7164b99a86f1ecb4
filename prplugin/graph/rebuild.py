"""Edges in GPU memory that are added and removed by one copy of all edges. The arrays may be NumPy's as well."""

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
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype, offset_dtype

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
        present = self._with_positions()
        xp = namespace(present.indices)
        removed = removed if directed else oriented(removed)
        replaced: list[Integers] = []
        if duplicates != "sum" and added.m:
            pairs = added if directed else oriented(added)
            keys = [pair_keys(each, self.n) for each in (pairs, removed)]
            others = xp.flatnonzero(~xp.isin(keys[0], xp.asarray(keys[1])))
            entries, found = _find(present, replace(pairs.take(others), weights=None))
            if duplicates == "error" and entries.size:
                raise ChangeError("repeated", others[found])
            if duplicates == "first":
                new = xp.ones(added.m, np.bool_)
                new[others[found]] = False
                added = added.take(new)
            else:
                replaced = [entries]
        entries, found = _find(present, removed)
        if not found.all():
            raise ChangeError("missing", xp.flatnonzero(~found))
        entries = xp.concatenate([entries, *replaced])
        if not directed:
            # If any of several parallel edges may be removed, the weight of the one that is found selects its reverse.
            forth = _entries(present, entries)
            back, _ = _find(present, reversed_edges(forth.take(forth.source != forth.destination)))
            entries = xp.concatenate([entries, back])
            added = with_reverse_edges(added)
        none = replace(added.take(slice(0)), extent=self._adjacency.edges.extent)
        return _grouped(_spliced(present, entries, added), concatenated(none, added).extent)

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


def _entries(present: Compressed, entries: Integers) -> Edges:
    """Return the edges at some entries of a CSC."""
    offsets, sources, weights = present
    target = namespace(offsets).searchsorted(offsets, entries, side="right") - 1
    return Edges(sources[entries], target, None if weights is None else weights[entries], offsets.size - 1)


def _find(present: Compressed, wanted: Edges) -> tuple[Integers, Any]:
    """Find a different edge for each wanted one; return the entries found, and a mask of the wanted ones found.

    Of several edges that match, the first ones are found, and the last wanted ones are not. Without weights, any match.
    """
    xp = namespace(present.indices)
    if not wanted.m:
        return xp.empty(0, np.int64), xp.empty(0, np.bool_)
    # The rows of the wanted targets, without the edges from other sources.
    targets = xp.unique(wanted.destination)
    begins, ends = present.offsets[targets], present.offsets[targets + 1]
    past = (ends - begins).cumsum(dtype=np.int64)
    row = xp.searchsorted(past, xp.arange(int(past[-1])), side="right")
    entries = xp.arange(row.size) + (ends - past)[row]
    is_source = xp.zeros(present.offsets.size - 1, np.bool_)
    is_source[wanted.source] = True
    entries = entries[is_source[present.indices[entries]]]
    candidates = _entries(present, entries)
    keys, wanted_keys = (pair_keys(each, candidates.n) for each in (candidates, wanted))
    ordered = xp.sort(wanted_keys)
    codes = xp.minimum(xp.searchsorted(ordered, keys), ordered.size - 1)
    matching = ordered[codes] == keys
    entries, codes, wanted_codes = entries[matching], codes[matching], xp.searchsorted(ordered, wanted_keys)
    if not entries.size:
        return entries, xp.zeros(wanted.m, np.bool_)
    if present.weights is not None and wanted.weights is not None:
        weights = xp.concatenate([present.weights[entries], wanted.weights])
        weights, of_weights = xp.unique(weights, return_inverse=True)
        codes = codes * weights.size + of_weights[: entries.size]
        wanted_codes = wanted_codes * weights.size + of_weights[entries.size :]
    order, wanted_order = stable_order(codes), stable_order(wanted_codes)
    codes, ranked = codes[order], wanted_codes[wanted_order]
    nth = xp.empty(ranked.size, np.int64)  # number of each wanted edge among those of its code
    nth[wanted_order] = xp.arange(ranked.size) - xp.searchsorted(ranked, ranked)
    at = xp.searchsorted(codes, wanted_codes) + nth
    found = at < xp.searchsorted(codes, wanted_codes, side="right")
    return entries[order[at[found]]], found


def _spliced(present: Compressed, removed: Integers, added: Edges) -> Compressed:
    """Return a CSC without some entries, and with added edges after the last entry of their row."""
    offsets, sources, weights = present
    xp = namespace(sources)
    removed, added = xp.sort(removed), added.take(stable_order(added.destination))
    m = sources.size - removed.size + added.m
    # The old entry that each added one precedes, the entry that it becomes, and the one that a removed one would be.
    before = offsets[added.destination + 1]
    added_at = before - xp.searchsorted(removed, before) + xp.arange(added.m)
    removed_at = removed - xp.arange(removed.size) + xp.searchsorted(before, removed, side="right")
    # Entry j of the result is the old entry of number sum(steps[: j + 1]) - 1, or an added one.
    m = sources.size - removed.size + added.m
    steps = xp.ones(m + 1, offset_dtype(sources.size + added.m))
    steps[added_at] = 0
    skipping, counts = xp.unique(removed_at, return_counts=True)
    steps[skipping] += counts.astype(steps.dtype)
    entries = xp.cumsum(steps[:m], dtype=steps.dtype)
    entries -= 1
    entries[added_at] = xp.arange(sources.size, sources.size + added.m)
    if weights is not None:
        weights = xp.concatenate([weights, added.weights])[entries]
    offsets = offsets - xp.searchsorted(removed, offsets) + xp.searchsorted(added.destination, xp.arange(offsets.size))
    sources = xp.concatenate([sources, added.source.astype(sources.dtype, copy=False)])[entries]
    return Compressed(offsets.astype(np.result_type(present.offsets, offset_dtype(m)), copy=False), sources, weights)


def _grouped(present: Compressed, extent: tuple[float, float]) -> Adjacency:
    """Return the graph of a CSC; raise ChangeError if an out-weight overflows."""
    offsets, sources, weights = present
    edge_list = partial(endpoints_by_target, offsets, sources)
    built = Adjacency(Edges(*edge_list(), weights, offsets.size - 1, extent))
    overflowing = built.overflowing_vertices()
    if overflowing.size:
        raise ChangeError("overflow", overflowing)
    return Adjacency(GroupedEdges(present, built.out_weight, edge_list, built.out_weight_depth, extent))
