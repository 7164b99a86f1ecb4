"""Times by number of threads: each run is a new process that is restricted to as many cores."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from benchmarks.measure import run_in_process, timed
from benchmarks.peers._fit import Fitted, PreparedCase
from benchmarks.peers._libraries import ours, peer
from benchmarks.peers._times import runs_of
from prplugin.machine import this_machine

__all__ = ["COLUMNS", "TITLE", "WHAT", "rows"]

WHAT = "threads"
TITLE = "Frame to frame by number of threads; the other library has one"
COLUMNS = ("graph", "edges", "required error", "peer", "peer s", "prplugin threads", "prplugin s", "ratio", "note")

COUNTED_BY = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"

SCRIPT = """
import json, os, sys
name, path, alpha, tol, threads = json.loads(sys.argv[1])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
from benchmarks.peers._threads import seconds_of_calls
print(json.dumps(seconds_of_calls(name, path, alpha, tol, threads)))
"""


def rows(prepared: PreparedCase, own: Fitted, theirs: Fitted, asked: float) -> Iterator[dict[str, Any]]:
    """Time a library on one thread, and prplugin on 1, 2, 4, ... and all threads."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "edges.parquet"
        prepared.frame.to_parquet(path)

        def seconds(fitted: Fitted, threads: int) -> list[float]:
            return _confined(fitted.library.name, str(path), prepared.case.alpha, fitted.fits[asked].tol, threads)

        theirs_seconds = seconds(theirs, 1)
        most = this_machine().threads
        for threads in [*(2**k for k in range(most.bit_length()) if 2**k < most), most]:
            own_seconds = seconds(own, threads)
            medians = statistics.median(theirs_seconds), statistics.median(own_seconds)
            yield {
                "peer s": medians[0],
                "prplugin threads": threads,
                "prplugin s": medians[1],
                "ratio": medians[0] / medians[1],
                "samples": {"peer": theirs_seconds, "ours": own_seconds},
            }


def _confined(*words: Any) -> list[float]:
    """Call `seconds_of_calls` in a process that is restricted to as many cores as threads."""
    return run_in_process(SCRIPT, json.dumps(words), **dict.fromkeys(COUNTED_BY, str(words[-1])))


def seconds_of_calls(name: str, path: str, alpha: float, tol: float, threads: int) -> list[float]:
    """Return the seconds of calls in this process, without the first."""
    library = ours(threads=threads) if name == "ours" else peer(name)
    edges = pd.read_parquet(path)
    seconds: list[float] = []
    while not seconds or len(seconds) <= runs_of(seconds[0]):
        seconds.append(timed(partial(library.frame_to_frame, edges, alpha, tol))[0])
    return seconds[1:]
