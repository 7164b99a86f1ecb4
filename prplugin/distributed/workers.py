"""Workers of a Dask cluster: the choice of those that rank, and programs on them, one task per worker.

Dask does not know that the tasks of a program wait for one another. When a task fails, or its worker is lost, the
driver therefore cancels the other tasks. Dask takes some ten milliseconds for each task that follows another. A call
therefore has one task per worker, and the first rank of a program leaves what the driver has to know, its report, in
the plugin of its worker.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import distributed
from distributed import Client, Future, get_worker, secede
from distributed.protocol.pickle import dumps
from distributed.sizeof import safe_sizeof
from distributed.system import MEMORY_LIMIT

from prplugin.distributed.communicator import JOB_PREFIX, Communicator, MessagePlugin
from prplugin.errors import InvalidOptionError, PageRankError, WorkerLostError, counted, errors_of, listed
from prplugin.frames.remedies import advising
from prplugin.frames.vertices import ids_in
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

POLL_SECONDS = 0.5  # interval at which the driver checks for lost workers
LOSS_SECONDS = 5.0  # maximum time in which the scheduler notices the loss of a worker that made a task fail
SCATTER_BYTES = 1 << 20  # size in bytes above which an argument is scattered, not sent with each task

MEMORY_SHARE = 8  # one worker ranks edges of at most this part of its memory
MOST_THREADS = 4  # and if all workers together have at most this many times its threads

_memory_of: WeakKeyDictionary[Client, dict[str, int]] = WeakKeyDictionary()
"""Bytes of memory of the workers of each client with `MessagePlugin`, by address, as far as they are known."""


class Workers:
    """The workers of a cluster, in the order of their names: worker r runs rank r of a program."""

    def __init__(self, client: Client) -> None:
        self.client = client
        threads = _threads_by_address(client)
        if not threads:
            raise PageRankError(
                "the Dask cluster has no workers: start one, or wait for it with client.wait_for_workers(1)."
            )
        self.addresses, self.threads = list(threads), list(threads.values())
        if client not in _memory_of:
            self._install(MessagePlugin())
            _memory_of[client] = {}

    def _install(self, plugin: distributed.WorkerPlugin) -> None:
        """Register a plugin on the workers."""
        try:
            self.client.register_plugin(plugin)
        except OSError as error:
            self._await_loss()
            raise WorkerLostError(f"Dask cannot install prplugin on its workers: {error}") from error

    def assign(
        self, partitions: list[Future], count: int | None, memory_space: MemorySpace, *, may_be_alone: bool
    ) -> tuple[bool, str, list[list[int]]]:
        """Choose the workers; return whether one ranks alone, the reason, and the numbers of the partitions of each.

        Each partition goes to a worker that holds it; among several, to the one with the fewest partitions so far. One
        that ranks alone is the first, before those that send it their partitions. `count`: The number requested.
        """
        distributed.wait(partitions)
        for partition in partitions:
            if partition.status != "finished":
                partition.result()
        holders = {partition.key: self.addresses for partition in partitions}
        if len(self.addresses) > 1:
            holders = self.client.who_has(partitions)
        held = {address: sum(address in of_one for of_one in holders.values()) for address in self.addresses}
        most, every = max(held, key=lambda address: held[address]), len(held)
        alone, why = count == 1 and may_be_alone, f"ranked on {count} of {counted(every, 'worker')}, as requested"
        if count is None:
            alone, why = self._one_suffices(most, partitions, memory_space) if may_be_alone else (False, "")
        elif count > every:
            raise InvalidOptionError(f"workers={count}, but the Dask cluster has {counted(every, 'worker')}.")
        elif not alone:
            chosen = sorted(held, key=lambda address: -held[address])[:count]
            self._restrict([address for address in self.addresses if address in chosen])
        assigned: list[list[int]] = [[] for _ in self.addresses]
        rank_of = {address: rank for rank, address in enumerate(self.addresses)}
        for number, partition in enumerate(partitions):
            ranks_with = [rank_of[address] for address in holders[partition.key] if address in rank_of]
            if alone and most in holders[partition.key]:
                ranks_with = [rank_of[most]]
            fewest = min(ranks_with or rank_of.values(), key=lambda rank: (len(assigned[rank]), rank))
            assigned[fewest].append(number)
        if alone:
            with_rows = [address for address in self.addresses if address == most or assigned[rank_of[address]]]
            with_rows.sort(key=lambda address: address != most)
            assigned = [assigned[rank_of[address]] for address in with_rows]
            self._restrict(with_rows)
        return alone, why, assigned

    def _one_suffices(self, address: str, partitions: list[Future], memory_space: MemorySpace) -> tuple[bool, str]:
        """Return whether one worker is expected to rank these partitions faster than all, and why.

        The graph, its construction and the ranking take up to some eight times the bytes of the edges. Of the same
        threads, all workers together take about four times as long, since they exchange edges and contributions:
        measured on one host, for 20 million edges on CPUs and for a billion on two GPUs.
        """
        workers = counted(len(self.addresses), "worker")
        if len(self.addresses) == 1:
            return True, "ranked on the only worker of the Dask cluster, as in one process"
        own, every = dict(zip(self.addresses, self.threads, strict=True))[address], sum(self.threads)
        keys = [partition.key for partition in partitions]
        size = sum(self.client.sync(self.client.scheduler.nbytes, keys=keys, summary=False).values())
        memory = self._memory(address, memory_space)
        of_memory = f"the edges take {size:,} bytes, and 1/{MEMORY_SHARE} of its memory is {memory // MEMORY_SHARE:,}"
        if MEMORY_SHARE * size > memory:
            return False, f"ranked on {workers}, since one has too little memory: {of_memory}"
        if every > MOST_THREADS * own:
            return False, f"ranked on {workers}: their {every} threads are more than {MOST_THREADS} times those of one"
        why = "as in one process, which is faster than exchanges between them"
        return True, f"ranked on 1 of {workers}, {why}: {of_memory}. workers= chooses otherwise"

    def _memory(self, address: str, memory_space: MemorySpace) -> int:
        """Return the bytes of memory of a worker, in total: the choice depends on nothing that ran before."""
        known = _memory_of[self.client]
        if address not in known:
            known[address] = self._on_worker(partial(_total_memory, memory_space), address)
        return known[address]

    def _on_worker(self, function: Callable[..., object], address: str) -> Any:
        """Call a function on the event loop of a worker, at once and not as a task."""
        try:
            return self.client.run(function, workers=[address])[address]
        except (OSError, KeyError, ValueError) as error:
            self._await_loss()
            raise WorkerLostError(f"worker {address} does not answer: {error}") from error

    def _restrict(self, addresses: list[str]) -> None:
        threads = dict(zip(self.addresses, self.threads, strict=True))
        self.addresses, self.threads = addresses, [threads[address] for address in addresses]

    def first(self) -> Workers:
        """Return the first worker alone."""
        first = copy(self)
        first._restrict(self.addresses[:1])
        return first

    def scatter(self, argument: object) -> Any:
        """Send a large argument to all workers and return its future; return a small argument unchanged."""
        # Dask estimates sizes, of some objects far below those of their pickles.
        if safe_sizeof(argument) <= SCATTER_BYTES and len(pickle.dumps(argument)) <= SCATTER_BYTES:
            return argument
        return self.client.scatter([argument], workers=self.addresses, broadcast=True, hash=False)[0]

    def start(
        self, program: Callable[..., object], memory_space: MemorySpace, arguments: Sequence[tuple[object, ...]]
    ) -> list[Future]:
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

    def result(self, futures: list[Future]) -> Any:
        """Wait for all tasks of a program, and return its report; if a task or its worker fails, cancel the others."""
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
            report = self._on_worker(partial(_take_report, futures[0].key.rpartition("-")[0]), self.addresses[0])
            # Allow Dask to recompute lost results on any worker, where `_task` fails immediately. Otherwise Dask would
            # wait forever for the lost worker.
            anywhere = {future.key: self.addresses for future in futures}
            self.client.loop.add_callback(self.client.scheduler.set_restrictions, worker=anywhere)  # without waiting
            return pickle.loads(report)
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


def _task(
    program: Callable[..., tuple[object, object]], memory_space: MemorySpace, job: str, addresses: list[str], rank: int,
    *arguments: object,
) -> object:  # fmt: skip
    """Run a rank of a program, outside the thread pool of the worker.

    In the thread pool, programs of two clients could deadlock, each waiting for a thread that the other occupies.
    """
    worker = get_worker()
    if worker.address != addresses[rank]:
        raise WorkerLostError(
            f"worker {addresses[rank]} is lost, and with it a part of the graph or of its ranks: rank the frame again."
        )
    secede()
    with ExitStack() as contexts:
        if memory_space == "device" and len(addresses) > 1:
            from prplugin.distributed.nccl import DeviceRanks  # imports CuPy, which cuDF has

            ranks = contexts.enter_context(closing(DeviceRanks(worker, job, addresses, rank)))
            contexts.enter_context(ranks.connected())
            communicator: Communicator = ranks
        else:
            communicator = contexts.enter_context(closing(Communicator(worker, job, addresses, rank)))
        if memory_space == "device":
            contexts.enter_context(ids_in(memory_space).active())
            contexts.enter_context(runtime.device_allocation("device"))
        contexts.enter_context(advising("pandas" if memory_space == "host" else "cudf"))
        result, report = program(communicator, *arguments)
        if rank == 0:
            worker.plugins[MessagePlugin.name].reports[job] = dumps(report)
        return result[0] if isinstance(result, list) and len(result) == 1 else result


def _take_report(job: str, dask_worker: Any) -> bytes:
    report: bytes = dask_worker.plugins[MessagePlugin.name].reports.pop(job)
    return report


def _total_memory(memory_space: MemorySpace, dask_worker: Any) -> int:
    """Return the bytes of memory of a worker: its limit, or that of its machine, or those of its GPU."""
    if memory_space == "host":
        return int(dask_worker.memory_manager.memory_limit or MEMORY_LIMIT)
    if runtime.unavailable_reason() is not None:
        return 0  # an error follows
    import cupy  # which cuDF has

    return int(cupy.cuda.runtime.memGetInfo()[1])
