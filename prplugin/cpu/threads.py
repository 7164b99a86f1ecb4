"""Dynamic scheduling of work on threads: docs/decisions/0003-dynamic-scheduling.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Threads"]


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
