"""The driver: starts the program on the workers of a Dask cluster, one task per worker, and watches it until it ends.

Dask computes the partitions and knows where they are, starts the tasks, and keeps each worker's part of the graph and
of the result until nobody refers to them. What it cannot know is that these tasks wait for one another. So when one
fails, or its worker is lost, the driver tells the others to give up.
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
"""Interval at which the driver checks that no worker is lost."""

ABANDON_SECONDS = 10.0
"""Timeout for telling the workers that a call has failed."""

SCATTERED = 1 << 20
"""Size in bytes from which a worker's share of an argument is scattered instead of sent with the task."""

_with_plugin: WeakSet[Client] = WeakSet()


class DistributedGraph:
    """A graph on the workers of a cluster; unless it is lasting, the driver does not wait until it is built."""

    n: int  # vertices; like m, of a lasting graph only
    m: int  # directed edges

    def __init__(self, client: Client, frame: Any, how: EdgeOptions, *, lasting: bool) -> None:
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
        """Scatter large shares to their workers, where the tasks find them."""
        return [
            self._client.scatter([portion], workers=[address], hash=False)[0]
            if safe_sizeof(portion) > SCATTERED
            else portion
            for portion, address in zip(portions, self._addresses, strict=True)
        ]

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks: a Series of Dask; of several columns, a frame."""
        with watching(False) as watch:
            frame = self.rank(Options(alpha=0.0), GivenByVertex(), watch).frame  # a single iteration
        return frame[self._names] if len(self._names) > 1 else frame[self._names[0]]

    def csr(self) -> Compressed:
        """Raise: no process holds all edges."""
        raise _not_in_one_memory("holds its arrays")

    csc = csr

    def estimate(self) -> Estimate:
        """Raise: no process holds all edges."""
        raise _not_in_one_memory("can estimate its methods")

    def facts(self) -> dict[str, str]:
        """Return what is shown of the graph, besides the counts."""
        return {"edges are on": f"{counted(len(self._addresses), 'worker')} of a Dask cluster"}

    def rank(self, options: Options, given: GivenByVertex, watch: Watch) -> Ranking:
        """Rank the vertices, as `prplugin.Graph.rank` does; the ranks stay on the workers."""
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
    """Return how a ranking came about."""
    reason = "asked for by name" if options.method != "auto" else "auto: what pays for the largest part of the graph"
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
    """Tasks, one per worker, that wait for one another, and those of the job before that they depend on."""

    def __init__(self, client: Client, addresses: list[str], before: _Job | None = None) -> None:
        self._client, self._addresses = client, addresses
        self._name: str = f"prplugin-{uuid.uuid4().hex}"
        self._names: list[str] = [self._name] if before is None else [*before._names, self._name]

    def submit(self, do: Any, rank: int, *arguments: Any) -> Future:
        """Start the task of a rank, on its worker and no other, without retries."""
        key = f"{self._name}-{rank}"
        return self._client.submit(
            _task, do, self._name, self._addresses, rank, key, *arguments,
            key=key, workers=[self._addresses[rank]], allow_other_workers=False, retries=0, pure=False,
        )  # fmt: skip

    def result(self, futures: list[Future], wanted: Future) -> Any:
        """Wait for tasks and return the result of one; if one fails or loses its worker, make the others give up."""
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
            # Let Dask recompute lost results on any worker, where that fails at once (`_task`): it would wait for ever
            # for a worker that is gone.
            anywhere = {future.key: self._addresses for future in futures}
            self._client.sync(self._client.scheduler.set_restrictions, worker=anywhere)
            return result
        except BaseException as error:
            # On a thread: a worker that does not answer is not waited for long.
            reason = str(error) or type(error).__name__
            abandoning = threading.Thread(target=self._abandon, args=(futures, reason), daemon=True)
            abandoning.start()
            abandoning.join(ABANDON_SECONDS)
            raise

    def check_workers(self) -> None:
        """Raise WorkerLostError if one of the workers is gone."""
        there = _workers(self._client)
        lost = [address for address in self._addresses if address not in there]
        if lost:
            raise WorkerLostError(
                f"lost {'worker' if len(lost) == 1 else 'workers'} {listed(lost)} in the middle of the work: killed, "
                "out of memory, or cut off. Call again to work with those that are there; what the lost ones held of "
                "the edges, Dask makes anew if it can."
            )

    def _raise(self, failed: Future) -> None:
        """Raise the error of a task that did not finish; name the lost worker if that is the cause."""
        if failed.status == "error":
            error = failed.exception()
            if isinstance(error, (WorkerLostError, distributed.scheduler.KilledWorker, OSError)):
                # The worker that it could not reach may still be on the scheduler's list.
                self._wait_for_loss()
            if isinstance(error, distributed.scheduler.KilledWorker):
                raise WorkerLostError(f"a worker was lost: {error}") from error
            raise error
        self._wait_for_loss()
        raise WorkerLostError(f"Dask gave up a task of this call: it is {failed.status}.")

    def _wait_for_loss(self) -> None:
        """Raise WorkerLostError if the scheduler notices within a few seconds that a worker is lost."""
        until = time.monotonic() + 10 * POLL_SECONDS
        while time.monotonic() < until:
            self.check_workers()
            time.sleep(POLL_SECONDS / 5)

    def _abandon(self, futures: list[Future], reason: str) -> None:
        """Tell the workers that are left to give up."""
        there = [address for address in self._addresses if address in _workers(self._client)]
        for name in self._names:
            self._client.run(mailbox.abandon, name, reason, workers=there, on_error="ignore")
        self._client.cancel(futures, force=True)


METHODS = {
    "prplugin.frames._pandas_parts": ("numpy", "numba"),
    "prplugin.frames._cudf_parts": ("persistent", "propagation-blocking"),
}
"""Methods available for each memory space of the partitions."""


def _check_method(options: Options, parts_name: str) -> None:
    """Raise unless the method is available on several workers and takes the options."""
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
    """Return the addresses of the workers, in the order of their names."""
    # Not `client.scheduler_info`, whose periodic update without workers may come between its query and its result.
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
    """Assign each partition to a rank that holds it; of several, to the one that has the fewest so far."""
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
    """Run a rank's part of a job, outside the worker's thread pool.

    Otherwise jobs of two clients, each waiting for a thread that the other occupies, would wait for ever.
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
    """Yield the communicator for the memory space of the partitions, and allocate there."""
    if parts.memory_space == "host":
        yield messages
        return
    from prplugin.distributed import nccl  # imports CuPy, which cuDF has

    with nccl.connected(messages) as communicator, cudf.on_cudf_stream(), runtime.allocating("device"):
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
