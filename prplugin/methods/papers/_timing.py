"""Timing of methods that choose by measurement."""

from __future__ import annotations

import time
from collections.abc import Callable

from prplugin.gpu.lazy import cupy

__all__ = ["best_seconds"]

LIMIT = 0.1
"""Total seconds after which the work is not repeated."""


def best_seconds(work: Callable[[], object], times: int = 3, of: Callable[[list[float]], float] = min) -> float:
    """Return the least, or another statistic, of the seconds of several runs on GPU or host after a warm-up run."""
    wait = cupy.cuda.get_current_stream().synchronize

    def run() -> float:
        began = time.perf_counter()
        work()
        wait()
        return time.perf_counter() - began

    run()
    taken = [run()]
    while len(taken) < times and sum(taken) < LIMIT:
        taken.append(run())
    return of(taken)
