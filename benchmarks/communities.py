"""Iterations on separate communities, of the GPU where there is one; a section of benchmarks/results/iterations.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

import prplugin
from conformance.circumstances import device_name

PAGE = Path(__file__).parent / "results" / "iterations.md"

VERTICES = 4000

ALPHAS = 0.99, 0.999, 0.9999

ON_CPU = "numpy", "native"

ON_GPU = "native", "persistent", "propagation-blocking", "node"

TEXT = """
Iterations to a proved error of 1e-6 on {vertices:,} vertices that are linked only within blocks, by two random edges
per vertex. Teleports go to all vertices, to one, or to every seventh. Each cell has the counts of
{methods}.
The largest count is at most {ratio:.2f} times the least of its cell. `python -m benchmarks.communities` writes this
section.

"""


def graph_of(size: int, directed: bool) -> prplugin.Graph:
    """Return a graph of blocks of `size` vertices."""
    edges = np.random.default_rng(0).integers(0, size, (VERTICES // size, 2 * size, 2))
    edges = (edges + np.arange(0, VERTICES, size)[:, None, None]).reshape(-1, 2)
    frame = pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]})
    return prplugin.Graph(frame, directed=directed, vertices=range(VERTICES))


def section(methods: Sequence[str]) -> str:
    """Return the text, and the counts as a Markdown table."""
    columns = "| blocks of | edges | teleport to |", *(f" alpha {alpha} |" for alpha in ALPHAS)
    lines, ratio = ["".join(columns), "|---" * (3 + len(ALPHAS)) + "|"], 1.0
    teleports = {"all": None, "one": {0: 1.0}, "every seventh": dict.fromkeys(range(0, VERTICES, 7), 1.0)}
    for size, directed in product((10, 50, 200), (True, False)):
        graph = graph_of(size, directed)
        for name, personalization in teleports.items():
            cells = [str(size), "directed" if directed else "undirected", name]
            for alpha in ALPHAS:
                options = {"alpha": alpha, "personalization": personalization}
                counts = [graph.rank(method=method, **options).iterations for method in methods]
                ratio = max(ratio, max(counts) / min(counts))
                cells.append(", ".join(map(str, counts)))
            lines.append("| " + " | ".join(cells) + " |")
    named = f"{', '.join(methods[:-1])} and {methods[-1]}"
    return TEXT.format(vertices=VERTICES, methods=named, ratio=ratio) + "\n".join(lines) + "\n"


def write(title: str, methods: Sequence[str]) -> None:
    """Replace the section of that title in the page, or append it."""
    before, _, after = PAGE.read_text().partition(f"{title}\n")
    others = "".join(after.partition("\n## ")[1:])
    PAGE.write_text(before.rstrip("\n") + f"\n\n{title}\n{section(methods)}{others}")


if __name__ == "__main__":
    if gpu := device_name():
        write(f"## Separate communities on one {gpu}", ON_GPU)
    else:
        write("## Separate communities", ON_CPU)
