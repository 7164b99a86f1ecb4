"""Samples of the time of one iteration on the GPU, of prplugin and cuGraph, in seconds."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from benchmarks.measure import timed

REPEATS = 7

STEPS = 40
"""Iterations of prplugin per run, approximately the number that a ranking takes."""

ADDITIONAL = 20
"""Iterations by which the longer of cuGraph's two runs exceeds the shorter."""


def time_method(step: Any, n: int, dtype: str) -> list[float]:
    """Time iterations of a method, including the copy of the norms to the host."""
    import cupy

    step.set_contribution_dtype(dtype)
    step.start(cupy.full(n, 1 / n))
    step()  # compiles
    seconds = []
    for _ in range(REPEATS + 1):
        step.start(cupy.full(n, 1 / n))
        cupy.cuda.runtime.deviceSynchronize()
        began = time.perf_counter()
        passes, _ = step.advance(-1.0, STEPS)  # fewer where the change stagnates
        if not passes:
            for _ in range(STEPS):
                step()
        seconds.append((time.perf_counter() - began) / (passes or STEPS))
        if seconds[-1] * STEPS > 0.5:  # one sample of a slow iteration is enough
            break
    return seconds[1:] or seconds


def time_cugraph(graph: Any) -> list[float]:
    """Time an iteration of cuGraph by the difference of two runs with different numbers of iterations."""
    import cugraph

    def run(iterations: int) -> float:
        call = partial(cugraph.pagerank, graph, tol=1e-30, max_iter=iterations, fail_on_nonconvergence=False)
        return timed(call, "device")[0]

    run(2)
    return [(run(2 + ADDITIONAL) - run(2)) / ADDITIONAL for _ in range(REPEATS)]


def cugraph_graph(edges: Any, *, multi: bool = True, weight: str | None = None, directed: bool = True) -> Any:
    """Build a cuGraph `MultiGraph`, which counts every row as prplugin does, or a `Graph`."""
    import cugraph

    graph = (cugraph.MultiGraph if multi else cugraph.Graph)(directed=directed)
    graph.from_cudf_edgelist(edges, source="src", destination="dst", edge_attr=weight, store_transposed=True)
    return graph
