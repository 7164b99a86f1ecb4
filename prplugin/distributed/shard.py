"""Part of the graph on one rank: the vertices that it owns, their in-edges, and its ghosts.

A rank owns the vertices of a range of keys (`factorize`) and all their in-edges. Sources of these edges that other
ranks own are its ghosts. A method runs on the graph of owned vertices and ghosts, in which ghosts have no in-edges.
Each rank has a list of its vertices that are ghosts on each other rank, in the order of the ghosts there. According to
these lists it sends out-weights once, and contributions in every iteration.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from prplugin.distributed.communicator import Communicator, call_on_all, gather_results
from prplugin.distributed.factorize import (
    EdgeRows,
    edges_of_owned_targets,
    keys_by_appearance,
    owners_of,
    runs_of,
    split,
    splitters_of,
)
from prplugin.errors import InvalidEdgesError, full_name, overflow_error
from prplugin.frames.columns import Column, Columns, Frame
from prplugin.frames.ids import HOST, Ids
from prplugin.frames.partitions import format_vertices
from prplugin.frames.parts import CommonType, Endpoints, Parts, common_types, complete_parts, integers_of
from prplugin.frames.times import Clock
from prplugin.frames.vertices import ids_in
from prplugin.graph.edges import Edges, factorize_ids
from prplugin.numerics import StepRounding, rounding_depth
from prplugin.options import Duplicates
from prplugin.streams.decay import ZERO_EXPONENT, ScaledWeights, roundings_of
from prplugin.streams.state import LastRanks
from prplugin.types.array_module import Scalar
from prplugin.types.arrays import MemorySpace, is_host, memory_space_of, namespace, to_host, to_memory
from prplugin.types.edges import ANY, Coo, Floats, Integers, index_dtype


@dataclass
class Starts:
    """Ranks of the vertices that a rank owns, for later rankings to start from.

    `before_update`: Those of the last ranking before the last update; None if there was none.
    `latest`: Those of the last ranking of the present graph. A ranking replaces them when it ends, without agreement
    with other ranks: concurrent rankings may leave those of one on this rank, and those of another elsewhere.
    """

    before_update: LastRanks | None = None
    latest: LastRanks | None = None


@dataclass(frozen=True)
class Shard:
    """A rank's part of a graph.

    Vertices 0 .. rows - 1 of `adjacency` are owned by the rank, in the order of the result. Its ghosts follow, grouped
    by owner. The out-weights of `adjacency` are sums over the whole graph.
    """

    adjacency: Edges
    rows: int
    offsets: list[int]  # first vertex of each rank in the whole graph, and n
    m: int  # number of edges of the whole graph
    ghost_sources: list[Integers]  # per rank: the vertices of this rank that are its ghosts, in the order of its ghosts
    ghost_counts: list[int]  # number of ghosts per owner
    shared: list[CommonType]  # common type of each column of the vertices
    owned: list[Column]  # ids that the rank owns, in the order of the result, column by column
    largest_in_degree: int  # largest in-degree of the whole graph
    out_weight_depth: int  # largest rounding depth of an out-weight, over all ranks
    label: str  # name of the weights, for messages
    references: Integers | None  # reference exponent of each vertex of `adjacency`, on the host, if weights decay
    clock: Clock | None  # of the times
    seconds: dict[str, float]  # duration of each stage of `build`
    starts: Starts = field(default_factory=Starts)

    @property
    def n(self) -> int:
        """Number of vertices of the whole graph."""
        return self.offsets[-1]

    def owned_by(self, rank: int) -> range:
        """Return the positions of the vertices that a rank owns."""
        return range(*self.offsets[rank : rank + 2])

    @property
    def splitters(self) -> Integers:
        """Splitters of the positions: see `prplugin.distributed.factorize.owners_of`."""
        return np.array(self.offsets[1:-1], np.int64)

    def owners_of(self, positions: Integers) -> Integers:
        """Return the rank that owns each position, on the host."""
        return owners_of(positions, self.splitters)

    @property
    def max_rows(self) -> int:
        """Largest number of vertices of a rank."""
        return int(np.diff(self.offsets).max())

    def step_rounding(self, row: int, sums: int) -> StepRounding:
        """Return the rounding depths of a step; `row` is the depth of a row sum, `sums` of a sum over all vertices."""
        return StepRounding(
            row=row,
            edge=self.out_weight_depth + 4 if self.adjacency.weighted else 2,
            dangling=sums,
            # Conversion of a value, the sum over a rank and over the ranks, and the quotient of both.
            vectors=rounding_depth(self.n) + len(self.offsets) + 1,
            norm=sums + 1,
        )


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


def build(
    communicator: Communicator, memory_space: MemorySpace, frames: list[Frame], partitions: list[int], columns: Columns,
    additional: list[Column] | None, *, directed: bool, duplicates: Duplicates,
) -> Shard:  # fmt: skip
    """Build the graph; collective. Return this rank's part.

    `memory_space`: Memory space of the partitions.
    `frames` are the partitions that this rank holds, at least one, by ascending number.
    `additional` holds the additional vertices, column by column; the first rank adds them.
    """
    stages, ids, times, clock = Stages(), ids_in(memory_space), None, None
    if additional is not None and communicator.rank:
        additional = [cast(Any, column).iloc[:0] for column in additional]
    parts = partitions_of(communicator, ids, frames, partitions, columns)
    frames, kept_rows = call_on_all(communicator, partial(complete_parts, ids, frames, columns))
    parts = replace(parts, frames=frames, lengths=[len(frame) for frame in frames], kept=kept_rows)
    if columns.time is not None:
        kept, times, clock = _within_window(communicator, parts)
        parts = partitions_of(communicator, ids, kept, partitions, columns)
        del kept
    labels = columns.id_labels(vertices=additional is not None)
    pieces = call_on_all(communicator, parts.endpoints)
    shared = _shared(communicator, parts, pieces, additional, labels)
    weights = call_on_all(communicator, parts.weights)
    endpoints = parts.concat(pieces, shared, labels)
    del pieces
    if additional is not None:
        endpoints.append(additional)
    stages.done("read")
    if [common.kind for common in shared] == ["integer"]:
        keys = [integers_of(ids, end[0], label[0], shared[0]) for end, label in zip(endpoints, labels, strict=True)]
        splitters = splitters_of(communicator, parts, keys)
        owned = None
    else:
        keys, splitters, owned = keys_by_appearance(communicator, parts, endpoints, labels, shared)
    del endpoints, frames
    parts = replace(parts, frames=[])  # frees those of a window
    stages.done("keys")
    source, target = keys.pop(0), keys.pop(0)  # so that no other reference is kept
    rows = EdgeRows(source, target, weights, times)
    del source, target
    rows = edges_of_owned_targets(communicator, parts, rows, splitters, directed=directed, duplicates=duplicates)
    stages.done("shuffle")
    extra = rows.target[:0] if additional is None else keys[0]
    label, roundings = f"column {columns.weight_name!r}", 0 if times is None else roundings_of(times)
    return assemble(communicator, rows, extra, splitters, shared, owned, label, stages, roundings, clock)


def assemble(
    communicator: Communicator, rows: EdgeRows, extra_keys: Integers, splitters: Integers, shared: list[CommonType],
    owned: list[Column] | None, label: str, stages: Stages, roundings: int, clock: Clock | None,
    least_references: Integers | None = None,
) -> Shard:  # fmt: skip
    """Return this rank's part of the graph, given the edges whose targets it owns; collective.

    `extra_keys`: Keys of vertices that need not have edges.
    `owned`: Ids of the vertices that this rank owns; None if these are the keys.
    `roundings`: Those of the weights, as in `prplugin.types.edges.Coo`.
    `least_references`: Reference exponents before a change of the vertices that this rank owns, of which none falls.
    """
    edges, keys_owned, ghost_sources, ghost_counts = _factorize(communicator, rows, extra_keys, splitters)
    references = None
    if rows.times is not None:
        edges, references = _decayed(communicator, edges, rows.times, ghost_sources, ghost_counts, least_references)
    edges = replace(edges, roundings=roundings)
    stages.done("factorize")
    del rows
    adjacency = Edges(edges)
    in_degree = adjacency.largest_in_degree if edges.n else 0
    of_ranks = communicator.all_gather((keys_owned.size, edges.m, in_degree, adjacency.out_weight_depth))
    counts, edge_counts, in_degrees, depths = zip(*of_ranks, strict=True)
    shard = Shard(
        adjacency=adjacency,
        rows=keys_owned.size,
        offsets=[0, *accumulate(counts)],
        m=sum(edge_counts),
        ghost_sources=ghost_sources,
        ghost_counts=ghost_counts,
        shared=shared,
        owned=[keys_owned] if owned is None else owned,
        largest_in_degree=max(in_degrees),
        # Depth on one rank, plus at most one addition per rank.
        out_weight_depth=max(depths) + communicator.size if adjacency.weighted else 0,
        label=label,
        references=references,
        clock=clock,
        seconds=stages.seconds,
    )
    _sum_out_weights(communicator, shard, label)
    stages.done("csc")
    return shard


# --- reading ------------------------------------------------------------------------------------------------------


def partitions_of(
    communicator: Communicator, ids: Ids, frames: list[Frame], numbers: list[int], columns: Columns
) -> Parts:
    """Return the partitions that this rank holds, with their first rows in the whole frame; collective."""
    lengths = call_on_all(communicator, partial(lengths_of, frames, numbers))
    of_ranks = communicator.all_gather(list(zip(numbers, lengths, strict=True)))
    starts, rows = {}, 0
    for partition, length in sorted(pair for pairs in of_ranks for pair in pairs):
        starts[partition] = rows
        rows += length
    return Parts(ids, frames, numbers, [starts[number] for number in numbers], columns, lengths, rows)


def lengths_of(frames: list[Frame], numbers: list[int]) -> list[int]:
    """Return the number of rows of each partition; raise if one is no frame."""
    for frame, number in zip(frames, numbers, strict=True):
        if not hasattr(frame, "columns"):
            raise InvalidEdgesError(
                f"partition {number} is of {full_name(frame)}, not a frame: correct the task that makes it."
            )
    return list(map(len, frames))


def _within_window(communicator: Communicator, parts: Parts) -> tuple[list[Any], Floats | None, Any]:
    """Read the times of the edges; return the rows within the window, their times and the clock; collective."""
    ids, columns, frames = parts.ids, parts.columns, parts.frames
    label, clock = f"column {columns.time_name!r}", copy(columns.clock)

    def read(frame: Frame, own: Any) -> Any:
        return HOST.as_column(ids.to_host(ids.column_of(frame, own.time)))

    given = call_on_all(communicator, lambda: list(map(read, frames, parts.own_columns)))
    of_ranks = gather_results(communicator, lambda: parts.map(partial(Clock.facts, label=label), given))
    known = [facts for of_partitions in of_ranks for facts in of_partitions if facts is not None]
    for kind in dict.fromkeys(kind for kind, _ in known):
        clock.begin(kind, None, label)
    if latest := [latest for _, latest in known if latest is not None]:
        clock.begin(known[0][0], max(latest), label)
    found = call_on_all(communicator, lambda: parts.map(partial(clock.read, label=label), given))
    kept = [
        frame if rows is None else frame.iloc[to_memory(rows, ids.memory_space)]
        for frame, (_, rows) in zip(frames, found, strict=True)
    ]
    times = None if clock.half_life is None else np.concatenate([times for times, _ in found])
    return kept, times, clock


def _shared(
    communicator: Communicator, parts: Parts, pieces: list[Endpoints], additional: list[Column] | None,
    labels: list[list[str]],
) -> list[CommonType]:  # fmt: skip
    """Return the common type of each column of the vertices over all partitions; collective."""

    def facts() -> tuple[Any, Any]:
        of_additional = (
            None
            if additional is None
            else [parts.ids.column_info(*pair) for pair in zip(additional, labels[2], strict=True)]
        )
        return list(zip(parts.numbers, parts.infos(pieces, labels), strict=True)), of_additional

    of_ranks = gather_results(communicator, facts)
    found = [facts for _, facts in sorted((pair for pairs, _ in of_ranks for pair in pairs), key=itemgetter(0))]
    return common_types(found, labels, None if additional is None else [given for _, given in of_ranks])


# --- vertices and ghosts ------------------------------------------------------------------------------------------


def _factorize(
    communicator: Communicator, rows: EdgeRows, extra_keys: Integers, splitters: Integers
) -> tuple[Coo, Integers, list[Integers], list[int]]:
    """Determine the owned vertices and the ghosts of this rank, and factorize the endpoints of its edges.

    `rows` are the edges to owned targets; `extra_keys` belong to vertices that need not have edges on this rank.
    Return the edges, and `keys`, `ghost_sources` and `ghost_counts` of `Shard`.
    """
    rank, size = communicator.rank, communicator.size
    xp = namespace(rows.source)
    (codes,), sources = factorize_ids([rows.source])
    runs = runs_of(sources, splitters)
    requested = communicator.all_to_all_arrays([sources[run] for run in runs])
    owner = owners_of(extra_keys, splitters)
    extra = communicator.all_to_all_arrays([extra_keys[owner == other] for other in range(size)])
    received = xp.concatenate(requested), xp.concatenate(extra)
    (targets, answers, _), keys = factorize_ids([rows.target, *received])
    ghost_sources = split(answers, [ids.size for ids in requested])
    ghost_counts = [0 if other == rank else run.stop - run.start for other, run in enumerate(runs)]
    # Positions of the sources in the graph of this rank: its own vertices, then the ghosts in the order of their keys.
    ghosts = list(accumulate(ghost_counts, initial=keys.size))
    n = ghosts[-1]
    slots = xp.concatenate(
        [ghost_sources[rank] if other == rank else xp.arange(*cut) for other, cut in enumerate(pairwise(ghosts))]
    ).astype(index_dtype(n), copy=False)
    ghost_sources[rank] = ghost_sources[rank][:0]
    edges = Coo(slots[codes], targets.astype(slots.dtype, copy=False), rows.weights, n, _extent(rows.weights))
    return edges, keys, ghost_sources, ghost_counts


def _extent(weights: Floats | None) -> tuple[float, float]:
    if weights is None or is_host(weights):
        return ANY
    from prplugin.gpu.factorize import extremes  # imports CuPy, which holds the weights

    return extremes([], weights)[2:]


def of_ghosts(communicator: Communicator, ghost_sources: list[Integers], values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the values of the vertices that this rank owns, followed by those of its ghosts; collective."""
    ghosts = communicator.all_to_all_arrays([values[vertices] for vertices in ghost_sources])
    return namespace(values).concatenate([values, *ghosts])


def _decayed(
    communicator: Communicator, edges: Coo, times: Floats, ghost_sources: list[Integers], ghost_counts: list[int],
    least: Integers | None,
) -> tuple[Coo, Integers]:  # fmt: skip
    """Return the edges with decayed weights, and the reference exponents: the largest of the out-edges of a vertex.

    Computed on the host. The reference of a vertex that keeps out-edges is at least that in `least`.
    """
    weights, source = ScaledWeights.of(to_host(edges.weights), times), to_host(edges.source)
    largest = np.full(edges.n, ZERO_EXPONENT)
    np.maximum.at(largest, source, weights.exponents)
    sources = [to_host(vertices) for vertices in ghost_sources]
    own = largest[: edges.n - sum(ghost_counts)].copy()
    received = communicator.all_to_all_arrays(split(largest[own.size :], ghost_counts))
    for vertices, exponents in zip(sources, received, strict=True):
        np.maximum.at(own, vertices, exponents)
    if least is not None:
        own = np.where(own > ZERO_EXPONENT, np.maximum(own, least), own)
    references = of_ghosts(communicator, sources, own)
    scaled = weights.stored(references.take(source))
    scaled = to_memory(scaled, memory_space_of(edges.source))
    return replace(edges, weights=scaled, extent=(ANY[0], 2.0)), references


def _sum_out_weights(communicator: Communicator, shard: Shard, label: str) -> None:
    """Sum the out-weight of each vertex over all ranks on its owner, and send the sum to the ranks of its ghosts."""
    adjacency, rows = shard.adjacency, shard.rows
    xp = namespace(adjacency.out_weight)
    partial_sums = adjacency.out_weight
    out_weight = xp.full(adjacency.n, np.nan)  # out-weights of ghosts are needed only for weighted edges
    owned = out_weight[:rows]
    owned[:] = partial_sums[:rows]
    received = communicator.all_to_all_arrays(split(partial_sums[rows:], shard.ghost_counts))
    for vertices, weights in zip(shard.ghost_sources, received, strict=True):
        with np.errstate(over="ignore"):  # checked below
            owned[vertices] += weights
    if adjacency.weighted:
        overflowing = to_host(xp.flatnonzero(~xp.isfinite(owned)))
        first = format_vertices(shard.owned, overflowing[:5])
        counts, first_of_ranks = zip(*communicator.all_gather((overflowing.size, first)), strict=True)
        if count := sum(counts):
            ids = [vertex for of_rank in first_of_ranks for vertex in of_rank]
            raise overflow_error(label, [*ids, *[""] * (count - len(ids))])
        out_weight = of_ghosts(communicator, shard.ghost_sources, owned)
    adjacency.set_out_weight(out_weight, shard.out_weight_depth)
