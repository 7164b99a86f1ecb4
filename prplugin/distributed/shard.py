"""A rank's part of the graph: the vertices that it owns, their in-edges, and its ghosts.

A rank owns the vertices of a range of keys (`numbering`) and all their in-edges. Sources of these edges that other
ranks own are its ghosts: a graph of both, without edges into ghosts, is all that a method has to know. Each rank knows
which of its vertices are ghosts elsewhere, in the order that they have there; along these lists it sends out-weights
once and contributions in every iteration, and nothing else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from prplugin.distributed.communicator import Communicator, agreed, all_agreed, largest, offsets_of_ranks
from prplugin.distributed.factorize import (
    Directory,
    Part,
    keys_by_appearance,
    keys_of_integers,
    owners_of,
    pieces_of,
    runs_of,
    split,
)
from prplugin.errors import InvalidEdgesError, RefusedRows, counted, listed, refusal
from prplugin.frames.columns import Columns
from prplugin.frames.parts import (
    Shared,
    endpoints_of_partitions,
    facts_of_partitions,
    joined_endpoints,
    weights_of_partitions,
)
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import one_edge_a_pair
from prplugin.graph.factorize import factorize_ids
from prplugin.options import Duplicates
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import ANY, Edges, Floats, Integers, index_dtype

__all__ = ["Shard", "build"]


@dataclass
class Shard:
    """A rank's part of a graph.

    Vertices 0 .. rows - 1 of `adjacency` are those that the rank owns, in the order of the result; after them come its
    ghosts, by owner. Its out-weights are those of the whole graph.
    """

    adjacency: Adjacency
    rows: int
    offsets: list[int]  # of each rank's vertices in the whole graph, and their number
    m: int  # edges of the whole graph
    largest: int  # most edges that a rank has
    sent: list[Integers]  # the vertices that are ghosts of each rank, in the order that they have there
    ghosts: list[int]  # number of ghosts by owner
    keys: Integers  # of the vertices that the rank owns, ascending
    splitters: Integers
    directory: Directory
    longest: int = 0  # largest in-degree of the whole graph
    out_weight_depth: int = 0  # rounding depth of an out-weight, at most, on any rank
    seconds: dict[str, float] = field(default_factory=dict)  # duration of each stage of the construction

    @property
    def n(self) -> int:
        """Number of vertices of the whole graph."""
        return self.offsets[-1]


class Stages:
    """Durations of consecutive stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def done(self, stage: str) -> None:
        """Record the end of a stage, at which the next begins."""
        now = time.perf_counter()
        self.seconds[stage] = now - self._began
        self._began = now


@dataclass(frozen=True)
class _Rows:
    """Edges by the keys of their endpoints, in the order of the frame."""

    source: Integers
    target: Integers
    weights: Floats | None
    rows: Integers | None = None  # rows in the frame, for errors

    def columns(self) -> list[Any]:
        return [self.source, self.target, self.weights, self.rows]


def build(
    communicator: Communicator,
    parts: Any,
    frames: list[Any],
    partitions: list[int],
    like: Any,
    columns: Columns,
    more: list[Any] | None,
    *,
    directed: bool,
    duplicates: Duplicates,
) -> Shard:
    """Build the graph, on all ranks together.

    `parts`: operations on ids and frames: `prplugin.frames._pandas_parts` or `_cudf_parts`.
    `frames` (list of frames): the partitions that this rank holds, in their order.
    `partitions`: their numbers.
    `like`: without rows, of the type of all partitions.
    `more` (list of pandas Series, or None): this rank's share of additional vertices, column by column.
    """
    stages = Stages()
    part = _part(communicator, [len(frame) for frame in frames], partitions, 0 if more is None else len(more[0]))
    labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    if more is not None:
        several = len(columns.source) > 1
        labels.append([f"vertices[{name!r}]" if several else "vertices" for name in columns.source_names])
    pieces, placed = agreed(communicator, partial(endpoints_of_partitions, parts, frames, partitions, columns))
    shared = _shared(communicator, parts, part, pieces, more, labels)
    if not frames:  # this rank holds none
        like = like.iloc[:0]
        frames, placed, pieces = [like], [columns], [parts.endpoints_of(like, columns)]
    read_weights = partial(weights_of_partitions, parts, frames, partitions or [0], placed, part.starts or [0])
    weights: Floats | None = agreed(communicator, read_weights)
    endpoints = joined_endpoints(parts, pieces, shared, labels)
    del pieces
    if more is not None:
        endpoints.append(more)
    stages.done("read")
    if [one.kind for one in shared] == ["integer"]:
        keys = [parts.integers_of(end[0], label[0], shared[0]) for end, label in zip(endpoints, labels, strict=True)]
        splitters = keys_of_integers(communicator, part, keys)
        directory = Directory(parts, shared, [], None, [])
    else:
        keys, splitters, directory = keys_by_appearance(communicator, parts, part, endpoints, labels, shared)
    del endpoints, frames
    stages.done("number")
    rows = _rows_of(communicator, part, keys, weights, splitters, directed=directed, duplicates=duplicates)
    stages.done("shuffle")
    shard = _factorized(communicator, rows, keys[2] if more is not None else keys[0][:0], splitters, directory)
    stages.done("renumber")
    del rows
    shard.longest = largest(communicator, shard.adjacency.largest_in_degree if shard.adjacency.n else 0)
    _find_out_weights(communicator, shard, f"column {columns.weight_name!r}")
    stages.done("layout")
    shard.seconds = stages.seconds
    return shard


# --- reading ------------------------------------------------------------------------------------------------------


def _part(communicator: Communicator, lengths: list[int], partitions: list[int], more: int) -> Part:
    """Return the rows of the frame that this rank holds."""
    everyone = communicator.gather((dict(zip(partitions, lengths, strict=True)), more))
    length_of = {partition: length for lengths, _ in everyone for partition, length in lengths.items()}
    starts, rows = {}, 0
    for partition in sorted(length_of):
        starts[partition] = rows
        rows += length_of[partition]
    begins = sum(count for _, count in everyone[: communicator.rank])
    return Part(partitions, [starts[partition] for partition in partitions], lengths, rows, begins)


def _shared(
    communicator: Communicator,
    parts: Any,
    part: Part,
    pieces: list[Any],
    more: list[Any] | None,
    labels: list[list[str]],
) -> list[Shared]:
    """Determine the common type of each column of a vertex over all partitions."""

    def facts() -> tuple[Any, Any]:
        of_partitions = facts_of_partitions(parts, pieces, part.partitions, part.starts, labels)
        of_more = more and [parts.facts(column, name) for column, name in zip(more, labels[2], strict=True)]
        return list(zip(part.partitions, of_partitions, strict=True)), of_more

    everyone = all_agreed(communicator, facts)
    found = [facts for _, facts in sorted((pair for pairs, _ in everyone for pair in pairs), key=itemgetter(0))]
    shared = []
    for column, column_labels in enumerate(zip(*labels, strict=True)):
        endpoints = [[of_endpoints[end][column] for of_endpoints in found] for end in range(2)]
        if more is not None:
            endpoints.append([of_more[column] for _, of_more in everyone])
        shared.append(parts.as_shared(endpoints, list(column_labels)))
    return shared


# --- to the owners of the targets ---------------------------------------------------------------------------------


def _rows_of(
    communicator: Communicator,
    part: Part,
    keys: list[Integers],
    weights: Floats | None,
    splitters: Integers,
    *,
    directed: bool,
    duplicates: Duplicates,
) -> _Rows:
    """Send every edge to the rank that owns its target; keep the order of the frame."""
    source, target = keys[:2]
    xp = namespace(source)
    if duplicates != "sum":
        # Both rows of a pair go to the same rank, even where their endpoints are swapped.
        in_frame = xp.asarray(part.rows_of(np.arange(source.size))) if duplicates == "error" else None
        owner = owners_of(target if directed else xp.maximum(source, target), splitters)
        rows = _shuffled(communicator, part, _Rows(source, target, weights, in_frame), owner)
        rows = agreed(communicator, partial(_one_a_pair, rows, duplicates, directed=directed))
        if directed:
            return rows
        source, target, weights = rows.source, rows.target, rows.weights
        part = replace(part, partitions=[communicator.rank], lengths=[source.size])
    rows = _shuffled(communicator, part, _Rows(source, target, weights), owners_of(target, splitters))
    if directed:
        return rows
    # Reverse edges go to the owner of the source; self-loops have none.
    back = xp.flatnonzero(source != target)
    part = replace(part, lengths=_counts_below(back, part.lengths))
    reverse = _Rows(target[back], source[back], None if weights is None else weights[back])
    others = _shuffled(communicator, part, reverse, owners_of(source, splitters)[back])
    together: list[Any] = [
        None if one is None else xp.concatenate([one, other])
        for one, other in zip(rows.columns(), others.columns(), strict=True)
    ]
    return _Rows(*together)


def _host(array: Any) -> Any:
    return to_host(array)


def _counts_below(rows: Integers, lengths: list[int]) -> list[int]:
    """Count ascending row numbers by partition."""
    ends = namespace(rows).asarray(np.cumsum(lengths, dtype=np.int64).astype(rows.dtype))
    counts: list[int] = np.diff(_host(namespace(rows).searchsorted(rows, ends)), prepend=0).tolist()
    return counts


def _shuffled(communicator: Communicator, part: Part, rows: _Rows, owner: Integers) -> _Rows:
    """Send rows to their owners, and restore the order of the frame there, whoever held which partition."""
    size = communicator.size
    if size == 1:
        return rows
    pieces, order = pieces_of(owner, size)
    sizes = [piece.size for piece in pieces]
    everyone = communicator.gather((part.partitions, [_counts_below(piece, part.lengths) for piece in pieces]))
    received = []  # partition, rank that held it, and where its rows begin and end among those of that rank
    for rank, (partitions, sent) in enumerate(everyone):
        ends = np.cumsum([0, *sent[communicator.rank]]).tolist()
        received += [(partition, rank, *cut) for partition, cut in zip(partitions, pairwise(ends), strict=True)]
    received.sort()

    def shuffled(column: Any) -> Any:
        if column is None:
            return None
        arrays = communicator.swap(split(column[order], sizes))
        in_order = [arrays[rank][begin:end] for _, rank, begin, end in received]
        return namespace(column).concatenate(in_order) if in_order else arrays[0][:0]

    return _Rows(*(shuffled(column) for column in rows.columns()))


def _one_a_pair(rows: _Rows, duplicates: Duplicates, *, directed: bool) -> _Rows:
    """Keep the first or the last row of each pair on this rank, or refuse repeated pairs."""
    (source, target), ids = factorize_ids([rows.source, rows.target])
    try:
        kept = one_edge_a_pair(Edges(source, target, rows.weights, ids.size), duplicates, directed=directed)
    except InvalidEdgesError as error:
        if rows.rows is None or error.refused is None:
            raise
        found = _host(rows.rows)[error.refused.rows].tolist()
        raise refusal(InvalidEdgesError, replace(error.refused, rows=found)) from None
    return _Rows(ids[kept.source], ids[kept.destination], kept.weights)


# --- vertices and ghosts ------------------------------------------------------------------------------------------


def _factorized(
    communicator: Communicator, rows: _Rows, more: Integers, splitters: Integers, directory: Directory
) -> Shard:
    """Determine the vertices that this rank owns and its ghosts, and factorize the endpoints of its edges."""
    rank, size = communicator.rank, communicator.size
    xp = namespace(rows.source)
    (codes,), sources = factorize_ids([rows.source])
    runs = runs_of(sources, splitters)
    asked = communicator.swap([sources[begin:end] for begin, end in runs])
    owner = owners_of(more, splitters)
    named = communicator.swap([more[owner == one] for one in range(size)])
    (targets, wanted, _), keys = factorize_ids([rows.target, xp.concatenate(asked), xp.concatenate(named)])
    sent = split(wanted, [ids.size for ids in asked])
    ghosts = [0 if one == rank else end - begin for one, (begin, end) in enumerate(runs)]
    n = keys.size + sum(ghosts)
    slots = xp.empty(sources.size, index_dtype(n))
    ghost = keys.size
    for one, (begin, end) in enumerate(runs):
        if one == rank:
            slots[begin:end] = sent[rank]
        else:
            slots[begin:end] = xp.arange(ghost, ghost + end - begin)
            ghost += end - begin
    edges = Edges(slots[codes], targets.astype(slots.dtype, copy=False), rows.weights, n, _extent(rows.weights))
    sent[rank] = sent[rank][:0]
    m = communicator.gather(edges.m)
    return Shard(
        adjacency=Adjacency(edges),
        rows=keys.size,
        offsets=offsets_of_ranks(communicator, keys.size),
        m=sum(m),
        largest=max(m),
        sent=sent,
        ghosts=ghosts,
        keys=keys,
        splitters=splitters,
        directory=directory,
    )


def _extent(weights: Floats | None) -> tuple[float, float]:
    if weights is None or namespace(weights) is np:
        return ANY
    from prplugin.gpu.factorize import extremes  # imports CuPy, which holds the weights

    return extremes([], weights)[2:]


def _find_out_weights(communicator: Communicator, shard: Shard, label: str) -> None:
    """Sum the out-weight of each vertex over all ranks, on its owner, and send it to those that have it as a ghost."""
    adjacency, rank = shard.adjacency, communicator.rank
    xp = namespace(adjacency.out_weight)
    partial_sums = adjacency.out_weight
    mine = partial_sums[: shard.rows].copy()
    for one, weights in enumerate(communicator.swap(split(partial_sums[shard.rows :], shard.ghosts))):
        if one != rank:
            with np.errstate(over="ignore"):  # checked below
                mine[shard.sent[one]] += weights
    # A rank's own roundings, and at most one addition per rank.
    shard.out_weight_depth = (
        largest(communicator, adjacency.out_weight_depth) + communicator.size if adjacency.weighted else 0
    )
    agreed(communicator, lambda: _check_range(shard, mine, label))
    out_weight = xp.full(adjacency.n, np.nan)  # that of ghosts is used with edge weights alone
    out_weight[: shard.rows] = mine
    if adjacency.weighted:
        out_weight[shard.rows :] = xp.concatenate(communicator.swap([mine[vertices] for vertices in shard.sent]))
    adjacency.know_out_weight(out_weight, shard.out_weight_depth)


def _check_range(shard: Shard, out_weight: Floats, label: str) -> None:
    if not shard.adjacency.weighted:
        return
    rows = _host(namespace(out_weight).flatnonzero(~namespace(out_weight).isfinite(out_weight)))
    if rows.size:
        shown = shard.directory.spelt(shard.keys, rows[:5])
        raise refusal(InvalidEdgesError, RefusedRows(partial(_past_range, label), rows.size, rows[:5].tolist(), shown))


def _past_range(label: str, vertices: RefusedRows) -> str:
    return (
        f"{label}: the weights that leave {counted(vertices.count, 'vertex', 'vertices')} "
        f"({listed(vertices.padded(vertices.held))}) sum to more than float64 holds. "
        f"Divide {label} by its greatest value."
    )
