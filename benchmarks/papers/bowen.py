"""Bowen 2022: heterogeneous segments on Kronecker graphs.

J. Bowen, "A Heterogeneous CPU/GPU Implementation of PageRank", UC Santa Cruz 2022, on an i7-9700K with eight cores
and a Quadro RTX 4000. Full runs end when no vertex moves by more than 5e-8 (`stop="vertex"`), on a prepared graph.
GTEPS are 10^9 edges times iterations per second. The paper updates scores in place and reports "around 20
iterations". All ranks must be within 5e-4 of those of one CPU thread, the paper's own test. cuGraph has another
stopping rule, so single iterations are timed.

The paper's listing writes the neighbour's score where the vertex's own is meant. It sorts vertices by out-degree; the
cost of a sum over in-edges depends on the in-degree, by which segments are sorted here. The values of its bars of
GTEPS are not in its text.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.generate import rmat
from benchmarks.measure import repeatedly
from benchmarks.papers import cpu_peers, sides
from benchmarks.papers.graphs import Named, generated
from benchmarks.papers.plots import sideways
from benchmarks.papers.rounds import full_run
from benchmarks.papers.tables import Claim, absent_together, or_why, row, verdicts
from benchmarks.run import Part, Row
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.base import Step
from prplugin.methods.papers.segmented import Schedule
from prplugin.solver.loop import Outcome
from prplugin.types.arrays import to_host

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KEYS", "PACKAGES", "TABLES", "figures", "parts", "summary"]

PACKAGES = cpu_peers.PACKAGES

FULL, SWEEP = "Full runs", "Segments"

TABLES = {
    FULL: (
        "graph", "vertices", "edges", "longest row", "what", "iterations", "s", "GTEPS", "x one CPU version",
        "the paper's x", "farthest", "CPU segments", "note",
    ),
    SWEEP: ("graph", "segments", "ms per iteration", "GTEPS", "kernels", "note"),
}  # fmt: skip

KEYS = ("graph", "what", "segments")

TOL, WITHIN = 5e-8, 5e-4

SCALES = 20, 22
DEGREE = 16
NAME = f"Kronecker {{}}, degree {DEGREE}"
PAPER_GRAPH = NAME.format(20)
"""Section 2.2: scale 20, degree 16."""

SEGMENTS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
BEST = 24
"""Section 4: what the paper found best."""

BLOCK_THREADS = 1024
"""Section 3.2: a block is 32 warps."""

ONE_TO_ONE, WARP, BLOCK = "GPU One to One: node", "GPU Warp Sum: warp", "GPU Block Sum: block"
HETERO, HETERO_CPU = f"heterogeneous: segmented, {BEST}", f"heterogeneous with CPU: segmented, {BEST}"

PAPER = {ONE_TO_ONE: 1.77, WARP: 27, BLOCK: 1.84, HETERO: 42, HETERO_CPU: 32}
"""Sections 1 and 3: times one CPU version."""

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    sides.ONE.label: ("numba", {"threads": 1}),
    sides.ALL_THREADS.label: ("numba", {}),
    ONE_TO_ONE: ("node", {}),
    WARP: ("warp", {"lanes": 32}),
    BLOCK: ("block", {"threads": BLOCK_THREADS}),
    HETERO: ("segmented", {"segments": BEST}),
    HETERO_CPU: ("segmented", {"segments": BEST, "cpu": True}),
    "prplugin: persistent": ("persistent", {}),
    "prplugin: propagation-blocking": ("propagation-blocking", {}),
}

PEERS = sides.SCIPY, *cpu_peers.SIDES, sides.CUSPARSE, sides.CUGRAPH

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
"""Section 2.2, the example."""


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Full runs on each graph, and the sweep on the first."""
    graphs = [_kronecker(scale) for scale in ((12,) if quick else SCALES)]
    swept = graphs[0]
    return [
        *(Part(f"{graph.name}, full runs", partial(_full_runs, graph), graph.edges) for graph in graphs),
        Part(f"{swept.name}, segments", partial(_segments, swept), swept.edges),
    ]


def _kronecker(scale: int) -> Named:
    return generated(
        NAME.format(scale),
        1 << scale,
        DEGREE << scale,
        lambda memory_space: rmat(scale, DEGREE, memory_space=memory_space),
    )


# --- full runs ----------------------------------------------------------------------------------------------------


def _full_runs(graph: Named) -> Iterator[Row]:
    about: Row = {"graph": graph.name}
    yield from or_why(row(FULL, TABLES[FULL], about), lambda: absent_together(_all_sides(graph, about)))


def _all_sides(graph: Named, about: Row) -> Iterator[Row]:
    adjacency = graph.adjacency()
    about |= {"vertices": adjacency.n, "edges": adjacency.m, "longest row": adjacency.largest_in_degree}
    one: list[float] = []
    exact = None
    for what, (name, options) in METHODS.items():
        known = row(FULL, TABLES[FULL], about | {"what": what, "the paper's x": PAPER.get(what, "")})
        for found in or_why(known, partial(_timed, adjacency, known, name, options)):
            ranks = found.pop("ranks", None)
            if what == sides.ONE.label and ranks is not None:
                one, exact = found["samples"], ranks
            if one and ranks is not None:
                found["x one CPU version"] = statistics.median(one) / found["s"]
                found["farthest"] = float(np.abs(ranks - exact).max())
                if found["farthest"] > WITHIN:
                    found["note"] = f"WRONG: more than {WITHIN:g} from one CPU version"
            yield found
    for found in sides.beside(adjacency, PEERS):
        gteps = adjacency.m / found["ms"] / 1e6 if "ms" in found else ""
        note = ", ".join(filter(None, ["one iteration", found["note"]])) if gteps else found["note"]
        yield row(FULL, TABLES[FULL], about | found | {"GTEPS": gteps, "note": note})


def _timed(adjacency: Adjacency, known: Row, name: str, options: dict[str, Any]) -> Iterator[Row]:
    step, schedule = (
        _scheduled(adjacency, **options) if name == "segmented" else (sides.prepared(name, adjacency, **options), None)
    )
    outcomes: list[Outcome] = []

    def once() -> None:
        outcomes[:] = [full_run(step, adjacency, "vertex", TOL)]

    samples = repeatedly(once, runs=sides.RUNS, limit=sides.LIMIT)
    [outcome] = outcomes
    yield known | {
        "iterations": int(outcome.iterations),
        "s": statistics.median(samples),
        "GTEPS": adjacency.m * int(outcome.iterations) / statistics.median(samples) / 1e9,
        "note": _kernels(schedule) if schedule else "",
        "CPU segments": len(schedule.host_segments) if schedule else "",
        "samples": samples,
        "ranks": to_host(step.ranks()),
    }


# --- segments -----------------------------------------------------------------------------------------------------


def _segments(graph: Named) -> Iterator[Row]:
    known = row(SWEEP, TABLES[SWEEP], {"graph": graph.name})
    yield from or_why(known, partial(_each_count, graph, known))


def _each_count(graph: Named, known: Row) -> Iterator[Row]:
    sides.require_gpu()
    adjacency = graph.adjacency()
    for count in SEGMENTS:
        step, schedule = _scheduled(adjacency, segments=count)
        samples = sides.iteration(step, adjacency.n)
        seconds = statistics.median(samples)
        yield known | {
            "segments": len(schedule.segments),
            "ms per iteration": seconds * 1e3,
            "GTEPS": adjacency.m / seconds / 1e9,
            "kernels": _kernels(schedule),
            "schedule": str(schedule),
            "samples": samples,
        }


def _scheduled(adjacency: Adjacency, **options: Any) -> tuple[Step, Schedule]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "schedule.json"
        step = sides.prepared("segmented", adjacency, save=file, **options)
        return step, Schedule.load(file)


def _kernels(schedule: Schedule) -> str:
    kernels = [segment.method for segment in schedule.segments]
    return ", ".join(f"{kernels.count(name)} {name}" for name in dict.fromkeys(kernels))


# --- what the paper says ------------------------------------------------------------------------------------------


def _times_one(what: str, results: list[Row]) -> float | None:
    return next(
        (
            line["x one CPU version"]
            for line in results
            if line["table"] == FULL and line["graph"] == PAPER_GRAPH and line["what"] == what
            if line["x one CPU version"] != ""
        ),
        None,
    )


def _over(what: str, other: str, results: list[Row]) -> float | None:
    found = _times_one(what, results), _times_one(other, results)
    return found[0] / found[1] if found[0] and found[1] else None


def _of_the_paper(results: list[Row], table: str) -> list[Row]:
    return [line for line in results if line["table"] == table and line["graph"] == PAPER_GRAPH]


def _by_segments(results: list[Row]) -> dict[int, float]:
    return {
        line["segments"]: line["ms per iteration"] for line in _of_the_paper(results, SWEEP) if line["segments"] != ""
    }


def _of_segments(results: list[Row]) -> float | None:
    """Give how much the paper's 24 segments gain over one."""
    ms = _by_segments(results)
    return ms[1] / ms[BEST] if BEST in ms and 1 in ms else None


def _beside_the_others(results: list[Row]) -> float | None:
    """Give how much the paper's 24 segments gain over the best of the others."""
    ms = _by_segments(results)
    others = [of_it for count, of_it in ms.items() if count != BEST]
    return min(others) / ms[BEST] if BEST in ms and others else None


def _without_the_cpu(results: list[Row]) -> bool:
    return not any(line["CPU segments"] for line in _of_the_paper(results, FULL) if line["what"] == HETERO_CPU)


def _best_count(results: list[Row]) -> str:
    timed = [line for line in _of_the_paper(results, SWEEP) if line["ms per iteration"] != ""]
    best = min(timed, key=lambda line: line["ms per iteration"])
    ms, most = _by_segments(results), max(line["segments"] for line in timed)
    words = f"The best are {best['segments']}: {best['ms per iteration']:.3g} ms, {best['kernels']}."
    if most > BEST:
        slope = 1e3 * (ms[most] - ms[BEST]) / (most - BEST)
        words += f" From {BEST} to {most} segments, each additional one adds {slope:.2g} microseconds."
    return words


def _rows(results: list[Row]) -> str:
    line = _of_the_paper(results, FULL)[0]
    words = f"A row has {line['edges'] / line['vertices']:.0f} edges on average"
    return words + (f", and the longest {line['longest row']:,}." if line["longest row"] else ".")


def _schedule_of(what: str, results: list[Row]) -> str:
    line = next(line for line in _of_the_paper(results, FULL) if line["what"] == what)
    return f"Its schedule: {line['note']}."


CHOSEN = "the CPU takes a segment only where it was measured to help"
COPIED = "contributions come down and sums go up in every iteration."

WHY = {
    ONE_TO_ONE: (
        "thousands of rows are read concurrently, although all wait for the longest.",
        "a thread goes through a hub's edges one after the other, and all wait for it.",
        _rows,
    ),
    WARP: (
        "32 lanes share a row, so that hubs do not dominate and index reads are coalesced.",
        "even 32 lanes go through a hub's edges for longer than the CPU takes for all.",
        _rows,
    ),
    BLOCK: (
        "a block handles hubs well, but most rows have fewer edges than a block has threads.",
        "most rows have fewer edges than a block has threads, and a block costs a reduction a row.",
        _rows,
    ),
    HETERO: (
        "hubs are summed by blocks, and short rows by lanes or threads.",
        "launches cost more than what each segment's own kernel saves.",
        partial(_schedule_of, HETERO),
    ),
    HETERO_CPU: (f"as without the CPU; {CHOSEN}.", COPIED, partial(_schedule_of, HETERO_CPU)),
}
"""Of what is ahead, what is behind, and what of the rows shows it."""

CLAIMS = (
    *(
        Claim(
            what=f"{what}, compared with one CPU version",
            paper=factor,
            where="Sections 1 and 3",
            found=partial(_times_one, what),
            ahead=WHY[what][0],
            behind=WHY[what][1],
            figures=WHY[what][2],
        )
        for what, factor in PAPER.items()
    ),
    Claim(
        what="heterogeneous compared with Warp Sum",
        paper=42 / 27,
        where="Section 1, 42 to 27",
        found=partial(_over, HETERO, WARP),
        ahead="a segment holds rows of similar degree, and each segment uses its fastest kernel.",
        behind="a warp a row is about as good for most segments, and many small launches fill the GPU less well than "
        "a large one.",
        level="the gain of separate kernels equals their launch overhead.",
        figures=partial(_schedule_of, HETERO),
    ),
    Claim(
        what="heterogeneous without the CPU, relative to with the CPU",
        paper=42 / 32,
        where="Section 1, 42 to 32",
        found=partial(_over, HETERO, HETERO_CPU),
        ahead=COPIED,
        behind="the CPU takes segments while the GPU is busy with the others.",
        level=f"{CHOSEN}: if it takes none, the two versions are the same and differ by noise.",
        figures=partial(_schedule_of, HETERO_CPU),
        same=_without_the_cpu,
    ),
    Claim(
        what=f"{BEST} segments compared with any other number",
        paper=None,
        where="Section 4; shown only as bars",
        found=_beside_the_others,
        ahead="fewer segments have less suitable kernels, and more segments cost more launches.",
        behind="the launch overhead of more kernels exceeds the gain of a finer choice.",
        level="near the best number, the number of segments matters little.",
        figures=_best_count,
    ),
    Claim(
        what=f"{BEST} segments compared with one",
        paper=None,
        where="Section 4; shown only as bars",
        found=_of_segments,
        ahead="one segment has one kernel for all rows.",
        behind="the launch of each segment costs more than its own kernel saves.",
        level="the gain of separate kernels equals their launch overhead.",
        figures=_best_count,
    ),
)


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Compare the paper's claims and its schedule with what was found."""
    words, rows = verdicts(CLAIMS, results)
    swept = [line for line in results if line["table"] == SWEEP and line["ms per iteration"] != ""]
    schedules = {"The paper's example of a schedule (Section 2.2, scale 20, eight segments)": SCHEDULE}
    if swept:
        best = min(swept, key=lambda line: line["ms per iteration"])
        schedules[f"The schedule of the best here, {best['segments']} segments on {best['graph']}"] = best["schedule"]
    for title, schedule in schedules.items():
        words += f"\n\n{title}:\n\n```\n{schedule}\n```"
    return words, rows


# --- figures ------------------------------------------------------------------------------------------------------


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw GTEPS of full runs, and of the sweep."""
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
    if what in (sides.ONE.label, *PAPER):
        return "the paper's methods"
    return "prplugin's" if what in METHODS else "other libraries"


def _sweep(swept: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 4.5), layout="constrained")
    panel = drawing.subplots()
    panel.plot([line["segments"] for line in swept], [line["GTEPS"] for line in swept], "o-", label=swept[0]["graph"])
    panel.axvline(BEST, color="black", linewidth=0.8, linestyle=":", label=f"the paper's best, {BEST}")
    panel.set(xlabel="segments", ylabel="GTEPS", ylim=(0, None), title="Bowen 2022: the number of segments")
    panel.legend()
    return drawing
