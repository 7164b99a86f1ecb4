"""Every method against the others, against a plain computation from the rows, and against NetworkX and cuGraph.

What a ranking claims is checked by proved bounds: two vectors within b1 and b2 of the exact PageRank are within b1 + b2
of each other. For ranks that claim nothing, the bound comes from their residual: `prplugin.solver.certificate`, (3).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import prplugin
from prplugin.cpu.sums import total
from prplugin.errors import InvalidOptionError, MethodUnavailableError, NotConvergedError, PageRankError
from prplugin.io.selection import EdgeFile
from prplugin.methods.registry import methods
from prplugin.numerics.rounding import StepChain, chain
from prplugin.options import Duplicates
from prplugin.result.ranking import Ranking
from prplugin.solver.certificate import Certificate
from prplugin.types.edges import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NETWORKX_EDGES", "Check", "checks_of"]

NETWORKX_EDGES = 5_000_000
"""NetworkX takes a minute and several gigabytes for as many."""

ROUNDING = 1e-12
"""Relative, far above what the sum of a measured distance can be off by."""


class Check(NamedTuple):
    """One way to rank the graph, and how its ranks compare.

    Attributes
    ----------
    name : str
    iterations : int or None
        None where it does not say.
    seconds, error_bound : float
    distance : float
        L1, to the reference.
    agrees : bool or None
        Whether the distance is at most the sum of the two bounds; None if it did not run.
    note : str
        Why it did not run, else empty.
    """

    name: str
    iterations: int | None = None
    seconds: float = np.nan
    error_bound: float = np.nan
    distance: float = np.nan
    agrees: bool | None = None
    note: str = ""


class _Ranks(NamedTuple):
    """Ranks from anywhere, in the order of the result."""

    ranks: Floats
    iterations: int | None
    seconds: float
    error_bound: float


class _CannotRunError(Exception):
    """Why a way to rank does not run here."""


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
    """Rank a graph in every way there is here, each compared with the ranking of the tightest bound.

    Parameters
    ----------
    graph : Graph
        Made of `edges`.
    edges : EdgeFile
    directed, duplicates, alpha, tol, progress
        As for `prplugin.pagerank`.
    """
    if graph.number_of_vertices == 0:
        return []
    reference = _tightest(graph, alpha, progress)
    rows = _Rows(edges, reference.frame.drop(columns="pagerank"), directed and edges.directed, duplicates, alpha)
    ways: dict[str, Callable[[], _Ranks]] = {
        name: lambda name=name: _of(graph.rank(alpha=alpha, tol=tol, method=name, progress=progress))  # type: ignore[misc]
        for name in methods()
    }
    ways |= {
        "plain sums over the rows": lambda: rows.ranked(tol),
        "networkx": lambda: _by_networkx(rows, alpha, tol),
        "cugraph": lambda: _by_cugraph(rows, alpha, tol),
    }
    checks = [_check("reference", _of(reference), _of(reference))]
    for name, ranked in ways.items():
        try:
            checks.append(_check(name, ranked(), _of(reference)))
        except (_CannotRunError, MethodUnavailableError) as reason:
            checks.append(Check(name, note=str(reason)))
        except InvalidOptionError as reason:  # plain sums prove less than compensated ones
            if not getattr(methods().get(name), "varies", False):
                raise
            checks.append(Check(name, note=str(reason)))
    return checks


def _check(name: str, found: _Ranks, reference: _Ranks) -> Check:
    distance = total(np.abs(found.ranks - reference.ranks))
    agrees = distance * (1 - ROUNDING) <= found.error_bound + reference.error_bound
    return Check(name, found.iterations, found.seconds, found.error_bound, distance, agrees)


def _of(ranking: Ranking) -> _Ranks:
    return _Ranks(ranking.ranks.astype(np.float64), ranking.iterations, ranking.seconds, ranking.error_bound)


def _tightest(graph: prplugin.Graph, alpha: float, progress: bool) -> Ranking:
    """Rank to the least power of ten that can be proved."""
    refusal: PageRankError | None = None
    for exponent in range(14, 0, -1):
        try:
            return graph.rank(alpha=alpha, tol=10.0**-exponent, progress=progress)
        except (InvalidOptionError, NotConvergedError) as error:
            refusal = error
    assert refusal is not None
    raise refusal


class _Rows:
    """The rows of the file once more, without prplugin's renumbering, graph and kernels: by pandas and `bincount`."""

    def __init__(
        self, edges: EdgeFile, vertices: pd.DataFrame, directed: bool, duplicates: Duplicates, alpha: float
    ) -> None:
        import pandas as pd

        self.n, self.alpha = len(vertices), alpha
        ends = [_positions(edges.frame[names], vertices) for names in (edges.source, edges.destination)]
        weight = np.ones(len(edges.frame))
        if edges.weight is not None:
            weight = edges.frame[edges.weight].to_numpy(np.float64)
        rows = pd.DataFrame({"source": ends[0], "target": ends[1], "weight": weight})
        if duplicates in ("first", "last"):
            pair = rows[["source", "target"]] if directed else pd.DataFrame(np.sort(rows[["source", "target"]]))
            rows = rows[~pair.duplicated(keep=duplicates)]
        if not directed:
            back = rows[rows["source"] != rows["target"]].rename(columns={"source": "target", "target": "source"})
            rows = pd.concat([rows, back], ignore_index=True)
        self.source: Integers = rows["source"].to_numpy()
        self.target: Integers = rows["target"].to_numpy()
        self.weight: Floats = rows["weight"].to_numpy()
        self._out_weight = np.bincount(self.source, self.weight, minlength=self.n)
        flowing = self._out_weight > 0
        self._dangling = np.flatnonzero(~flowing)
        self._share = self.weight / np.where(flowing, self._out_weight, 1.0)[self.source]
        self.certificate = Certificate(
            alpha,
            self.n,
            self.source.size,
            StepChain(
                row=int(np.bincount(self.target, minlength=self.n).max()),
                edge=int(np.bincount(self.source, minlength=self.n).max()) + 4,
                dangling=chain(self.n),
                vectors=1,
                norm=chain(self.n) + 1,
            ),
            "float64",
            1,
        )

    def step(self, x: Floats) -> Floats:
        """Give G x."""
        pulled = np.bincount(self.target, x[self.source] * self._share, minlength=self.n)
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

    def bound(self, x: Floats) -> float:
        """Bound the error of any ranks."""
        return float(self.certificate.of_start(total(np.abs(self.step(x) - x))))

    def summed(self) -> pd.DataFrame:
        """Give one row a pair, with the weights added: what a graph without parallel edges can hold."""
        import pandas as pd

        rows = pd.DataFrame({"source": self.source, "target": self.target, "weight": self.weight})
        return rows.groupby(["source", "target"], as_index=False, sort=False)["weight"].sum()


def _positions(ids: pd.DataFrame, vertices: pd.DataFrame) -> Integers:
    import pandas as pd

    if vertices.shape[1] == 1:
        found: Integers = pd.Index(vertices.iloc[:, 0]).get_indexer(pd.Index(ids.iloc[:, 0]))
    else:
        found = pd.MultiIndex.from_frame(vertices).get_indexer(pd.MultiIndex.from_frame(ids))
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
    x = np.fromiter((ranks[vertex] for vertex in range(rows.n)), np.float64, rows.n)
    return _Ranks(x, None, seconds, rows.bound(x))


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
    return _Ranks(x, None, seconds, rows.bound(x))


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise _CannotRunError(f"{name} is not installed") from None
    except Exception as error:  # cuGraph's, without a GPU, are of many classes
        raise _CannotRunError(f"{name} does not import: {error}") from error
