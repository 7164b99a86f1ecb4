"""Kumar, Sondhi and Mittal 2012: work shared by GPU and CPU.

"Parallelization of PageRank on Multicore Processors", on a GTX 280, a Cell BE and Xeons with two cores. The GPU sums
the first N in-edges of every vertex while the CPU sums the others (`cpu-split`). The Cell version copies ranks into
edge order and streams them through a small local store (`expanded`, `streamed`). One thread per edge, which needed
atomic additions of floats, is `edge`. The paper states neither its N nor its number of iterations, and shows times
only as bars (Figures 6 to 8); here single iterations are timed. Its ranks sum to n, `scale="n"`, with the same
iteration.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.generate import crawl
from benchmarks.papers import claims, cpu_peers, implementations
from benchmarks.papers.graphs import BenchmarkGraph, generated, real
from benchmarks.papers.plots import plain, sideways
from benchmarks.papers.tables import ClaimTest, merge_absent, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KEYS", "PACKAGES", "TABLES", "figures", "parts", "summary"]

PACKAGES = cpu_peers.PACKAGES

ITERATION, SPLIT = "Time per iteration", "Tail edges by N"

TABLES = {
    ITERATION: ("graph", "vertices", "edges", "what", "ms", "speed-up over one CPU thread", "note"),
    SPLIT: (
        "graph", "N", "choice", "tail vertices", "tail edges", "% of the edges", "ms per iteration", "note",
    ),
}  # fmt: skip

KEYS = ("graph", "what", "N")

GRAPHS = (("cnr-2000", 325_557, 3_216_152), ("eu-2005", 862_664, 19_235_140), ("in-2004", 1_382_908, 18_534_900))
"""Section 5: nodes and links."""

SWEEP = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)

SPLIT_LABEL, CELL_LABEL = "GPU and CPU: cpu-split, N by auto", "Cell BE, edge order: expanded"

IMPLEMENTATIONS = (
    implementations.ONE,
    implementations.ALL_THREADS,
    implementations.SCIPY,
    *cpu_peers.IMPLEMENTATIONS,
    implementations.method(SPLIT_LABEL, "cpu-split"),
    implementations.method("GPU, one thread per vertex: node", "node"),
    implementations.method("GPU, one thread per edge: edge", "edge"),
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
    for found in merge_absent(implementations.time_each(adjacency, IMPLEMENTATIONS)):
        yield row(ITERATION, TABLES[ITERATION], about | found)
    yield from _splits(adjacency, about)


# --- sweep over N ---------------------------------------------------------------------------------------------------


def _splits(adjacency: Adjacency, about: Row) -> Iterator[Row]:
    """Yield the tail edges by N, and with a GPU the times."""
    longest = adjacency.largest_in_degree
    splits = [n for n in SWEEP if n < longest]
    chosen = _chosen_split(adjacency)
    if isinstance(chosen, int) and chosen not in splits:
        splits = sorted([*splits, chosen])
    degrees = adjacency.csc.offsets[1:] - adjacency.csc.offsets[:-1]
    for limit in [*splits, longest]:
        n = "all" if limit == longest else limit
        tails = degrees[degrees > limit] - limit
        edges = int(tails.sum())
        known = {
            "graph": about["graph"],
            "N": n,
            "choice": "auto" if n == chosen else "",
            "tail vertices": tails.size,
            "tail edges": edges,
            "% of the edges": 100 * edges / adjacency.m,
        }
        line = row(SPLIT, TABLES[SPLIT], known)
        if runtime.unavailable_reason():  # another row has the reason
            yield line
        else:
            yield from rows_or_reason(line, partial(_timed, adjacency, line, n))


def _chosen_split(adjacency: Adjacency) -> int | str | None:
    """Return the N that `split="auto"` chooses; None if the method cannot run."""
    for found in rows_or_reason({}, lambda: [{"N": implementations.prepared("cpu-split", adjacency).split[0]}]):
        return found.get("N")
    return None


def _timed(adjacency: Adjacency, line: Row, n: int | str) -> Iterator[Row]:
    samples = implementations.iteration(implementations.prepared("cpu-split", adjacency, split=n), adjacency.n)
    yield line | {"ms per iteration": statistics.median(samples) * 1e3, "samples": samples}


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


def _gains(results: list[Row], *, best: bool = False) -> dict[str, float]:
    """Return the speed-up over all edges on the GPU by graph, with the N of auto or with the best N."""
    gains = {}
    for graph, lines in _of_the_paper(results, SPLIT).items():
        timed = [line for line in lines if line["ms per iteration"] != ""]
        alone = [line["ms per iteration"] for line in timed if line["N"] == "all"]
        helped = [line["ms per iteration"] for line in timed if line["N"] != "all" and (best or line["choice"])]
        if alone and helped:
            gains[graph] = alone[0] / min(helped)
    return gains


def _best_gains(results: list[Row]) -> str:
    """Report the speed-up with the best N of the sweep."""
    gains = _gains(results, best=True)
    if not gains:
        return ""
    told = "; ".join(f"{graph} {gain:.3g}" for graph, gain in gains.items())
    return f"With the best N of the sweep: {told}."


def _on(graph: str, *shown: str) -> Callable[[list[Row]], str]:
    """Report the times per iteration on a graph."""

    def said(results: list[Row]) -> str:
        told = "; ".join(f"{what}: {ms:.2g} ms" for what in shown for ms in _ms(results, graph, what).values())
        return told and f"{told}."

    return said


def _cell_on_the_gpu(results: list[Row]) -> str:
    told = _on("eu-2005", CELL_LABEL, SPLIT_LABEL)(results)
    return told and f"Both algorithms on one GPU, another comparison: {told}"


SHOWN = implementations.ONE.label, implementations.ALL_THREADS.label, SPLIT_LABEL, implementations.OURS.label

TESTS = {
    "eu": ClaimTest(partial(_ratio, "eu-2005", implementations.ONE.label, SPLIT_LABEL), _on("eu-2005", *SHOWN)),
    "cnr": ClaimTest(partial(_ratio, "cnr-2000", implementations.ONE.label, SPLIT_LABEL), _on("cnr-2000", *SHOWN)),
    "help": ClaimTest(_gains, _best_gains),
    "cuda/cell": ClaimTest(lambda results: {}, _cell_on_the_gpu),
}


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Grade the paper's claims."""
    return verdicts(claims.KUMAR, TESTS, results)


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
    """Draw the tail edges and the time per iteration by N."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9, 6.5), layout="constrained")
    left, timed = drawing.subplots(2, 1, sharex=True)
    order = sorted({line["N"] for line in results}, key=lambda n: float("inf") if n == "all" else n)
    for nth, graph in enumerate(dict.fromkeys(line["graph"] for line in results)):
        of_it = [line for line in results if line["graph"] == graph]
        left.plot(
            [order.index(line["N"]) for line in of_it],
            [line["% of the edges"] for line in of_it],
            "o-",
            color=f"C{nth}",
            label=graph,
        )
        with_times = [line for line in of_it if line["ms per iteration"] != ""]
        places = [order.index(line["N"]) for line in with_times]
        timed.plot(places, [line["ms per iteration"] for line in with_times], "o-", color=f"C{nth}")
        for place, line in zip(places, with_times, strict=True):
            if line["choice"]:
                timed.plot(place, line["ms per iteration"], "*", markersize=16, color=f"C{nth}")
    left.set(ylabel="% of the edges left to the CPU", title="Kumar and others 2012: the split (star: chosen by auto)")
    left.legend(fontsize="small")
    timed.set(xlabel="N, in-edges of a vertex that the GPU sums", ylabel="ms per iteration", yscale="log")
    timed.set_xticks(range(len(order)), [str(n) for n in order], rotation=60, fontsize="small")
    if not any(line["ms per iteration"] != "" for line in results):
        timed.text(0.5, 0.5, "this run had no GPU", ha="center", transform=timed.transAxes)
    plain(timed.yaxis)
    return drawing
