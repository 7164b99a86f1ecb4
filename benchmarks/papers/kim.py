"""Kim 2013: node-centric and edge-centric, with transfers.

M.-S. Kim, "Towards Exploiting GPUs for Fast PageRank Computation of Large-Scale Networks", on an i7 3940XM (four cores,
eight threads) and a K5000M. A run of ten iterations goes from host memory to ranks in host memory. `node` transfers the
in-edges by target and the out-degrees (ptrArray, adjListArray), `edge` the edges and the out-degrees (edgeArray,
outDegree). prplugin's auto and cuSPARSE transfer the same as `node`, cuGraph the same as `edge` and builds its graph
from that. "transfers" includes both directions, "iterations" the preparation and ten iterations. The error is the L1
distance to a run on one CPU thread.

Arrays lie in pageable memory, as NumPy allocates it, and are copied by `cupy.asarray`. In rows labelled "page-locked",
they and the memory for the ranks are page-locked before the time starts. The paper does not state which it uses.

"The paper's form" is Algorithm 3, or Algorithms 1 and 2, as printed: float32, a division by the out-degree for each
edge, out-degrees of 4 bytes, both arrays of ranks transferred, the dangling mass dropped. On undirected graphs it reads
each edge once with line 6, and Algorithm 3 takes the out-degrees from ptrArray; on directed graphs, where that is
wrong, from an array. Claims are graded on it. prplugin's kernels store contributions, redistribute the dangling mass,
and read undirected edges in both directions. "basic CPU version" is the same loop on one thread in float32. "MB" are
the bytes that are transferred to the GPU. The paper shows times only as bars (Figures 4 to 6), so only the ratios in
its text can be compared.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import iterations, peers
from benchmarks.generate import uniform
from benchmarks.measure import sampled, timed
from benchmarks.papers import claims, cpu_peers, implementations
from benchmarks.papers.graphs import BenchmarkGraph, generated, real, rows_of_pairs
from benchmarks.papers.plots import colours, heat, plain
from benchmarks.papers.tables import ClaimTest, merge_absent, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row, chosen
from prplugin.errors import MethodUnavailableError
from prplugin.graph.edges import Edges, Problem
from prplugin.machine import this_machine
from prplugin.methods.registry import choose, methods
from prplugin.papers._forms import EdgeCentric, NodeCentric, PaperForm, update_scores
from prplugin.types.arrays import to_device
from prplugin.types.edges import Coo, Csc, offset_dtype

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = peers.PACKAGES

TEN, SWEEP = "Ten iterations", "Blocks x threads"

TABLES = {
    TEN: (
        "graph", "vertices", "edges", "what", "MB", "transfers ms", "iterations ms", "total ms",
        "speed-up over one CPU thread", "speed-up over all CPU threads", "error", "note",
    ),
    SWEEP: ("graph", "method", "blocks", "threads", "ms per iteration", "note"),
}  # fmt: skip

KEYS = ("graph", "what", "method", "blocks", "threads")

ITERATIONS = 10
CPU_LIMIT = 0.3
"""Seconds of samples per row of the CPU; a run of more than 3 s is the only one."""

SIZES = {"small": 2_000_000, "medium": 4_000_000, "large": 8_000_000}
DENSITIES = 1, 5, 10
REAL = {"roadNet-CA": (1_965_206, 5_533_214), "cit-Patents": (3_774_768, 16_518_948)}
"""Section 5.1: nodes and edges."""

STAND_INS = "road-luxembourg", "cit-HepTh"
"""Smaller graphs of the same kinds."""

BLOCKS, THREADS = 1000, 1000
LAUNCH_NOTE = f"{BLOCKS} blocks of {THREADS} threads"

SWEEP_BLOCKS = 64, 256, 1000, 4096, 16384
SWEEP_THREADS = 32, 64, 128, 256, 512, 1000, 1024

ONE, ALL, NODE, EDGE = implementations.ONE.label, implementations.ALL_THREADS.label, "node", "edge"
NODE_PAPER, EDGE_PAPER = "node, the paper's form", "edge, the paper's form"
BASIC = "basic CPU version"
LOCKED = "{}, page-locked"
FORMS = {NODE: NODE_PAPER, EDGE: EDGE_PAPER}
FORMS |= {LOCKED.format(ours): LOCKED.format(paper) for ours, paper in FORMS.items()}
"""The paper's form of our methods."""

COUNTED = {count: f"{count} CPU threads" for count in (2, 4, 8, 16)}
"""Section 5.1 has one to eight threads; on graphs of the small size."""

BEST, SCIPY = implementations.OURS.label, implementations.SCIPY.label
ON_THE_CPU = {ONE, *COUNTED.values(), ALL, BASIC, SCIPY}
SPARSE, PEER = implementations.CUSPARSE.label, implementations.CUGRAPH.label


class Ran(NamedTuple):
    """Seconds of one run, its ranks, a note, and the megabytes sent to the GPU."""

    transfers: float
    iterations: float
    ranks: Any
    note: str = ""
    megabytes: float | str = ""


def parts(data: Path | None, quick: bool, only: Sequence[str] = ()) -> list[Part]:
    """Return one part per graph, and the sweep over launch configurations."""
    fraction = 100 if quick else 1
    graphs = [*_random(fraction), _undirected(2_000_000 // fraction, 5_000_000 // fraction), *_real(data)]
    swept = _uniform(20_000, 5) if quick else _uniform(2_000_000, 5)
    every = [
        *(Part(graph.name, partial(_ten, graph), graph.edges) for graph in graphs),
        Part(f"blocks x threads, {swept.name}", partial(_sweep, swept), swept.edges),
    ]
    return chosen(every, only)


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


def _undirected(n: int, m: int) -> BenchmarkGraph:
    """Return a random graph of m undirected edges."""
    return generated(
        f"undirected uniform {n:,} x {m:,}",
        n,
        2 * m,
        lambda memory_space: uniform(n, m, memory_space=memory_space),
        directed=False,
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


class Inputs:
    """Graph in host memory, and the arrays of it that each implementation transfers; making them is not timed."""

    def __init__(self, here: Edges) -> None:
        self.here = here
        # With offsets of the type that the GPU uses.
        self.in_edges = here.get(Csc)._replace(offsets=here.get(Csc).offsets.astype(offset_dtype(here.m)))
        self.out_weight, self.largest_in_degree = here.out_weight, here.largest_in_degree
        self.arrays, self.page_locked = cache(self._arrays), cache(self._page_locked)

    @cached_property
    def pairs(self) -> tuple[Any, Any] | None:
        """One row per undirected edge; None if the graph is directed."""
        return rows_of_pairs(self.here.get(Coo))

    @cached_property
    def basic(self) -> tuple[Any, ...]:
        """Offsets, sources and out-degrees in the types of `update_scores`."""
        offsets, sources, _ = self.here.get(Csc)
        return offsets.astype(np.int64), sources.astype(np.int32), self.out_weight.astype(np.int32)

    def _arrays(self, what: str) -> tuple[Any, ...]:
        """Return the arrays that an implementation transfers: those of the graph, then out-degrees or ranks."""
        if what in (NODE_PAPER, EDGE_PAPER):
            ranks = np.full(self.here.n, 1 / self.here.n, np.float32)
            degrees = self.out_weight.astype(np.int32)
            if what == EDGE_PAPER:
                edges = self.here.get(Coo)
                pairs = self.pairs or (edges.source, edges.destination)
                return np.stack(pairs, axis=1), degrees, ranks, ranks
            rest = () if self.pairs is not None else (degrees,)
            return self.in_edges.offsets, self.in_edges.indices, *rest, ranks, ranks
        if what == EDGE:
            return self.here.get(Coo).source, self.here.get(Coo).destination, self.out_weight
        return self.in_edges.indices, self.in_edges.offsets, self.out_weight

    def _page_locked(self, what: str) -> tuple[Any, ...]:
        """Return page-locked copies of these arrays, and page-locked memory for the ranks."""
        import cupyx  # lazy import; `require_gpu` has passed

        copies = []
        for array in self.arrays(what):
            copies.append(cupyx.empty_pinned(array.shape, array.dtype))
            copies[-1][:] = array
        return *copies, cupyx.empty_pinned(self.here.n, copies[-1].dtype)


def _time_all(graph: BenchmarkGraph, about: Row) -> Iterator[Row]:
    here = graph.adjacency().on("host")
    about |= {"vertices": here.n, "edges": here.m}
    inputs = Inputs(here)
    base: dict[str, list[float]] = {}
    exact: dict[bool, Any] = {}
    """Ranks of the basic version, which drops the dangling mass, for the paper's form, and of ours for the others."""
    for what, do in IMPLEMENTATIONS.items():
        if what in COUNTED.values() and here.n > SIZES["small"]:
            continue
        known = row(TEN, TABLES[TEN], about | {"what": what})
        expected = None if what == BASIC else exact.get(what in FORMS.values())
        for found in rows_or_reason(known, partial(_timed, known, partial(do, inputs), expected)):
            if what in (ONE, ALL) and "samples" in found:
                base[what] = found["samples"]["total"]
            if what in (ONE, BASIC):
                exact[what == BASIC] = found.pop("ranks", None)
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

    limit = CPU_LIMIT if known["what"] in ON_THE_CPU else implementations.LIMIT
    counted = runs[-len(sampled(once, runs=implementations.RUNS, limit=limit)) :]
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
            "MB": last.megabytes,
            "note": last.note,
            "ranks": last.ranks,
        }
    )


def _on_the_host(threads: int | None, inputs: Inputs) -> Ran:
    here, available = inputs.here, this_machine().threads
    if threads is not None and threads > available:
        raise MethodUnavailableError(f"this process may use {available} CPU threads")

    def run() -> Any:
        step = methods()["native"].prepare(Problem(here, implementations.ALPHA), this_machine(), threads=threads)
        step.start(1 / here.n)
        for _ in range(ITERATIONS):
            step()
        return step.ranks()

    return Ran(0.0, *timed(run))


def _basic(inputs: Inputs) -> Ran:
    """Run the paper's loop on one thread: CPU_basic."""
    n, alpha = inputs.here.n, implementations.ALPHA
    arrays = inputs.basic

    def run() -> Any:
        scores, updated = np.full(n, 1 / n, np.float32), np.empty(n, np.float32)
        for _ in range(ITERATIONS):
            update_scores(*arrays, scores, updated, 0, n, (1 - alpha) / n, alpha, 0.0, 0, 1)
            scores, updated = updated, scores
        return scores

    return Ran(0.0, *timed(run))


def _sparse_loop(inputs: Inputs) -> Ran:
    arrays = inputs.in_edges.offsets, inputs.in_edges.indices, inputs.out_weight
    return Ran(0.0, *timed(partial(_ranks_of_sparse_loop, arrays)))


def _ranks_of_sparse_loop(arrays: Sequence[Any]) -> Any:
    step = implementations.SparseLoop(*arrays)
    for _ in range(ITERATIONS):
        step()
    return step.ranks


def _with_transfers(
    send: Callable[[], Any], run: Callable[[Any], Any], receive: Callable[[Any], Any], *about: Any
) -> Ran:
    """Time the transfer to the GPU, the iterations, and the transfer of the ranks to the host."""
    sending, there = timed(send, "device")
    running, found = timed(partial(run, there), "device")
    receiving, ranks = timed(partial(receive, found))
    return Ran(sending + receiving, running, ranks, *about)


def _adjacency(inputs: Inputs, what: str, arrays: Sequence[Any]) -> Edges:
    """Return a graph of transferred arrays; its other properties come from the host."""
    first, second, out_weight = arrays
    if what == EDGE:
        there = Edges(Coo(first, second, None, inputs.here.n))
    else:  # methods that sum in-edges do not read the edge list
        there = Edges(Coo(first, first, None, inputs.here.n))
        there.add(Csc(second, first, None))
    there.largest_in_degree = inputs.largest_in_degree
    there._out_weight = out_weight, 0
    return there


def _from_page_locked(array: Any) -> Any:
    """Copy page-locked memory, without the copy to other page-locked memory that `cupy.asarray` makes."""
    import cupy  # lazy import; `require_gpu` has passed

    there = cupy.empty(array.shape, array.dtype)
    there.set(array)
    return there


def _on_the_gpu(name: str, inputs: Inputs, *, page_locked: bool = False) -> Ran:
    implementations.require_gpu()
    room, copy = None, to_device
    arrays = inputs.arrays(name)
    if page_locked:
        *arrays, room = inputs.page_locked(name)
        copy = _from_page_locked
    run = _in_paper_form if name in (NODE_PAPER, EDGE_PAPER) else _by_this_library
    ran = _with_transfers(
        lambda: list(map(copy, arrays)), partial(run, name, inputs), lambda found: (found[0].get(out=room), found[1])
    )
    ranks, note = ran.ranks
    return ran._replace(ranks=ranks, note=note, megabytes=sum(int(array.nbytes) for array in arrays) / 1e6)


def _by_this_library(name: str, inputs: Inputs, there: list[Any]) -> tuple[Any, str]:
    """Run the iterations; return the ranks on the GPU and a note."""
    graph, note = _adjacency(inputs, name, there), LAUNCH_NOTE
    if name in (NODE, EDGE):
        options: dict[str, Any] = {"blocks": BLOCKS, "threads": THREADS}
    else:
        options, name = {}, choose("auto", graph, this_machine(), {}).name
        note = name
    step = methods()[name].prepare(Problem(graph, implementations.ALPHA), this_machine(), **options)
    step.set_contribution_dtype("float32")
    step.start(1 / inputs.here.n)
    passes, _ = step.advance(-1.0, ITERATIONS)
    for _ in range(ITERATIONS - passes):
        step()
    return step.ranks(), note


def _in_paper_form(name: str, inputs: Inputs, there: list[Any]) -> tuple[Any, str]:
    """Run the iterations of the paper's kernels; return the ranks on the GPU and a note."""
    *graph, old, new = there
    undirected, launch = inputs.pairs is not None, {"blocks": BLOCKS, "threads": THREADS}
    form: PaperForm
    if name == EDGE_PAPER:
        form = EdgeCentric(*graph, implementations.ALPHA, undirected=undirected, **launch)
    else:
        form = NodeCentric(*graph, *[None] * undirected, implementations.ALPHA, **launch)
    form.scores, form.other = old, new
    for _ in range(ITERATIONS):
        form()
    return form.scores, LAUNCH_NOTE


def _cusparse(inputs: Inputs) -> Ran:
    implementations.require_gpu()
    sources, offsets, out_weight = inputs.arrays(SPARSE)
    return _with_transfers(
        lambda: list(map(to_device, (offsets, sources, out_weight))), _ranks_of_sparse_loop, lambda ranks: ranks.get()
    )


def _cugraph(inputs: Inputs) -> Ran:
    implementations.require_gpu()
    here = inputs.here
    import cudf  # lazy import; a dependency of cuGraph
    import cugraph

    def run(frame: Any) -> Any:
        graph = iterations.cugraph_graph(frame)
        return cugraph.pagerank(graph, tol=1e-30, max_iter=ITERATIONS, fail_on_nonconvergence=False)[0]

    ran = _with_transfers(
        lambda: cudf.DataFrame({"src": here.get(Coo).source, "dst": here.get(Coo).destination}),
        run,
        lambda found: found["pagerank"].to_numpy(),
        "includes building its graph; vertices without edges are not in it",
    )
    return ran._replace(ranks=None)


IMPLEMENTATIONS: dict[str, Callable[[Inputs], Ran]] = {
    ONE: partial(_on_the_host, 1),
    **{label: partial(_on_the_host, count) for count, label in COUNTED.items()},
    ALL: partial(_on_the_host, None),
    BASIC: _basic,
    SCIPY: _sparse_loop,
    **{
        name.format(what): partial(_on_the_gpu, what, page_locked=name == LOCKED)
        for what in (EDGE_PAPER, NODE_PAPER)
        for name in ("{}", LOCKED)
    },
    EDGE: partial(_on_the_gpu, EDGE),
    LOCKED.format(EDGE): partial(_on_the_gpu, EDGE, page_locked=True),
    NODE: partial(_on_the_gpu, NODE),
    LOCKED.format(NODE): partial(_on_the_gpu, NODE, page_locked=True),
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
    for name, form in product((NODE, EDGE), (None, "paper")):
        for blocks in SWEEP_BLOCKS:
            for threads in SWEEP_THREADS:
                step = implementations.prepared(name, adjacency, blocks=blocks, threads=threads, form=form)
                samples = implementations.iteration(step, adjacency.n)
                yield known | {
                    "method": FORMS[name] if form else name, "blocks": blocks, "threads": threads,
                    "ms per iteration": statistics.median(samples) * 1e3, "samples": samples,
                }  # fmt: skip


# --- claims ---------------------------------------------------------------------------------------------------------


def _times(results: list[Row], column: str = "total ms") -> dict[str, dict[str, float]]:
    """Return the ms of a run by graph and implementation."""
    found: dict[str, dict[str, float]] = {}
    for line in results:
        if line["table"] == TEN and line[column] != "":
            found.setdefault(line["graph"], {})[line["what"]] = line[column]
    return found


def _ratios(
    slow: str, fast: str, graphs: Callable[[str], bool], results: list[Row], column: str = "total ms"
) -> dict[str, float]:
    """Return the ratio of the times of two implementations by graph, in the paper's form."""
    slow, fast = FORMS.get(slow, slow), FORMS.get(fast, fast)
    return {
        graph: times[slow] / times[fast]
        for graph, times in _times(results, column).items()
        if graphs(graph) and slow in times and fast in times
    }


def _ratios_on(slow: str, fast: str, graphs: Callable[[str], bool]) -> Callable[[list[Row]], dict[str, float]]:
    return partial(_ratios, slow, fast, graphs)


def _over_the_fastest(results: list[Row]) -> dict[str, float]:
    """Return the ratio of the fastest other method of the paper to the node-centric one by graph."""
    found = {}
    for graph, times in _times(results).items():
        others = [times[what] for what in (ONE, *COUNTED.values(), ALL, BASIC, EDGE_PAPER) if what in times]
        if NODE_PAPER in times and others and graph not in STAND_INS:
            found[graph] = min(others) / times[NODE_PAPER]
    return found


def _basic_over_the_slowest(results: list[Row]) -> dict[str, float]:
    """Return the ratio of the basic CPU version to the slowest other version by graph."""
    found = {}
    for graph, times in _times(results).items():
        others = [times[what] for what in (ONE, *COUNTED.values(), ALL, EDGE_PAPER, NODE_PAPER) if what in times]
        if BASIC in times and others and graph not in STAND_INS:
            found[graph] = times[BASIC] / max(others)
    return found


def _medium_over_small(results: list[Row]) -> dict[str, float]:
    """Return the speed-up of node-centric over the CPU on medium graphs, relative to that on small ones."""
    gains = _ratios(ALL, NODE, _is_of_the_papers_size, results)
    names = [
        [f"uniform {SIZES[size]:,} x {SIZES[size] * density:,}" for size in ("medium", "small")]
        for density in DENSITIES
    ]
    return {medium: gains[medium] / gains[small] for medium, small in names if medium in gains and small in gains}


def _bytes_of_both(results: list[Row]) -> dict[str, float]:
    """Return the bytes that node-centric transfers relative to edge-centric, on undirected graphs."""
    sent = {
        (line["graph"], line["what"]): line["MB"]
        for line in results
        if line["table"] == TEN and line["graph"].startswith("undirected") and line["MB"] != ""
    }
    return {
        graph: megabytes / sent[graph, EDGE_PAPER]
        for (graph, what), megabytes in sent.items()
        if what == NODE_PAPER and (graph, EDGE_PAPER) in sent
    }


def _transfers(gpu: str, graphs: Callable[[str], bool]) -> Callable[[list[Row]], str]:
    """Return the share of the transfers in a method's time, from pageable and from page-locked memory, as text."""

    def share(results: list[Row], what: str) -> str:
        fractions = [
            line["transfers ms"] / line["total ms"]
            for line in results
            if line["table"] == TEN and line["what"] == FORMS[what] and line["total ms"] != "" and graphs(line["graph"])
        ]
        return f"{min(fractions):.0%} to {max(fractions):.0%}" if fractions else ""

    def said(results: list[Row]) -> str:
        pageable, locked = share(results, gpu), share(results, LOCKED.format(gpu))
        also = locked and f", {locked} from page-locked memory"
        return pageable and f"Transfers are {pageable} of {gpu}'s time{also}."

    return said


def _compared(slow: str, fast: str, graphs: Callable[[str], bool]) -> ClaimTest:
    """Return the test of a claim; its note has the share of transfers, and the ratios without and from page-locked."""
    gpu = fast if fast in (NODE, EDGE) else slow

    def said(results: list[Row]) -> str:
        locked = [LOCKED.format(what) if what in (NODE, EDGE) else what for what in (slow, fast)]
        others = {
            "From page-locked memory": _ratios(*locked, graphs, results).values(),
            "Without transfers": _ratios(slow, fast, graphs, results, "iterations ms").values(),
        }
        ranges = [f"{what}: {min(ratios):.3g} to {max(ratios):.3g}." for what, ratios in others.items() if ratios]
        return " ".join(filter(None, (_transfers(gpu, graphs)(results), *ranges)))

    return ClaimTest(_ratios_on(slow, fast, graphs), said)


def _edge_ahead(results: list[Row]) -> str:
    """Name the graphs on which the edge-centric version is faster than the node-centric one."""
    ahead = [
        f"{graph}: edge-centric {times[EDGE_PAPER]:.3g} ms, node-centric {times[NODE_PAPER]:.3g} ms"
        for graph, times in _times(results).items()
        if times.get(EDGE_PAPER, math.inf) < times.get(NODE_PAPER, 0) and graph not in STAND_INS
    ]
    return " ".join(filter(None, (f"{'; '.join(ahead)}." if ahead else "", _stand_ins(results))))


def _stand_ins(results: list[Row]) -> str:
    """Report how much smaller the graphs used in place of the real ones are."""
    edges = {line["graph"]: line["edges"] for line in results if line["table"] == TEN and line["edges"] != ""}
    smaller = [
        f"{graph} has {edges[graph]:,} edges, {name} {size[1]:,}"
        for graph, (name, size) in zip(STAND_INS, REAL.items(), strict=True)
        if graph in edges
    ]
    return f"The graphs used in place of the paper's are too small to compare: {'; '.join(smaller)}." if smaller else ""


def _is_of_the_papers_size(graph: str) -> bool:
    return graph.startswith(tuple(f"uniform {n:,} " for n in SIZES.values()))


def _is_small(graph: str) -> bool:
    return graph.startswith(f"uniform {SIZES['small']:,} ")


def _is_real(graph: str) -> bool:
    return graph in REAL


TESTS = {
    "node/all": _compared(ALL, NODE, _is_small),
    "node/edge": _compared(EDGE, NODE, _is_small),
    "node/every": ClaimTest(_over_the_fastest, _edge_ahead),
    "all/edge": _compared(EDGE, ALL, _is_of_the_papers_size),
    "edge/all": ClaimTest(_ratios_on(ALL, EDGE, _is_real), _stand_ins),
    "all/one": ClaimTest(_ratios_on(ONE, ALL, _is_small)),
    "eight/four": ClaimTest(_ratios_on(COUNTED[4], COUNTED[8], _is_small)),
    "basic/every": ClaimTest(_basic_over_the_slowest),
    "medium": ClaimTest(_medium_over_small),
    "memory": ClaimTest(_bytes_of_both),
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
        names = dict.fromkeys(line["method"] for line in swept)
        panels = {name: [line for line in swept if line["method"] == name] for name in names}
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
        panels.setdefault(graph.split(" x ")[0] if " x " in graph else "real graphs", []).append(graph)
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
        panel.set(title=f"{title} vertices", xlabel="edges") if " x " in graphs[0] else panel.set(title=title)
        plain(panel.yaxis)
    for panel in grid[len(panels) :]:
        panel.set_visible(False)
    bars = {label: handle for panel in grid for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    drawing.legend(bars.values(), bars.keys(), loc="outside lower center", ncols=4, fontsize="small")
    drawing.suptitle("Ten iterations from host memory to host memory (Kim 2013, Figures 4 to 6)")
    return drawing
