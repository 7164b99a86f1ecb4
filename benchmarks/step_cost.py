"""Time per iteration of the methods on the CPU.

Iterations are plain, and each is a call from Python, as with ``stop="delta"``. "ms by cost model" is the estimate of
`cost` per iteration.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import prplugin
from benchmarks.generate import grid, rmat, uniform
from benchmarks.run import Part
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

COLUMNS = ("graph", "vertices", "edges", "method", "ms per iteration", "ms by cost model")


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph."""
    graphs: list[tuple[str, Callable[[], pd.DataFrame]]] = [
        ("uniform 1k x 5k", lambda: uniform(1000, 5000)),
        ("uniform 20k x 100k", lambda: uniform(20_000, 100_000)),
        ("uniform 200k x 1M", lambda: uniform(200_000, 1_000_000)),
        ("R-MAT 16", lambda: rmat(16)),
    ]
    if not quick:
        graphs += [("grid 1000 x 1000", lambda: grid(1000)), ("R-MAT 20", lambda: rmat(20))]
    return [Part(name, partial(_rows, name, make)) for name, make in graphs]


def _rows(name: str, make: Callable[[], pd.DataFrame]) -> Iterator[dict[str, Any]]:
    """Yield the time per iteration of every CPU method, over 40 iterations and without preparation."""
    graph, machine = prplugin.Graph(make()), this_machine()
    for method in methods().values():
        if method.runs_on != "cpu":
            continue
        seconds = [_seconds(graph, method.name, steps) for _ in range(3) for steps in (1, 1, 41)]
        each = [(many - one) / 40 for one, many in zip(seconds[1::3], seconds[2::3], strict=True)]
        yield {
            "graph": name,
            "vertices": graph.number_of_vertices,
            "edges": graph.number_of_edges,
            "method": method.name,
            "ms per iteration": statistics.median(each) * 1e3,
            "ms by cost model": method.cost(graph._graph.adjacency, machine) / 40 * 1e3,
            "samples": each,
        }


def _seconds(graph: prplugin.Graph, method: str, steps: int) -> float:
    return graph.rank(method=method, tol=0, max_iter=steps).seconds
