"""Part of the graph on one rank: the vertices that it owns, their in-edges, and its ghosts.

A rank owns the vertices of a range of keys (`factorize`) and all their in-edges. Sources of these edges that other
ranks own are its ghosts. A method runs on the graph of owned vertices and ghosts, in which ghosts have no in-edges.
Each rank has a list of its vertices that are ghosts on each other rank, in the order of the ghosts there. According to
these lists it sends out-weights once, and contributions in every iteration.
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
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.factorize import factorize_ids
from prplugin.options import Duplicates
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import ANY, Edges, Floats, Integers, index_dtype

__all__ = ["Shard", "build"]


@dataclass
class Shard:
    """A rank's part of a graph.

    Vertices 0 .. rows - 1 of `adjacency` are those that the rank owns, in the order of the result. Its ghosts follow,
    grouped by owner. The out-weights of `adjacency` are those of the whole graph.
    """

    adjacency: Adjacency
    rows: int
    offsets: list[int]  # first vertex of each rank in the whole graph, and n
    m: int  # number of edges of the whole graph
    largest: int  # largest number of edges of a rank
    sent: list[Integers]  # for each rank, the vertices of this rank that are ghosts there, in the order of these
    ghosts: list[int]  # number of ghosts per owner
    keys: Integers  # keys of the vertices that the rank owns, ascending
    splitters: Integers  # lowest key of each rank but the first
    directory: Directory
    longest: int = 0  # largest in-degree of the whole graph
    out_weight_depth: int = 0  # largest rounding depth of an out-weight, over all ranks
    seconds: dict[str, float] = field(default_factory=dict)  # duration of each stage of `build`

    @property
    def n(self) -> int:
        """Number of vertices of the whole graph."""
        return self.offsets[-1]


class Stages:
    """Measures the durations of consecutive stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def done(self, stage: str) -> None:
        """Record the end of a stage and the beginning of the next one."""
        now = time.perf_counter()
        self.seconds[stage] = now - self._began
        self._began = now


@dataclass(frozen=True)
class _Rows:
    """Edges by the keys of their endpoints, in the order of the frame."""

    source: Integers
    target: Integers
    weights: Floats | None
    rows: Integers | None = None  # row numbers in the frame, for messages

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
    """Build the graph; collective. Return this rank's part.

    Parameters
    ----------
    parts : module
        Operations on partitions: `prplugin.frames._pandas_parts` or `_cudf_parts`.
    frames : list of frames
        Partitions that this rank holds, in ascending order of their numbers.
    partitions : list of int
        Numbers of these partitions.
    like : frame
        Empty frame of the type of the partitions.
    more : list of pandas Series, or None
        This rank's part of the additional vertices, column by column.
    """
    stages = Stages()
    part = _part(communicator, [len(frame) for frame in frames], partitions, 0 if more is None else len(more[0]))
    labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    if more is not None:
        several = len(columns.source) > 1
        labels.append([f"vertices[{name!r}]" if several else "vertices" for name in columns.source_names])
    pieces, placed = agreed(communicator, partial(endpoints_of_partitions, parts, frames, partitions, columns))
    shared = _shared(communicator, parts, part, pieces, more, labels)
    if not frames:  # this rank holds no partition
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
    """Return the `Part` of the frame that this rank holds; collective."""
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
    """Return the common type of each column of the vertices over all partitions; collective."""

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


# --- exchange of edges --------------------------------------------------------------------------------------------


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
    """Send each edge to the owner of its target; return the edges received, in the order of the frame.

    Apply `duplicates`, and add reverse edges if not `directed`.
    """
    source, target = keys[:2]
    xp = namespace(source)
    if duplicates != "sum":
        # All rows of a pair go to the same rank, which detects duplicates; (b, a) too if the graph is undirected.
        in_frame = xp.asarray(part.rows_of(np.arange(source.size))) if duplicates == "error" else None
        owner = owners_of(target if directed else xp.maximum(source, target), splitters)
        rows = _shuffled(communicator, part, _Rows(source, target, weights, in_frame), owner)
        rows = agreed(communicator, partial(_drop_duplicates, rows, duplicates, directed=directed))
        if directed:
            return rows
        source, target, weights = rows.source, rows.target, rows.weights
        part = replace(part, partitions=[communicator.rank], lengths=[source.size])
    rows = _shuffled(communicator, part, _Rows(source, target, weights), owners_of(target, splitters))
    if directed:
        return rows
    # The target of a reverse edge is the source of the row. Self-loops have no reverse edge.
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
    """Count ascending row numbers of this rank per partition; `lengths` are those of the partitions."""
    ends = namespace(rows).asarray(np.cumsum(lengths, dtype=np.int64).astype(rows.dtype))
    counts: list[int] = np.diff(_host(namespace(rows).searchsorted(rows, ends)), prepend=0).tolist()
    return counts


def _shuffled(communicator: Communicator, part: Part, rows: _Rows, owner: Integers) -> _Rows:
    """Send rows to their owners; return the rows received, in the order of the frame.

    The result does not depend on which rank held which partition.
    """
    size = communicator.size
    if size == 1:
        return rows
    pieces, order = pieces_of(owner, size)
    sizes = [piece.size for piece in pieces]
    everyone = communicator.gather((part.partitions, [_counts_below(piece, part.lengths) for piece in pieces]))
    received = []  # partition, rank that held it, begin and end of its rows in the data from that rank
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


def _drop_duplicates(rows: _Rows, duplicates: Duplicates, *, directed: bool) -> _Rows:
    """Keep the first or the last row of each pair on this rank, or raise for repeated pairs."""
    (source, target), ids = factorize_ids([rows.source, rows.target])
    try:
        kept = drop_duplicates(Edges(source, target, rows.weights, ids.size), duplicates, directed=directed)
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
    """Determine the owned vertices and the ghosts of each rank, and factorize the endpoints of its edges.

    `rows` are the edges to owned targets; `more` holds keys of vertices that need not have edges on this rank.
    """
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
    """Sum the out-weight of each vertex over all ranks on its owner, and send the sum to the ranks of its ghosts."""
    adjacency, rank = shard.adjacency, communicator.rank
    xp = namespace(adjacency.out_weight)
    partial_sums = adjacency.out_weight
    mine = partial_sums[: shard.rows].copy()
    for one, weights in enumerate(communicator.swap(split(partial_sums[shard.rows :], shard.ghosts))):
        if one != rank:
            with np.errstate(over="ignore"):  # checked below
                mine[shard.sent[one]] += weights
    # Depth on one rank, plus at most one addition per rank.
    shard.out_weight_depth = (
        largest(communicator, adjacency.out_weight_depth) + communicator.size if adjacency.weighted else 0
    )
    agreed(communicator, lambda: _check_range(shard, mine, label))
    out_weight = xp.full(adjacency.n, np.nan)  # out-weights of ghosts are needed only for weighted edges
    out_weight[: shard.rows] = mine
    if adjacency.weighted:
        out_weight[shard.rows :] = xp.concatenate(communicator.swap([mine[vertices] for vertices in shard.sent]))
    adjacency.set_out_weight(out_weight, shard.out_weight_depth)


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
