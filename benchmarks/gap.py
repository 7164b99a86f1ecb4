"""PageRank of the GAP benchmark suite on the CPU: its generated graphs, kron and urand, at its stopping rule.

Both graphs have 2**scale vertices and 16 times as many edges before loops and repetitions are removed; each edge counts
in both directions. The rule is that of `pr`: iterations until the ranks change by less than 1e-4 in L1, at most 20.
GAP's specification: S. Beamer, K. Asanovic and D. Patterson, arXiv:1508.03619; its graphs have scale 27.

With --reference, the path of GAP's program `pr` compiled on this machine, it ranks the same graph from a `.sg` file on
as many threads. It is a Gauss-Seidel iteration in float32, and drops the rank of vertices without edges. Only the
ranking is timed, in both; prplugin's iterations at this rule are plain and in float64 ("ms"). "proved, ms" is its
default rule, which proves an L1 error of 1e-4.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import prplugin
from benchmarks.generate import rmat, uniform
from benchmarks.measure import alternately
from benchmarks.run import Part
from prplugin.machine import this_machine

__all__ = ["COLUMNS", "parts"]

COLUMNS = (
    "graph", "vertices", "edges", "threads", "iterations", "ms", "proved, ms", "GAP iterations", "GAP, ms",
    "GAP / prplugin", "GAP / proved",
)  # fmt: skip

TOLERANCE, MOST_ITERATIONS, RUNS = 1e-4, 20, 9


def parts(data: Path | None, quick: bool, scale: int | None = None, reference: str | None = None) -> list[Part]:
    """Return one part per graph."""
    scale = scale or (12 if quick else 20)
    n = 1 << scale
    graphs: dict[str, Callable[[], pd.DataFrame]] = {
        f"kron {scale}": lambda: rmat(scale),
        f"urand {scale}": lambda: uniform(n, 16 * n),
    }
    return [Part(name, partial(_rows, name, make, n, reference)) for name, make in graphs.items()]


def _rows(name: str, make: Callable[[], pd.DataFrame], n: int, reference: str | None) -> Iterator[dict[str, Any]]:
    graph = _graph(make(), n)
    timed = alternately(
        lambda: graph.rank(stop="delta", tol=TOLERANCE, max_iter=MOST_ITERATIONS),
        lambda: graph.rank(tol=TOLERANCE),
        runs=RUNS,
    )
    at_rule, proved = (each.median * 1e3 for each in timed)
    row = {
        "graph": name,
        "vertices": n,
        "edges": graph.number_of_edges,
        "threads": this_machine().threads,
        "iterations": timed[0].result.iterations,
        "ms": at_rule,
        "proved, ms": proved,
        "samples": {"rule": timed[0].seconds, "proved": timed[1].seconds},
    }
    if reference is not None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "graph.sg"
            write_serialized(graph, file)
            iterations, seconds = _run_reference(reference, file)
        row |= {"GAP iterations": iterations, "GAP, ms": seconds * 1e3, "GAP / prplugin": seconds * 1e3 / at_rule}
        row["GAP / proved"] = seconds * 1e3 / proved
    yield row


def _graph(edges: pd.DataFrame, n: int) -> prplugin.Graph:
    """Build a graph of single edges in both directions, without loops, as GAP's builder does."""
    source, target = edges.columns
    edges = edges[edges[source] != edges[target]]
    return prplugin.Graph(edges, source, target, directed=False, duplicates="first", vertices=range(n))


def write_serialized(graph: prplugin.Graph, file: Path) -> None:
    """Write an undirected graph as GAP's .sg: see `prplugin.io.gap`."""
    offsets, indices, _ = graph.csr()
    rows = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    indices = indices[np.lexsort((indices, rows))]
    header = struct.pack("<?qq", False, indices.size, offsets.size - 1)
    file.write_bytes(header + offsets.astype("<i8").tobytes() + indices.astype("<i4").tobytes())


def _run_reference(program: str, file: Path) -> tuple[int, float]:
    """Return the iterations and the median seconds of GAP's runs."""
    command = [program, "-f", file, "-i", MOST_ITERATIONS, "-t", TOLERANCE, "-n", 1 + RUNS, "-l"]
    environment = os.environ | {"OMP_NUM_THREADS": str(this_machine().threads)}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=True)
    seconds = [float(found) for found in re.findall(r"Trial Time:\s+([\d.]+)", done.stdout)]
    iterations = [int(found) for found in re.findall(r"(?m)^\s*(\d+)\s+[\d.]+$", done.stdout)]
    return 1 + max(iterations), float(np.median(seconds[1:]))
