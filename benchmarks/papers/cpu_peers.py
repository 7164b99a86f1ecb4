"""Today's libraries on the CPU, an iteration at a time: a ranking of theirs, by the passes that it takes.

igraph and NetworkX do not say how many that are: `python -m benchmarks peers` has their rankings, and those of the
others, compared with ours at the same error.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from benchmarks.measure import repeatedly
from benchmarks.papers.sides import ALPHA, LIMIT, RUNS, Side
from benchmarks.peers import PACKAGES, peer
from prplugin.errors import MethodUnavailableError
from prplugin.graph.adjacency import Adjacency

__all__ = ["FASTEST", "PACKAGES", "SIDES"]

LIBRARIES = "python-graphblas", "NetworKit", "scikit-network", "graph_mate"

TOL = 1e-3
"""For some ten passes: more would take longer and be no more like one another."""

MOST_EDGES = 16 << 20
"""As many as Bowen's graph has, of which a library makes its own in some seconds."""


def _seconds(name: str, adjacency: Adjacency) -> tuple[list[float], str]:
    if adjacency.m > MOST_EDGES:
        raise MethodUnavailableError(f"not asked of more than {MOST_EDGES:,} edges")
    try:
        side = peer(name)
    except ModuleNotFoundError as error:
        raise MethodUnavailableError("not installed: pip install 'prplugin[peers]'") from error
    edges = adjacency.on("host").edges
    _, graph = side.build(pd.DataFrame({"src": edges.source, "dst": edges.destination}))
    passes = 1

    def rank() -> None:
        nonlocal passes
        _, passes = side.rank(graph, ALPHA, TOL)

    seconds = repeatedly(rank, runs=RUNS, limit=LIMIT)
    threads = "1 thread" if side.threads == 1 else "all threads"
    return [ranking / passes for ranking in seconds], f"{threads}, one of the {passes} passes of a ranking"


def _fastest(adjacency: Adjacency) -> tuple[list[float], str]:
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


SIDES = tuple(Side(name, partial(_seconds, name)) for name in LIBRARIES)
FASTEST = Side("the fastest library on the CPU", _fastest)
