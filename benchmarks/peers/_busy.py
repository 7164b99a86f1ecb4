"""Measure times while another process keeps one core busy."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.measure import timed
from benchmarks.peers._fit import Fitted, PreparedCase
from benchmarks.peers._times import runs_of
from prplugin.machine import this_machine

__all__ = ["COLUMNS", "TITLE", "WHAT", "row"]

WHAT = "busy core"
TITLE = "Frame to frame, with one core busy with another process"
COLUMNS = ("graph", "edges", "required error", "library", "threads", "quiet s", "busy s", "slow-down", "note")

SPINNING = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
print(flush=True)
while True:
    pass
"""


def row(prepared: PreparedCase, fitted: Fitted, asked: float) -> dict[str, Any]:
    """Time a library alternately with idle cores and with one busy core."""
    quiet, busy = [_seconds(prepared, fitted, asked)], []
    for _ in range(runs_of(3 * quiet[0])):
        quiet.append(_seconds(prepared, fitted, asked))
        with _one_core_busy():
            busy.append(_seconds(prepared, fitted, asked))
    del quiet[0]  # warm-up
    return {
        "library": fitted.library.name,
        "threads": fitted.library.threads or this_machine().threads,
        "quiet s": statistics.median(quiet),
        "busy s": statistics.median(busy),
        "slow-down": statistics.median(busy) / statistics.median(quiet),
        "samples": {"quiet": quiet, "busy": busy},
    }


def _seconds(prepared: PreparedCase, fitted: Fitted, asked: float) -> float:
    alpha, tol = prepared.case.alpha, fitted.fits[asked].tol
    return timed(partial(fitted.library.frame_to_frame, prepared.frame, alpha, tol))[0]


@contextmanager
def _one_core_busy() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", SPINNING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
