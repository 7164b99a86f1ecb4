"""Concurrent work of GPU and CPU with ``method="cpu-split"``.

The GPU sums the first N in-edges of each vertex (the head), and the CPU the other ones (the tail). "GPU ms" is the time
of the heads, "CPU ms" the time of the tails including both copies, from the beginning of the copy to the host to the
end of the copy back. An iteration takes at least the longer of the two, and would take their sum without concurrency.
"overlap" is the fraction of the CPU's time for tails in which the GPU was summing heads, on a common clock.

"auto" marks the choice of ``split="auto"``; if that is a list of N, the distinct values are shown. "balanced" is the N
at which GPU and CPU take approximately the same time, found by bisection. The figure shows its timeline, or the one of
``--split N``, on the graph on which both times are closest. Contributions are in float32, sums in float64. "GPU ms,
256" is the time of the heads in blocks of 256 threads instead of 64: rows are in descending order of in-degree, so that
long rows share few blocks, and therefore few multiprocessors.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from benchmarks.generate import rmat
from benchmarks.measure import repeatedly
from benchmarks.papers.graphs import BenchmarkGraph, generated, real
from benchmarks.papers.plots import plain
from benchmarks.run import Part, Row
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.papers import cpu_split
from prplugin.papers._host_rows import unrecorded
from prplugin.papers._rows import RowsPull, best_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "KEYS", "Span", "figure", "median_ms", "parts", "recorded", "summary"]

COLUMNS = (
    "graph", "edges", "N", "choice", "tail vertices", "tail edges", "MB down", "MB up", "ms per iteration", "GPU ms",
    "GPU ms, 256", "CPU ms", "tails ms", "longer ms", "sum ms", "overlap %",
)  # fmt: skip

KEYS = ("graph", "N", "choice")

SWEEP = (
    0, 1, 4, 16, 64, 256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536,
    "all",
)  # fmt: skip
SCALES = 18, 19, 20, 21, 22
STEPS, LIMIT = 51, 0.25
"""Largest number of samples, and the seconds after which no more are taken."""
RECORDED = 9

BALANCED = 0.03
"""Relative difference between the times of GPU and CPU at which the bisection ends."""

BISECTIONS = 8

LANES = {"host": "CPU", "copy": "copy", "GPU": "GPU"}
"""Labels of the lanes of the timeline, from bottom to top."""

COLOURS = {
    "gather": "tab:cyan", "heads": "tab:blue", "add": "tab:purple", "down": "tab:orange", "up": "tab:red",
    "tails": "tab:green",
}  # fmt: skip


def graphs(data: Path | None, quick: bool) -> list[BenchmarkGraph]:
    """Return R-MAT graphs, and cnr-2000 if its file exists."""
    made = [
        generated(f"R-MAT {scale}", 1 << scale, 16 << scale, partial(rmat, scale, 16, 1))
        for scale in ((18,) if quick else SCALES)
    ]
    return [*filter(None, [real(data, "cnr-2000", 325_557, 3_216_152)]), *made]


def parts(data: Path | None, quick: bool, split: int | None = None) -> list[Part]:
    """Return one part per graph."""
    if reason := cpu_split.unavailable_reason(None, this_machine()):
        raise click.ClickException(f"method 'cpu-split' cannot run here: {reason}")
    return [Part(graph.name, partial(_rows, graph, split), graph.edges) for graph in graphs(data, quick)]


def _rows(graph: BenchmarkGraph, drawn: int | None) -> Iterator[Row]:
    """Yield the times for each N, and the recorded spans of the balanced or the given N."""
    machine = this_machine()
    adjacency = graph.adjacency().on("device")
    problem = Problem(adjacency, 0.85)
    longest = adjacency.largest_in_degree

    def measured(choice: str, *split: Any) -> Row:
        step = cpu_split.prepare(problem, machine, split=list(split))
        found = {"graph": graph.name, "edges": adjacency.m, "N": cpu_split.split_text(split), "choice": choice}
        return found | _measure(step, adjacency.n)

    chosen = tuple(cpu_split.prepare(problem, machine).split)
    swept = []
    for n in SWEEP:
        if n == "all" or n < longest:
            row = measured("auto" * (chosen == (n,)), n)
            if row["CPU ms"] != "":
                swept.append((n, row["GPU ms"], row["CPU ms"]))
            yield row | {"spans": []}
    if chosen not in {(n,) for n in SWEEP}:
        yield measured("auto", *chosen) | {"spans": []}
    if drawn is not None:
        yield measured("drawn", drawn)
    elif swept:
        yield measured("balanced", balanced(swept, longest, lambda n: measured("", n)))


def balanced(swept: list[tuple[int, float, float]], longest: int, measure: Callable[[int], Row]) -> int:
    """Return the N at which GPU and CPU take the same time, by bisection between neighbours of the sweep.

    Parameters
    ----------
    swept : list of tuple
        N, time of the GPU and time of the CPU; the former increases with N, the latter decreases.
    longest : int
        Largest in-degree, with which no edges remain for the CPU.
    measure : function
        Returns "GPU ms" and "CPU ms" for an N.
    """
    low = max((n for n, gpu, cpu in swept if gpu < cpu), default=0)
    high = min((n for n, gpu, cpu in swept if gpu >= cpu and n > low), default=longest)
    best = min(swept, key=lambda times: _imbalance(*times[1:]))
    for _ in range(BISECTIONS):
        n = math.isqrt(max(low, 1) * high)
        if _imbalance(*best[1:]) < BALANCED or not low < n < high:
            break
        row = measure(n)
        gpu, cpu = row["GPU ms"], row["CPU ms"] or 0.0
        best = min(best, (n, gpu, cpu), key=lambda times: _imbalance(*times[1:]))
        low, high = (n, high) if gpu < cpu else (low, n)
    return best[0]


def _imbalance(gpu: float, cpu: float) -> float:
    return abs(gpu - cpu) / max(gpu, cpu)


def _measure(step: cpu_split.SplitStep, n: int) -> Row:
    """Time iterations, and then the operations of further, recorded iterations."""
    import cupy

    step.set_contribution_dtype("float32")  # as "auto" times it
    step.start(1 / n)
    step()
    seconds = repeatedly(step, runs=STEPS, limit=LIMIT)  # a step returns after its norms have been copied to the host
    with recorded(step.pull) as spans:
        for _ in range(RECORDED):
            step()
    tails = step.pull.tails
    vertices, edges, sources = (0, 0, 0) if tails is None else (tails.vertices, tails.edges, tails.sources)
    contributions, row_sums = cupy.full(n, 1 / n, "float32"), cupy.empty(n)
    large_blocks = RowsPull(step.pull._heads._layout, "node", threads=256)
    gpu, cpu = median_ms(spans, "heads"), ""
    row: Row = {
        "tail vertices": vertices,
        "tail edges": edges,
        "MB down": 4 * sources / 1e6,
        "MB up": 8 * vertices / 1e6,
        "ms per iteration": statistics.median(seconds) * 1e3,
        "GPU ms": gpu,
        "GPU ms, 256": best_seconds(lambda: large_blocks(contributions, row_sums)) * 1e3,
        **dict.fromkeys(("CPU ms", "tails ms", "overlap %"), ""),
        "longer ms": gpu,
        "sum ms": gpu,
        "samples": seconds,
        "spans": [span._asdict() for span in spans],
    }
    if tails is not None:
        cpu = statistics.median(_cpu_seconds(spans, iteration) for iteration in range(RECORDED)) * 1e3
        row |= {
            "CPU ms": cpu,
            "tails ms": median_ms(spans, "tails"),
            "longer ms": max(gpu, cpu),
            "sum ms": gpu + cpu,
            "overlap %": 100 * statistics.median(_overlap(spans, iteration) for iteration in range(RECORDED)),
        }
    return row


def _cpu_seconds(spans: list[Span], iteration: int) -> float:
    """Return the seconds from the beginning of the copy to the host to the end of the copy back."""
    at = {span.what: span for span in spans if span.iteration == iteration}
    return at["up"].end - at["down"].begin


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
def recorded(pull: Any) -> Iterator[list[Span]]:
    """Record the steps within the block by the `span` of their pull; the list is filled when it ends."""
    spans: list[Span] = []
    timeline = _Timeline()
    pull.span = timeline.span
    try:
        yield spans
    finally:
        pull.span = unrecorded
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


def median_ms(spans: list[Span], what: str) -> float:
    """Return the median of the milliseconds of an operation."""
    return statistics.median(span.end - span.begin for span in spans if span.what == what) * 1e3


WITHIN = 0.1
"""Fraction by which "auto" may be slower than the best N."""


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Compare the choice of "auto" with the best N and with "all"; report the balanced timelines."""
    words, lines = [], []
    for name in dict.fromkeys(row["graph"] for row in results):
        of_graph = [row for row in results if row["graph"] == name]
        drawn = [row for row in of_graph if row["choice"] in ("balanced", "drawn")]
        words += [f"{name}, N = {row['N']}: {_format_times(row)}." for row in drawn]
        chosen = [row for row in of_graph if row["choice"] == "auto"]
        alone = [row["ms per iteration"] for row in of_graph if row["N"] == "all"]
        if not chosen or not alone:
            continue
        best = min(of_graph, key=lambda row: row["ms per iteration"])
        auto = chosen[0]["ms per iteration"]
        lines.append(
            {
                "graph": name,
                "all ms": alone[0],
                "best N": best["N"],
                "best ms": best["ms per iteration"],
                "auto N": chosen[0]["N"],
                "auto ms": auto,
                "auto / best": auto / best["ms per iteration"],
                "all / auto": alone[0] / auto,
            }
        )
    close = sum(line["auto / best"] <= 1 + WITHIN for line in lines)
    helped = [f"{line['graph']} ({line['all / auto']:.3g})" for line in lines if line["auto N"] != "all"]
    rest = [line["graph"] for line in lines if line["auto N"] == "all"]
    words.append(f'"auto" is within {WITHIN:.0%} of the best N on {close} of {len(lines)} graphs.')
    words.append(f'Speed-up by the CPU, "all" compared with "auto": {", ".join(helped) or "none"}.')
    if rest:
        words.append(f'The CPU does not help on {", ".join(rest)}, where "auto" is "all".')
    return " ".join(words), lines


def _format_times(row: Row) -> str:
    """Return the times of GPU and CPU in an iteration, their sum, and the measured time as text."""
    if row["CPU ms"] == "":
        return f"an iteration takes {row['ms per iteration']:.3g} ms, on the GPU alone"
    return (
        f"GPU {row['GPU ms']:.3g} ms, CPU {row['CPU ms']:.3g} ms; sum {row['sum ms']:.3g} ms, maximum "
        f"{row['longer ms']:.3g} ms, measured {row['ms per iteration']:.3g} ms"
    )


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw the timeline of two iterations with enlarged sections, and the sweep over N.

    The figure shows the graph on which the times of GPU and CPU are closest.
    """
    from matplotlib.figure import Figure

    timelines = [row for row in results if row["spans"]]
    name = min(timelines or results, key=lambda row: _imbalance(row["GPU ms"], row["CPU ms"] or 0.0))["graph"]
    results = [row for row in results if row["graph"] == name]
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
    whole.set_xlabel("ms")
    whole.set_title(f"{row['graph']}, N = {row['N']}, two iterations\n{_format_times(row)}", fontsize="small")
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
        operations = [span for span in spans if span["what"] == what]
        panel.barh(
            [list(LANES).index(span["lane"]) for span in operations],
            [(span["end"] - span["begin"]) * scale for span in operations],
            left=[(span["begin"] - zero) * scale for span in operations],
            height=0.6, color=colour, label=what,
        )  # fmt: skip
    panel.set_yticks(range(len(LANES)), LANES.values())
    panel.set_ylim(-0.5, len(LANES) - 0.3)


def _draw_sweep(panel: Any, results: list[dict[str, Any]]) -> None:
    swept = [row for row in results if row["N"] == "all" or row["N"].isdigit()]
    swept.sort(key=lambda row: math.inf if row["N"] == "all" else int(row["N"]))
    places = range(len(swept))
    for column, style in {"ms per iteration": "o-", "GPU ms": "s--", "CPU ms": "^--"}.items():
        measured = [(place, row[column]) for place, row in zip(places, swept, strict=True) if row[column] != ""]
        panel.plot(*zip(*measured, strict=True), style, label=column)
    for row in results:
        if row["choice"] == "auto":
            panel.axhline(
                row["ms per iteration"], color="black", linewidth=0.8, linestyle=":", label=f"auto: N = {row['N']}"
            )
    panel.set_xticks(places, [row["N"] for row in swept], rotation=45, fontsize="small")
    panel.set(xlabel="N, in-edges of a vertex that the GPU sums", ylabel="ms", yscale="log")
    plain(panel.yaxis)
    panel.legend(fontsize="small")
