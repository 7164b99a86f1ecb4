"""One iteration on the GPU, every method beside cuGraph and cuSPARSE: ``python -m benchmarks kernels``.

An iteration of ours is all of it: row sums, new ranks, contributions, dangling rank, norms, and their way to the host.
cuGraph's is the difference of two runs, of more and fewer iterations, on a MultiGraph, which like ours counts every
row. cuSPARSE's is its product of matrix and vector alone, through CuPy. Unweighted, alpha 0.85. The constants of each
method's `cost` are fitted to these figures.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import iterations
from benchmarks.generate import rmat, uniform
from prplugin.errors import PageRankError
from prplugin.machine import this_machine
from prplugin.methods import methods
from prplugin.problem import Problem

__all__ = ["COLUMNS", "rows"]

COLUMNS = ("graph", "vertices", "edges", "longest row", "what", "ms float32", "ms float64", "x cuGraph")

REPEATS = 7
STEPS = 16
"""Products at once."""

PEER = "cuGraph"
SPARSE = "cuSPARSE SpMV alone"


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name the graphs, each with what makes its cuDF frame."""
    import cudf  # the benchmark needs a GPU with RAPIDS

    yield "uniform 1k x 500k", lambda: uniform(1000, 500_000, place="device")
    if data is not None:
        for name in ("wiki-Vote", "road-luxembourg", "web-NotreDame", "cnr-2000"):
            yield name, lambda name=name: cudf.read_parquet(data / "graphs" / f"{name}.parquet")[["src", "dst"]]
    yield "R-MAT 16", lambda: rmat(16, place="device")
    if quick:
        return
    yield "R-MAT 20", lambda: rmat(20, place="device")
    yield "R-MAT 22", lambda: rmat(22, place="device")
    yield "uniform 8M x 80M", lambda: uniform(8_000_000, 80_000_000, place="device")


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Time every method, and the peers, on each graph."""
    import prplugin

    machine = this_machine()
    for name, make in graphs(data, quick):
        edges = make().astype("int32")
        graph = prplugin.Graph(edges)
        adjacency = graph._adjacency
        about = {
            "graph": name,
            "vertices": adjacency.n,
            "edges": adjacency.m,
            "longest row": adjacency.largest_in_degree,
        }
        peer = iterations.theirs(iterations.cugraph_graph(edges))
        yield {**about, "what": PEER, **_columns({"float32": peer}, peer)}
        sparse = {dtype: _sparse(adjacency, dtype) for dtype in ("float32", "float64")}
        yield {**about, "what": SPARSE, **_columns(sparse, peer)}
        for method in methods().values():
            if method.runs_on != "gpu":
                continue
            try:
                if reason := method.unfit(adjacency, machine):
                    raise PageRankError(reason)
                step = method.prepare(Problem(adjacency, 0.85), machine)
                samples = {dtype: iterations.ours(step, adjacency.n, dtype) for dtype in ("float32", "float64")}
            except PageRankError as error:
                samples = {"float32": [], "float64": [], "why": [str(error)]}
            yield {**about, "what": method.name, **_columns(samples, peer)}
            step = None


def _columns(samples: dict[str, list[Any]], peer: list[float]) -> dict[str, Any]:
    """Give medians, and how many times the peer's iteration ours goes into it (float32, as the peer's)."""
    ms = {
        dtype: statistics.median(samples[dtype]) * 1e3 if samples.get(dtype) else "" for dtype in ("float32", "float64")
    }
    ratio: Any = statistics.median(peer) * 1e3 / ms["float32"] if ms["float32"] else ""
    return {"ms float32": ms["float32"], "ms float64": ms["float64"], "x cuGraph": ratio, "samples": samples}


def _sparse(adjacency: Any, dtype: str) -> list[float]:
    """Time the product of cuSPARSE, in seconds."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    offsets, sources, _ = adjacency.csc
    n = adjacency.n
    matrix = csr_matrix((cupy.ones(adjacency.m, dtype), sources, offsets), shape=(n, n))
    vector = cupy.random.random(n).astype(dtype)
    seconds = []
    for _ in range(REPEATS + 1):
        cupy.cuda.runtime.deviceSynchronize()
        began = time.perf_counter()
        for _ in range(STEPS):
            matrix @ vector
        cupy.cuda.runtime.deviceSynchronize()
        seconds.append((time.perf_counter() - began) / STEPS)
    return seconds[1:]
