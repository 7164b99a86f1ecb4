"""Time per iteration of CPU libraries: the time of a ranking divided by its number of passes over the edges.

igraph and NetworkX do not report that number; `python -m benchmarks peers` compares whole rankings of all libraries at
equal error.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from benchmarks.measure import repeatedly
from benchmarks.papers.implementations import ALPHA, LIMIT, RUNS, Implementation
from benchmarks.peers import peer
from prplugin.errors import MethodUnavailableError
from prplugin.graph.edges import Edges
from prplugin.types.edges import Coo

LIBRARIES = "python-graphblas", "NetworKit", "scikit-network", "graph_mate"

TOL = 1e-3
"""Tolerance of the rankings, which then take about ten passes."""

MOST_EDGES = 16 << 20
"""Largest number of edges, that of Bowen's graph; a library builds its graph of them in seconds."""


def _seconds(name: str, adjacency: Edges) -> tuple[list[float], str]:
    if adjacency.m > MOST_EDGES:
        raise MethodUnavailableError(f"not run on more than {MOST_EDGES:,} edges")
    try:
        library = peer(name)
    except ModuleNotFoundError as error:
        raise MethodUnavailableError("not installed: pip install 'prplugin[peers]'") from error
    edges = adjacency.on("host").get(Coo)
    _, graph = library.build(pd.DataFrame({"src": edges.source, "dst": edges.destination}))
    passes = 1

    def rank() -> None:
        nonlocal passes
        _, passes = library.rank(graph, ALPHA, TOL)

    seconds = repeatedly(rank, runs=RUNS, limit=LIMIT)
    threads = "1 thread" if library.threads == 1 else "all threads"
    return [ranking / passes for ranking in seconds], f"{threads}, one of the {passes} passes of a ranking"


def _fastest(adjacency: Edges) -> tuple[list[float], str]:
    found, why = [], ""
    for name in LIBRARIES:
        try:
            seconds, note = _seconds(name, adjacency)
        except MethodUnavailableError as error:
            why = str(error)
        else:
            found.append((min(seconds), seconds, f"{name}: {note}"))
    if not found:
        raise MethodUnavailableError(f"{', '.join(LIBRARIES)}: {why}")
    _, seconds, note = min(found)
    return seconds, note


IMPLEMENTATIONS = tuple(Implementation(name, partial(_seconds, name)) for name in LIBRARIES)
FASTEST = Implementation("the fastest library on the CPU", _fastest)
