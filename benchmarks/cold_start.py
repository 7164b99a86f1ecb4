"""First call in a new process, compared with SciPy.

SciPy is the loop of `peers`: `pandas.factorize`, a sparse matrix, and iterations until the error is at most 1e-6 by its
own stopping rule. "kernels on disk" tells whether Numba's kernels were compiled and cached by an earlier process.
Import times exclude pandas, which is already loaded. "ratio" is SciPy's time for import and first call divided by
prplugin's.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import run_in_process

__all__ = ["COLUMNS", "KEYS", "rows"]

KEYS = ("edges", "kernels on disk")

COLUMNS = (
    "edges", "kernels on disk", "import s", "first call s", "second call s", "SciPy import s", "SciPy first call s",
    "SciPy second call s", "ratio",
)  # fmt: skip

SCRIPT = """
import json, sys, time
import numpy as np
import pandas as pd
m = int(sys.argv[2])
random = np.random.default_rng(0)
ids = random.integers(-2**61, 2**61, max(34, m // 5))
edges = pd.DataFrame({"src": random.choice(ids, m), "dst": random.choice(ids, m)})
seconds = []
def timed(call):
    began = time.perf_counter()
    call()
    seconds.append(time.perf_counter() - began)
if sys.argv[1] == "prplugin":
    timed(lambda: __import__("prplugin"))
    call = edges.pagerank
else:
    timed(lambda: __import__("scipy.sparse"))
    from benchmarks.peers.scipy_loop import build, rank
    def call():
        ids, matrix = build(edges)
        return pd.DataFrame({"vertex": ids, "pagerank": rank(matrix, 0.85, 1e-6)[0]})
timed(call)
timed(call)
print(json.dumps(seconds))
"""


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the medians of three new processes per case, which alternate; quick runs start one per case."""
    for m in (34, 100_000) if quick else (34, 100_000, 1_000_000, 16_000_000):
        samples: dict[str, list[list[float]]] = {"no": [], "yes": [], "SciPy": []}
        for _ in range(1 if quick else 3):
            with tempfile.TemporaryDirectory() as cache:
                samples["no"].append(_run("prplugin", m, cache))
                samples["yes"].append(_run("prplugin", m, cache))
                samples["SciPy"].append(_run("SciPy", m, cache))
        scipy = _medians(samples["SciPy"])
        for on_disk in ("no", "yes"):
            own = _medians(samples[on_disk])
            yield {
                "edges": m,
                "kernels on disk": on_disk,
                **dict(zip(COLUMNS[2:8], own + scipy, strict=True)),
                "ratio": sum(scipy[:2]) / sum(own[:2]),
                "samples": {"ours": samples[on_disk], "SciPy": samples["SciPy"]},
            }


def _medians(runs: list[list[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def _run(library: str, m: int, cache: str) -> list[float]:
    return run_in_process(SCRIPT, library, str(m), NUMBA_CACHE_DIR=cache)
