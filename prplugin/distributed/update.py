"""Change of the edges of a distributed graph: each rank applies the rows whose targets it owns, to a new part.

The parts before the change stay as they are, so that an error or a lost worker leaves the graph unchanged: the driver
replaces all parts when every rank has made its new one.

All ranks get the whole change. The keys of vertices (`prplugin.distributed.factorize`) are their positions in the
changed graph. New integer ids go to the rank that owns those around them; other new vertices follow all others, and the
last rank owns them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from prplugin.distributed.communicator import Communicator, all_reduce_sum, call_on_all
from prplugin.distributed.factorize import EdgeRows
from prplugin.distributed.ranks import GraphVertices
from prplugin.distributed.shard import Shard, Stages, Starts, assemble, of_ghosts
from prplugin.frames import FrameEdges
from prplugin.frames.columns import Column, check_kinds, has_width, in_one_type
from prplugin.frames.ids import HOST
from prplugin.frames.partitions import cast_ids, match_rows
from prplugin.frames.parts import CommonType
from prplugin.frames.times import Clock
from prplugin.frames.vertices import Vertices
from prplugin.graph.edges import rows_of
from prplugin.options import Duplicates, EdgeOptions
from prplugin.streams.changes import Change, ChangeError, apply_duplicates
from prplugin.streams.decay import MIN_OUT_WEIGHT, ZERO_EXPONENT, ScaledWeights, roundings_of, times_of_stored
from prplugin.types.array_module import Booleans, Scalar
from prplugin.types.arrays import Array, MemorySpace, is_host, namespace, to_host
from prplugin.types.edges import Coo, Csc, Floats, Integers

NOTHING = np.empty(0)


def update(
    communicator: Communicator, shard: Shard, names: list[Hashable],
    given: tuple[FrameEdges, FrameEdges, Clock | None], schema: EdgeOptions,
) -> Shard:  # fmt: skip
    """Remove and add edges; collective. Return this rank's new part.

    `names` are the vertex columns of the result. `given` holds the edges to add and to remove, and the clock after both
    were read: see `prplugin.streams.changes.read_changes`.
    """
    added, removed, clock = given
    stages, vertices = Stages(), GraphVertices.of(communicator, shard, names)
    stages.seconds.update(shard.seconds)
    try:
        change = Change.of(added, removed, _Index(vertices, shard, np.empty(0, np.int64)), schema)
        rows = _Edges(communicator, shard, change).changed(schema.duplicates, directed=schema.directed)
    except ChangeError as error:
        raise error.explained(added, removed, vertices.on_host) from None
    stages.done("change")
    roundings = shard.adjacency.roundings
    if change.added.times is not None:
        roundings = max(roundings, roundings_of(change.added.times))
    index = change.vertices
    planned = index.shard
    every = namespace(rows.source).arange(*planned.offsets[communicator.rank :][:2])
    places, references = index.own - planned.offsets[communicator.rank], None
    if shard.references is not None:
        references = np.full(every.size, ZERO_EXPONENT)
        references[places] = shard.references[: shard.rows]
    new = assemble(
        communicator, rows, every, planned.splitters, planned.shared, planned.owned, shard.label, stages, roundings,
        clock, references,
    )  # fmt: skip
    call_on_all(communicator, partial(_check_range, new, index, (added, removed)))
    last = shard.starts.latest or shard.starts.before_update
    if last is None:
        return new
    if new.rows > shard.rows:
        last = last.with_vertices(new.rows, namespace(last.ranks).asarray(places))
    return replace(new, starts=Starts(before_update=last))


class _Index(NamedTuple):
    """The vertices of a graph, with the methods of `prplugin.frames.vertex_index.VertexIndex`, which are collective.

    `old`: Those before the change.
    `shard`: Part of the graph, of which `shared`, `owned` and `offsets` include the new vertices.
    `places`: Number of old vertices before each new one, ascending.
    """

    old: GraphVertices
    shard: Shard
    places: Integers

    def positions_of(self, vertices: Vertices, argument: str) -> Integers:
        """Return the position of each vertex of a frame, or -1."""
        check_kinds(vertices.kinds, self.old.kinds, argument)
        return self.moved(self.old.find_positions(list(map(HOST.as_column, vertices.columns)), argument))

    @property
    def own(self) -> Integers:
        """Present positions of the old vertices that this rank owns."""
        return self.moved(np.arange(self.old.own.start, self.old.own.stop))

    def moved(self, positions: Integers) -> Integers:
        """Return the present positions of old vertices; -1 for -1."""
        present: Integers = positions + np.searchsorted(self.places, positions, side="right")
        return present

    def extend(self, vertices: Vertices, frame_positions: Integers) -> tuple[_Index, Integers, Integers]:
        """Return the index extended by the vertices whose position is -1, all positions, and `places`."""
        communicator, shard, n = self.old.communicator, self.shard, len(self.old)
        columns = list(map(HOST.as_column, vertices.columns))
        shared = [
            _joint_type(communicator, *of_column, shard.adjacency.memory_space)
            for of_column in zip(shard.shared, shard.owned, columns, vertices.kinds, strict=True)
        ]
        new = np.flatnonzero(frame_positions < 0)
        ids = [HOST.to_host(HOST.without_categories(column.take(new))) for column in columns]
        ids = [cast_ids(*pair) for pair in zip(ids, shared, strict=True)]
        places = np.full(new.size, n)
        if [common.kind for common in shared] == ["integer"] and n:
            own, xp = shard.owned[0].astype(ids[0].dtype), namespace(shard.owned[0])
            places = all_reduce_sum(communicator, to_host(xp.searchsorted(own, xp.asarray(cast(Array, ids[0])))))
        mine = np.flatnonzero(shard.owners_of(places) == communicator.rank)
        offsets = shard.offsets[:-1] + np.searchsorted(places, shard.offsets[:-1])
        index, positions = self._replace(places=places), places + np.arange(new.size)
        order = np.argsort(np.append(index.own, positions[mine]))
        owned = [
            _joined(old if n else added[:0], added[mine], like, order)
            for old, added, like in zip(shard.owned, ids, shared, strict=True)
        ]
        shard = replace(shard, shared=shared, owned=owned, offsets=[*offsets.tolist(), n + new.size])
        found = index.moved(frame_positions)
        found[new] = positions
        return index._replace(shard=shard), found, places


def _joined(old: Any, added: Any, like: CommonType, order: Integers) -> Any:
    """Return ids that a rank owns and new ones, in the memory space of the former, in an order."""
    xp = namespace(old)
    if not is_host(old):  # a single column of integers
        return xp.concatenate([old.astype(added.dtype), xp.asarray(added)])[xp.asarray(order)]
    return HOST.concatenate([cast_ids(old, like), added], "vertices").take(order)


def _joint_type(
    communicator: Communicator, shared: CommonType, owned: Column, column: Column, kind: str, memory_space: MemorySpace
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
    """The in-edges of this rank's vertices, and those between vertices of a change by their positions after it."""

    def __init__(self, communicator: Communicator, shard: Shard, change: Change[_Index]) -> None:
        self._communicator, self._change, self._references = communicator, change, shard.references
        index = change.vertices
        own = namespace(shard.adjacency.out_weight).asarray(index.own)
        self._csc, self._positions = shard.adjacency.get(Csc), of_ghosts(communicator, shard.ghost_sources, own)
        (offsets, sources, weights), xp = self._csc, namespace(self._positions)
        ends = [end for edges in change[:2] for end in (edges.source, edges.destination)]
        changed = xp.asarray(np.isin(to_host(self._positions), np.concatenate(ends)))
        targets = rows_of(offsets, sources.size)
        entries = xp.flatnonzero(changed[targets])
        entries = entries[changed[sources[entries]]]
        self._entries, self._weights = entries, None if weights is None else to_host(weights[entries])
        self._ends = [to_host(self._positions[ends[entries]]) for ends in (targets, sources)]

    def changed(self, duplicates: Duplicates, *, directed: bool) -> EdgeRows:
        """Return the edges after the change."""
        change, planned, (offsets, sources, weights) = self._change, self._change.vertices.shard, self._csc
        xp = namespace(sources)
        added, removed, replaced = apply_duplicates(
            *change[:2], duplicates, planned.n, self._have_edge, directed=directed
        )
        gone = [mine for edges in (removed, replaced) for mine in self._removals(edges, directed=directed)]
        kept, all_gone = xp.ones(sources.size, np.bool_), np.concatenate(gone)
        kept[self._entries[xp.asarray(all_gone[all_gone >= 0])]] = False
        added = added.take(planned.owners_of(added.destination) == self._communicator.rank)
        sources, targets = sources[kept], rows_of(offsets, sources.size)[kept]
        times = None
        if self._references is not None and weights is not None:
            old = times_of_stored(to_host(weights[kept]), self._references[to_host(sources)])
            times = old if added.times is None else np.concatenate([old, added.times])
        if weights is not None:
            new = np.ones(added.m) if added.weights is None else added.weights
            weights = xp.concatenate([weights[kept], xp.asarray(new)])
        source, target = (
            xp.concatenate([self._positions[old], xp.asarray(new)])
            for old, new in ((sources, added.source), (targets, added.destination))
        )
        return EdgeRows(source, target, weights, times)

    def _removals(self, edges: Coo, *, directed: bool) -> list[Integers]:
        """Return the numbers of edges to remove, of an undirected graph both ways, as `_find`; collective.

        The reverse of an edge has the weight of its row, or that of the edge that was found if any weight matches: see
        `prplugin.streams.host_edges.HostEdges`.
        """
        source, destination = edges.source, edges.destination
        weights, times, decays = edges.weights, edges.times, self._references is not None
        is_any = weights is None and times is None
        references = [
            self._references_at(end) if decays else np.zeros(edges.m, np.int64) for end in (source, destination)
        ]
        if is_any and not directed:
            swapped = references[0] > references[1]
            source, destination = np.where(swapped, destination, source), np.where(swapped, source, destination)
            references = [np.minimum(*references), np.maximum(*references)]
        scaled = None if times is None or not decays else ScaledWeights.of(weights, times)
        mine = self._find(source, destination, weights if scaled is None else scaled.stored(references[0]))
        found, stored = self._shared(mine >= 0, NOTHING if self._weights is None else self._weights[mine[mine >= 0]])
        if not found.all():
            raise ChangeError("missing", np.flatnonzero(~found))
        if directed:
            return [mine]
        if decays:
            scaled = ScaledWeights.of_stored(stored, references[0]) if scaled is None else scaled
            stored = scaled.stored(references[1])
        loops = source == destination
        back = self._find(destination, source, None if self._weights is None else stored)
        found = self._shared(back >= 0, NOTHING)[0] | loops
        if not found.all():
            raise ChangeError("missing", np.flatnonzero(~found))
        return [mine, np.where(loops, -1, back)]

    def _have_edge(self, pairs: Coo) -> Booleans:
        return self._shared(self._find(pairs.source, pairs.destination, None) >= 0, NOTHING)[0]

    def _find(self, source: Integers, destination: Integers, weights: Floats | None) -> Integers:
        """Return the number of a different edge of `_entries` for each edge, the first of equal weight, or -1."""
        wanted: list[Array] = [destination, source]
        present: list[Array] = list(self._ends)
        if weights is not None and self._weights is not None:
            wanted.append(weights)
            present.append(self._weights)
        return match_rows(wanted, present)

    def _references_at(self, positions: Integers) -> Integers:
        """Return the reference exponents of old vertices; collective."""
        assert self._references is not None
        own = self._change.vertices.own
        found = np.searchsorted(own, positions)
        mine = (found < own.size) & (np.append(own, -1)[found] == positions)
        return self._shared(mine, self._references[found[mine]])[1]

    def _shared(self, has: Booleans, values: NDArray[Scalar]) -> tuple[Booleans, NDArray[Scalar]]:
        """Return which values any rank has, and these, given those of this rank."""
        found, joined = np.zeros(has.size, np.bool_), np.zeros(has.size, values.dtype)
        for mine, sent in self._communicator.all_gather((has, values)):
            found |= mine
            if len(sent):
                joined[mine] = sent
        return found, joined


def _check_range(new: Shard, index: _Index, given: tuple[FrameEdges, FrameEdges]) -> None:
    """Raise if the remaining edges of a vertex are so much older than those removed that their weights underflow."""
    if new.references is None:
        return
    old = index.old
    out_weight = to_host(new.adjacency.out_weight)[index.own - new.owned_by(old.communicator.rank).start]
    underflowing = np.flatnonzero((out_weight > 0) & (out_weight < MIN_OUT_WEIGHT))
    if underflowing.size:
        raise ChangeError("underflow", underflowing).explained(*given, old.on_host)
