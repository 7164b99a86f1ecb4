"""Edges that exceed the GPU's memory, with ``method="streamed"``.

The budget of GPU memory is a tenth of the bytes of the frame, two columns of int64 ids. It covers everything that an
iteration needs: vectors, tables and both buffers. "GB/s" are the bytes that an iteration copies from the host divided
by its time; the two chunks copied last are still on the GPU and not copied again. "copy GB/s" is a plain copy of
page-locked memory in chunks of the same size in the same run, "share %" the ratio of both. "x 4 bytes" is the number of
edges per second divided by the number that this copy would transfer at 4 bytes per edge. Within the budget, `auto`
chooses the method. Ranks are compared with those of `persistent` in memory: "distance" is their L1 distance, "distance
bound" the sum of both proved error bounds.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.generate import rmat, weighted
from benchmarks.measure import timed
from benchmarks.run import Part
from prplugin.gpu import runtime
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods import streamed
from prplugin.methods.engines.packed_step import PackedStep
from prplugin.types.arrays import to_host

__all__ = ["KEYS", "TABLES", "parts", "summary"]

ITERATION, FRAME_TO_FRAME = "Iteration", "Frame to frame"

TABLES = {
    ITERATION: (
        "graph", "weights", "vertices", "edges", "budget MB", "type", "order", "bytes per edge", "chunk MB",
        "MB per iteration", "ms per iteration", "GB/s", "copy GB/s", "share %", "x 4 bytes",
    ),
    FRAME_TO_FRAME: ("graph", "frame", "budget MB", "method", "seconds", "iterations", "distance", "distance bound"),
}  # fmt: skip

KEYS = ("graph", "weights", "type", "frame")

STEPS, COPIES = 12, 12

WEIGHTED_TO = FILES_TO = 22
"""Largest scale with weights and with files; larger graphs would take minutes."""

ROW_GROUP = 1 << 20


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph."""
    if reason := streamed.unavailable_reason(None, this_machine()):
        raise click.ClickException(f"method 'streamed' cannot run here: {reason}")
    # With fewer edges per vertex a tenth of the frame would not hold the vectors of the small graph.
    graphs = [(18, 64)] if quick else [(22, 16), (24, 16)]
    return [
        Part(f"R-MAT {scale} x {factor}", partial(_rows, scale, factor), factor * 2.0 ** (scale - 22))
        for scale, factor in graphs
    ]


def _rows(scale: int, factor: int) -> Iterator[dict[str, Any]]:
    import prplugin

    name = f"R-MAT {scale} x {factor}"
    has_cudf = find_spec("cudf") is not None
    made = rmat(scale, factor, memory_space="device" if has_cudf else "host")
    edges = made.to_pandas() if has_cudf else made
    del made
    budget = len(edges) * 16 // 10
    kinds: dict[str, Callable[[], Any]] = {"none": lambda: prplugin.Graph(edges)}
    if scale <= WEIGHTED_TO:
        kinds["float64"] = lambda: prplugin.Graph(weighted(edges), weight="weight")
    for weights, make in kinds.items():
        for row in _iterations(make()._graph.adjacency, budget):
            yield {"table": ITERATION, "graph": name, "weights": weights, **row}
    yield from ({"table": FRAME_TO_FRAME, "graph": name, **row} for row in _frame_to_frame(edges, budget, has_cudf))


@contextmanager
def _memory_limit(budget: int) -> Iterator[None]:
    """Limit the GPU memory in use."""
    before = os.environ.get(runtime.BUDGET)
    os.environ[runtime.BUDGET] = str(budget)
    try:
        yield
    finally:
        if before is None:
            del os.environ[runtime.BUDGET]
        else:
            os.environ[runtime.BUDGET] = before


# --- iterations -----------------------------------------------------------------------------------------------------


def _iterations(adjacency: Any, budget: int) -> Iterator[dict[str, Any]]:
    """Yield the times of iterations by type, and of copies of the same size."""
    with _memory_limit(budget), runtime.device_allocation("device"):
        problem = Problem(adjacency, 0.85)
        pull = streamed.StreamedPull(adjacency, chunk_bytes=streamed.chunk_bytes_for(problem))
        step = PackedStep(problem, pull)
        for dtype in ("float32", "float64"):
            step.set_contribution_dtype(dtype)
            step.start(1.0 / adjacency.n)
            for _ in range(3):
                step()
            stream = pull.chunk_stream
            assert stream is not None
            before = stream.bytes_copied
            seconds = [timed(step)[0] for _ in range(STEPS)]  # returns after its norms have been copied to the host
            bytes_per_iteration = (stream.bytes_copied - before) / STEPS
            chunk = max(sum(part.nbytes for part in parts) for parts in zip(*stream.columns, strict=True))
            del stream  # frees its memory before the next type
            copy = _copies(chunk)
            median = statistics.median(seconds)
            yield {
                "vertices": adjacency.n,
                "edges": adjacency.m,
                "budget MB": budget / 1e6,
                "type": dtype,
                "order": "original" if pull.rows.order is None else "by out-degree",
                "bytes per edge": sum(chunk.nbytes for chunk in pull.data) / adjacency.m,
                "chunk MB": chunk / 1e6,
                "MB per iteration": bytes_per_iteration / 1e6,
                "ms per iteration": median * 1e3,
                "GB/s": bytes_per_iteration / median / 1e9,
                "copy GB/s": copy / 1e9,
                "share %": 100 * bytes_per_iteration / median / copy,
                "x 4 bytes": adjacency.m / median / (copy / 4),
                "samples": seconds,
            }


def _copies(size: int) -> float:
    """Return the bytes per second of consecutive copies of page-locked memory."""
    import cupy

    source, stream = streamed.page_locked(size, np.uint8), cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):  # not part of the budget
        target = cupy.empty(size, np.uint8)
    seconds = []
    for _ in range(COPIES):
        times = max(1, 2**29 // size)
        stream.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            cupy.cuda.runtime.memcpyAsync(
                target.data.ptr, source.ctypes.data, size, cupy.cuda.runtime.memcpyHostToDevice, stream.ptr
            )
        stream.synchronize()
        seconds.append((time.perf_counter() - began) / times)
    return size / statistics.median(seconds[1:])


# --- from frame to frame --------------------------------------------------------------------------------------------


def _frame_to_frame(edges: Any, budget: int, has_cudf: bool) -> Iterator[dict[str, Any]]:
    """Rank the same edges from each kind of frame within the budget, and in GPU memory."""
    import prplugin

    expected = prplugin.Graph(edges).rank(method="persistent")
    with tempfile.TemporaryDirectory() as folder:
        frames: dict[str, Callable[[], Any]] = {"pandas": lambda: edges}
        if len(edges) <= 16 << FILES_TO:
            path = Path(folder) / "edges.parquet"
            edges.to_parquet(path, row_group_size=ROW_GROUP)
            frames["Parquet"] = lambda: path
        if has_cudf:
            frames["cuDF"] = lambda: _on_gpu(edges)
        for name, make in frames.items():
            frame = make()
            with _memory_limit(budget):
                seconds, ranking = timed(lambda frame=frame: prplugin.Graph(frame).rank())
            del frame
            yield {
                "frame": name,
                "budget MB": budget / 1e6,
                "method": ranking.method,
                "seconds": seconds,
                "iterations": ranking.iterations,
                "distance": float(np.abs(to_host(ranking.ranks) - to_host(expected.ranks)).sum()),
                "distance bound": ranking.error_bound + expected.error_bound,
            }


def _on_gpu(edges: Any) -> Any:
    import cudf  # lazy import; `has_cudf` is true

    return cudf.from_pandas(edges)


def summary(results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Report the least ratio to the rate of a copy, and the number of cases within the distance bound."""
    fractions = [row["share %"] for row in results if row["table"] == ITERATION]
    rows = [row for row in results if row["table"] == FRAME_TO_FRAME]
    if not fractions or not rows:
        return "", []
    same = sum(row["distance"] <= row["distance bound"] for row in rows)
    chosen = sum(row["method"] == streamed.name for row in rows)
    words = (
        f"Iterations reach at least {min(fractions):.0f} % of the rate of a plain copy. `auto` chose `streamed` in "
        f"{chosen} of {len(rows)} cases. The distance was within its bound in {same} of {len(rows)} cases."
    )
    return words, []
