"""Change of the edges of a distributed graph: each rank applies the rows whose targets it owns, to a new part.

The parts before the change stay as they are, so that an error or a lost worker leaves the graph unchanged: the driver
replaces all parts when every rank has made its new one.

All ranks get the whole change. Integer ids are their own keys, as in `prplugin.distributed.factorize`. The keys of
other ids are their positions in the graph, which new vertices follow; the last rank owns these.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu.sorting import run_starts
from prplugin.distributed.communicator import Communicator, call_on_all
from prplugin.distributed.factorize import Rows, owners_of
from prplugin.distributed.ranks import GraphVertices
from prplugin.distributed.shard import NO_EDGES, Shard, Stages, assemble, of_ghosts
from prplugin.errors import InvalidEdgesError
from prplugin.frames import FrameEdges
from prplugin.frames.columns import has_width, in_one_type
from prplugin.frames.ids import HOST
from prplugin.frames.partitions import CommonType, cast_ids, concat_columns
from prplugin.frames.times import Clock
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import rows_of
from prplugin.graph.dedup import drop_duplicates, oriented, with_reverse_edges
from prplugin.options import Duplicates, EdgeOptions
from prplugin.streams.changes import ChangeError, apply_duplicates, read_changes
from prplugin.streams.decay import ZERO_EXPONENT, ScaledWeights, roundings_of
from prplugin.types.arrays import MemorySpace, cast_integers, find_integers, namespace, to_host
from prplugin.types.edges import Edges, Floats, Integers

MAX_FALL = 900
"""Half-lives by which the latest out-edge of a vertex may become older before its weights underflow."""


def read_change(
    add: object, remove: object, schema: EdgeOptions, clock: Clock | None
) -> tuple[FrameEdges | None, FrameEdges | None, Clock | None]:
    """Read frames of edges to add and to remove, in the process of the caller; return `given` of `update`."""
    added, removed, clock = read_changes(add, remove, schema, clock, "host")
    if added is not None:
        added = added._replace(edges=drop_duplicates(added.edges, schema.duplicates, directed=schema.directed))
    return added, removed, clock


def update(
    communicator: Communicator, shard: Shard, names: list[Hashable],
    given: tuple[FrameEdges | None, FrameEdges | None, Clock | None], *, directed: bool, duplicates: Duplicates,
) -> Shard:  # fmt: skip
    """Remove and add edges; collective. Return this rank's new part.

    `names` are the vertex columns of the result. `given` holds the edges to add, in which repeated pairs have been
    treated, the edges to remove, and the clock after both were read: see `read_change`.
    """
    added, removed, clock = given
    stages, vertices = Stages(), GraphVertices.of(communicator, shard, names)
    stages.seconds.update(shard.seconds)
    try:
        change = _Change.of(communicator, shard, vertices, added, removed)
        rows = _Edges(communicator, shard, change).changed(duplicates, directed=directed)
    except ChangeError as error:
        raise error.explained(added, removed, vertices) from None
    stages.done("change")
    roundings = shard.adjacency.edges.roundings
    if change.added.times is not None:
        roundings = max(roundings, roundings_of(change.added.times))
    new = assemble(
        communicator, rows, change.extra, change.splitters, change.shared, change.owned, shard.label, stages, roundings,
        clock,
    )  # fmt: skip
    call_on_all(communicator, partial(_check_range, shard, new, change, vertices))
    return new


class _Change(NamedTuple):
    """Edges to add and to remove, by positions in `keys`, which ascend; the same on all ranks.

    `extra`: Keys of the vertices that this rank owns, the new ones included.
    `own`: Keys of those that it owns already, ascending.
    `shared`, `owned`, `splitters`: As in `prplugin.distributed.shard.assemble`, with the new vertices.
    """

    added: Edges
    removed: Edges
    keys: Integers
    own: Any
    extra: Any
    splitters: Integers
    shared: list[CommonType]
    owned: list[Any] | None

    @classmethod
    def of(
        cls, communicator: Communicator, shard: Shard, vertices: GraphVertices, added: FrameEdges | None,
        removed: FrameEdges | None,
    ) -> _Change:  # fmt: skip
        shared, owned = shard.shared, shard.owned
        for what, frame in (("remove", removed), ("add", added)):
            for common, kind in zip(shared, [] if frame is None else frame.vertices.kinds, strict=False):
                if "empty" not in (common.kind, kind) and common.kind != kind:
                    raise InvalidEdgesError(
                        f"{what} names vertices by ids of kind {kind}, but the graph's are of kind {common.kind}: cast "
                        "them."
                    )
        if added is not None and len(added.vertices):
            columns = [HOST.as_column(column) for column in added.vertices.columns]
            shared = [
                _joint_type(communicator, *of_column, shard.adjacency.memory_space)
                for of_column in zip(shared, owned, columns, added.vertices.kinds, strict=True)
            ]
        frames = removed, added
        series = [[] if frame is None else [HOST.as_column(one) for one in frame.vertices.columns] for frame in frames]
        xp = namespace(shard.adjacency.out_weight)
        keys = [np.empty(0, np.int64), np.empty(0, np.int64)]
        if [common.kind for common in shared] == ["integer"]:
            dtype = shared[0].dtype_sample.dtype
            own = owned[0].astype(dtype) if shard.n else xp.empty(0, dtype)
            splitters = shard.splitters.astype(dtype)
            for at, columns in enumerate(series):
                given = HOST.integers(columns[0], "add") if columns else keys[at]
                keys[at], in_range = cast_integers(given, dtype)
                _refuse_missing(removed, ~in_range)  # none of the added, which `dtype` holds
        else:
            own, splitters = xp.arange(vertices.own.start, vertices.own.stop), np.array(shard.offsets[1:-1], np.int64)
            for at, columns in enumerate(series):
                if columns:
                    keys[at] = vertices.find_positions(columns, "add" if at else "remove")
            _refuse_missing(removed, keys[0] < 0)
            new = np.flatnonzero(keys[1] < 0)
            keys[1][new] = shard.n + np.arange(new.size)
            if new.size and communicator.rank == communicator.size - 1:
                ids = [
                    cast_ids(HOST.to_host(HOST.without_categories(column.take(new))), common)
                    for column, common in zip(series[1], shared, strict=True)
                ]
                owned = concat_columns([owned, ids], shared) if shard.n else ids
        mine = keys[1][owners_of(keys[1], splitters) == communicator.rank]
        every, codes = np.unique(np.concatenate(keys), return_inverse=True)
        edges = [
            _NONE if frame is None else replace(
                frame.edges, n=every.size, source=of[frame.edges.source], destination=of[frame.edges.destination]
            )
            for frame, of in zip(frames, np.split(codes, [keys[0].size]), strict=True)
        ]  # fmt: skip
        extra = xp.concatenate([own, xp.asarray(mine)])
        owned_ids = None if [common.kind for common in shared] == ["integer"] else owned
        return cls(edges[1], edges[0], every, own, extra, splitters, shared, owned_ids)


_NONE = Edges(np.empty(0, np.int64), np.empty(0, np.int64), None, 0)


def _refuse_missing(removed: FrameEdges | None, absent: Any) -> None:
    """Raise if vertices of edges to remove are not in the graph."""
    if removed is not None and absent.any():
        edges = removed.edges
        raise ChangeError("missing", np.flatnonzero(absent[edges.source] | absent[edges.destination]))


def _joint_type(
    communicator: Communicator, shared: CommonType, owned: Any, column: Any, kind: str, memory_space: MemorySpace
) -> CommonType:
    """Return the common type of a column of the vertices, and of new vertices."""
    if shared.kind == "empty":
        return CommonType(kind, HOST.to_host(HOST.without_categories(column[:1])), [column.dtype])
    # A new type would lose that of the partitions in the result, if these are of cuDF.
    part_types = [*shared.part_types, column.dtype] if memory_space == "host" else shared.part_types
    sample = shared.dtype_sample
    if kind == "integer":
        ends = [to_host(owned[:1]), to_host(owned[-1:])]
        held = np.concatenate([end for of_rank in communicator.all_gather(ends) for end in of_rank])
        given = HOST.integers(column, "add")
        sample = in_one_type([held, given], [True, has_width(column.dtype)], ["add", "the graph"])[0][:1]
    return CommonType(shared.kind, sample, part_types)


class _Edges:
    """The in-edges of this rank's vertices, found by the positions of their ends in the keys of a change."""

    def __init__(self, communicator: Communicator, shard: Shard, change: _Change) -> None:
        self._communicator, self._change, self._references = communicator, change, shard.references
        self._csc, self._keys = shard.adjacency.csc, of_ghosts(communicator, shard.ghost_sources, change.own)
        keys = to_host(self._keys)
        # Both are ascending.
        self._target, ghost = (_find(of, change.keys) for of in (keys[: shard.rows], keys[shard.rows :]))
        self._source = np.where(ghost >= 0, shard.rows + ghost, self._target)

    def changed(self, duplicates: Duplicates, *, directed: bool) -> Rows:
        """Return the edges after the change."""
        change, (offsets, sources, weights) = self._change, self._csc
        xp, removed, kept = namespace(sources), change.removed, namespace(sources).ones(sources.size, np.bool_)
        removed = removed if directed else oriented(removed)
        added, replaced = apply_duplicates(
            change.added, removed, duplicates, change.keys.size, self._have_edge, directed=directed
        )
        for edges in (removed, replaced):
            # Equal edges to remove take those present in the order of their weights, so that the owner of the target
            # of a reverse edge, which has another part of the graph, removes one of the same weight.
            entries = self._find(edges if directed else with_reverse_edges(edges), values=True)
            if not (found := self._any_rank(entries >= 0)[: edges.m]).all():
                raise ChangeError("missing", np.flatnonzero(~found))
            kept[xp.asarray(entries[entries >= 0])] = False
        added = added if directed else with_reverse_edges(added)
        owner = owners_of(change.keys, change.splitters)
        added = added.take(owner[added.destination] == self._communicator.rank)
        sources, targets = sources[kept], rows_of(offsets, sources.size)[kept]
        times = None
        if self._references is not None:
            # The stored weight w / 2**r of an edge whose source has the reference exponent r is as one of time r.
            old = self._references[to_host(sources)].astype(np.float64)
            times = old if added.times is None else np.concatenate([old, added.times])
        if weights is not None:
            new = np.ones(added.m) if added.weights is None else added.weights
            weights = xp.concatenate([weights[kept], xp.asarray(new)])
        source, target = (
            xp.concatenate([self._keys[old], xp.asarray(change.keys[new])])
            for old, new in ((sources, added.source), (targets, added.destination))
        )
        return Rows(source, target, weights, times)

    def _have_edge(self, pairs: Edges) -> Any:
        """Return a mask of the different pairs of vertices that have an edge."""
        return self._any_rank(self._find(pairs, values=False) >= 0)

    def _any_rank(self, mask: Any) -> Any:
        return np.logical_or.reduce(self._communicator.all_gather(mask))

    def _find(self, wanted: Edges, *, values: bool) -> Integers:
        """Return a different entry of the CSC for each edge, or -1; of equal edges those of the least weights first.

        `values`: Whether weights and times have to be equal, where `wanted` has them.
        """
        (offsets, sources, _), found = self._csc, np.full(wanted.m, -1)
        source, target = self._source[wanted.source], self._target[wanted.destination]
        mine = np.flatnonzero((source >= 0) & (target >= 0))
        if not mine.size:
            return found
        xp, rows = namespace(sources), np.unique(target[mine])
        begins, ends = (to_host(offsets[xp.asarray(at)]).astype(np.int64) for at in (rows, rows + 1))
        sizes = ends - begins
        entries = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        present, asked = self._values(entries), self._values_of(wanted) if values else []
        if present and not asked:
            order = np.lexsort(present)
            entries, sizes, rows = entries[order], np.ones(order.size, np.int64), np.repeat(rows, sizes)[order]
        columns = [np.repeat(rows, sizes), to_host(sources[xp.asarray(entries)]), *present[: len(asked)]]
        at = _match([target[mine], source[mine], *(value[mine] for value in asked)], columns)
        found[mine] = np.where(at >= 0, np.append(entries, -1)[at], -1)
        return found

    def _values(self, entries: Integers) -> list[Any]:
        """Return what distinguishes parallel edges, at these entries of the CSC: their weights before scaling."""
        _, sources, weights = self._csc
        if weights is None:
            return []
        at = namespace(sources).asarray(entries)
        weights = to_host(weights[at])
        if self._references is None:
            return [weights]
        return _exact(weights, self._references[to_host(sources[at])].astype(np.float64))

    def _values_of(self, edges: Edges) -> list[Any]:
        """Return what `_values` returns of edges to remove; nothing if they match edges of any weight."""
        if self._references is not None and edges.times is not None:
            return _exact(edges.weights, edges.times)
        return [] if edges.weights is None else [edges.weights]


def _find(ids: Integers, wanted: Integers) -> Integers:
    found: Integers = find_integers(ids, wanted) if ids.size else np.full(wanted.size, -1)
    return found


def _exact(weights: Floats | None, times: Floats) -> list[Any]:
    """Return the decayed weights as fractions in [1/2, 1) and exponents, which are unique."""
    scaled = ScaledWeights.of(weights, times)
    fractions, exponents = np.frexp(scaled.significands)
    return [fractions, np.where(fractions == 0, 0, exponents + scaled.exponents)]


def _match(wanted: list[Any], present: list[Any]) -> Integers:
    """Return the position of a different present row for each wanted row of the same values, or -1."""
    count = wanted[0].size
    columns = [np.concatenate(pair) for pair in zip(wanted, present, strict=True)]
    is_present = np.arange(columns[0].size) >= count
    order = np.lexsort([is_present, *columns])  # stable: equal rows stay in their order
    groups = np.cumsum(run_starts(*(column[order] for column in columns))) - 1
    places = np.arange(order.size)
    starts = run_starts(groups, is_present[order])
    nth = places - np.maximum.accumulate(np.where(starts, places, 0))
    keys = groups * order.size + nth
    of_present = is_present[order]
    rows, sorted_keys = order[of_present] - count, keys[of_present]
    found = np.empty(count, np.int64)
    at = _find(sorted_keys, keys[~of_present])
    found[order[~of_present]] = np.where(at >= 0, np.append(rows, -1)[at], -1)
    return found


def _check_range(shard: Shard, new: Shard, change: _Change, vertices: GraphVertices) -> None:
    """Raise if the remaining edges of a vertex are so much older than those removed that their weights underflow."""
    if shard.references is None or new.references is None:
        return
    at = np.searchsorted(np.unique(to_host(change.extra)), to_host(change.own))
    before, after = shard.references[: shard.rows], new.references[at]
    fallen = np.flatnonzero((before > ZERO_EXPONENT) & (after > NO_EDGES) & (after < before - MAX_FALL))
    if fallen.size:
        own = Vertices(vertices.names, vertices.columns, vertices.kinds)
        raise ChangeError("underflow", fallen).explained(None, None, own)
