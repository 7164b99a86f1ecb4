"""From frame to frame, beside the loop that one writes by hand on a SciPy matrix: ``python -m benchmarks scipy``.

Both stop by the same rule, alpha / (1 - alpha) * ||y - x|| <= tol, and both results are compared with a ranking at a
far smaller tolerance, so that the times are times at equal measured error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import prplugin
from benchmarks.generate import grid, rmat, scattered, uniform
from benchmarks.measure import alternately

__all__ = ["COLUMNS", "KEYS", "rows"]

KEYS = ("graph", "tol")

COLUMNS = ("graph", "edges", "tol", "scipy s", "prplugin s", "ratio", "method", "scipy error", "prplugin error")


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], pd.DataFrame]]]:
    """Name the graphs, each with what makes it."""
    yield "uniform 200k x 1M", lambda: uniform(200_000, 1_000_000)
    yield "uniform 200k x 1M, scattered ids", lambda: scattered(uniform(200_000, 1_000_000))
    yield "R-MAT 16, scattered ids", lambda: scattered(rmat(16))
    if quick:
        return
    yield "R-MAT 18", lambda: rmat(18)
    yield "R-MAT 18, scattered ids", lambda: scattered(rmat(18))
    yield "R-MAT 20, scattered ids", lambda: scattered(rmat(20))
    yield "grid 1000 x 1000", lambda: grid(1000)
    if data is not None:
        for name in ("cnr-2000", "web-NotreDame"):
            yield name, lambda name=name: pd.read_parquet(data / "graphs" / f"{name}.parquet")


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Time both on each graph, in turn, and take medians."""
    for name, make in graphs(data, quick):
        edges = make()
        exact = prplugin.Graph(edges).rank(tol=1e-12)
        for tol in (1e-6, 1e-10):
            by_hand, ours = alternately(
                lambda edges=edges, tol=tol: scipy_loop(edges, tol),
                lambda edges=edges, tol=tol: edges.pagerank(tol=tol),
                runs=5 if len(edges) < 5e6 else 3,
            )
            aligned = by_hand.result.set_index("vertex")["pagerank"].reindex(exact.frame["vertex"]).to_numpy()
            yield {
                "graph": name,
                "edges": len(edges),
                "tol": tol,
                "scipy s": by_hand.median,
                "prplugin s": ours.median,
                "ratio": by_hand.median / ours.median,
                "method": prplugin.Graph(edges).rank(tol=tol).method,
                "scipy error": float(np.abs(aligned - exact.ranks).sum()),
                "prplugin error": float(np.abs(ours.result["pagerank"] - exact.ranks).sum()),
                "samples": {"scipy": by_hand.seconds, "prplugin": ours.seconds},
            }


def scipy_loop(edges: pd.DataFrame, tol: float, alpha: float = 0.85) -> pd.DataFrame:
    """Rank with pandas.factorize (which ids 0..n-1, all in use, do without) and a CSR matrix, as one would by hand."""
    source, target = edges["src"].to_numpy(), edges["dst"].to_numpy()
    m, n = len(edges), int(max(source.max(), target.max())) + 1
    if min(source.min(), target.min()) == 0 and n < 4 * m and _all_in_use(source, target, n):
        ids = np.arange(n)
    else:
        codes, ids = pd.factorize(np.concatenate([source, target]))
        source, target = codes[:m], codes[m:]
        n = ids.size
    out = np.bincount(source, minlength=n).astype(float)
    matrix = scipy.sparse.csr_array((np.ones(m), (target, source)), shape=(n, n))
    dangling = np.flatnonzero(out == 0)
    inverse = np.divide(1, out, out=np.zeros(n), where=out > 0)
    x = np.full(n, 1 / n)
    while True:
        y = alpha * (matrix @ (x * inverse)) + (alpha * x[dangling].sum() + 1 - alpha) / n
        if alpha / (1 - alpha) * np.abs(y - x).sum() <= tol:
            return pd.DataFrame({"vertex": ids, "pagerank": y})
        x = y


def _all_in_use(source: np.ndarray, target: np.ndarray, n: int) -> bool:
    seen = np.zeros(n, bool)
    seen[source] = seen[target] = True
    return bool(seen.all())
