"""Driver: runs the program on the workers of a Dask cluster, one task per worker, and monitors it until it ends.

Dask computes and locates the partitions, starts the tasks, and keeps the parts of the graph and of the result on the
workers while they are referenced. Dask does not know that these tasks wait for one another. When a task fails, or its
worker is lost, the driver therefore cancels the other tasks.
"""

from __future__ import annotations

import logging
import pickle
import time
import uuid
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Any
from weakref import WeakSet

import distributed
import numpy as np
from distributed import Client, Future, get_worker, secede
from distributed.sizeof import safe_sizeof

from prplugin.distributed.communicator import JOB_PREFIX, Communicator, MessagePlugin
from prplugin.distributed.ranks import Report, rank_shard
from prplugin.distributed.shard import build
from prplugin.distributed.update import update
from prplugin.errors import (
    InvalidOptionError,
    MethodUnavailableError,
    PageRankError,
    WorkerLostError,
    counted,
    errors_of,
    listed,
)
from prplugin.frames import dask
from prplugin.frames import partitions as parts_of
from prplugin.frames.columns import Frame, computed, resolve
from prplugin.frames.remedies import advising
from prplugin.frames.times import Clock
from prplugin.frames.vertices import ids_in
from prplugin.gpu import runtime
from prplugin.methods.estimates import Estimate
from prplugin.methods.registry import check_options, methods, options_of
from prplugin.options import EdgeOptions, Options, check_choice
from prplugin.progress import State, Watch, watching
from prplugin.result.ranking import DistributedRanking, DistributedRankings, Ranking
from prplugin.streams.changes import read_changes, refuse_window
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Compressed, Integers

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5  # interval at which the driver checks for lost workers
LOSS_SECONDS = 5.0  # maximum time in which the scheduler notices the loss of a worker that made a task fail
SCATTER_BYTES = 1 << 20  # size in bytes above which an argument is scattered, not sent with each task

_with_plugin: WeakSet[Client] = WeakSet()


class DistributedGraph:
    """A graph on the workers of a cluster: see `prplugin.sources.PreparedGraph`.

    If `lasting` is False, exactly one ranking follows, and the driver does not wait until the graph has been built.
    """

    n: int  # number of vertices; n and m exist only if the graph is lasting
    m: int  # number of directed edges

    def __init__(self, client: Client, frame: Frame, how: EdgeOptions, *, lasting: bool) -> None:
        clock = None if how.time is None else Clock(how.half_life, how.window, how.now)
        labels = list(frame.columns)
        columns = resolve(labels, how.source, how.destination, how.weight, how.time, clock, frame, by=how.by)
        columns = columns._replace(missing=how.missing)
        self._schema = replace(how, **columns.id_names, vertices=None)
        self._updating = Lock()
        self._names = columns.vertex_names
        self._unused_weight = columns.unused_weight
        self._memory_space = dask.memory_space_of(frame)
        self._workers = _Workers(client)
        if client not in _with_plugin:
            self._workers.install(MessagePlugin())
            _with_plugin.add(client)
        partitions, like, columns_in_use = parts_of.futures_of(client, frame, columns)
        several = columns.vertex_names if len(columns.source) > 1 else None
        additional = None if how.vertices is None else parts_of.given_ids(how.vertices, several, "vertices")
        with errors_of("the Dask frame of edges"):
            try:
                assigned = self._workers.assign(partitions)
            except KeyError:
                dask.refuse_absent_columns(frame, columns)
                raise
        program = self._program(how)
        additional = self._workers.scatter(additional)
        # A worker that holds no partition gets an empty one, which is last in the frame.
        partitions.append(like.iloc[:0])
        arguments = [
            (self._memory_space, [partitions[p] for p in mine], mine, columns_in_use, additional)
            for mine in (numbers or [len(partitions) - 1] for numbers in assigned)
        ]
        self._building = self._shards = self._workers.start(program, self._memory_space, arguments)
        if lasting:
            self._replace(self._shards)
            self._building = []  # an error of a ranking does not cancel the finished graph

    def _program(self, how: EdgeOptions) -> Any:
        """Return the program that builds the part of a worker."""
        return partial(build, directed=how.directed, duplicates=how.duplicates)

    _rank_part: Any = staticmethod(rank_shard)
    """The program that ranks with the part of a worker."""

    def _replace(self, shards: list[Future]) -> None:
        """Wait until all parts of a graph are complete, and take them for this graph."""
        facts = self._workers.apply(attrgetter("n", "m", "clock"), shards[0], 0)
        found = self._workers.result([*shards, facts], facts)
        self._shards, (self.n, self.m, self._clock) = shards, found

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks: a Dask Series, or a frame if a vertex has several columns."""
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
        with self._updating:
            change = read_changes(
                computed(add, "add"), computed(remove, "remove"), schema, self._clock, "host", self._names
            )
            workers.check()
            change = workers.scatter(change)
            arguments = [(shard.key, self._names, change, schema) for shard in self._shards]
            self._replace(workers.start(_update, self._memory_space, arguments))

    def estimate(self) -> Estimate:
        raise unsupported("estimate()")

    def facts(self) -> tuple[int, str, dict[str, str]]:
        workers = counted(len(self._workers.addresses), "worker")
        return self.n, counted(self.m, "directed edge"), {"edges are on": f"{workers} of a Dask cluster"}

    def rank(self, options: Options, watch: Watch) -> Ranking:
        """Compute one ranking, or one per seed, as `prplugin.Graph.rank` does; the ranks stay on the workers."""
        began = time.perf_counter()
        _check_method(options, self._memory_space)
        workers, shards = self._workers, self._shards
        converted = workers.scatter(parts_of.converted(options))
        workers.check()
        topic = _watched(workers.client, watch, options)
        log = None if topic is None else partial(_log_iteration, topic)
        arguments = [
            (shard, self._names, converted, threads, log if rank == 0 else None)
            for rank, (shard, threads) in enumerate(zip(shards, workers.threads, strict=True))
        ]
        ranked = workers.start(self._rank_part, self._memory_space, arguments)
        report = workers.apply(itemgetter(1), ranked[0], 0)
        try:
            found: Any = workers.result([*self._building, *ranked, report], report)
        finally:
            if topic is not None:
                workers.client.unsubscribe_topic(topic)
        return self._ranking(ranked, found, options, time.perf_counter() - began)

    def _ranking(self, ranked: list[Future], found: Any, options: Options, seconds: float) -> Ranking:
        workers, outcomes = self._workers, found.outcomes
        history = found.history._replace(unused_weight=self._unused_weight)
        method, stages = history.considered[0].method, dict(history.stages)
        logger.info(
            "%s on %d workers: %s; %s bytes sent",
            method, len(ranked), ", ".join(f"{stage} {s:.3g} s" for stage, s in stages.items()), found.bytes_sent,
        )  # fmt: skip

        def written(places: Integers) -> Any:
            return parts_of.frame_of(
                [workers.apply(partial(_rows_of, places), ranked[0], 0)], [places.size], found.like
            )

        if found.positions:
            frame = written(np.arange(sum(map(sum, found.rows))))
        else:
            parts = [
                workers.apply(partial(frame_of_ranking, ranking), part, rank)
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


def first_of(seeds: list[Any], count: int) -> list[Any]:
    """Return the first ids of seeds or groups."""
    return seeds[:count]


def unsupported(feature: str) -> MethodUnavailableError:
    """Return the error for what graphs on the workers do not have."""
    return MethodUnavailableError(
        f"{feature}: not available for a graph on the workers of a Dask cluster. If its edges fit into the memory of "
        "one process, build the graph from frame.compute()."
    )


def _watched(client: Client, watch: Watch, options: Options) -> str | None:
    """Subscribe to the iterations of the first rank if progress is shown; return the topic, or None."""
    if watch.report is None:
        return None
    watch.stage("edges")
    watched = watch.iterations(options, options.max_iter or 0)
    topic = f"prplugin-{uuid.uuid4().hex}"
    client.subscribe_topic(topic, lambda event: watched(*event[1]))
    return topic


class _Workers:
    """The workers of a cluster, in the order of their names: worker r runs rank r of a program."""

    def __init__(self, client: Client) -> None:
        self.client = client
        threads = _threads_by_address(client)
        if not threads:
            raise PageRankError(
                "the Dask cluster has no workers: start one, or wait for it with client.wait_for_workers(1)."
            )
        self.addresses, self.threads = list(threads), list(threads.values())

    def install(self, plugin: distributed.WorkerPlugin) -> None:
        """Register a plugin on the workers."""
        try:
            self.client.register_plugin(plugin)
        except OSError as error:
            self._await_loss()
            raise WorkerLostError(f"Dask cannot install prplugin on its workers: {error}") from error

    def assign(self, partitions: list[Future]) -> list[list[int]]:
        """Return the numbers of the partitions of each rank.

        Each partition goes to a rank that holds it; among several, to the one with the fewest partitions so far.
        """
        distributed.wait(partitions)
        for partition in partitions:
            if partition.status != "finished":
                partition.result()
        holders = self.client.who_has(partitions)
        assigned: list[list[int]] = [[] for _ in self.addresses]
        rank_of = {address: rank for rank, address in enumerate(self.addresses)}
        for number, partition in enumerate(partitions):
            ranks_with = [rank_of[address] for address in holders[partition.key] if address in rank_of]
            fewest = min(ranks_with or rank_of.values(), key=lambda rank: (len(assigned[rank]), rank))
            assigned[fewest].append(number)
        return assigned

    def scatter(self, argument: object) -> Any:
        """Send a large argument to all workers and return its future; return a small argument unchanged."""
        # Dask estimates sizes, of some objects far below those of their pickles.
        if safe_sizeof(argument) <= SCATTER_BYTES and len(pickle.dumps(argument)) <= SCATTER_BYTES:
            return argument
        return self.client.scatter([argument], workers=self.addresses, broadcast=True, hash=False)[0]

    def start(self, program: Any, memory_space: MemorySpace, arguments: list[tuple[Any, ...]]) -> list[Future]:
        """Start a program with the arguments of each rank, on its worker only and without retries."""
        job = f"{JOB_PREFIX}{uuid.uuid4().hex}"
        return [
            self.client.submit(
                _task, program, memory_space, job, self.addresses, rank, *own,
                key=f"{job}-{rank}", workers=[self.addresses[rank]], allow_other_workers=False, retries=0, pure=False,
            )
            for rank, own in enumerate(arguments)
        ]  # fmt: skip

    def apply(self, function: object, results: object, rank: int) -> Future:
        """Apply a function to a result or a list of results on the worker of a rank, or on another if it is lost."""
        # Without `allow_other_workers` Dask would wait forever for a lost worker. On another one `_task` raises.
        return self.client.submit(
            function, results, workers=[self.addresses[rank]], allow_other_workers=True, pure=False
        )

    def result(self, futures: list[Future], wanted: Future) -> Any:
        """Wait for all tasks and return the result of one; if a task fails or loses its worker, cancel the others."""
        pending = set(futures)
        try:
            while pending:
                try:
                    done = distributed.wait(pending, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED").done
                except TimeoutError:
                    self.check()
                    continue
                for future in done:
                    if future.status != "finished":
                        self._raise(future)
                pending -= done
            result = wanted.result()
            # Allow Dask to recompute lost results on any worker, where `_task` fails immediately. Otherwise Dask would
            # wait forever for the lost worker.
            anywhere = {future.key: self.addresses for future in futures}
            self.client.sync(self.client.scheduler.set_restrictions, worker=anywhere)
            return result
        except BaseException:
            with suppress(Exception):  # a closed client has cancelled them already
                self.client.cancel(futures, force=True)
            raise

    def check(self) -> None:
        """Raise WorkerLostError if a worker has left the cluster."""
        present = _threads_by_address(self.client)
        lost = [address for address in self.addresses if address not in present]
        if lost:
            raise WorkerLostError(
                f"lost {'worker' if len(lost) == 1 else 'workers'} {listed(lost)} during the computation: killed, "
                "out of memory, or disconnected. Call again to use the remaining workers; Dask recomputes lost "
                "partitions if it can."
            )

    def _await_loss(self) -> None:
        """Raise WorkerLostError once the scheduler has noticed the loss of a worker; return if it does not in time."""
        until = time.monotonic() + LOSS_SECONDS
        while time.monotonic() < until:
            self.check()
            time.sleep(POLL_SECONDS / 5)

    def _raise(self, failed: Future) -> None:
        """Raise the error of a failed task, or WorkerLostError with the lost worker if that is the cause."""
        error = failed.exception() if failed.status == "error" else None
        killed = isinstance(error, distributed.scheduler.KilledWorker)
        if error is None or killed or isinstance(error, (WorkerLostError, OSError)):
            self._await_loss()
        if error is None:
            raise WorkerLostError(f"Dask did not finish a task of this call: it is {failed.status}.")
        if killed:
            raise WorkerLostError(f"a worker was lost: {error}") from error
        with errors_of("a task on the Dask cluster"):
            raise error.with_traceback(None)  # without that of the worker


METHODS: dict[MemorySpace, tuple[str, ...]] = {
    "host": ("numpy", "native"),
    "device": ("persistent", "propagation-blocking"),
}
"""Methods available for partitions of pandas (host) and of cuDF (device)."""


def _check_method(options: Options, memory_space: MemorySpace) -> None:
    available = METHODS[memory_space]
    if options.method in available:
        check_options(methods()[options.method], options.method_options)
    elif options.method == "auto":
        for option in options.method_options:
            if not any(option in options_of(methods()[name]) for name in available):
                raise InvalidOptionError(f"{option!r} is not an option of {' or '.join(available)}.")
    else:
        check_choice("method", options.method, ("auto", *methods()))
        raise MethodUnavailableError(
            f"method {options.method!r} cannot rank Dask frames on the workers of a cluster: choose 'auto', "
            f"{' or '.join(map(repr, available))}."
        )


def _threads_by_address(client: Client) -> dict[str, int]:
    """Return the number of threads of each worker by its address, in the order of worker names."""
    # Not `client.scheduler_info`: its periodic update, which omits workers, may overwrite the result of a query.
    try:
        workers = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    except OSError as error:
        raise WorkerLostError(f"the Dask scheduler cannot be reached: {error}") from error
    by_name = sorted(workers.items(), key=lambda worker: (str(type(worker[1]["name"])), worker[1]["name"]))
    return {address: worker["nthreads"] for address, worker in by_name}


# --- on the workers -------------------------------------------------------------------------------------------------


def _task(program: Any, memory_space: MemorySpace, job: str, addresses: list[str], rank: int, *arguments: Any) -> Any:
    """Run a rank of a program, outside the thread pool of the worker.

    In the thread pool, programs of two clients could deadlock, each waiting for a thread that the other occupies.
    """
    worker = get_worker()
    if worker.address != addresses[rank]:
        raise WorkerLostError(
            f"worker {addresses[rank]} is lost, and with it a part of the graph or of its ranks: rank the frame again."
        )
    secede()
    connection = worker, job, addresses, rank
    if memory_space == "host":
        with closing(Communicator(*connection)) as messages, advising("pandas"):
            return program(messages, *arguments)
    from prplugin.distributed.nccl import DeviceRanks  # imports CuPy, which cuDF has

    with (
        closing(DeviceRanks(*connection)) as communicator,
        communicator.connected(),
        ids_in(memory_space).active(),
        runtime.device_allocation("device"),
        advising("cudf"),
    ):
        return program(communicator, *arguments)


def _update(communicator: Any, key: str, *arguments: Any) -> Any:
    """Update the part of a graph that a task left on this worker.

    The part is no dependency of this task, since Dask would keep the tasks of all earlier updates.
    """
    if (shard := get_worker().data.get(key)) is None:
        raise WorkerLostError("a part of the graph is lost: build the graph again.")
    return update(communicator, shard, *arguments)


def frame_of_ranking(ranking: int, part: tuple[list[Any], object]) -> Any:
    """Return one of the frames that a worker has written."""
    return part[0][ranking]


def _rows_of(places: Integers, part: tuple[list[Any], Report]) -> Any:
    """Return some rows of a joined result."""
    return part[0][0].iloc[places].reset_index(drop=True)


def _log_iteration(topic: str, state: State) -> None:
    get_worker().log_event(topic, [state.iterations, state.error_bound])
