"""Rankings of prepared graphs with ``method="native"`` on 1, 2, 4, ... threads, up to all cores of the process.

Numbers of threads alternate. "speedup" is the time of one thread divided by that of "threads". The tolerance is 1e-6.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import prplugin
from benchmarks.generate import grid, local_web, rmat, uniform
from benchmarks.run import Part
from prplugin.machine import this_machine

KEYS = ("graph", "threads")

COLUMNS = ("graph", "vertices", "edges", "iterations", "threads", "ms", "minimum ms", "speedup", "minimum speedup")

RUNS = 5


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph."""
    graphs: dict[str, Callable[[], pd.DataFrame]] = {
        "R-MAT 16": lambda: rmat(16),
        "uniform 200k x 1M": lambda: uniform(200_000, 1_000_000),
    }
    if not quick:
        graphs |= {
            "R-MAT 20": lambda: rmat(20),
            "local web 1M x 16M": lambda: local_web(1_000_000, 16_000_000),
            "grid 2000 x 2000": lambda: grid(2000),
        }
    return [Part(name, partial(_rows, name, make)) for name, make in graphs.items()]


def _rows(name: str, make: Callable[[], pd.DataFrame]) -> Iterator[dict[str, Any]]:
    graph, most = prplugin.Graph(make()), this_machine().threads
    counts = sorted({1 << k for k in range(most.bit_length())} | {most})
    ranking = graph.rank(method="native")
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(RUNS):
        for count, samples in seconds.items():
            samples.append(graph.rank(method="native", threads=count).seconds)
    for count, samples in seconds.items():
        yield {
            "graph": name,
            "vertices": graph.number_of_vertices,
            "edges": graph.number_of_edges,
            "iterations": ranking.iterations,
            "threads": count,
            "ms": 1e3 * statistics.median(samples),
            "minimum ms": 1e3 * min(samples),
            "speedup": statistics.median(seconds[1]) / statistics.median(samples),
            "minimum speedup": min(seconds[1]) / min(samples),
            "samples": samples,
        }
