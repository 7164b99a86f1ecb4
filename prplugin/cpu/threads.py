"""Threads that take pieces of the work as they come: docs/decisions/0003-threads-take-pieces.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Threads"]


class Threads:
    """Some threads, each of which takes the next piece of the work until none is left.

    The calling thread is one of them, since handing a call to another and waiting for it takes longer than many a
    piece; the others end when nobody holds them any more. For the same bits with any number of threads, a piece must
    write to places of its own, or what it leaves must not depend on when it is done.

    `count`: How many, the calling one included.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(max(count - 1, 1), "prplugin")  # starts a thread when there is work for it

    def share(self, pieces: Iterable[tuple[Any, ...]], do: Callable[..., object], at_once: int | None = None) -> None:
        """Call ``do(*piece)`` for each piece, begun in this order, `at_once` at most, and return when all are done."""
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
