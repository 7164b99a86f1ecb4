"""A changing graph: `Graph.update` and the next ranking, compared with ranking from scratch.

``python -m benchmarks changing``. One graph takes successive batches of random edges. Half of a batch is added, with
endpoints drawn from the endpoints of random edges, and half is removed; a batch of one edge is alternately removed and
added. "update" is the time of ``graph.update(add=..., remove=...)``, and "rank" that of the subsequent
``graph.rank(top=10).frame``. "frame" is ``prplugin.pagerank(changed, top=10)``, and "fresh rank" the first
``rank(top=10).frame`` of a new `Graph` of the changed frame, without its construction. All four are timed in turn in
one process, after two warm-up batches. Times are medians over the batches, and ratios are medians of the ratio of each
batch; "minimum" marks the ratio of the minimum times. "pushed" is the number of rankings that pushes alone completed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import prplugin
from benchmarks.generate import rmat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "KEYS", "figure", "rows"]

KEYS = ("graph", "batch")

COLUMNS = (
    "graph", "batch", "update ms", "rank ms", "frame ms", "fresh rank ms", "frame / update and rank",
    "fresh rank / update and rank", "frame, minimum", "fresh rank, minimum", "pushed", "batches",
)  # fmt: skip

GRAPHS = "cnr-2000", "web-NotreDame", "soc-Epinions1"

SCALE = 20
"""Scale of the R-MAT graph: it has 2**SCALE vertices."""

WARM_UP_BATCHES = 2


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Measure each graph with each batch size."""
    for name in GRAPHS if data is not None else ():
        edges = pd.read_parquet(data / "graphs" / f"{name}.parquet", columns=["src", "dst"])
        yield from _measure_graph(name, edges, 4 if quick else 6)
    yield from _measure_graph(f"R-MAT {14 if quick else SCALE}", rmat(14 if quick else SCALE), 4 if quick else 2)


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw the times of an update with the next ranking and of rankings from scratch, by batch size."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["graph"] for row in results))
    drawing = Figure(figsize=(8, 2.8 * -(-len(names) // 2)), layout="constrained")
    panels = drawing.subplots(-(-len(names) // 2), 2, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        rows = [row for row in results if row["graph"] == name]
        batches = [row["batch"] for row in rows]
        lines = {
            "update and rank": [row["update ms"] + row["rank ms"] for row in rows],
            "rank of a prepared graph": [row["fresh rank ms"] for row in rows],
            "from the frame": [row["frame ms"] for row in rows],
        }
        for label, times in lines.items():
            panel.semilogx(batches, times, marker="o", label=label)
        panel.set(title=name, xlabel="changed edges", ylabel="ms")
        panel.set_ylim(bottom=0)
        panel.set_xticks(batches, [f"{batch:,}" for batch in batches])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    for panel in panels[len(names) :]:
        panel.remove()
    drawing.legend(handles=panels[0].get_lines(), loc="outside lower center", ncols=len(panels[0].get_lines()))
    return drawing


def _measure_graph(name: str, edges: pd.DataFrame, batches: int) -> Iterator[dict[str, Any]]:
    m = len(edges)
    for size in (1, 10, round(1e-4 * m), round(1e-3 * m)):
        samples = _sample(edges, size, batches)
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
            "frame, minimum": frame.min() / (update + rank).min(),
            "fresh rank, minimum": fresh.min() / (update + rank).min(),
            "pushed": samples["methods"].count("push"),
            "batches": batches,
            "samples": samples,
        }


def _sample(edges: pd.DataFrame, size: int, batches: int) -> dict[str, list[Any]]:
    random = np.random.default_rng(size)
    endpoints = edges.to_numpy()
    graph = prplugin.Graph(edges)
    graph.rank(top=10)
    seconds, methods = [], []
    for batch in range(batches + WARM_UP_BATCHES):
        added_count = size // 2 if size > 1 else batch % 2
        chosen = random.choice(len(edges), size - added_count, replace=False)
        removed = edges.iloc[chosen]
        added = pd.DataFrame(
            {
                "src": endpoints[random.integers(0, len(endpoints), added_count), 0],
                "dst": endpoints[random.integers(0, len(endpoints), added_count), 1],
            }
        )
        kept = np.ones(len(edges), np.bool_)
        kept[chosen] = False
        edges = pd.concat([edges[kept], added], ignore_index=True)
        update = _seconds(lambda added=added, removed=removed: graph.update(add=added, remove=removed))
        began = time.perf_counter()
        ranking = graph.rank(top=10)
        ranking.frame  # noqa: B018  # built at first access
        rank = time.perf_counter() - began
        methods.append(ranking.method)
        frame = _seconds(lambda edges=edges: prplugin.pagerank(edges, top=10))
        new = prplugin.Graph(edges)
        fresh = _seconds(lambda new=new: new.rank(top=10).frame)
        seconds.append([update, rank, frame, fresh])
    return {"seconds": seconds[WARM_UP_BATCHES:], "methods": methods[WARM_UP_BATCHES:]}


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
