"""First call on the GPU in a new process, of prplugin and cuGraph, after imports and creation of the cuDF frame."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import run_in_process

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


def rows(quick: bool) -> Iterator[dict[str, Any]]:
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
