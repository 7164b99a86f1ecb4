"""Communication between ranks over the connections of Dask workers, as in Dask's shuffle, and operations based on it.

A worker plugin receives messages, keyed by job, turn and source; they may arrive before the receiving rank has started.
Messages are handled on the event loop of the worker; ranks run on threads and wait for it.

When a rank fails or its worker is lost, the driver (`run`) cancels the tasks of all ranks, as Dask does when the client
leaves. Dask notifies the plugin, which ends the job on its worker. The rank raises in its next operation.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from distributed import WorkerPlugin
from distributed.protocol import to_serialize
from distributed.sizeof import safe_sizeof
from numpy.typing import NDArray

from prplugin import errors
from prplugin.errors import PageRankError, WorkerLostError, merged
from prplugin.frames.columns import Frame
from prplugin.methods.base import Sum
from prplugin.types.array_module import Scalar

T = TypeVar("T")

JOB_PREFIX = "prplugin-job-"
"""Prefix of the names of jobs. The task of a rank has the key ``f"{job}-{rank}"``."""

ENDED_JOBS = 1000  # number of ended jobs that a worker remembers, to discard messages that arrive late
CANCELLED = "Dask has cancelled the task of this worker."


def is_shown(record: logging.LogRecord) -> bool:
    """Return False for Dask's traceback of an error of this package in a job: the driver raises it."""
    if not isinstance(record.args, tuple) or len(record.args) < 4 or not str(record.args[0]).startswith(JOB_PREFIX):
        return True
    name = str(record.args[3]).partition("(")[0]  # of the representation of the error
    return not isinstance(getattr(errors, name, None), type)


class MessagePlugin(WorkerPlugin):
    """Worker plugin that stores received messages; its methods run on the event loop of its worker."""

    name = "prplugin-messages"
    idempotent = True

    def __init__(self) -> None:
        self._futures: dict[tuple[str, int, int], asyncio.Future[Any]] = {}
        self._ended: dict[str, None] = {}
        self.reports: dict[str, bytes] = {}
        """Pickled reports of jobs, until the driver takes them: faster than a task, which takes ten milliseconds."""

    def setup(self, worker: Any) -> None:
        """Install the message handler on a worker."""
        logging.getLogger("distributed.worker").addFilter(is_shown)
        worker.handlers["prplugin_message"] = self.handle

    def transition(self, key: str, start: str, finish: str, **_: object) -> None:
        """End the job of a task that Dask cancels or forgets; Dask releases a running task only to cancel it."""
        if not str(key).startswith(JOB_PREFIX):
            return
        cancelled = finish == "released" and start in ("executing", "long-running")
        if cancelled or finish == "forgotten":
            self.end(job := key.rpartition("-")[0])
            self.reports.pop(job, None)
        if cancelled and (nccl := sys.modules.get("prplugin.distributed.nccl")):
            asyncio.get_running_loop().run_in_executor(None, nccl.abort)  # not here, since it waits for the GPU

    async def handle(self, job: str, turn: int, source: int, data: object) -> str:
        """Store a received message, unless its job has ended."""
        if job not in self._ended and not (future := self._future((job, turn, source))).done():
            future.set_result(data)
        return "OK"

    async def receive(self, job: str, turn: int, source: int) -> Any:
        """Wait for a message; raise if the job has ended, or ends meanwhile."""
        self.check_active(job)
        data = await self._future((job, turn, source))
        del self._futures[job, turn, source]
        return data

    def end(self, job: str) -> None:
        """Discard the messages of a job; receivers that still wait for them raise."""
        self._ended[job] = None
        if len(self._ended) > ENDED_JOBS:
            del self._ended[next(iter(self._ended))]
        for key in [key for key in self._futures if key[0] == job]:
            if not (future := self._futures.pop(key)).done():
                future.set_exception(WorkerLostError(CANCELLED))

    def check_active(self, job: str) -> None:
        """Raise if a job has ended on this worker; on any thread."""
        if job in self._ended:
            raise WorkerLostError(CANCELLED)

    def _future(self, key: tuple[str, int, int]) -> asyncio.Future[Any]:
        return self._futures.setdefault(key, asyncio.get_running_loop().create_future())


class Communicator:
    """Connects the ranks 0 .. size - 1 of a program. All ranks call the same operations in the same order.

    `job` is the unique name of the program on all its ranks; `addresses` are the addresses of their workers.
    `bytes_sent` is the approximate number of bytes that this rank has sent to others, and `wait_seconds` the time for
    which it has waited for others and for their data.
    """

    def __init__(self, worker: Any, job: str, addresses: list[str], rank: int) -> None:
        self.rank, self.size = rank, len(addresses)
        self.bytes_sent, self.wait_seconds = 0, 0.0
        self._worker, self._job, self.addresses = worker, job, addresses
        self._messages: MessagePlugin = worker.plugins[MessagePlugin.name]
        self._turn = 0

    def all_to_all(self, pieces: Sequence[T]) -> list[T]:
        """Send piece r to rank r, and return the pieces received, by rank.

        Pieces are arrays or picklable objects of any size. Received host arrays may be read-only.
        """
        if self.size == 1:
            self.check_active()
            return list(pieces)
        self._turn += 1
        self.bytes_sent += sum(safe_sizeof(piece) for rank, piece in enumerate(pieces) if rank != self.rank)
        began = time.perf_counter()
        loop = self._worker.loop.asyncio_loop
        received = asyncio.run_coroutine_threadsafe(self._exchange(pieces), loop).result()
        self.wait_seconds += time.perf_counter() - began
        return received

    def all_to_all_arrays(self, arrays: Sequence[NDArray[Scalar]]) -> list[NDArray[Scalar]]:
        """Exchange vectors of one dtype and memory space. Those in device memory are not copied to the host."""
        return self.all_to_all(arrays)

    def all_gather(self, value: T) -> list[T]:
        """Return the values of all ranks on every rank, in the order of ranks. Values are small host objects."""
        return self.all_to_all([value] * self.size)

    def frames_on_first(self, frames: list[Frame]) -> list[Frame]:
        """Return the frames of all ranks on the first rank, in the order of ranks; none on others."""
        received = self.all_to_all([frames if rank == 0 else [] for rank in range(self.size)])
        return [frame for of_rank in received for frame in of_rank] if self.rank == 0 else []

    def check_active(self) -> None:
        """Raise if Dask has cancelled the task of this rank."""
        self._messages.check_active(self._job)

    def close(self) -> None:
        """End the job on this worker, and discard its messages."""
        self._worker.loop.add_callback(self._messages.end, self._job)

    async def _exchange(self, pieces: Sequence[T]) -> list[T]:
        others = [rank for rank in range(self.size) if rank != self.rank]
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._send(rank, pieces[rank])) for rank in others]
        tasks += [asyncio.ensure_future(self._messages.receive(self._job, self._turn, rank)) for rank in others]
        try:
            received = (await asyncio.gather(*tasks))[len(others) :]
        finally:
            for task in tasks:
                task.cancel()
        return [*received[: self.rank], pieces[self.rank], *received[self.rank :]]

    async def _send(self, rank: int, piece: object) -> None:
        address = self.addresses[rank]
        try:
            await self._worker.rpc(address).prplugin_message(
                job=self._job, turn=self._turn, source=self.rank, data=to_serialize(piece)
            )
        except OSError as error:
            raise WorkerLostError(f"worker {address} cannot be reached: {error}") from error


# --- collective operations --------------------------------------------------------------------------------------------


def all_reduce_sum(communicator: Communicator, values: Sum) -> Sum:
    """Return the sum of the values of all ranks, added in the order of ranks: the same bits on every rank."""
    first, *others = communicator.all_gather(values)
    return sum(others, start=first)


def gather_results(communicator: Communicator, do: Callable[[], T]) -> list[T]:
    """Call a function on every rank; return the results of all ranks, or raise the same error on all ranks.

    A `PageRankError` on some ranks is raised on all: the first in the order of ranks, merged if it is about rows.
    """
    done: list[T] = []
    error: PageRankError | None = None
    try:
        done.append(do())
    except PageRankError as raised:
        error = raised
    results = communicator.all_gather((done, error))
    errors = [error for _, error in results if error is not None]
    if errors:
        raise merged(errors)
    return [result for done, _ in results for result in done]


def call_on_all(communicator: Communicator, do: Callable[[], T]) -> T:
    """Call a function on every rank; return this rank's result, or raise the same error on all ranks."""
    done: list[T] = []
    gather_results(communicator, lambda: done.append(do()))
    return done[0]
