"""One iteration of each method of the CPU, whence the constants of its `cost`: ``python -m benchmarks steps``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import prplugin
from benchmarks.generate import grid, rmat, uniform
from prplugin.machine import this_machine
from prplugin.methods import methods

__all__ = ["COLUMNS", "rows"]

COLUMNS = ("graph", "vertices", "edges", "method", "ms an iteration", "ms by its cost")


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Time 40 iterations of every method of the CPU, less the making of its plan."""
    graphs: list[tuple[str, pd.DataFrame]] = [
        ("uniform 1k x 5k", uniform(1000, 5000)),
        ("uniform 20k x 100k", uniform(20_000, 100_000)),
        ("uniform 200k x 1M", uniform(200_000, 1_000_000)),
        ("R-MAT 16", rmat(16)),
    ]
    if not quick:
        graphs += [("grid 1000 x 1000", grid(1000)), ("R-MAT 20", rmat(20))]
    machine = this_machine()
    for name, edges in graphs:
        graph = prplugin.Graph(edges)
        for method in methods().values():
            if method.runs_on != "cpu":
                continue
            seconds = [_seconds(graph, method.name, steps) for _ in range(3) for steps in (1, 1, 41)]
            one, many = np.median(seconds[1::3]), np.median(seconds[2::3])
            yield {
                "graph": name,
                "vertices": graph.number_of_vertices,
                "edges": graph.number_of_edges,
                "method": method.name,
                "ms an iteration": float(many - one) / 40 * 1e3,
                "ms by its cost": method.cost(graph._adjacency, machine) / 40 * 1e3,
                "samples": seconds,
            }


def _seconds(graph: prplugin.Graph, method: str, steps: int) -> float:
    return graph.rank(method=method, tol=0, max_iter=steps).seconds
