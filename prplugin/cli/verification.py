"""Compare the ranks of all methods, of one step without prplugin's graph and kernels, of NetworkX and of cuGraph.

Two vectors within b1 and b2 of the exact PageRank x* are within b1 + b2 of each other. If the reference x has the bound
b, G x is within alpha * b of x*. Any ranks x are within ||x - G x|| / (1 - alpha) of x*. These are (2) and (3) of
`prplugin.solver.certificate`. The rounding error of the step is added to both.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from prplugin import Graph
from prplugin.cpu.sums import total
from prplugin.errors import InvalidOptionError, MethodUnavailableError, NotConvergedError, PageRankError
from prplugin.io import EdgeFile
from prplugin.methods.registry import methods
from prplugin.numerics import rounding_depth
from prplugin.options import Duplicates
from prplugin.progress import ProgressOption
from prplugin.types.edges import Floats, Integers

NETWORKX_EDGES = 5_000_000  # above which NetworkX is skipped: it takes a minute and several gigabytes
ROUNDING = 1e-12  # relative tolerance, far above the rounding error of a distance


class _Ranks(NamedTuple):
    """Ranks by any library, in the order of the result."""

    ranks: Floats
    iterations: int | None  # None if the library does not report them
    seconds: float
    error_bound: float


class Check(NamedTuple):
    """One implementation, and whether its distance to the reference is at most the sum of the two bounds.

    If it did not run, `note` is the reason.
    """

    name: str
    found: _Ranks | None = None
    distance: float = np.nan
    agrees: bool | None = None
    note: str = ""


def checks_of(
    graph: Graph,
    edges: EdgeFile,
    directed: bool,
    duplicates: Duplicates,
    alpha: float,
    tol: float,
    *,
    progress: ProgressOption,
) -> list[Check]:
    """Rank the graph of `edges` by every available method and library; the reference has the smallest bound."""
    if graph.number_of_vertices == 0:
        return []

    def rank(**options: object) -> _Ranks:
        ranking = graph.rank(alpha=alpha, progress=progress, **options)
        return _Ranks(ranking.ranks.astype(np.float64), ranking.iterations, ranking.seconds, ranking.error_bound)

    reference = _of_smallest_bound(rank)
    rows = _Rows(edges, graph.vertices, directed and edges.directed, duplicates, alpha)
    implementations: dict[str, Callable[[], _Ranks]] = {
        **{name: partial(rank, tol=tol, method=name) for name in methods()},
        "plain sums over the rows": partial(rows.step_from, reference),
        "networkx": partial(_by_networkx, rows, tol),
        "cugraph": partial(_by_cugraph, rows, tol),
    }
    checks = [Check("reference", reference, 0.0, True)]
    for name, implementation in implementations.items():
        try:
            found = implementation()
        except (MethodUnavailableError, InvalidOptionError) as reason:
            # Plain sums of a nondeterministic method prove less than compensated ones.
            varies = getattr(methods().get(name), "nondeterministic", False)
            if isinstance(reason, InvalidOptionError) and not varies:
                raise
            checks.append(Check(name, note=str(reason).removeprefix(f"method {name!r} cannot run here: ")))
        else:
            distance = total(np.abs(found.ranks - reference.ranks))
            agrees = bool(distance * (1 - ROUNDING) <= found.error_bound + reference.error_bound)
            checks.append(Check(name, found, distance, agrees))
    return checks


def _of_smallest_bound(rank: Callable[..., _Ranks]) -> _Ranks:
    """Rank with the smallest power of ten as tolerance that can be proved."""
    for exponent in range(14, 1, -1):
        with suppress(InvalidOptionError, NotConvergedError):
            return rank(tol=10.0**-exponent)
    return rank(tol=0.1)


class _Rows:
    """Graph built from the rows by pandas and `bincount`, without prplugin's factorization, graph and kernels."""

    def __init__(self, edges: EdgeFile, vertices: Any, directed: bool, duplicates: Duplicates, alpha: float) -> None:
        self.n, self.alpha = len(vertices), alpha
        frame, columns = edges.frame, edges.columns
        endpoints = columns.source_names, columns.destination_names
        ends = [frame[names] for names in endpoints]
        if edges.bipartite:
            sides = [", ".join(map(str, names)) for names in endpoints]
            ends = [pd.DataFrame({0: side, 1: end.iloc[:, 0]}) for side, end in zip(sides, ends, strict=True)]
        source, target = (_positions(end, vertices) for end in ends)
        weight = 1.0 if columns.weight_name is None else frame[columns.weight_name].to_numpy(np.float64)
        rows = pd.DataFrame({"source": source, "target": target, "weight": weight})
        if duplicates in ("first", "last"):
            pair = rows[["source", "target"]] if directed else pd.DataFrame(np.sort(rows[["source", "target"]]))
            rows = rows[~pair.duplicated(keep=duplicates)]
        if not directed:
            back = rows[rows["source"] != rows["target"]].rename(columns={"source": "target", "target": "source"})
            rows = pd.concat([rows, back], ignore_index=True)
        self._rows, self.source, self.target = rows, rows["source"].to_numpy(), rows["target"].to_numpy()
        out_weight = np.bincount(self.source, rows["weight"], minlength=self.n)
        self._dangling = np.flatnonzero(out_weight == 0)
        self._normalized_weight = rows["weight"].to_numpy() / np.where(out_weight > 0, out_weight, 1.0)[self.source]
        # Rounding depth of any term of a step and of the norm of a change; a rounding is at most 2**-53 of the sum 1.
        degrees = np.bincount(self.target, minlength=1).max() + np.bincount(self.source, minlength=1).max()
        self._rounding = 2.0**-52 * (int(degrees) + 3 * rounding_depth(self.n) + 20)

    def step(self, x: Floats) -> Floats:
        """Return G x."""
        pulled = np.bincount(self.target, x[self.source] * self._normalized_weight, minlength=self.n)
        spread = (self.alpha * total(x[self._dangling]) + (1 - self.alpha)) * (1 / self.n)
        return self.alpha * pulled.astype(np.float64, copy=False) + spread

    def step_from(self, reference: _Ranks) -> _Ranks:
        """Return the ranks one step from the reference."""
        began = time.perf_counter()
        ranks = self.step(reference.ranks)
        return _Ranks(ranks, 1, time.perf_counter() - began, self.alpha * reference.error_bound + self._rounding)

    def bounded(self, x: Floats, seconds: float) -> _Ranks:
        """Bound the error of any ranks by their residual."""
        residual = total(np.abs(self.step(x) - x))
        return _Ranks(x, None, seconds, (residual + self._rounding) / (1 - self.alpha) * (1 + ROUNDING))

    def pairs(self) -> pd.DataFrame:
        """Return one row per pair, with the weights added, for graphs without parallel edges."""
        return self._rows.groupby(["source", "target"], as_index=False, sort=False)["weight"].sum()


def _positions(ids: pd.DataFrame, vertices: Any) -> Integers:
    several = vertices.ndim == 2
    known = pd.MultiIndex.from_frame(vertices) if several else pd.Index(vertices)
    found: Integers = known.get_indexer(pd.MultiIndex.from_frame(ids) if several else pd.Index(ids.iloc[:, 0]))
    if (absent := np.flatnonzero(found < 0)).size:
        vertex = ", ".join(map(repr, ids.iloc[int(absent[0])].tolist()))
        raise PageRankError(f"vertex {vertex} of the edges is not in the result: a bug of prplugin.")
    return found


def _by_networkx(rows: _Rows, tol: float) -> _Ranks:
    networkx = _imported("networkx")
    _imported("scipy")  # its pagerank needs it
    if rows.source.size > NETWORKX_EDGES:
        raise MethodUnavailableError(f"skipped: {rows.source.size:,} edges are more than {NETWORKX_EDGES:,}")
    graph = networkx.from_pandas_edgelist(rows.pairs(), "source", "target", "weight", networkx.DiGraph)
    graph.add_nodes_from(range(rows.n))
    began = time.perf_counter()
    try:
        # It stops at a change of n * tol. `backend` prevents dispatch to prplugin.
        ranks = networkx.pagerank(graph, rows.alpha, tol=tol / rows.n, max_iter=10_000, backend="networkx")
    except networkx.PowerIterationFailedConvergence as error:
        raise MethodUnavailableError(str(error)) from error
    seconds = time.perf_counter() - began
    return rows.bounded(np.array([ranks[vertex] for vertex in range(rows.n)]), seconds)


def _by_cugraph(rows: _Rows, tol: float) -> _Ranks:
    cugraph, cudf = _imported("cugraph"), _imported("cudf")
    if np.union1d(rows.source, rows.target).size < rows.n:
        raise MethodUnavailableError("skipped: it does not rank isolated vertices")
    try:
        graph = cugraph.Graph(directed=True)
        pairs = cudf.from_pandas(rows.pairs())
        graph.from_cudf_edgelist(pairs, "source", "target", edge_attr="weight", store_transposed=True)
        began = time.perf_counter()
        ranks = cugraph.pagerank(graph, alpha=rows.alpha, tol=tol, max_iter=10_000)
        seconds = time.perf_counter() - began
    except Exception as error:  # CUDA's errors have no other common class
        raise MethodUnavailableError(f"{type(error).__name__}: {error}") from error
    x = np.zeros(rows.n)
    x[ranks["vertex"].to_numpy()] = ranks["pagerank"].to_numpy()
    return rows.bounded(x, seconds)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:  # without a GPU, cuGraph raises errors of many classes
        raise MethodUnavailableError(f"it cannot be imported: {error}") from error
