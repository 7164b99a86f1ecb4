"""Decoding of WebGraph's BV files, and the ranking of a file from its path to its frame.

"decode" is from the files, in the page cache, to CSR arrays: million arcs per second of elapsed time, and per second of
the processor time of all threads, which shows the speed of a core on a machine that runs other work, too. "graph" also
builds the graph: of `-t`, read with its columns the other way round, the lists of the file are the in-edges that a
ranking reads. "Parquet" builds the graph from a Parquet file of the arcs of the same crawl, whose vertices have other
numbers.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import prplugin
from benchmarks.measure import alternately
from prplugin.io import webgraph

COLUMNS = (
    "file", "threads", ".offsets", "arcs", "bits per arc", "decode, million arcs/s", "per s of processor time",
    "graph, ms", "Parquet to graph, ms",
)  # fmt: skip

GRAPHS = "cnr-2000", "cnr-2000-t"
RUNS = 15


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield a row per file, number of threads, and whether there are offsets."""
    if data is None or not (data / "webgraph").is_dir():
        raise FileNotFoundError("no data: set PRPLUGIN_DATA to a folder that has the folders webgraph and graphs")
    cores = sorted(os.sched_getaffinity(0))
    for name in GRAPHS:
        for threads in (1, 2)[: len(cores)]:
            os.sched_setaffinity(0, cores[:threads])
            try:
                with tempfile.TemporaryDirectory() as folder:
                    base = Path(folder) / name
                    for suffix in webgraph.WEBGRAPH_SUFFIXES:
                        shutil.copy(data / "webgraph" / f"{name}{suffix}", folder)
                    yield _row(name, threads, base, "yes", data, 3 if quick else RUNS)
                    base.with_suffix(".offsets").unlink()
                    yield _row(name, threads, base, "no", data, 3 if quick else RUNS)
            finally:
                os.sched_setaffinity(0, cores)


def _row(name: str, threads: int, base: Path, offsets: str, data: Path, runs: int) -> dict[str, Any]:
    ends = ["destination", "source"] if name.endswith("-t") else []
    parquet = data / "graphs" / "cnr-2000.parquet"
    busy: list[float] = []
    decoded, graph, other = alternately(
        _counting(busy, lambda: webgraph.decode(str(base))),
        lambda: _in_edges(prplugin.Graph.from_file(f"{base}.graph", *ends)),
        lambda: _in_edges(prplugin.Graph.from_file(parquet)),
        runs=runs,
    )
    m = decoded.result.indices.size
    return {
        "file": name,
        "threads": threads,
        ".offsets": offsets,
        "arcs": m,
        "bits per arc": 8 * Path(f"{base}.graph").stat().st_size / m,
        "decode, million arcs/s": m / decoded.median / 1e6,
        "per s of processor time": m / statistics.median(busy[1:]) / 1e6,
        "graph, ms": graph.median * 1e3,
        "Parquet to graph, ms": other.median * 1e3,
        "samples": {"decode": decoded.seconds, "processor": busy, "graph": graph.seconds, "parquet": other.seconds},
    }


def _in_edges(graph: prplugin.Graph) -> Any:
    """Build what a ranking reads."""
    return graph.csc()


def _counting(busy: list[float], call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that also appends its processor time, of all threads, to `busy`."""

    def counted() -> Any:
        began = time.process_time()
        result = call()
        busy.append(time.process_time() - began)
        return result

    return counted
