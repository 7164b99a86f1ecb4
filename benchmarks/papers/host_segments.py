"""Segments of Bowen 2022: the time of every kernel on each, and schedules made of these times."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from prplugin.graph.edges import Edges
from prplugin.machine import this_machine
from prplugin.papers.segmented import (
    CANDIDATES,
    GRIDS,
    Schedule,
    Segment,
    SortedRows,
    host_ms,
    timed,
)
from prplugin.types.arrays import to_host

CPU = "CPU, all threads"

EVERY = (
    *CANDIDATES,
    *(replace(kernel, threads=1024) for kernel in CANDIDATES if kernel.method in ("node", "warp")),
    Segment(method="block", threads=512),
)
"""Kernels that are timed on every segment: those of `segmented`, and with the paper's threads per block."""


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


def measured_segments(adjacency: Edges, segments: int) -> tuple[SortedRows, list[MeasuredSegment]]:
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


def fields(segment: MeasuredSegment) -> dict[str, Any]:
    """Return the fields of a segment as JSON holds them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(segment).items()}
