"""Communication between ranks over the connections of Dask workers, as in Dask's shuffle.

A plugin installs a message handler on every worker. Messages are keyed by job, turn and source, and may arrive before
the receiving rank has started. They are handled on the event loop of the worker; ranks run on threads and wait for it.

If a worker is lost, sending to it raises an error, and the driver (`run`) ends the job of the ranks that wait for its
messages. A rank also checks periodically that Dask has not cancelled its task.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from distributed import WorkerPlugin
from distributed.protocol import to_serialize
from distributed.sizeof import safe_sizeof

from prplugin.errors import WorkerLostError

__all__ = ["Mailbox", "MessagePlugin", "abandon"]

CLOSED = 1000
"""Number of finished jobs that a worker remembers, to discard messages that arrive late."""

WANTED_SECONDS = 5.0
"""Interval at which a waiting rank checks that Dask has not cancelled its task."""


class MessagePlugin(WorkerPlugin):
    """Worker plugin that installs the message handler on present and future workers."""

    name = "prplugin-messages"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Install the message handler on a worker, unless it has one."""
        _messages_of(worker)


def _messages_of(worker: Any) -> _Messages:
    """Return the messages of a worker; on the first call, install the handler that receives them."""
    found: _Messages | None = getattr(worker, "prplugin_messages", None)
    if found is None:
        found = worker.prplugin_messages = _Messages()
        worker.handlers["prplugin_message"] = found.handle
    return found


class _Messages:
    """Messages received by a worker, keyed by job, turn and source. Used only on the event loop of the worker."""

    def __init__(self) -> None:
        self._futures: dict[tuple[str, int, int], asyncio.Future[Any]] = {}
        self._closed: deque[str] = deque(maxlen=CLOSED)

    def is_open(self, job: str) -> bool:
        return job not in self._closed

    async def handle(self, job: str, turn: int, source: int, data: Any) -> str:
        """Store a received message, unless its job has ended."""
        if self.is_open(job) and not (future := self._future((job, turn, source))).done():
            future.set_result(data)
        return "OK"

    async def receive(self, job: str, turn: int, source: int, wanted: Any) -> Any:
        """Wait for a message; raise if the job has ended, or if `wanted()`, checked periodically, returns False."""
        if not self.is_open(job):
            raise WorkerLostError("this job has been cancelled.")
        key = job, turn, source
        future = self._future(key)
        while not future.done():
            await asyncio.wait([future], timeout=WANTED_SECONDS)
            if not future.done() and not wanted():
                raise _not_wanted()
        self._futures.pop(key, None)
        return future.result()

    def close(self, job: str, error: Exception | None = None) -> None:
        """End a job; receivers that still wait for its messages raise the error."""
        if self.is_open(job):
            self._closed.append(job)
        for key in [key for key in self._futures if key[0] == job]:
            future = self._futures.pop(key)
            if error is not None and not future.done():
                future.set_exception(error)

    def _future(self, key: tuple[str, int, int]) -> asyncio.Future[Any]:
        if key not in self._futures:
            self._futures[key] = asyncio.get_running_loop().create_future()
        return self._futures[key]


class Mailbox:
    """A `Communicator` over Dask connections, for arrays and objects in host memory.

    Parameters
    ----------
    job : str
        Unique name of the program, the same on all its ranks.
    addresses : list of str
        Address of the worker of each rank.
    key : str
        Key of the Dask task that runs this rank.
    """

    def __init__(self, worker: Any, job: str, addresses: list[str], rank: int, key: Any) -> None:
        self.rank, self.size = rank, len(addresses)
        self.sent, self.seconds = 0, 0.0
        self._worker, self._job, self.addresses, self._key = worker, job, addresses, key
        self._turn = 0

    def exchange(self, pieces: Sequence[Any]) -> list[Any]:
        self._turn += 1
        self.sent += sum(safe_sizeof(piece) for rank, piece in enumerate(pieces) if rank != self.rank)
        if self.size == 1:
            return list(pieces)
        began = time.perf_counter()
        received = self._on_loop(self._exchange(self._turn, pieces))
        self.seconds += time.perf_counter() - began
        return list(received)

    swap = exchange

    def gather(self, value: Any) -> list[Any]:
        return self.exchange([value] * self.size)

    def check_wanted(self) -> None:
        """Raise if Dask has cancelled the task of this rank, or the driver has ended the job."""

        async def is_open() -> bool:
            return _messages_of(self._worker).is_open(self._job)

        if not self._wanted() or not self._on_loop(is_open()):
            raise _not_wanted()

    def close(self) -> None:
        """End the job on this worker, and discard its messages."""

        async def close() -> None:
            _messages_of(self._worker).close(self._job)

        self._on_loop(close())

    def _on_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._worker.loop.asyncio_loop).result()

    async def _exchange(self, turn: int, pieces: Sequence[Any]) -> list[Any]:
        messages = _messages_of(self._worker)
        others = [rank for rank in range(self.size) if rank != self.rank]
        work = [asyncio.ensure_future(self._send(rank, turn, pieces[rank])) for rank in others]
        work += [asyncio.ensure_future(messages.receive(self._job, turn, rank, self._wanted)) for rank in others]
        try:
            received = (await asyncio.gather(*work))[len(others) :]
        finally:
            for one in work:
                one.cancel()
        received.insert(self.rank, pieces[self.rank])
        return received

    async def _send(self, rank: int, turn: int, piece: Any) -> None:
        address = self.addresses[rank]
        try:
            await self._worker.rpc(address).prplugin_message(
                job=self._job, turn=turn, source=self.rank, data=to_serialize(piece)
            )
        except OSError as error:
            raise WorkerLostError(f"worker {address} cannot be reached: {error}") from error

    def _wanted(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is not None and task.state != "cancelled"


def _not_wanted() -> WorkerLostError:
    return WorkerLostError("the result of this worker's task is no longer wanted.")


async def abandon(job: str, reason: str, dask_worker: Any) -> None:
    """Cancel a job on a worker; the driver calls it through `distributed.Client.run`."""
    _messages_of(dask_worker).close(job, WorkerLostError(reason))
    nccl = sys.modules.get("prplugin.distributed.nccl")
    if nccl is not None:  # on a thread, since it waits for the GPU
        await asyncio.get_running_loop().run_in_executor(None, nccl.abort)
