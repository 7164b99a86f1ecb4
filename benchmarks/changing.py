"""A graph whose edges change: `Graph.update` and the next ranking, beside ranking again from the start.

``python -m benchmarks changing``. Batches of random edges, of which half are added, between endpoints of random edges,
and half removed, one after the other on one graph; a batch of one edge alternates. "Update" and "rank" are
``graph.update(add=..., remove=...)`` and ``graph.rank(top=10).frame`` after it; "frame" is
``prplugin.pagerank(changed, top=10)`` and "fresh rank" the first ``rank(top=10).frame`` of a new `Graph` of the changed
frame, without making it. All are medians of batches, timed in turn in one process, after two batches that are not
counted, and the ratios are medians of the ratios of each batch; "least" is of the least times. "Pushed" is how many of
the rankings needed no method.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import prplugin
from benchmarks.generate import rmat

__all__ = ["COLUMNS", "KEYS", "rows"]

KEYS = ("graph", "batch")

COLUMNS = (
    "graph", "batch", "update ms", "rank ms", "frame ms", "fresh rank ms", "frame / update and rank",
    "fresh rank / update and rank", "frame, least", "fresh rank, least", "pushed", "batches",
)  # fmt: skip

GRAPHS = "cnr-2000", "web-NotreDame", "soc-Epinions1"

SCALE = 20
"""Of the R-MAT graph."""

NOT_COUNTED = 2


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Measure each graph with each size of a batch."""
    for name in GRAPHS if data is not None else ():
        edges = pd.read_parquet(data / "graphs" / f"{name}.parquet", columns=["src", "dst"])
        yield from _of_graph(name, edges, 4 if quick else 6)
    yield from _of_graph(f"R-MAT {14 if quick else SCALE}", rmat(14 if quick else SCALE), 4 if quick else 2)


def _of_graph(name: str, edges: pd.DataFrame, batches: int) -> Iterator[dict[str, Any]]:
    m = len(edges)
    for size in (1, 10, round(1e-4 * m), round(1e-3 * m)):
        samples = _sampled(edges, size, batches)
        update, rank, frame, fresh = (np.array(one) for one in zip(*samples["seconds"], strict=True))
        yield {
            "graph": name,
            "batch": size,
            "update ms": 1e3 * statistics.median(update),
            "rank ms": 1e3 * statistics.median(rank),
            "frame ms": 1e3 * statistics.median(frame),
            "fresh rank ms": 1e3 * statistics.median(fresh),
            "frame / update and rank": statistics.median(frame / (update + rank)),
            "fresh rank / update and rank": statistics.median(fresh / (update + rank)),
            "frame, least": frame.min() / (update + rank).min(),
            "fresh rank, least": fresh.min() / (update + rank).min(),
            "pushed": samples["methods"].count("push"),
            "batches": batches,
            "samples": samples,
        }


def _sampled(edges: pd.DataFrame, size: int, batches: int) -> dict[str, list[Any]]:
    random = np.random.default_rng(size)
    ends = edges.to_numpy()
    graph = prplugin.Graph(edges)
    graph.rank(top=10)
    seconds, methods = [], []
    for batch in range(batches + NOT_COUNTED):
        more = size // 2 if size > 1 else batch % 2
        chosen = random.choice(len(edges), size - more, replace=False)
        removed = edges.iloc[chosen]
        added = pd.DataFrame(
            {"src": ends[random.integers(0, len(ends), more), 0], "dst": ends[random.integers(0, len(ends), more), 1]}
        )
        kept = np.ones(len(edges), np.bool_)
        kept[chosen] = False
        edges = pd.concat([edges[kept], added], ignore_index=True)
        update = _seconds(lambda added=added, removed=removed: graph.update(add=added, remove=removed))
        began = time.perf_counter()
        ranking = graph.rank(top=10)
        ranking.frame  # noqa: B018  # it is made when first asked for
        rank = time.perf_counter() - began
        methods.append(ranking.method)
        frame = _seconds(lambda edges=edges: prplugin.pagerank(edges, top=10))
        new = prplugin.Graph(edges)
        fresh = _seconds(lambda new=new: new.rank(top=10).frame)
        seconds.append([update, rank, frame, fresh])
    return {"seconds": seconds[NOT_COUNTED:], "methods": methods[NOT_COUNTED:]}


def _seconds(thing: Callable[[], object]) -> float:
    began = time.perf_counter()
    thing()
    return time.perf_counter() - began
