"""Timelines of `cpu-split` and `segmented`: the operations of their iterations on GPU, bus and host, on one clock."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from prplugin.papers._host_rows import unrecorded

__all__ = ["Span", "recorded"]


class Span(NamedTuple):
    """One operation of an iteration, in seconds on the clock of `time.perf_counter`.

    `what` is "gather", "heads", "add", "down", "up" or "tails"; `lane` is "GPU", "copy" or "host".
    """

    iteration: int
    what: str
    lane: str
    begin: float
    end: float


@contextmanager
def recorded(pull: Any) -> Iterator[list[Span]]:
    """Record the steps within the block by the `span` of their pull; the list is filled when it ends."""
    spans: list[Span] = []
    timeline = _Timeline()
    pull.span = timeline.span
    try:
        yield spans
    finally:
        pull.span = unrecorded
        spans.extend(timeline.spans())


class _Timeline:
    """Recorder that maps GPU events and host times to one clock.

    CUDA measures the time between two events. One event is synchronized on an idle GPU between two readings of the
    host's clock, and so took place between them. The closest of ten such pairs, a few microseconds apart, is the
    reference.
    """

    def __init__(self) -> None:
        import cupy

        self._cuda = cupy.cuda
        self._cuda.Device().synchronize()
        self._marks: list[tuple[str, str, Any, Any]] = []
        nearest = math.inf
        for _ in range(10):
            before, event = time.perf_counter(), self._mark(self._cuda.get_current_stream())
            event.synchronize()
            after = time.perf_counter()
            if after - before < nearest:
                nearest, self._zero, self._reference = after - before, (before + after) / 2, event

    @contextmanager
    def span(self, what: str, lane: str, stream: Any) -> Iterator[None]:
        """Record begin and end of the work that is enqueued on a stream, or done by the host, within the block."""
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
        """Wait for all recorded work, and return it."""
        self._cuda.Device().synchronize()
        seen: Counter[str] = Counter()  # each operation occurs once per iteration
        spans = []
        for what, lane, begin, end in self._marks:
            spans.append(Span(seen[what], what, lane, self._seconds(begin), self._seconds(end)))
            seen[what] += 1
        return spans

    def _seconds(self, mark: Any) -> float:
        if isinstance(mark, float):
            return mark
        return self._zero + float(self._cuda.get_elapsed_time(self._reference, mark)) / 1e3
