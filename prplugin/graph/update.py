"""Edges that change in place: rows and columns of which each may be anywhere in a buffer.

A changed row is written anew at the end of the buffer, and what was there stays: a change costs as much as the rows
that it touches, and nothing of it shows before all of it does. Where the buffer is full, or a method needs the rows one
after the other, they are copied, once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.threads import Threads
from prplugin.graph.adjacency import Adjacency, endpoints_by_target
from prplugin.graph.decay import Decaying
from prplugin.machine import this_machine
from prplugin.numerics.rounding import compensated_depth
from prplugin.types.compressed import Compressed
from prplugin.types.edges import ANY, Floats, GroupedEdges, Integers, index_dtype

__all__ = [
    "ChangingEdges",
    "MissingEdgesError",
    "Pairs",
    "Plan",
    "RefusedError",
    "RepeatedEdgesError",
    "VanishedEdgesError",
    "placed",
]

ROOM = 1 / 8
"""Of a buffer, that is left for changed rows."""

VANISHING = 2.0**-900
"""Out-weight below which weights may have lost digits to underflow."""

RESCALED = 500
"""Exponent above a vertex's reference from which its weights are divided by another."""


class RefusedError(Exception):
    """A change that cannot be made."""


class MissingEdgesError(RefusedError):
    """Edges that cannot be removed, by their places among the pairs."""


class RepeatedEdgesError(RefusedError):
    """Edges whose pair has one already, by their places among the pairs."""


class VanishedEdgesError(RefusedError):
    """Vertices whose remaining edges are too old for the weights that float64 holds beside those removed."""


class OverflowingError(RefusedError):
    """Vertices whose out-weight is more than float64 holds."""


class Pairs(NamedTuple):
    """Edges by position, to add or to remove; their weights, or None, which are any weights of those to remove."""

    source: Integers
    target: Integers
    weights: Floats | Decaying | None

    def both_ways(self) -> Pairs:
        """Append the reverse of each edge; a self-loop counts once."""
        back = np.flatnonzero(self.source != self.target)
        both = np.append(np.arange(self.source.size), back)
        source, target = np.append(self.source, self.target[back]), np.append(self.target, self.source[back])
        return Pairs(source, target, _taken(self.weights, both))

    def at(self, rows: Any) -> Pairs:
        """Return some of them."""
        return Pairs(self.source[rows], self.target[rows], _taken(self.weights, rows))


@dataclass
class _Rows:
    """Rows of a sparse matrix, anywhere in a buffer of which the first `used` entries are taken."""

    begins: Integers
    ends: Integers
    members: Integers
    weights: Floats | None
    used: int

    @classmethod
    def of(cls, compressed: Compressed, index: Any) -> Self:
        """Copy compressed rows to a buffer with room for more."""
        offsets, members, weights = compressed
        whole = cls(offsets[:-1], offsets[1:], members, weights, members.size)
        return whole.with_room(0, index)

    def with_room(self, need: int, index: Any = None) -> Self:
        """Return the rows with room for `need` more entries: copied one after the other, unless there is enough."""
        if index is None and self.used + need <= self.members.size:
            return self
        from prplugin.cpu import row_kernels  # imports Numba
        from prplugin.cpu.group import cut  # imports Numba

        n = self.begins.size
        offsets = offsets_of(self.ends - self.begins)
        m = int(offsets[-1])
        size = m + need + max(int(ROOM * m), 1024)
        members = np.empty(size, self.members.dtype if index is None else index)
        weights = None if self.weights is None else np.empty(size)

        def copy(first: int, last: int) -> None:
            row_kernels.compact(
                first, last, self.begins, self.ends, self.members, self.weights, offsets, members, weights
            )

        Threads(this_machine().threads).for_each(cut(n), copy)
        return replace(
            self, begins=offsets[:-1].copy(), ends=offsets[1:].copy(), members=members, weights=weights, used=m
        )

    def compressed(self) -> tuple[Self, Compressed]:
        """Return the rows one after the other, and views of them, which later changes leave alone."""
        rows = self.with_room(0, self.members.dtype)
        offsets = np.append(rows.begins, rows.used)
        weights = None if rows.weights is None else rows.weights[: rows.used]
        return rows, Compressed(offsets, rows.members[: rows.used], weights)

    def grown(self, n: int, positions: Integers | None) -> Self:
        """Return them with empty rows for new vertices; `positions` are those of the old ones, None for the first."""
        rows = self if positions is None else self.with_room(0, index_dtype(n))
        if positions is not None:
            rows.members[: rows.used] = positions.take(rows.members[: rows.used])
        begins, ends = (placed(ends, n, positions, 0) for ends in (rows.begins, rows.ends))
        return replace(rows, begins=begins, ends=ends)

    def sizes(self, rows: Integers) -> int:
        return int((self.ends[rows] - self.begins[rows]).sum())


@dataclass
class _NewRows:
    """Where changed rows are to begin and to end."""

    rows: Integers
    begins: Integers
    ends: Integers
    used: int


@dataclass
class Plan:
    """A change that has been written, but does not show yet."""

    out: _NewRows
    into: _NewRows
    out_weight: Floats
    references: tuple[Integers, Integers]
    gained: int


@dataclass
class ChangingEdges:
    """Out-edges and in-edges of a graph on the host."""

    out: _Rows
    into: _Rows
    out_weight: Floats
    depth_of_weights: int
    roundings: int
    count: Integers
    references: Integers | None

    @classmethod
    def of(cls, adjacency: Adjacency, references: Integers | None) -> ChangingEdges:
        """Copy the edges of a graph."""
        index = index_dtype(adjacency.n)
        return cls(
            _Rows.of(adjacency.csr, index),
            _Rows.of(adjacency.csc, index),
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
        """Roundings in a normalized weight times a rank and alpha, at most."""
        return self.depth_of_weights + 2 * self.roundings + 5

    def adjacency(self) -> Adjacency:
        """Return the graph as it is now."""
        self.into, (offsets, sources, weights) = self.into.compressed()
        edge_list = partial(endpoints_by_target, offsets, sources)
        extent = ANY if self.references is None else (ANY[0], 2.0**RESCALED * 4)
        edges = GroupedEdges((offsets, sources, weights), self.out_weight, edge_list, self.depth_of_weights, extent)
        edges.roundings = self.roundings
        return Adjacency(edges)

    def grown(self, n: int, positions: Integers | None) -> ChangingEdges:
        """Return the edges with more vertices."""
        references = None if self.references is None else placed(self.references, n, positions, 0)
        return replace(
            self,
            out=self.out.grown(n, positions),
            into=self.into.grown(n, positions),
            out_weight=placed(self.out_weight, n, positions, 0.0),
            references=references,
            count=self.count.copy(),
        )

    def plan(self, added: Pairs, removed: Pairs, duplicates: str, *, directed: bool) -> Plan:
        """Write the rows that change.

        Raises
        ------
        MissingEdgesError, RepeatedEdgesError
            With places among `removed`, or `added`.
        """
        if not directed:
            low, high = np.minimum(removed.source, removed.target), np.maximum(removed.source, removed.target)
            removed = Pairs(low, high, removed.weights)
        given = removed.source.size
        if duplicates != "sum" and added.source.size:
            added, removed = self._without_repeated(added, removed, duplicates, directed=directed)
        added = added if directed else added.both_ways()
        self._rescale(added)
        removed = Pairs(*removed[:2], self._effective(removed))
        if not directed:
            removed = self._both_ways(removed, given)
        references = self._new_references(added)
        if isinstance(added.weights, Decaying):
            assert self.references is not None
            known = self.references.copy()
            known[references[0]] = references[1]
            added = Pairs(*added[:2], added.weights.over(known.take(added.source)))
        out, weights, taken = self._rewritten("out", removed, added)
        _require(taken, given)
        turned = [
            Pairs(pairs.target, pairs.source, pairs.weights) for pairs in (removed._replace(weights=weights), added)
        ]
        into, _, _ = self._rewritten("into", *turned)
        from prplugin.cpu import row_kernels  # imports Numba

        sums = np.empty(out.rows.size)
        row_kernels.sums(out.begins, out.ends, self.out.weights, sums)
        if self.references is not None:
            lost = (sums < VANISHING) & (self.out_weight[out.rows] > 0) & (out.ends > out.begins)
            if lost.any():
                raise VanishedEdgesError(out.rows[lost])
        if not np.isfinite(sums).all():
            raise OverflowingError(out.rows[~np.isfinite(sums)])
        return Plan(out, into, sums, references, added.source.size - removed.source.size)

    def _both_ways(self, removed: Pairs, given: int) -> Pairs:
        """Append the reverse of each edge: of several between two vertices, that of the one that is found."""
        if removed.weights is not None:
            _, weights, taken = self._rewritten("out", removed, removed.at(slice(0, 0)))
            _require(taken, given)
            removed = removed._replace(weights=weights)
        back = removed.source != removed.target
        source, target, weights = removed.target[back], removed.source[back], _taken(removed.weights, back)
        if self.references is not None:
            weights = np.ldexp(weights, np.clip(self.references[target] - self.references[source], -2000, 2000))
            weights[~((weights > VANISHING) & np.isfinite(weights))] = np.nan  # any: the scaled one is inexact
        return _joined(removed, Pairs(source, target, weights))

    def commit(self, plan: Plan) -> None:
        """Let a plan show."""
        from prplugin.cpu import row_kernels  # imports Numba

        if self.references is not None:
            # Of vertices without out-edges: those of others stay.
            self.references[plan.references[0]] = plan.references[1]
        self.depth_of_weights = (
            self.depth_of_weights
            if self.out.weights is None
            else max(self.depth_of_weights, compensated_depth(self.m + plan.gained))
        )
        out, into = plan.out, plan.into
        self.out.used, self.into.used = out.used, into.used
        row_kernels.commit(
            out.rows, out.begins, out.ends, self.out.begins, self.out.ends,
            into.rows, into.begins, into.ends, self.into.begins, self.into.ends, self.out_weight, plan.out_weight,
            self.count, plan.gained,
        )  # fmt: skip

    def _without_repeated(
        self, added: Pairs, removed: Pairs, duplicates: str, *, directed: bool
    ) -> tuple[Pairs, Pairs]:
        """Apply `duplicates` to edges whose pair is there and not removed."""
        from prplugin.cpu import row_kernels  # imports Numba

        low, high = added.source, added.target
        if not directed:
            low, high = np.minimum(low, high), np.maximum(low, high)
        found = np.empty(low.size, np.bool_)
        row_kernels.find(low, high, self.out.begins, self.out.ends, self.out.members, found)
        found &= ~np.isin(low * self.n + high, removed.source * self.n + removed.target)
        if duplicates == "error" and found.any():
            raise RepeatedEdgesError(np.flatnonzero(found))
        if duplicates == "first":
            return added.at(~found), removed
        any_weight = None
        if removed.weights is not None:
            any_weight = Decaying(np.full(found.sum(), np.nan), np.zeros(found.sum(), np.int64))
            if not isinstance(removed.weights, Decaying):
                any_weight = any_weight.significands  # type: ignore[assignment]
        return added, _joined(removed, Pairs(low[found], high[found], any_weight))

    def _effective(self, removed: Pairs) -> Floats | None:
        """Return the weights to remove as they are held: NaN for any; None in a graph without."""
        if self.out.weights is None:
            return None
        if removed.weights is None:
            return np.full(removed.source.size, np.nan)
        if isinstance(removed.weights, Decaying):
            assert self.references is not None
            return removed.weights.over(self.references.take(removed.source))
        return removed.weights

    def _rewritten(self, which: str, removed: Pairs, added: Pairs) -> tuple[_NewRows, Floats | None, Any]:
        """Write changed rows; return them, the weights that were removed, and which edges were there."""
        from prplugin.cpu import row_kernels  # imports Numba

        changed = np.unique(np.concatenate([removed.source, added.source]))
        rows: _Rows = getattr(self, which)
        rows = rows.with_room(rows.sizes(changed) + added.source.size)
        setattr(self, which, rows)
        order, append = np.lexsort((removed.target, removed.source)), np.argsort(added.source, kind="stable")
        removed_at, added_at = (
            np.append(np.searchsorted(source, changed), source.size)
            for source in (removed.source[order], added.source[append])
        )
        weights = None if removed.weights is None else _floats(removed.weights)[order]
        new = None if rows.weights is None else np.empty(0)
        if added.weights is not None:
            new = _floats(added.weights)[append]
        taken = np.zeros(order.size, np.bool_)
        begins, ends = np.empty(changed.size, np.int64), np.empty(changed.size, np.int64)
        used = row_kernels.rewrite(
            changed, rows.begins, rows.ends, rows.members, rows.weights,
            removed_at, removed.target[order], weights, taken, added_at, added.target[append], new,
            rows.used, begins, ends,
        )  # fmt: skip
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return _NewRows(changed, begins, ends, used), None if weights is None else weights[back], taken[back]

    def _new_references(self, added: Pairs) -> tuple[Integers, Integers]:
        """Return the vertices that get their first out-edges, and the reference of each."""
        none = np.empty(0, np.int64)
        if not isinstance(added.weights, Decaying):
            return none, none
        first = self.out_weight.take(added.source) == 0
        vertices, at = np.unique(added.source[first], return_inverse=True)
        references = np.full(vertices.size, -(1 << 40))
        np.maximum.at(references, at, added.weights.exponents[first])
        return vertices, np.where(references == -(1 << 40), 0, references)

    def _rescale(self, added: Pairs) -> None:
        """Divide the weights of some vertices by a higher power of 2, which changes no normalized weight."""
        if self.references is None or not isinstance(added.weights, Decaying):
            return
        above = added.weights.exponents - self.references.take(added.source)
        far = (above > RESCALED) & (self.out_weight.take(added.source) > 0)
        for vertex in np.unique(added.source[far]).tolist():
            power = int(above[far & (added.source == vertex)].max())
            held = slice(int(self.out.begins[vertex]), int(self.out.ends[vertex]))
            assert self.out.weights is not None
            targets, weights = self.out.members[held].astype(np.int64), self.out.weights[held].copy()
            sources = np.full(targets.size, vertex)
            old, new = Pairs(sources, targets, weights), Pairs(sources, targets, np.ldexp(weights, -power))
            out, _, _ = self._rewritten("out", old, new)
            into, _, _ = self._rewritten(
                "into", Pairs(targets, sources, weights), Pairs(targets, sources, _floats(new.weights))
            )
            at = np.array([vertex]), np.array([self.references[vertex] + power])
            self.commit(Plan(out, into, np.array([np.ldexp(self.out_weight[vertex], -power)]), at, 0))


def placed(values: Any, n: int, positions: Integers | None, fill: Any) -> Any:
    """Return the values of the old vertices among those of all n, of which new ones have `fill`."""
    whole = np.full(n, fill, values.dtype)
    whole[slice(values.size) if positions is None else positions] = values
    return whole


def _require(taken: Any, given: int) -> None:
    if not taken.all():
        missing = np.flatnonzero(~taken)
        raise MissingEdgesError(np.unique(missing[missing < given]))


def _floats(weights: Any) -> Floats:
    assert not isinstance(weights, Decaying)
    floats: Floats = weights
    return floats


def _taken(weights: Any, rows: Any) -> Any:
    if isinstance(weights, Decaying):
        return Decaying(weights.significands[rows], weights.exponents[rows])
    return None if weights is None else weights[rows]


def _joined(first: Pairs, second: Pairs) -> Pairs:
    weights: Any = None
    if isinstance(first.weights, Decaying):
        weights = Decaying(*(np.append(one, two) for one, two in zip(first.weights, second.weights, strict=True)))  # type: ignore[arg-type]
    elif first.weights is not None:
        weights = np.append(first.weights, _floats(second.weights))
    return Pairs(np.append(first.source, second.source), np.append(first.target, second.target), weights)
