"""Comparison of every GPU method with `cugraph.pagerank`, called as its users call it, on shapes and real graphs.

The graphs are read independently of both libraries, by pandas. If the ranks differ by more than `LIMIT`, a float64
reference, whose error is bounded by its residual, determines which of them are inexact.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import prplugin
from conformance import published, rapids
from conformance.compare import DTYPES, required_tol
from conformance.equation import EPS, Equation, Extended, normalized_weights
from conformance.references import Solution, measured
from conformance.shapes import SHAPES
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["CALLS", "LIMIT", "Call", "Comparison", "compare_with_cugraph", "graphs"]

LIMIT = 1.1e-7
"""Maximum difference of a rank from cuGraph's rank of the vertex: a tenth of the tolerance of cuGraph's own tests."""

ALPHA = 0.85

TOL = {"float64": 1e-10, "float32": 1e-7}
"""Tolerance of prplugin's rankings by dtype. cuGraph always gets the tolerance of float64, which it may not attain."""

MAX_ITER = 1_000


class Call(NamedTuple):
    """A call of cuGraph.

    Attributes
    ----------
    weight : str, optional
        Dtype of the weights, in which cuGraph computes; without weights it computes in float32.
    directed, multi : bool
        Class `Graph` or `MultiGraph`, and its argument.
    argument : str, optional
        Name of a further argument of `cugraph.pagerank`.
    """

    weight: str | None = None
    directed: bool = True
    multi: bool = False
    argument: str | None = None


CALLS = {
    "Graph": Call(),
    "MultiGraph": Call(multi=True),
    "Graph, undirected": Call(directed=False),
    "Graph, float64": Call("float64"),
    "Graph, float64, undirected": Call("float64", directed=False),
    "MultiGraph, float32": Call("float32", multi=True),
    "MultiGraph, float64": Call("float64", multi=True),
    "MultiGraph, personalization": Call(multi=True, argument="personalization"),
    "MultiGraph, float64, personalization": Call("float64", multi=True, argument="personalization"),
    "MultiGraph, float64, nstart": Call("float64", multi=True, argument="nstart"),
    "MultiGraph, float64, precomputed_vertex_out_weight": Call(
        "float64", multi=True, argument="precomputed_vertex_out_weight"
    ),
}

CUGRAPH_WRONG = "cuGraph is wrong with the id -1"
"""Verdict with `precomputed_vertex_out_weight` if a vertex has the id -1: cuGraph returns wrong ranks without an error,
on such graphs only. There prplugin is compared with the reference only. `conformance.probes` has a small example."""

CALLS_OF_ALL_METHODS = ("MultiGraph", "MultiGraph, float64, personalization")
"""Calls in which all methods rank real graphs with `quick`."""


@dataclass(slots=True)
class Comparison:
    """Comparison of all methods with one call of cuGraph on one graph.

    Attributes
    ----------
    n, m : int
    precision : str
        Dtype in which cuGraph computes.
    reason : str
        Reason why there is nothing to compare; empty if there is a comparison.
    rankings : int
        Number of prplugin's rankings, by method and dtype.
    difference : float
        Largest difference of a rank of prplugin from cuGraph's rank of the vertex.
    cugraph_bound, cugraph_l1, cugraph_vertex : float
        cuGraph's error: bound from the residual; L1 distance to the reference; largest error of a rank.
    prplugin_bound, prplugin_l1, prplugin_vertex : float
        Maxima over all rankings: `error_bound`; L1 distance to the reference; error of a rank.
    verdict : str
    failures : list of str
    """

    graph: str
    call: str
    n: int = 0
    m: int = 0
    precision: str = "float64"
    reason: str = ""
    rankings: int = 0
    difference: float | None = None
    cugraph_bound: float | None = None
    cugraph_l1: float | None = None
    cugraph_vertex: float | None = None
    prplugin_bound: float | None = None
    prplugin_l1: float | None = None
    prplugin_vertex: float | None = None
    verdict: str = ""
    failures: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the case in reports."""
        return f"{self.graph}, {self.call}"


def graphs() -> list[str]:
    """Return the names of the graphs: real ones by their file, the largest first, then shapes."""
    return [file.stem for file in sorted(published.graphs(), key=lambda file: -file.stat().st_size)] + list(SHAPES)


# --- the graph ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _graph(name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a frame and the arguments that name its columns, with weights where the graph has none of its own."""
    files = {file.stem: file for file in published.graphs()}
    frame, arguments = (pd.read_parquet(files[name]), {}) if name in files else SHAPES[name]()
    if "weight" not in frame:
        weights = np.random.default_rng(zlib.crc32(name.encode())).lognormal(size=len(frame))
        frame = frame.assign(weight=weights)
    return frame, {"source": "src", "destination": "dst", **arguments}


class _Problem(NamedTuple):
    """Equation of a graph and a call. `vectors` and `out_weight` are frames as cuGraph takes them."""

    frame: pd.DataFrame
    names: dict[str, Any]
    equation: Equation
    vertices: pd.Index
    vectors: dict[str, pd.DataFrame]
    out_weight: pd.DataFrame


def _problem_of(name: str, call: Call) -> _Problem | str:
    """Return the problem, or a message if the weights are outside the range of the dtype."""
    frame, names = _graph(name)
    endpoints = [
        names[endpoint] if isinstance(names[endpoint], list) else [names[endpoint]]
        for endpoint in ("source", "destination")
    ]
    ids = [rapids.index_of(frame[columns]) for columns in endpoints]
    extra_vertices = [] if "vertices" not in names else [rapids.index_of(pd.DataFrame(pd.Series(names["vertices"])))]
    codes, vertices = pd.factorize(ids[0].append([ids[1], *extra_vertices]))
    n, rows = len(vertices), len(frame)
    pairs = pd.DataFrame({"source": codes[:rows], "target": codes[rows : 2 * rows]}, dtype=np.int64)
    if not call.multi:
        # cuGraph's Graph keeps an unspecified one of parallel edges, so each pair is passed once.
        kept = ~(pairs if call.directed else pd.DataFrame(np.sort(pairs))).duplicated().to_numpy()
        frame, pairs = frame[kept].reset_index(drop=True), pairs[kept].reset_index(drop=True)
    weight = np.ones(len(pairs), call.weight or "float32")
    if call.weight is not None:
        given = frame["weight"].to_numpy(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            weight = given.astype(call.weight)
            sums = np.bincount(pairs["source"], weight, n).astype(call.weight)
        if not np.isfinite(sums).all() or ((weight < np.finfo(call.weight).tiny) & (given > 0)).any():
            return f"weights outside the normal range of {call.weight}"
        frame = frame.assign(weight=weight)
    source, target = pairs["source"].to_numpy(), pairs["target"].to_numpy()
    if not call.directed:
        reversed_edges = source != target
        source, target = np.append(source, target[reversed_edges]), np.append(target, source[reversed_edges])
        weight = np.append(weight, weight[reversed_edges])
    normalized_weight, has_out_weight = normalized_weights(source, weight, n)
    v = np.full(n, 1 / np.longdouble(n))
    chosen, values = np.arange(0, n, 2), 1.0 + np.arange(0, n, 2) % 7
    if call.argument == "personalization":
        v = np.zeros(n, np.longdouble)
        v[chosen] = values / np.longdouble(values.sum())
    precision = call.weight or "float32"
    columns = ["vertex"] if len(endpoints[0]) == 1 else endpoints[0]
    vectors = {
        "personalization": _frame(vertices[chosen], columns).assign(values=values.astype(precision)),
        "nstart": _frame(vertices, columns).assign(values=(1.0 + np.arange(n) % 5).astype(precision)),
    }
    out = np.bincount(source, weight, n)
    out_weight = _frame(vertices[out > 0], columns).assign(sums=out[out > 0].astype(precision))
    # cuGraph joins these frames with the columns of the graph, so their dtypes have to be equal.
    for table in (*vectors.values(), out_weight):
        for column, endpoint in zip(columns, endpoints[0], strict=True):
            table[column] = table[column].astype(frame[endpoint].dtype)
    equation = Equation(list(vertices), source, target, normalized_weight, ~has_out_weight, ALPHA, v, v, v)
    return _Problem(frame, names, equation, vertices, vectors, out_weight)


def _frame(ids: pd.Index, columns: list[str]) -> pd.DataFrame:
    return ids.to_frame(index=False, name=columns if len(columns) > 1 else columns[0])


def _reference(equation: Equation) -> Solution:
    """Return ranks of the power method in float64, iterated to a change of 1e-12, with a bound of their error."""
    normalized_weight, w, v = (
        np.asarray(vector, np.float64) for vector in (equation.normalized_weight, equation.w, equation.v)
    )
    x = v
    for _ in range(MAX_ITER):
        sums = np.bincount(equation.target, x[equation.source] * normalized_weight, equation.n)
        y = ALPHA * (sums + x[equation.dangling].sum() * w) + (1 - ALPHA) * v
        change, x = np.abs(y - x).sum(), y
        if change < 1e-12:
            break
    return measured(equation, x.astype(np.longdouble))


# --- comparison ---------------------------------------------------------------------------------------------------


def compare_with_cugraph(graph: str, call: str, *, quick: bool = False, only: tuple[str, ...] = ()) -> Comparison:
    """Rank one graph by cuGraph and by every available GPU method, and compare the ranks.

    With `quick`, all methods rank real graphs in the calls of `CALLS_OF_ALL_METHODS`; in other calls, and on shapes,
    only one method runs, which depends on call and graph. With `only`, methods of other names are skipped.
    """
    found = Comparison(graph, call, precision=CALLS[call].weight or "float32")
    problem = _problem_of(graph, CALLS[call])
    if isinstance(problem, str):
        found.reason = found.verdict = problem
        return found
    found.n, found.m = problem.equation.n, problem.equation.source.size
    reference = _reference(problem.equation)
    cugraph_ranks: np.ndarray | None = None
    cugraph_wrong = CALLS[call].argument == "precomputed_vertex_out_weight" and -1 in problem.vertices
    if isinstance(answer := _rank_by_cugraph(problem, CALLS[call]), str):
        found.reason, found.verdict = answer, "no ranks of cuGraph"
    else:
        cugraph_ranks = answer
        errors = np.abs(cugraph_ranks - reference.ranks)
        found.cugraph_l1, found.cugraph_vertex = float(errors.sum()), float(errors.max())
        found.cugraph_bound = measured(problem.equation, cugraph_ranks.astype(np.longdouble)).error
    names = [name for name, method in methods().items() if method.runs_on == "gpu" and name in (only or methods())]
    if not names:
        found.verdict = found.reason = "no GPU method"
        return found
    if quick and (call not in CALLS_OF_ALL_METHODS or graph in SHAPES):
        names = [names[zlib.crc32(found.name.encode()) % len(names)]]
    for name, dtype, ranking in _rank_by_prplugin(problem, CALLS[call], names):
        if isinstance(ranking, str):
            found.failures.append(f"{name}-{dtype}: {ranking}")
            continue
        ranks = rapids.by_position(rapids.on_host(ranking.frame), problem.vertices)
        if isinstance(ranks, str):
            found.failures.append(f"{name}-{dtype} {ranks}")
            continue
        _check(
            found, f"{name}-{dtype}", ranks, ranking.error_bound, None if cugraph_wrong else cugraph_ranks, reference
        )
    if found.failures:
        found.verdict = "FAILED"
    elif cugraph_wrong and not found.reason:
        found.verdict = CUGRAPH_WRONG
    elif found.difference is not None:
        found.verdict = "agree" if found.difference <= LIMIT else "cuGraph's float32 is inexact"
    return found


def _check(
    found: Comparison, name: str, ranks: np.ndarray, bound: float, cugraph_ranks: np.ndarray | None, reference: Solution
) -> None:
    """Record the differences of a ranking from the reference and from cuGraph, and its failures."""
    errors: Extended = np.abs(ranks - reference.ranks)
    l1, vertex = float(errors.sum()), float(errors.max())
    found.rankings += 1
    found.prplugin_bound = max(found.prplugin_bound or 0.0, bound)
    found.prplugin_l1 = max(found.prplugin_l1 or 0.0, l1)
    found.prplugin_vertex = max(found.prplugin_vertex or 0.0, vertex)
    if not l1 <= bound + reference.error + 2 * len(ranks) * EPS:
        found.failures.append(f"{name}: L1 error {l1:.2e} > error_bound {bound:.2e}")
    if not vertex <= LIMIT:
        found.failures.append(f"{name}: error of a rank {vertex:.2e} > {LIMIT:.2e}")
    if cugraph_ranks is None:
        return
    difference = float(np.abs(ranks - cugraph_ranks).max())
    found.difference = max(found.difference or 0.0, difference)
    if not difference <= LIMIT and (found.precision == "float64" or not (found.cugraph_vertex or 0.0) > vertex):
        found.failures.append(
            f"{name}: difference from cuGraph {difference:.2e}, whose error is {found.cugraph_vertex:.2e}"
        )


def _rank_by_cugraph(problem: _Problem, call: Call) -> np.ndarray | str:
    """Return cuGraph's ranks by position, or a message if there are none."""
    arguments: dict[str, Any] = {}
    try:
        if call.argument is not None:
            arguments[call.argument] = rapids.as_cudf(problem.vectors.get(call.argument, problem.out_weight))
        graph = rapids.graph(
            problem.frame,
            problem.names["source"],
            problem.names["destination"],
            weight=None if call.weight is None else "weight",
            directed=call.directed,
            multi=call.multi,
            vertices=problem.names.get("vertices"),
        )
        ranks, _ = rapids.pagerank(graph, alpha=ALPHA, tol=TOL["float64"], max_iter=MAX_ITER, **arguments)
        return rapids.by_position(ranks, problem.vertices)
    except Exception as error:  # cuGraph's errors have no other common class
        return f"raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:120]


def _rank_by_prplugin(
    problem: _Problem, call: Call, names: list[str]
) -> Iterator[tuple[str, str, prplugin.Ranking | str]]:
    """Yield a ranking by each available method for each dtype, or a message if it raises."""
    arguments = {key: rapids.as_cudf(value) for key, value in problem.names.items() if key != "weight"}
    if call.weight is not None:
        arguments["weight"] = "weight"
    graph = prplugin.Graph(rapids.as_cudf(problem.frame), directed=call.directed, **arguments)
    vectors = {name: rapids.as_cudf(table) for name, table in problem.vectors.items() if name == call.argument}
    machine, weighted = this_machine(), call.weight is not None
    for name in names:
        if methods()[name].unavailable_reason(None, machine):
            continue
        for dtype in DTYPES:
            tol = max(TOL[dtype], required_tol(problem.equation, name, dtype, weighted=weighted))
            try:
                yield name, dtype, graph.rank(method=name, dtype=dtype, alpha=ALPHA, tol=tol, **vectors)
            except prplugin.MethodUnavailableError:
                break  # the method cannot rank this graph
            except Exception as error:
                yield name, dtype, f"raised {type(error).__name__}: {error}"
