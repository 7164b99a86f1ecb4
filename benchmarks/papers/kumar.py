"""Kumar, Sondhi and Mittal 2012: work shared by GPU and CPU.

"Parallelization of PageRank on Multicore Processors", on a GTX 280, a Cell BE and Xeons with two cores. The GPU sums
the first N in-edges of every vertex while the CPU sums the others (`cpu-split`). The Cell version copies ranks into
edge order and streams them through a small local store (`expanded`, `streamed`). One thread per edge, which needed
atomic additions of floats, is `edge`. The paper states neither its N nor its number of iterations, and shows times
only as bars (Figures 6 to 8); here single iterations are timed. Its ranks sum to n, `scale="n"`, with the same
iteration.

In the paper's form (`cpu-split`, `form="paper"`) every GPU thread takes N turns and divides by the out-degree for each
edge, one CPU thread sums the other in-edges, and all ranks and sums are copied; claims are graded on it. `cpu-split`
ends a loop with its row, uses all CPU threads, and copies what is read; rows are in the order of the vertices unless
"by in-degree" is stated. "N by block" gives every block of vertices its own N: the percentile of the block's in-degrees
that the column states. "auto" marks the choice of `split="auto"`.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import peers
from benchmarks.generate import crawl
from benchmarks.papers import claims, cpu_peers, implementations
from benchmarks.papers.graphs import BenchmarkGraph, generated, real
from benchmarks.papers.plots import plain, sideways
from benchmarks.papers.tables import ClaimTest, merge_absent, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges
from prplugin.methods.base import Step
from prplugin.papers import cpu_split
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import Csc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = peers.PACKAGES

ITERATION, SPLIT, BLOCKS = "Time per iteration", "Tail edges by N", "N by block"

TABLES = {
    ITERATION: ("graph", "vertices", "edges", "what", "ms", "speed-up over one CPU thread", "note"),
    SPLIT: (
        "graph", "form", "N", "choice", "tail vertices", "tail edges", "% of the edges", "ms per iteration", "note",
    ),
    BLOCKS: (
        "graph", "form", "blocks", "percentile", "least N", "greatest N", "% of the edges", "ms per iteration",
        "speed-up over the best single N", "note",
    ),
}  # fmt: skip

KEYS = ("graph", "what", "form", "N", "blocks", "percentile")

GRAPHS = (("cnr-2000", 325_557, 3_216_152), ("eu-2005", 862_664, 19_235_140), ("in-2004", 1_382_908, 18_534_900))
"""Section 5: nodes and links."""

SWEEP = (0, *(1 << power for power in range(31)))
"""Those below the longest row are timed, and "all"."""

OURS, ONE_THREAD = "cpu-split", "cpu-split, one CPU thread"
SORTED = "cpu-split, rows by in-degree"
PAPERS = "the paper's: unsorted, loop of N, one CPU thread"
OPTIONS: dict[str, dict[str, Any]] = {
    OURS: {},
    ONE_THREAD: {"threads": 1},
    SORTED: {"by_degree": True},
    PAPERS: {"form": "paper"},
}
"""Options of `cpu-split` by form."""

FORMS = tuple(OPTIONS)

PAPER_SWEEP = (0, *(1 << power for power in range(2, 14, 2)), *(1 << power for power in range(14, 31)))
"""N of the other forms."""

BLOCK_COUNTS = (64, 4096)
PERCENTILES = (50.0, 90.0, 99.0, 99.9)

SPLIT_LABEL, CELL_LABEL = "GPU and CPU: cpu-split, N by auto", "Cell BE, edge order: expanded"
NODE_LABEL, EDGE_LABEL = "GPU, one thread per vertex: node", "GPU, one thread per edge: edge"
PAPER_LABEL = "GPU and CPU, the paper's form: loop of N, unsorted, one CPU thread"

IMPLEMENTATIONS = (
    implementations.ONE,
    implementations.ALL_THREADS,
    implementations.SCIPY,
    *cpu_peers.IMPLEMENTATIONS,
    implementations.method(SPLIT_LABEL, "cpu-split"),
    implementations.method(NODE_LABEL, "node"),
    implementations.method(EDGE_LABEL, "edge"),
    implementations.method(CELL_LABEL, "expanded"),
    implementations.streamed("Cell BE, local store: streamed"),
    implementations.OURS,
    implementations.CUSPARSE,
    implementations.CUGRAPH,
)


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph; a graph without a file is replaced by a generated one of its size."""
    graphs = [_graph(data, *known, quick) for known in GRAPHS]
    return [Part(graph.name, partial(_of_graph, graph), graph.edges) for graph in graphs]


def _graph(data: Path | None, name: str, n: int, m: int, quick: bool) -> BenchmarkGraph:
    if (file := real(data, name, n, m)) is not None and (m < 5_000_000 or not quick):
        return file
    instead = "" if quick else f" in place of {name}"
    n, m = (n // 100, m // 100) if quick else (n, m)
    return generated(f"crawl {n:,} x {m:,}{instead}", n, m, lambda memory_space: crawl(n, m, memory_space=memory_space))


def _of_graph(graph: BenchmarkGraph) -> Iterator[Row]:
    about: Row = {"graph": graph.name}
    yield from rows_or_reason(row(ITERATION, TABLES[ITERATION], about), partial(_both, graph, about))


def _both(graph: BenchmarkGraph, about: Row) -> Iterator[Row]:
    adjacency = graph.adjacency()
    about |= {"vertices": adjacency.n, "edges": adjacency.m}
    one = None
    for found in merge_absent(implementations.time_each(adjacency, IMPLEMENTATIONS)):
        if found["what"] == implementations.ONE.label:
            one = found.get("ms")
        yield row(ITERATION, TABLES[ITERATION], about | found)
    best: dict[str, Row] = {}
    for found in _splits(adjacency, about):
        if "samples" in found:
            best[found["form"]] = min(best.get(found["form"], found), found, key=_ms_per_iteration)
        yield found
    if PAPERS in best:
        ms, n = best[PAPERS]["ms per iteration"], best[PAPERS]["N"]
        faster = {} if one is None else {"speed-up over one CPU thread": one / ms}
        found = {"what": PAPER_LABEL, "ms": ms, "note": f"best N: {n}", "samples": best[PAPERS]["samples"]}
        yield row(ITERATION, TABLES[ITERATION], about | found | faster)
    known = row(BLOCKS, TABLES[BLOCKS], {"graph": about["graph"]})
    yield from rows_or_reason(known, partial(_blocks, adjacency, known, best))


def _ms_per_iteration(line: Row) -> float:
    ms: float = line["ms per iteration"]
    return ms


# --- sweep over N ---------------------------------------------------------------------------------------------------


def _splits(adjacency: Edges, about: Row) -> Iterator[Row]:
    """Yield the tail edges by N, and with a GPU the times."""
    longest = adjacency.largest_in_degree
    degrees = _sorted_degrees(adjacency)
    for form in FORMS[:1] if runtime.unavailable_reason() else FORMS:
        chosen, told = _chosen_split(adjacency, form) if form in (OURS, PAPERS) else (None, "")
        splits: list[Sequence[Any]] = [(n,) for n in (SWEEP if form == OURS else PAPER_SWEEP) if n < longest]
        splits.append(("all",))
        if chosen is not None and chosen not in splits:
            splits.append(chosen)
        for split in splits:
            tails = degrees - cpu_split.head_lengths(degrees, list(split))
            edges = int(tails.sum())
            known = {
                "graph": about["graph"],
                "form": form,
                "N": split[0] if len(split) == 1 else cpu_split.split_text(split),
                "choice": "auto" if split == chosen else "",
                "note": told if split == chosen else "",
                "tail vertices": int((tails > 0).sum()),
                "tail edges": edges,
                "% of the edges": 100 * edges / adjacency.m,
            }
            line = row(SPLIT, TABLES[SPLIT], known)
            if runtime.unavailable_reason():  # another row has the reason
                yield line
            else:
                yield from rows_or_reason(line, partial(_timed, adjacency, line, form, split))


def _sorted_degrees(adjacency: Edges) -> Any:
    """Return the in-degrees in descending order."""
    offsets = adjacency.get(Csc).offsets
    return namespace(offsets).sort(offsets[1:] - offsets[:-1])[::-1]


def _chosen_split(adjacency: Edges, form: str) -> tuple[tuple[Any, ...] | None, str]:
    """Return the N that `split="auto"` chooses, and how it was found; None if the method cannot run."""

    def notes() -> Iterator[Row]:
        yield {"note": implementations.prepared("cpu-split", adjacency, **OPTIONS[form]).notes[0]}

    for found in rows_or_reason({}, notes):
        if said := re.match(r"N = (\d+|all), ", found["note"]):
            return ("all" if said[1] == "all" else int(said[1]),), found["note"]
    return None, ""


def _timed(adjacency: Edges, line: Row, form: str, split: Sequence[Any]) -> Iterator[Row]:
    samples = implementations.short_iteration(_step(adjacency, form, split), adjacency.n)
    yield line | {"ms per iteration": statistics.median(samples) * 1e3, "samples": samples}


def _step(adjacency: Edges, form: str, split: Sequence[Any]) -> Step:
    """Prepare a form with one N per block of vertices."""
    return implementations.prepared("cpu-split", adjacency, split=list(split), **OPTIONS[form])


def _blocks(adjacency: Edges, known: Row, best: dict[str, Row]) -> Iterator[Row]:
    """Yield the times with an N for each block of vertices."""
    implementations.require_gpu()
    by_vertex = np.diff(to_host(adjacency.get(Csc).offsets))
    for form, degrees in ((SORTED, np.sort(by_vertex)[::-1]), (PAPERS, by_vertex)):
        for count in BLOCK_COUNTS:
            for percentile in PERCENTILES if count <= adjacency.n else ():
                split, block = block_limits(degrees, count, percentile, equal_size=form == PAPERS)
                tails = np.maximum(degrees - split[block], 0)
                line = known | {
                    "form": form,
                    "blocks": split.size,
                    "percentile": percentile,
                    "least N": int(split.min()),
                    "greatest N": int(split.max()),
                    "% of the edges": 100 * int(tails.sum()) / adjacency.m,
                }
                for found in rows_or_reason(line, partial(_timed, adjacency, line, form, split.tolist())):
                    if form in best and "samples" in found:
                        ratio = _ms_per_iteration(best[form]) / _ms_per_iteration(found)
                        yield found | {"speed-up over the best single N": ratio}
                    else:
                        yield found


def block_limits(degrees: Any, count: int, percentile: float, *, equal_size: bool) -> tuple[Any, Any]:
    """Return a percentile of the degrees of each block of rows, and the block of each row.

    Blocks are as `cpu_split.head_lengths` has them, or of ``ceil(n / count)`` rows, where the last may be shorter.
    """
    n, rows = degrees.size, np.arange(degrees.size)
    block = rows // -(-n // count) if equal_size else rows * count // n
    cuts = np.flatnonzero(np.diff(block)) + 1
    limits = [np.percentile(part, percentile, method="higher") for part in np.split(degrees, cuts)]
    return np.array(limits, np.int64), block


# --- claims ---------------------------------------------------------------------------------------------------------


def _ms(results: list[Row], graph: str, what: str) -> dict[str, float]:
    """Return the ms of an iteration by graph, for a graph of the paper or its replacement."""
    return {
        line["graph"]: line["ms"]
        for line in results
        if line["table"] == ITERATION and graph in line["graph"] and line.get("what") == what and line["ms"] != ""
    }


def _ratio(graph: str, slow: str, fast: str, results: list[Row]) -> dict[str, float]:
    slower, faster = _ms(results, graph, slow), _ms(results, graph, fast)
    return {name: ms / faster[name] for name, ms in slower.items() if name in faster}


def _of_the_paper(results: list[Row], table: str) -> dict[str, list[Row]]:
    """Return the rows of the paper's graphs, or of their replacements, by graph."""
    found: dict[str, list[Row]] = {}
    for line in results:
        if line["table"] == table and any(name in line["graph"] for name, _, _ in GRAPHS):
            found.setdefault(line["graph"], []).append(line)
    return found


def _gains(results: list[Row], *, best: bool = False, form: str = OURS) -> dict[str, float]:
    """Return the speed-up over all edges on the GPU by graph, with the N of auto or with the best other N."""
    gains = {}
    for graph, lines in _of_the_paper(results, SPLIT).items():
        timed = [line for line in lines if line["ms per iteration"] != "" and (line["form"] or OURS) == form]
        alone = [line["ms per iteration"] for line in timed if line["N"] == "all"]
        helped = [line["ms per iteration"] for line in timed if (line["N"] != "all" if best else line["choice"])]
        if alone and helped:
            gains[graph] = alone[0] / min(helped)
    return gains


def _other_gains(results: list[Row]) -> str:
    """Report the speed-up of prplugin's kernels over the same on the GPU alone, and over one thread per edge."""
    gains = {
        "prplugin's, N by auto": _gains(results),
        "prplugin's, best N": _gains(results, best=True),
        "prplugin's, N by auto, over one thread per edge": {
            graph: ratio
            for name, *_ in GRAPHS
            for graph, ratio in _ratio(name, EDGE_LABEL, SPLIT_LABEL, results).items()
        },
    }
    return " ".join(
        f"{what}: {'; '.join(f'{name} {gain:.3g}' for name, gain in by_graph.items())}."
        for what, by_graph in gains.items() if by_graph
    )  # fmt: skip


def _on(graph: str, *shown: str) -> Callable[[list[Row]], str]:
    """Report the times per iteration on a graph."""

    def said(results: list[Row]) -> str:
        told = "; ".join(f"{what}: {ms:.2g} ms" for what in shown for ms in _ms(results, graph, what).values())
        return told and f"{told}."

    return said


def _cell_on_the_gpu(results: list[Row]) -> str:
    told = _on("eu-2005", CELL_LABEL, SPLIT_LABEL)(results)
    return told and f"Both algorithms on one GPU, another comparison: {told}"


SHOWN = (
    implementations.ONE.label, implementations.ALL_THREADS.label, SPLIT_LABEL, PAPER_LABEL, implementations.OURS.label,
)  # fmt: skip

TESTS = {
    "eu": ClaimTest(partial(_ratio, "eu-2005", implementations.ONE.label, PAPER_LABEL), _on("eu-2005", *SHOWN)),
    "cnr": ClaimTest(partial(_ratio, "cnr-2000", implementations.ONE.label, PAPER_LABEL), _on("cnr-2000", *SHOWN)),
    "help": ClaimTest(partial(_gains, best=True, form=PAPERS), _other_gains),
    "cuda/cell": ClaimTest(lambda results: {}, _cell_on_the_gpu),
}


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Grade the paper's claims, and name the graphs on which the CPU helps."""
    words, rows = verdicts(claims.KUMAR, TESTS, results)
    gains = _gains(results)
    if gains:
        helped = ", ".join(f"{graph} ({gain:.3g})" for graph, gain in gains.items() if gain > 1)
        rest = ", ".join(f"{graph} ({gain:.3g})" for graph, gain in gains.items() if gain <= 1)
        words += f"\n\nWith N by auto, the CPU speeds up an iteration on: {helped or 'no graph'}."
        words += f" It does not on: {rest}." if rest else ""
    return words, rows


# --- figures --------------------------------------------------------------------------------------------------------


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw the times per iteration, and the sweep over N."""
    drawn = {}
    groups: dict[str, list[tuple[str, float]]] = {}
    for line in results:
        if line["table"] == ITERATION and line["ms"] != "":
            groups.setdefault(line["graph"], []).append((line["what"], line["ms"]))
    if groups:
        drawn["sides"] = sideways(groups, "ms per iteration", "Kumar and others 2012: time per iteration")
    if any(line["table"] == SPLIT for line in results):
        drawn["split"] = _sweep([line for line in results if line["table"] == SPLIT])
    return drawn


def _sweep(results: list[Row]) -> Figure:
    """Draw the tail edges of cpu-split, and the time per iteration of each form, by N."""
    from matplotlib.figure import Figure

    results = [line for line in results if line["N"] == "all" or isinstance(line["N"], int)]
    results.sort(key=lambda line: math.inf if line["N"] == "all" else line["N"])  # that of auto is measured last
    drawing = Figure(figsize=(9, 6.5), layout="constrained")
    left, timed = drawing.subplots(2, 1, sharex=True)
    order = list(dict.fromkeys(line["N"] for line in results))
    for nth, graph in enumerate(dict.fromkeys(line["graph"] for line in results)):
        of_it = [line for line in results if line["graph"] == graph and line["form"] in (OURS, "")]
        left.plot(
            [order.index(line["N"]) for line in of_it],
            [line["% of the edges"] for line in of_it],
            "o-",
            color=f"C{nth}",
            label=graph,
        )
        for form, style in zip(FORMS, ("o-", "s--", "^-.", "x:"), strict=True):
            lines = [
                line for line in results
                if line["graph"] == graph and (line["form"] or OURS) == form and line["ms per iteration"] != ""
            ]  # fmt: skip
            places = [order.index(line["N"]) for line in lines]
            timed.plot(
                places, [line["ms per iteration"] for line in lines], style, color=f"C{nth}",
                label=form if nth == 0 else None,
            )  # fmt: skip
            for place, line in zip(places, lines, strict=True):
                if line["choice"]:
                    timed.plot(place, line["ms per iteration"], "*", markersize=16, color=f"C{nth}")
    timed.legend(fontsize="small")
    left.set(ylabel="% of the edges left to the CPU", title="Kumar and others 2012: the split (star: chosen by auto)")
    left.legend(fontsize="small")
    timed.set(xlabel="N, in-edges of a vertex that the GPU sums", ylabel="ms per iteration", yscale="log")
    timed.set_xticks(range(len(order)), [str(n) for n in order], rotation=60, fontsize="small")
    if not any(line["ms per iteration"] != "" for line in results):
        timed.text(0.5, 0.5, "this run had no GPU", ha="center", transform=timed.transAxes)
    plain(timed.yaxis)
    return drawing
