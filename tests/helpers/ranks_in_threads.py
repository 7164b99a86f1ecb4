"""Ranks that are threads of one process: the program of `prplugin.distributed` without a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import Any

__all__ = ["run"]


class Threaded:
    """A communicator between threads, which meet at a barrier twice in every exchange."""

    def __init__(self, rank: int, board: list[list[Any]], barrier: Barrier) -> None:
        self.rank, self.size = rank, len(board)
        self.sent, self.seconds = 0, 0.0
        self._board, self._barrier = board, barrier

    def exchange(self, pieces: Sequence[Any]) -> list[Any]:
        assert len(pieces) == self.size
        # What arrives is not what was sent, as between processes; nor may it be written to.
        self._board[self.rank] = [pickle.dumps(piece) for piece in pieces]
        self._barrier.wait()
        came = [_read_only(pickle.loads(sent[self.rank])) for sent in self._board]
        self._barrier.wait()
        return came

    swap = exchange

    def gather(self, value: Any) -> list[Any]:
        return self.exchange([value] * self.size)


def _read_only(piece: Any) -> Any:
    for part in piece if isinstance(piece, tuple) else [piece]:
        if hasattr(part, "flags"):
            part.flags.writeable = False
    return piece


def run(size: int, program: Callable[[Any], Any]) -> list[Any]:
    """Run a program on so many ranks, and give what each returns; an error of one ends all."""
    barrier, board = Barrier(size), [[] for _ in range(size)]

    def begin(rank: int) -> Any:
        try:
            return program(Threaded(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(begin, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception()) is not None]
    first = [error for error in errors if not isinstance(error, BrokenBarrierError)] or errors
    if first:
        raise first[0]
    return [future.result() for future in futures]
