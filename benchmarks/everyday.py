"""Comparison with SciPy on frames of 78 to 3 million edges.

The graphs have m random edges between m / 5 vertices, with skewed sources and ids scattered over 62 bits. "SciPy" is
the loop of `peers`: `pandas.factorize`, a compressed matrix, and iterations until alpha / (1 - alpha) times the change
of a step is at most 1e-6; prplugin proves an error of 1e-6, including rounding. "SciPy ms" and "prplugin ms" are calls
from frame to frame, and "prepared" is a call on a graph or matrix that is already built; both are medians of
alternating calls in one process per size. "minimum" is the smallest sample. "first call" is a call in a new process,
including all imports except pandas.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import run_in_process

KEYS = ("edges",)

COLUMNS = (
    "edges", "SciPy ms", "prplugin ms", "SciPy / prplugin", "SciPy minimum ms",
    "prplugin minimum ms", "SciPy / prplugin, minimum", "prepared SciPy ms", "prepared ms", "SciPy first call s",
    "first call s", "SciPy / prplugin, first",
)  # fmt: skip

SIZES = 78, 2_000, 10_000, 100_000, 500_000, 1_000_000, 3_000_000

FRAME = """
import json, sys, time
import numpy as np
import pandas as pd
def frame(m):
    random, n = np.random.default_rng(0), max(34, m // 5)
    ids = random.integers(-2**61, 2**61, n)
    sources = (n * random.random(m) ** 3).astype(np.int64)
    return pd.DataFrame({"src": ids[sources], "dst": ids[random.integers(0, n, m)]})
edges = frame(int(sys.argv[1]))
"""

WARM = (
    FRAME
    + """
import prplugin
from benchmarks.measure import alternately
from benchmarks.peers.scipy_loop import build, rank
def scipy():
    ids, matrix = build(edges)
    return pd.DataFrame({"vertex": ids, "pagerank": rank(matrix, 0.85, 1e-6)[0]})
runs = int(sys.argv[2])
matrix, graph = build(edges)[1], prplugin.Graph(edges)
whole = alternately(scipy, edges.pagerank, runs=runs)
prepared = alternately(lambda: rank(matrix, 0.85, 1e-6), graph.rank, runs=runs)
print(json.dumps([one.seconds for one in (*whole, *prepared)]))
"""
)

FIRST = (
    FRAME
    + """
began = time.perf_counter()
if sys.argv[2] == "prplugin":
    import prplugin
    edges.pagerank()
else:
    import scipy.sparse
    not_timed = time.perf_counter()
    from benchmarks.peers.scipy_loop import build, rank
    began += time.perf_counter() - not_timed
    ids, matrix = build(edges)
    pd.DataFrame({"vertex": ids, "pagerank": rank(matrix, 0.85, 1e-6)[0]})
print(json.dumps([time.perf_counter() - began]))
"""
)


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the times of each size, measured in new processes."""
    for m in SIZES[:4] if quick else SIZES:
        first: dict[str, list[float]] = {"SciPy": [], "prplugin": []}
        for _ in range(1 if quick else 3):
            for library in first:
                first[library] += run_in_process(FIRST, str(m), library)
        runs = 60 if m <= 10_000 else 9 if m <= 100_000 else 5
        theirs, ours, prepared_theirs, prepared = _warm(m, runs)
        yield {
            "edges": m,
            "SciPy ms": 1e3 * statistics.median(theirs),
            "prplugin ms": 1e3 * statistics.median(ours),
            "SciPy / prplugin": statistics.median(theirs) / statistics.median(ours),
            "SciPy minimum ms": 1e3 * min(theirs),
            "prplugin minimum ms": 1e3 * min(ours),
            "SciPy / prplugin, minimum": min(theirs) / min(ours),
            "prepared SciPy ms": 1e3 * statistics.median(prepared_theirs),
            "prepared ms": 1e3 * statistics.median(prepared),
            "SciPy first call s": statistics.median(first["SciPy"]),
            "first call s": statistics.median(first["prplugin"]),
            "SciPy / prplugin, first": statistics.median(first["SciPy"]) / statistics.median(first["prplugin"]),
            "samples": {
                "SciPy": theirs, "ours": ours, "prepared SciPy": prepared_theirs, "prepared": prepared,
                "first": first,
            },
        }  # fmt: skip


def _warm(m: int, runs: int) -> list[list[float]]:
    samples: Any = run_in_process(WARM, str(m), str(runs))
    return samples
