"""Packed edges on the CPU: ranked by `native` from a mapped file, beside its plain edges.

"bytes per edge" counts the packed edges and the table of their pieces; plain edges take 4, and 8 per vertex. "plain"
and "packed" are an iteration, in turn on the same threads; "ratio" is that of the medians. The last graphs are as
`python -m benchmarks crawl` has them, of 35 edges per vertex, three quarters of them local, generated in pieces and
packed as they come, so that no more than a few pieces are ever unpacked; "packing s" has the generation, "peak GB
packing" is the largest resident set. They are saved, and another process loads and ranks them: "ranking s" has the
checks of the file, "peak GB" is its largest resident set, the mapped file included. The address space of both processes
is limited to "limit GB".
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import prplugin
from benchmarks.generate import rmat
from benchmarks.measure import alternately
from prplugin.cpu.group import add_degrees
from prplugin.cpu.sorting import offsets_of
from prplugin.graph.edges import Edges
from prplugin.graph.problem import Problem
from prplugin.io.adjacency import numbered
from prplugin.local import LocalGraph
from prplugin.machine import this_machine
from prplugin.methods.engines.packed import Rows, joined, packed_graph
from prplugin.methods.native import NativeStep
from prplugin.options import EdgeOptions
from prplugin.streams.state import GraphState
from prplugin.types.edges import Csc, Grouped, PackedRows

__all__ = ["COLUMNS", "rows"]

COLUMNS = (
    "graph", "threads", "vertices", "edges", "bytes per edge", "packing s", "plain ms", "packed ms", "ratio",
    "limit GB", "peak GB packing", "ranking s", "iterations", "peak GB", "error bound",
)  # fmt: skip

STEP = 1 << 16
"""Targets per generated piece, of some 2.3 million edges."""

RUNS, STEPS = 9, 5

LARGEST, LIMIT = 1_050_000_000, 16_000_000_000
"""Edges of the largest graph, about, and bytes of memory of a laptop."""

# The `ru_maxrss` of a new process is at least that of its parent, so its own peak is read from /proc.
RANK = r"""
import json, re, sys, time
began = time.perf_counter()
import prplugin
ranking = prplugin.Graph.load(sys.argv[1]).rank(top=10)
print(json.dumps({
    "ranking s": time.perf_counter() - began, "iterations": ranking.iterations, "error bound": ranking.error_bound,
    "peak GB": int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) * 1024 / 1e9,
}))
"""


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield a row per graph."""
    threads = this_machine().threads
    graphs: dict[str, Callable[[], prplugin.Graph]] = {}
    if data is not None and (crawl := data / "webgraph" / "cnr-2000.graph").exists():
        graphs["cnr-2000"] = lambda: prplugin.Graph.from_file(crawl)
    graphs["R-MAT 16" if quick else "R-MAT 20"] = lambda: prplugin.Graph(rmat(16 if quick else 20))
    for name, make in graphs.items():
        yield {"graph": name, "threads": threads, **_compared(make()._graph.adjacency, threads)}
    small = 1_000_000 if quick else 30_000_000
    adjacency, seconds = packed_crawl(small, threads)
    plain = Edges.of(adjacency.get(Csc), by_target=True)
    yield {"graph": "crawl", "threads": threads, **_compared(plain, threads), "packing s": seconds}
    del adjacency, plain
    if not quick:
        yield {"graph": "crawl", "threads": threads, **_ranked(threads)}


def _compared(adjacency: Edges, threads: int) -> dict[str, Any]:
    """Time iterations on plain and on packed edges, in turn."""
    began = time.perf_counter()
    packed = packed_graph(adjacency)
    row = _described(packed, time.perf_counter() - began)
    steps = {
        "plain": NativeStep(Problem(adjacency, 0.85), threads),
        "packed": NativeStep(Problem(packed, 0.85), threads),
    }
    for step in steps.values():
        step.start(1.0 / adjacency.n)
        step.repeat(-1.0, 2)
    timed = alternately(*(partial(step.repeat, -1.0, STEPS) for step in steps.values()), runs=RUNS)
    for name, times in zip(steps, timed, strict=True):
        row[f"{name} ms"] = 1e3 * times.median / STEPS
        row[f"samples {name}"] = times.seconds
    return row | {"ratio": row["packed ms"] / row["plain ms"]}


def _ranked(threads: int) -> dict[str, Any]:
    """Pack the largest graph, and rank it from a file in another process, both in limited memory."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    adjacency, seconds = packed_crawl(LARGEST, threads)
    row = _described(adjacency, seconds)
    row["peak GB packing"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    graph = LocalGraph(GraphState(adjacency, numbered(adjacency.n), EdgeOptions()), "")
    with tempfile.TemporaryDirectory() as folder:
        prplugin.Graph._of(graph).save(Path(folder) / "graph")
        step = NativeStep(Problem(adjacency, 0.85), threads)
        step.start(1.0 / adjacency.n)
        (timed,) = alternately(partial(step.repeat, -1.0, 1), runs=3)
        row["packed ms"] = 1e3 * timed.median
        del step, graph, adjacency
        command = [sys.executable, "-c", RANK, f"{folder}/graph"]
        found = subprocess.run(command, capture_output=True, check=False, text=True)
        if found.returncode:
            raise RuntimeError(found.stderr)
    return {**row, "limit GB": LIMIT / 1e9, **json.loads(found.stdout)}


def _described(packed: Edges, seconds: float) -> dict[str, Any]:
    held = packed.held(PackedRows)
    assert held is not None
    size = sum(array.nbytes for array in held)
    return {"vertices": packed.n, "edges": packed.m, "bytes per edge": size / packed.m, "packing s": seconds}


def packed_crawl(edges: int, threads: int) -> tuple[Edges, float]:
    """Generate a graph of about so many edges by target, pack it piece by piece, and return the seconds of both."""
    n = max(edges // 35 // 4 * 4, 8)
    out_degrees, m, began = np.zeros((min(threads, 4), n), np.int32), 0, time.perf_counter()

    def ranges() -> Iterator[Rows]:
        nonlocal m
        with ThreadPoolExecutor(threads) as pool:
            firsts, ahead = iter(range(0, n, STEP)), list[Future[tuple[Any, Any]]]()
            ahead += [pool.submit(piece, first, n) for first in islice(firsts, 2 * threads)]
            begin = 0
            while ahead:
                offsets, sources = ahead.pop(0).result()
                ahead += [pool.submit(piece, first, n) for first in islice(firsts, 1)]
                add_degrees(sources, out_degrees)
                m += sources.size
                yield Rows(offsets, sources, None, first=begin, vertices=n)
                begin += STEP

    rows = joined(ranges(), threads)
    return Edges(Grouped(rows, out_degrees.sum(axis=0), m)), time.perf_counter() - began


def piece(first: int, n: int) -> tuple[Any, Any]:
    """Return offsets and sources of the targets from `first` on: the distributions of `benchmarks.crawl`."""
    random, count, groups = np.random.default_rng([1, first]), min(STEP, n - first), n // 4
    # In-degrees by a Pareto law of mean 35. One in four consecutive vertices has out-edges.
    in_degree = np.minimum(n // 10 + 1, 4.07 * (1 - random.random(count)) ** (-1 / 1.1)).astype(np.int64)
    offsets = offsets_of(in_degree)
    m = int(offsets[-1])
    place = np.repeat(np.arange(first, first + count) // 4, in_degree)
    # Three quarters near the target, at distances that grow with its in-degree; the others by a power law, scattered.
    distance = (np.repeat(8.0 + in_degree, in_degree) * (np.exp2(6 * random.random(m, np.float32)) - 1)).astype(
        np.int64
    )
    bits = random.integers(0, 32, m, np.uint8)
    place += np.where(bits & 1, distance, -distance)
    far = np.flatnonzero((bits & 6) == 0)
    place[far] = (random.random(far.size) ** 3 * groups).astype(np.int64) * 2654435761
    place %= groups
    sources = (4 * place + ((place * 0x9E3779B1) >> 16 & 3)).astype(np.int32)
    return offsets, sources
