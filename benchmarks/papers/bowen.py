"""Bowen 2022: heterogeneous segments on Kronecker graphs.

J. Bowen, "A Heterogeneous CPU/GPU Implementation of PageRank", UC Santa Cruz 2022, on an i7-9700K with eight cores
and a Quadro RTX 4000. Full runs end when no vertex moves by more than 5e-8 (`stop="vertex"`), on a prepared graph.
GTEPS are 10^9 edges times iterations per second. All ranks must be within 5e-4 of those of one CPU thread, the paper's
own test. cuGraph has another stopping rule, so single iterations are timed.

The paper's listing writes the neighbour's score where the vertex's own is meant. Its code needs a graph that is
undirected, without duplicates, and whose vertices are numbered by descending degree, sources and targets alike; all
experiments are on such a graph, and full runs also on directed ones. The values of its bars of GTEPS are not in its
text.

"The paper's form" is its kernels with its launches: float32, a division by the degree for each edge, scores in place,
moves of at most epsilon kept; each segment has its part of the graph and its counter. "CPU version" is the same rule on
CPU threads; the largest difference of the others is from it on one thread. Claims are graded on these, by GTEPS: the
paper's program reports GTEPS, from which "times as fast" in its text follow. Ratios of run times are in the notes; they
differ, since threads that write scores in place need other numbers of rounds.

"Rounds" runs the paper's update rule on one CPU thread in float32: scores written in place or not, scores that move by
at most epsilon kept or written, scores of dangling vertices dropped or redistributed, on the directed graph, and on the
undirected one without duplicates that the paper's code requires.

"Segments on the CPU, the paper's form" moves the segments that take longest on the GPU to all CPU threads. They follow
those of the GPU, and all scores are copied both ways.

"Kernels by segment" has the least time of each kernel over threads, lanes and blocks; all times are in
`bowen-segments.yaml`, one document per kernel with the fields of the paper's files. "Schedules" compares schedules made
of these times with the best single kernel; "sum ms" adds the times of the segments, each timed alone.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks import peers
from benchmarks.generate import rmat
from benchmarks.measure import repeatedly
from benchmarks.papers import claims, cpu_peers, host_segments, implementations, in_place
from benchmarks.papers.graphs import BenchmarkGraph, generated
from benchmarks.papers.plots import sideways
from benchmarks.papers.tables import ClaimTest, merge_absent, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row, chosen
from prplugin.graph.edges import Edges
from prplugin.machine import this_machine
from prplugin.methods.base import Step
from prplugin.papers._forms import InPlace, PaperStep
from prplugin.papers.segmented import Schedule, Segment, SortedRows
from prplugin.types.arrays import to_host
from prplugin.types.edges import Csc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = peers.PACKAGES

FULL, SWEEP, ROUNDS = "Full runs", "Segments", "Rounds"
HOST, KERNELS, SCHEDULES = "Segments on the CPU, the paper's form", "Kernels by segment", "Schedules"

TABLES = {
    FULL: (
        "graph", "vertices", "edges", "longest row", "what", "iterations", "s", "GTEPS", "speed-up over one CPU thread",
        "speed-up over all CPU threads", "speed-up over the CPU version", "paper speed-up", "largest difference",
        "CPU segments", "note",
    ),
    HOST: ("graph", "CPU segments", "iterations", "s", "GTEPS", "note"),
    SCHEDULES: (
        "graph", "schedule", "sum ms", "ms per iteration", "speed-up over the best single kernel", "kernels", "note",
    ),
    KERNELS: (
        "graph", "segment", "vertices", "edges", "least in-degree", "mean in-degree", "greatest in-degree", "node ms",
        "warp ms", "block ms", "CPU ms", "fastest", "blocks", "GTEPS", "note",
    ),
    SWEEP: ("graph", "what", "segments", "ms per iteration", "GTEPS", "kernels", "note"),
    ROUNDS: ("graph", "edges", "scores", "below epsilon", "dangling", "rounds", "sum of scores", "note"),
}  # fmt: skip

KEYS = (
    "graph",
    "what",
    "segments",
    "CPU segments",
    "schedule",
    "segment",
    "scores",
    "below epsilon",
    "dangling",
)

TOL, WITHIN = 5e-8, 5e-4

SCALES = 20, 22
DEGREE = 16
NAME = f"Kronecker {{}}, degree {DEGREE}"
PAPER_GRAPH = NAME.format(20)
"""Section 2.2: scale 20, degree 16."""

SEGMENTS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
BEST, MOST_SEGMENTS = 24, 64
"""Section 4: the best number of segments in the paper, and one that required too much memory."""

UNDIRECTED = "{}, undirected, no duplicates"
"""Graph that the paper's code requires."""

IN_PLACE, KEPT, DROPPED = "in place", "kept", "dropped"
"""The paper's update rule, in the columns of `ROUNDS`."""

ABOUT = 20
"""Section 2.1: number of rounds."""

BLOCK_THREADS = 1024
"""Section 3.2: a block is 32 warps."""

ONE_TO_ONE, WARP, BLOCK = "GPU One to One: node", "GPU Warp Sum: warp", "GPU Block Sum: block"
HETERO, HETERO_CPU = f"heterogeneous: segmented, {BEST}", f"heterogeneous with CPU: segmented, {BEST}"

FORMS = {what: f"{what}, the paper's form" for what in (ONE_TO_ONE, WARP, BLOCK, HETERO)}
"""The paper's form of its versions."""

CPU_ONE, CPU_VERSION = "CPU version, one thread: the paper's form", "CPU version, all threads: the paper's form"
IN_FORM = {*FORMS.values(), CPU_ONE, CPU_VERSION}

FORCED = (0, 1, 2, 4, 8)
"""Numbers of segments on the CPU."""

PAPER = {ONE_TO_ONE: 1.77, WARP: 27, BLOCK: 1.84, HETERO: 42, HETERO_CPU: 32}
"""Sections 1 and 3: speed-up over one CPU version."""

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    implementations.ONE.label: ("native", {"threads": 1}),
    implementations.ALL_THREADS.label: ("native", {}),
    CPU_ONE: ("CPU version", {"threads": 1}),
    CPU_VERSION: ("CPU version", {}),
    ONE_TO_ONE: ("node", {}),
    WARP: ("warp", {"lanes": 32}),
    BLOCK: ("block", {"threads": BLOCK_THREADS}),
    HETERO: ("segmented", {"segments": BEST}),
    HETERO_CPU: ("segmented", {"segments": BEST, "cpu": True}),
    FORMS[ONE_TO_ONE]: ("node", {"form": "bowen"}),
    FORMS[WARP]: ("warp", {"form": "paper"}),
    FORMS[BLOCK]: ("block", {"form": "paper"}),
    FORMS[HETERO]: ("segmented", {"segments": BEST, "form": "paper"}),
    "prplugin: persistent": ("persistent", {}),
    "prplugin: propagation-blocking": ("propagation-blocking", {}),
}

ONE, ALL = implementations.ONE.label, implementations.ALL_THREADS.label
BASES = {
    "speed-up over one CPU thread": ONE, "speed-up over all CPU threads": ALL,
    "speed-up over the CPU version": CPU_VERSION,
}  # fmt: skip
"""The CPU alone: label in `METHODS` by column."""

PEERS = implementations.SCIPY, *cpu_peers.IMPLEMENTATIONS, implementations.CUSPARSE, implementations.CUGRAPH

SCHEDULE = """\
Segment Device 0 NVIDIA Quadro RTX 4000 [2.33 ms]
0       PR GPU block-min 512 512 [0.22 ms]
1       PR GPU warp-min 256 1024 [0.17 ms]
2       PR GPU warp-min 256 1024 [0.20 ms]
3       PR GPU warp-min 256 1024 [0.23 ms]
4       PR GPU warp-min 256 1024 [0.26 ms]
5       PR GPU block-min 4096 64 [0.29 ms]
6       PR GPU warp-min 256 1024 [0.32 ms]
7       PR GPU one-to-one 256 1024 [0.63 ms]
Longest device time:      2.33 ms"""
"""Section 2.2: example of a schedule."""


def parts(data: Path | None, quick: bool, only: Sequence[str] = ()) -> list[Part]:
    """Return full runs on each graph, and the experiments with segments and rounds on the first graph."""
    directed = [_kronecker(scale) for scale in ((12,) if quick else SCALES)]
    swept = _paper_graph(directed[0])
    graphs = [swept, *directed]
    every = [
        *(Part(f"{graph.name}, full runs", partial(_full_runs, graph), graph.edges) for graph in graphs),
        Part(f"{swept.name}, kernels by segment", partial(_by_kernel, swept), swept.edges),
        Part(f"{swept.name}, segments", partial(_segments, swept), swept.edges),
        Part(f"{swept.name}, rounds", partial(_rounds, directed[0]), swept.edges),
    ]
    return chosen(every, only)


def _kronecker(scale: int) -> BenchmarkGraph:
    return generated(
        NAME.format(scale),
        1 << scale,
        DEGREE << scale,
        lambda memory_space: rmat(scale, DEGREE, memory_space=memory_space),
    )


def _paper_graph(directed: BenchmarkGraph) -> BenchmarkGraph:
    """Return the graph that the paper's code makes of a directed one."""
    make = partial(_as_in_the_paper, directed)
    return replace(directed, name=UNDIRECTED.format(directed.name), edges=2 * directed.edges, make=make)


def _as_in_the_paper(directed: BenchmarkGraph) -> Edges:
    return in_place.graph_of_the_paper(directed.make())


# --- full runs ------------------------------------------------------------------------------------------------------


def _full_runs(graph: BenchmarkGraph) -> Iterator[Row]:
    about: Row = {"graph": graph.name}
    yield from rows_or_reason(row(FULL, TABLES[FULL], about), lambda: merge_absent(_time_all(graph, about)))


def _time_all(graph: BenchmarkGraph, about: Row) -> Iterator[Row]:
    adjacency = graph.adjacency()
    about |= {"vertices": adjacency.n, "edges": adjacency.m, "longest row": adjacency.largest_in_degree}
    cpu: dict[str, float] = {}
    exact = by_the_rule = None
    for what, (name, options) in METHODS.items():
        known = row(FULL, TABLES[FULL], about | {"what": what, "paper speed-up": PAPER.get(what, "")})
        for found in rows_or_reason(known, partial(_timed, adjacency, known, name, options)):
            ranks = found.pop("ranks", None)
            if ranks is not None and what in BASES.values():
                cpu[what] = found["s"]
                exact = ranks if exact is None else exact
            found.update(_speed_ups(cpu, found))
            if what in IN_FORM and ranks is not None and by_the_rule is None:
                by_the_rule = ranks  # on one CPU thread
            expected = by_the_rule if what in IN_FORM else exact
            if expected is not None and ranks is not None:
                found["largest difference"] = float(np.abs(ranks - expected).max())
                if found["largest difference"] > WITHIN:
                    found["note"] = f"WRONG: more than {WITHIN:g} from one CPU thread"
            yield found
    for found in implementations.time_each(adjacency, PEERS):
        gteps = adjacency.m / found["ms"] / 1e6 if "ms" in found else ""
        note = ", ".join(filter(None, ["one iteration", found["note"]])) if gteps else found["note"]
        yield row(FULL, TABLES[FULL], about | found | {"GTEPS": gteps, "note": note})


def _speed_ups(cpu: dict[str, float], found: Row) -> Row:
    """Return the speed-ups over one CPU thread and over all."""
    return {column: cpu[label] / found["s"] for column, label in BASES.items() if label in cpu and found["s"] != ""}


def _cpu_version(adjacency: Edges, known: Row, threads: int | None = None) -> Iterator[Row]:
    """Yield full runs by the paper's rule on CPU threads."""
    here, found = adjacency.on("host"), []
    run = partial(in_place.scores, here, TOL, threads=threads or this_machine().threads)
    samples = repeatedly(lambda: found.append(run()), runs=implementations.RUNS, limit=implementations.LIMIT)
    (count, scores), seconds = found[-1], statistics.median(samples)
    gteps = adjacency.m * count / seconds / 1e9
    yield known | {"iterations": count, "s": seconds, "GTEPS": gteps, "samples": samples, "ranks": scores}


def _timed(adjacency: Edges, known: Row, name: str, options: dict[str, Any]) -> Iterator[Row]:
    if name == "CPU version":
        yield from _cpu_version(adjacency, known, **options)
        return
    step, schedule = (
        _scheduled(adjacency, **options)
        if name == "segmented"
        else (implementations.prepared(name, adjacency, **options), None)
    )
    form = step.form if isinstance(step, PaperStep) else None
    assert form is None or isinstance(form, InPlace)
    iterations: list[int] = []

    def once() -> None:
        if form is None:
            iterations.append(int(implementations.full_run(step, adjacency, "vertex", TOL).iterations))
        else:
            iterations.append(_rounds_of(form, adjacency.n))

    samples = repeatedly(once, runs=implementations.RUNS, limit=implementations.LIMIT)
    yield known | {
        "iterations": iterations[-1],
        "s": statistics.median(samples),
        "GTEPS": adjacency.m * iterations[-1] / statistics.median(samples) / 1e9,
        "note": _kernels(schedule) if schedule else "",
        "CPU segments": len(schedule.host_segments) if schedule else "",
        "samples": samples,
        "ranks": to_host(step.ranks() if form is None else form.in_order()),
    }


def _rounds_of(form: InPlace, n: int) -> int:
    """Run the paper's rule to its end; return the number of rounds."""
    form.load(1 / n, n)
    form.epsilon = TOL
    count = 1
    while form() and count < in_place.MOST:
        count += 1
    return count


# --- kernels by segment, and segments on the CPU --------------------------------------------------------------------


def _by_kernel(graph: BenchmarkGraph) -> Iterator[Row]:
    measured = cache(partial(_measured, graph))
    for table, find in ((KERNELS, _of_kernels), (SCHEDULES, _compared), (HOST, _on_the_cpu)):
        known = row(table, TABLES[table], {"graph": graph.name})
        yield from rows_or_reason(known, partial(find, known, measured))


Measured: TypeAlias = Callable[[], tuple[Edges, SortedRows, list[host_segments.MeasuredSegment]]]


def _measured(graph: BenchmarkGraph) -> tuple[Edges, SortedRows, list[host_segments.MeasuredSegment]]:
    implementations.require_gpu()
    adjacency = graph.adjacency()
    return adjacency, *host_segments.measured_segments(adjacency, BEST)


def _of_kernels(known: Row, measure: Measured) -> Iterator[Row]:
    _, _, measured = measure()
    for k, segment in enumerate(measured):
        fastest = segment.fastest()
        yield known | {
            "segment": k,
            "vertices": segment.last - segment.first,
            "edges": segment.edges,
            "least in-degree": segment.least,
            "mean in-degree": segment.edges / (segment.last - segment.first),
            "greatest in-degree": segment.greatest,
            **{f"{kernel} ms": segment.least_ms(kernel) for kernel in ("node", "warp", "block")},
            "CPU ms": segment.cpu_ms,
            "fastest": host_segments.kernel_name(fastest),
            "blocks": fastest.blocks,
            "GTEPS": segment.edges / max(fastest.ms, 1e-9) / 1e6,
            "samples": [fastest.ms / 1e3],
            "measured": host_segments.fields(segment),
        }


def _compared(known: Row, measure: Measured) -> Iterator[Row]:
    """Yield the times of schedules, the best single kernel first."""
    adjacency, rows, measured = measure()
    chosen = host_segments.schedules(rows, measured)
    _, chosen[f"schedule of segmented, segments={BEST}"] = _scheduled(adjacency, segments=BEST)
    single = 0.0
    for name, schedule in chosen.items():
        step = implementations.prepared("segmented", adjacency, segments=BEST, schedule=schedule)
        samples = implementations.iteration(step, adjacency.n)
        ms = statistics.median(samples) * 1e3
        single = single or ms
        yield known | {
            "schedule": name,
            "sum ms": sum(segment.ms for segment in schedule.segments),
            "ms per iteration": ms,
            "speed-up over the best single kernel": single / ms,
            "kernels": _kernels(schedule),
            "samples": samples,
        }


def _on_the_cpu(known: Row, measure: Measured) -> Iterator[Row]:
    """Yield full runs by the paper's kernels with segments on the CPU: those that take longest on the GPU."""
    adjacency, *_ = measure()
    _, schedule = _scheduled(adjacency, segments=BEST, form="paper")
    slowest = sorted(range(len(schedule.segments)), key=lambda k: -schedule.segments[k].ms)  # edges are about equal
    on_cpu, first = Segment(method="host", threads=this_machine().threads), None
    for count in FORCED:
        segments = [on_cpu if k in slowest[:count] else segment for k, segment in enumerate(schedule.segments)]
        options = {"segments": BEST, "schedule": replace(schedule, segments=tuple(segments)), "form": "paper"}
        [found] = _timed(adjacency, known, "segmented", {**options, "cpu": count > 0})
        ranks = found.pop("ranks")
        first = ranks if first is None else first
        wrong = f"WRONG: more than {WITHIN:g} from those without CPU" if np.abs(ranks - first).max() > WITHIN else ""
        yield found | {"note": wrong or found["note"]}


# --- rounds ---------------------------------------------------------------------------------------------------------


def _rounds(graph: BenchmarkGraph) -> Iterator[Row]:
    """Yield the rounds of each variant of the paper's update rule, on the directed and the undirected graph."""
    adjacency = graph.adjacency()
    both = {
        graph.name: in_place.by_out_degree(adjacency),
        UNDIRECTED.format(graph.name): in_place.by_out_degree(in_place.undirected(adjacency)),
    }
    cases = list(product(both.items(), (False, True), (False, True), (True, False)))
    for each in both.values():
        each.get(Csc)  # computed once, before the threads need it

    def run(case: tuple[tuple[str, Edges], bool, bool, bool]) -> Row:
        (name, of_it), written_in_place, keep, spread = case
        count, total = in_place.rounds(of_it, TOL, in_place=written_in_place, keep=keep, spread=spread)
        return row(ROUNDS, TABLES[ROUNDS], {
            "graph": name, "edges": of_it.m, "scores": IN_PLACE if written_in_place else "those of the last round",
            "below epsilon": KEPT if keep else "written", "dangling": "redistributed" if spread else DROPPED,
            "rounds": count, "sum of scores": total,
        })  # fmt: skip

    with ThreadPoolExecutor(this_machine().threads) as pool:  # the compiled rounds release the GIL
        yield from pool.map(run, cases)


# --- segments -------------------------------------------------------------------------------------------------------


def _segments(graph: BenchmarkGraph) -> Iterator[Row]:
    known = row(SWEEP, TABLES[SWEEP], {"graph": graph.name})
    yield from rows_or_reason(known, partial(_each_count, graph, known))


def _each_count(graph: BenchmarkGraph, known: Row) -> Iterator[Row]:
    implementations.require_gpu()
    adjacency = graph.adjacency()
    for form, count in product((None, "paper"), SEGMENTS):
        step, schedule = _scheduled(adjacency, segments=count, form=form)
        samples = implementations.iteration(step, adjacency.n)
        seconds = statistics.median(samples)
        yield known | {
            "what": FORMS[HETERO] if form else HETERO,
            "segments": len(schedule.segments),
            "ms per iteration": seconds * 1e3,
            "GTEPS": adjacency.m / seconds / 1e9,
            "kernels": _kernels(schedule),
            "schedule": str(schedule),
            "samples": samples,
        }


def _scheduled(adjacency: Edges, **options: Any) -> tuple[Step, Schedule]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "schedule.json"
        step = implementations.prepared("segmented", adjacency, save=file, **options)
        return step, Schedule.load(file)


def _kernels(schedule: Schedule) -> str:
    kernels = [segment.method for segment in schedule.segments]
    return ", ".join(f"{kernels.count(name)} {name}" for name in dict.fromkeys(kernels))


# --- claims ---------------------------------------------------------------------------------------------------------


def _of_the_paper(results: list[Row], table: str) -> list[Row]:
    """Return the rows of the paper's graph."""
    return [line for line in results if line["table"] == table and line["graph"] == UNDIRECTED.format(PAPER_GRAPH)]


def _column(what: str, column: str, results: list[Row]) -> Any:
    """Return a column of a full run on the paper's graph; None if it was not run."""
    lines = (line for line in _of_the_paper(results, FULL) if line["what"] == what)
    return next((line[column] for line in lines if line[column] != ""), None)


def _gteps_ratios(slow: str, fast: str, results: list[Row]) -> dict[str, float]:
    """Return the ratio of the GTEPS of two full runs on the paper's graph, in the paper's form."""
    slower, faster = (_column(FORMS.get(what, what), "GTEPS", results) for what in (slow, fast))
    return {PAPER_GRAPH: faster / slower} if slower and faster else {}


def _by_run_time(what: str, results: list[Row]) -> str:
    """Report the ratios of run times, and of GTEPS to one thread of the CPU version."""
    run, cpu = (_column(each, "s", results) for each in (FORMS.get(what, what), CPU_VERSION))
    words = [f"By run time: {cpu / run:.3g}."] if run and cpu else []
    words += [f"Compared with one thread: {ratio:.3g}." for ratio in _gteps_ratios(CPU_ONE, what, results).values()]
    return " ".join(words)


def _with_cpu(results: list[Row]) -> dict[int, Row]:
    """Return the full runs by number of segments on the CPU."""
    return {line["CPU segments"]: line for line in _of_the_paper(results, HOST) if line["s"] != ""}


def _gteps_with_cpu(results: list[Row]) -> float | None:
    return max((line["GTEPS"] for count, line in _with_cpu(results).items() if count), default=None)


def _speed_up_with_cpu(results: list[Row]) -> dict[str, float]:
    """Return the ratio of the GTEPS with segments on the CPU to those of the CPU version."""
    best, cpu = _gteps_with_cpu(results), _column(CPU_VERSION, "GTEPS", results)
    return {PAPER_GRAPH: best / cpu} if best and cpu else {}


def _without_cpu(results: list[Row]) -> dict[str, float]:
    """Return the ratio of the GTEPS of the same kernels without the CPU to those with it."""
    best, without = _gteps_with_cpu(results), _with_cpu(results).get(0)
    return {PAPER_GRAPH: without["GTEPS"] / best} if best and without else {}


def _by_cpu_segments(results: list[Row]) -> str:
    """Report the full runs by number of segments on the CPU."""
    times = ", ".join(f"{count}: {1e3 * line['s']:.3g}" for count, line in _with_cpu(results).items())
    return times and f"ms by number of CPU segments: {times}."


def _sweep_of(results: list[Row]) -> list[Row]:
    """Return the rows of the sweep over segments in the paper's form."""
    return [line for line in _of_the_paper(results, SWEEP) if line["what"] == FORMS[HETERO]]


def _by_segments(results: list[Row]) -> dict[int, float]:
    return {line["segments"]: line["ms per iteration"] for line in _sweep_of(results)}


def _rise(results: list[Row]) -> dict[str, float]:
    """Return the speed-up of each number of segments over the one before, from 2 to the paper's best."""
    ms = {count: of_it for count, of_it in sorted(_by_segments(results).items()) if 1 < count <= BEST}
    return {f"{after} segments": ms[before] / ms[after] for before, after in pairwise(ms)}


def _most_segments(results: list[Row]) -> dict[str, float]:
    """Return 0 if 64 segments ran: how much memory they would need is not measured."""
    return {PAPER_GRAPH: 0.0} if MOST_SEGMENTS in _by_segments(results) else {}


def _most_segments_ran(results: list[Row]) -> str:
    ms = _by_segments(results).get(MOST_SEGMENTS)
    return f"They ran in {ms:.3g} ms per iteration." if ms else ""


def _than_segments(count: int | None, results: list[Row]) -> dict[str, float]:
    """Return the speed-up of the paper's 24 segments over another number, or over the best other number."""
    ms = _by_segments(results)
    others = [of_it for other, of_it in ms.items() if other != BEST and count in (None, other)]
    return {PAPER_GRAPH: min(others) / ms[BEST]} if BEST in ms and others else {}


def _gteps_of_both(results: list[Row]) -> tuple[float, float] | None:
    """Return the GTEPS of Warp Sum and of one segment."""
    one = next((line["GTEPS"] for line in _sweep_of(results) if line["segments"] == 1), None)
    warp = _column(FORMS[WARP], "GTEPS", results)
    return (warp, one) if warp and one else None


def _over_one_segment(results: list[Row]) -> dict[str, float]:
    gteps = _gteps_of_both(results)
    return {PAPER_GRAPH: gteps[0] / gteps[1]} if gteps else {}


def _both_gteps(results: list[Row]) -> str:
    gteps = _gteps_of_both(results)
    return f"{gteps[0]:.3g} and {gteps[1]:.3g} GTEPS." if gteps else ""


def _best_count(results: list[Row]) -> str:
    timed = _sweep_of(results)
    if not timed:
        return ""
    best = min(timed, key=lambda line: line["ms per iteration"])
    ms, most = _by_segments(results), max(line["segments"] for line in timed)
    words = f"The best are {best['segments']}: {best['ms per iteration']:.3g} ms, {best['kernels']}."
    if most > BEST:
        slope = 1e3 * (ms[most] - ms[BEST]) / (most - BEST)
        words += f" From {BEST} to {most} segments, each additional one adds {slope:.2g} microseconds."
    return words


def _schedule_of(results: list[Row]) -> str:
    """Return the kernels of the schedule without CPU."""
    what = FORMS[HETERO]
    run = _column(what, "s", results)
    told = f"Its schedule: {_column(what, 'note', results)}.", _by_run_time(HETERO, results)
    return "" if run is None else " ".join(filter(None, told))


def _paper_rounds(results: list[Row]) -> dict[str, float]:
    """Return the rounds of the paper's update rule relative to its 20."""
    rule = {"graph": UNDIRECTED.format(PAPER_GRAPH), "scores": IN_PLACE, "below epsilon": KEPT, "dangling": DROPPED}
    rounds = [
        line["rounds"] for line in results
        if line["table"] == ROUNDS and all(line[column] == value for column, value in rule.items())
    ]  # fmt: skip
    return {rule["graph"]: rounds[0] / ABOUT} if rounds else {}


def _iterations(results: list[Row]) -> str:
    """Report the rounds of this library, and of each variant of the update rule."""
    found = {line["iterations"] for line in _of_the_paper(results, FULL) if line["iterations"] != ""}
    words = [f"Reading old scores only, as prplugin: {', '.join(map(str, sorted(found)))} iterations"] if found else []
    words += [
        f"{line['graph'].removeprefix(PAPER_GRAPH).lstrip(', ') or 'directed'}, {line['scores']}, "
        f"{line['below epsilon']}, {line['dangling']}: {line['rounds']}"
        for line in results
        if line["table"] == ROUNDS and line["graph"].startswith(PAPER_GRAPH) and line["scores"] == IN_PLACE
        and line["dangling"] == DROPPED
    ]  # fmt: skip
    return f"{'; '.join(words)}." if words else ""


def _farthest(results: list[Row]) -> str:
    found = [line["largest difference"] for line in _of_the_paper(results, FULL) if line["largest difference"] != ""]
    return f"The greatest difference from one CPU thread is {max(found):.2g}." if found else ""


TESTS = {
    **{
        name: ClaimTest(partial(_gteps_ratios, CPU_VERSION, what), partial(_by_run_time, what))
        for name, what in (("One to One", ONE_TO_ONE), ("Warp Sum", WARP), ("Block Sum", BLOCK))
    },
    "heterogeneous": ClaimTest(partial(_gteps_ratios, CPU_VERSION, HETERO), _schedule_of),
    "heterogeneous with CPU": ClaimTest(_speed_up_with_cpu, _by_cpu_segments),
    "Warp Sum/One to One": ClaimTest(partial(_gteps_ratios, ONE_TO_ONE, WARP)),
    "Warp Sum/Block Sum": ClaimTest(partial(_gteps_ratios, BLOCK, WARP)),
    "heterogeneous/Warp Sum": ClaimTest(partial(_gteps_ratios, WARP, HETERO), _schedule_of),
    "without/with CPU": ClaimTest(_without_cpu, _by_cpu_segments),
    "24/others": ClaimTest(partial(_than_segments, None), _best_count),
    "24/1": ClaimTest(partial(_than_segments, 1)),
    "rise": ClaimTest(_rise),
    "64": ClaimTest(_most_segments, _most_segments_ran),
    "Warp Sum/1": ClaimTest(_over_one_segment, _both_gteps),
    "iterations": ClaimTest(_paper_rounds, _iterations),
    "5e-4": ClaimTest(lambda results: {}, _farthest),
}


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Grade the paper's claims, and show its schedule and the measured one."""
    words, rows = verdicts(claims.BOWEN, TESTS, results)
    swept = [line for line in results if line["table"] == SWEEP and line["ms per iteration"] != ""]
    schedules = {"Example of a schedule in the paper (Section 2.2, scale 20, eight segments)": SCHEDULE}
    if swept and "schedule" in (
        best := min(swept, key=lambda line: line["ms per iteration"])
    ):  # a page does not have it
        schedules[f"The fastest measured schedule, {best['segments']} segments on {best['graph']}"] = best["schedule"]
    if compared := [line for line in results if line["table"] == SCHEDULES and line["sum ms"] != ""]:
        single, best = compared[0], min(compared, key=lambda line: line["ms per iteration"])
        schedules["In the words of the paper's scheduler"] = (
            f"{single['schedule'].capitalize()} [{single['ms per iteration']:.4f} ms]\n"
            f"Best schedule: {best['schedule']} [{best['ms per iteration']:.4f} ms]\n"
            f"{best['speed-up over the best single kernel']:.2f}x speedup"
        )
    for title, schedule in schedules.items():
        words += f"\n\n{title}:\n\n```\n{schedule}\n```"
    return words, rows


def files(results: list[Row]) -> dict[str, str]:
    """Return the times of all kernels as YAML."""
    measured = [line["measured"] for line in results if line["table"] == KERNELS and "measured" in line]
    return {"segments.yaml": host_segments.yaml(measured)} if measured else {}


# --- figures --------------------------------------------------------------------------------------------------------


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw the GTEPS of full runs and of the sweep over segments."""
    drawn = {}
    if any(line["table"] == FULL and line["GTEPS"] != "" for line in results):
        drawn["gteps"] = _gteps(results)
    if swept := [line for line in results if line["table"] == SWEEP and line["GTEPS"] != ""]:
        drawn["segments"] = _sweep(swept)
    return drawn


def _gteps(results: list[Row]) -> Figure:
    groups: dict[str, list[tuple[str, float]]] = {}
    for line in results:
        if line["table"] == FULL and line["GTEPS"] != "":
            groups.setdefault(line["graph"], []).append((line["what"], line["GTEPS"]))
    return sideways(groups, "GTEPS, 1e9 edges times iterations per second", "Bowen 2022: full runs", _kind)


def _kind(what: str) -> str:
    if what in PAPER or what in IN_FORM:
        return "methods of the paper"
    return "other methods of prplugin" if what in METHODS else "other libraries"


def _sweep(swept: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 4.5), layout="constrained")
    panel = drawing.subplots()
    for what in dict.fromkeys(line["what"] for line in swept):
        of_it = [line for line in swept if line["what"] == what]
        points = [line["segments"] for line in of_it], [line["GTEPS"] for line in of_it]
        panel.plot(*points, "o-", label=what or of_it[0]["graph"])
    panel.axvline(BEST, color="black", linewidth=0.8, linestyle=":", label=f"the paper's best, {BEST}")
    panel.set(xlabel="segments", ylabel="GTEPS", ylim=(0, None), title="Bowen 2022: the number of segments")
    panel.legend()
    return drawing
