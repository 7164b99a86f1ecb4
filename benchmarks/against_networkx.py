"""Comparison of `nx.pagerank` with and without backends.

All backends get the same call with the same graph object. "first" includes reading the graph from NetworkX's dicts;
"again" uses NetworkX's cache of converted graphs. "ratio" is NetworkX's time divided by prplugin's. "L1 distance" is
the L1 distance between the ranks of NetworkX and prplugin. nx-cugraph is measured where it is installed and there is a
GPU; then CuPy is loaded, and prplugin ranks on the GPU as well. "new process" is the first call of a process, imports
included.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from benchmarks.generate import rmat, uniform, weighted
from benchmarks.measure import alternately, run_in_process
from prplugin.gpu import runtime

COLUMNS = (
    "graph", "nodes", "edges", "networkx s", "prplugin first s", "prplugin again s", "ratio first", "ratio again",
    "nx-cugraph first s", "nx-cugraph again s", "L1 distance",
)  # fmt: skip


SMALL = {"karate club, weights": "nx.karate_club_graph()", "1,000 edges": "nx.gnm_random_graph(200, 1_000, seed=0)"}

FIRST = """
import json, sys, time
import networkx as nx
graph = eval(sys.argv[2])
began = time.perf_counter()
nx.pagerank(graph, backend=sys.argv[1])
print(json.dumps([time.perf_counter() - began, graph.number_of_nodes(), graph.number_of_edges()]))
"""


def graphs(quick: bool) -> Iterator[tuple[str, Callable[[], nx.Graph]]]:
    """Yield name and constructor of each graph."""
    yield "DiGraph, R-MAT 14", lambda: build_graph(rmat(14), nx.DiGraph)
    if quick:
        return
    edges = uniform(100_000, 1_000_000)
    yield "DiGraph, uniform", lambda: build_graph(edges, nx.DiGraph)
    yield "DiGraph, uniform, weights", lambda: build_graph(weighted(edges), nx.DiGraph)
    yield "DiGraph, uniform, names", lambda: build_graph(edges.astype(str), nx.DiGraph)
    yield "Graph, uniform", lambda: build_graph(edges[:500_000], nx.Graph)
    yield "MultiDiGraph, uniform", lambda: build_graph(edges, nx.MultiDiGraph)


def build_graph(edges: pd.DataFrame, kind: type[nx.Graph]) -> nx.Graph:
    """Build a NetworkX graph from a frame."""
    return nx.from_pandas_edgelist(edges, "src", "dst", "weight" if "weight" in edges else None, create_using=kind)


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the medians of first calls in new processes, and of alternating calls on each graph."""
    for name, graph in SMALL.items():
        runs = [
            [run_in_process(FIRST, backend, graph) for backend in ("networkx", "prplugin")]
            for _ in range(1 if quick else 5)
        ]
        theirs, ours = (statistics.median(seconds for seconds, *_ in column) for column in zip(*runs, strict=True))
        yield {
            "graph": f"Graph, {name}, new process",
            "nodes": runs[0][0][1],
            "edges": runs[0][0][2],
            "networkx s": theirs,
            "prplugin first s": ours,
            "ratio first": theirs / ours,
            "samples": {"networkx": [one[0] for one, _ in runs], "prplugin": [other[0] for _, other in runs]},
        }
    nx.config.warnings_to_ignore.add("cache")
    cugraph = "cugraph" in nx.config.backends and runtime.unavailable_reason() is None
    backends = ["prplugin", *(["cugraph"] if cugraph else [])]
    for name, make in graphs(quick):
        graph = make()

        def first(backend: str, graph: nx.Graph = graph) -> dict[Any, float]:
            graph.__networkx_cache__.clear()
            return nx.pagerank(graph, backend=backend)

        def again(backend: str, graph: nx.Graph = graph) -> dict[Any, float]:
            return nx.pagerank(graph, backend=backend)

        calls: dict[str, Callable[[], Any]] = {"networkx": lambda again=again: again("networkx")}
        for backend in backends:
            calls[f"{backend} first"] = lambda first=first, backend=backend: first(backend)
            calls[f"{backend} again"] = lambda again=again, backend=backend: again(backend)
        timed = dict(zip(calls, alternately(*calls.values(), runs=3), strict=True))
        expected, ranks = timed["networkx"].result, timed["prplugin again"].result
        seconds = {name: record.median for name, record in timed.items()}
        yield {
            "graph": name,
            "nodes": graph.number_of_nodes(),
            "edges": graph.number_of_edges(),
            "networkx s": seconds["networkx"],
            "prplugin first s": seconds["prplugin first"],
            "prplugin again s": seconds["prplugin again"],
            "ratio first": seconds["networkx"] / seconds["prplugin first"],
            "ratio again": seconds["networkx"] / seconds["prplugin again"],
            "nx-cugraph first s": seconds.get("cugraph first", "not run"),
            "nx-cugraph again s": seconds.get("cugraph again", "not run"),
            "L1 distance": sum(abs(ranks[node] - expected[node]) for node in graph),
            "samples": {name: record.seconds for name, record in timed.items()},
        }
