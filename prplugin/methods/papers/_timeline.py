"""When things took place in an iteration that GPU and processor share, on one clock."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = ["Recorder", "Span", "Timeline", "unrecorded"]


class Span(NamedTuple):
    """Something that took place in an iteration, in seconds on the clock of `time.perf_counter`."""

    iteration: int
    what: Literal["gather", "heads", "add", "down", "up", "tails"]
    lane: Literal["GPU", "copy", "host"]
    begin: float
    end: float


Recorder: TypeAlias = Callable[[Any, Any, Any], AbstractContextManager[None]]
"""Takes what is done, its lane, and the stream it is done on (None: here and now)."""

NOTHING: AbstractContextManager[None] = nullcontext()


def unrecorded(what: Any, lane: Any, stream: Any) -> AbstractContextManager[None]:
    """Record nothing."""
    return NOTHING


class Timeline:
    """Brings the times of GPU and host to one clock.

    CUDA tells the time between two events. One event is awaited on an idle GPU, next to two readings of the host's
    clock: it took place between them. The closest of several such pairs, a few microseconds apart, is the reference.
    """

    def __init__(self) -> None:
        import cupy

        self._cuda = cupy.cuda
        self._cuda.Device().synchronize()
        self._marks: list[tuple[Any, Any, Any, Any]] = []
        nearest = math.inf
        for _ in range(10):
            event = self._cuda.Event()
            before = time.perf_counter()
            event.record(self._cuda.get_current_stream())
            event.synchronize()
            after = time.perf_counter()
            if after - before < nearest:
                nearest = after - before
                self._reference, self._zero = event, (before + after) / 2

    @contextmanager
    def span(self, what: Any, lane: Any, stream: Any) -> Iterator[None]:
        """Mark begin and end of what is put on a stream within, or of what the host does within."""
        begin = self._mark(stream)
        yield
        self._marks.append((what, lane, begin, self._mark(stream)))

    def _mark(self, stream: Any) -> Any:
        if stream is None:
            return time.perf_counter()
        event = self._cuda.Event()
        event.record(stream)
        return event

    def spans(self) -> list[Span]:
        """Wait for all that was marked, and give it."""
        self._cuda.Device().synchronize()
        seen: Counter[str] = Counter()  # in each iteration everything takes place once
        spans = []
        for what, lane, begin, end in self._marks:
            spans.append(Span(seen[what], what, lane, self._seconds(begin), self._seconds(end)))
            seen[what] += 1
        return spans

    def _seconds(self, mark: Any) -> float:
        if isinstance(mark, float):
            return mark
        return self._zero + float(self._cuda.get_elapsed_time(self._reference, mark)) / 1e3
