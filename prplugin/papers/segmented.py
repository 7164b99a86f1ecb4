"""Segments of similar in-degree, each with the fastest kernel (Bowen 2022)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.sorting import stable_order
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.gpu import cupy, cupyx
from prplugin.graph.edges import group_sizes
from prplugin.methods.base import Array, Edges, Floats, Integers, Machine, Made, Problem, Rate, Step
from prplugin.methods.engines import gpu_pull
from prplugin.numerics import compensated_depth
from prplugin.options import validate_bool, validate_int
from prplugin.papers._forms import WARP_LANES, Form, InPlace, check_form, launch_of, out_degrees, step_of
from prplugin.papers._host_rows import HostPull, Recorder, ThreadedSums, host_rows, unrecorded
from prplugin.papers._rows import LANES, RowsPull, best_seconds
from prplugin.papers._schedule import Schedule, Segment
from prplugin.types.arrays import namespace
from prplugin.types.edges import Coo, Csc

logger = logging.getLogger(__name__)

Work: TypeAlias = Callable[[Array, Array], object]  # launches kernels that read contributions and write row sums

name = "segmented"
runs_on = "gpu"
nondeterministic = True  # a measured schedule, and so the order of additions, differs between runs

# Kernels that are timed on every segment, and grids that are timed with the fastest of them.
CANDIDATES = (
    Segment(method="node", threads=256),
    *(Segment(method="warp", threads=256, lanes=lanes) for lanes in LANES),
    *(Segment(method="block", threads=threads) for threads in (64, 128, 256, 1024)),
)
GRIDS = (256, 512, 1024, 2048, 4096)  # blocks, besides as many as the rows need

# Kernels and launches that the paper's code times on every segment.
PAPER_CANDIDATES = (
    Segment(method="node", blocks=256, threads=1024),
    Segment(method="warp", blocks=256, threads=1024, lanes=WARP_LANES),
    *(Segment(method="block", blocks=(256 << 10) // threads, threads=threads) for threads in (64, 128, 256, 512, 1024)),
)

MOST_THREADS = 1024  # threads per row of the candidate that is timed on rows of any length
LONGEST = 1 << 14  # most edges per thread for which a candidate is timed: some milliseconds
LAUNCHES = 10  # most consecutive launches that are timed; fewer if they fill a millisecond

memory = gpu_pull.MEMORY._replace(
    layout="segments",  # which the graph does not keep
    made=Made(Rate(20.5, 16, 28), Rate(vertex=8)),  # buffers for sorting the edges
    lists=True,
    step=Rate(4, 12, 36),  # a second copy of the in-edges, by descending in-degree
)
unavailable_reason = gpu_pull.reason_of(memory)
# Fitted to benchmarks/results/kernels.md; most of the layout is the measurement.
cost = gpu_pull.cost_of(75e-6, edge=1.2e-11, vertex=6.5e-11, layout=0.2)

forms = {"paper": Form("Bowen 2022, Sections 2.2, 3.3 and 3.4: heterogeneous, and with CPU", {"segments": 24})}


def prepare(
    problem: Problem, machine: Machine, *, segments: int = 24, schedule: str | PathLike[str] | Schedule = "measured",
    save: str | PathLike[str] | None = None, cpu: bool = False, form: str | None = None,
) -> Step:  # fmt: skip
    """Sort rows by descending in-degree, partition them into segments, and choose a kernel for each.

    The schedule is logged at INFO by the logger "prplugin.papers.segmented".

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
    form : "paper", optional
        Iterate by the paper's kernels, in place and in float32, with vertices renumbered by in-degree and its launches
        timed; an exact step then proves the result. With ``cpu=True`` segments of the CPU follow those of the GPU in
        each iteration, with all scores copied both ways. It has uniform teleport and no weights.
    """
    segments = validate_int("segments", segments)
    if validate_bool("cpu", cpu) and (reason := library.unavailable_reason()):
        raise MethodUnavailableError(f"cpu=True needs the compiled CPU kernels: {reason}.")
    if not isinstance(schedule, (str, PathLike, Schedule)):
        raise InvalidOptionError(f"schedule must be 'measured', a path or a Schedule, not {schedule!r}.")
    if not isinstance(schedule, Schedule) and schedule != "measured":
        schedule = Schedule.load(schedule)
    adjacency = problem.adjacency.on("device")
    rows = SortedRows(adjacency, segments)
    launch_of(forms, form)
    if form is not None:
        check_form(problem)
    threads = machine.threads if cpu else 0
    if isinstance(schedule, Schedule):
        chosen = schedule
    elif form is not None:
        chosen = measured_in_paper_form(rows, adjacency, problem.alpha, threads)
    else:
        chosen = _measured(rows, threads)
    chosen.check(adjacency.n, adjacency.m, len(rows.spans), cpu=bool(cpu))
    logger.info("schedule for %d vertices and %d edges\n%s", adjacency.n, adjacency.m, chosen)
    if save is not None:
        chosen.save(save)
    pull = SegmentedPull(rows, chosen)
    return step_of(problem, pull, form, lambda: in_place(rows, adjacency, problem.alpha, chosen.segments, rows.spans))


def in_place(
    rows: SortedRows, adjacency: Edges, alpha: float, segments: Sequence[Segment], spans: Sequence[tuple[int, int]]
) -> InPlace:
    """Return the paper's iteration over some segments, with sources and targets renumbered by descending in-degree."""
    degrees = out_degrees(adjacency, np.int64)[rows.order]
    return InPlace(rows.offsets, rows.place[rows.layout.sources], degrees, alpha, segments, spans, rows.order)


class SortedRows:
    """The in-edges row by row, by descending in-degree; segment k consists of the rows ``spans[k]``.

    The paper sorts by out-degree; the cost of a pull depends on the in-degree. The edges are sorted in the same order,
    so that a segment reads a contiguous range. The sources are not renumbered: contributions stay in the order of the
    vertices. `order` holds the rows' positions in the result, `place` the row of each vertex, `offsets` the offsets of
    the rows in the layout.
    """

    def __init__(self, adjacency: Edges, segments: int) -> None:
        self.n, self.m = adjacency.n, adjacency.m
        edges = adjacency.get(Coo)
        source, target = edges.source, edges.destination
        xp = namespace(source)
        degrees = group_sizes(target, self.n)
        order = stable_order(degrees.max() - degrees)
        place = xp.empty(self.n, source.dtype)
        place[order] = xp.arange(self.n, dtype=source.dtype)
        # The graph with its targets, but not its sources, in that order.
        sorted_graph = Edges(Coo(source, place[target], edges.weights, self.n))
        offsets, sources, weights = sorted_graph.get(Csc)
        self.order, self.place = order.astype(sources.dtype), place
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


def cut(offsets: Integers, segments: int) -> list[int]:
    """Return the boundaries, n included, of at most `segments` segments of about equally many edges.

    Every segment gets an equal part of the edges that are left, so that a hub larger than a segment does not leave
    others empty. Each segment has a row with edges if there are enough such rows. Rows without edges come last, and are
    all in the last segment.
    """
    n, m = offsets.size - 1, int(offsets[-1])
    filled = _row_at_edge(offsets, m)  # rows with edges
    bounds = [0]
    for left in range(min(segments, filled), 1, -1):
        first = bounds[-1]
        done = int(offsets[first])
        last = _row_at_edge(offsets, done + -(-(m - done) // left))
        bounds.append(min(max(last, first + 1), filled - (left - 1)))
    return [*bounds, n]


def _row_at_edge(offsets: Integers, edges: int) -> int:
    """Return the first row that `edges` edges precede."""
    xp = namespace(offsets)
    return int(xp.searchsorted(offsets, xp.asarray([edges]))[0])


class SegmentedPull:
    """Computes row sums by a schedule."""

    def __init__(self, rows: SortedRows, schedule: Schedule) -> None:
        self.span: Recorder = unrecorded
        pairs = list(zip(schedule.segments, rows.spans, strict=True))
        self._pulls = [_launch(segment, rows.layout, span) for segment, span in pairs if segment.method != "host"]
        self.rounding_depth = compensated_depth(rows.m)
        self.host: HostPull | None = None
        if schedule.host_segments:
            threads = max(schedule.segments[k].threads for k in schedule.host_segments)
            self.host = HostPull(rows.runs([rows.spans[k] for k in schedule.host_segments]), rows.n, threads)
        self._recorded: tuple[Any, Array | None, Array | None] = (None, None, None)

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        if self.host is not None:
            self.host.enqueue_gather(contributions, self.span)
        self.enqueue_segments(contributions, row_sums)
        if self.host is not None:
            self.host.finish_into(row_sums, self.span)

    def enqueue_segments(self, contributions: Floats, row_sums: Floats) -> None:
        """Enqueue the segments of the GPU."""
        if self.host is not None:
            row_sums.fill(0.0)  # the host's sums are added to it
        # A launch from Python takes longer than a small segment; replaying a CUDA graph costs one launch for all
        # segments.
        graph, read, written = self._recorded
        with self.span("segments", "GPU", cupy.cuda.get_current_stream()):
            if read is contributions and written is row_sums:
                graph.launch()
            elif self._pulls:
                self._recorded = (captured(self._pulls, contributions, row_sums), contributions, row_sums)


def _launch(segment: Segment, layout: gpu_pull.Layout, span: tuple[int, int]) -> RowsPull:
    (first, last), threads = span, segment.threads
    return RowsPull(
        layout, segment.method, threads=threads, lanes=segment.lanes, blocks=segment.blocks, first=first, last=last
    )


def _of_this_library(rows: SortedRows, segment: Segment, span: tuple[int, int]) -> tuple[Work, int]:
    pull = _launch(segment, rows.layout, span)
    return pull, pull.blocks


class Graph(Protocol):
    """A CUDA graph: `cupy.cuda.Graph`."""

    def launch(self) -> None:
        """Launch the recorded kernels on the current stream."""


def captured(pulls: Sequence[Work], contributions: Array, row_sums: Array) -> Graph:
    """Launch kernels, and return a CUDA graph that launches them again.

    They run once before the capture, since compilation and allocation cannot be captured.
    """
    for pull in pulls:
        pull(contributions, row_sums)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            for pull in pulls:
                pull(contributions, row_sums)
        finally:
            graph = stream.end_capture()
    return graph


# --- measuring ------------------------------------------------------------------------------------------------------


def measured_in_paper_form(rows: SortedRows, adjacency: Edges, alpha: float, threads: int = 0) -> Schedule:
    """Time the paper's kernels and launches on every segment; with `threads`, the host as well, and schedule both."""

    def launch(candidate: Segment, span: tuple[int, int]) -> tuple[Work, int]:
        form = in_place(rows, adjacency, alpha, [candidate], [span])
        form.load(1.0 / rows.n, rows.n)
        assert candidate.blocks is not None
        return form.enqueue, candidate.blocks

    nothing = cupy.empty(0)
    segments = [
        min(timed(PAPER_CANDIDATES, rows, span, nothing, nothing, launch), key=attrgetter("ms")) for span in rows.spans
    ]
    copy_ms = 0.0
    if threads:
        on_host = Segment(method="host", threads=threads)
        scores = cupy.full(rows.n, 1.0 / rows.n, np.float32)
        copy_ms = 2e3 * best_seconds(scores.get)
        forms_ = [in_place(rows, adjacency, alpha, [on_host], [span]) for span in rows.spans]
        host = [1e3 * best_seconds(partial(form.update_on_host, scores.get()), gpu=False) for form in forms_]
        gpu = [segment.ms for segment in segments]
        for k in choose_host_segments(gpu, host, lambda moved: copy_ms + sum(host[each] for each in moved)):
            segments[k] = replace(on_host, ms=host[k])
    return Schedule(n=rows.n, m=rows.m, segments=tuple(segments), device=_device_name(), copy_ms=copy_ms)


def _device_name() -> str:
    name: bytes = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    return name.decode()


def _measured(rows: SortedRows, threads: int) -> Schedule:
    """Time every candidate on every segment; with `threads`, move segments to the host if that is faster."""
    # In float32, as most iterations.
    contributions, row_sums = cupy.full(rows.n, 1.0 / rows.n, np.float32), cupy.empty(rows.n)
    segments = [_fastest(rows, span, contributions, row_sums) for span in rows.spans]
    copy_ms = 0.0
    if threads:
        page_locked = cupyx.empty_pinned(rows.n, np.float32)
        copy_ms = 1e3 * best_seconds(lambda: contributions.get(out=page_locked))

        def together(moved: list[int]) -> float:
            host = HostPull(rows.runs([rows.spans[k] for k in moved]), rows.n, threads)

            def work() -> None:
                host.enqueue_gather(contributions)
                host.finish_into(row_sums)

            return 1e3 * best_seconds(work)

        alone = [host_ms(rows, [span], threads) for span in rows.spans]
        chosen = choose_host_segments([segment.ms for segment in segments], alone, together)
        total = sum(alone[k] for k in chosen)
        sums_ms = max(0.0, together(chosen) - copy_ms) if chosen else 0.0
        for k in chosen:  # its part of the time of all
            segments[k] = Segment(method="host", threads=threads, ms=sums_ms * alone[k] / total)
    return Schedule(n=rows.n, m=rows.m, segments=tuple(segments), device=_device_name(), copy_ms=copy_ms)


def _fastest(rows: SortedRows, span: tuple[int, int], contributions: Array, row_sums: Array) -> Segment:
    """Return the fastest kernel for a segment, with the fastest grid of that kernel."""
    best = min(timed(CANDIDATES, rows, span, contributions, row_sums), key=attrgetter("ms"))
    assert best.blocks is not None  # set by `timed`
    grids = [replace(best, blocks=blocks) for blocks in GRIDS if blocks < best.blocks]
    return min([best, *timed(grids, rows, span, contributions, row_sums)], key=attrgetter("ms"))


def timed(
    candidates: Sequence[Segment], rows: SortedRows, span: tuple[int, int], contributions: Array, row_sums: Array,
    launch: Callable[[Segment, tuple[int, int]], tuple[Work, int]] | None = None,
) -> list[Segment]:  # fmt: skip
    """Time candidates on a segment; those far behind the best only roughly, those with too long rows not at all.

    Several launches are captured and replayed, so that the overhead of Python is not measured. Indices are then cached
    more often than in an iteration, for all candidates alike. `launch` returns what launches a candidate, and its
    number of blocks; the kernels of this library if not given.
    """
    longest = int(rows.offsets[span[0] + 1] - rows.offsets[span[0]])
    found: list[Segment] = []
    for candidate in candidates:
        if longest > LONGEST * candidate.threads_per_row and candidate.threads_per_row < MOST_THREADS:
            continue
        work, blocks = (launch or partial(_of_this_library, rows))(candidate, span)
        ms = 1e3 * best_seconds(partial(work, contributions, row_sums), times=1)
        if not found or ms < 4 * min(map(attrgetter("ms"), found)) + 0.2:  # includes Python's launch overhead
            launches = math.ceil(1 / max(ms, 1 / LAUNCHES))
            ms = 1e3 * best_seconds(captured([work] * launches, contributions, row_sums).launch) / launches
        found.append(replace(candidate, blocks=blocks, ms=ms))
    return found


def host_ms(rows: SortedRows, spans: list[tuple[int, int]], threads: int) -> float:
    """Return the milliseconds in which host threads sum segments, together and in float32, without copies."""
    _, sources, bounds, places, weights = host_rows(rows.runs(spans), rows.n)
    sum_rows = ThreadedSums(bounds, places, threads)
    contributions: Array = np.full(max(1, sources.size), 1.0 / rows.n, np.float32)
    narrow: Array | None = None if weights is None else weights.astype(np.float32)
    sums = np.empty(bounds.size - 1)
    return 1e3 * best_seconds(lambda: sum_rows(contributions, narrow, sums), gpu=False)


def choose_host_segments(
    gpu_ms: list[float], host_ms: list[float], together: Callable[[list[int]], float]
) -> list[int]:
    """Return the segments that run on the host, given the time of each alone on GPU and host.

    Greedy: segments in order of the ratio of host time to GPU time, each moved if that lowers max(GPU, host), where
    `together` returns the host's time for all moved segments, with the copies.
    """
    chosen: list[int] = []
    longest = gpu = sum(gpu_ms)
    for k in sorted(range(len(gpu_ms)), key=lambda k: host_ms[k] / max(gpu_ms[k], 1e-9)):
        then = max(gpu - gpu_ms[k], together(sorted([*chosen, k])))
        if then < longest:
            gpu, longest = gpu - gpu_ms[k], then
            chosen.append(k)
    return sorted(chosen)
