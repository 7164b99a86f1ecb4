"""Threads that take pieces of the work as they come: docs/decisions/0003-threads-take-pieces.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Condition
from typing import TypeAlias

import numpy as np

from prplugin.graph.edges import Integers

__all__ = ["Crew", "Piece", "equal_work"]

Piece: TypeAlias = tuple[int, int]
"""The first of some rows, blocks or runs, and the one after their last."""


class Crew:
    """Threads that do the same pieces of work again and again, each taking the next until none is left.

    The calling thread is one of them, since handing a call to another and waiting for it takes longer than many a
    piece; the others end when nobody holds the crew any more. For the same bits with any number of threads, a piece
    must write to places of its own.

    Parameters
    ----------
    pieces : sequence of (int, int)
        In the order in which they are taken.
    threads : int
        How many, the calling one included; no more than there are pieces.
    """

    def __init__(self, pieces: Sequence[Piece], threads: int) -> None:
        self._pieces = pieces
        self._helpers = min(threads, len(pieces)) - 1
        self._pool = ThreadPoolExecutor(max(self._helpers, 1), "prplugin")  # starts a thread when there is work for it

    def work(self, do: Callable[[int, int], object], apart: int | None = None) -> None:
        """Call ``do(first, last)`` for each piece, and return when all are done.

        Parameters
        ----------
        apart : int, optional
            A piece begins when that which comes so many before it is done, and all before that. Not given: at any time.
        """
        left = deque(enumerate(self._pieces))
        line = None if apart is None or self._helpers <= 0 else _Line(apart)

        def take() -> None:
            while True:
                try:
                    place, (first, last) = left.popleft()
                except IndexError:  # another thread took the last
                    return
                if line is None:
                    do(first, last)
                    continue
                line.wait(place)
                try:
                    do(first, last)
                finally:
                    line.done(place)

        helpers = [self._pool.submit(take) for _ in range(self._helpers)]
        take()
        for helper in helpers:
            helper.result()


class _Line:
    """Lets a piece begin when that which comes `apart` before it is done, and all before that."""

    def __init__(self, apart: int) -> None:
        self._apart, self._condition = apart, Condition()
        self._past: set[int] = set()
        self._all = 0

    def wait(self, place: int) -> None:
        with self._condition:
            while self._all <= place - self._apart:
                self._condition.wait()

    def done(self, place: int) -> None:
        with self._condition:
            self._past.add(place)
            while self._all in self._past:
                self._past.remove(self._all)
                self._all += 1
            self._condition.notify_all()


def equal_work(offsets: Integers, block: int, count: int) -> list[Piece]:
    """Cut blocks of `block` rows into at most `count` pieces of about equal work, where a row is worth four edges.

    Parameters
    ----------
    offsets : array of n + 1
        Where each row's edges begin, and where the last one's end.

    Returns
    -------
    list of (int, int)
        The first block of each piece, and the one after its last.
    """
    n = offsets.size - 1
    bounds = np.append(np.arange(0, n, block), n)
    work = offsets[bounds] + 4 * bounds
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1))
    return [(first, last) for first, last in pairwise(cuts.tolist()) if first < last]
