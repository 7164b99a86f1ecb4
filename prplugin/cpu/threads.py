"""Dynamic scheduling of pieces of work on threads: docs/decisions/0003-dynamic-scheduling.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Threads"]


class Threads:
    """`count` threads, each of which takes the next piece of the work until none is left.

    The calling thread is one of them, since handing a call to another and waiting for it takes longer than many a
    piece; the others end with the last reference to them. For the same bits with any number of threads, what a piece
    writes must not depend on when it is done.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(max(count - 1, 1), "prplugin")  # starts a thread when there is work for it

    def for_each(
        self, pieces: Iterable[tuple[Any, ...]], do: Callable[..., object], at_once: int | None = None
    ) -> None:
        """Call ``do(*piece)`` for each piece, started in this order, `at_once` at most; return when all are done."""
        left = deque(pieces)

        def take() -> None:
            while True:
                try:
                    piece = left.popleft()
                except IndexError:  # another thread took the last
                    return
                do(*piece)

        helpers = [
            self._pool.submit(take) for _ in range(min(self.count if at_once is None else at_once, len(left)) - 1)
        ]
        take()
        for helper in helpers:
            helper.result()
