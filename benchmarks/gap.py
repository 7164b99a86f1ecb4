"""PageRank of the GAP benchmark suite: its generated graphs, kron and urand, at its stopping rule.

Both graphs have 2**scale vertices and 16 times as many edges before loops and repetitions are removed; each edge counts
in both directions. The rule is that of `pr`: iterations until the ranks change by less than 1e-4 in L1, at most 20.
GAP's specification: S. Beamer, K. Asanovic and D. Patterson, arXiv:1508.03619; its graphs have scale 27, and so have
those that are ranked on a GPU, if there is one. --scale is that of the graphs on the CPU.

With --reference, the path of GAP's program `pr` compiled on this machine, it ranks the same graph of the CPU from a
`.sg` file on as many threads. It is a Gauss-Seidel iteration in float32, and drops the rank of vertices without edges.
Only the ranking is timed, in both; prplugin's iterations at this rule are plain and in float64 ("ms"). "proved, ms" is
its default rule, which proves an L1 error of 1e-4. "build s" is from the frame of distinct edges to the graph, "method"
that of the ranking.
"""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import prplugin
from benchmarks.generate import frame_of, rmat_part, uniform_part
from benchmarks.measure import alternately, timed
from benchmarks.run import Part
from prplugin.gpu import runtime
from prplugin.machine import this_machine
from prplugin.types.arrays import MemorySpace, namespace

COLUMNS = (
    "graph", "ranked on", "vertices", "edges", "build s", "method", "iterations", "ms", "proved, ms", "GAP iterations",
    "GAP, ms", "GAP / prplugin", "GAP / proved",
)  # fmt: skip

TOLERANCE, MOST_ITERATIONS, RUNS = 1e-4, 20, {"host": 9, "device": 3}

GPU_SCALE = 27

PIECE = 1 << 27
"""Edges that are drawn at a time."""


def parts(data: Path | None, quick: bool, scale: int | None = None, reference: str | None = None) -> list[Part]:
    """Return one part per graph and processor."""
    scale = scale or (12 if quick else 20)
    scales: list[tuple[int, MemorySpace]] = [(scale, "host")]
    if _has_gpu():
        scales.insert(0, (16 if quick else GPU_SCALE, "device"))
    return [
        Part(f"{kind} {scale}, {place}", partial(_rows, kind, scale, place, reference), 1 << scale)
        for scale, place in scales
        for kind in ("kron", "urand")
    ]


def _rows(kind: str, scale: int, place: MemorySpace, reference: str | None) -> Iterator[dict[str, Any]]:
    n = 1 << scale
    edges = _distinct_pairs(kind, scale, "device" if _has_gpu() else "host")
    vertices: Any = namespace(edges["src"].values).arange(n, dtype=np.int32)
    if place == "host" and _has_gpu():
        edges, vertices = edges.to_pandas(), vertices.get()
    built, graph = timed(partial(prplugin.Graph, edges, directed=False, vertices=vertices))
    del edges, vertices
    runs = alternately(
        lambda: graph.rank(stop="delta", tol=TOLERANCE, max_iter=MOST_ITERATIONS),
        lambda: graph.rank(tol=TOLERANCE),
        runs=RUNS[place],
    )
    at_rule, proved = (each.median * 1e3 for each in runs)
    row: dict[str, Any] = {
        "graph": f"{kind} {scale}",
        "ranked on": f"{this_machine().threads} threads" if place == "host" else "GPU",
        "vertices": n,
        "edges": graph.number_of_edges,
        "build s": built,
        "method": runs[0].result.method,
        "iterations": runs[0].result.iterations,
        "ms": at_rule,
        "proved, ms": proved,
        "samples": {"rule": runs[0].seconds, "proved": runs[1].seconds},
    }
    if reference is not None and place == "host":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "graph.sg"
            write_serialized(graph, file)
            iterations, seconds = _run_reference(reference, file)
        row |= {"GAP iterations": iterations, "GAP, ms": seconds * 1e3, "GAP / prplugin": seconds * 1e3 / at_rule}
        row["GAP / proved"] = seconds * 1e3 / proved
    yield row


def _has_gpu() -> bool:
    return runtime.unavailable_reason() is None and importlib.util.find_spec("cudf") is not None


def _distinct_pairs(kind: str, scale: int, place: MemorySpace) -> Any:
    """Return a frame of the distinct pairs of different vertices, as GAP's builder keeps them."""
    n, xp = 1 << scale, np
    m = 16 * n
    if place == "device":
        import cupy as xp  # type: ignore[no-redef]
        import rmm

        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())
    keys = xp.empty(m, np.uint64)
    for first in range(0, m, PIECE):
        last = min(first + PIECE, m)
        drawn = (
            rmat_part(scale, first, last, memory_space=place)
            if kind == "kron"
            else uniform_part(n, m, first, last, memory_space=place)
        )
        one, other = (drawn[name].values.view(np.uint64) for name in ("src", "dst"))
        keys[first:last] = xp.minimum(one, other) << np.uint64(32) | xp.maximum(one, other)
    del drawn, one, other
    keys.sort()
    kept = 0
    for first in range(0, m, PIECE):  # moves the distinct ones to the front
        part = keys[first : first + PIECE].copy()
        fresh = part >> np.uint64(32) != part & np.uint64(2**32 - 1)
        fresh[1:] &= part[1:] != part[:-1]
        if kept:
            fresh[:1] &= part[:1] != keys[kept - 1 : kept]
        part = part[fresh]
        keys[kept : kept + part.size] = part
        kept += part.size
    columns = [xp.empty(kept, np.int32) for _ in range(2)]
    ends = keys[:kept].view(np.uint32).reshape(-1, 2)  # the lower half first
    for column, half in zip(columns, (1, 0), strict=True):
        column[:] = ends[:, half]
    del keys, ends, part
    if place == "device":
        xp.get_default_memory_pool().free_all_blocks()
    return frame_of(*columns)


def write_serialized(graph: prplugin.Graph, file: Path) -> None:
    """Write an undirected graph as GAP's .sg: see `prplugin.io.adjacency`."""
    offsets, indices, _ = graph.csr()
    n = offsets.size - 1
    rows = scipy.sparse.csr_array((np.empty(indices.size, np.int8), indices, offsets), shape=(n, n), copy=True)
    rows.sort_indices()
    indices = rows.indices
    header = struct.pack("<?qq", False, indices.size, n)
    file.write_bytes(header + offsets.astype("<i8").tobytes() + indices.astype("<i4").tobytes())


def _run_reference(program: str, file: Path) -> tuple[int, float]:
    """Return the iterations and the median seconds of GAP's runs."""
    command = [program, "-f", file, "-i", MOST_ITERATIONS, "-t", TOLERANCE, "-n", 1 + RUNS["host"], "-l"]
    environment = os.environ | {"OMP_NUM_THREADS": str(this_machine().threads)}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=True)
    seconds = [float(found) for found in re.findall(r"Trial Time:\s+([\d.]+)", done.stdout)]
    iterations = [int(found) for found in re.findall(r"(?m)^\s*(\d+)\s+[\d.]+$", done.stdout)]
    return 1 + max(iterations), float(np.median(seconds[1:]))
