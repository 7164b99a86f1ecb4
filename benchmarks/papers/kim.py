"""Kim 2013: node-centric and edge-centric, with transfers.

M.-S. Kim, "Towards Exploiting GPUs for Fast PageRank Computation of Large-Scale Networks", on an i7 3940XM (four cores,
eight threads) and a K5000M. A run of ten iterations goes from host memory to ranks in host memory. `node` transfers the
in-edges by target and the out-degrees (ptrArray, adjListArray), `edge` the edges and the out-degrees (edgeArray,
outDegree). prplugin's auto and cuSPARSE transfer the same as `node`, cuGraph the same as `edge` and builds its graph
from that. "transfers" includes both directions, "iterations" the preparation and ten iterations. The error is the L1
distance to a run on one CPU thread.

The paper computes the out-degree from the offsets of the in-edges, which is correct only for undirected graphs; here it
is the out-degree. The paper drops the dangling mass; here it is redistributed, and its time is included. The paper
shows times only as bars (Figures 4 to 6), so only the ratios in its text can be compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import iterations
from benchmarks.generate import uniform
from benchmarks.measure import sampled
from benchmarks.papers import claims, cpu_peers, implementations
from benchmarks.papers.graphs import BenchmarkGraph, generated, real
from benchmarks.papers.plots import colours, heat, plain
from benchmarks.papers.tables import ClaimTest, merge_absent, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods.base import Step
from prplugin.methods.registry import choose, methods
from prplugin.types.arrays import synchronize, to_device
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, offset_dtype

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KEYS", "PACKAGES", "TABLES", "figures", "parts", "summary"]

PACKAGES = cpu_peers.PACKAGES

TEN, SWEEP = "Ten iterations", "Blocks x threads"

TABLES = {
    TEN: (
        "graph", "vertices", "edges", "what", "transfers ms", "iterations ms", "total ms",
        "speed-up over one CPU thread", "speed-up over all CPU threads", "error", "note",
    ),
    SWEEP: ("graph", "method", "blocks", "threads", "ms per iteration", "note"),
}  # fmt: skip

KEYS = ("graph", "what", "method", "blocks", "threads")

ITERATIONS = 10
SIZES = {"small": 2_000_000, "medium": 4_000_000, "large": 8_000_000}
DENSITIES = 1, 5, 10
REAL = {"roadNet-CA": (1_965_206, 5_533_214), "cit-Patents": (3_774_768, 16_518_948)}
"""Section 5.1: nodes and edges."""

STAND_INS = "road-luxembourg", "cit-HepTh"
"""Smaller graphs of the same kinds."""

BLOCKS, THREADS = 1000, 1000

SWEEP_BLOCKS = 64, 256, 1000, 4096, 16384
SWEEP_THREADS = 32, 64, 128, 256, 512, 1000, 1024

ONE, ALL, NODE, EDGE = implementations.ONE.label, implementations.ALL_THREADS.label, "node", "edge"
BEST, SCIPY = implementations.OURS.label, implementations.SCIPY.label
SPARSE, PEER = implementations.CUSPARSE.label, implementations.CUGRAPH.label


class Ran(NamedTuple):
    """Seconds of one run, its ranks and a note."""

    transfers: float
    iterations: float
    ranks: Any
    note: str = ""


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph, and the sweep over launch configurations."""
    graphs = [*_random(100 if quick else 1), *_real(data)]
    swept = _uniform(20_000, 5) if quick else _uniform(2_000_000, 5)
    return [
        *(Part(graph.name, partial(_ten, graph), graph.edges) for graph in graphs),
        Part(f"blocks x threads, {swept.name}", partial(_sweep, swept), swept.edges),
    ]


def _random(fraction: int) -> Iterator[BenchmarkGraph]:
    for n in SIZES.values():
        for density in DENSITIES:
            yield _uniform(n // fraction, density)


def _uniform(n: int, density: int) -> BenchmarkGraph:
    return generated(
        f"uniform {n:,} x {n * density:,}",
        n,
        n * density,
        lambda memory_space: uniform(n, n * density, memory_space=memory_space),
    )


def _real(data: Path | None) -> Iterator[BenchmarkGraph]:
    """Yield the paper's real graphs, or smaller ones of the same kinds if their files are absent."""
    road = real(data, STAND_INS[0], 114_599, 2 * 119_666, directed=False)
    cited = real(data, STAND_INS[1], 27_770, 352_807)
    for (name, size), instead in zip(REAL.items(), (road, cited), strict=True):
        graph = real(data, name, *size) or instead
        if graph is not None:
            yield graph


# --- ten iterations -------------------------------------------------------------------------------------------------


def _ten(graph: BenchmarkGraph) -> Iterator[Row]:
    about = {"graph": graph.name}
    yield from rows_or_reason(row(TEN, TABLES[TEN], about), lambda: merge_absent(_time_all(graph, about)))


def _time_all(graph: BenchmarkGraph, about: Row) -> Iterator[Row]:
    here = graph.adjacency().on("host")
    about |= {"vertices": here.n, "edges": here.m}
    # Not timed, as in the paper: the arrays of the graph, with offsets of the type that the GPU uses.
    in_edges, _, _ = here.csc, here.out_weight, here.largest_in_degree
    in_edges = in_edges._replace(offsets=in_edges.offsets.astype(offset_dtype(here.m)))
    base: dict[str, list[float]] = {}
    exact = None
    for what, do in IMPLEMENTATIONS.items():
        known = row(TEN, TABLES[TEN], about | {"what": what})
        for found in rows_or_reason(known, partial(_timed, known, partial(do, here, in_edges), exact)):
            if what in (ONE, ALL) and "samples" in found:
                base[what] = found["samples"]["total"]
            if what == ONE:
                exact = found.pop("ranks", None)
            if "samples" in found:
                found.update(_gains(base, found["samples"]["total"]))
            yield {name: value for name, value in found.items() if name != "ranks"}
    for found in implementations.time_each(here, cpu_peers.IMPLEMENTATIONS):
        line = row(TEN, TABLES[TEN], about | {"what": found["what"], "note": found["note"]})
        if "samples" in found:
            seconds = [ITERATIONS * once for once in found["samples"]]
            line |= _measured({"iterations": seconds, "total": seconds}) | _gains(base, seconds)
            line["note"] += "; ten times the time of one iteration, without building the graph"
        yield line


def _gains(base: dict[str, list[float]], seconds: list[float]) -> Row:
    columns = {"speed-up over one CPU thread": ONE, "speed-up over all CPU threads": ALL}
    return {
        column: statistics.median(base[against]) / statistics.median(seconds)
        for column, against in columns.items()
        if against in base
    }


def _measured(samples: dict[str, list[float]]) -> Row:
    medians = {f"{what} ms": statistics.median(seconds) * 1e3 for what, seconds in samples.items()}
    return medians | {"samples": samples}


def _timed(known: Row, do: Callable[[], Ran], exact: Any) -> Iterator[Row]:
    runs: list[Ran] = []

    def once() -> float:
        runs.append(do())
        return runs[-1].transfers + runs[-1].iterations

    counted = runs[-len(sampled(once, runs=implementations.RUNS, limit=implementations.LIMIT)) :]
    samples = {
        "transfers": [run.transfers for run in counted],
        "iterations": [run.iterations for run in counted],
        "total": [run.transfers + run.iterations for run in counted],
    }
    last = runs[-1]
    comparable = exact is not None and last.ranks is not None
    yield (
        known
        | _measured(samples)
        | {
            "error": float(np.abs(last.ranks - exact).sum()) if comparable else "",
            "note": last.note,
            "ranks": last.ranks,
        }
    )


def _on_the_host(threads: int | None, here: Adjacency, in_edges: Compressed) -> Ran:
    began = time.perf_counter()
    step = methods()["numba"].prepare(Problem(here, implementations.ALPHA), this_machine(), threads=threads)
    step.start(1 / here.n)
    for _ in range(ITERATIONS):
        step()
    return Ran(0.0, time.perf_counter() - began, step.ranks())


def _sparse_loop(here: Adjacency, in_edges: Compressed) -> Ran:
    began = time.perf_counter()
    step = implementations.SparseLoop(in_edges.offsets, in_edges.indices, here.out_weight)
    for _ in range(ITERATIONS):
        step()
    return Ran(0.0, time.perf_counter() - began, step.ranks)


def _sent(here: Adjacency, in_edges: Compressed, what: str) -> Adjacency:
    """Copy the arrays that a kernel of the paper reads to the GPU; take other properties of the graph from the host."""
    if what == EDGE:
        there = Adjacency(Edges(*(to_device(end) for end in (here.edges.source, here.edges.destination)), None, here.n))
    else:
        sources = to_device(in_edges.indices)
        offsets = to_device(in_edges.offsets)
        there = Adjacency(Edges(sources, sources, None, here.n))  # methods that sum in-edges do not read the edge list
        there.csc = Compressed(offsets, sources, None)
    there.largest_in_degree = here.largest_in_degree
    there._out_weight = to_device(here.out_weight), 0
    synchronize("device")
    return there


def _on_the_gpu(name: str, here: Adjacency, in_edges: Compressed) -> Ran:
    implementations.require_gpu()
    began = time.perf_counter()
    there = _sent(here, in_edges, name)
    sent = time.perf_counter()
    options: dict[str, Any] = {"blocks": BLOCKS, "threads": THREADS} if name in (NODE, EDGE) else {}
    chosen = name if options else choose("auto", there, this_machine(), {}).name
    step = methods()[chosen].prepare(Problem(there, implementations.ALPHA), this_machine(), **options)
    _iterate(step, here.n)
    done = time.perf_counter()
    ranks = step.ranks().get()
    note = f"{BLOCKS} blocks of {THREADS} threads" if options else chosen
    return Ran(sent - began + time.perf_counter() - done, done - sent, ranks, note)


def _iterate(step: Any, n: int) -> None:
    step.set_contribution_dtype("float32")
    step.start(1 / n)
    passes, _ = step.advance(-1.0, ITERATIONS)
    for _ in range(ITERATIONS - passes):
        step()


def _cusparse(here: Adjacency, in_edges: Compressed) -> Ran:
    implementations.require_gpu()
    began = time.perf_counter()
    there = _sent(here, in_edges, SPARSE)
    sent = time.perf_counter()
    step = implementations.SparseLoop(there.csc.offsets, there.csc.indices, there.out_weight)
    for _ in range(ITERATIONS):
        step()
    synchronize("device")
    done = time.perf_counter()
    ranks = step.ranks.get()
    return Ran(sent - began + time.perf_counter() - done, done - sent, ranks)


def _cugraph(here: Adjacency, in_edges: Compressed) -> Ran:
    implementations.require_gpu()
    import cudf  # lazy import; a dependency of cuGraph
    import cugraph

    began = time.perf_counter()
    frame = cudf.DataFrame({"src": here.edges.source, "dst": here.edges.destination})
    synchronize("device")
    sent = time.perf_counter()
    graph = iterations.cugraph_graph(frame)
    found = cugraph.pagerank(graph, tol=1e-30, max_iter=ITERATIONS, fail_on_nonconvergence=False)[0]
    synchronize("device")
    done = time.perf_counter()
    found["pagerank"].to_numpy()
    note = "includes building its graph; vertices without edges are not in it"
    return Ran(sent - began + time.perf_counter() - done, done - sent, None, note)


IMPLEMENTATIONS: dict[str, Callable[[Adjacency, Compressed], Ran]] = {
    ONE: partial(_on_the_host, 1),
    ALL: partial(_on_the_host, None),
    SCIPY: _sparse_loop,
    EDGE: partial(_on_the_gpu, EDGE),
    NODE: partial(_on_the_gpu, NODE),
    BEST: partial(_on_the_gpu, BEST),
    SPARSE: _cusparse,
    PEER: _cugraph,
}


# --- blocks and threads ---------------------------------------------------------------------------------------------


def _sweep(graph: BenchmarkGraph) -> Iterator[Row]:
    known = row(SWEEP, TABLES[SWEEP], {"graph": graph.name})
    yield from rows_or_reason(known, partial(_each_launch, graph, known))


def _each_launch(graph: BenchmarkGraph, known: Row) -> Iterator[Row]:
    implementations.require_gpu()
    adjacency = graph.adjacency()
    for name in (NODE, EDGE):
        for blocks in SWEEP_BLOCKS:
            for threads in SWEEP_THREADS:
                step: Step = implementations.prepared(name, adjacency, blocks=blocks, threads=threads)
                samples = implementations.iteration(step, adjacency.n)
                yield known | {
                    "method": name, "blocks": blocks, "threads": threads,
                    "ms per iteration": statistics.median(samples) * 1e3, "samples": samples,
                }  # fmt: skip


# --- claims ---------------------------------------------------------------------------------------------------------


def _times(results: list[Row]) -> dict[str, dict[str, float]]:
    """Return the ms of a run by graph and implementation."""
    found: dict[str, dict[str, float]] = {}
    for line in results:
        if line["table"] == TEN and line["total ms"] != "":
            found.setdefault(line["graph"], {})[line["what"]] = line["total ms"]
    return found


def _ratios(slow: str, fast: str, graphs: Callable[[str], bool], results: list[Row]) -> dict[str, float]:
    """Return the ratio of the times of two implementations by graph."""
    return {
        graph: times[slow] / times[fast]
        for graph, times in _times(results).items()
        if graphs(graph) and slow in times and fast in times
    }


def _ratios_on(slow: str, fast: str, graphs: Callable[[str], bool]) -> Callable[[list[Row]], dict[str, float]]:
    return partial(_ratios, slow, fast, graphs)


def _over_the_fastest(results: list[Row]) -> dict[str, float]:
    """Return the ratio of the fastest other method of the paper to the node-centric one by graph."""
    found = {}
    for graph, times in _times(results).items():
        others = [times[what] for what in (ONE, ALL, EDGE) if what in times]
        if NODE in times and others:
            found[graph] = min(others) / times[NODE]
    return found


def _transfers(gpu: str, graphs: Callable[[str], bool]) -> Callable[[list[Row]], str]:
    """Return the share of the transfers in a method's time, as text."""

    def said(results: list[Row]) -> str:
        fractions = [
            line["transfers ms"] / line["total ms"]
            for line in results
            if line["table"] == TEN and line["what"] == gpu and line["total ms"] != "" and graphs(line["graph"])
        ]
        return f"Transfers are {min(fractions):.0%} to {max(fractions):.0%} of {gpu}'s time." if fractions else ""

    return said


def _edge_ahead(results: list[Row]) -> str:
    """Name the graphs on which `edge` is faster than `node`."""
    times = _times(results)
    ahead = [
        f"{graph}: {EDGE} {of_it[EDGE]:.3g} ms, {NODE} {of_it[NODE]:.3g} ms"
        for graph, of_it in times.items()
        if NODE in of_it and EDGE in of_it and of_it[EDGE] < of_it[NODE]
    ]
    return f"{'; '.join(ahead)}." if ahead else ""


def _stand_ins(results: list[Row]) -> str:
    """Report how much smaller the graphs used in place of the real ones are."""
    edges = {line["graph"]: line["edges"] for line in results if line["table"] == TEN and line["edges"] != ""}
    smaller = [
        f"{graph} has {edges[graph]:,} edges, {name} {size[1]:,}"
        for graph, (name, size) in zip(STAND_INS, REAL.items(), strict=True)
        if graph in edges
    ]
    return f"The graphs used in place of the paper's are too small to compare: {'; '.join(smaller)}." if smaller else ""


def _is_random(graph: str) -> bool:
    return graph.startswith("uniform")


def _is_of_the_papers_size(graph: str) -> bool:
    return graph.startswith(tuple(f"uniform {n:,} " for n in SIZES.values()))


def _is_small(graph: str) -> bool:
    return graph.startswith(f"uniform {SIZES['small']:,} ")


def _is_real(graph: str) -> bool:
    return graph in REAL


TESTS = {
    "node/all": ClaimTest(_ratios_on(ALL, NODE, _is_small), _transfers(NODE, _is_small)),
    "node/all, random": ClaimTest(
        _ratios_on(ALL, NODE, _is_of_the_papers_size), _transfers(NODE, _is_of_the_papers_size)
    ),
    "node/edge": ClaimTest(_ratios_on(EDGE, NODE, _is_small), _transfers(EDGE, _is_small)),
    "node/every": ClaimTest(_over_the_fastest, _edge_ahead),
    "all/edge": ClaimTest(_ratios_on(EDGE, ALL, _is_of_the_papers_size), _transfers(EDGE, _is_of_the_papers_size)),
    "edge/all": ClaimTest(_ratios_on(ALL, EDGE, _is_real), _stand_ins),
    "all/one": ClaimTest(_ratios_on(ONE, ALL, _is_small)),
}


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Grade the paper's claims."""
    return verdicts(claims.KIM, TESTS, results)


# --- figures --------------------------------------------------------------------------------------------------------


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw the paper's bar charts, and the sweep."""
    drawn = {}
    if _times(results):
        drawn["bars"] = _bars(results)
    swept = [line for line in results if line["table"] == SWEEP and line["ms per iteration"] != ""]
    if swept:
        panels = {name: [line for line in swept if line["method"] == name] for name in (NODE, EDGE)}
        drawn["sweep"] = heat(
            panels, "threads", "blocks", "ms per iteration", f"{swept[0]['graph']}: ms per iteration",
            marked=(THREADS, BLOCKS),
        )  # fmt: skip
    return drawn


def _bars(results: list[Row]) -> Figure:
    """Draw the paper's Figures 4 to 6: one panel per number of vertices, one group of bars per graph."""
    from matplotlib.figure import Figure

    times = _times(results)
    panels: dict[str, list[str]] = {}
    for graph in times:
        panels.setdefault(graph.split(" x ")[0] if _is_random(graph) else "real graphs", []).append(graph)
    drawing = Figure(figsize=(5 * ((len(panels) + 1) // 2), 7.5), layout="constrained")
    grid = drawing.subplots(2, (len(panels) + 1) // 2, squeeze=False, sharey=True).ravel()
    shown = list(dict.fromkeys(what for of_it in times.values() for what in of_it))
    width = 0.8 / len(shown)
    colour = colours(shown)
    for panel, (title, graphs) in zip(grid, panels.items(), strict=False):
        for nth, what in enumerate(shown):
            ms = [(place, times[graph][what]) for place, graph in enumerate(graphs) if what in times[graph]]
            if ms:
                left = [place + (nth - len(shown) / 2) * width for place, _ in ms]
                panel.bar(left, [value for _, value in ms], width, align="edge", label=what, color=colour[what])
        panel.set_xticks(range(len(graphs)), [graph.split(" x ")[-1] for graph in graphs])
        panel.set(yscale="log", ylabel="ms, transfers included")
        panel.set(title=f"{title} vertices", xlabel="edges") if _is_random(graphs[0]) else panel.set(title=title)
        plain(panel.yaxis)
    for panel in grid[len(panels) :]:
        panel.set_visible(False)
    drawing.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    drawing.suptitle("Ten iterations from host memory to host memory (Kim 2013, Figures 4 to 6)")
    return drawing
