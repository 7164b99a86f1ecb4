"""Segments of similar in-degree, each with the fastest kernel (Bowen 2022)."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.run_sums import ThreadedSums
from prplugin.cpu.sorting import stable_order
from prplugin.errors import InvalidOptionError, MethodUnavailableError, listed
from prplugin.gpu.lazy import cupy, cupyx
from prplugin.graph.adjacency import Adjacency, group_sizes
from prplugin.graph.memory import Size
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.numerics.rounding import compensated_depth
from prplugin.options import validate_int
from prplugin.papers._host_rows import HostPull, Recorder, host_rows, unrecorded
from prplugin.papers._rows import LANES, RowsPull, best_seconds, check_launch
from prplugin.types.arrays import Array, namespace
from prplugin.types.edges import Edges, Floats, Integers

logger = logging.getLogger(__name__)

name = "segmented"
runs_on = "gpu"
nondeterministic = True  # a measured schedule, and so the order of additions, differs between runs


# --- schedules ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Launch configuration of one segment: a thread, lanes of a warp or a block of the GPU per row, or host threads."""

    method: str  # "node", "warp", "block" or "host"
    threads: int  # per block; for "host", those that share all its segments
    lanes: int | None = None  # threads per row, only for "warp"
    blocks: int | None = None  # of the grid; None: as many as give each row its threads
    ms: float = 0.0  # measured time; for "host" with the copy of the sums to the GPU

    def __post_init__(self) -> None:
        if self.method not in ("node", "warp", "block", "host"):
            raise InvalidOptionError(f"the method of a segment must be node, warp, block or host, not {self.method!r}.")
        if self.method != "host":
            check_launch(self.method, self.threads, self.lanes, self.blocks)
        elif validate_int("threads", self.threads) and (self.lanes is not None or self.blocks is not None):
            raise InvalidOptionError("a segment of the host has neither lanes nor blocks.")
        _check_ms("ms", self.ms)

    @property
    def threads_per_row(self) -> int:
        """Number of threads per row."""
        return {"warp": self.lanes or 1, "block": self.threads}.get(self.method, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Launch configurations of the segments of a graph with n vertices and m edges."""

    n: int
    m: int
    segments: tuple[Segment, ...]  # by descending in-degree
    device: str = "GPU"  # name of the GPU on which it was measured
    copy_ms: float = 0.0  # measured time of the copy of contributions to the host, once per iteration

    def __post_init__(self) -> None:
        if not isinstance(self.segments, tuple) or not all(isinstance(segment, Segment) for segment in self.segments):
            raise InvalidOptionError(f"segments must be a tuple of Segment, not {self.segments!r}.")
        validate_int("n", self.n, least=0)
        validate_int("m", self.m, least=0)
        _check_ms("copy_ms", self.copy_ms)
        if not isinstance(self.device, str):
            raise InvalidOptionError(f"device must be a string, not {self.device!r}.")

    @property
    def host_segments(self) -> list[int]:
        """Indices of the segments that run on the host."""
        return [k for k, segment in enumerate(self.segments) if segment.method == "host"]

    def __str__(self) -> str:
        """Format as in the paper: one line per segment, and the time of each device; devices work concurrently."""
        lines = ["segment  method   blocks  threads         ms"]
        for k, segment in enumerate(self.segments):
            method = segment.method if segment.lanes is None else f"{segment.method}/{segment.lanes}"
            blocks = "-" if segment.blocks is None else segment.blocks
            lines.append(f"{k:7}  {method:7} {blocks:>7}  {segment.threads:7}  {segment.ms:9.4f}")
        gpu = sum(segment.ms for segment in self.segments if segment.method != "host")
        host = self.copy_ms + sum(segment.ms for segment in self.segments if segment.method == "host")
        lines.append(f"{self.device} [{gpu:.4f} ms]")
        if self.host_segments:
            lines.append(f"host [{host:.4f} ms, of which {self.copy_ms:.4f} ms copy the contributions]")
        lines.append(f"longest device time {max(gpu, host if self.host_segments else 0.0):.4f} ms")
        return "\n".join(lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schedule as JSON; raise InvalidOptionError if that fails."""
        try:
            text = json.dumps(asdict(self), indent=1, default=int)  # NumPy's integers
            Path(path).write_text(text + "\n", encoding="utf-8")
        except (OSError, TypeError) as error:
            raise InvalidOptionError(f"the schedule cannot be saved to {path!r}: {error}") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schedule:
        """Read a schedule that `save` wrote; raise InvalidOptionError if the file is missing or invalid."""
        try:
            fields: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
            segments = tuple(Segment(**segment) for segment in fields.pop("segments"))
            return cls(**fields, segments=segments)
        except OSError as error:
            raise InvalidOptionError(f"the schedule {str(path)!r} cannot be read: {error}") from error
        except KeyError as error:
            raise InvalidOptionError(f"{str(path)!r} holds no schedule: it has no {error}.") from error
        except (AttributeError, TypeError, ValueError) as error:  # invalid JSON, or a field of the wrong type or value
            raise InvalidOptionError(f"{str(path)!r} holds no schedule: {error}") from error

    def check(self, n: int, m: int, segments: int, *, cpu: bool) -> None:
        """Raise InvalidOptionError unless the schedule has n vertices, m edges and `segments` segments."""
        ours = (("vertices", self.n, n), ("edges", self.m, m), ("segments", len(self.segments), segments))
        if differ := [f"{there:,} {what}, not {here:,}" for what, there, here in ours if there != here]:
            raise InvalidOptionError(
                f"the schedule is of another graph or another number of segments: it has {' and '.join(differ)}."
            )
        if self.host_segments and not cpu:
            raise InvalidOptionError(
                f"the schedule has segments for the host ({listed(self.host_segments)}): give cpu=True, "
                "or measure a new schedule without it."
            )


def _check_ms(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InvalidOptionError(f"{name} must be a number of at least 0, not {value!r}.")


# --- the method -----------------------------------------------------------------------------------------------------

CANDIDATES = (
    Segment(method="node", threads=256),
    *(Segment(method="warp", threads=256, lanes=lanes) for lanes in LANES),
    *(Segment(method="block", threads=threads) for threads in (64, 128, 256, 1024)),
)
"""Kernels that are timed on every segment; the last accepts rows of any length."""

GRIDS = (256, 512, 1024, 2048, 4096)
"""Numbers of blocks that are timed with the fastest kernel of a segment, besides as many as its rows need."""

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
cost = gpu_pull.cost_of(75e-6, edge=1.2e-11, vertex=6.5e-11, layout=0.2)
"""Fitted to benchmarks/results/kernels.md; most of the layout is the measurement."""


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
    """
    segments = validate_int("segments", segments)
    if not isinstance(cpu, (bool, np.bool_)):
        raise InvalidOptionError(f"cpu must be True or False, not {cpu!r}.")
    if cpu and (reason := library.unavailable_reason()):
        raise MethodUnavailableError(f"cpu=True needs the compiled CPU kernels: {reason}.")
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
        # The graph with its targets, but not its sources, in that order.
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
        self._recorded: tuple[Any, Any, Any] = (None, None, None)

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
                self._recorded = (_recorded(self._pulls, contributions, row_sums), contributions, row_sums)


def _launch(segment: Segment, layout: gpu_pull.Layout, span: tuple[int, int]) -> RowsPull:
    (first, last), threads = span, segment.threads
    return RowsPull(
        layout, segment.method, threads=threads, lanes=segment.lanes, blocks=segment.blocks, first=first, last=last
    )


def _recorded(pulls: list[RowsPull], contributions: Array, row_sums: Array) -> Any:
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


def _measured(rows: SortedRows, threads: int) -> Schedule:
    """Time every candidate on every segment; with `threads`, move segments to the host if that is faster."""
    contributions, row_sums = cupy.full(rows.n, 1.0 / rows.n), cupy.empty(rows.n)
    segments = [_fastest(rows, span, contributions, row_sums) for span in rows.spans]
    copy_ms = 0.0
    if threads:
        page_locked = cupyx.empty_pinned(rows.n)
        copy_ms = 1e3 * best_seconds(lambda: contributions.get(out=page_locked))
        on_host = [
            host_ms(rows, span, threads) + copy_ms * (span[1] - span[0]) / rows.n  # the sums are copied back as fast
            for span in rows.spans
        ]
        for k in choose_host_segments([segment.ms for segment in segments], on_host, copy_ms):
            segments[k] = Segment(method="host", threads=threads, ms=on_host[k])
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return Schedule(n=rows.n, m=rows.m, segments=tuple(segments), device=properties["name"].decode(), copy_ms=copy_ms)


def _fastest(rows: SortedRows, span: tuple[int, int], contributions: Array, row_sums: Array) -> Segment:
    """Return the fastest kernel for a segment, with the fastest grid of that kernel."""
    best = min(timed(CANDIDATES, rows, span, contributions, row_sums), key=attrgetter("ms"))
    assert best.blocks is not None  # set by `timed`
    grids = [replace(best, blocks=blocks) for blocks in GRIDS if blocks < best.blocks]
    return min([best, *timed(grids, rows, span, contributions, row_sums)], key=attrgetter("ms"))


def timed(
    candidates: Sequence[Segment], rows: SortedRows, span: tuple[int, int], contributions: Array, row_sums: Array
) -> list[Segment]:
    """Time candidates on a segment; those far behind the best only roughly, those with too long rows not at all.

    Several launches are captured and replayed, so that the overhead of Python is not measured. Indices are then cached
    more often than in an iteration, for all candidates alike.
    """
    longest = int(rows.offsets[span[0] + 1] - rows.offsets[span[0]])
    found: list[Segment] = []
    for candidate in candidates:
        if longest > LONGEST * candidate.threads_per_row and candidate is not CANDIDATES[-1]:
            continue
        pull = _launch(candidate, rows.layout, span)
        ms = 1e3 * best_seconds(partial(pull, contributions, row_sums), times=1)
        if not found or ms < 4 * min(map(attrgetter("ms"), found)) + 0.2:  # includes Python's launch overhead
            launches = math.ceil(1 / max(ms, 1 / LAUNCHES))
            ms = 1e3 * best_seconds(_recorded([pull] * launches, contributions, row_sums).launch) / launches
        found.append(replace(candidate, blocks=pull.blocks, ms=ms))
    return found


def host_ms(rows: SortedRows, span: tuple[int, int], threads: int) -> float:
    """Return the milliseconds in which host threads sum a segment, without copies."""
    _, sources, bounds, places, weights = host_rows(rows.runs([span]), rows.n)
    sum_rows = ThreadedSums(bounds, places, threads)
    contributions, sums = np.full(max(1, sources.size), 1.0 / rows.n), np.empty(bounds.size - 1)
    return 1e3 * best_seconds(lambda: sum_rows(contributions, weights, sums))


def choose_host_segments(gpu_ms: list[float], host_ms: list[float], copy_ms: float) -> list[int]:
    """Return the segments that run on the host, given the time of each on GPU and host, and that of the copy.

    Greedy: segments in order of the ratio of host time to GPU time, each moved if that lowers max(GPU, copy + host).
    """
    chosen: list[int] = []
    gpu, host = sum(gpu_ms), copy_ms
    longest = gpu
    for k in sorted(range(len(gpu_ms)), key=lambda k: host_ms[k] / max(gpu_ms[k], 1e-9)):
        then = max(gpu - gpu_ms[k], host + host_ms[k])
        if then < longest:
            gpu, host, longest = gpu - gpu_ms[k], host + host_ms[k], then
            chosen.append(k)
    return sorted(chosen)
