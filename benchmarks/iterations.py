"""The time of one iteration on the GPU, ours and cuGraph's, in seconds, a sample at a time."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["cugraph_graph", "ours", "theirs"]

REPEATS = 7

MOST = 40
"""Of ours in a run, as many as a ranking takes."""

MORE = 20
"""Iterations by which cuGraph's longer run is longer."""


def ours(step: Any, n: int, dtype: str) -> list[float]:
    """Time runs of steps of a method, with their way back to the host."""
    import cupy

    step.set_contribution_dtype(dtype)
    step.start(cupy.full(n, 1 / n))
    seconds = []
    for _ in range(REPEATS + 1):
        cupy.cuda.runtime.deviceSynchronize()
        began = time.perf_counter()
        passes, _ = step.advance(-1.0, MOST)
        for _ in range(MOST - passes):
            step()
        seconds.append((time.perf_counter() - began) / MOST)
        if seconds[-1] * MOST > 0.5:  # slow enough to be seen at once
            break
    return seconds[1:] or seconds


def theirs(graph: Any) -> list[float]:
    """Time cuGraph's iterations on a graph of its own: the difference of two runs, of more and fewer."""
    import cugraph
    import cupy

    def run(iterations: int) -> float:
        cupy.cuda.runtime.deviceSynchronize()
        began = time.perf_counter()
        cugraph.pagerank(graph, tol=1e-30, max_iter=iterations, fail_on_nonconvergence=False)
        cupy.cuda.runtime.deviceSynchronize()
        return time.perf_counter() - began

    run(2)
    return [(run(2 + MORE) - run(2)) / MORE for _ in range(REPEATS)]


def cugraph_graph(edges: Any, *, multi: bool = True, weight: str | None = None) -> Any:
    """Make cuGraph's graph of a frame: a `MultiGraph`, which like ours counts every row, or a `Graph`."""
    import cugraph

    graph = (cugraph.MultiGraph if multi else cugraph.Graph)(directed=True)
    graph.from_cudf_edgelist(edges, source="src", destination="dst", edge_attr=weight, store_transposed=True)
    return graph
