"""Driver: builds and ranks graphs on the workers of a Dask cluster.

Dask computes and locates the partitions, starts the tasks, and keeps the parts of the graph and of the result on the
workers while they are referenced. If one worker suffices, it runs what one process runs (`one_worker`).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np
from distributed import Client, Future, get_worker

from prplugin.distributed import one_worker
from prplugin.distributed.communicator import Communicator
from prplugin.distributed.ranks import rank_shard
from prplugin.distributed.shard import build
from prplugin.distributed.update import update
from prplugin.distributed.workers import Workers
from prplugin.errors import (
    InvalidOptionError,
    MethodUnavailableError,
    WorkerLostError,
    counted,
    errors_of,
)
from prplugin.frames import dask
from prplugin.frames import partitions as parts_of
from prplugin.frames.columns import Frame, computed, resolve
from prplugin.frames.times import Clock
from prplugin.methods.estimates import Estimate
from prplugin.methods.registry import check_options, methods, options_of
from prplugin.options import EdgeOptions, Options, check_choice
from prplugin.progress import Progress, Watch, watching
from prplugin.result.ranking import DistributedRanking, DistributedRankings, Ranking
from prplugin.streams.changes import read_changes, refuse_window
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Compressed, Integers

logger = logging.getLogger(__name__)


class DistributedGraph:
    """A graph on the workers of a cluster: see `prplugin.sources.PreparedGraph`.

    If `lasting` is False, exactly one ranking follows, which builds the graph in the same tasks. `read` makes the graph
    of one worker: see `one_worker.build`.
    """

    n: int  # number of vertices; n and m exist only if the graph is lasting
    m: int  # number of directed edges

    def __init__(
        self, client: Client, frame: Frame, how: EdgeOptions, read: Callable[..., Any], *, lasting: bool
    ) -> None:
        clock = None if how.time is None else Clock(how.half_life, how.window, how.now)
        labels = list(frame.columns)
        columns = resolve(labels, how.source, how.destination, how.weight, how.time, clock, frame, by=how.by)
        columns = columns._replace(missing=how.missing)
        self._schema = replace(how, **columns.id_names, vertices=None)
        self._updating = Lock()
        self._names = columns.vertex_names
        self._unused_weight = columns.unused_weight
        self._memory_space = dask.memory_space_of(frame)
        self._workers = workers = Workers(client)
        partitions, like, columns_in_use = parts_of.futures_of(client, frame, columns)
        several = columns.vertex_names if len(columns.source) > 1 else None
        additional = None if how.vertices is None else parts_of.given_ids(how.vertices, several, "vertices")
        with errors_of("the Dask frame of edges"):
            try:
                self._alone, self._why, assigned = workers.assign(
                    partitions, how.workers, self._memory_space, may_be_alone=how.by is None
                )
            except KeyError:
                dask.refuse_absent_columns(frame, columns)
                raise
        # A worker that holds no partition gets an empty one, which is last in the frame.
        partitions.append(like.iloc[:0])
        assigned = [numbers or [len(partitions) - 1] for numbers in assigned]
        held = [([partitions[number] for number in numbers], numbers) for numbers in assigned]
        self._given: list[tuple[object, ...]]
        if self._alone:
            given = how.vertices if additional is None else parts_of.joined_ids(additional, several)
            alone = workers.scatter(replace(how, vertices=given))
            used = *columns.source_names, *columns.destination_names, columns.weight_name, columns.time_name
            names = [*dict.fromkeys(name for name in used if name is not None)]
            self._given = [(*parts, names, alone) for parts in held]
        else:
            self._given = [(self._memory_space, *parts, columns_in_use, workers.scatter(additional)) for parts in held]
        self._read = read
        self._build = self._program(how)
        self._shards: list[Future] = []
        if lasting:
            program = partial(one_worker.build, read, lasting=True) if self._alone else partial(built, self._build)
            shards = workers.start(program, self._memory_space, self._given)
            self._take(shards, workers.result(shards))

    def _program(self, how: EdgeOptions) -> Callable[..., Any]:
        """Return the program that builds the part of a worker, of several."""
        return partial(build, directed=how.directed, duplicates=how.duplicates)

    _rank_part: Any = staticmethod(rank_shard)
    """The program that ranks with the part of a worker."""

    def _take(self, shards: list[Future], facts: tuple[int, int, Any]) -> None:
        """Take complete parts of a graph for this graph."""
        self._given, (self.n, self.m, self._clock) = [], facts
        self._shards = shards
        if self._alone:
            self._shards, self._workers = shards[:1], self._workers.first()

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks: a Dask Series, or a frame if a vertex has several columns."""
        if self._alone:
            (ids,) = self._workers.start(one_worker.vertices, self._memory_space, [(self._shards[0],)])
            count, like = self._workers.result([ids])
            return parts_of.frame_of([ids], [count], like)
        with watching(False) as watch:
            frame = self.rank(Options(alpha=0.0), watch).frame  # a single iteration
        return frame[self._names] if len(self._names) > 1 else frame[self._names[0]]

    def csr(self) -> Compressed:
        raise unsupported("the CSR and CSC arrays")

    csc = csr

    def __reduce_ex__(self, protocol: object) -> Any:
        raise unsupported("pickle and copy")

    def update(self, add: object, remove: object, *, wait: bool) -> None:
        """Remove and add edges; on any error, change nothing. Rankings that run keep the old parts: none waits."""
        workers, schema = self._workers, self._schema
        refuse_window(schema)
        add, remove = computed(add, "add"), computed(remove, "remove")
        with self._updating:
            workers.check()
            if self._alone:
                given = workers.scatter(add), workers.scatter(remove)
                updated = workers.start(one_worker.update, self._memory_space, [(self._shards[0].key, *given)])
                self.n, self.m, _ = workers.result(updated)
                return
            change = workers.scatter(read_changes(add, remove, schema, self._clock, "host", self._names))
            arguments = [(shard.key, self._names, change, schema) for shard in self._shards]
            shards = workers.start(partial(built, _update), self._memory_space, arguments)
            self._take(shards, workers.result(shards))

    def estimate(self) -> Estimate:
        raise unsupported("estimate()")

    def facts(self) -> tuple[int, str, dict[str, str]]:
        workers = counted(len(self._workers.addresses), "worker")
        return self.n, counted(self.m, "directed edge"), {"edges are on": f"{workers} of a Dask cluster"}

    def rank(self, options: Options, watch: Watch) -> Ranking:
        """Compute one ranking, or one per seed, as `prplugin.Graph.rank` does; the ranks stay on the workers."""
        began = time.perf_counter()
        _check_method(options, self._memory_space, alone=self._alone)
        workers, graph = self._workers, [(shard,) for shard in self._shards] or [(given,) for given in self._given]
        converted = workers.scatter(parts_of.converted(options))
        if self._shards:
            workers.check()
        topic = _watched(workers.client, watch, options)
        logs = [None if topic is None else _Log(topic), *[None] * (len(graph) - 1)]
        arguments: list[tuple[object, ...]]
        if self._alone:
            program: Callable[..., object] = (
                one_worker.rank if self._shards else partial(one_worker.ranked_once, self._read)
            )
            arguments = [(*part, converted, log) for part, log in zip(graph, logs, strict=True)]
        else:
            program = self._rank_part if self._shards else partial(_ranked_once, self._build, self._rank_part)
            arguments = [
                (*part, self._names, converted, threads, log)
                for part, threads, log in zip(graph, workers.threads, logs, strict=True)
            ]
        ranked = workers.start(program, self._memory_space, arguments)
        try:
            found: Any = workers.result(ranked)
        finally:
            if topic is not None:
                workers.client.unsubscribe_topic(topic)
        return self._ranking(ranked[:1] if self._alone else ranked, found, options, time.perf_counter() - began)

    def _ranking(self, ranked: list[Future], found: Any, options: Options, seconds: float) -> Ranking:
        workers, outcomes = self._workers, found.outcomes
        notes = *found.history.notes, self._why
        history = found.history._replace(unused_weight=self._unused_weight, notes=notes)
        method, stages = history.considered[0].method, dict(history.stages)
        logger.info(
            "%s on %d workers: %s; %s bytes sent",
            method, len(ranked), ", ".join(f"{stage} {s:.3g} s" for stage, s in stages.items()), found.bytes_sent,
        )  # fmt: skip

        def written(places: Integers) -> Any:
            return parts_of.frame_of(
                [workers.apply(partial(_rows_of, places), ranked[0], 0)], [places.size], found.like
            )

        rows = sum(map(sum, found.rows))
        if found.positions and rows < sum(positions.size for positions in found.positions):  # of ties
            frame = written(np.arange(rows))
        elif found.positions or self._alone:
            frame = parts_of.frame_of(ranked[:1], [rows], found.like)
        else:
            parts = ranked
            if len(outcomes) > 1:
                parts = [
                    workers.apply(itemgetter(ranking), part, rank)
                    for ranking in range(len(outcomes))
                    for rank, part in enumerate(ranked)
                ]
            frame = parts_of.frame_of(parts, [count for of_ranks in found.rows for count in of_ranks], found.like)

        def write(_: object, rows: Integers | None) -> Any:
            if rows is None:
                return frame
            place_of = {row: place for place, row in enumerate(found.positions[0].tolist())}
            return written(np.array([place_of[row] for row in rows.tolist()]))

        common: Any = {
            "n": history.n, "workers": len(ranked), "stages": stages, "bytes_sent": found.bytes_sent,
            "_history": history,
        }  # fmt: skip
        converged, iterations, bounds = (
            np.array([getattr(outcome, what) for outcome in outcomes])
            for what in ("converged", "iterations", "error_bound")
        )
        whole = (
            frame["pagerank"], bool(converged.all()), int(iterations.max()), float(bounds.max()), method, seconds,
            write, options.top,
        )  # fmt: skip
        if found.seeds is None:
            return DistributedRanking(*whole, outcomes[0].order, **common)
        return DistributedRankings(
            *whole, **common, each_converged=converged, each_iterations=iterations, each_error_bound=bounds,
            _seeds=partial(first_of, found.seeds), _counts=[sum(of_ranks) for of_ranks in found.rows],
        )  # fmt: skip


def first_of(seeds: list[Hashable], count: int) -> list[Hashable]:
    """Return the first ids of seeds or groups."""
    return seeds[:count]


def unsupported(feature: str) -> MethodUnavailableError:
    """Return the error for what graphs on the workers do not have."""
    return MethodUnavailableError(
        f"{feature}: not available for a graph on the workers of a Dask cluster. If its edges fit into the memory of "
        "one process, build the graph from frame.compute()."
    )


def _watched(client: Client, watch: Watch, options: Options) -> str | None:
    """Subscribe to the states of the first rank if progress is shown; return the topic, or None."""
    if watch.report is None:
        return None
    watch.stage("edges")
    watched = watch.iterations(options, options.max_iter or 0)
    topic = f"prplugin-{uuid.uuid4().hex}"

    def show(event: tuple[object, list[Any]]) -> None:
        (watched if len(event[1]) == 2 else watch.read)(*event[1])

    client.subscribe_topic(topic, show)
    return topic


METHODS: dict[MemorySpace, tuple[str, ...]] = {
    "host": ("numpy", "native"),
    "device": ("persistent", "propagation-blocking"),
}
"""Methods available for partitions of pandas (host) and of cuDF (device)."""


def _check_method(options: Options, memory_space: MemorySpace, *, alone: bool) -> None:
    available = tuple(methods()) if alone else METHODS[memory_space]
    if options.method in available:
        check_options(methods()[options.method], options.method_options)
    elif options.method == "auto":
        for option in options.method_options:
            if not any(option in options_of(methods()[name]) for name in available):
                raise InvalidOptionError(f"{option!r} is not an option of {' or '.join(available)}.")
    else:
        check_choice("method", options.method, ("auto", *methods()))
        raise MethodUnavailableError(
            f"method {options.method!r} cannot rank Dask frames on several workers of a cluster: choose 'auto', "
            f"{' or '.join(map(repr, available))}, or workers=1 if the edges fit in the memory of one."
        )


# --- on the workers -------------------------------------------------------------------------------------------------


def built(program: Callable[..., Any], communicator: Communicator, *arguments: Any) -> tuple[Any, tuple[int, int, Any]]:
    """Build a part of a graph; return it, and the numbers of vertices and of edges and the clock of the graph."""
    part = program(communicator, *arguments)
    return part, (part.n, part.m, part.clock)


def _ranked_once(
    program: Callable[..., Any], rank_part: Callable[..., Any], communicator: Communicator, given: Sequence[Any],
    *arguments: Any,
) -> Any:  # fmt: skip
    with watching(arguments[-1] or False) as watch:  # the last one receives the progress
        watch.stage("vertices")
        part = program(communicator, *given)
    return rank_part(communicator, part, *arguments)


def _update(communicator: Communicator, key: str, *arguments: Any) -> Any:
    """Update the part of a graph that a task left on this worker.

    The part is no dependency of this task, since Dask would keep the tasks of all earlier updates.
    """
    if (shard := get_worker().data.get(key)) is None:
        raise WorkerLostError("a part of the graph is lost: build the graph again.")
    return update(communicator, shard, *arguments)


def _rows_of(places: Integers, joined: Frame) -> Any:
    """Return some rows of a joined result."""
    return joined.iloc[places].reset_index(drop=True)


class _Log:
    """Sends states of the first rank to the driver; called first on the thread of a task."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._worker: Any = None

    def __call__(self, state: Progress) -> None:
        self._worker = self._worker or get_worker()  # other threads have none
        if state.stage == "iterations":
            self._worker.log_event(self._topic, [state.iterations, state.error_bound])
        elif state.total:
            self._worker.log_event(self._topic, [state.done, state.total, state.unit])
