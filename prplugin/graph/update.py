"""Edges that are added and removed in place: compressed rows stored in any order in a buffer with spare capacity.

A changed row is written anew after the last row of the buffer, and its old entries stay in place. The cost of a change
is therefore proportional to the size of the rows that it touches, and the change becomes visible at once when the
positions of those rows are replaced. The rows are copied to a new buffer, in order, when the buffer is full or a method
needs CSR or CSC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.threads import Threads
from prplugin.graph.adjacency import Adjacency, endpoints_by_target
from prplugin.graph.decay import ZERO_EXPONENT, ScaledWeights
from prplugin.machine import this_machine
from prplugin.numerics.rounding import compensated_depth
from prplugin.types.compressed import Compressed
from prplugin.types.edges import ANY, Floats, GroupedEdges, Integers, index_dtype

__all__ = [
    "ChangeError",
    "ChangingEdges",
    "EdgeChanges",
    "MissingEdgesError",
    "Plan",
    "RepeatedEdgesError",
    "UnderflowingError",
    "expand_values",
]

SPARE_FRACTION = 1 / 8
"""Spare capacity of a buffer for changed rows, as a fraction of its entries."""

MIN_OUT_WEIGHT = 2.0**-900
"""Out-weight below which the weights of a vertex may have lost digits to underflow."""

MAX_EXPONENT = 500
"""Exponent of a weight, relative to the reference exponent of its source, above which that reference is raised."""


class ChangeError(Exception):
    """Invalid change; the argument has the positions of the edges in the change, or of the vertices, concerned."""


class MissingEdgesError(ChangeError):
    """Edges to remove that do not exist, by position among the edges to remove."""


class RepeatedEdgesError(ChangeError):
    """Edges to add whose pair of vertices already has an edge, by position among the edges to add."""


class UnderflowingError(ChangeError):
    """Vertices whose remaining edges are so much older than the removed ones that their weights underflow."""


class OverflowingError(ChangeError):
    """Vertices whose out-weight overflows float64."""


class EdgeChanges(NamedTuple):
    """Edges to add or to remove.

    Attributes
    ----------
    source, target : array
        Positions of the vertices.
    weights : array of float64, ScaledWeights or None
        None: the graph is unweighted, or edges of any weight are to be removed.
    """

    source: Integers
    target: Integers
    weights: Floats | ScaledWeights | None

    def with_reverse_edges(self) -> EdgeChanges:
        """Append the reverse of each edge that is not a self-loop."""
        not_loops = np.flatnonzero(self.source != self.target)
        both = np.append(np.arange(self.source.size), not_loops)
        source = np.append(self.source, self.target[not_loops])
        target = np.append(self.target, self.source[not_loops])
        return EdgeChanges(source, target, _take_weights(self.weights, both))

    def take(self, rows: Any) -> EdgeChanges:
        """Return the selected edges."""
        return EdgeChanges(self.source[rows], self.target[rows], _take_weights(self.weights, rows))


@dataclass
class _RowBuffer:
    """Rows of a sparse matrix in a buffer with spare capacity.

    Row v holds ``indices[begins[v]:ends[v]]`` and the weights at the same positions. The first `used` entries of the
    buffer are in use, some of them by previous versions of rows.
    """

    begins: Integers
    ends: Integers
    indices: Integers
    weights: Floats | None
    used: int

    @classmethod
    def of(cls, compressed: Compressed, dtype: Any) -> Self:
        """Copy CSR or CSC arrays to a buffer with spare capacity, with indices of the given type."""
        offsets, indices, weights = compressed
        rows = cls(offsets[:-1], offsets[1:], indices, weights, indices.size)
        return rows.with_capacity(0, dtype)

    def with_capacity(self, needed: int, dtype: Any = None) -> Self:
        """Return rows that `needed` more entries can be appended to.

        The rows are copied to a new buffer, in order, if the capacity does not suffice or a type of indices is given.
        """
        if dtype is None and self.used + needed <= self.indices.size:
            return self
        from prplugin.cpu import row_kernels  # imports Numba
        from prplugin.cpu.group import cut  # imports Numba

        n = self.begins.size
        offsets = offsets_of(self.ends - self.begins)
        m = int(offsets[-1])
        size = m + needed + max(int(SPARE_FRACTION * m), 1024)
        indices = np.empty(size, self.indices.dtype if dtype is None else dtype)
        weights = None if self.weights is None else np.empty(size)

        def copy(first: int, last: int) -> None:
            row_kernels.compact(
                first, last, self.begins, self.ends, self.indices, self.weights, offsets, indices, weights
            )

        Threads(this_machine().threads).for_each(cut(n), copy)
        return replace(
            self, begins=offsets[:-1].copy(), ends=offsets[1:].copy(), indices=indices, weights=weights, used=m
        )

    def compressed(self) -> tuple[Self, Compressed]:
        """Copy the rows to a new buffer, in order; return them and CSR or CSC views that later changes do not alter."""
        rows = self.with_capacity(0, self.indices.dtype)
        offsets = np.append(rows.begins, rows.used)
        weights = None if rows.weights is None else rows.weights[: rows.used]
        return rows, Compressed(offsets, rows.indices[: rows.used], weights)

    def with_vertices(self, n: int, positions: Integers | None) -> Self:
        """Return rows for n vertices, of which the new ones have no edges; see `expand_values`."""
        rows = self if positions is None else self.with_capacity(0, index_dtype(n))
        if positions is not None:
            rows.indices[: rows.used] = positions.take(rows.indices[: rows.used])
        begins, ends = (expand_values(values, n, positions, 0) for values in (rows.begins, rows.ends))
        return replace(rows, begins=begins, ends=ends)

    def count_entries(self, rows: Integers) -> int:
        """Return the number of entries of some rows."""
        return int((self.ends[rows] - self.begins[rows]).sum())


@dataclass
class _RewrittenRows:
    """Positions of the new versions of changed rows, and the number of buffer entries in use with them."""

    rows: Integers
    begins: Integers
    ends: Integers
    used: int


@dataclass
class Plan:
    """A change whose rows have been written to the buffers, but which is not visible before `ChangingEdges.commit`.

    Attributes
    ----------
    out_edges, in_edges : _RewrittenRows
    out_weight : array of float64
        New out-weights of the vertices ``out_edges.rows``.
    references : tuple of arrays
        Vertices that get their first out-edges, and their reference exponents.
    count_change : int
        Number of added edges less that of removed ones.
    """

    out_edges: _RewrittenRows
    in_edges: _RewrittenRows
    out_weight: Floats
    references: tuple[Integers, Integers]
    count_change: int


@dataclass
class ChangingEdges:
    """Out-edges and in-edges of a graph on the host.

    Attributes
    ----------
    out_edges, in_edges : _RowBuffer
    out_weight : array of n float64
    weights_depth : int
        Rounding depth of an out-weight, without the roundings of the weights.
    roundings : int
        Relative rounding errors, each of 2**-53, that a weight carries at most.
    count : array of one int64
        Number of edges; an array, so that one compiled call can change it together with the rows.
    references : array of n int64, or None
        Reference exponent of each vertex, if weights decay: see `prplugin.graph.decay`.
    """

    out_edges: _RowBuffer
    in_edges: _RowBuffer
    out_weight: Floats
    weights_depth: int
    roundings: int
    count: Integers
    references: Integers | None

    @classmethod
    def of(cls, adjacency: Adjacency, references: Integers | None) -> ChangingEdges:
        """Copy the edges of a graph."""
        dtype = index_dtype(adjacency.n)
        return cls(
            _RowBuffer.of(adjacency.csr, dtype),
            _RowBuffer.of(adjacency.csc, dtype),
            adjacency.out_weight.copy(),
            adjacency.out_weight_depth - 2 * adjacency.edges.roundings,
            adjacency.edges.roundings,
            np.array([adjacency.m]),
            references,
        )

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

    def adjacency(self) -> Adjacency:
        """Return the graph in its present state."""
        self.in_edges, (offsets, sources, weights) = self.in_edges.compressed()
        edge_list = partial(endpoints_by_target, offsets, sources)
        extent = ANY if self.references is None else (ANY[0], 2.0**MAX_EXPONENT * 4)
        edges = GroupedEdges((offsets, sources, weights), self.out_weight, edge_list, self.weights_depth, extent)
        edges.roundings = self.roundings
        return Adjacency(edges)

    def with_vertices(self, n: int, positions: Integers | None) -> ChangingEdges:
        """Return the edges of a graph of n vertices, of which the new ones have no edges; see `expand_values`."""
        references = None if self.references is None else expand_values(self.references, n, positions, 0)
        return replace(
            self,
            out_edges=self.out_edges.with_vertices(n, positions),
            in_edges=self.in_edges.with_vertices(n, positions),
            out_weight=expand_values(self.out_weight, n, positions, 0.0),
            references=references,
            count=self.count.copy(),
        )

    def plan(self, added: EdgeChanges, removed: EdgeChanges, duplicates: str, *, directed: bool) -> Plan:
        """Write the new versions of the rows that change.

        Raises
        ------
        ChangeError
            If the change is invalid.
        """
        if not directed:
            low, high = np.minimum(removed.source, removed.target), np.maximum(removed.source, removed.target)
            removed = EdgeChanges(low, high, removed.weights)
        removed_count = removed.source.size
        if duplicates != "sum" and added.source.size:
            added, removed = self._apply_duplicates(added, removed, duplicates, directed=directed)
        added = added if directed else added.with_reverse_edges()
        self._raise_references(added)
        removed = EdgeChanges(*removed[:2], self._stored_weights(removed))
        if not directed:
            removed = self._append_reverse_removals(removed, removed_count)
        references = self._new_references(added)
        if isinstance(added.weights, ScaledWeights):
            assert self.references is not None
            all_references = self.references.copy()
            all_references[references[0]] = references[1]
            added = EdgeChanges(*added[:2], added.weights.divide(all_references.take(added.source)))
        out_edges, weights, found = self._rewrite("out_edges", removed, added)
        _require_found(found, removed_count)
        transposed = [
            EdgeChanges(change.target, change.source, change.weights)
            for change in (removed._replace(weights=weights), added)
        ]
        in_edges, _, _ = self._rewrite("in_edges", *transposed)
        from prplugin.cpu import row_kernels  # imports Numba

        sums = np.empty(out_edges.rows.size)
        row_kernels.sum_rows(out_edges.begins, out_edges.ends, self.out_edges.weights, sums)
        if self.references is not None:
            had_edges = self.out_weight[out_edges.rows] > 0
            underflowing = (sums < MIN_OUT_WEIGHT) & had_edges & (out_edges.ends > out_edges.begins)
            if underflowing.any():
                raise UnderflowingError(out_edges.rows[underflowing])
        if not np.isfinite(sums).all():
            raise OverflowingError(out_edges.rows[~np.isfinite(sums)])
        return Plan(out_edges, in_edges, sums, references, added.source.size - removed.source.size)

    def _append_reverse_removals(self, removed: EdgeChanges, removed_count: int) -> EdgeChanges:
        """Append the reverse of each edge to remove.

        If any of several parallel edges may be removed, the weight of the one that is found selects its reverse.
        """
        if removed.weights is not None:
            _, weights, found = self._rewrite("out_edges", removed, removed.take(slice(0, 0)))
            _require_found(found, removed_count)
            removed = removed._replace(weights=weights)
        not_loops = removed.source != removed.target
        source, target = removed.target[not_loops], removed.source[not_loops]
        weights = _take_weights(removed.weights, not_loops)
        if self.references is not None:
            weights = np.ldexp(weights, np.clip(self.references[target] - self.references[source], -2000, 2000))
            # A weight that underflows or overflows when it is rescaled is inexact, so that any weight must match.
            weights[~((weights > MIN_OUT_WEIGHT) & np.isfinite(weights))] = np.nan
        return _concat_changes(removed, EdgeChanges(source, target, weights))

    def commit(self, plan: Plan) -> None:
        """Make a planned change visible."""
        from prplugin.cpu import row_kernels  # imports Numba

        if self.references is not None:
            # In a plan of `plan`, these vertices have no out-edges yet, so that no visible weight depends on them.
            self.references[plan.references[0]] = plan.references[1]
        self.weights_depth = (
            self.weights_depth
            if self.out_edges.weights is None
            else max(self.weights_depth, compensated_depth(self.m + plan.count_change))
        )
        out_edges, in_edges = plan.out_edges, plan.in_edges
        self.out_edges.used, self.in_edges.used = out_edges.used, in_edges.used
        row_kernels.commit(
            out_edges.rows, out_edges.begins, out_edges.ends, self.out_edges.begins, self.out_edges.ends,
            in_edges.rows, in_edges.begins, in_edges.ends, self.in_edges.begins, self.in_edges.ends,
            self.out_weight, plan.out_weight, self.count, plan.count_change,
        )  # fmt: skip

    def _apply_duplicates(
        self, added: EdgeChanges, removed: EdgeChanges, duplicates: str, *, directed: bool
    ) -> tuple[EdgeChanges, EdgeChanges]:
        """Apply `duplicates` to added edges whose pair of vertices has an edge that is not removed."""
        from prplugin.cpu import row_kernels  # imports Numba

        low, high = added.source, added.target
        if not directed:
            low, high = np.minimum(low, high), np.maximum(low, high)
        found = np.empty(low.size, np.bool_)
        row_kernels.find_pairs(low, high, self.out_edges.begins, self.out_edges.ends, self.out_edges.indices, found)
        found &= ~np.isin(low * self.n + high, removed.source * self.n + removed.target)
        if duplicates == "error" and found.any():
            raise RepeatedEdgesError(np.flatnonzero(found))
        if duplicates == "first":
            return added.take(~found), removed
        any_weight = None
        if removed.weights is not None:
            any_weight = ScaledWeights(np.full(found.sum(), np.nan), np.zeros(found.sum(), np.int64))
            if not isinstance(removed.weights, ScaledWeights):
                any_weight = any_weight.significands  # type: ignore[assignment]
        return added, _concat_changes(removed, EdgeChanges(low[found], high[found], any_weight))

    def _stored_weights(self, removed: EdgeChanges) -> Floats | None:
        """Return the weights to remove as the rows store them: NaN for any weight, None in an unweighted graph."""
        if self.out_edges.weights is None:
            return None
        if removed.weights is None:
            return np.full(removed.source.size, np.nan)
        if isinstance(removed.weights, ScaledWeights):
            assert self.references is not None
            return removed.weights.divide(self.references.take(removed.source))
        return removed.weights

    def _rewrite(
        self, which: str, removed: EdgeChanges, added: EdgeChanges
    ) -> tuple[_RewrittenRows, Floats | None, Any]:
        """Write the new versions of changed rows of `which`, "out_edges" or "in_edges".

        Returns
        -------
        rows : _RewrittenRows
        weights : array, or None
            Weights that were removed.
        found : array of bool
            Whether each edge to remove exists.
        """
        from prplugin.cpu import row_kernels  # imports Numba

        changed = np.unique(np.concatenate([removed.source, added.source]))
        rows: _RowBuffer = getattr(self, which)
        rows = rows.with_capacity(rows.count_entries(changed) + added.source.size)
        setattr(self, which, rows)
        removal_order = np.lexsort((removed.target, removed.source))
        addition_order = np.argsort(added.source, kind="stable")
        removed_at, added_at = (
            np.append(np.searchsorted(source, changed), source.size)
            for source in (removed.source[removal_order], added.source[addition_order])
        )
        weights = None if removed.weights is None else _as_floats(removed.weights)[removal_order]
        added_weights = None if rows.weights is None else np.empty(0)
        if added.weights is not None:
            added_weights = _as_floats(added.weights)[addition_order]
        found = np.zeros(removal_order.size, np.bool_)
        begins, ends = np.empty(changed.size, np.int64), np.empty(changed.size, np.int64)
        used = row_kernels.rewrite(
            changed, rows.begins, rows.ends, rows.indices, rows.weights,
            removed_at, removed.target[removal_order], weights, found,
            added_at, added.target[addition_order], added_weights, rows.used, begins, ends,
        )  # fmt: skip
        inverse = np.empty_like(removal_order)
        inverse[removal_order] = np.arange(removal_order.size)
        rewritten = _RewrittenRows(changed, begins, ends, used)
        return rewritten, None if weights is None else weights[inverse], found[inverse]

    def _new_references(self, added: EdgeChanges) -> tuple[Integers, Integers]:
        """Return the vertices that get their first out-edges, and their reference exponents."""
        none = np.empty(0, np.int64)
        if not isinstance(added.weights, ScaledWeights):
            return none, none
        first = self.out_weight.take(added.source) == 0
        vertices, vertex_of_edge = np.unique(added.source[first], return_inverse=True)
        references = np.full(vertices.size, ZERO_EXPONENT)
        np.maximum.at(references, vertex_of_edge, added.weights.exponents[first])
        return vertices, np.where(references == ZERO_EXPONENT, 0, references)

    def _raise_references(self, added: EdgeChanges) -> None:
        """Raise the reference exponent of vertices whose added weights exceed it by more than `MAX_EXPONENT`.

        This divides all weights of the vertex by the same power of 2, which changes no normalized weight.
        """
        if self.references is None or not isinstance(added.weights, ScaledWeights):
            return
        excess = added.weights.exponents - self.references.take(added.source)
        too_large = (excess > MAX_EXPONENT) & (self.out_weight.take(added.source) > 0)
        for vertex in np.unique(added.source[too_large]).tolist():
            power = int(excess[too_large & (added.source == vertex)].max())
            entries = slice(int(self.out_edges.begins[vertex]), int(self.out_edges.ends[vertex]))
            assert self.out_edges.weights is not None
            targets = self.out_edges.indices[entries].astype(np.int64)
            weights = self.out_edges.weights[entries].copy()
            sources = np.full(targets.size, vertex)
            old = EdgeChanges(sources, targets, weights)
            new = EdgeChanges(sources, targets, np.ldexp(weights, -power))
            out_edges, _, _ = self._rewrite("out_edges", old, new)
            in_edges, _, _ = self._rewrite(
                "in_edges",
                EdgeChanges(targets, sources, weights),
                EdgeChanges(targets, sources, _as_floats(new.weights)),
            )
            references = np.array([vertex]), np.array([self.references[vertex] + power])
            out_weight = np.array([np.ldexp(self.out_weight[vertex], -power)])
            self.commit(Plan(out_edges, in_edges, out_weight, references, 0))


def expand_values(values: Any, n: int, positions: Integers | None, fill: Any) -> Any:
    """Return an array for n vertices, with `values` for the old vertices and `fill` for the new ones.

    `positions` has the new position of each old vertex; None means that the old vertices come first, in their order.
    """
    expanded = np.full(n, fill, values.dtype)
    expanded[slice(values.size) if positions is None else positions] = values
    return expanded


def _require_found(found: Any, removed_count: int) -> None:
    """Raise `MissingEdgesError` if an edge to remove does not exist; those after `removed_count` were derived."""
    if not found.all():
        missing = np.flatnonzero(~found)
        raise MissingEdgesError(np.unique(missing[missing < removed_count]))


def _as_floats(weights: Any) -> Floats:
    assert not isinstance(weights, ScaledWeights)
    floats: Floats = weights
    return floats


def _take_weights(weights: Any, rows: Any) -> Any:
    if isinstance(weights, ScaledWeights):
        return ScaledWeights(weights.significands[rows], weights.exponents[rows])
    return None if weights is None else weights[rows]


def _concat_changes(first: EdgeChanges, second: EdgeChanges) -> EdgeChanges:
    weights: Any = None
    if isinstance(first.weights, ScaledWeights):
        weights = ScaledWeights(*(np.append(*pair) for pair in zip(first.weights, second.weights, strict=True)))  # type: ignore[arg-type]
    elif first.weights is not None:
        weights = np.append(first.weights, _as_floats(second.weights))
    source, target = np.append(first.source, second.source), np.append(first.target, second.target)
    return EdgeChanges(source, target, weights)
