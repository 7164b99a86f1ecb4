"""Edges that one frame does not hold, ranked on one GPU: two frames in device memory, and Parquet files.

"frames": two cuDF frames of an R-MAT graph: of 2**31 - 1 rows, ids of int32 in random order; and of a quarter of the
rows, ids of int64 scattered over 62 bits. "files": a folder of Parquet files (int64 ids of the same kind of graph,
Snappy, row groups of 4 million rows). Where the edges fit in one frame, prplugin may use 24 bytes of memory per edge,
so that they are packed nevertheless. "read s" is the time of reading the files once with cuDF, one file at a time.
"seconds" is from the frames or files to ranks, by `pagerank`; "build s" to the graph. "bytes per edge" is the peak of
RMM's allocations beside the frames, over the edges. "residual" is ||G x - x|| in L1 of the ranks x, in float64 by plain
CuPy, from the same frames.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import numpy as np

import prplugin
from benchmarks.generate import frame_of, rmat_part, scattered_ids
from benchmarks.measure import timed
from benchmarks.run import Part
from prplugin.frames import pieces as reader
from prplugin.gpu import runtime
from prplugin.types.edges import MAX_NARROW

__all__ = ["COLUMNS", "parts"]

COLUMNS = (
    "edges in", "ids", "edges", "vertices", "read s", "seconds", "build s", "edges per second to the graph", "method",
    "iterations", "packed bytes per edge", "bytes per edge", "error bound", "residual",
)  # fmt: skip

DRAWN = 1 << 27
"""Edges that are drawn at a time."""

FILE_ROWS, FILES, GROUP_ROWS = 1 << 27, 4, 1 << 22

QUICK = 8
"""Divisor of rows and of parts in a quick run; 24 bytes per edge then still hold the smallest hash table."""

ALPHA = 0.85


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per kind of source."""
    if reason := runtime.unavailable_reason():
        raise click.ClickException(f"this benchmark cannot run here: {reason}")
    divisor = QUICK if quick else 1
    rows, file_rows = MAX_NARROW // divisor, FILE_ROWS // divisor
    return [
        Part("frames, int32", partial(_of_frames, rows, "int32", divisor), 4),
        Part("files", partial(_of_files, file_rows, divisor)),
        Part("frames, scattered int64", partial(_of_frames, rows // 4, "scattered int64", divisor)),
    ]


def _frames(rows: int, count: int, ids: str) -> Iterator[Any]:
    """Yield frames of a graph of 32 edges per vertex."""
    import cupy

    scale = max(4, (rows * count).bit_length() - 5)
    of_position = scattered_ids(1 << scale, xp=cupy) if ids == "scattered int64" else None
    for first in range(0, rows * count, rows):
        dtype = np.int32 if ids == "int32" else np.int64
        columns = [cupy.empty(rows, dtype) for _ in range(2)]
        for begin in range(0, rows, DRAWN):
            end = min(begin + DRAWN, rows)
            drawn = rmat_part(scale, first + begin, first + end, 32, memory_space="device")
            for column, name in zip(columns, ("src", "dst"), strict=True):
                values = drawn[name].values
                column[begin:end] = values if of_position is None else of_position[values]
        yield frame_of(*columns)


def _of_frames(rows: int, ids: str, divisor: int) -> Iterator[dict[str, Any]]:
    import rmm

    memory = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaAsyncMemoryResource())
    rmm.mr.set_current_device_resource(memory)
    frames = list(_frames(rows, 2, ids))
    _free_memory()
    before = memory.allocation_counts.current_bytes
    with _memory_for(2 * rows, divisor):
        row, ranks = _ranked(frames, {"edges in": f"2 frames of {rows:,} rows", "ids": ids})
    peak = memory.allocation_counts.peak_bytes - before
    yield {**row, "bytes per edge": peak / row["edges"], "residual": residual(frames, ranks)}


def _of_files(rows: int, divisor: int) -> Iterator[dict[str, Any]]:
    import cudf

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for number, frame in enumerate(_frames(rows, FILES, "int64")):
            frame.to_parquet(f"{folder}/{number}.parquet", row_group_size_rows=GROUP_ROWS)
        del frame
        _free_memory()
        files = [f"{folder}/{number}.parquet" for number in range(FILES)]
        read, _ = timed(lambda: deque(map(cudf.read_parquet, files), maxlen=0))  # keeps none
        with _memory_for(FILES * rows, divisor):
            row, ranks = _ranked(folder, {"edges in": f"{FILES} files", "ids": "int64", "read s": read})
        frames = [cudf.read_parquet(file) for file in files]
        yield {**row, "residual": residual(frames, cudf.from_pandas(ranks))}


@contextmanager
def _memory_for(rows: int, divisor: int) -> Iterator[None]:
    """Keep prplugin from using the memory that one frame of all edges needs; divide its parts, too."""
    budget = {} if rows > MAX_NARROW else {runtime.BUDGET: str(24 * rows)}
    with patch.dict(os.environ, budget), patch.object(reader, "PART", reader.PART // divisor):
        yield


def _ranked(source: Any, about: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    prplugin.pagerank(source, top=1)  # compiles the kernels
    _free_memory()
    seconds, ranks = timed(partial(prplugin.pagerank, source))
    _free_memory()
    built, graph = timed(partial(prplugin.Graph, source))
    ranking = graph.rank()
    edges: Any = graph._graph.adjacency.edges
    return {
        **about,
        "edges": graph.number_of_edges,
        "vertices": len(ranks),
        "seconds": seconds,
        "build s": built,
        "edges per second to the graph": graph.number_of_edges / built,
        "method": ranking.method,
        "iterations": ranking.iterations,
        "packed bytes per edge": edges.nbytes / edges.m,
        "error bound": ranking.error_bound,
    }, ranks


def residual(frames: list[Any], ranks: Any) -> float:
    """Return ||G x - x|| in L1, independently of prplugin."""
    import cupy

    ids, x = ranks["vertex"].values, ranks["pagerank"].values
    n = ids.size
    dense = int(ids[-1]) - int(ids[0]) == n - 1

    def positions(column: Any) -> Any:
        return column - ids[0] if dense else cupy.searchsorted(ids, column)

    def pieces() -> Iterator[tuple[Any, Any]]:
        for frame in frames:
            for first in range(0, len(frame), DRAWN):
                yield tuple(positions(frame[name].values[first : first + DRAWN]) for name in ("src", "dst"))

    out_degree, pulled = cupy.zeros(n, cupy.uint32), cupy.zeros(n)
    for source, _ in pieces():
        cupy.add.at(out_degree, source, cupy.uint32(1))
    contributions = x / cupy.maximum(out_degree, 1)
    for source, target in pieces():
        cupy.add.at(pulled, target, contributions[source])
    dangling = float(x[out_degree == 0].sum())
    return float(cupy.abs(ALPHA * pulled + (ALPHA * dangling + 1 - ALPHA) / n - x).sum())


def _free_memory() -> None:
    """Free what was used before."""
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
