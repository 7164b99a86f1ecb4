"""Segments of Bowen 2022: the time of every kernel on each, schedules made of these times, and segments on the CPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.measure import repeatedly
from benchmarks.overlap import median_ms, recorded
from benchmarks.papers import implementations
from benchmarks.run import Row
from prplugin.cpu.run_sums import ThreadedSums
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods.engines import gpu_pull
from prplugin.papers._host_rows import Recorder, host_rows, unrecorded
from prplugin.papers.segmented import (
    CANDIDATES,
    GRIDS,
    Schedule,
    Segment,
    SegmentedPull,
    SortedRows,
    host_ms,
    timed,
)
from prplugin.types.arrays import to_host

__all__ = [
    "CONCURRENT", "FORCED", "ORDERS", "PAPER_ORDER", "MeasuredSegment", "fields", "forced", "host_ms", "kernel_name",
    "measured_segments", "schedules", "yaml",
]  # fmt: skip

CPU = "CPU, all threads"

EVERY = (
    *CANDIDATES,
    *(replace(kernel, threads=1024) for kernel in CANDIDATES if kernel.method in ("node", "warp")),
    Segment(method="block", threads=512),
)
"""Kernels that are timed on every segment: those of `segmented`, and with the paper's threads per block."""

FORCED = (0, 1, 2, 4, 8)
"""Numbers of segments on the CPU."""

CONCURRENT, AFTER, PAPER_ORDER = "at the same time", "after the GPU", "after the GPU, all scores copied"
ORDERS = CONCURRENT, AFTER, PAPER_ORDER

RECORDED = 7


# --- times of all kernels -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeasuredSegment:
    """A segment, and the time of every kernel on it.

    Attributes
    ----------
    first, last : int
        Its rows in descending order of in-degree, the last one excluded.
    edges, greatest, least : int
        Number of edges, and in-degrees of its first and last row.
    kernels : tuple of Segment
        Every kernel with as many blocks as the rows need.
    grids : tuple of Segment
        Every kernel with fewer blocks.
    cpu_ms : float
        Time on all CPU threads, without copies.
    """

    first: int
    last: int
    edges: int
    greatest: int
    least: int
    kernels: tuple[Segment, ...]
    grids: tuple[Segment, ...]
    cpu_ms: float

    def least_ms(self, kernel: str) -> float | str:
        """Return the least time of a kernel with any threads, lanes and blocks; empty if its rows are too long."""
        return min((each.ms for each in self.kernels + self.grids if each.method == kernel), default="")

    def fastest(self, *, grids: bool = True) -> Segment:
        """Return the fastest kernel, with or without smaller grids."""
        return min(self.kernels + (self.grids if grids else ()), key=lambda segment: segment.ms)


def measured_segments(adjacency: Adjacency, segments: int) -> tuple[SortedRows, list[MeasuredSegment]]:
    """Time every kernel with every grid, and the CPU, on each segment."""
    import cupy  # lazy import: callers run on the GPU

    rows = SortedRows(adjacency.on("device"), segments)
    contributions, row_sums = cupy.full(rows.n, 1.0 / rows.n, "float32"), cupy.empty(rows.n)  # as in most iterations
    offsets = to_host(rows.offsets)
    found = []
    for span in rows.spans:
        first, last = span
        kernels = timed(EVERY, rows, span, contributions, row_sums)
        smaller = [
            replace(kernel, blocks=blocks) for kernel in kernels for blocks in GRIDS if blocks < (kernel.blocks or 0)
        ]
        found.append(
            MeasuredSegment(
                first, last, int(offsets[last] - offsets[first]),
                int(offsets[first + 1] - offsets[first]), int(offsets[last] - offsets[last - 1]),
                tuple(kernels), tuple(timed(smaller, rows, span, contributions, row_sums)),
                host_ms(rows, [span], this_machine().threads),
            )
        )  # fmt: skip
    return rows, found


def kernel_name(segment: Segment) -> str:
    """Return method, lanes and threads per block."""
    lanes = "" if segment.lanes is None else f"/{segment.lanes}"
    return f"{segment.method}{lanes}, {segment.threads} threads"


def schedules(rows: SortedRows, measured: list[MeasuredSegment]) -> dict[str, Schedule]:
    """Return the schedules by name: the best single kernel first, the fastest kernel with the fastest grid last."""
    sums: dict[str, list[Segment]] = {}
    for segment in measured:
        for kernel in segment.kernels:
            sums.setdefault(kernel_name(kernel), []).append(kernel)
    complete = {name: kernels for name, kernels in sums.items() if len(kernels) == len(measured)}
    single = min(complete, key=lambda name: sum(kernel.ms for kernel in complete[name]))
    chosen = {
        f"best single kernel: {single}": complete[single],
        "fastest kernel": [segment.fastest(grids=False) for segment in measured],
        "fastest kernel and grid": [segment.fastest() for segment in measured],
    }
    return {name: Schedule(n=rows.n, m=rows.m, segments=tuple(segments)) for name, segments in chosen.items()}


def yaml(segments: list[dict[str, Any]]) -> str:
    """Return the times of all kernels in the format of the paper's code, one document per kernel.

    Parameters
    ----------
    segments : list of dict
        Fields of `MeasuredSegment`.
    """
    by_kernel: dict[str, list[str]] = {}
    for segment in segments:
        about = {
            "start": segment["first"],
            "end": segment["last"],
            "avg_deg": segment["edges"] / max(1, segment["last"] - segment["first"]),
            "min_deg": segment["least"],
            "max_deg": segment["greatest"],
            "num_edges": segment["edges"],
        }
        kernels, grids = ([Segment(**kernel) for kernel in segment[name]] for name in ("kernels", "grids"))
        times = {f"{kernel_name(each)}, as many blocks as needed": each.ms for each in kernels}
        times |= {f"{kernel_name(each)}, {each.blocks} blocks": each.ms for each in grids}
        for kernel, ms in {**times, CPU: segment["cpu_ms"]}.items():
            fields = {**about, "millis": ms, "gteps": segment["edges"] / max(ms, 1e-9) / 1e6}
            lines = [f"        {name}: {value:.10g}" for name, value in fields.items()]
            by_kernel.setdefault(kernel, []).append("\n".join(["      - " + lines[0].strip(), *lines[1:]]))
    documents = (
        f"---\nconfig:\n  device: {'CPU' if kernel == CPU else 'GPU'}\n  kernel: {kernel}\nresults:\n  - segments:\n"
        + "\n".join(entries)
        for kernel, entries in by_kernel.items()
    )
    return "\n".join(documents) + "\n"


# --- segments on the CPU --------------------------------------------------------------------------------------------


class AfterTheGpu:
    """Row sums of a schedule whose segments on the CPU follow those of the GPU, as in the paper."""

    def __init__(self, pull: SegmentedPull) -> None:
        self._pull, self.rounding_depth = pull, pull.rounding_depth
        self.span: Recorder = unrecorded

    def __call__(self, contributions: Any, row_sums: Any) -> None:
        """Compute the sum of each row."""
        import cupy  # lazy import: device arrays exist

        host = self._pull.host
        assert host is not None
        self._pull.span = self.span
        self._pull.enqueue_segments(contributions, row_sums)
        cupy.cuda.get_current_stream().synchronize()
        host.enqueue_gather(contributions, self.span)
        host.finish_into(row_sums, self.span)


class WholeScores:
    """Row sums on the host from a copy of all contributions, not only those that the rows read; see `HostPull`."""

    def __init__(self, runs: gpu_pull.Layout, n: int, threads: int) -> None:
        import cupy
        import cupyx

        self._rows, sources, bounds, places, _ = host_rows(runs, n)
        self.vertices, self.edges, self.sources = self._rows.size, places.size, n
        self._sum = ThreadedSums(bounds, to_host(sources)[places], threads)
        self._contributions, self._sums = cupyx.empty_pinned(n), cupyx.empty_pinned(self.vertices)
        self._device_sums = cupy.empty(self.vertices)

    def enqueue_gather(self, contributions: Any, span: Recorder) -> None:
        """Enqueue the copy of all contributions, float64, to the host."""
        import cupy

        stream = cupy.cuda.get_current_stream()
        with span("down", "copy", stream):
            contributions.get(stream=stream, out=self._contributions, blocking=False)

    def finish_into(self, row_sums: Any, span: Recorder) -> None:
        """Sum the rows, and write the sums to `row_sums`."""
        import cupy

        stream = cupy.cuda.get_current_stream()
        stream.synchronize()
        with span("tails", "host", None):
            self._sum(self._contributions, None, self._sums)
        with span("up", "copy", stream):
            self._device_sums.set(self._sums, stream=stream)
        with span("add", "GPU", stream):
            row_sums[self._rows] = self._device_sums


def forced(
    adjacency: Adjacency,
    rows: SortedRows,
    measured: list[MeasuredSegment],
    run: Callable[[Any], int],
) -> Iterator[Row]:
    """Yield the times of full runs with the fastest kernels and given numbers of segments on the CPU.

    The segments on the CPU are those with the least ratio of CPU time to GPU time. `run` iterates a step to the end and
    returns the number of iterations.
    """
    fastest = [segment.fastest() for segment in measured]
    order = sorted(range(len(measured)), key=lambda k: measured[k].cpu_ms / max(fastest[k].ms, 1e-9))
    threads = this_machine().threads
    for count in FORCED:
        on_cpu = sorted(order[:count])
        segments = [
            Segment(method="host", threads=threads, ms=measured[k].cpu_ms) if k in on_cpu else segment
            for k, segment in enumerate(fastest)
        ]
        schedule = Schedule(n=rows.n, m=rows.m, segments=tuple(segments))
        for when in ORDERS if count else ORDERS[:1]:
            pull: Any = SegmentedPull(rows, schedule)
            if when == PAPER_ORDER:
                pull.host = WholeScores(rows.runs([rows.spans[k] for k in on_cpu]), rows.n, threads)
            host = pull.host
            if when != CONCURRENT:
                pull = AfterTheGpu(pull)
            step = gpu_pull.DeviceStep(Problem(adjacency, implementations.ALPHA), pull)
            iterations: list[int] = []
            samples = repeatedly(
                lambda step=step, iterations=iterations: iterations.append(run(step)),
                runs=implementations.RUNS, limit=implementations.LIMIT,
            )  # fmt: skip
            ranks = to_host(step.ranks()).copy()  # before further iterations
            with recorded(pull) as spans:
                for _ in range(RECORDED):
                    step()
            seconds = statistics.median(samples)
            yield {
                "CPU segments": count,
                "order": when if count else "none",
                "% of the edges": 100 * sum(measured[k].edges for k in on_cpu) / rows.m,
                "iterations": iterations[-1],
                "s": seconds,
                "GTEPS": rows.m * iterations[-1] / seconds / 1e9,
                "MB down": 8 * host.sources / 1e6 if host else 0.0,
                "MB up": 8 * host.vertices / 1e6 if host else 0.0,
                "GPU ms": median_ms(spans, "segments"),
                **{
                    column: median_ms(spans, what) if host else ""
                    for column, what in (("down ms", "down"), ("CPU ms", "tails"), ("up ms", "up"))
                },
                "samples": samples,
                "segments on the CPU": on_cpu,
                "ranks": ranks,
            }


def fields(segment: MeasuredSegment) -> dict[str, Any]:
    """Return the fields of a segment as JSON holds them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(segment).items()}
