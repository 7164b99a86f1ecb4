"""Comparison of 64 seeds in one call with 64 calls.

The graphs are prepared in both cases; seeds are vertices with out-edges, drawn once. On the CPU one call of prplugin is
compared with 64 calls of prplugin, with the same method and tolerance. On the GPU it is compared with 64 calls of
cuGraph with ``tol=1e-6`` on its `MultiGraph`, stored transposed, keeping all frames; prplugin's `tol` is halved until
its largest error of any seed is no larger than cuGraph's. "ratio" is the time of 64 calls divided by that of one call.
Errors are L1 distances to prplugin's ranks in float64, proved to 1e-10. On the GPU both compute in float32. "ten
highest" returns the ten highest ranks per seed. ``--only NAME`` selects cases.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import iterations
from benchmarks.generate import rmat
from benchmarks.measure import alternately
from benchmarks.run import Part, chosen
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

COLUMNS = (
    "graph", "processor", "what", "64 calls ms", "one call ms", "ratio", "method", "iterations", "tol",
    "cuGraph error", "prplugin error", "error bound", "note",
)  # fmt: skip

KEYS = ("graph", "processor", "what")

SEEDS = 64

RUNS = 5
SLOW_RUNS = 3

CUGRAPH_TOL, CUGRAPH_MAX_ITER = 1e-6, 1000
EXACT = 1e-10


def parts(data: Path | None, quick: bool, only: tuple[str, ...] = ()) -> list[Part]:
    """Return one part per graph and processor.

    Parameters
    ----------
    only : tuple of str
        Select parts whose name contains one of these words, such as "R-MAT" or "CPU".
    """
    graphs: dict[str, Callable[[MemorySpace], Any]] = {}
    if data is not None:
        graphs["cnr-2000"] = partial(_real, data)
    graphs |= (
        {"R-MAT 16": lambda memory_space: rmat(16, memory_space=memory_space)}
        if quick
        else {"R-MAT 20": lambda memory_space: rmat(20, memory_space=memory_space)}
    )
    processors = {"CPU": _on_the_cpu} | ({"GPU": _on_the_gpu} if not runtime.unavailable_reason() else {})
    found = [
        Part(f"{name}, {processor}", partial(rows, name, make))
        for name, make in graphs.items()
        for processor, rows in processors.items()
    ]
    return chosen(found, only)


def _on_the_cpu(name: str, make: Callable[[MemorySpace], Any]) -> Iterator[dict[str, Any]]:
    import prplugin

    edges = make("host")
    graph, seeds = prplugin.Graph(edges), _drawn(edges)
    graph.rank(seeds=seeds, top=10)  # builds the layouts and compiles the kernels of both
    graph.rank(personalization={seeds[0]: 1})
    for tol in (1e-6, 1e-10):

        def one_by_one(tol: float = tol) -> Any:
            return [graph.rank(personalization={seed: 1}, method="native", tol=tol, top=10).frame for seed in seeds]

        def together(tol: float = tol) -> Any:
            ranking = graph.rank(seeds=seeds, method="native", tol=tol, top=10)
            return ranking, ranking.frame

        other, own = alternately(one_by_one, together, runs=SLOW_RUNS, warm=True)
        ranking = own.result[0]
        yield _row(
            {"graph": name, "processor": "CPU", "what": "ten highest", "tol": tol, **_how(ranking)},
            other.seconds,
            own.seconds,
        )


def _on_the_gpu(name: str, make: Callable[[MemorySpace], Any]) -> Iterator[dict[str, Any]]:
    import cudf
    import cugraph
    import cupy

    import prplugin

    edges = make("device").astype("int32")
    graph, seeds = prplugin.Graph(edges), _drawn(edges.to_pandas())
    theirs = iterations.cugraph_graph(edges)
    given = [cudf.DataFrame({"vertex": np.array([seed], np.int32), "values": np.ones(1, np.float32)}) for seed in seeds]
    exact = graph.rank(seeds=seeds, tol=EXACT).ranks
    vertices = graph.rank(tol=0, max_iter=0).frame["vertex"].values

    def one_by_one(top: int | None) -> Any:
        found = [
            cugraph.pagerank(theirs, personalization=values, tol=CUGRAPH_TOL, max_iter=CUGRAPH_MAX_ITER)
            for values in given
        ]
        kept = found if top is None else [frame.nlargest(top, "pagerank") for frame in found]
        cupy.cuda.runtime.deviceSynchronize()
        return kept

    their_error = 0.0
    for ranks, frame in zip(exact, one_by_one(None), strict=True):
        places = cupy.searchsorted(vertices, frame["vertex"].values)
        their_error = max(their_error, float(cupy.abs(ranks[places] - frame["pagerank"].values).sum()))
    tol = 1e-5
    while True:
        ranking = graph.rank(seeds=seeds, tol=tol, dtype="float32")
        error = float(cupy.abs(ranking.ranks - exact).sum(axis=1).max())
        if error <= their_error or tol < CUGRAPH_TOL / 16:
            break
        tol /= 2
    for what, top in (("all ranks", None), ("ten highest", 10)):

        def together(top: int | None = top) -> Any:
            frame = graph.rank(seeds=seeds, tol=tol, dtype="float32", top=top).frame
            cupy.cuda.runtime.deviceSynchronize()
            return frame

        other, own = alternately(partial(one_by_one, top), together, runs=RUNS)
        yield _row(
            {
                "graph": name, "processor": "GPU", "what": what, "tol": tol, "cuGraph error": their_error,
                "prplugin error": error, **_how(ranking),
            },
            other.seconds,
            own.seconds,
        )  # fmt: skip


def _how(ranking: Any) -> dict[str, Any]:
    steps = ranking.each_iterations
    return {
        "method": ranking.method,
        "iterations": f"{steps.min()} to {steps.max()}",
        "error bound": ranking.error_bound,
    }


def _row(known: dict[str, Any], one_by_one: list[float], together: list[float]) -> dict[str, Any]:
    medians = statistics.median(one_by_one), statistics.median(together)
    return {
        **known,
        "64 calls ms": medians[0] * 1e3,
        "one call ms": medians[1] * 1e3,
        "ratio": medians[0] / medians[1],
        "samples": {"one by one": one_by_one, "together": together},
    }


def _drawn(edges: pd.DataFrame) -> list[int]:
    sources = np.unique(edges["src"].to_numpy())
    chosen: list[int] = np.random.default_rng(0).choice(sources, SEEDS, replace=False).tolist()
    return chosen


def _real(data: Path, memory_space: MemorySpace) -> Any:
    edges = pd.read_parquet(data / "graphs" / "cnr-2000.parquet")[["src", "dst"]]
    if memory_space == "host":
        return edges
    import cudf

    return cudf.from_pandas(edges)
