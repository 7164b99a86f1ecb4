"""Access of threads to a graph that an update changes in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident

from prplugin.errors import PageRankError


class Access:
    """Readers-writer lock: any number of threads read and rank a graph, or one thread updates it.

    Readers wait for an update, and an update for readers. It does not wait for rankings, which take long and have
    callbacks: the caller may be one of them. A thread that would wait for itself gets a PageRankError instead.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._depth: Counter[int] = Counter()  # by reading thread: number of its nested readings
        self._rankings = 0
        self._updating: int | None = None  # the thread that updates, or that will when the last reader has left

    @contextmanager
    def reading(self, *, ranking: bool = False) -> Iterator[None]:
        """Return a context manager in which no other thread updates the graph."""
        thread, entered = get_ident(), False
        try:
            with self._condition:
                if self._updating == thread:
                    raise PageRankError("this graph is being updated by this very thread: use it after the update.")
                # An update may be waiting for the outer reading of this thread.
                self._condition.wait_for(lambda: thread in self._depth or self._updating is None)
                self._depth[thread] += 1
                self._rankings += ranking
                entered = True
            yield
        finally:
            if entered:
                with self._condition:
                    self._rankings -= ranking
                    self._depth[thread] -= 1
                    if not self._depth[thread]:
                        del self._depth[thread]
                        self._condition.notify_all()

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Return a context manager in which no other thread uses the graph."""
        thread, entered = get_ident(), False
        try:
            with self._condition:
                while True:
                    if self._rankings:
                        raise PageRankError("this graph is being ranked: update it after the ranking has ended.")
                    if self._updating == thread or thread in self._depth:
                        raise PageRankError("this graph is in use by this very thread: update it afterwards.")
                    if self._updating is None:
                        break
                    self._condition.wait()
                self._updating, entered = thread, True
                self._condition.wait_for(lambda: not self._depth)
            yield
        finally:
            if entered:
                with self._condition:
                    self._updating = None
                    self._condition.notify_all()
