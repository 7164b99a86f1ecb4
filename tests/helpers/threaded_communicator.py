"""Workers that are threads of one process: the program of `prplugin.distributed` without a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import Any

__all__ = ["run_workers"]


class ThreadCommunicator:
    """A communicator between threads, which wait at a barrier twice in every exchange."""

    def __init__(self, rank: int, mailboxes: list[list[Any]], barrier: Barrier) -> None:
        self.rank, self.size = rank, len(mailboxes)
        self.bytes_sent, self.wait_seconds = 0, 0.0
        self._mailboxes, self._barrier = mailboxes, barrier

    def all_to_all(self, pieces: Sequence[Any]) -> list[Any]:
        assert len(pieces) == self.size
        # As between processes, a received object is a copy of the sent one; and it is read-only.
        self._mailboxes[self.rank] = [pickle.dumps(piece) for piece in pieces]
        self._barrier.wait()
        received = [_read_only(pickle.loads(sent[self.rank])) for sent in self._mailboxes]
        self._barrier.wait()
        return received

    all_to_all_arrays = all_to_all

    def all_gather(self, value: Any) -> list[Any]:
        return self.all_to_all([value] * self.size)


def _read_only(piece: Any) -> Any:
    for part in piece if isinstance(piece, tuple) else [piece]:
        if hasattr(part, "flags"):
            part.flags.writeable = False
    return piece


def run_workers(size: int, program: Callable[[Any], Any]) -> list[Any]:
    """Run a program on `size` workers and return the result of each; an error of one worker ends all."""
    barrier, mailboxes = Barrier(size), [[] for _ in range(size)]

    def run_worker(rank: int) -> Any:
        try:
            return program(ThreadCommunicator(rank, mailboxes, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run_worker, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception()) is not None]
    first = [error for error in errors if not isinstance(error, BrokenBarrierError)] or errors
    if first:
        raise first[0]
    return [future.result() for future in futures]
