"""Iterations on separate communities, to a proved error of 1e-6.

The vertices are linked only within blocks, by two random edges per vertex. Teleports go to all vertices, to one, or to
every seventh. Each cell has the counts of the methods in the column "methods". They depend neither on load nor on the
number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import prplugin
from prplugin.gpu import runtime

__all__ = ["COLUMNS", "graph_of", "rows", "summary"]

VERTICES = 4000

ALPHAS = 0.99, 0.999, 0.9999

ON_CPU = "numpy", "native"

ON_GPU = "native", "persistent", "propagation-blocking", "node"

COLUMNS = ("blocks of", "edges", "teleport to", "methods", *(f"alpha {alpha}" for alpha in ALPHAS))

TELEPORTS = {"all": None, "one": {0: 1.0}, "every seventh": dict.fromkeys(range(0, VERTICES, 7), 1.0)}


def graph_of(size: int, directed: bool) -> prplugin.Graph:
    """Return a graph of blocks of `size` vertices."""
    edges = np.random.default_rng(0).integers(0, size, (VERTICES // size, 2 * size, 2))
    edges = (edges + np.arange(0, VERTICES, size)[:, None, None]).reshape(-1, 2)
    frame = pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]})
    return prplugin.Graph(frame, directed=directed, vertices=range(VERTICES))


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the counts of each kind of graph and teleport."""
    methods = ON_CPU if runtime.unavailable_reason() else ON_GPU
    for size, directed in product((50,) if quick else (10, 50, 200), (True, False)):
        graph = graph_of(size, directed)
        for name, personalization in TELEPORTS.items():
            about = {"blocks of": size, "edges": "directed" if directed else "undirected", "teleport to": name}
            counts = {
                f"alpha {alpha}": [
                    graph.rank(method=method, alpha=alpha, personalization=personalization).iterations
                    for method in methods
                ]
                for alpha in ALPHAS
            }
            cells = {column: ", ".join(map(str, found)) for column, found in counts.items()}
            ratio = max(max(found) / min(found) for found in counts.values())
            yield about | {"methods": ", ".join(methods), **cells, "ratio": ratio}


def summary(results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Report how far the counts of a cell are apart."""
    ratio = max(row["ratio"] for row in results)
    return f"The largest count is at most {ratio:.2f} times the least of its cell, on {VERTICES:,} vertices.", []
