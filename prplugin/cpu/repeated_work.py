"""Repeated parallel processing of the same pieces of work, and a partition into pieces of about equal work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Condition
from typing import TypeAlias

import numpy as np

from prplugin.cpu.threads import Threads
from prplugin.types.edges import Integers

__all__ = ["Piece", "RepeatedWork", "equal_work"]

Piece: TypeAlias = tuple[int, int]
"""First and last + 1 of a range of rows, blocks or pieces."""


class RepeatedWork:
    """Threads that process the same pieces of work repeatedly, in order; `threads` counts the calling one."""

    def __init__(self, pieces: Sequence[Piece], threads: int) -> None:
        self._pieces = pieces
        self._threads = Threads(threads)

    def run(self, do: Callable[[int, int], object], lag: int | None = None) -> None:
        """Call ``do(first, last)`` for each piece, and return when all are done.

        With `lag`, piece k starts only when pieces 0 to k - `lag` are done.
        """
        if lag is None:
            self._threads.for_each(self._pieces, do)
            return
        order = _StartOrder(lag)

        def in_order(index: int, first: int, last: int) -> None:
            order.wait(index)
            try:
                do(first, last)
            finally:
                order.done(index)

        self._threads.for_each([(index, *piece) for index, piece in enumerate(self._pieces)], in_order)


class _StartOrder:
    """Condition on the start of pieces: piece k waits for pieces 0 to k - `lag`."""

    def __init__(self, lag: int) -> None:
        self._lag, self._condition = lag, Condition()
        self._done: set[int] = set()
        self._done_below = 0

    def wait(self, index: int) -> None:
        with self._condition:
            while self._done_below <= index - self._lag:
                self._condition.wait()

    def done(self, index: int) -> None:
        with self._condition:
            self._done.add(index)
            while self._done_below in self._done:
                self._done.remove(self._done_below)
                self._done_below += 1
            self._condition.notify_all()


def equal_work(offsets: Integers, block: int, count: int) -> list[Piece]:
    """Partition blocks of `block` rows into at most `count` pieces of about equal work.

    The work of a row is estimated as four edges plus its edges, given by `offsets`. Returns ranges of blocks.
    """
    n = offsets.size - 1
    blocks = -(-n // block)

    def work(blocks: int) -> int:
        rows = min(blocks * block, n)
        return int(offsets[rows]) + 4 * rows

    boundaries = np.linspace(0, work(blocks), count + 1).tolist()
    cuts = [bisect_left(range(blocks), boundary, key=work) for boundary in boundaries]
    return [(first, last) for first, last in pairwise(cuts) if first < last]
