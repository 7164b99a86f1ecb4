"""Seconds of prplugin and cuGraph on the GPU: of an iteration, and of the first call in a new process.

The first call is that after imports and the creation of the cuDF frame.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.measure import run_in_process, timed

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


# --- the first call -------------------------------------------------------------------------------------------------

SCRIPT = """
import json, sys, time
import cudf, cupy
from benchmarks.generate import rmat
edges = rmat(12, 3, memory_space="device").astype("int32")
edges["src"].value_counts()
if sys.argv[1] == "cuGraph":
    import cugraph
    from benchmarks.iterations import cugraph_graph
    call = lambda: cugraph.pagerank(cugraph_graph(edges), tol=1e-6)
else:
    import prplugin
    call = lambda: prplugin.pagerank(edges, dtype="float32")
seconds = []
for _ in range(2):
    cupy.cuda.runtime.deviceSynchronize()
    began = time.perf_counter()
    call()
    cupy.cuda.runtime.deviceSynchronize()
    seconds.append(time.perf_counter() - began)
print(json.dumps(seconds))
"""


LIBRARIES = "cuGraph", "ours"


def first_calls(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the time of the first call without compiled kernels on disk, and with the kernels of a previous process."""
    samples: dict[tuple[str, bool], list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as bytecode:
        for library in LIBRARIES:
            _run(library, bytecode, bytecode)  # writes the bytecode, which an installed package has as well
        for _ in range(1 if quick else 3):
            for library in LIBRARIES:
                with tempfile.TemporaryDirectory() as kernels:
                    for cached in (False, True):
                        samples.setdefault((library, cached), []).append(_run(library, kernels, bytecode))
    for cached in (False, True):
        theirs, ours = (statistics.median(first for first, _ in samples[library, cached]) for library in LIBRARIES)
        yield {
            "graph": f"R-MAT 12, 3 edges per vertex, {'kernels on disk' if cached else 'no kernels on disk'}",
            "what": "first call",
            "cuGraph ms": theirs * 1e3,
            "prplugin ms": ours * 1e3,
            "ratio": theirs / ours,
            "samples": {library: samples[library, cached] for library in LIBRARIES},
        }


def _run(library: str, kernels: str, bytecode: str) -> list[float]:
    """Run the script in a new process with folders for the kernels of CuPy and the bytecode of Python."""
    return run_in_process(SCRIPT, library, CUPY_CACHE_DIR=kernels, PYTHONPYCACHEPREFIX=bytecode)
