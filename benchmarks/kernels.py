"""Time per iteration of every method on one GPU.

An iteration of prplugin includes row sums, new ranks, contributions, dangling mass, norms and their copy to the host.
The time of cuGraph is the difference of two runs with different numbers of iterations on a `MultiGraph`, which counts
every row as prplugin does. The time of cuSPARSE is its matrix-vector product alone, through CuPy. Graphs are
unweighted, and alpha is 0.85. "x cuGraph" is cuGraph's time divided by the method's. The constants of each method's
`cost` are fitted to these figures.

For the methods that "auto" may choose, the construction of the layout is timed as well, after compilation. The time of
a ranking is the layout plus 20 iterations in the initial precision, as in `cost`. The second table compares the choice
of "auto" with the fastest method for a ranking and for an iteration alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import iterations
from benchmarks.generate import rmat, uniform
from benchmarks.measure import timed
from prplugin.errors import PageRankError
from prplugin.graph.edges import Problem
from prplugin.machine import Machine, this_machine
from prplugin.methods.engines.gpu_pull import ITERATIONS
from prplugin.methods.registry import candidates, choose, methods
from prplugin.types.edges import Csc

COLUMNS = (
    "graph", "vertices", "edges", "longest row", "what", "ms layout", "ms float32", "ms float64", "x cuGraph",
)  # fmt: skip

WITHIN = 1.1
"""Largest accepted ratio between the times of the choice of "auto" and of the fastest method."""

REPEATS = 7
STEPS = 16
"""Products per sample."""

LAYOUTS = 3

PEER = "cuGraph"
SPARSE = "cuSPARSE SpMV alone"


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield name and constructor of the cuDF frame of each graph."""
    import cudf  # the benchmark needs a GPU with RAPIDS

    yield "uniform 1k x 500k", lambda: uniform(1000, 500_000, memory_space="device")
    if data is not None:
        for name in ("wiki-Vote", "road-luxembourg", "web-NotreDame", "cnr-2000"):
            yield name, lambda name=name: cudf.read_parquet(data / "graphs" / f"{name}.parquet")[["src", "dst"]]
    yield "R-MAT 16", lambda: rmat(16, memory_space="device")
    if quick:
        return
    yield "R-MAT 18", lambda: rmat(18, memory_space="device")
    yield "R-MAT 20", lambda: rmat(20, memory_space="device")
    yield "R-MAT 22", lambda: rmat(22, memory_space="device")
    yield "uniform 8M x 80M", lambda: uniform(8_000_000, 80_000_000, memory_space="device")


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the times of every method, cuGraph and cuSPARSE on each graph."""
    import prplugin

    machine = this_machine()
    for name, make in graphs(data, quick):
        edges = make().astype("int32")
        graph = prplugin.Graph(edges)
        adjacency = graph._graph.adjacency
        about = {
            "graph": name,
            "vertices": adjacency.n,
            "edges": adjacency.m,
            "longest row": adjacency.largest_in_degree,
        }
        peer = iterations.time_cugraph(iterations.cugraph_graph(edges))
        yield {**about, "what": PEER, **_columns({"float32": peer}, peer)}
        sparse = {dtype: _time_cusparse(adjacency, dtype) for dtype in ("float32", "float64")}
        yield {**about, "what": SPARSE, **_columns(sparse, peer)}
        auto = choose("auto", adjacency, machine, {}).name
        for method in methods().values():
            if method.runs_on != "gpu":
                continue
            problem, layout = Problem(adjacency, 0.85), []
            try:
                if reason := method.unavailable_reason(adjacency, machine):
                    raise PageRankError(reason)
                step = method.prepare(problem, machine)
                begins = "float32" if step.float32_is_faster else "float64"
                samples = {dtype: iterations.time_method(step, adjacency.n, dtype) for dtype in ("float32", "float64")}
                del step
                if method.name in candidates(adjacency):
                    layout = _time_layout(method, problem, machine)
            except PageRankError as error:
                samples, begins = {"float32": [], "float64": [], "why": [str(error)]}, ""
            row = {
                **about,
                "what": method.name,
                "auto": method.name == auto,
                "begins in": begins,
                **_columns(samples, peer),
            }
            yield row | {"ms layout": statistics.median(layout) * 1e3 if layout else "", "layouts": layout}


def _time_layout(method: Any, problem: Problem, machine: Machine) -> list[float]:
    """Time the construction of a method's layout, after compilation."""
    seconds = []
    for _ in range(LAYOUTS):
        seconds.append(timed(partial(method.prepare, problem, machine), "device")[0])
        if seconds[-1] > 0.5:  # one sample of a slow layout is enough
            break
    return seconds


def _columns(samples: dict[str, list[Any]], peer: list[float]) -> dict[str, Any]:
    """Return the medians by type, and the ratio of cuGraph's time to the method's, both in float32."""
    ms = {
        dtype: statistics.median(samples[dtype]) * 1e3 if samples.get(dtype) else "" for dtype in ("float32", "float64")
    }
    ratio: Any = statistics.median(peer) * 1e3 / ms["float32"] if ms["float32"] else ""
    return {
        "ms layout": "",
        "ms float32": ms["float32"],
        "ms float64": ms["float64"],
        "x cuGraph": ratio,
        "samples": samples,
    }


def _time_cusparse(adjacency: Any, dtype: str) -> list[float]:
    """Return the seconds of a matrix-vector product of cuSPARSE."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    offsets, sources, _ = adjacency.get(Csc)
    n = adjacency.n
    matrix = csr_matrix((cupy.ones(adjacency.m, dtype), sources, offsets), shape=(n, n))
    vector = cupy.random.random(n).astype(dtype)

    def products() -> None:
        for _ in range(STEPS):
            matrix @ vector

    return [timed(products, "device")[0] / STEPS for _ in range(REPEATS + 1)][1:]


def summary(results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Compare the choice of "auto" with the fastest method, per iteration and per ranking."""
    table = []
    for graph in dict.fromkeys(row["graph"] for row in results):
        rows = [row for row in results if row["graph"] == graph and row["ms layout"] != ""]
        iteration = {row["what"]: row[f"ms {row['begins in']}"] for row in rows}
        ranking = {row["what"]: row["ms layout"] + ITERATIONS * iteration[row["what"]] for row in rows}
        auto = next((row["what"] for row in rows if row["auto"]), None)
        if auto is None:  # the graph is not finished
            continue
        line: dict[str, Any] = {"graph": graph}
        for what, ms in (("iteration", iteration), ("ranking", ranking)):
            best = min(ms, key=lambda name: ms[name])
            line[f"best {what}"] = best
            line[f"auto's {what} over it"] = ms[auto] / ms[best]
        table.append({**line, "auto": auto})
    within = {
        what: sum(line[f"auto's {what} over it"] <= WITHIN for line in table) for what in ("iteration", "ranking")
    }
    sentence = (
        f"`auto` chooses a method within {WITHIN - 1:.0%} of the fastest ranking on {within['ranking']} of "
        f"{len(table)} graphs, and within {WITHIN - 1:.0%} of the fastest iteration on {within['iteration']}."
    )
    return sentence, table
