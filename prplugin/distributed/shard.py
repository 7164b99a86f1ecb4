"""A rank's part of the graph: the vertices that it owns, their in-edges, and what it exchanges for them.

A rank owns the vertices of a range of numbers (`numbering`), and all edges that lead to them. Vertices of other ranks
that have edges to it are its ghosts: a graph of both, without edges into ghosts, is all that a method has to know. The
owner of a ghost keeps a list of who has it, in the order in which they do; along these lists go out-weights once, and
contributions in every iteration, and nothing else.
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
from prplugin.distributed.numbering import Directory, Part, keys_by_appearance, keys_of_integers, owners_of, runs_of
from prplugin.errors import InvalidEdgesError, RefusedRows, counted, listed, refusal
from prplugin.frames.columns import Columns
from prplugin.frames.parts import Shared, ends_of_partitions, facts_of_partitions, joined_ends, weights_of_partitions
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import one_edge_a_pair
from prplugin.graph.factorize import renumber
from prplugin.options import Duplicates
from prplugin.types.arrays import moved, namespace
from prplugin.types.edges import ANY, Edges, Floats, Integers, index_dtype

__all__ = ["Shard", "build"]


@dataclass
class Shard:
    """What a rank keeps of a graph.

    `adjacency`: Vertices 0 .. rows - 1 are those that the rank owns, in the order of the result; after them come its
    ghosts, by owner. Its out-weights are those in the whole graph.
    `rows`: How many it owns.
    `offsets`: At which vertex of the whole graph those of each rank begin, and how many there are.
    `m`, `longest`, `largest`: Edges of the whole graph, the most in-edges of a vertex, and the most edges that a rank
    has.
    `sent`: Of the vertices that it owns, those that each rank has for ghosts, in the order in which it has them.
    `ghosts`: How many of each rank's vertices are ghosts here.
    `chain`: Roundings that an out-weight carries at most, on any rank.
    `keys`: The numbers of the vertices that it owns, ascending.
    `seconds`: What each stage took.
    """

    adjacency: Adjacency
    rows: int
    offsets: list[int]
    m: int
    longest: int
    largest: int
    sent: list[Integers]
    ghosts: list[int]
    chain: int
    keys: Integers
    splitters: Integers
    directory: Directory
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many vertices the whole graph has."""
        return self.offsets[-1]


class Stages:
    """Takes the time of one stage after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def done(self, stage: str) -> None:
        """Say that a stage ends, and with it the next begins."""
        now = time.perf_counter()
        self.seconds[stage] = now - self._began
        self._began = now


@dataclass(frozen=True)
class _Rows:
    """Edges by number, in the order of the frame."""

    source: Integers
    target: Integers
    weights: Floats | None
    rows: Integers | None  # of the frame, where anyone asks

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
    """Make a graph together.

    `parts` (module): What handles ids and frames: `prplugin.frames._pandas_parts` or `_cudf_parts`.
    `frames`: The partitions that this rank holds, in their order.
    `partitions`: Which they are.
    `like` (frame): Without rows, of the type of all partitions.
    `more` (list of pandas Series, or None): This rank's share of more vertices, column by column.
    """
    stages = Stages()
    part = _part(communicator, [len(frame) for frame in frames], partitions, 0 if more is None else len(more[0]))
    labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    if more is not None:
        several = len(columns.source) > 1
        labels.append([f"vertices[{name!r}]" if several else "vertices" for name in columns.source_names])
    pieces, placed = agreed(communicator, partial(ends_of_partitions, parts, frames, partitions, columns))
    shared = _shared(communicator, parts, part, pieces, more, labels)
    if not frames:  # this rank holds none
        like = like.iloc[:0]
        frames, placed, pieces = [like], [columns], [parts.ends_of(like, columns)]
    read_weights = partial(weights_of_partitions, parts, frames, partitions or [0], placed, part.starts or [0])
    weights: Floats | None = agreed(communicator, read_weights)
    ends = joined_ends(parts, pieces, shared, labels)
    del pieces
    if more is not None:
        ends.append(more)
    stages.done("read")
    if [one.kind for one in shared] == ["integer"]:
        keys = [parts.integers_of(end[0], label[0], shared[0]) for end, label in zip(ends, labels, strict=True)]
        splitters = keys_of_integers(communicator, part, keys)
        directory = Directory(parts, shared, [], None, [])
    else:
        keys, splitters, directory = keys_by_appearance(communicator, parts, part, ends, labels, shared)
    del ends, frames
    stages.done("number")
    # What the frame's memory holds is not to be changed: copied where nothing else copies it.
    numbered = _rows_of(communicator, part, keys, weights, splitters, directed=directed, duplicates=duplicates)
    stages.done("shuffle")
    shard = _renumbered(communicator, numbered, keys[2] if more is not None else keys[0][:0], splitters, directory)
    stages.done("renumber")
    del numbered
    shard.longest = largest(communicator, _longest(shard))
    _find_out_weights(communicator, shard, f"column {columns.weight_name!r}")
    stages.done("layout")
    shard.seconds = stages.seconds
    return shard


# --- reading ------------------------------------------------------------------------------------------------------


def _part(communicator: Communicator, lengths: list[int], partitions: list[int], more: int) -> Part:
    """Find which rows of the frame this rank holds."""
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
    """Find what the columns of a vertex are in all partitions."""

    def facts() -> tuple[Any, Any]:
        of_partitions = facts_of_partitions(parts, pieces, part.partitions, part.starts, labels)
        of_more = (
            None if more is None else [parts.facts(column, name) for column, name in zip(more, labels[2], strict=True)]
        )
        return list(zip(part.partitions, of_partitions, strict=True)), of_more

    everyone = all_agreed(communicator, facts)
    # In the order of the partitions, whoever holds which.
    found = [facts for _, facts in sorted((pair for pairs, _ in everyone for pair in pairs), key=itemgetter(0))]
    # The same on every rank, errors included.
    return [
        parts.as_shared(
            [[facts[end][column] for facts in found] for end in range(2)]
            + ([] if more is None else [[of_more[column] for _, of_more in everyone]]),
            [label[column] for label in labels],
        )
        for column in range(len(labels[0]))
    ]


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
    """Bring every edge to the rank that owns its target, in the order of the frame."""
    source, target = keys[:2]
    xp = namespace(source)
    if duplicates != "sum":
        # Both rows of a pair to the same rank, even where they name its ends the other way round.
        whole = xp.asarray(part.rows_of(np.arange(source.size))) if duplicates == "error" else None
        meeting = target if directed else xp.maximum(source, target)
        rows = _shuffled(
            communicator, part, _Rows(source, target, weights, whole), owners_of(meeting, splitters), part.lengths
        )
        rows = agreed(communicator, partial(_one_a_pair, rows, duplicates, directed=directed))
        if directed:
            return rows
        lengths, here = [rows.source.size], replace(part, partitions=[communicator.rank])
        source, target, weights, part = rows.source, rows.target, rows.weights, here
    else:
        lengths = part.lengths
    owner = owners_of(target, splitters)
    rows = _shuffled(communicator, part, _Rows(source, target, weights, None), owner, lengths)
    if directed:
        return rows
    # The way back, to the owner of the source; a self-loop has none.
    there = owners_of(source, splitters)
    back = xp.flatnonzero(source != target)
    ends = np.cumsum(lengths)
    lengths = np.diff(np.searchsorted(_host(back), ends), prepend=0).tolist()
    reverse = _Rows(target[back], source[back], None if weights is None else weights[back], None)
    others = _shuffled(communicator, part, reverse, there[back], lengths)
    together: list[Any] = [
        None if one is None else xp.concatenate([one, other])
        for one, other in zip(rows.columns(), others.columns(), strict=True)
    ]
    return _Rows(*together)


def _host(array: Any) -> Any:
    return moved(array, "host")


def _shuffled(communicator: Communicator, part: Part, rows: _Rows, owner: Integers, lengths: list[int]) -> _Rows:
    """Send rows to their owners; there they stand in the order of the frame again, whoever held which partition."""
    size = communicator.size
    xp = namespace(owner)
    if size == 1:
        return rows
    order, bounds = _by_owner(owner, size)
    # How many rows of each partition go to each rank.
    ends = np.cumsum(lengths, dtype=np.int64).astype(order.dtype)
    counts = [
        np.diff(_host(xp.searchsorted(order[begin:end], xp.asarray(ends))), prepend=0).tolist()
        for begin, end in pairwise(bounds)
    ]
    everyone = communicator.gather((part.partitions, counts))
    here = [
        (partition, rank, count)
        for rank, (partitions, sent) in enumerate(everyone)
        for partition, count in zip(partitions, sent[communicator.rank], strict=True)
    ]
    ordered = sorted(here)
    cuts: dict[tuple[int, int], tuple[int, int]] = {}
    at = dict.fromkeys(range(size), 0)
    for partition, rank, count in here:
        cuts[partition, rank] = at[rank], at[rank] + count
        at[rank] += count

    def moved_to(column: Any) -> Any:
        if column is None:
            return None
        sorted_column = column[order]
        came = communicator.swap([sorted_column[begin:end] for begin, end in pairwise(bounds)])
        pieces = [came[rank][slice(*cuts[partition, rank])] for partition, rank, _ in ordered]
        return xp.concatenate(pieces) if pieces else came[0][:0]

    return _Rows(*(moved_to(column) for column in rows.columns()))


def _by_owner(owner: Integers, size: int) -> tuple[Integers, list[int]]:
    """Give rows in the order of their owners, and where those of each begin and end."""
    if namespace(owner) is not np:
        from prplugin.gpu.sort import bits_for, order_of  # imports CuPy, which holds the rows

        ordered, order = order_of(owner, bits_for(size), owned=True)
        xp = namespace(owner)
        cuts = xp.searchsorted(ordered, xp.arange(1, size, dtype=ordered.dtype)).tolist()
        return order, [0, *cuts, owner.size]
    pieces = [np.flatnonzero(owner == rank) for rank in range(size)]
    return np.concatenate(pieces), np.cumsum([0, *(piece.size for piece in pieces)]).tolist()


def _one_a_pair(rows: _Rows, duplicates: Duplicates, *, directed: bool) -> _Rows:
    """Keep the first or the last row of each pair that has come here, or refuse repeated pairs."""
    (source, target), ids = renumber([rows.source, rows.target])
    try:
        kept = one_edge_a_pair(Edges(source, target, rows.weights, ids.size), duplicates, directed=directed)
    except InvalidEdgesError as error:
        if rows.rows is None or error.refused is None:
            raise
        found = _host(rows.rows)[error.refused.rows].tolist()
        raise refusal(InvalidEdgesError, replace(error.refused, rows=found)) from None
    return _Rows(ids[kept.source], ids[kept.destination], kept.weights, None)


# --- vertices and ghosts ------------------------------------------------------------------------------------------


def _renumbered(
    communicator: Communicator, rows: _Rows, more: Integers, splitters: Integers, directory: Directory
) -> Shard:
    """Find which vertices this rank owns and which are its ghosts, and number the ends of its edges by both."""
    rank, size = communicator.rank, communicator.size
    xp = namespace(rows.source)
    (codes,), sources = renumber([rows.source])
    runs = runs_of(sources, splitters)
    asked = communicator.swap([sources[begin:end] for begin, end in runs])
    owner = owners_of(more, splitters)
    named = communicator.swap([more[owner == one] for one in range(size)])
    columns, keys = renumber([rows.target, xp.concatenate(asked), xp.concatenate(named)])
    targets, wanted, _ = columns
    sent = _split(wanted, [ids.size for ids in asked])
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
        longest=0,
        largest=max(m),
        sent=sent,
        ghosts=ghosts,
        chain=0,
        keys=keys,
        splitters=splitters,
        directory=directory,
    )


def _split(array: Integers, sizes: list[int]) -> list[Integers]:
    ends = np.cumsum(sizes).tolist()
    return [array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _extent(weights: Floats | None) -> tuple[float, float]:
    if weights is None or namespace(weights) is np:
        return ANY
    from prplugin.gpu.factorize import extremes  # imports CuPy, which holds the weights

    return extremes([], weights)[2:]


def _longest(shard: Shard) -> int:
    return shard.adjacency.largest_in_degree if shard.adjacency.n else 0


def _find_out_weights(communicator: Communicator, shard: Shard, label: str) -> None:
    """Add up what of a vertex's out-weight each rank has, where it is owned, and tell those who have it for a ghost."""
    adjacency, rank = shard.adjacency, communicator.rank
    xp = namespace(adjacency.out_weight)
    partial_sums = adjacency.out_weight
    mine = partial_sums[: shard.rows].copy()
    of_ghosts = _split(partial_sums[shard.rows :], shard.ghosts)
    for one, weights in enumerate(communicator.swap(of_ghosts)):
        if one != rank:
            with np.errstate(over="ignore"):  # checked below
                mine[shard.sent[one]] += weights
    # As many additions as ranks, at most, after those of a rank.
    shard.chain = largest(communicator, adjacency.out_weight_chain) + communicator.size if adjacency.weighted else 0
    agreed(communicator, lambda: _check_range(shard, mine, label))
    whole = xp.full(adjacency.n, np.nan)  # of ghosts, where every edge counts 1, nobody asks
    whole[: shard.rows] = mine
    if adjacency.weighted:
        answers = communicator.swap([mine[vertices] for vertices in shard.sent])
        whole[shard.rows :] = xp.concatenate(answers)
    adjacency.know_out_weight(whole, shard.chain)


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
