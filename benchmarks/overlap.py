"""Concurrent work of GPU and CPU with ``method="cpu-split"``.

The GPU sums the first N in-edges of each vertex, its head, and the CPU the others, its tail. "overlap" is the part of
the CPU's time for tails in which the GPU was summing heads, on a common clock. "auto" marks the N chosen by
``split="auto"``, "drawn" the N whose timeline is drawn, given by ``--split N``.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from benchmarks.generate import rmat
from benchmarks.papers.plots import plain
from benchmarks.run import Part
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods.papers import cpu_split
from prplugin.methods.papers._host_rows import unrecorded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "KEYS", "Span", "figure", "parts", "recorded"]

COLUMNS = (
    "graph", "edges", "N", "choice", "tail vertices", "tail edges", "MB down", "MB up", "ms per iteration", "heads ms",
    "tails ms", "overlap %",
)  # fmt: skip

KEYS = ("graph", "N")

SWEEP = (0, 1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, "all")
STEPS = 15
RECORDED = 5

LANES = {"host": "CPU", "copy": "copy", "GPU": "GPU"}
"""Labels of the lanes of the timeline, from bottom to top."""

COLOURS = {
    "gather": "tab:cyan", "heads": "tab:blue", "add": "tab:purple", "down": "tab:orange", "up": "tab:red",
    "tails": "tab:green",
}  # fmt: skip


def graphs(quick: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield name and constructor of each graph's frame, on the GPU if cuDF is installed."""
    memory_space = "host" if find_spec("cudf") is None else "device"
    for scale in (18,) if quick else (18, 22):
        yield f"R-MAT {scale}", lambda scale=scale: rmat(scale, memory_space=memory_space)


def parts(data: Path | None, quick: bool, split: int = 8192) -> list[Part]:
    """Return one part per graph."""
    if reason := cpu_split.unavailable_reason(None, this_machine()):
        raise click.ClickException(f"method 'cpu-split' cannot run here: {reason}")
    return [Part(name, partial(_rows, name, make, split)) for name, make in graphs(quick)]


def _rows(name: str, make: Callable[[], Any], split: int) -> Iterator[dict[str, Any]]:
    """Yield the times and recorded spans of iterations for each N."""
    import prplugin

    machine = this_machine()
    adjacency = prplugin.Graph(make().astype("int32"))._graph.adjacency
    problem = Problem(adjacency, 0.85)
    (chosen,) = cpu_split.prepare(problem, machine).split
    longest = adjacency.largest_in_degree
    splits = {n for n in (*SWEEP, split, chosen) if n == "all" or n < longest}
    for n in sorted(splits, key=lambda n: longest if n == "all" else n):
        step = cpu_split.prepare(problem, machine, split=n)
        seconds, spans = _measure(step, adjacency.n)
        tails = step.pull.tails
        vertices, edges, sources = (0, 0, 0) if tails is None else (tails.vertices, tails.edges, tails.sources)
        overlaps = [] if tails is None else [_overlap(spans, iteration) for iteration in range(RECORDED)]
        yield {
            "graph": name,
            "edges": adjacency.m,
            "N": n,
            "choice": ", ".join(["auto"] * (n == chosen) + ["drawn"] * (n == split)),
            "tail vertices": vertices,
            "tail edges": edges,
            "MB down": 8 * sources / 1e6,
            "MB up": 8 * vertices / 1e6,
            "ms per iteration": statistics.median(seconds) * 1e3,
            "heads ms": _median_ms(spans, "heads"),
            "tails ms": _median_ms(spans, "tails") if overlaps else "",
            "overlap %": 100 * statistics.median(overlaps) if overlaps else "",
            "samples": seconds,
            "spans": [span._asdict() for span in spans] if n == split else [],
        }
        del step, tails


def _measure(step: cpu_split.SplitStep, n: int) -> tuple[list[float], list[Span]]:
    """Return the seconds of iterations, and the spans of further, recorded iterations."""
    import cupy

    step.start(cupy.full(n, 1 / n))
    for _ in range(3):
        step()
    seconds = []
    for _ in range(STEPS):
        began = time.perf_counter()
        step()  # returns after its norms have been copied to the host
        seconds.append(time.perf_counter() - began)
    with recorded(step) as spans:
        for _ in range(RECORDED):
            step()
    return seconds, spans


class Span(NamedTuple):
    """One operation of an iteration, in seconds on the clock of `time.perf_counter`.

    `what` is "gather", "heads", "add", "down", "up" or "tails"; `lane` is "GPU", "copy" or "host".
    """

    iteration: int
    what: str
    lane: str
    begin: float
    end: float


@contextmanager
def recorded(step: cpu_split.SplitStep) -> Iterator[list[Span]]:
    """Record the steps within the block; the list is filled when it ends."""
    spans: list[Span] = []
    timeline = _Timeline()
    step.pull.span = timeline.span
    try:
        yield spans
    finally:
        step.pull.span = unrecorded
        spans.extend(timeline.spans())


class _Timeline:
    """Recorder that maps GPU events and host times to one clock.

    CUDA measures the time between two events. One event is synchronized on an idle GPU between two readings of the
    host's clock, and so took place between them. The closest of ten such pairs, a few microseconds apart, is the
    reference.
    """

    def __init__(self) -> None:
        import cupy

        self._cuda = cupy.cuda
        self._cuda.Device().synchronize()
        self._marks: list[tuple[str, str, Any, Any]] = []
        nearest = math.inf
        for _ in range(10):
            before, event = time.perf_counter(), self._mark(self._cuda.get_current_stream())
            event.synchronize()
            after = time.perf_counter()
            if after - before < nearest:
                nearest, self._zero, self._reference = after - before, (before + after) / 2, event

    @contextmanager
    def span(self, what: str, lane: str, stream: Any) -> Iterator[None]:
        """Record begin and end of the work that is enqueued on a stream, or done by the host, within the block."""
        begin = self._mark(stream)
        yield
        self._marks.append((what, lane, begin, self._mark(stream)))

    def _mark(self, stream: Any) -> Any:
        if stream is None:
            return time.perf_counter()
        event = self._cuda.Event()
        event.record(stream)
        return event

    def spans(self) -> list[Span]:
        """Wait for all recorded work, and return it."""
        self._cuda.Device().synchronize()
        seen: Counter[str] = Counter()  # each operation occurs once per iteration
        spans = []
        for what, lane, begin, end in self._marks:
            spans.append(Span(seen[what], what, lane, self._seconds(begin), self._seconds(end)))
            seen[what] += 1
        return spans

    def _seconds(self, mark: Any) -> float:
        if isinstance(mark, float):
            return mark
        return self._zero + float(self._cuda.get_elapsed_time(self._reference, mark)) / 1e3


def _overlap(spans: list[Span], iteration: int) -> float:
    """Return the fraction of the CPU's time for tails in which the GPU was summing heads."""
    at = {span.what: span for span in spans if span.iteration == iteration}
    heads, tails = at["heads"], at["tails"]
    common = min(heads.end, tails.end) - max(heads.begin, tails.begin)
    return max(common, 0.0) / (tails.end - tails.begin)


def _median_ms(spans: list[Span], what: str) -> float:
    return statistics.median(span.end - span.begin for span in spans if span.what == what) * 1e3


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw the timeline of two iterations with enlarged sections, and the sweep over N, of the last graph."""
    from matplotlib.figure import Figure

    results = [row for row in results if row["graph"] == results[-1]["graph"]]
    drawing = Figure(figsize=(8, 9), layout="constrained")
    timeline, enlarged, sweep = drawing.subfigures(3, 1, height_ratios=(2, 2, 3))
    for row in results:
        if row["spans"]:
            _draw_timeline(timeline, enlarged, row)
    _draw_sweep(sweep.subplots(), results)
    return drawing


def _draw_timeline(timeline: Any, enlarged: Any, row: dict[str, Any]) -> None:
    shown = [span for span in row["spans"] if span["iteration"] in {1, 2}]
    zero = min(span["begin"] for span in shown)
    whole = timeline.subplots()
    _draw_spans(whole, shown, zero, 1e3)
    whole.set(xlabel="ms", title=f"{row['graph']}, split={row['N']}: two iterations")
    timeline.legend(*whole.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    first, second = ({span["what"]: span for span in shown if span["iteration"] == nth} for nth in (1, 2))
    sections = {
        "first copy": (zero - 3e-5, first["down"]["end"] + 5e-5),
        "sums of tails": (first["up"]["begin"] - 5e-5, first["up"]["end"] + 5e-5),
        "end of the iteration": (first["add"]["begin"] - 2e-5, second["gather"]["end"] + 5e-5),
    }
    panels = enlarged.subplots(1, len(sections), sharey=True)
    for panel, (title, (begin, end)) in zip(panels, sections.items(), strict=True):
        _draw_spans(panel, shown, begin, 1e6)
        for span in shown:
            if begin <= span["begin"] and span["end"] <= end:
                middle, lane = (span["begin"] + span["end"]) / 2 - begin, list(LANES).index(span["lane"])
                words = f"{(span['end'] - span['begin']) * 1e6:.3g} us"
                panel.text(middle * 1e6, lane + 0.34, words, ha="center", fontsize="x-small")
        panel.set(xlim=(0, (end - begin) * 1e6), xlabel="us", title=title)


def _draw_spans(panel: Any, spans: list[dict[str, Any]], zero: float, scale: float) -> None:
    for what, colour in COLOURS.items():
        of_it = [span for span in spans if span["what"] == what]
        panel.barh(
            [list(LANES).index(span["lane"]) for span in of_it],
            [(span["end"] - span["begin"]) * scale for span in of_it],
            left=[(span["begin"] - zero) * scale for span in of_it],
            height=0.6, color=colour, label=what,
        )  # fmt: skip
    panel.set_yticks(range(len(LANES)), LANES.values())
    panel.set_ylim(-0.5, len(LANES) - 0.3)


def _draw_sweep(panel: Any, results: list[dict[str, Any]]) -> None:
    places = range(len(results))
    styles = {"ms per iteration": "o-", "heads ms": "s--", "tails ms": "^--"}
    for column, style in styles.items():
        measured = [(place, row[column]) for place, row in zip(places, results, strict=True) if row[column] != ""]
        panel.plot(*zip(*measured, strict=True), style, label=column)
    for place, row in zip(places, results, strict=True):
        if "auto" in row["choice"]:
            panel.axvline(place, color="black", linewidth=0.8, linestyle=":", label='N of split="auto"')
    panel.set_xticks(places, [str(row["N"]) for row in results], rotation=45, fontsize="small")
    panel.set(xlabel="N, in-edges of a vertex that the GPU sums", ylabel="ms", yscale="log")
    plain(panel.yaxis)
    panel.legend(fontsize="small")
