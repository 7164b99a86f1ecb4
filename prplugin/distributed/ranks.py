"""Rankings on one rank of the program: read arguments given by vertex, iterate, write its part of the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.sums import total
from prplugin.distributed.communicator import Communicator, all_reduce_sum
from prplugin.distributed.host_step import HostRows
from prplugin.distributed.order import Asked, SharedEqualRanks, SharedOrderProof
from prplugin.distributed.shard import Shard, Stages, of_ghosts
from prplugin.errors import MethodUnavailableError, counted
from prplugin.frames.columns import Column, Frame
from prplugin.frames.exclusion import excluded_of, read_selection
from prplugin.frames.partitions import concat_columns, take, write
from prplugin.frames.parts import in_edge_types
from prplugin.frames.seeds import read_seeds
from prplugin.frames.vertices import Labels, Vertices, ids_in, plain_ids
from prplugin.graph.edges import Problem, rows_of
from prplugin.graph.teleports import Seeds, normalised
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.options import Options, Unknown
from prplugin.progress import ProgressCallback, Watch
from prplugin.solver.loop import Outcome
from prplugin.solver.solve import solve
from prplugin.solver.top_k import NO_ORDER
from prplugin.streams.state import Equation, LastRanks, finite_ranks
from prplugin.types.arrays import Array, all_to_memory, namespace, to_host, to_memory
from prplugin.types.edges import Csc, Floats, Integers
from prplugin.types.records import Considered, History, Order


@dataclass(frozen=True)
class Report:
    """Results of a call other than the frames; the same on all ranks of the program.

    `outcomes`: Outcome of each ranking; several for many seeds.
    `rows`: Number of rows of the result per ranking, a list with an entry for each part.
    `bytes_sent`: Bytes that each rank has sent to others during the call.
    `like`: Empty frame of the type of the result.
    `positions`: If the result is joined (see `is_joined`), positions of the vertices of the first rank's frame, per
    ranking. With a certified order further rows follow those of the result, for the vertices of its ties.
    `seeds`: Ids of the seeds, as Python objects; None for a single ranking.
    `history` has the longest duration of each stage over all ranks. "communication" is included in the other stages.
    """

    outcomes: list[Outcome]
    history: History
    rows: list[list[int]]
    like: Any
    bytes_sent: list[int]
    positions: list[Integers]
    seeds: list[Hashable] | None


def positions_of(order: Order) -> Integers:
    """Return the positions of the vertices of a certified order, and then of the others in its ties."""
    every = np.concatenate([to_host(rows) for rows in (order.rows, *(tie.rows for tie in order.ties))])
    return every[np.sort(np.unique(every, return_index=True)[1])]


def is_joined(options: Options) -> bool:
    """Return whether the result has one part, in the order of the vertices asked for, instead of one per rank."""
    return options.top is not None or options.among is not None


def rank_shard(
    communicator: Communicator, shard: Shard, names: list[Hashable], options: Options, threads: int,
    report: ProgressCallback | None = None,
) -> tuple[list[Frame], Report]:  # fmt: skip
    """Compute one ranking, or one per seed; collective. Return the frames of this rank, and a report.

    There is one frame per ranking, or a single one if the result is joined: see `is_joined`.

    `names` are the vertex columns of the result. `options` are those that `partitions.converted` returns. `report`, if
    given, is called with the state after each error bound.
    """
    stages, sent, waited = Stages(), communicator.bytes_sent, communicator.wait_seconds
    watch = Watch(report)
    vertices, unknown = GraphVertices.of(communicator, shard, names), Unknown(options.unknown)
    personalization, dangling, nstart = (
        None if (value := getattr(options, what)) is None else vertices.read_entries(value, what, unknown)
        for what in ("personalization", "dangling", "nstart")
    )
    seeds, labels = _teleports(vertices, options.seeds, personalization, unknown)
    w = to_memory(vertices.distribution(dangling, "dangling"), shard.adjacency.memory_space)
    start = to_memory(vertices.distribution(nstart, "nstart"), shard.adjacency.memory_space)
    among, exclusion = read_selection(vertices, options, unknown, "host", labels)
    by_seed = None if seeds is None else exclusion.by_seed(seeds, partial(_out_neighbours, communicator, shard))
    stages.done("vectors")
    method, prepared = ("numpy", None) if shard.n == 0 else _prepared(communicator, shard, options, threads)
    stages.done("plan")
    results = []
    for ranking in range(1 if seeds is None else seeds.count):
        one = None if seeds is None else seeds.slice(ranking, ranking + 1)
        asked = Asked.of(vertices.own, among, excluded_of(exclusion.common, by_seed, ranking))
        order = None
        if options.certified:
            compared = personalization, dangling if options.alpha else None
            vectors = [vertices.spread(*entries) for entries in compared if entries is not None]
            equal = SharedEqualRanks(communicator, shard, vectors, options.alpha).equal
            order = SharedOrderProof(communicator, asked, options.top, equal, options.tol)
        if prepared is None:
            ranks, outcome = shard.adjacency.out_weight, Outcome(False, True, 0, 0.0)
            outcome.order = None if order is None else NO_ORDER
        else:
            teleport = None if one is None else vertices.spread(one.rows, one.values)
            v = to_memory(teleport, shard.adjacency.memory_space)
            equation = (options.alpha, v, w) if labels is None and options.rule.proves else None
            step = prepared(Problem(shard.adjacency, options.alpha, v, w))
            step.free_start = options.rule.proves and options.max_iter is None and v is None
            solve_from = partial(solve, step, options, shard.n, watch=watch.iterations, order=order)
            ranks, outcome = _solve(communicator, shard, step, start, equation, solve_from)
            del step, solve_from
        ranks = (ranks if options.scale == 1 else ranks * shard.n).astype(options.dtype, copy=False)
        results.append(_Result.of(communicator, vertices.own, asked, ranks, outcome, options))
    stages.done("iterations")
    part = _Part(vertices, shard, labels)
    if is_joined(options):
        counts, frames = [[result.length] for result in results], [part.joined(results)]
    else:
        sizes = communicator.all_gather([result.ranks.size for result in results])
        counts = list(map(list, zip(*sizes, strict=True)))
        frames = part.separate(communicator.rank, results, counts)
    stages.done("write")
    seconds = shard.seconds | stages.seconds | {"communication": communicator.wait_seconds - waited}
    of_ranks = communicator.all_gather((seconds, communicator.bytes_sent - sent))
    reason = "requested by name" if options.method != "auto" else "auto: the fastest that all workers can run"
    history = History(
        shard.n, shard.m, shard.adjacency.weighted, options.alpha, options.tol, options.stop,
        (Considered(method, None, reason),),
        tuple((stage, max(each[stage] for each, _ in of_ranks)) for stage in seconds),
        tuple(watch.bounds if labels is None else ()), unknown=unknown.found(),
    )  # fmt: skip
    return frames, Report(
        [result.outcome for result in results], history, counts, frames[0].iloc[:0], [sent for _, sent in of_ranks],
        [result.positions for result in results if result.positions is not None], part.seed_ids,
    )  # fmt: skip


# --- arguments by vertex ------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class GraphVertices(Vertices):
    """The vertices of the whole graph, on a rank that has the ids of those that it owns. Its methods are collective.

    `columns` are in the memory space of the graph.

    `n`: Number of vertices; `own`: positions of those that this rank owns.
    """

    n: int = field(kw_only=True)
    own: range = field(kw_only=True)
    communicator: Communicator = field(kw_only=True)

    @classmethod
    def of(cls, communicator: Communicator, shard: Shard, names: list[Hashable]) -> GraphVertices:
        """Return the vertices of a graph; `names` are the vertex columns of the result."""
        kinds, own = [common.kind for common in shard.shared], shard.owned_by(communicator.rank)
        return cls(names, shard.owned, kinds, n=shard.n, own=own, communicator=communicator)

    @cached_property
    def on_host(self) -> Vertices:
        """The vertices that this rank owns, with ids on the host, where few calls need them."""
        return Vertices(self.names, list(map(to_host, cast("list[Array]", self.columns))), self.kinds)

    def __len__(self) -> int:
        return self.n

    def find_positions(self, columns: list[Column], what: str) -> Integers:
        """Return the position of each id in the whole graph, or -1; all ranks pass the same ids."""
        local = self.on_host.find_positions(columns, what)
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
    vertices: GraphVertices, seeds: object, personalization: tuple[Integers, Floats] | None, unknown: Unknown
) -> tuple[Seeds | None, Labels | None]:
    """Return the teleport distributions of the rankings of a call: a given one or many seeds, or a uniform one (None).

    With many seeds, also return their labels.
    """
    if seeds is not None:
        return read_seeds(vertices, seeds, unknown)
    if personalization is None:
        return None, None
    rows, values = personalization
    return Seeds(np.array([0, rows.size]), rows, normalised(values, "personalization")), None


def _out_neighbours(communicator: Communicator, shard: Shard, rows: Integers) -> tuple[Integers, Integers]:
    """Return the place among `rows` and the out-neighbour of each of their edges to vertices of this rank; collective.

    A rank leaves out only vertices that it owns, all of whose in-edges it has.
    """
    own = shard.owned_by(communicator.rank)
    positions = namespace(shard.adjacency.out_weight).arange(own.start, own.stop)
    offsets, sources, _ = shard.adjacency.get(Csc)
    sources = to_host(of_ghosts(communicator, shard.ghost_sources, positions)[sources])
    targets = to_host(rows_of(offsets, sources.size)) + own.start
    order = np.argsort(rows, kind="stable")
    places = np.minimum(np.searchsorted(rows[order], sources), max(rows.size - 1, 0))
    found = np.flatnonzero(rows[order][places] == sources) if rows.size else np.empty(0, np.int64)
    firsts, counts = np.unique(rows[order], return_index=True, return_counts=True)[1:]
    which = np.searchsorted(firsts, places[found], side="right") - 1  # a vertex may be in several seeds
    repeated = np.repeat(found, counts[which])
    ranks = np.arange(repeated.size) - np.repeat(np.cumsum(counts[which]) - counts[which], counts[which])
    return order[np.repeat(firsts[which], counts[which]) + ranks], targets[repeated]


def _solve(
    communicator: Communicator, shard: Shard, step: Step, start: Floats | None, equation: Equation | None,
    solve_from: Callable[[Floats | float], Outcome],
) -> tuple[Array, Outcome]:  # fmt: skip
    """Iterate from `start`, or from the ranks before the last update if they solve `equation` on all ranks; collective.

    Keep the solution of `equation` for rankings after the next update. None: neither start from ranks nor keep them.
    """
    last, begin = shard.starts.before_update, 1.0 / shard.n if start is None else start
    if equation is not None and start is None:
        own = finite_ranks(last.ranks) if last is not None and last.is_of(equation) else None
        sum_ = sum(communicator.all_gather(np.nan if own is None else float(total(own))))
        if own is not None and 0 < sum_ < np.inf:
            begin = own / sum_
    outcome = solve_from(begin)
    # With alpha=0 any start converges in one iteration: keep the ranks of another equation instead.
    if equation is not None and equation[0] and outcome.converged:
        shard.starts.latest = LastRanks(equation, step.ranks())
    return step.ranks(), outcome


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
    missing = [reason for reason in communicator.all_gather(library.unavailable_reason()) if reason]
    if options.method == "numpy" or (options.method == "auto" and missing and not options.method_options):
        return "numpy", partial(HostRows, communicator, shard, None)
    if missing:
        raise MethodUnavailableError(f"method 'native' cannot run on {counted(len(missing), 'worker')}: {missing[0]}.")
    chosen = options.method_options.get("threads") or Machine(threads).threads_for(shard.adjacency.m)
    return "native", partial(HostRows, communicator, shard, cast(int, chosen))


# --- results --------------------------------------------------------------------------------------------------------


class _Result(NamedTuple):
    """One ranking on one rank of the program.

    `length`: Number of rows of the result, if it is joined.
    `positions`: If it is joined, positions of the vertices to write, in order; the same on all ranks.
    `rows`: If it is not joined, positions of the vertices to write among those of this rank; None: all of them.
    `ranks`: Ranks of those of the vertices to write that this rank owns.
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
            count, positions = outcome.order.rows.size, positions_of(outcome.order)
        elif options.top is not None:
            positions = asked.highest(communicator, ranks, options.top)
            count = positions.size
        elif asked.among is not None:
            count, positions = asked.among.size, asked.among
        else:
            return cls(outcome, 0, None, asked.rows, asked.of_own(ranks))
        rows = positions[(positions >= own.start) & (positions < own.stop)] - own.start
        return cls(outcome, count, positions, None, ranks[namespace(ranks).asarray(rows)])


class _Part:
    """Writes the part of the result of one rank; collective.

    `seed_ids`: Ids of the seeds of all rankings as Python objects, or None.
    """

    def __init__(self, vertices: GraphVertices, shard: Shard, labels: Labels | None) -> None:
        self._vertices, self._shard, self._ids = vertices, shard, ids_in(shard.adjacency.memory_space)
        self._names, self._seeds, self.seed_ids = vertices.names, list[Any](), None
        if labels is not None:
            self._names = [*vertices.seed_names(labels), *vertices.names]
            if labels.rows is None:
                seeds, self._seeds = [labels.column], [self._ids.as_column(labels.column, "seeds")]
            else:
                seeds = self._gathered(labels.rows)
                self._seeds = self._typed(seeds)
            self.seed_ids = plain_ids(seeds, np.arange(len(seeds[0])))

    def _gathered(self, positions: Integers, *values: Array) -> list[Column]:
        """Return the ids at some positions, and `values`, of which each rank has those at positions that it owns."""
        communicator, owners = self._vertices.communicator, self._shard.owners_of(positions)
        rows = positions[owners == communicator.rank] - self._vertices.own.start
        ids = [to_host(column.take(namespace(column).asarray(rows))) for column in self._vertices.columns]
        pieces = communicator.all_gather([*ids, *values])
        return take(concat_columns(pieces), np.argsort(np.argsort(owners, kind="stable")))

    def joined(self, results: list[_Result]) -> Frame:
        """Return all rows in one frame on the first rank; on others return none of them."""
        positions = [result.positions for result in results if result.positions is not None]
        rankings = np.repeat(np.arange(len(results)), [each.size for each in positions])
        own = np.concatenate([to_host(result.ranks) for result in results])
        *columns, ranks = self._gathered(np.concatenate(positions), own)
        rows = np.arange(len(ranks) if self._vertices.communicator.rank == 0 else 0)
        return self._frame(self._typed(columns), rows, ranks[rows], rankings[rows], 0)

    def separate(self, rank: int, results: list[_Result], counts: list[list[int]]) -> list[Frame]:
        """Return a frame per ranking; `counts` has its rows on each rank."""
        frames, begin, columns = [], 0, self._typed(self._shard.owned)
        for ranking, (result, of_ranks) in enumerate(zip(results, counts, strict=True)):
            each = np.full(result.ranks.size if self._seeds else 0, ranking)
            frames.append(self._frame(columns, result.rows, result.ranks, each, begin + sum(of_ranks[:rank])))
            begin += sum(of_ranks)
        return frames

    def _typed(self, columns: list[Column]) -> list[Column]:
        return in_edge_types(self._ids, columns, self._shard.shared)

    def _frame(
        self, columns: list[Column], rows: Integers | None, ranks: Array, rankings: Integers, first: int
    ) -> Frame:
        """Return a frame of the ids at some rows of `columns`, and their ranks."""
        ids = self._ids
        rows, ranks, rankings = all_to_memory(ids.memory_space, rows, ranks, rankings)
        seeds = [ids.take(column, rankings) for column in self._seeds]
        return write(
            ids, self._names, [*seeds, *(ids.take(column, rows) for column in columns), ids.take(ranks, None)], first
        )
