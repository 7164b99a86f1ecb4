"""The first call in a fresh process, with no compiled kernels on disk and with them: ``python -m benchmarks cold``."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["COLUMNS", "KEYS", "rows"]

KEYS = ("edges", "kernels on disk")

COLUMNS = ("edges", "kernels on disk", "import after pandas s", "first call s", "second call s")

SCRIPT = """
import json, sys, time
import numpy as np
import pandas as pd
m = int(sys.argv[1])
random = np.random.default_rng(0)
ids = random.integers(-2**61, 2**61, max(34, m // 5))
edges = pd.DataFrame({"src": random.choice(ids, m), "dst": random.choice(ids, m)})
times = [time.perf_counter()]
import prplugin
times.append(time.perf_counter())
edges.pagerank()
times.append(time.perf_counter())
edges.pagerank()
times.append(time.perf_counter())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Start processes, each case three times, and take medians."""
    for m in (34, 100_000, 1_000_000) if quick else (34, 100_000, 1_000_000, 16_000_000):
        samples: dict[bool, list[list[float]]] = {False: [], True: []}
        for _ in range(3):
            with tempfile.TemporaryDirectory() as cache:
                for cached in (False, True):
                    samples[cached].append(_run(m, cache))
        for cached, runs in samples.items():
            imported, first, second = (statistics.median(column) for column in zip(*runs, strict=True))
            yield {
                "edges": m,
                "kernels on disk": "yes" if cached else "no",
                "import after pandas s": imported,
                "first call s": first,
                "second call s": second,
                "samples": runs,
            }


def _run(m: int, cache: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(m)],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds: list[float] = json.loads(done.stdout)
    return seconds
