"""Edges that one frame does not hold, ranked on one GPU: two frames in device memory, and Parquet files.

"frames": two cuDF frames of an R-MAT graph: of 2**31 - 1 rows, ids of int32 in random order; and of a quarter of the
rows, ids of int64 scattered over 62 bits. "files": a folder of Parquet files (int64 ids of the same kind of graph,
Snappy, row groups of 4 million rows). Where the edges fit in one frame, prplugin may use 24 bytes of memory per edge,
so that they are packed nevertheless. "read s" is the time of reading the files once with cuDF, one file at a time.
"seconds" is from the frames or files to ranks, by `pagerank`; "build s" to the graph. "peak GB" is that of RMM's
allocations beside the frames in the call. "packed GB" are the packed edges, "vectors GB" the most that
`prplugin.graph.memory` counts for the vectors of the ranking, of which fewer may be allocated. "piece GB" are
`prplugin.frames.pieces.PART` edges, the most that are sorted at a time, in two columns of int64; "pieces" is how many
of them the peak has beside packed edges and vectors, of which two are allowed. "read at once" are the edges that are
read from files at a time. "host GB" is by how much the resident set of the process grew at most in the call.
"residual" is ||G x - x|| in L1 of the ranks x, in float64 by plain CuPy, from the same frames.
"""

from __future__ import annotations

import gc
import os
import re
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
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
from benchmarks.run import Part, chosen
from prplugin.frames import pieces as reader
from prplugin.gpu import runtime
from prplugin.graph.memory import Counts, footprint
from prplugin.methods import packed
from prplugin.types.edges import MAX_NARROW, PackedParts

__all__ = ["COLUMNS", "KEYS", "parts"]

COLUMNS = (
    "edges in", "ids", "edges", "vertices", "read s", "read at once", "seconds", "build s",
    "edges per second to the graph", "method", "iterations", "packed bytes per edge", "peak GB", "packed GB",
    "vectors GB", "piece GB", "pieces", "host GB", "error bound", "residual",
)  # fmt: skip

KEYS = "edges in", "ids", "read at once"

DRAWN = 1 << 27
"""Edges that are drawn at a time."""

FILE_ROWS, FILES, GROUP_ROWS = 1 << 27, 4, 1 << 22

QUICK = 8
"""Divisor of rows and of parts in a quick run; 24 bytes per edge then still hold the smallest hash table."""

SHIFTS = 4, 3, 2
"""Binary logarithms of the parts of a piece that are read from files at once."""

ALPHA = 0.85


def parts(data: Path | None, quick: bool, only: Sequence[str] = ()) -> list[Part]:
    """Return one part per kind of source."""
    if reason := runtime.unavailable_reason():
        raise click.ClickException(f"this benchmark cannot run here: {reason}")
    import rmm

    rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())
    divisor = QUICK if quick else 1
    rows, file_rows = MAX_NARROW // divisor, FILE_ROWS // divisor
    every = [
        Part("frames, int32", partial(_of_frames, rows, "int32", divisor), 4),
        Part("files", partial(_of_files, file_rows, divisor)),
        Part("frames, scattered int64", partial(_of_frames, rows // 4, "scattered int64", divisor)),
    ]
    return chosen(every, only)


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
    frames = list(_frames(rows, 2, ids))
    with _memory_for(2 * rows, divisor):
        about = {"edges in": f"2 frames of {rows:,} rows", "ids": ids}
        row, ranks = _ranked(frames, about)
    yield {**row, "residual": residual(frames, ranks)}


def _of_files(rows: int, divisor: int) -> Iterator[dict[str, Any]]:
    import cudf

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for number, frame in enumerate(_frames(rows, FILES, "int64")):
            frame.to_parquet(f"{folder}/{number}.parquet", row_group_size_rows=GROUP_ROWS // divisor)
        del frame
        _free_memory()
        files = [f"{folder}/{number}.parquet" for number in range(FILES)]
        read, _ = timed(lambda: deque(map(cudf.read_parquet, files), maxlen=0))  # keeps none
        about = {"edges in": f"{FILES} files", "ids": "int64", "read s": read}
        for shift in SHIFTS:
            with _memory_for(FILES * rows, divisor, shift):
                row, ranks = _ranked(folder, {**about, "read at once": reader.READ})
            frames = [cudf.read_parquet(file) for file in files]
            yield {**row, "residual": residual(frames, cudf.from_pandas(ranks))}
            del frames
            _free_memory()


@contextmanager
def _memory_for(rows: int, divisor: int, shift: int | None = None) -> Iterator[None]:
    """Keep prplugin from using the memory that one frame of all edges needs; divide its parts, too."""
    budget = {} if rows > MAX_NARROW else {runtime.BUDGET: str(24 * rows)}
    part = reader.PART // divisor
    sizes = {"PART": part, "READ": reader.READ // divisor if shift is None else part >> shift}
    with patch.dict(os.environ, budget), patch.multiple(reader, **sizes):
        yield


def _ranked(source: Any, about: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    import rmm

    prplugin.pagerank(source, top=1)  # compiles the kernels
    _free_memory()
    memory = rmm.mr.StatisticsResourceAdaptor(rmm.mr.get_current_device_resource())
    rmm.mr.set_current_device_resource(memory)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of the resident set
    resident = _resident("VmRSS")
    seconds, ranks = timed(partial(prplugin.pagerank, source))
    host, device = _resident("VmHWM") - resident, memory.allocation_counts.peak_bytes
    _free_memory()
    built, graph = timed(partial(prplugin.Graph, source))
    ranking = graph.rank()
    edges = graph._graph.adjacency.get(PackedParts)
    vectors = footprint(packed.memory, Counts.of(graph._graph.adjacency), 8, many=True).device.held
    return {
        **about,
        "edges": graph.number_of_edges,
        "vertices": len(ranks),
        "seconds": seconds,
        "build s": built,
        "edges per second to the graph": graph.number_of_edges / built,
        "method": ranking.method,
        "iterations": ranking.iterations,
        "packed bytes per edge": edges.nbytes / graph.number_of_edges,
        "peak GB": device / 1e9,
        "packed GB": edges.nbytes / 1e9,
        "vectors GB": vectors / 1e9,
        "piece GB": 16 * reader.PART / 1e9,
        "pieces": (device - edges.nbytes - vectors) / (16 * reader.PART),
        "host GB": host / 1e9,
        "error bound": ranking.error_bound,
    }, ranks


def _resident(what: str) -> int:
    """Return the present or the largest resident set of this process in bytes."""
    found = re.search(rf"{what}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return 1024 * int(found[1])


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
