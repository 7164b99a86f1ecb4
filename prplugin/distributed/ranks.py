"""Rankings on one rank of the program: read arguments given by vertex, iterate, write its part of the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.sums import total
from prplugin.distributed.communicator import Communicator, all_reduce_sum
from prplugin.distributed.order import Asked, SharedEqualRanks, SharedOrderProof
from prplugin.distributed.shard import Shard, Stages
from prplugin.errors import MethodUnavailableError, counted
from prplugin.frames.partitions import concat_columns, in_edge_types, take, write
from prplugin.frames.seeds import read_seeds
from prplugin.frames.vertices import Labels, Vertices, ids_in, plain_ids
from prplugin.graph.problem import Problem, Seeds, normalised
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.options import Options
from prplugin.progress import Report as StateReport
from prplugin.progress import Watch
from prplugin.solver.loop import Outcome
from prplugin.solver.solve import solve
from prplugin.solver.top_k import NO_ORDER
from prplugin.types.arrays import Array, MemorySpace, namespace, to_host, to_memory
from prplugin.types.edges import Floats, Integers
from prplugin.types.records import Considered, History


@dataclass(frozen=True)
class Report:
    """Results of a call other than the frames; the same on all ranks of the program.

    `outcomes`: Outcome of each ranking; several for many seeds.
    `rows`: Number of rows of the result per ranking, a list with an entry for each part.
    `bytes_sent`: Bytes that each rank has sent to others during the call.
    `like`: Empty frame of the type of the result.
    `order` (array): How `joined` puts the rows of all ranks, one rank after the other, in order. With a certified order
    further rows follow those of the result, for the vertices of its ties.
    `positions`: Positions of the vertices of these rows, in order, per ranking.
    `seeds`: Ids of the seeds, as Python objects; None for a single ranking.
    `joined`: See `is_joined`.
    `history` has the longest duration of each stage over all ranks. "communication" is included in the other stages.
    """

    outcomes: list[Outcome]
    history: History
    rows: list[list[int]]
    like: Any
    bytes_sent: list[int]
    order: Integers
    positions: list[Integers]
    seeds: list[Any] | None
    joined: bool


def is_joined(options: Options) -> bool:
    """Return whether the result has one part, in the order of the vertices asked for, instead of one per rank."""
    return options.top is not None or options.among is not None


def rank_shard(
    communicator: Communicator, shard: Shard, names: list[Any], options: Options, threads: int,
    report: StateReport | None = None,
) -> tuple[list[Any], Report]:  # fmt: skip
    """Compute one ranking, or one per seed; collective. Return the frames of this rank, and a report.

    There is one frame per ranking, or a single one if the result is joined: see `is_joined`.

    `names` are the vertex columns of the result. `options` are those that `partitions.converted` returns. `report`, if
    given, is called with the state after each error bound.
    """
    stages, sent, waited = Stages(), communicator.bytes_sent, communicator.wait_seconds
    watch = Watch(report)
    vertices = GraphVertices.of(communicator, shard, names)
    personalization, dangling, nstart = (
        None if (value := getattr(options, what)) is None else vertices.read_entries(value, what)
        for what in ("personalization", "dangling", "nstart")
    )
    seeds, labels = _teleports(vertices, options.seeds, personalization)
    w = to_memory(vertices.distribution(dangling, "dangling"), shard.adjacency.memory_space)
    start = to_memory(vertices.distribution(nstart, "nstart"), shard.adjacency.memory_space)
    among, excluded = vertices.read_selection(options, None, "host")
    stages.done("vectors")
    method, prepared = ("numpy", None) if shard.n == 0 else _prepared(communicator, shard, options, threads)
    stages.done("plan")
    results = []
    for ranking in range(1 if seeds is None else seeds.count):
        one = None if seeds is None else seeds.slice(ranking, ranking + 1)
        own = one.support()[1] if one is not None and isinstance(options.exclude, str) else excluded
        asked = Asked.of(vertices.own, among, own)
        order = None
        if options.certified:
            vectors = [vertices.spread(*entries) for entries in (personalization, dangling) if entries is not None]
            equal = SharedEqualRanks(communicator, shard, vectors).equal
            order = SharedOrderProof(communicator, asked, options.top, equal, options.tol)
        if prepared is None:
            ranks, outcome = shard.adjacency.out_weight, Outcome(False, True, 0, 0.0)
            outcome.order = None if order is None else NO_ORDER
        else:
            teleport = None if one is None else vertices.spread(one.rows, one.values)
            v = to_memory(teleport, shard.adjacency.memory_space)
            step = prepared(Problem(shard.adjacency, options.alpha, v, w))
            begin = 1.0 / shard.n if start is None else start
            outcome = solve(step, options, (shard.n, shard.m), begin, watch.iterations, order=order)
            ranks = step.ranks()
            del step
        ranks = (ranks if options.scale == 1 else ranks * shard.n).astype(options.dtype, copy=False)
        results.append(_Result.of(communicator, vertices.own, asked, ranks, outcome, options))
    stages.done("iterations")
    part = _Part(shard, *_columns(vertices, shard, labels))
    counts = [[result.length] for result in results]
    if is_joined(options):
        frames, permutation = part.joined(results)
    else:
        sizes = communicator.all_gather([result.ranks.size for result in results])
        counts, permutation = list(map(list, zip(*sizes, strict=True))), np.empty(0, np.int64)
        frames = part.separate(communicator.rank, results, counts)
    stages.done("write")
    seconds = shard.seconds | stages.seconds | {"communication": communicator.wait_seconds - waited}
    of_ranks = communicator.all_gather((seconds, communicator.bytes_sent - sent))
    reason = "requested by name" if options.method != "auto" else "auto: the fastest that all workers can run"
    history = History(
        shard.n, shard.m, shard.adjacency.weighted, options.alpha, options.tol, options.stop,
        (Considered(method, None, reason),),
        tuple((stage, max(each[stage] for each, _ in of_ranks)) for stage in seconds),
        tuple(watch.bounds if labels is None else ()),
    )  # fmt: skip
    return frames, Report(
        [result.outcome for result in results], history, counts, frames[0].iloc[:0], [sent for _, sent in of_ranks],
        permutation, [result.positions for result in results if result.positions is not None], part.seed_ids,
        is_joined(options),
    )  # fmt: skip


def joined(memory_space: MemorySpace, places: Integers | None, parts: list[tuple[list[Any], Report]]) -> Any:
    """Return the frame of a joined result, from the parts of all ranks, or its rows at `places`."""
    report = parts[0][1]
    order = report.order[: sum(map(sum, report.rows))] if places is None else report.order[places]
    frame = ids_in(memory_space).concat([frame for (frame,), _ in parts])
    return frame.take(order).reset_index(drop=True)


# --- arguments by vertex ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GraphVertices(Vertices):
    """The vertices of the whole graph, on a rank that has the ids of those that it owns. Its methods are collective.

    `n`: Number of vertices; `own`: positions of those that this rank owns.
    """

    n: int = field(kw_only=True)
    own: range = field(kw_only=True)
    communicator: Communicator = field(kw_only=True)

    @classmethod
    def of(cls, communicator: Communicator, shard: Shard, names: list[Hashable]) -> GraphVertices:
        """Return the vertices of a graph; `names` are the vertex columns of the result."""
        ids, kinds = [to_host(column) for column in shard.owned], [common.kind for common in shard.shared]
        own = shard.owned_by(communicator.rank)
        return cls(names, ids, kinds, n=shard.n, own=own, communicator=communicator)

    def __len__(self) -> int:
        return self.n

    def find_positions(self, columns: list[Any], what: str) -> Integers:
        """Return the position of each id in the whole graph, or -1; all ranks pass the same ids."""
        local = Vertices(self.names, self.columns, self.kinds).find_positions(columns, what)
        found = np.where(local < 0, -1, local + self.own.start)
        of_all: Integers = np.maximum.reduce(self.communicator.all_gather(found))
        return of_all

    def spread(self, rows: Integers, values: Floats) -> Floats:
        """Return the values of the vertices that this rank owns, 0 by default, from those of the vertices at `rows`."""
        owned, vector = (rows >= self.own.start) & (rows < self.own.stop), np.zeros(len(self.own))
        vector[rows[owned] - self.own.start] = values[owned]
        return vector

    def distribution(self, entries: tuple[Integers, Floats] | None, what: str) -> Floats | None:
        """Return the values of the vertices that this rank owns, divided by the sum over all ranks."""
        if entries is None:
            return None
        own = self.spread(*entries)
        return normalised(own, what, lambda own: float(all_reduce_sum(self.communicator, float(total(own)))))


def _teleports(
    vertices: GraphVertices, seeds: object, personalization: tuple[Integers, Floats] | None
) -> tuple[Seeds | None, Labels | None]:
    """Return the teleport distributions of the rankings of a call: a given one or many seeds, or a uniform one (None).

    With many seeds, also return their labels.
    """
    if seeds is not None:
        many = read_seeds(vertices, seeds, "seeds")
        return Seeds.normalized(many.bounds, many.rows, many.values), many.labels
    if personalization is None:
        return None, None
    rows, values = personalization
    return Seeds(np.array([0, rows.size]), rows, normalised(values, "personalization")), None


def _prepared(
    communicator: Communicator, shard: Shard, options: Options, threads: int
) -> tuple[str, Callable[[Problem], Step]]:
    """Choose a method: one of the GPU if the graph is on GPUs, else one that all workers can run.

    Return its name, and a function that prepares a ranking, given the vectors of the vertices of this rank.
    """
    if shard.adjacency.memory_space == "device":
        from prplugin.distributed import device_step  # imports CuPy, which holds the graph

        device: Any = communicator  # a `DeviceRanks`
        return device_step.prepare(device, shard, options)
    from prplugin.distributed import host_step

    missing = [reason for reason in communicator.all_gather(library.unavailable_reason()) if reason]
    if options.method == "numpy" or (options.method == "auto" and missing and not options.method_options):
        return "numpy", partial(host_step.NumpyStep, communicator, shard)
    if missing:
        raise MethodUnavailableError(f"method 'native' cannot run on {counted(len(missing), 'worker')}: {missing[0]}.")
    threads = options.method_options.get("threads") or Machine(threads).threads_for(shard.adjacency.m)
    return "native", partial(host_step.NativeStep, communicator, shard, threads=threads)


# --- results --------------------------------------------------------------------------------------------------------


class _Result(NamedTuple):
    """One ranking on one rank of the program.

    `length`: Number of rows of the result, if it is joined.
    `positions`: Positions of the vertices to write, in order; the same on all ranks. None if all ranks write all that
    is asked for.
    `rows`, `ranks`: Positions among the vertices of this rank, and ranks, of those that it writes; rows of None are
    all.
    """

    outcome: Outcome
    length: int
    positions: Integers | None
    rows: Integers | None
    ranks: Array

    @classmethod
    def of(
        cls, communicator: Communicator, own: range, asked: Asked, ranks: Array, outcome: Outcome, options: Options
    ) -> _Result:  # fmt: skip
        if outcome.order is not None:
            every = np.concatenate([outcome.order.rows, *(tie.rows for tie in outcome.order.ties)])
            count, positions = outcome.order.rows.size, every[np.sort(np.unique(every, return_index=True)[1])]
        elif options.top is not None:
            positions = asked.highest(communicator, ranks, options.top)
            count = positions.size
        elif asked.among is not None:
            count, positions = asked.among.size, asked.among
        else:
            return cls(outcome, 0, None, asked.rows, asked.of_own(ranks))
        rows = positions[(positions >= own.start) & (positions < own.stop)] - own.start
        return cls(outcome, count, positions, rows, ranks[namespace(ranks).asarray(rows)])


def _columns(
    vertices: GraphVertices, shard: Shard, labels: Labels | None
) -> tuple[list[Hashable], list[Any], list[Any], list[Any] | None]:
    """Return the names of the id columns of the result, the ids of this rank's vertices, and of the seeds.

    The ids of the seeds come a second time as Python objects.
    """
    ids = ids_in(shard.adjacency.memory_space)
    own = in_edge_types(ids, shard.owned, shard.shared)
    if labels is None:
        return vertices.names, own, [], None
    names = [*vertices.seed_names(labels), *vertices.names]
    if labels.rows is None:
        plain = plain_ids([labels.column], np.arange(len(labels.column)))
        return names, own, [ids.as_column(labels.column, "seeds")], plain
    # The owners of the seeds send their ids.
    owners = shard.owners_of(labels.rows)
    rank = vertices.communicator.rank
    pieces = vertices.communicator.all_gather(take(vertices.columns, labels.rows[owners == rank] - vertices.own.start))
    order = np.argsort(np.argsort(owners, kind="stable"))
    seeds = take(concat_columns(pieces), order)
    return names, own, in_edge_types(ids, seeds, shard.shared), plain_ids(seeds, np.arange(len(order)))


class _Part(NamedTuple):
    """Writes the part of the result of one rank.

    `columns`: Ids of its vertices; `seed_columns`: ids of the seeds of all rankings, or none.
    """

    shard: Shard
    names: list[Hashable]
    columns: list[Any]
    seed_columns: list[Any]
    seed_ids: list[Any] | None

    def joined(self, results: list[_Result]) -> tuple[list[Any], Integers]:
        """Return the rows of this rank in one frame, and `Report.order`."""
        positions = np.concatenate([result.positions for result in results if result.positions is not None])
        rankings = np.repeat(np.arange(len(results)), [result.ranks.size for result in results])
        owners = self.shard.owners_of(positions)
        ranks = namespace(results[0].ranks).concatenate([result.ranks for result in results])
        rows = np.concatenate([result.rows for result in results if result.rows is not None])
        return [self._frame(rows, ranks, rankings, 0)], np.argsort(np.argsort(owners, kind="stable"))

    def separate(self, rank: int, results: list[_Result], counts: list[list[int]]) -> list[Any]:
        """Return a frame per ranking; `counts` has its rows on each rank."""
        frames, begin = [], 0
        for ranking, (result, of_ranks) in enumerate(zip(results, counts, strict=True)):
            each = np.full(result.ranks.size, ranking)
            frames.append(self._frame(result.rows, result.ranks, each, begin + sum(of_ranks[:rank])))
            begin += sum(of_ranks)
        return frames

    def _frame(self, rows: Integers | None, ranks: Array, rankings: Integers, first: int) -> Any:
        ids = ids_in(self.shard.adjacency.memory_space)
        rows, rankings = (to_memory(array, ids.memory_space) for array in (rows, rankings))
        columns = [ids.take(column, rankings) for column in self.seed_columns]
        columns += [ids.take(column, rows) for column in self.columns]
        return write(ids, self.names, [*columns, ids.take(ranks, None)], first)
