"""Segments of like in-degree, each by the kernel measured fastest (Bowen 2022); `segments=`, `schedule=`, `cpu=`."""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np

from prplugin.cpu.crew import Crew
from prplugin.cpu.sorting import offsets_of, stable_order
from prplugin.errors import InvalidOptionError
from prplugin.graph.adjacency import Adjacency, group_sizes
from prplugin.graph.memory import Size
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._schedule import Schedule, Segment, cut, for_the_host
from prplugin.methods.papers._timing import best_seconds, gpu_seconds
from prplugin.methods.papers.block import BlockPull
from prplugin.methods.papers.node import NodePull
from prplugin.methods.papers.warp import LANES, WarpPull
from prplugin.numerics.rounding import compensated_chain
from prplugin.options import whole
from prplugin.types.arrays import moved, namespace
from prplugin.types.edges import Edges, Floats

__all__ = ["Schedule", "Segment", "cost", "name", "prepare", "runs_on", "unfit", "varies"]

logger = logging.getLogger(__name__)

name = "segmented"
runs_on = "gpu"
varies = True  # schedules measured anew differ, and with them the order of additions; saved ones do not

CANDIDATES = (
    Segment(method="node", threads=256),
    *(Segment(method="warp", threads=256, lanes=lanes) for lanes in LANES),
    *(Segment(method="block", threads=threads) for threads in (64, 128, 256, 1024)),
)
"""What is timed on every segment; the last takes rows of any length."""

LONGEST = 1 << 14
"""Edges that one thread may have to read one after the other for a candidate to be timed: some milliseconds."""

LAUNCHES, ROUNDS = 10, 3
"""A time is the best of some rounds, each of so many launches in a row, or as many as fill a millisecond."""

memory = replace(
    gpu_pull.MEMORY,
    arrays=("rows", "out_weight"),
    edge=Size(index=1, share=1, weight=1),  # the in-edges once more, by falling in-degree
    vertex=replace(gpu_pull.MEMORY.vertex, index=1, offset=1),
    preparing_edge=Size(0.5, index=5, weight=2),  # their sorting
    preparing_vertex=Size(2 * 8, index=1),
)
unfit = partial(gpu_pull.unfit, memory)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate the measurement and a ranking, as fitted to benchmarks/results/kernels.md."""
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
    """Sort rows by falling in-degree, cut them into segments, and find out what runs each.

    The schedule is logged at INFO by the logger "prplugin.methods.papers.segmented".

    Parameters
    ----------
    segments : int, default 24
        How many, of about as many edges each; fewer where fewer rows have edges. The paper found 24 best.
    schedule : "measured", path or Schedule, default "measured"
        What runs each segment: the fastest kernel for each, measured now, or what was saved before, with which the bits
        of the ranks are the same in every run.
    save : path, optional
        Where to write the schedule, as JSON.
    cpu : bool, default False
        Whether segments may also run on the host's threads while the GPU runs the others.
    """
    segments = whole("segments", segments)
    if not isinstance(cpu, (bool, np.bool_)):
        raise InvalidOptionError(f"cpu must be True or False, not {cpu!r}.")
    chosen = _given(schedule)
    adjacency = problem.adjacency.on("device")
    rows = SortedRows(adjacency, segments)
    if chosen is None:
        chosen = _measured(rows, machine.threads if cpu else 0)
    chosen.check(adjacency.n, adjacency.m, len(rows.spans), cpu=bool(cpu))
    logger.info("schedule for %d vertices and %d edges\n%s", adjacency.n, adjacency.m, chosen)
    if save is not None:
        chosen.save(save)
    return gpu_pull.DeviceStep(problem, SegmentedPull(rows, chosen))


def _given(schedule: object) -> Schedule | None:
    if isinstance(schedule, Schedule):
        return schedule
    if not isinstance(schedule, (str, PathLike)):
        raise InvalidOptionError(f"schedule must be 'measured', a path or a Schedule, not {schedule!r}.")
    return None if schedule == "measured" else Schedule.load(schedule)


class SortedRows:
    """The in-edges row by row, in falling order of in-degree, and where they are cut.

    The paper sorts by out-degree; what a pull costs is the in-degree. The edges themselves are put in that order too,
    so that a segment reads one stretch of memory.

    Attributes
    ----------
    layout : Layout
    order : array of n positions
        Of the rows, by falling in-degree; equal ones keep the order of the result.
    offsets : array of n + 1
        Where each row's edges begin, and where the last one's end.
    spans : list of (int, int)
        The first row of each segment, and the one after its last.
    """

    def __init__(self, adjacency: Adjacency, segments: int) -> None:
        self.n, self.m = adjacency.n, adjacency.m
        source, target = adjacency.edges.source, adjacency.edges.destination
        xp = namespace(source)
        degrees = group_sizes(target, self.n)
        order = stable_order(degrees.max() - degrees)
        place = xp.empty(self.n, source.dtype)
        place[order] = xp.arange(self.n, dtype=source.dtype)
        # The graph with its targets, not its sources, numbered in that order.
        sorted_graph = Adjacency(Edges(source, place[target], adjacency.edges.weights, self.n))
        offsets, sources, weights = sorted_graph.csc
        self.order = order.astype(sources.dtype)
        shares = gpu_pull.Shares(weights, adjacency, sources)
        self.layout = gpu_pull.Layout(self.order, offsets[:-1], offsets[1:], sources, shares)
        self.offsets = offsets
        self.spans = list(pairwise(cut(offsets, segments)))


class SegmentedPull:
    """Runs a schedule."""

    def __init__(self, rows: SortedRows, schedule: Schedule) -> None:
        on_host = schedule.host_segments
        self.chain = compensated_chain(rows.m)
        self._pulls = [
            _kernel(segment, rows.layout, *span)
            for segment, span in zip(schedule.segments, rows.spans, strict=True)
            if segment.method != "host"
        ]
        self._helper = None
        if on_host:
            threads = max(schedule.segments[k].threads for k in on_host)
            self._helper = HostHelper(rows, [rows.spans[k] for k in on_host], threads)
        self._recorded: tuple[Any, Any, Any] = (None, None, None)

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        if self._helper is not None:
            self._helper.begin(contributions)
        if self._pulls:
            self._launch(contributions, pulled)
        if self._helper is not None:
            self._helper.end(pulled)

    def _launch(self, contributions: Floats, pulled: Floats) -> None:
        # From Python one launch takes longer than a small segment; replaying a CUDA graph takes one for all of them.
        graph, read, written = self._recorded
        if read is contributions and written is pulled:
            graph.launch()
            return

        def launch() -> None:
            for pull in self._pulls:
                pull(contributions, pulled)

        launch()
        self._recorded = (_recorded(launch), contributions, pulled)


def _kernel(segment: Segment, layout: gpu_pull.Layout, first: int, last: int) -> gpu_pull.RunsPull:
    threads, blocks = segment.threads, segment.blocks
    match segment.method:
        case "node":
            return NodePull(layout, first=first, last=last, threads=threads, blocks=blocks)
        case "block":
            return BlockPull(layout, first=first, last=last, threads=threads, blocks=blocks)
        case _:
            lanes = segment.lanes or LANES[-1]
            return WarpPull(layout, first=first, last=last, lanes=lanes, threads=threads, blocks=blocks)


def _recorded(launch: Callable[[], None]) -> Any:
    """Record what a function launches as a CUDA graph, without running it.

    It must have run before: kernels that are not compiled and arrays that are not there cannot be recorded.
    """
    import cupy  # there: `unfit` has looked

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            launch()
        finally:
            graph = stream.end_capture()
    return graph


# --- the host's part ----------------------------------------------------------------------------------------------


class HostSums:
    """Sums the rows of some segments on the host, each with one thread: the same bits for any number of threads."""

    def __init__(self, rows: SortedRows, spans: list[tuple[int, int]], threads: int) -> None:
        from prplugin.cpu import tail_kernels  # imports Numba

        self._sum_runs = tail_kernels.sum_runs
        self._edges = [slice(*rows.offsets[[first, last]].tolist()) for first, last in spans]
        self._shares = rows.layout.shares
        self._shares_here: Floats | None = None
        self._sources = self._brought(rows.layout.sources)
        ends = [moved(rows.offsets[first : last + 1], "host") for first, last in spans]
        self._bounds = offsets_of(np.concatenate([np.diff(end) for end in ends]))
        self.size = self._bounds.size - 1
        self._crew = Crew(list(pairwise(cut(self._bounds, 8 * threads))), threads)

    def _brought(self, edges: Any) -> Any:
        """Copy what belongs to these segments' edges to the host."""
        return np.concatenate([moved(edges[part], "host") for part in self._edges])

    def __call__(self, contributions: Floats, sums: Floats) -> None:
        """Write the sum of each row, segment after segment."""
        if (shares := self._shares.of(contributions.dtype)) is None:
            self._shares_here = None
        elif self._shares_here is None or self._shares_here.dtype != shares.dtype:
            self._shares_here = self._brought(shares)
        apart = np.empty(0)  # no row is summed in parts

        def sum_piece(first: int, last: int) -> None:
            self._sum_runs(
                first, last, self._bounds, self._sources, self._shares_here, contributions, apart, apart, sums
            )

        self._crew.work(sum_piece)


class HostHelper:
    """Has the host sum some segments while the GPU sums the others.

    Contributions come down to pinned memory and sums go up on a stream of its own, which no kernel waits for until the
    end.
    """

    def __init__(self, rows: SortedRows, spans: list[tuple[int, int]], threads: int) -> None:
        import cupy  # there: `unfit` has looked
        import cupyx

        self._sum = HostSums(rows, spans, threads)
        self._rows = cupy.concatenate([rows.order[first:last] for first, last in spans])
        self._room = cupyx.empty_pinned(rows.n, np.float64)
        self._sums = cupyx.empty_pinned(self._sum.size, np.float64)
        self._arrived = cupy.empty(self._sum.size)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        # No memory may go while a copy, of an iteration that was interrupted, is under way.
        weakref.finalize(self, self._stream.synchronize)

    def begin(self, contributions: Any) -> None:
        """Send contributions on their way down, after what the current stream is to do before."""
        import cupy  # has been imported

        self._stream.wait_event(cupy.cuda.get_current_stream().record())
        self._contributions = self._room.view(contributions.dtype)[: contributions.size]
        contributions.get(stream=self._stream, out=self._contributions, blocking=False)

    def end(self, pulled: Any) -> None:
        """Wait for the contributions, sum, and have the current stream wait until the sums are among `pulled`."""
        import cupy  # has been imported

        self._stream.synchronize()
        self._sum(self._contributions, self._sums)
        with self._stream:
            self._arrived.set(self._sums)
            pulled[self._rows] = self._arrived
        cupy.cuda.get_current_stream().wait_event(self._stream.record())


# --- measuring ----------------------------------------------------------------------------------------------------


def _measured(rows: SortedRows, threads: int) -> Schedule:
    """Time every candidate on every segment; with `threads`, give the host what makes the whole shorter."""
    import cupy  # there: `unfit` has looked

    contributions, pulled = cupy.full(rows.n, 1.0 / rows.n), cupy.empty(rows.n)
    segments = [_fastest(rows, span, contributions, pulled) for span in rows.spans]
    copy_ms = 0.0
    if threads:
        here = np.empty(rows.n)
        copy_ms = _copy_ms(contributions)
        host_ms = [
            _host_ms(rows, (first, last), threads, moved(contributions, "host"), here)
            + copy_ms * (last - first) / rows.n  # a sum goes up as a contribution comes down
            for first, last in rows.spans
        ]
        for k in for_the_host([segment.ms for segment in segments], host_ms, copy_ms):
            segments[k] = Segment(method="host", threads=threads, ms=host_ms[k])
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return Schedule(n=rows.n, m=rows.m, segments=tuple(segments), device=properties["name"].decode(), copy_ms=copy_ms)


def _fastest(rows: SortedRows, span: tuple[int, int], contributions: Any, pulled: Any) -> Segment:
    longest = int(rows.offsets[span[0] + 1] - rows.offsets[span[0]])
    times: dict[Segment, float] = {}
    for candidate in CANDIDATES:
        if longest <= LONGEST * candidate.threads_a_row or candidate is CANDIDATES[-1]:
            pull = _kernel(candidate, rows.layout, *span)
            times[candidate] = _gpu_ms(pull, contributions, pulled, min(times.values(), default=math.inf))
    best = min(times, key=times.__getitem__)
    return replace(best, blocks=_kernel(best, rows.layout, *span).blocks, ms=times[best])


def _gpu_ms(pull: gpu_pull.RunsPull, contributions: Any, pulled: Any, best: float) -> float:
    """Time a kernel; only roughly, where it is far behind the best.

    Several launches are recorded and replayed, lest the time be that of Python between them. The segment's indices then
    come from the caches more often than in an iteration, for every candidate alike.
    """

    def launch() -> None:
        pull(contributions, pulled)

    launch()  # compiles
    once = 1e3 * gpu_seconds(launch)
    if once > 4 * best + 0.2:  # the time of Python's launch is in it
        return once
    launches = math.ceil(1 / max(once, 1 / LAUNCHES))

    def again() -> None:
        for _ in range(launches):
            launch()

    graph = _recorded(again)
    return 1e3 * min(gpu_seconds(graph.launch) for _ in range(ROUNDS)) / launches


def _copy_ms(contributions: Any) -> float:
    import cupyx  # comes with CuPy

    room = cupyx.empty_pinned(contributions.size, contributions.dtype)
    return 1e3 * best_seconds(lambda: contributions.get(out=room), times=ROUNDS)


def _host_ms(rows: SortedRows, span: tuple[int, int], threads: int, contributions: Floats, sums: Floats) -> float:
    host_sums = HostSums(rows, [span], threads)
    return 1e3 * best_seconds(lambda: host_sums(contributions, sums), times=ROUNDS)
