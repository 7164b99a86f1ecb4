"""Segments of similar in-degree, each with the fastest kernel (Bowen 2022); `segments=`, `schedule=`, `cpu=`."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np

from prplugin.cpu.sorting import stable_order
from prplugin.errors import InvalidOptionError
from prplugin.graph.adjacency import Adjacency, group_sizes
from prplugin.graph.memory import Size
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._host_rows import HostPull, ThreadedSums, host_rows
from prplugin.methods.papers._rows import LANES, RowsPull
from prplugin.methods.papers._schedule import Schedule, Segment, cut, for_the_host
from prplugin.methods.papers._timing import best_seconds
from prplugin.numerics.rounding import compensated_depth
from prplugin.options import validate_int
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges, Floats

__all__ = ["Schedule", "Segment", "cost", "name", "nondeterministic", "prepare", "runs_on", "unavailable_reason"]

logger = logging.getLogger(__name__)

name = "segmented"
runs_on = "gpu"
nondeterministic = True  # a measured schedule, and so the order of additions, differs between runs

CANDIDATES = (
    Segment(method="node", threads=256),
    *(Segment(method="warp", threads=256, lanes=lanes) for lanes in LANES),
    *(Segment(method="block", threads=threads) for threads in (64, 128, 256, 1024)),
)
"""Kernels that are timed on every segment; the last accepts rows of any length."""

LONGEST = 1 << 14
"""Most edges per thread for which a candidate is timed: some milliseconds."""

LAUNCHES = 10
"""Most consecutive launches that are timed; fewer if they fill a millisecond."""


memory = replace(
    gpu_pull.MEMORY,
    arrays=("rows", "out_weight"),
    edge=Size(index=1, normalized_weight=1, weight=1),  # a second copy of the in-edges, by descending in-degree
    vertex=replace(gpu_pull.MEMORY.vertex, index=1, offset=1),
    preparing_edge=Size(0.5, index=5, weight=2),  # buffers for sorting them
    preparing_vertex=Size(2 * 8, index=1),
)
unavailable_reason = partial(gpu_pull.unavailable_reason, memory)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate the measurement and a ranking, fitted to benchmarks/results/kernels.md."""
    return 0.2 + gpu_pull.ITERATIONS * (75e-6 + 1.2e-11 * adjacency.m + 6.5e-11 * adjacency.n)


def prepare(
    problem: Problem,
    machine: Machine,
    *,
    segments: int = 24,
    schedule: str | PathLike[str] | Schedule = "measured",
    save: str | PathLike[str] | None = None,
    cpu: bool = False,
) -> Step:
    """Sort rows by descending in-degree, partition them into segments, and choose a kernel for each.

    The schedule is logged at INFO by the logger "prplugin.methods.papers.segmented".

    Parameters
    ----------
    segments : int, default 24
        Number of segments, of about equally many edges; fewer if fewer rows have edges. 24 was best in the paper.
    schedule : "measured", path or Schedule, default "measured"
        "measured" times the kernels and takes the fastest for each segment. With a saved schedule the bits of the ranks
        are the same in every run.
    save : path, optional
        File to which the schedule is written, as JSON.
    cpu : bool, default False
        Whether host threads may process some segments while the GPU processes the others.
    """
    segments = validate_int("segments", segments)
    if not isinstance(cpu, (bool, np.bool_)):
        raise InvalidOptionError(f"cpu must be True or False, not {cpu!r}.")
    if not isinstance(schedule, (str, PathLike, Schedule)):
        raise InvalidOptionError(f"schedule must be 'measured', a path or a Schedule, not {schedule!r}.")
    if not isinstance(schedule, Schedule) and schedule != "measured":
        schedule = Schedule.load(schedule)
    adjacency = problem.adjacency.on("device")
    rows = SortedRows(adjacency, segments)
    chosen = schedule if isinstance(schedule, Schedule) else _measured(rows, machine.threads if cpu else 0)
    chosen.check(adjacency.n, adjacency.m, len(rows.spans), cpu=bool(cpu))
    logger.info("schedule for %d vertices and %d edges\n%s", adjacency.n, adjacency.m, chosen)
    if save is not None:
        chosen.save(save)
    return gpu_pull.DeviceStep(problem, SegmentedPull(rows, chosen))


class SortedRows:
    """The in-edges row by row, by descending in-degree; segment k consists of the rows ``spans[k]``.

    The paper sorts by out-degree; the cost of a pull depends on the in-degree. The edges are sorted in the same order,
    so that a segment reads a contiguous range. `order` holds the rows' positions in the result, `offsets` the offsets
    of the rows in the layout.
    """

    def __init__(self, adjacency: Adjacency, segments: int) -> None:
        self.n, self.m = adjacency.n, adjacency.m
        source, target = adjacency.edges.source, adjacency.edges.destination
        xp = namespace(source)
        degrees = group_sizes(target, self.n)
        order = stable_order(degrees.max() - degrees)
        place = xp.empty(self.n, source.dtype)
        place[order] = xp.arange(self.n, dtype=source.dtype)
        # The graph with its targets, not its sources, renumbered in that order.
        sorted_graph = Adjacency(Edges(source, place[target], adjacency.edges.weights, self.n))
        offsets, sources, weights = sorted_graph.csc
        self.order = order.astype(sources.dtype)
        normalized_weights = gpu_pull.NormalizedWeights(weights, adjacency, sources)
        self.layout = gpu_pull.Layout(self.order, offsets[:-1], offsets[1:], sources, normalized_weights)
        self.offsets = offsets
        self.spans = list(pairwise(cut(offsets, segments)))

    def runs(self, spans: list[tuple[int, int]]) -> gpu_pull.Layout:
        """Return the layout of only the rows of some segments."""
        xp, layout, parts = namespace(self.order), self.layout, [slice(*span) for span in spans]
        rows, begins, ends = (
            xp.concatenate([array[part] for part in parts]) for array in (self.order, layout.begins, layout.ends)
        )
        return layout._replace(rows=rows, begins=begins, ends=ends)


class SegmentedPull:
    """Computes row sums by a schedule."""

    def __init__(self, rows: SortedRows, schedule: Schedule) -> None:
        pairs = list(zip(schedule.segments, rows.spans, strict=True))
        self._pulls = [_launch(segment, rows.layout, span) for segment, span in pairs if segment.method != "host"]
        self.rounding_depth = compensated_depth(rows.m)
        self._helper = None
        if schedule.host_segments:
            threads = max(schedule.segments[k].threads for k in schedule.host_segments)
            self._helper = HostPull(rows.runs([rows.spans[k] for k in schedule.host_segments]), rows.n, threads)
        self._recorded: tuple[Any, Any, Any] = (None, None, None)

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        if self._helper is None:
            self._sum(contributions, pulled)
            return
        self._helper.enqueue_gather(contributions)
        pulled.fill(0.0)  # the host's sums are added to it
        self._sum(contributions, pulled)
        self._helper.finish_into(pulled)

    def _sum(self, contributions: Floats, pulled: Floats) -> None:
        # A launch from Python takes longer than a small segment; replaying a CUDA graph costs one launch for all
        # segments.
        graph, read, written = self._recorded
        if read is contributions and written is pulled:
            graph.launch()
        elif self._pulls:
            self._recorded = (_recorded(self._pulls, contributions, pulled), contributions, pulled)


def _launch(segment: Segment, layout: gpu_pull.Layout, span: tuple[int, int]) -> RowsPull:
    (first, last), threads = span, segment.threads
    return RowsPull(
        layout, segment.method, threads=threads, lanes=segment.lanes, blocks=segment.blocks, first=first, last=last
    )


def _recorded(pulls: list[RowsPull], contributions: Any, pulled: Any) -> Any:
    """Launch kernels, and return a CUDA graph that launches them again.

    They run once before the capture, since compilation and allocation cannot be captured.
    """
    import cupy  # lazy import: availability was checked by `unavailable_reason`

    for pull in pulls:
        pull(contributions, pulled)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            for pull in pulls:
                pull(contributions, pulled)
        finally:
            graph = stream.end_capture()
    return graph


# --- measuring ----------------------------------------------------------------------------------------------------


def _measured(rows: SortedRows, threads: int) -> Schedule:
    """Time every candidate on every segment; with `threads`, move segments to the host if that is faster."""
    import cupy  # lazy import: availability was checked by `unavailable_reason`
    import cupyx

    contributions, pulled = cupy.full(rows.n, 1.0 / rows.n), cupy.empty(rows.n)
    segments = [_fastest(rows, span, contributions, pulled) for span in rows.spans]
    copy_ms = 0.0
    if threads:
        here = cupyx.empty_pinned(rows.n)
        copy_ms = 1e3 * best_seconds(lambda: contributions.get(out=here))
        host_ms = [
            _host_ms(rows, span, threads) + copy_ms * (span[1] - span[0]) / rows.n  # the sums are copied back as fast
            for span in rows.spans
        ]
        for k in for_the_host([segment.ms for segment in segments], host_ms, copy_ms):
            segments[k] = Segment(method="host", threads=threads, ms=host_ms[k])
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return Schedule(n=rows.n, m=rows.m, segments=tuple(segments), device=properties["name"].decode(), copy_ms=copy_ms)


def _fastest(rows: SortedRows, span: tuple[int, int], contributions: Any, pulled: Any) -> Segment:
    """Return the fastest candidate for a segment; candidates far behind the best are timed only roughly.

    Several launches are captured and replayed, so that the overhead of Python is not measured. Indices are then cached
    more often than in an iteration, for all candidates alike.
    """
    longest = int(rows.offsets[span[0] + 1] - rows.offsets[span[0]])
    best: Segment | None = None
    for candidate in CANDIDATES:
        if longest > LONGEST * candidate.threads_a_row and candidate is not CANDIDATES[-1]:
            continue
        pull = _launch(candidate, rows.layout, span)
        ms = 1e3 * best_seconds(partial(pull, contributions, pulled), times=1)
        if best is None or ms < 4 * best.ms + 0.2:  # includes Python's launch overhead
            launches = math.ceil(1 / max(ms, 1 / LAUNCHES))
            ms = 1e3 * best_seconds(_recorded([pull] * launches, contributions, pulled).launch) / launches
        if best is None or ms < best.ms:
            best = replace(candidate, blocks=pull.blocks, ms=ms)
    assert best is not None  # the last candidate accepts rows of any length
    return best


def _host_ms(rows: SortedRows, span: tuple[int, int], threads: int) -> float:
    _, sources, bounds, places, weights = host_rows(rows.runs([span]), rows.n)
    sum_rows = ThreadedSums(bounds, places, threads)
    contributions, sums = np.full(max(1, sources.size), 1.0 / rows.n), np.empty(bounds.size - 1)
    return 1e3 * best_seconds(lambda: sum_rows(contributions, weights, sums))
