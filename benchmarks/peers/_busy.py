"""Times beside a process that keeps one core busy."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.peers._fit import Fitted, Posed
from benchmarks.peers._times import runs_of
from prplugin.machine import this_machine

__all__ = ["COLUMNS", "TITLE", "WHAT", "row"]

WHAT = "busy core"
TITLE = "With one core kept busy by another process, from frame to frame"
COLUMNS = ("graph", "edges", "error asked", "whose", "threads", "quiet s", "busy s", "slow-down", "note")

SPINNING = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
print(flush=True)
while True:
    pass
"""


def row(here: Posed, fitted: Fitted, asked: float) -> dict[str, Any]:
    """Time a side with all cores its own and without, in turn."""
    quiet, busy = [_seconds(here, fitted, asked)], []
    for _ in range(runs_of(3 * quiet[0])):
        quiet.append(_seconds(here, fitted, asked))
        with _one_core_busy():
            busy.append(_seconds(here, fitted, asked))
    del quiet[0]  # it warmed up
    return {
        "whose": fitted.side.name,
        "threads": fitted.side.threads or this_machine().threads,
        "quiet s": statistics.median(quiet),
        "busy s": statistics.median(busy),
        "slow-down": statistics.median(busy) / statistics.median(quiet),
        "samples": {"quiet": quiet, "busy": busy},
    }


def _seconds(here: Posed, fitted: Fitted, asked: float) -> float:
    began = time.perf_counter()
    fitted.side.frame_to_frame(here.frame, here.case.alpha, fitted.fits[asked].tol)
    return time.perf_counter() - began


@contextmanager
def _one_core_busy() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", SPINNING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
