"""Addition and removal of edges in place: compressed rows in any order in a buffer with spare capacity.

A changed row is appended to the buffer, and its old entries remain. The cost of a change is therefore proportional to
the size of the changed rows, and the change becomes visible at once when the positions of these rows are replaced. The
rows are copied to a new buffer, in order, when the buffer is full or CSR is needed. In-edges are not stored: a method
that needs them groups the out-edges by target.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.sums import compensated_sums
from prplugin.graph.dedup import concatenated, reversed_edges
from prplugin.graph.edges import Edges
from prplugin.machine import this_machine
from prplugin.numerics import compensated_depth
from prplugin.streams.changes import ChangeError, apply_duplicates
from prplugin.streams.decay import MAX_EXPONENT, MIN_OUT_WEIGHT, ZERO_EXPONENT, ScaledWeights, roundings_of
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import expand_values
from prplugin.types.edges import ANY, Compressed, Coo, Csr, Floats, Integers, index_dtype

SPARE_FRACTION = 1 / 2  # spare capacity of a buffer for changed rows, as a fraction of its entries


@dataclass(eq=False, repr=False)
class _RowBuffer:
    """Rows of a sparse matrix in a buffer with spare capacity.

    Row v holds ``indices[begins[v]:ends[v]]`` and the weights at the same positions.
    """

    begins: Integers
    ends: Integers
    indices: Integers
    weights: Floats | None
    used: int  # number of entries that hold current and previous versions of rows

    def with_capacity(self, needed: int, dtype: np.dtype[np.generic] | None = None) -> Self:
        """Return rows with capacity for `needed` more entries.

        The rows are copied to a new buffer, in order, if the capacity is insufficient or an index type is passed.
        """
        if dtype is None and self.used + needed <= self.indices.size:
            return self
        offsets = offsets_of(self.ends - self.begins)
        m = int(offsets[-1])
        size = m + needed + max(int(SPARE_FRACTION * m), 1024)
        indices = np.empty(size, self.indices.dtype if dtype is None else dtype)
        weights = None if self.weights is None else np.empty(size)
        kernels.compact_rows(
            self.begins, self.ends, self.indices, self.weights, offsets, indices, weights, this_machine().threads_for(m)
        )
        return replace(
            self, begins=offsets[:-1].copy(), ends=offsets[1:].copy(), indices=indices, weights=weights, used=m
        )

    def with_vertices(self, n: int, positions: Integers | None) -> Self:
        """Return rows extended to n vertices by vertices without edges; see `expand_values`."""
        rows = self if positions is None else self.with_capacity(0, index_dtype(n))
        if positions is not None:
            rows.indices[: rows.used] = positions.take(rows.indices[: rows.used])
        begins, ends = (expand_values(values, n, positions, 0) for values in (rows.begins, rows.ends))
        return replace(rows, begins=begins, ends=ends)


@dataclass(eq=False, repr=False)
class RowChanges:
    """A change whose rows have been written to the buffer, but which is not visible before `HostEdges.commit`."""

    rows: Integers  # the vertices whose out-edges change
    removed: Compressed  # edges to remove from each of these rows; `indices` are targets
    added: Compressed  # edges to add to each of them
    begins: Integers  # new positions of these rows in the buffer
    ends: Integers
    used: int  # buffer entries in use with them
    old_out_weight: Floats  # before the change; NaN where the reference exponent changes
    out_weight: Floats
    references: Integers | None  # new reference exponents
    count_change: int  # number of added edges minus number of removed edges
    roundings: int  # of the added weights


class HostEdges:
    """Out-edges of a graph in host memory, which are changed in place.

    `references`: Reference exponent of each vertex, if weights decay: see `prplugin.streams.decay`.
    """

    gpu = None

    def __init__(self, adjacency: Edges, references: Integers | None) -> None:
        """Copy the edges of a graph."""
        offsets, indices, weights = adjacency.get(Csr)
        rows = _RowBuffer(offsets[:-1], offsets[1:], indices, weights, indices.size)
        self.out_edges = rows.with_capacity(0, index_dtype(adjacency.n))
        self.out_weight: Floats = adjacency.out_weight.copy()
        self.roundings, self.frame_space = adjacency.roundings, adjacency.frame_space  # as in `Edges`
        self.weights_depth = adjacency.out_weight_depth - 2 * self.roundings  # rounding depth of sums of weights
        self.count = np.array([adjacency.m])  # an array, which one compiled call changes together with the rows
        self.references = None if references is None else references.copy()

    @property
    def m(self) -> int:
        """Number of edges."""
        return int(self.count[0])

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.out_weight.size

    @property
    def depth(self) -> int:
        """Upper bound of the roundings in alpha times a normalized weight times a rank."""
        return self.weights_depth + 2 * self.roundings + 5

    @cached_property
    def adjacency(self) -> Edges:
        """The current edges, for methods."""
        rows = self.out_edges = self.out_edges.with_capacity(0, self.out_edges.indices.dtype)
        weights = None if rows.weights is None else rows.weights[: rows.used]
        # Views that later changes do not alter, since these write behind them.
        csr = Compressed(np.append(rows.begins, rows.used), rows.indices[: rows.used], weights)
        extent = ANY if self.references is None else (ANY[0], 2.0**MAX_EXPONENT * 4)
        adjacency = Edges.of(
            csr, by_target=False, extent=extent, frame_space=self.frame_space, roundings=self.roundings
        )
        adjacency.set_out_weight(self.out_weight.copy(), self.weights_depth)
        return adjacency

    def with_vertices(self, n: int, positions: Integers | None) -> HostEdges:
        """Return the edges of a graph extended to n vertices by vertices without edges; see `expand_values`."""
        if n == self.n:
            return self
        extended = copy(self)
        extended.out_edges = self.out_edges.with_vertices(n, positions)
        extended.out_weight = expand_values(self.out_weight, n, positions, 0.0)
        extended.references = (
            None if self.references is None else expand_values(self.references, n, positions, ZERO_EXPONENT)
        )
        extended.count = self.count.copy()
        return extended

    def plan(self, added: Coo, removed: Coo, duplicates: str, *, directed: bool) -> RowChanges:
        """Write new versions of changed rows; raise ChangeError if the change is invalid.

        Removed edges without weights and times match any.
        """
        added, removed, replaced = apply_duplicates(
            added, removed, duplicates, self.n, self._have_edge, directed=directed
        )
        references = self._references_with(added)
        removals, given_rows = self._removals(removed, directed=directed)
        replacements, _ = self._removals(replaced, directed=directed)  # exist
        plan = self._rewrite(concatenated(removals, replacements), self._stored(added, references), given_rows)
        rows = plan.rows
        if references is not None:
            self._set_references(plan, references)
            underflowing = (plan.out_weight > 0) & (plan.out_weight < MIN_OUT_WEIGHT)
            if underflowing.any():
                raise ChangeError("underflow", rows[underflowing])
        if not np.isfinite(plan.out_weight).all():
            raise ChangeError("overflow", rows[~np.isfinite(plan.out_weight)])
        return plan

    def commit(self, plan: RowChanges) -> None:
        """Make a planned change visible."""
        vars(self).pop("adjacency", None)
        if self.out_edges.weights is not None:
            self.weights_depth = max(self.weights_depth, compensated_depth(self.m + plan.count_change))
        self.out_edges.used, self.roundings = plan.used, max(self.roundings, plan.roundings)
        kernels.commit_rows(
            plan.rows, plan.begins, plan.ends, self.out_edges.begins, self.out_edges.ends,
            self.out_weight, plan.out_weight, self.references, plan.references, self.count, plan.count_change,
        )  # fmt: skip

    def _have_edge(self, pairs: Coo) -> Booleans:
        """Return a mask of the pairs of vertices that have an edge."""
        rows, found = self.out_edges, np.empty(pairs.m, np.bool_)
        source, destination = (end.astype(np.int64, copy=False) for end in (pairs.source, pairs.destination))
        kernels.find_pairs(source, destination, rows.begins, rows.ends, rows.indices, found)
        return found

    def _stored(self, edges: Coo, references: Integers | None) -> Coo:
        """Return edges with stored weights: NaN to match any weight, None in an unweighted graph."""
        weights, roundings = None, edges.roundings
        if self.out_edges.weights is not None:
            weights = np.full(edges.m, np.nan) if edges.weights is None else edges.weights
            if references is not None and edges.times is not None:
                weights = ScaledWeights.of(edges.weights, edges.times).stored(references.take(edges.source))
                roundings = roundings_of(edges.times)
        return replace(edges, weights=weights, times=None, roundings=roundings)

    def _removals(self, edges: Coo, *, directed: bool) -> tuple[Coo, Integers]:
        """Return edges to remove with stored weights, of an undirected graph both ways, and the row of each in `edges`.

        The reverse of an edge has the weight of its row, or that of the edge that was found if any weight matches.
        """
        forth, rows, references = self._stored(edges, self.references), np.arange(edges.m), self.references
        if directed:
            return forth, rows
        if edges.m and forth.weights is not None and edges.weights is None and edges.times is None:
            if references is not None:  # begin where the weight is not faint, if it is not in one direction
                swapped = references.take(edges.source) > references.take(edges.destination)
                ends = (edges.source, edges.destination), (edges.destination, edges.source)
                source, destination = (np.where(swapped, back, end) for end, back in zip(*ends, strict=True))
                forth = replace(forth, source=source, destination=destination)
            weights = np.empty(edges.m)
            plan = self._rewrite(forth, forth.take(slice(0)), rows)
            weights[_by_source(forth)] = plan.removed.weights
            forth = replace(forth, weights=weights)
            back = reversed_edges(forth)
            if references is not None:
                found = ScaledWeights.of_stored(weights, references.take(forth.source))
                back = replace(back, weights=found.stored(references.take(back.source)))
        else:
            back = self._stored(reversed_edges(edges), references)
        no_loops = np.flatnonzero(edges.source != edges.destination)
        return concatenated(forth, back, no_loops), np.append(rows, no_loops)

    def _set_references(self, plan: RowChanges, references: Integers) -> None:
        """Note new reference exponents in a plan, and divide the remaining old weights of their vertices."""
        assert self.references is not None
        before, plan.references = self.references[plan.rows], references[plan.rows]
        # Vertices of out-weight 0 have no weights to divide.
        changed = np.flatnonzero((before != plan.references) & (plan.old_out_weight > 0))
        if not changed.size:
            return
        plan.old_out_weight[changed] = np.nan
        weights, begins = self.out_edges.weights, plan.begins[changed]
        assert weights is not None
        sizes = plan.ends[changed] - begins
        old_sizes = sizes - np.diff(plan.added.offsets)[changed]
        group = np.repeat(np.arange(changed.size), sizes)
        place = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        terms = weights[begins[group] + place]
        old = place < old_sizes[group]
        of_old = changed[group[old]]
        terms[old] = ScaledWeights.of_stored(terms[old], before[of_old]).stored(plan.references[of_old])
        weights[begins[group] + place] = terms
        plan.out_weight[changed] = compensated_sums(group, terms, changed.size)[0]

    def _rewrite(self, removed: Coo, added: Coo, given_rows: Integers) -> RowChanges:
        """Write new versions of changed rows; return their plan, and the removed weights.

        Raises ChangeError if an edge to remove does not exist, with its entry in `given_rows`, whose other edges exist.
        """
        rows = np.unique(np.concatenate([removed.source, added.source], dtype=np.int64))
        buffer = self.out_edges.with_capacity(
            int((self.out_edges.ends[rows] - self.out_edges.begins[rows]).sum()) + added.m
        )
        self.out_edges = buffer
        order = _by_source(removed)
        removals = _grouped(removed.take(order), rows)
        additions = _grouped(added.take(np.argsort(added.source, kind="stable")), rows)
        found = np.zeros(removed.m, np.bool_)
        begins, ends, sums = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64), np.empty(rows.size)
        used = kernels.rewrite_rows(
            rows=rows, begins=buffer.begins, ends=buffer.ends, indices=buffer.indices, weights=buffer.weights,
            removed_at=removals.offsets, removed=removals.indices, removed_weights=removals.weights, found=found,
            added_at=additions.offsets, added=additions.indices, added_weights=additions.weights, at=buffer.used,
            new_begins=begins, new_ends=ends, sums=sums,
        )  # fmt: skip
        if not found.all():
            raise ChangeError("missing", np.unique(given_rows[order[~found]]))
        old_out_weight, count_change = self.out_weight[rows], added.m - removed.m
        return RowChanges(
            rows, removals, additions, begins, ends, used, old_out_weight, sums, None, count_change, added.roundings
        )

    def _references_with(self, added: Coo) -> Integers | None:
        """Return the reference exponents after edges are added; None if weights do not decay.

        The first out-edges of a vertex set its reference to their largest exponent, as do weights that exceed it by
        more than `MAX_EXPONENT`. All weights of the vertex are then divided by the same power of 2, which changes no
        normalized weight.
        """
        if self.references is None or added.times is None:
            return self.references
        vertices, vertex_of_edge = np.unique(added.source, return_inverse=True)
        largest = np.full(vertices.size, ZERO_EXPONENT)
        np.maximum.at(largest, vertex_of_edge, ScaledWeights.of(added.weights, added.times).exponents)
        present = self.references[vertices]
        raised = np.where(largest - present > MAX_EXPONENT, largest, present)
        references = self.references.copy()
        references[vertices] = np.where(self.out_weight[vertices] == 0, largest, raised)
        return references


def _by_source(edges: Coo) -> Integers:
    """Return the order of edges by source, then target."""
    return np.lexsort((edges.destination, edges.source))


def _grouped(edges: Coo, rows: Integers) -> Compressed:
    """Return edges that are sorted by source as compressed rows."""
    offsets = np.append(np.searchsorted(edges.source, rows), edges.m)
    return Compressed(offsets, edges.destination.astype(np.int64, copy=False), edges.weights)
