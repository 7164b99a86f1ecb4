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

from prplugin.distributed.communicator import Communicator, call_on_all
from prplugin.distributed.factorize import Rows, owners_of
from prplugin.distributed.ranks import GraphVertices
from prplugin.distributed.shard import NO_EDGES, Shard, Stages, assemble, of_ghosts
from prplugin.frames import FrameEdges
from prplugin.frames.columns import check_kinds, has_width, in_one_type
from prplugin.frames.ids import HOST
from prplugin.frames.partitions import CommonType, cast_ids, concat_columns, match_rows
from prplugin.frames.times import Clock
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import rows_of
from prplugin.graph.dedup import drop_duplicates, oriented, reversed_edges, with_reverse_edges
from prplugin.options import Duplicates, EdgeOptions
from prplugin.streams.changes import ChangeError, apply_duplicates, read_changes
from prplugin.streams.decay import ZERO_EXPONENT, ScaledWeights, roundings_of
from prplugin.types.arrays import MemorySpace, cast_integers, find_integers, namespace, to_host
from prplugin.types.edges import Edges, Floats, Integers

MAX_FALL = 900  # half-lives by which the latest out-edge of a vertex may become older before its weights underflow


def read_change(
    add: object, remove: object, schema: EdgeOptions, clock: Clock | None
) -> tuple[FrameEdges, FrameEdges, Clock | None]:
    """Read frames of edges to add and to remove, in the process of the caller; return `given` of `update`."""
    added, removed, clock = read_changes(add, remove, schema, clock, "host")
    assert isinstance(schema.source, list)
    no_vertices = Vertices(
        schema.source, [np.empty(0, object) for _ in schema.source], ["empty" for _ in schema.source]
    )
    nothing = FrameEdges(Edges(np.empty(0, np.int64), np.empty(0, np.int64), None, 0), no_vertices)
    if added is not None:
        added = added._replace(edges=drop_duplicates(added.edges, schema.duplicates, directed=schema.directed))
    return added or nothing, removed or nothing, clock


def update(
    communicator: Communicator, shard: Shard, names: list[Hashable],
    given: tuple[FrameEdges, FrameEdges, Clock | None], *, directed: bool, duplicates: Duplicates,
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
        cls, communicator: Communicator, shard: Shard, vertices: GraphVertices, added: FrameEdges, removed: FrameEdges
    ) -> _Change:
        shared, owned = shard.shared, shard.owned
        for what, frame in (("remove", removed), ("add", added)):
            check_kinds(frame.vertices.kinds, [common.kind for common in shared], what)
        if len(added.vertices):
            columns = [HOST.as_column(column) for column in added.vertices.columns]
            shared = [
                _joint_type(communicator, *of_column, shard.adjacency.memory_space)
                for of_column in zip(shared, owned, columns, added.vertices.kinds, strict=True)
            ]
        frames = removed, added
        series = [[HOST.as_column(column) for column in frame.vertices.columns] for frame in frames]
        xp = namespace(shard.adjacency.out_weight)
        keys = [np.empty(0, np.int64), np.empty(0, np.int64)]
        if [common.kind for common in shared] == ["integer"]:
            dtype = shared[0].dtype_sample.dtype
            own = owned[0].astype(dtype) if shard.n else xp.empty(0, dtype)
            splitters = shard.splitters.astype(dtype)
            for at, columns in enumerate(series):
                keys[at], in_range = cast_integers(HOST.integers(columns[0], "add"), dtype)
                _refuse_missing(removed, ~in_range)  # none of the added, which `dtype` holds
        else:
            own, splitters = xp.arange(vertices.own.start, vertices.own.stop), np.array(shard.offsets[1:-1], np.int64)
            for at, columns in enumerate(series):
                keys[at] = vertices.find_positions(columns, "add" if at else "remove")
            _refuse_missing(removed, keys[0] < 0)
            if shard.n:
                owned = [cast_ids(*pair) for pair in zip(owned, shared, strict=True)]
            new = np.flatnonzero(keys[1] < 0)
            keys[1][new] = shard.n + np.arange(new.size)
            if new.size and communicator.rank == communicator.size - 1:
                ids = [HOST.to_host(HOST.without_categories(column.take(new))) for column in series[1]]
                ids = [cast_ids(*pair) for pair in zip(ids, shared, strict=True)]
                owned = concat_columns([owned, ids]) if shard.n else ids
        mine = keys[1][owners_of(keys[1], splitters) == communicator.rank]
        every, codes = np.unique(np.concatenate(keys), return_inverse=True)
        edges = [
            replace(frame.edges, n=every.size, source=of[frame.edges.source], destination=of[frame.edges.destination])
            for frame, of in zip(frames, np.split(codes, [keys[0].size]), strict=True)
        ]
        extra = xp.concatenate([own, xp.asarray(mine)])
        owned_ids = None if [common.kind for common in shared] == ["integer"] else owned
        return cls(edges[1], edges[0], every, own, extra, splitters, shared, owned_ids)


def _refuse_missing(removed: FrameEdges, absent: Any) -> None:
    if absent.any():
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
        extremes = [int(owned.argmin()), int(owned.argmax())] if len(owned) else []
        ends = [to_host(owned[:0]), *(to_host(owned[at : at + 1]) for at in extremes)]
        held = np.concatenate([end for of_rank in communicator.all_gather(ends) for end in of_rank])
        given = HOST.integers(column, "add")
        sample = in_one_type([held, given], [True, has_width(column.dtype)], ["add", "the graph"])[0][:1]
    return CommonType(shared.kind, sample, part_types)


class _Edges:
    """The in-edges of this rank's vertices, those between keys of a change by positions in these."""

    def __init__(self, communicator: Communicator, shard: Shard, change: _Change) -> None:
        self._communicator, self._change, self._references = communicator, change, shard.references
        self._csc, self._keys = shard.adjacency.csc, of_ghosts(communicator, shard.ghost_sources, change.own)
        (offsets, sources, weights), xp = self._csc, namespace(self._keys)
        position = xp.asarray(_find(change.keys, to_host(self._keys)))
        targets = rows_of(offsets, sources.size)
        entries = xp.flatnonzero(position[targets] >= 0)
        entries = entries[position[sources[entries]] >= 0]
        # Parallel edges are distinguished by their weights before scaling.
        values = [] if weights is None else [to_host(weights[entries])]
        if values and self._references is not None:
            values = _exact(values[0], self._references[to_host(sources[entries])].astype(np.float64))
        self._entries, self._values = entries, values
        self._ends = [to_host(position[ends[entries]]) for ends in (targets, sources)]

    def changed(self, duplicates: Duplicates, *, directed: bool) -> Rows:
        """Return the edges after the change."""
        change, (offsets, sources, weights) = self._change, self._csc
        xp, removed, gone = namespace(sources), change.removed, []
        removed = removed if directed else oriented(removed)
        added, replaced = apply_duplicates(
            change.added, removed, duplicates, change.keys.size, self._have_edge, directed=directed
        )
        for edges in (removed, replaced):
            mine = self._find(edges, self._values_of(edges))
            found, values = self._shared_values(mine)
            if not found.all():
                raise ChangeError("missing", np.flatnonzero(~found))
            gone.append(mine)
            if not directed:  # the weight of the edge that was found selects its reverse edge
                reverse = np.flatnonzero(edges.source != edges.destination)
                back = reversed_edges(edges.take(reverse))
                gone.append(self._find(back, [value[reverse] for value in values]))
        kept, all_gone = xp.ones(sources.size, np.bool_), np.concatenate(gone)
        kept[self._entries[xp.asarray(all_gone[all_gone >= 0])]] = False
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
        return self._shared_values(self._find(pairs, []))[0]

    def _find(self, wanted: Edges, values: list[Any]) -> Integers:
        """Return the number of a different edge of `_entries` for each edge, the first with equal values, or -1."""
        return match_rows([wanted.destination, wanted.source, *values], [*self._ends, *self._values[: len(values)]])

    def _values_of(self, edges: Edges) -> list[Any]:
        """Return what `_values` has of edges to remove; nothing if they match edges of any weight."""
        if self._references is not None and edges.times is not None:
            return _exact(edges.weights, edges.times)
        return [] if edges.weights is None else [edges.weights]

    def _shared_values(self, own: Integers) -> tuple[Any, list[Any]]:
        """Return which edges any rank has found, and their `_values`, given what this rank has found."""
        has, found = own >= 0, np.zeros(own.size, np.bool_)
        values = [np.zeros(own.size, column.dtype) for column in self._values]
        for mine, sent in self._communicator.all_gather((has, [column[own[has]] for column in self._values])):
            found |= mine
            for column, received in zip(values, sent, strict=True):
                column[mine] = received
        return found, values


def _find(ids: Integers, wanted: Integers) -> Integers:
    found: Integers = find_integers(ids, wanted) if ids.size else np.full(wanted.size, -1)
    return found


def _exact(weights: Floats | None, times: Floats) -> list[Any]:
    """Return the decayed weights as fractions in [1/2, 1) and exponents, which are unique."""
    scaled = ScaledWeights.of(weights, times)
    fractions, exponents = np.frexp(scaled.significands)
    return [fractions, np.where(fractions == 0, 0, exponents + scaled.exponents)]


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
