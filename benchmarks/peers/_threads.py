"""Ours with so many threads, and each peer with one, in processes of their own that have no more cores."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from benchmarks.measure import in_a_process
from benchmarks.peers._fit import Fitted, Posed
from benchmarks.peers._sides import ours, peer
from benchmarks.peers._times import runs_of
from prplugin.machine import this_machine

__all__ = ["COLUMNS", "TITLE", "WHAT", "rows"]

WHAT = "threads"
TITLE = "prplugin on one and more threads, peer on one, from frame to frame"
COLUMNS = ("graph", "edges", "error asked", "peer", "peer s", "prplugin threads", "prplugin s", "ratio", "note")

COUNTED_BY = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"

SCRIPT = """
import json, os, sys
whose, path, alpha, tol, threads = json.loads(sys.argv[1])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
from benchmarks.peers._threads import timed
print(json.dumps(timed(whose, path, alpha, tol, threads)))
"""


def rows(here: Posed, mine: Fitted, theirs: Fitted, asked: float) -> Iterator[dict[str, Any]]:
    """Time a peer on one thread, and ours on one, two, four and so on to all."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "edges.parquet"
        here.frame.to_parquet(path)

        def seconds(fitted: Fitted, threads: int) -> list[float]:
            return _confined(fitted.side.name, str(path), here.case.alpha, fitted.fits[asked].tol, threads)

        peer = seconds(theirs, 1)
        most = this_machine().threads
        for threads in [*(2**k for k in range(most.bit_length()) if 2**k < most), most]:
            own = seconds(mine, threads)
            medians = statistics.median(peer), statistics.median(own)
            yield {
                "peer s": medians[0],
                "prplugin threads": threads,
                "prplugin s": medians[1],
                "ratio": medians[0] / medians[1],
                "samples": {"peer": peer, "ours": own},
            }


def _confined(*words: Any) -> list[float]:
    """Call `timed` in a process of few cores."""
    return in_a_process(SCRIPT, json.dumps(words), **dict.fromkeys(COUNTED_BY, str(words[-1])))


def timed(whose: str, path: str, alpha: float, tol: float, threads: int) -> list[float]:
    """Time calls in this process, the first not counted."""
    side = ours(threads=threads) if whose == "ours" else peer(whose)
    edges = pd.read_parquet(path)
    seconds: list[float] = []
    while not seconds or len(seconds) <= runs_of(seconds[0]):
        began = time.perf_counter()
        side.frame_to_frame(edges, alpha, tol)
        seconds.append(time.perf_counter() - began)
    return seconds[1:]
