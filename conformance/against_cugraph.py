"""Every method on the GPU beside `cugraph.pagerank`, called as its users call it, on shapes and on real graphs.

The graphs are read here once more, by pandas: neither side's reading is taken on trust. Who is off where the two are
further apart than `LIMIT` is settled by a reference in float64 whose own error is proved by its residual.
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
from conformance.compare import DTYPES, owed
from conformance.equation import EPS, Equation, Extended, normalized_weights
from conformance.references import Solution, measured
from conformance.shapes import SHAPES
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["LIMIT", "WAYS", "Beside", "Way", "beside", "graphs"]

LIMIT = 1.1e-7
"""How far a rank may be from cuGraph's, with no vertex excepted: a tenth of what cuGraph's own tests allow."""

ALPHA = 0.85

TOL = {"float64": 1e-10, "float32": 1e-7}
"""Of our rankings, by the type of the result. cuGraph gets the first always: in float32 it may never stand still."""

MAX_ITER = 1_000


class Way(NamedTuple):
    """How cuGraph is called.

    Attributes
    ----------
    weight : str, optional
        The type of the weights; cuGraph computes in it, or in float32 where there are none.
    directed, multi : bool
        `Graph` or `MultiGraph`, and its argument.
    argument : str, optional
        What is given to `cugraph.pagerank` besides.
    """

    weight: str | None = None
    directed: bool = True
    multi: bool = False
    argument: str | None = None


WAYS = {
    "Graph": Way(),
    "MultiGraph": Way(multi=True),
    "Graph, undirected": Way(directed=False),
    "Graph, float64": Way("float64"),
    "Graph, float64, undirected": Way("float64", directed=False),
    "MultiGraph, float32": Way("float32", multi=True),
    "MultiGraph, float64": Way("float64", multi=True),
    "MultiGraph, personalization": Way(multi=True, argument="personalization"),
    "MultiGraph, float64, personalization": Way("float64", multi=True, argument="personalization"),
    "MultiGraph, float64, nstart": Way("float64", multi=True, argument="nstart"),
    "MultiGraph, float64, precomputed_vertex_out_weight": Way(
        "float64", multi=True, argument="precomputed_vertex_out_weight"
    ),
}

LOSES = "cuGraph is off where an id is -1"
"""With `precomputed_vertex_out_weight`, silently: on the graphs that have such a vertex, and on no other. There ours
are held to the reference alone. `conformance.probes` asks it of a small graph with the id and without."""

BY_ALL = ("MultiGraph", "MultiGraph, float64, personalization")


@dataclass(slots=True)
class Beside:
    """cuGraph beside all methods on one graph, asked in one way.

    Attributes
    ----------
    n, m : int
    precision : str
        What cuGraph computes in.
    refusal : str
        Why there is nothing to compare; empty where there is.
    rankings : int
        How many of ours, by method and type of the result.
    apart : float
        The greatest distance of one of our ranks to cuGraph's of that vertex.
    theirs_proved, theirs_l1, theirs_vertex : float
        cuGraph's error: as its residual proves it; to the reference, of all ranks together; of the worst.
    ours_proved, ours_l1, ours_vertex : float
        The worst of ours: the largest `error_bound`; to the reference.
    verdict : str
    failures : list of str
    """

    graph: str
    way: str
    n: int = 0
    m: int = 0
    precision: str = "float64"
    refusal: str = ""
    rankings: int = 0
    apart: float | None = None
    theirs_proved: float | None = None
    theirs_l1: float | None = None
    theirs_vertex: float | None = None
    ours_proved: float | None = None
    ours_l1: float | None = None
    ours_vertex: float | None = None
    verdict: str = ""
    failures: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the case is called in a report."""
        return f"{self.graph}, {self.way}"


def graphs() -> list[str]:
    """Name the graphs: real ones by their file, the largest first, and shapes."""
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


class _Asked(NamedTuple):
    """One graph, one way, and what they mean. `vectors` and `out_weight` are frames as cuGraph takes them."""

    frame: pd.DataFrame
    names: dict[str, Any]
    equation: Equation
    vertices: pd.Index
    vectors: dict[str, pd.DataFrame]
    out_weight: pd.DataFrame


def _asked(name: str, way: Way) -> _Asked | str:
    frame, names = _graph(name)
    endpoints = [names[end] if isinstance(names[end], list) else [names[end]] for end in ("source", "destination")]
    ids = [rapids.index_of(frame[columns]) for columns in endpoints]
    more = [] if "vertices" not in names else [rapids.index_of(pd.DataFrame(pd.Series(names["vertices"])))]
    codes, vertices = pd.factorize(ids[0].append([ids[1], *more]))
    n, rows = len(vertices), len(frame)
    pairs = pd.DataFrame({"source": codes[:rows], "target": codes[rows : 2 * rows]}, dtype=np.int64)
    if not way.multi:
        # cuGraph's Graph keeps one of several edges and does not say which, so it gets no pair twice.
        kept = ~(pairs if way.directed else pd.DataFrame(np.sort(pairs))).duplicated().to_numpy()
        frame, pairs = frame[kept].reset_index(drop=True), pairs[kept].reset_index(drop=True)
    weight = np.ones(len(pairs), way.weight or "float32")
    if way.weight is not None:
        given = frame["weight"].to_numpy(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            weight = given.astype(way.weight)
            sums = np.bincount(pairs["source"], weight, n).astype(way.weight)
        if not np.isfinite(sums).all() or ((weight < np.finfo(way.weight).tiny) & (given > 0)).any():
            return f"weights past the normal range of {way.weight}"
        frame = frame.assign(weight=weight)
    source, target = pairs["source"].to_numpy(), pairs["target"].to_numpy()
    if not way.directed:
        back = source != target
        source, target = np.append(source, target[back]), np.append(target, source[back])
        weight = np.append(weight, weight[back])
    normalized_weight, flowing = normalized_weights(source, weight, n)
    v = np.full(n, 1 / np.longdouble(n))
    chosen, values = np.arange(0, n, 2), 1.0 + np.arange(0, n, 2) % 7
    if way.argument == "personalization":
        v = np.zeros(n, np.longdouble)
        v[chosen] = values / np.longdouble(values.sum())
    precision = way.weight or "float32"
    columns = ["vertex"] if len(endpoints[0]) == 1 else endpoints[0]
    vectors = {
        "personalization": _frame(vertices[chosen], columns).assign(values=values.astype(precision)),
        "nstart": _frame(vertices, columns).assign(values=(1.0 + np.arange(n) % 5).astype(precision)),
    }
    out = np.bincount(source, weight, n)
    out_weight = _frame(vertices[out > 0], columns).assign(sums=out[out > 0].astype(precision))
    # Types as in the graph's own columns, which cuGraph joins them with.
    for table in (*vectors.values(), out_weight):
        for column, end in zip(columns, endpoints[0], strict=True):
            table[column] = table[column].astype(frame[end].dtype)
    equation = Equation(list(vertices), source, target, normalized_weight, ~flowing, ALPHA, v, v, v)
    return _Asked(frame, names, equation, vertices, vectors, out_weight)


def _frame(ids: pd.Index, columns: list[str]) -> pd.DataFrame:
    return ids.to_frame(index=False, name=columns if len(columns) > 1 else columns[0])


def _reference(equation: Equation) -> Solution:
    """Iterate in float64 by plain scattering until a step moves the ranks by 1e-12, and measure what that gives."""
    normalized_weight, w, v = (
        np.asarray(vector, np.float64) for vector in (equation.normalized_weight, equation.w, equation.v)
    )
    x = v
    for _ in range(MAX_ITER):
        pulled = np.bincount(equation.target, x[equation.source] * normalized_weight, equation.n)
        y = ALPHA * (pulled + x[equation.dangling].sum() * w) + (1 - ALPHA) * v
        change, x = np.abs(y - x).sum(), y
        if change < 1e-12:
            break
    return measured(equation, x.astype(np.longdouble))


# --- side by side -------------------------------------------------------------------------------------------------


def beside(graph: str, way: str, *, quick: bool = False, only: tuple[str, ...] = ()) -> Beside:
    """Rank one graph by cuGraph and by every fit method on the GPU, and say who is off where they differ.

    With `quick` all methods rank real graphs in the two ways of `BY_ALL`; in others, and on shapes, one of them does,
    another one for each way and graph. With `only`, methods of these names alone.
    """
    found = Beside(graph, way, precision=WAYS[way].weight or "float32")
    asked = _asked(graph, WAYS[way])
    if isinstance(asked, str):
        found.refusal = found.verdict = asked
        return found
    found.n, found.m = asked.equation.n, asked.equation.source.size
    reference = _reference(asked.equation)
    theirs: np.ndarray | None = None
    loses = WAYS[way].argument == "precomputed_vertex_out_weight" and -1 in asked.vertices
    if isinstance(answer := _theirs(asked, WAYS[way]), str):
        found.refusal, found.verdict = answer, "cuGraph cannot"
    else:
        theirs = answer
        off = np.abs(theirs - reference.ranks)
        found.theirs_l1, found.theirs_vertex = float(off.sum()), float(off.max())
        found.theirs_proved = measured(asked.equation, theirs.astype(np.longdouble)).error
    able = [name for name, method in methods().items() if method.runs_on == "gpu" and name in (only or methods())]
    if not able:
        found.verdict = found.refusal = "no method on the GPU"
        return found
    if quick and (way not in BY_ALL or graph in SHAPES):
        able = [able[zlib.crc32(found.name.encode()) % len(able)]]
    for name, dtype, ranking in _ours(asked, WAYS[way], able):
        if isinstance(ranking, str):
            found.failures.append(f"{name}-{dtype}: {ranking}")
            continue
        ours = rapids.by_position(rapids.on_host(ranking.frame), asked.vertices)
        if isinstance(ours, str):
            found.failures.append(f"{name}-{dtype} {ours}")
            continue
        _hold(found, f"{name}-{dtype}", ours, ranking.error_bound, None if loses else theirs, reference)
    if found.failures:
        found.verdict = "FAILED"
    elif loses and not found.refusal:
        found.verdict = LOSES
    elif found.apart is not None:
        found.verdict = "agree" if found.apart <= LIMIT else "cuGraph's float32 is off"
    return found


def _hold(
    found: Beside, name: str, ours: np.ndarray, bound: float, theirs: np.ndarray | None, reference: Solution
) -> None:
    """Note how far ours is from cuGraph's and the reference, and whether that is our doing."""
    off: Extended = np.abs(ours - reference.ranks)
    l1, vertex = float(off.sum()), float(off.max())
    found.rankings += 1
    found.ours_proved = max(found.ours_proved or 0.0, bound)
    found.ours_l1, found.ours_vertex = max(found.ours_l1 or 0.0, l1), max(found.ours_vertex or 0.0, vertex)
    if not l1 <= bound + reference.error + 2 * len(ours) * EPS:
        found.failures.append(f"{name}: off by {l1:.2e}, past its bound of {bound:.2e}")
    if not vertex <= LIMIT:
        found.failures.append(f"{name}: a rank is off by {vertex:.2e} > {LIMIT:.2e}")
    if theirs is None:
        return
    apart = float(np.abs(ours - theirs).max())
    found.apart = max(found.apart or 0.0, apart)
    if not apart <= LIMIT and (found.precision == "float64" or not (found.theirs_vertex or 0.0) > vertex):
        found.failures.append(f"{name}: {apart:.2e} from cuGraph, which is off by {found.theirs_vertex:.2e} itself")


def _theirs(asked: _Asked, way: Way) -> np.ndarray | str:
    """Rank by cuGraph; or say why it does not."""
    arguments: dict[str, Any] = {}
    try:
        if way.argument is not None:
            arguments[way.argument] = rapids.as_cudf(asked.vectors.get(way.argument, asked.out_weight))
        graph = rapids.graph(
            asked.frame,
            asked.names["source"],
            asked.names["destination"],
            weight=None if way.weight is None else "weight",
            directed=way.directed,
            multi=way.multi,
            vertices=asked.names.get("vertices"),
        )
        ranks, _ = rapids.pagerank(graph, alpha=ALPHA, tol=TOL["float64"], max_iter=MAX_ITER, **arguments)
        return rapids.by_position(ranks, asked.vertices)
    except Exception as error:  # cuGraph's errors have no common class but this
        return f"raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:120]


def _ours(asked: _Asked, way: Way, names: list[str]) -> Iterator[tuple[str, str, prplugin.Ranking | str]]:
    """Rank by these methods, as far as they are fit, and to each type; what is raised is a failure of that one."""
    arguments = {key: rapids.as_cudf(value) for key, value in asked.names.items() if key != "weight"}
    if way.weight is not None:
        arguments["weight"] = "weight"
    graph = prplugin.Graph(rapids.as_cudf(asked.frame), directed=way.directed, **arguments)
    vectors = {name: rapids.as_cudf(table) for name, table in asked.vectors.items() if name == way.argument}
    machine, weighted = this_machine(), way.weight is not None
    for name in names:
        if methods()[name].unavailable_reason(None, machine):
            continue
        for dtype in DTYPES:
            tol = max(TOL[dtype], owed(asked.equation, name, dtype, weighted=weighted))
            try:
                yield name, dtype, graph.rank(method=name, dtype=dtype, alpha=ALPHA, tol=tol, **vectors)
            except prplugin.MethodUnavailableError:
                break  # this graph is not for it
            except Exception as error:
                yield name, dtype, f"raised {type(error).__name__}: {error}"
