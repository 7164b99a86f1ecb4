"""How long things take, in seconds, for methods that choose by what they measure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

__all__ = ["best_seconds", "gpu_seconds"]


def gpu_seconds(launch: Callable[[], object], times: int = 1) -> float:
    """Time what is launched on the current stream, so many times in a row, as the GPU sees it: seconds each time.

    Whoever asks has launched it before, lest compiling be timed.
    """
    import cupy  # whoever launches has it

    stream = cupy.cuda.get_current_stream()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record(stream)
    for _ in range(times):
        launch()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / times


def best_seconds(work: Callable[[], object], times: int = 5) -> float:
    """Time something here, after once that is not counted: it compiles, and warms the caches."""
    work()
    best = math.inf
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best
