"""Compare every method with the others, with a plain computation from the rows, and with NetworkX and cuGraph.

Two vectors within b1 and b2 of the exact PageRank are within b1 + b2 of each other. For ranks without a bound, it comes
from their residual: `prplugin.solver.certificate`, (3).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import prplugin
from prplugin.cpu.sums import total
from prplugin.errors import InvalidOptionError, MethodUnavailableError, NotConvergedError, PageRankError
from prplugin.io.selection import EdgeFile
from prplugin.methods.registry import methods
from prplugin.numerics.rounding import StepRounding, rounding_depth
from prplugin.options import Duplicates
from prplugin.result.ranking import Ranking
from prplugin.solver.certificate import Certificate
from prplugin.types.edges import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NETWORKX_EDGES", "Check", "checks_of"]

NETWORKX_EDGES = 5_000_000
"""Edges above which NetworkX is left out: it takes a minute and several gigabytes for as many."""

ROUNDING = 1e-12
"""Relative; far above the rounding error of a measured distance."""


class _Ranks(NamedTuple):
    """Ranks by any library, in the order of the result; iterations are None if it does not tell them."""

    ranks: Floats
    iterations: int | None
    seconds: float
    error_bound: float


class Check(NamedTuple):
    """One implementation, and how its ranks compare with the reference.

    `distance` is the L1 distance to the reference, and `agrees` whether that is at most the sum of the two bounds. What
    did not run has a `note` that says why instead.
    """

    name: str
    found: _Ranks | None = None
    distance: float = np.nan
    agrees: bool | None = None
    note: str = ""


class _CannotRunError(Exception):
    """Why a library is left out."""


def checks_of(
    graph: prplugin.Graph,
    edges: EdgeFile,
    directed: bool,
    duplicates: Duplicates,
    alpha: float,
    tol: float,
    *,
    progress: bool = False,
) -> list[Check]:
    """Rank a graph made of `edges` by every method and library here; the reference has the smallest bound."""
    if graph.number_of_vertices == 0:
        return []
    smallest = _of_smallest_bound(graph, alpha, progress)
    reference = _of(smallest)
    rows = _Rows(edges, smallest.frame.drop(columns="pagerank"), directed and edges.directed, duplicates, alpha)

    def by(method: str) -> _Ranks:
        return _of(graph.rank(alpha=alpha, tol=tol, method=method, progress=progress))

    implementations: dict[str, Callable[[], _Ranks]] = {name: partial(by, name) for name in methods()} | {
        "plain sums over the rows": partial(rows.ranked, tol),
        "networkx": partial(_by_networkx, rows, alpha, tol),
        "cugraph": partial(_by_cugraph, rows, alpha, tol),
    }
    checks = [Check("reference", reference, 0.0, True)]
    for name, ranked in implementations.items():
        try:
            found = ranked()
        except (_CannotRunError, MethodUnavailableError) as reason:
            checks.append(Check(name, note=str(reason).removeprefix(f"method {name!r} cannot run here: ")))
        except InvalidOptionError as reason:  # plain sums prove less than compensated ones
            if not getattr(methods().get(name), "nondeterministic", False):
                raise
            checks.append(Check(name, note=str(reason)))
        else:
            distance = total(np.abs(found.ranks - reference.ranks))
            agrees = bool(distance * (1 - ROUNDING) <= found.error_bound + reference.error_bound)
            checks.append(Check(name, found, distance, agrees))
    return checks


def _of(ranking: Ranking) -> _Ranks:
    return _Ranks(ranking.ranks.astype(np.float64), ranking.iterations, ranking.seconds, ranking.error_bound)


def _of_smallest_bound(graph: prplugin.Graph, alpha: float, progress: bool) -> Ranking:
    """Rank to the smallest power of ten that can be proved."""
    for exponent in range(14, 1, -1):
        try:
            return graph.rank(alpha=alpha, tol=10.0**-exponent, progress=progress)
        except (InvalidOptionError, NotConvergedError):
            continue
    return graph.rank(alpha=alpha, tol=0.1, progress=progress)


class _Rows:
    """The graph from the rows by pandas and `bincount`, without prplugin's factorization, graph and kernels."""

    def __init__(
        self, edges: EdgeFile, vertices: pd.DataFrame, directed: bool, duplicates: Duplicates, alpha: float
    ) -> None:
        import pandas as pd

        self.n, self.alpha = len(vertices), alpha
        endpoints = [_positions(edges.frame[names], vertices) for names in (edges.source, edges.destination)]
        weight = 1.0 if edges.weight is None else edges.frame[edges.weight].to_numpy(np.float64)
        rows = pd.DataFrame({"source": endpoints[0], "target": endpoints[1], "weight": weight})
        if duplicates in ("first", "last"):
            pair = rows[["source", "target"]] if directed else pd.DataFrame(np.sort(rows[["source", "target"]]))
            rows = rows[~pair.duplicated(keep=duplicates)]
        if not directed:
            back = rows[rows["source"] != rows["target"]].rename(columns={"source": "target", "target": "source"})
            rows = pd.concat([rows, back], ignore_index=True)
        self.rows = rows
        self.source, self.target = rows["source"].to_numpy(), rows["target"].to_numpy()
        out_weight = np.bincount(self.source, rows["weight"], minlength=self.n)
        self._dangling = np.flatnonzero(out_weight == 0)
        self._normalized_weight = rows["weight"].to_numpy() / np.where(out_weight > 0, out_weight, 1.0)[self.source]
        in_degree, out_degree = (
            int(np.bincount(endpoints, minlength=1).max()) for endpoints in (self.target, self.source)
        )
        rounds = StepRounding(
            row=in_degree,
            edge=out_degree + 4,
            dangling=rounding_depth(self.n),
            vectors=1,
            norm=rounding_depth(self.n) + 1,
        )
        self.certificate = Certificate(alpha, self.n, len(rows), rounds, "float64", 1)

    def step(self, x: Floats) -> Floats:
        """Return G x."""
        pulled = np.bincount(self.target, x[self.source] * self._normalized_weight, minlength=self.n)
        spread = (self.alpha * total(x[self._dangling]) + (1 - self.alpha)) * (1 / self.n)
        return self.alpha * pulled.astype(np.float64, copy=False) + spread

    def ranked(self, tol: float) -> _Ranks:
        """Iterate to a proved error of `tol`, or as near as this simple a computation can prove."""
        began = time.perf_counter()
        x = np.full(self.n, 1 / self.n)
        bound, iterations = np.inf, 0
        budget = max(1, self.certificate.steps(max(tol, 2 * self.certificate.floor)))
        while bound > tol and iterations < budget:
            y = self.step(x)
            bound = self.certificate.of_step(total(np.abs(y - x)))
            x = y
            iterations += 1
        return _Ranks(x, iterations, time.perf_counter() - began, bound)

    def measured(self, x: Floats, seconds: float) -> _Ranks:
        """Bound the error of any ranks by their residual."""
        return _Ranks(x, None, seconds, self.certificate.of_start(total(np.abs(self.step(x) - x))))

    def summed(self) -> pd.DataFrame:
        """Return one row per pair, with the weights added, for graphs without parallel edges."""
        return self.rows.groupby(["source", "target"], as_index=False, sort=False)["weight"].sum()


def _positions(ids: pd.DataFrame, vertices: pd.DataFrame) -> Integers:
    import pandas as pd

    one = vertices.shape[1] == 1
    known, wanted = (
        pd.Index(frame.iloc[:, 0]) if one else pd.MultiIndex.from_frame(frame) for frame in (vertices, ids)
    )
    found: Integers = known.get_indexer(wanted)
    if (found < 0).any():
        lost = ids.iloc[int(np.flatnonzero(found < 0)[0])].tolist()
        raise PageRankError(
            f"vertex {', '.join(map(repr, lost))} of the edges is not in the result: a bug of prplugin."
        )
    return found


def _by_networkx(rows: _Rows, alpha: float, tol: float) -> _Ranks:
    networkx = _imported("networkx")
    _imported("scipy")  # its pagerank needs it
    if rows.source.size > NETWORKX_EDGES:
        raise _CannotRunError(f"left out: {rows.source.size:,} edges are more than {NETWORKX_EDGES:,}")
    summed = rows.summed()
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(rows.n))
    graph.add_weighted_edges_from(zip(*(summed[name].tolist() for name in ("source", "target", "weight")), strict=True))
    began = time.perf_counter()
    try:
        # It stops at a change of n * tol. `backend`: it must not hand the work to prplugin.
        ranks = networkx.pagerank(graph, alpha, tol=tol / rows.n, max_iter=10_000, backend="networkx")
    except networkx.PowerIterationFailedConvergence as error:
        raise _CannotRunError(str(error)) from error
    seconds = time.perf_counter() - began
    return rows.measured(np.array([ranks[vertex] for vertex in range(rows.n)]), seconds)


def _by_cugraph(rows: _Rows, alpha: float, tol: float) -> _Ranks:
    cugraph, cudf = _imported("cugraph"), _imported("cudf")
    if np.union1d(rows.source, rows.target).size < rows.n:
        raise _CannotRunError("left out: it ranks no isolated vertices")
    try:
        graph = cugraph.Graph(directed=True)
        summed = cudf.from_pandas(rows.summed())
        graph.from_cudf_edgelist(summed, "source", "target", edge_attr="weight", store_transposed=True)
        began = time.perf_counter()
        ranks = cugraph.pagerank(graph, alpha=alpha, tol=tol, max_iter=10_000)
        seconds = time.perf_counter() - began
    except Exception as error:  # CUDA's errors have no common class but this
        raise _CannotRunError(f"{type(error).__name__}: {error}") from error
    x = np.zeros(rows.n)
    x[ranks["vertex"].to_numpy()] = ranks["pagerank"].to_numpy()
    return rows.measured(x, seconds)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise _CannotRunError(f"{name} is not installed") from None
    except Exception as error:  # cuGraph's, without a GPU, are of many classes
        raise _CannotRunError(f"{name} does not import: {error}") from error
