"""Iterations of the CPU's methods on separate communities; writes its table in benchmarks/results/iterations.md."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

import prplugin

PAGE = Path(__file__).parent / "results" / "iterations.md"

VERTICES = 4000

METHODS = "numpy", "native"

ALPHAS = 0.99, 0.999, 0.9999

TITLE = "## Separate communities\n"

TEXT = f"""
Iterations to a proved error of 1e-6 on {VERTICES:,} vertices that are linked only within blocks, by two random edges
per vertex. Teleports go to all vertices, to one, or to every seventh. Each cell has the counts of
{" and ".join(METHODS)}. Neither takes more than twice those of the other.
`python -m benchmarks.communities` writes this section.

"""


def graph_of(size: int, directed: bool) -> prplugin.Graph:
    """Return a graph of blocks of `size` vertices."""
    edges = np.random.default_rng(0).integers(0, size, (VERTICES // size, 2 * size, 2))
    edges = (edges + np.arange(0, VERTICES, size)[:, None, None]).reshape(-1, 2)
    frame = pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]})
    return prplugin.Graph(frame, directed=directed, vertices=range(VERTICES))


def table() -> str:
    """Return the counts as a Markdown table."""
    columns = "| blocks of | edges | teleport to |", *(f" alpha {alpha} |" for alpha in ALPHAS)
    lines = ["".join(columns), "|---" * (3 + len(ALPHAS)) + "|"]
    teleports = {"all": None, "one": {0: 1.0}, "every seventh": dict.fromkeys(range(0, VERTICES, 7), 1.0)}
    for size, directed in product((10, 50, 200), (True, False)):
        graph = graph_of(size, directed)
        for name, personalization in teleports.items():
            counts = [
                ", ".join(
                    str(graph.rank(alpha=alpha, personalization=personalization, method=method).iterations)
                    for method in METHODS
                )
                for alpha in ALPHAS
            ]
            cells = str(size), "directed" if directed else "undirected", name, *counts
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    others = PAGE.read_text().partition(TITLE)[0].rstrip("\n")
    PAGE.write_text(f"{others}\n\n{TITLE}{TEXT}{table()}")
