"""Dynamic scheduling of work on threads, and its partition: docs/decisions/0003-dynamic-scheduling.md."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from prplugin.types.edges import Integers

Piece: TypeAlias = tuple[int, int]
"""First and last + 1 of a range of rows, blocks or pieces."""

PIECE = 1 << 17
"""Rows per piece of work, by default."""


def cut(size: int, piece: int | None = None) -> list[Piece]:
    """Partition `size` rows into pieces of `piece` rows."""
    piece = PIECE if piece is None else piece
    return [(first, min(first + piece, size)) for first in range(0, size, piece)]


class Threads:
    """`count` threads, each of which takes the next piece of work until none is left.

    The calling thread is one of them, since handing work to another thread takes longer than many pieces do. The others
    end when the object is garbage-collected. For results that do not depend on the number of threads, the output of a
    piece must not depend on when it runs.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(max(count - 1, 1), "prplugin")  # starts threads on demand

    def for_each(
        self, pieces: Iterable[tuple[Any, ...]], do: Callable[..., object], at_once: int | None = None
    ) -> None:
        """Call ``do(*piece)`` for each piece, in this order, at most `at_once` at a time; return when all are done."""
        left = deque(pieces)

        def take() -> None:
            while True:
                try:
                    piece = left.popleft()
                except IndexError:  # another thread took the last piece
                    return
                do(*piece)

        helpers = [
            self._pool.submit(take) for _ in range(min(self.count if at_once is None else at_once, len(left)) - 1)
        ]
        take()
        for helper in helpers:
            helper.result()


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
