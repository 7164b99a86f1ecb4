"""A changing graph: `Graph.update` and the next ranking, compared with ranking from scratch.

``python -m benchmarks changing``. One graph takes successive batches of random edges. Half of a batch is added, with
endpoints drawn from the endpoints of random edges, and half is removed; a batch of one edge is alternately removed and
added. "update" is the time of ``graph.update(add=..., remove=...)``, and "rank" the time of the subsequent
``graph.rank(top=10).frame``. "frame" is ``prplugin.pagerank(changed, top=10)``, and "fresh rank" the first
``rank(top=10).frame`` of a new `Graph` of the changed frame, without its construction. All four are timed in turn in
one process, after two warm-up batches. Times are medians over the batches, and ratios are medians of the ratio of each
batch; "minimum" marks the ratio of the minimum times. "pushed" is the number of rankings that pushes alone completed.
On a machine with a GPU, all frames are cuDF's, memory is from an RMM pool, and batches are 1e-5 to 1e-3 of the edges.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import prplugin
from benchmarks.generate import rmat
from benchmarks.measure import take_memory_from_a_pool, timed
from benchmarks.run import Part
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("graph", "batch")

COLUMNS = (
    "graph", "batch", "update ms", "rank ms", "frame ms", "fresh rank ms", "frame / update and rank",
    "fresh rank / update and rank", "fresh rank / rank", "frame, minimum", "fresh rank, minimum", "pushed", "batches",
)  # fmt: skip

GRAPHS: dict[MemorySpace, tuple[str, ...]] = {
    "host": ("cnr-2000", "web-NotreDame", "soc-Epinions1"),
    "device": ("cnr-2000",),
}
"""Real graphs by memory space."""

SCALES: dict[MemorySpace, int] = {"host": 20, "device": 22}
"""Scale of the R-MAT graph: it has 2**scale vertices."""

FRACTIONS = 1e-5, 1e-4, 1e-3
"""Changed edges of a batch on the GPU, as fractions of all edges."""

WARM_UP_BATCHES = 2


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph: on the GPU if there is one, else on the CPU."""
    space: MemorySpace = "host" if runtime.unavailable_reason() else "device"
    scale = 14 if quick else SCALES[space]
    graphs: dict[str, Callable[[], pd.DataFrame]] = {
        name: partial(pd.read_parquet, data / "graphs" / f"{name}.parquet", columns=["src", "dst"])
        for name in (GRAPHS[space] if data is not None else ())
    }
    graphs[f"R-MAT {scale}"] = lambda: _on_host(rmat(scale, memory_space=space))
    return [
        Part(name, partial(_measure_graph, name, load, 4 if quick else 2 if name.startswith("R-MAT") else 6, space))
        for name, load in graphs.items()
    ]


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


def _measure_graph(
    name: str, load: Callable[[], pd.DataFrame], batches: int, space: MemorySpace
) -> Iterator[dict[str, Any]]:
    if space == "device":
        take_memory_from_a_pool()
    edges = load()
    fractions = [round(fraction * len(edges)) for fraction in FRACTIONS]
    for size in (1, 10, *fractions[1:]) if space == "host" else fractions:
        samples = _sample(edges, max(size, 1), batches, space)
        update, rank, frame, fresh = (np.array(column) for column in zip(*samples["seconds"], strict=True))
        yield {
            "graph": name,
            "batch": size,
            "update ms": 1e3 * statistics.median(update),
            "rank ms": 1e3 * statistics.median(rank),
            "frame ms": 1e3 * statistics.median(frame),
            "fresh rank ms": 1e3 * statistics.median(fresh),
            "frame / update and rank": statistics.median(frame / (update + rank)),
            "fresh rank / update and rank": statistics.median(fresh / (update + rank)),
            "fresh rank / rank": statistics.median(fresh / rank),
            "frame, minimum": frame.min() / (update + rank).min(),
            "fresh rank, minimum": fresh.min() / (update + rank).min(),
            "pushed": samples["methods"].count("push"),
            "batches": batches,
            "samples": samples,
        }


def _sample(edges: pd.DataFrame, size: int, batches: int, space: MemorySpace) -> dict[str, list[Any]]:
    random = np.random.default_rng(size)
    endpoints = edges.to_numpy()
    graph = prplugin.Graph(_in_memory(edges, space))
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
        added, removed, changed = (_in_memory(frame, space) for frame in (added, removed, edges))
        update, _ = timed(lambda added=added, removed=removed: graph.update(add=added, remove=removed), space)
        rank, method = timed(lambda: _ranked(graph), space)
        methods.append(method)
        frame, _ = timed(lambda changed=changed: prplugin.pagerank(changed, top=10), space)
        new = prplugin.Graph(changed)
        fresh, _ = timed(lambda new=new: _ranked(new), space)
        seconds.append([update, rank, frame, fresh])
    return {"seconds": seconds[WARM_UP_BATCHES:], "methods": methods[WARM_UP_BATCHES:]}


def _ranked(graph: prplugin.Graph) -> str:
    """Rank a graph, and return the method."""
    ranking = graph.rank(top=10)
    ranking.frame  # noqa: B018  # built at first access
    return ranking.method


def _in_memory(frame: pd.DataFrame, space: MemorySpace) -> Any:
    """Return a frame on the host, or a copy of it on the GPU."""
    if space == "host":
        return frame
    import cudf

    return cudf.from_pandas(frame.reset_index(drop=True))


def _on_host(frame: Any) -> pd.DataFrame:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame
