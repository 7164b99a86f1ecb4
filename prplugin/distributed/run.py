"""Driver: runs the program on the workers of a Dask cluster, one task per worker, and monitors it until it ends.

Dask computes and locates the partitions, starts the tasks, and keeps the parts of the graph and of the result on the
workers as long as they are referenced. Dask does not know that these tasks wait for one another. When a task fails, or
its worker is lost, the driver therefore cancels the others.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Hashable, Iterator, Mapping
from contextlib import closing, contextmanager
from operator import itemgetter
from typing import Any
from weakref import WeakSet

import distributed
from distributed import Client, Future, get_worker, secede
from distributed.sizeof import safe_sizeof

from prplugin.distributed import mailbox, ranks
from prplugin.distributed.communicator import Communicator
from prplugin.distributed.ranks import Report
from prplugin.distributed.shard import Shard, build
from prplugin.errors import InvalidOptionError, MethodUnavailableError, PageRankError, WorkerLostError, counted, listed
from prplugin.frames import cudf, dask
from prplugin.frames.columns import resolve
from prplugin.gpu import runtime
from prplugin.methods.estimates import Estimate
from prplugin.methods.registry import check_options, methods, options_of
from prplugin.options import Duplicates, EdgeOptions, GivenByVertex, Options, check_choice
from prplugin.progress import Watch, watching
from prplugin.result.ranking import DistributedRanking, Ranking, require_converged
from prplugin.types.compressed import Compressed
from prplugin.types.history import Considered, History

__all__ = ["DistributedGraph"]

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""Interval at which the driver checks for lost workers."""

ABANDON_SECONDS = 10.0
"""Timeout for cancelling the tasks of a failed call."""

SCATTERED = 1 << 20
"""Size in bytes above which a worker's part of an argument is scattered, not sent with the task."""

_with_plugin: WeakSet[Client] = WeakSet()


class DistributedGraph:
    """A graph on the workers of a cluster.

    Parameters
    ----------
    lasting : bool
        Whether more than one ranking may follow. If not, the driver does not wait until the graph has been built.
    """

    n: int  # number of vertices; n and m exist only if the graph is lasting
    m: int  # number of directed edges

    def __init__(self, client: Client, frame: Any, how: EdgeOptions, *, lasting: bool) -> None:
        dask.refuse_times(how.time)
        columns = resolve(list(frame.columns), how.source, how.destination, how.weight)
        self._client, self._names = client, columns.vertex_names
        self._unused_weight = columns.unused_weight
        self._parts_of = dask.parts_name(frame)
        if client not in _with_plugin:
            client.register_plugin(mailbox.MessagePlugin())
            _with_plugin.add(client)
        partitions, like, columns_in_use = dask.partitions(client, frame, columns)
        several = columns.source_names if len(columns.source) > 1 else None
        more = None if how.vertices is None else dask.given_ids(how.vertices, several, "vertices")
        self._addresses = _workers(client)
        try:
            assigned = _assigned(client, partitions, self._addresses)
        except KeyError:
            dask.refuse_absent_columns(frame, columns)
            raise
        portions = self._sent(dask.portions(more, len(self._addresses)))
        self._job = _Job(client, self._addresses)
        self._shards = [
            self._job.submit(
                _build, rank, how.directed, how.duplicates, self._parts_of, [partitions[p] for p in mine], mine, like,
                columns_in_use, portions[rank],
            )
            for rank, mine in enumerate(assigned)
        ]  # fmt: skip
        if lasting:
            size = client.submit(_size_of, self._shards[0], workers=[self._addresses[0]], pure=False)
            self.n, self.m = self._job.result([*self._shards, size], size)

    def _sent(self, portions: list[Any]) -> list[Any]:
        """Scatter large parts of an argument to their workers; return futures of these, and the other parts."""
        return [
            self._client.scatter([portion], workers=[address], hash=False)[0]
            if safe_sizeof(portion) > SCATTERED
            else portion
            for portion, address in zip(portions, self._addresses, strict=True)
        ]

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks: a Dask Series, or a frame if a vertex has several columns."""
        with watching(False) as watch:
            frame = self.rank(Options(alpha=0.0), GivenByVertex(), watch).frame  # a single iteration
        return frame[self._names] if len(self._names) > 1 else frame[self._names[0]]

    def csr(self) -> Compressed:
        """Raise: no process holds all edges."""
        raise _not_in_one_memory("holds its arrays")

    csc = csr

    def update(self, add: Any, remove: Any) -> None:
        """Raise: the edges are on several workers."""
        raise _not_in_one_memory("can change its edges")

    def estimate(self) -> Estimate:
        """Raise: no process holds all edges."""
        raise _not_in_one_memory("can estimate its methods")

    def facts(self) -> dict[str, str]:
        """Return properties of the graph for its representation, in addition to the counts."""
        return {"edges are on": f"{counted(len(self._addresses), 'worker')} of a Dask cluster"}

    def rank(self, options: Options, given: GivenByVertex, watch: Watch) -> Ranking:
        """Compute one ranking, as `prplugin.Graph.rank` does; the ranks stay on the workers."""
        began = time.perf_counter()
        _check_method(options, self._parts_of)
        needing = {
            "seeds": given.seeds is not None,
            "among": given.among is not None,
            "certified=True": options.certified,
        }
        for what, needed in needing.items():
            if needed:
                raise _not_in_one_memory(f"has all ranks, which {what} needs")
        size = len(self._addresses)
        portions = {
            what: self._sent(dask.portions_of_values(dask.given_values(one, self._names, what), size))
            for what in ("personalization", "dangling", "nstart")
            if (one := getattr(given, what)) is not None
        }
        job = _Job(self._client, self._addresses, self._job)
        job.check_workers()
        topic = _watched(self._client, watch, options)
        ranked = []
        for rank, shard in enumerate(self._shards):
            by_vertex = {what: portion[rank] for what, portion in portions.items()}
            ranked.append(job.submit(_rank, rank, shard, self._names, options, by_vertex, topic if rank == 0 else None))
        pairs = list(zip(ranked, self._addresses, strict=True))
        frames = [self._client.submit(itemgetter(0), one, workers=[at], pure=False) for one, at in pairs]
        report = self._client.submit(itemgetter(1), ranked[0], workers=[self._addresses[0]], pure=False)
        try:
            found: Report = job.result([*self._shards, *ranked, *frames, report], report)
        finally:
            if topic is not None:
                self._client.unsubscribe_topic(topic)
        logger.info(
            "%s on %d workers: %s; %s bytes sent",
            found.method, size, ", ".join(f"{stage} {s:.3g} s" for stage, s in found.stages.items()), found.sent,
        )  # fmt: skip
        frame = dask.frame_of(frames, found.rows, found.like)
        ranking = DistributedRanking(
            frame["pagerank"], found.converged, found.iterations, found.error_bound, found.method,
            time.perf_counter() - began, lambda ranks, rows: frame, options.top,
            n=found.n, workers=size, stages=found.stages, bytes_sent=found.sent,
            _history=_history(found, options, self._unused_weight),
        )  # fmt: skip
        return require_converged(ranking, options)


def _history(found: Report, options: Options, unused_weight: Hashable) -> History:
    """Return the record of a ranking."""
    reason = "asked for by name" if options.method != "auto" else "auto: by the size of the largest part of the graph"
    return History(
        found.n, found.m, found.weighted, found.memory_space, options.alpha, options.tol, options.stop,
        (Considered(found.method, None, reason),), tuple(found.stages.items()), tuple(found.bounds), unused_weight,
    )  # fmt: skip


def _not_in_one_memory(what: str) -> MethodUnavailableError:
    return MethodUnavailableError(
        f"the edges of this graph are on several workers, and no process {what}: make the graph of frame.compute(), if "
        "its edges fit one memory."
    )


def _watched(client: Client, watch: Watch, options: Options) -> str | None:
    """Subscribe to the iterations of the first rank if progress is shown; return the topic, or None."""
    if not watch.wanted:
        return None
    watch.stage("edges")
    watched = watch.iterations(options.tol if options.stop == "error" else 0.0, options.max_iter or 0)
    topic = f"prplugin-{uuid.uuid4().hex}"
    client.subscribe_topic(topic, lambda event: watched(*event[1]))
    return topic


class _Job:
    """Tasks that wait for one another, one per worker.

    `before` is the job whose results they depend on; both are cancelled together.
    """

    def __init__(self, client: Client, addresses: list[str], before: _Job | None = None) -> None:
        self._client, self._addresses = client, addresses
        self._name: str = f"prplugin-{uuid.uuid4().hex}"
        self._names: list[str] = [self._name] if before is None else [*before._names, self._name]

    def submit(self, do: Any, rank: int, *arguments: Any) -> Future:
        """Start the task of a rank on its worker only, without retries."""
        key = f"{self._name}-{rank}"
        return self._client.submit(
            _task, do, self._name, self._addresses, rank, key, *arguments,
            key=key, workers=[self._addresses[rank]], allow_other_workers=False, retries=0, pure=False,
        )  # fmt: skip

    def result(self, futures: list[Future], wanted: Future) -> Any:
        """Wait for all tasks and return the result of one; if a task fails or loses its worker, cancel the others."""
        left = set(futures)
        try:
            while left:
                try:
                    done = distributed.wait(left, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED").done
                except TimeoutError:
                    self.check_workers()
                    continue
                for future in done:
                    if future.status != "finished":
                        self._raise(future)
                left -= done
            result = wanted.result()
            # Allow Dask to recompute lost results on any worker, where `_task` fails immediately. Otherwise Dask would
            # wait forever for the lost worker.
            anywhere = {future.key: self._addresses for future in futures}
            self._client.sync(self._client.scheduler.set_restrictions, worker=anywhere)
            return result
        except BaseException as error:
            # On a thread, so that a worker that does not answer cannot block the driver.
            reason = str(error) or type(error).__name__
            abandoning = threading.Thread(target=self._abandon, args=(futures, reason), daemon=True)
            abandoning.start()
            abandoning.join(ABANDON_SECONDS)
            raise

    def check_workers(self) -> None:
        """Raise WorkerLostError if a worker has left the cluster."""
        there = _workers(self._client)
        lost = [address for address in self._addresses if address not in there]
        if lost:
            raise WorkerLostError(
                f"lost {'worker' if len(lost) == 1 else 'workers'} {listed(lost)} during the computation: killed, "
                "out of memory, or disconnected. Call again to use the remaining workers; Dask recomputes lost "
                "partitions if it can."
            )

    def _raise(self, failed: Future) -> None:
        """Raise the error of a failed task, or WorkerLostError with the lost worker if that is the cause."""
        if failed.status == "error":
            error = failed.exception()
            if isinstance(error, (WorkerLostError, distributed.scheduler.KilledWorker, OSError)):
                # The scheduler may not have noticed the loss of the worker yet.
                self._wait_for_loss()
            if isinstance(error, distributed.scheduler.KilledWorker):
                raise WorkerLostError(f"a worker was lost: {error}") from error
            raise error
        self._wait_for_loss()
        raise WorkerLostError(f"Dask did not finish a task of this call: it is {failed.status}.")

    def _wait_for_loss(self) -> None:
        """Raise WorkerLostError if the scheduler reports the loss of a worker within a few seconds."""
        until = time.monotonic() + 10 * POLL_SECONDS
        while time.monotonic() < until:
            self.check_workers()
            time.sleep(POLL_SECONDS / 5)

    def _abandon(self, futures: list[Future], reason: str) -> None:
        """Cancel the jobs on the remaining workers, and the tasks."""
        there = [address for address in self._addresses if address in _workers(self._client)]
        for name in self._names:
            self._client.run(mailbox.abandon, name, reason, workers=there, on_error="ignore")
        self._client.cancel(futures, force=True)


METHODS = {
    "prplugin.frames._pandas_parts": ("numpy", "numba"),
    "prplugin.frames._cudf_parts": ("persistent", "propagation-blocking"),
}
"""Methods available for partitions of pandas (host) and of cuDF (device)."""


def _check_method(options: Options, parts_name: str) -> None:
    """Raise unless the method is available on several workers and has the given options."""
    able = METHODS[parts_name]
    if options.method in able:
        check_options(methods()[options.method], options.method_options)
    elif options.method == "auto":
        for option in options.method_options:
            if not any(option in options_of(methods()[name]) for name in able):
                raise InvalidOptionError(f"{option!r} is not an option of {' or '.join(able)}.")
    else:
        check_choice("method", options.method, ("auto", "measured", *methods()))
        raise MethodUnavailableError(
            f"method {options.method!r} cannot rank frames of Dask on several workers: 'auto', "
            f"{' and '.join(map(repr, able))} can."
        )


def _workers(client: Client) -> list[str]:
    """Return the addresses of the workers, sorted by worker name."""
    # Not `client.scheduler_info`: its periodic update, which omits workers, may overwrite the result of a query.
    try:
        workers = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    except OSError as error:
        raise WorkerLostError(f"the Dask scheduler cannot be reached: {error}") from error
    if not workers:
        raise PageRankError(
            "the Dask cluster has no workers: start one, or wait for it with client.wait_for_workers(1)."
        )
    return sorted(workers, key=lambda address: (str(type(workers[address]["name"])), workers[address]["name"]))


def _assigned(client: Client, partitions: list[Future], addresses: list[str]) -> list[list[int]]:
    """Assign each partition to a rank that holds it; among several, to the one with the fewest partitions so far.

    Return the numbers of the partitions of each rank.
    """
    distributed.wait(partitions)
    for partition in partitions:
        if partition.status != "finished":
            partition.result()
    holders = client.who_has(partitions)
    assigned: list[list[int]] = [[] for _ in addresses]
    rank_of = {address: rank for rank, address in enumerate(addresses)}
    for number, partition in enumerate(partitions):
        ranks_with = [rank_of[address] for address in holders[partition.key] if address in rank_of]
        fewest = min(ranks_with or range(len(addresses)), key=lambda rank: (len(assigned[rank]), rank))
        assigned[fewest].append(number)
    return assigned


# --- on the workers -------------------------------------------------------------------------------------------------


def _task(do: Any, job: str, addresses: list[str], rank: int, key: str, *arguments: Any) -> Any:
    """Run a rank's part of a job, outside the thread pool of the worker.

    In the thread pool, jobs of two clients could deadlock, each waiting for a thread that the other occupies.
    """
    worker = get_worker()
    if worker.address != addresses[rank]:
        raise WorkerLostError(
            f"worker {addresses[rank]} is lost, and with it a part of the graph or of its ranks: rank the frame again."
        )
    secede()
    with closing(mailbox.Mailbox(worker, job, addresses, rank, key)) as messages:
        return do(messages, *arguments)


@contextmanager
def _communicator(parts: Any, messages: mailbox.Mailbox) -> Iterator[Communicator]:
    """Yield the communicator for the memory space of the partitions, with its memory pool active."""
    if parts.memory_space == "host":
        yield messages
        return
    from prplugin.distributed import nccl  # imports CuPy, which cuDF has

    with nccl.connected(messages) as communicator, cudf.on_cudf_stream(), runtime.device_allocation("device"):
        yield communicator


def _build(
    messages: mailbox.Mailbox, directed: bool, duplicates: Duplicates, parts_name: str, *arguments: Any
) -> Shard:
    parts = dask.parts(parts_name)
    with _communicator(parts, messages) as communicator:
        return build(communicator, parts, *arguments, directed=directed, duplicates=duplicates)


def _rank(
    messages: mailbox.Mailbox,
    shard: Shard,
    names: list[Any],
    options: Options,
    given: Mapping[str, Any],
    topic: str | None,
) -> Any:
    worker = get_worker()

    def watch(iterations: int, bound: float) -> None:
        if topic is not None:
            worker.log_event(topic, [iterations, float(bound)])

    with _communicator(shard.directory.parts, messages) as communicator:
        return ranks.rank(communicator, shard, names, options, given, worker.state.nthreads, watch)


def _size_of(shard: Shard) -> tuple[int, int]:
    return shard.n, shard.m
