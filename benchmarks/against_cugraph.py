"""Comparison with cuGraph on one GPU.

Each library takes one cuDF frame and returns one. Calls alternate, after a warm-up, and both allocate from the same RMM
pool. cuGraph's `MultiGraph` counts every row, as prplugin does by default; its `Graph` keeps one edge per pair, as
prplugin does with ``duplicates="first"``. cuGraph runs with ``tol=1e-6``. prplugin's `tol` is halved until its error is
no larger than cuGraph's. Errors are L1 distances to a power iteration in float64 by cuSPARSE. Without weights both
compute in float32. "ratio" is cuGraph's time divided by prplugin's. "frame to frame" is a complete call; "iteration" is
the time per iteration of the method in the row, as in `kernels`; "(auto)" marks the choice of ``method="auto"``. Peak
memory is the memory that one call allocates in addition to the frame. ``--only NAME`` selects cases.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmarks import iterations
from benchmarks.generate import cube, local_web, purchases, rmat, scattered, scattered_ids, uniform, weighted
from benchmarks.measure import alternately, take_memory_from_a_pool, timed
from benchmarks.reference import reference
from benchmarks.run import Part
from prplugin.errors import MethodUnavailableError, PageRankError
from prplugin.graph.edges import Problem
from prplugin.machine import this_machine
from prplugin.methods.registry import choose, methods

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "graph", "what", "cuGraph ms", "prplugin ms", "ratio", "method", "iterations", "tol", "cuGraph error",
    "prplugin error", "error bound", "cuGraph peak MB", "prplugin peak MB", "note",
)  # fmt: skip

KEYS = ("graph", "what", "method")

TITLES = {"iteration": "time per iteration"}
"""Titles of the panels whose measurement has another name."""

NAMED = ("persistent", "propagation-blocking")
"""Methods whose iterations are timed in addition to the choice of "auto"."""

CUGRAPH_TOL, CUGRAPH_MAX_ITER = 1e-6, 1000

RUNS = 7, 25
"""Least and largest number of runs if a round takes less than `SLOW` seconds."""

SLOW, SLOW_RUNS = 1.0, 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """Measurement on a graph.

    Attributes
    ----------
    what : {"frame to frame", "iteration"}
    ids : {"int32", "int64", "str"}
        int64: scattered over 62 bits; str: the same as strings.
    multi : bool
        Whether cuGraph builds a `MultiGraph`; else a `Graph`.
    weight : "weight", optional
        Column of float64 weights.
    directed : bool
        Whether edges count in one direction; both libraries get one row per pair.
    alpha : float
    tol : float
        Initial tolerance of prplugin; see `_match_error`.
    """

    what: Literal["frame to frame", "iteration"] = "frame to frame"
    ids: Literal["int32", "int64", "str"] = "int32"
    multi: bool = True
    weight: Literal["weight"] | None = None
    directed: bool = True
    alpha: float = 0.85
    tol: float = 1e-5

    @property
    def label(self) -> str:
        """Options that differ from the default, as text."""
        return ", ".join(
            word
            for word, differs in (
                (f"{self.ids} ids", self.ids != "int32"),
                ("float64 weights", self.weight is not None),
                ("undirected", not self.directed),
                (f"alpha {self.alpha}", self.alpha != 0.85),
                ("Graph", not self.multi),
            )
            if differs
        )

    @property
    def dtype(self) -> str:
        """Type in which both libraries compute."""
        return "float32" if self.weight is None else "float64"


SLOW_CASE = Case(alpha=0.99, tol=1e-3)
PLAIN, STEP, SIMPLE, SCATTERED = Case(), Case(what="iteration"), Case(multi=False), Case(ids="int64")
WEIGHTED = Case(weight="weight", tol=1e-10)
WEIGHTED_STEP = Case(what="iteration", weight="weight")
NAMES = Case(ids="str", multi=False)
UNDIRECTED = Case(directed=False)


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], Any], tuple[Case, ...]]]:
    """Yield name, constructor of the cuDF frame of dense int32 ids, and cases of each graph."""
    yield "karate club", _karate, (PLAIN,)
    yield "R-MAT 12, 3 edges per vertex", lambda: rmat(12, 3, memory_space="device"), (PLAIN,)
    if data is not None:
        yield "road-luxembourg", lambda: _real(data, "road-luxembourg"), (PLAIN, STEP)
        yield "web-NotreDame", lambda: _real(data, "web-NotreDame"), (PLAIN, STEP)
        yield "cnr-2000", lambda: _real(data, "cnr-2000"), (PLAIN, SLOW_CASE, STEP)
        yield "soc-Epinions1", lambda: _real(data, "soc-Epinions1"), (PLAIN,)
    if quick:
        return
    yield "local web 4M x 64M", lambda: local_web(4_000_000, 64_000_000, memory_space="device"), (PLAIN,)
    yield (
        "purchases 5M x 200k, 40M",
        lambda: purchases(5_000_000, 200_000, 40_000_000, memory_space="device"),
        (UNDIRECTED,),
    )
    yield "grid 200 x 200 x 200", lambda: cube(200, memory_space="device"), (UNDIRECTED,)
    yield "R-MAT 18", lambda: rmat(18, memory_space="device"), (NAMES,)
    yield "R-MAT 20", lambda: rmat(20, memory_space="device"), (PLAIN, SIMPLE, SCATTERED, STEP)
    yield "R-MAT 21, 8 edges per vertex", lambda: rmat(21, 8, memory_space="device"), (PLAIN,)
    yield "R-MAT 23, a = 0.45", lambda: rmat(23, memory_space="device", a=0.45, b=0.22), (PLAIN,)
    yield "R-MAT 22", lambda: rmat(22, memory_space="device"), (PLAIN, SIMPLE, SCATTERED, WEIGHTED, STEP, WEIGHTED_STEP)
    yield "uniform 8M x 80M", lambda: uniform(8_000_000, 80_000_000, memory_space="device"), (PLAIN, STEP)
    yield "R-MAT 24", lambda: rmat(24, memory_space="device"), (PLAIN, SIMPLE, STEP)
    yield "uniform 32M x 320M", lambda: uniform(32_000_000, 320_000_000, memory_space="device"), (STEP,)


def parts(data: Path | None, quick: bool, only: tuple[str, ...] = ()) -> list[Part]:
    """Return one part per graph; a case that fails becomes a row with the reason.

    Parameters
    ----------
    only : tuple of str
        Select cases whose name contains one of these words, such as "R-MAT 22", "Graph" or "iteration". Default: all
        but "first call", which starts processes.
    """
    found = []
    if any(word in "first call" for word in only):
        measure = partial(_rows_or_reason, {"what": "first call"}, partial(iterations.first_calls, quick))
        found.append(Part("first call", measure))
    for name, make, cases in graphs(data, quick):
        wanted = [
            case for case in cases if not only or any(word in f"{_graph(name, case)}, {case.what}" for word in only)
        ]
        if wanted:
            found.append(Part(name, partial(_of_graph, name, make, wanted)))
    return found


def _of_graph(name: str, make: Callable[[], Any], cases: list[Case]) -> Iterator[dict[str, Any]]:
    take_memory_from_a_pool()
    edges = cache(lambda: make().astype("int32"))
    for case in cases:
        about = {"graph": _graph(name, case), "what": case.what}
        measure = _iteration if case.what == "iteration" else _frame_to_frame
        yield from _rows_or_reason(about, partial(measure, about, edges, case))
        gc.collect()


def _rows_or_reason(about: dict[str, Any], find: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield rows; on an exception yield a row with its message, so that the remaining cases still run."""
    try:
        yield from find()
    except Exception as error:  # libraries raise exceptions of many types
        yield {**about, "note": f"{type(error).__name__}: {error}"[:200]}


def _graph(name: str, case: Case) -> str:
    return ", ".join(filter(None, [name, case.label]))


# --- measurements ---------------------------------------------------------------------------------------------------


def _frame_to_frame(about: dict[str, Any], edges: Callable[[], Any], case: Case) -> Iterator[dict[str, Any]]:
    import prplugin

    given_edges = edges() if case.weight is None else weighted(edges())
    exact = reference(
        given_edges if case.directed else _both_ways(given_edges), multi=case.multi, weight=case.weight,
        alpha=case.alpha,
    )  # fmt: skip
    del given_edges
    frame = _frame_of_case(edges(), case)
    given: dict[str, Any] = {
        "weight": case.weight, "duplicates": "sum" if case.multi else "first", "directed": case.directed,
    }  # fmt: skip
    options: dict[str, Any] = {"alpha": case.alpha, "dtype": case.dtype}

    def theirs() -> Any:
        import cugraph

        graph = iterations.cugraph_graph(frame, multi=case.multi, weight=case.weight, directed=case.directed)
        return _synchronized(cugraph.pagerank(graph, alpha=case.alpha, tol=CUGRAPH_TOL, max_iter=CUGRAPH_MAX_ITER))

    found, their_peak = _measure_peak(theirs)
    their_error = _error(found, exact, case)
    ranking, error, tol = _match_error(
        lambda tol: prplugin.Graph(frame, **given).rank(tol=tol, **options), exact, case, their_error
    )

    def ours() -> Any:
        return _synchronized(prplugin.pagerank(frame, tol=tol, **given, **options))

    _, our_peak = _measure_peak(ours)
    seconds = timed(theirs)[0] + timed(ours)[0]
    runs = SLOW_RUNS if seconds > SLOW else min(max(RUNS[0], int(SLOW / seconds)), RUNS[1])
    peer, own = alternately(theirs, ours, runs=runs)
    yield {
        **about,
        **_times(peer.seconds, own.seconds),
        "method": ranking.method,
        "iterations": ranking.iterations,
        "tol": tol,
        "cuGraph error": their_error,
        "prplugin error": error,
        "error bound": ranking.error_bound,
        "cuGraph peak MB": round(their_peak / 1e6),
        "prplugin peak MB": round(our_peak / 1e6),
    }


def _iteration(about: dict[str, Any], edges: Callable[[], Any], case: Case) -> Iterator[dict[str, Any]]:
    import prplugin

    frame = _frame_of_case(edges(), case)
    peer = iterations.time_cugraph(iterations.cugraph_graph(frame, multi=case.multi, weight=case.weight))
    adjacency = prplugin.Graph(frame, weight=case.weight)._graph.adjacency
    auto = choose("auto", adjacency, this_machine(), {}).name

    def measure(method: str) -> Iterator[dict[str, Any]]:
        if reason := methods()[method].unavailable_reason(adjacency, this_machine()):
            raise MethodUnavailableError(reason)
        step = methods()[method].prepare(Problem(adjacency, case.alpha), this_machine())
        yield {**named, **_times(peer, iterations.time_method(step, adjacency.n, case.dtype))}

    for method in dict.fromkeys([auto, *NAMED]):
        if method in methods():
            named = {**about, "method": f"{method} (auto)" if method == auto else method}
            yield from _rows_or_reason(named, partial(measure, method))


def _times(theirs: list[float], ours: list[float]) -> dict[str, Any]:
    medians = statistics.median(theirs), statistics.median(ours)
    return {
        "cuGraph ms": medians[0] * 1e3,
        "prplugin ms": medians[1] * 1e3,
        "ratio": medians[0] / medians[1],
        "samples": {"cuGraph": theirs, "ours": ours},
    }


# --- errors ---------------------------------------------------------------------------------------------------------


def _match_error(rank: Callable[[float], Any], exact: Any, case: Case, limit: float) -> tuple[Any, float, float]:
    """Halve tol until the error is no larger than the limit, or until a smaller tol cannot be proved."""
    tol, best = case.tol, None
    while True:
        try:
            ranking = rank(tol)
        except PageRankError:
            if best is None:
                raise
            return best
        best = ranking, _error(ranking.frame, exact, case), tol
        if best[1] <= limit or tol < 1e-12:
            return best
        tol /= 2


def _error(found: Any, exact: Any, case: Case) -> float:
    """Return the L1 distance of a result, in any order, to the reference."""
    import cupy

    ids = found["vertex"]
    if case.ids == "int32":
        places = ids.values
    else:
        known = scattered_ids(exact.size, xp=cupy)
        order = cupy.argsort(known)
        places = order[cupy.searchsorted(known[order], ids.astype("int64").values)]
    ranks = cupy.zeros(exact.size)
    ranks[places] = found["pagerank"].values
    return float(cupy.abs(ranks - exact).sum())


# --- the GPU --------------------------------------------------------------------------------------------------------


def _frame_of_case(edges: Any, case: Case) -> Any:
    """Return the frame with the ids and weights of the case."""
    if case.weight is not None:
        return weighted(edges)
    if case.ids == "int32":
        return edges
    ids = scattered(edges)
    return ids if case.ids == "int64" else ids.astype("str")


def _both_ways(edges: Any) -> Any:
    """Return the edges of both directions as a frame of sources and targets."""
    import cudf

    reversed_edges = edges.rename(columns={"src": "dst", "dst": "src"})
    return cudf.concat([edges, reversed_edges], ignore_index=True)


def _synchronized(result: Any) -> Any:
    """Synchronize the GPU and return the result."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()
    return result


def _measure_peak(do: Callable[[], Any]) -> tuple[Any, int]:
    """Run a call once; return its result and its peak of allocated bytes."""
    import rmm

    upstream = rmm.mr.get_current_device_resource()
    statistics_resource = rmm.mr.StatisticsResourceAdaptor(upstream)
    rmm.mr.set_current_device_resource(statistics_resource)
    try:
        return do(), statistics_resource.allocation_counts.peak_bytes
    finally:
        rmm.mr.set_current_device_resource(upstream)


def _karate() -> Any:
    """Return Zachary's karate club with one row per edge."""
    import cudf
    import networkx as nx

    pairs = np.array(nx.karate_club_graph().edges())
    return cudf.DataFrame({"src": pairs[:, 0], "dst": pairs[:, 1]})


def _real(data: Path, name: str) -> Any:
    import cudf

    return cudf.read_parquet(data / "graphs" / f"{name}.parquet")[["src", "dst"]]


# --- figure ---------------------------------------------------------------------------------------------------------


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw the ratios of cuGraph's time to prplugin's on a logarithmic axis, one panel per measurement."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    shown = [row for row in results if row["ratio"] != ""]
    names = list(dict.fromkeys(row["what"] for row in shown))
    drawing = Figure(figsize=(8, 1.2 + 0.23 * (len(shown) + 2 * len(names))), layout="constrained")
    if not names:
        return drawing
    sizes = [sum(row["what"] == name for row in shown) + 1 for name in names]
    panels = drawing.subplots(len(names), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for panel, name in zip(panels, names, strict=True):
        rows = [row for row in shown if row["what"] == name][::-1]
        ratios = [row["ratio"] for row in rows]
        panel.hlines(range(len(rows)), 1, ratios, color="tab:blue")
        panel.plot(ratios, range(len(rows)), "o", color="tab:blue", markersize=4)
        for place, ratio in enumerate(ratios):
            left = ratio < 1
            panel.annotate(
                f"{ratio:.3g}", (ratio, place), (-6 if left else 6, 0), textcoords="offset points",
                ha="right" if left else "left", va="center", fontsize="x-small",
            )  # fmt: skip
        labels = [", ".join(filter(None, [row["graph"], row["method"]])) for row in rows]
        panel.set_yticks(range(len(rows)), labels, fontsize="small")
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_title(TITLES.get(name, name), fontsize="medium")
        panel.tick_params(labelbottom=True)
        panel.set(xscale="log", ylim=(-0.7, len(rows) - 0.3))
    least, most = min(row["ratio"] for row in shown), max(row["ratio"] for row in shown)
    panels[-1].set(xlim=(0.7 * min(least, 1), 1.3 * most), xlabel="time of cuGraph / time of prplugin, logarithmic")
    panels[-1].xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    panels[-1].xaxis.set_major_formatter("{x:g}")
    panels[-1].xaxis.set_minor_formatter("")
    return drawing
