"""Ranks that reach one another by the connections that Dask's workers have, as its own shuffle does.

A plugin gives every worker an office, which takes letters from other workers, for a job's rank that may not have begun
yet. All of an office happens on the worker's event loop; ranks run on threads, and wait for what the loop does.

A letter from a worker that is gone never comes: those that write to it find out, those that only wait are told by the
driver, which watches over all workers (`run`), and whoever is no longer wanted by Dask finds that out by itself.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import WorkerPlugin, get_worker
from distributed.protocol import to_serialize
from distributed.sizeof import safe_sizeof

from prplugin.errors import WorkerLostError

__all__ = ["Mailbox", "Offices", "abandon", "opened"]

CLOSED = 1000
"""Jobs that are over which an office remembers, to turn away what comes late."""

WANTED_SECONDS = 5.0
"""Waited, a rank looks whether Dask still wants what it does."""


class Offices(WorkerPlugin):
    """Gives every worker an office, now and when it joins."""

    name = "prplugin-offices"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Open the office of a worker, unless it has one."""
        office_of(worker)


def office_of(worker: Any) -> _Office:
    """Give the office of a worker, which is opened if it is not."""
    found: _Office | None = getattr(worker, "prplugin_office", None)
    if found is None:
        found = worker.prplugin_office = _Office()
        worker.handlers["prplugin_letter"] = found.letter
    return found


class _Office:
    """Keeps the letters of all jobs of a worker."""

    def __init__(self) -> None:
        self._boxes: dict[str, _Box] = {}
        self._closed: deque[str] = deque(maxlen=CLOSED)

    def box(self, job: str) -> _Box | None:
        """Give the box of a job; None if it is over."""
        if job in self._closed:
            return None
        return self._boxes.setdefault(job, _Box())

    async def letter(self, job: str, turn: int, source: int, data: Any) -> str:
        """Take a letter: this is what other workers call."""
        if (box := self.box(job)) is not None:
            box.put((turn, source), data)
        return "OK"

    def close(self, job: str, error: Exception | None = None) -> None:
        """End a job; who still waits for a letter gets the error."""
        if job not in self._closed:
            self._closed.append(job)
        if (box := self._boxes.pop(job, None)) is not None and error is not None:
            box.fail(error)


class _Box:
    """Letters of one job, by turn and source."""

    def __init__(self) -> None:
        self._letters: dict[tuple[int, int], asyncio.Future[Any]] = {}
        self._error: Exception | None = None

    def _place(self, key: tuple[int, int]) -> asyncio.Future[Any]:
        if key not in self._letters:
            self._letters[key] = asyncio.get_running_loop().create_future()
        return self._letters[key]

    def put(self, key: tuple[int, int], data: Any) -> None:
        place = self._place(key)
        if not place.done():
            place.set_result(data)

    async def take(self, key: tuple[int, int], wanted: Any) -> Any:
        if self._error is not None:
            raise self._error
        place = self._place(key)
        while not place.done():
            await asyncio.wait([place], timeout=WANTED_SECONDS)
            if not place.done() and not wanted():
                raise WorkerLostError("what this worker did is no longer wanted.")
        del self._letters[key]
        return place.result()

    def fail(self, error: Exception) -> None:
        self._error = error
        for place in self._letters.values():
            if not place.done():
                place.set_exception(error)


class Mailbox:
    """A `Communicator` by letters: arrays and objects of the host.

    `job`: The same on all ranks, and on no other program's.
    `addresses`: Of the workers, by rank.
    `key`: Of the Dask task that runs this rank.
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
        came = self._on_loop(self._exchange(self._turn, pieces))
        self.seconds += time.perf_counter() - began
        return list(came)

    swap = exchange

    def gather(self, value: Any) -> list[Any]:
        return self.exchange([value] * self.size)

    def check_wanted(self) -> None:
        """Raise if Dask no longer wants what this rank does, or it has been given up."""

        async def is_open() -> bool:
            return office_of(self._worker).box(self._job) is not None

        if not self._wanted() or not self._on_loop(is_open()):
            raise WorkerLostError("what this worker did is no longer wanted.")

    def close(self) -> None:
        """Say that this rank is done."""

        async def close() -> None:
            office_of(self._worker).close(self._job)

        self._on_loop(close())

    def _on_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._worker.loop.asyncio_loop).result()

    async def _exchange(self, turn: int, pieces: Sequence[Any]) -> list[Any]:
        box = office_of(self._worker).box(self._job)
        if box is None:
            raise WorkerLostError("this job has been given up.")
        others = [rank for rank in range(self.size) if rank != self.rank]
        work = [asyncio.ensure_future(self._send(rank, turn, pieces[rank])) for rank in others]
        work += [asyncio.ensure_future(box.take((turn, rank), self._wanted)) for rank in others]
        try:
            came = dict(zip(others, (await asyncio.gather(*work))[len(others) :], strict=True))
        finally:
            for one in work:
                one.cancel()
        return [came[rank] if rank != self.rank else pieces[rank] for rank in range(self.size)]

    async def _send(self, rank: int, turn: int, piece: Any) -> None:
        address = self.addresses[rank]
        try:
            await self._worker.rpc(address).prplugin_letter(
                job=self._job, turn=turn, source=self.rank, data=to_serialize(piece)
            )
        except OSError as error:
            raise WorkerLostError(f"worker {address} cannot be reached: {error}") from error

    def _wanted(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is not None and task.state != "cancelled"


@contextmanager
def opened(job: str, addresses: list[str], rank: int, key: Any) -> Iterator[Mailbox]:
    """Give the mailbox of a rank, within the Dask task that runs it."""
    mailbox = Mailbox(get_worker(), job, addresses, rank, key)
    try:
        yield mailbox
    finally:
        mailbox.close()


async def abandon(job: str, reason: str, dask_worker: Any) -> None:
    """Give up a job on a worker: what `distributed.Client.run` runs there."""
    office_of(dask_worker).close(job, WorkerLostError(reason))
    nccl = sys.modules.get("prplugin.distributed.nccl")
    if nccl is not None:  # on a thread: it waits for what runs on the GPU
        await asyncio.get_running_loop().run_in_executor(None, nccl.abort)
