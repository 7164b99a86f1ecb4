"""Pieces of an iteration, of about equal work, and the threads that take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Condition
from typing import TypeAlias

import numpy as np

from prplugin.cpu.threads import Threads
from prplugin.types.edges import Integers

__all__ = ["Crew", "Piece", "equal_work"]

Piece: TypeAlias = tuple[int, int]
"""The first of some rows, blocks or runs, and the one after their last."""


class Crew:
    """Threads that do the same pieces of work again and again.

    `pieces` (sequence of (int, int)): In the order in which they are taken.
    `threads`: How many, the calling one included; no more than there are pieces.
    """

    def __init__(self, pieces: Sequence[Piece], threads: int) -> None:
        self._pieces = pieces
        self._threads = Threads(threads)

    def work(self, do: Callable[[int, int], object], apart: int | None = None) -> None:
        """Call ``do(first, last)`` for each piece, and return when all are done.

        `apart`: A piece begins when that which comes so many before it is done, and all before that. Not given: at any
        time.
        """
        if apart is None:
            self._threads.share(self._pieces, do)
            return
        line = _Line(apart)

        def in_line(place: int, first: int, last: int) -> None:
            line.wait(place)
            try:
                do(first, last)
            finally:
                line.done(place)

        self._threads.share([(place, *piece) for place, piece in enumerate(self._pieces)], in_line)


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

    `offsets` (array of n + 1): Where each row's edges begin, and where the last one's end.

    Returns `list of (int, int)`: The first block of each piece, and the one after its last.
    """
    n = offsets.size - 1
    bounds = np.append(np.arange(0, n, block), n)
    work = offsets[bounds] + 4 * bounds
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1))
    return [(first, last) for first, last in pairwise(cuts.tolist()) if first < last]
