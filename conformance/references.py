"""Solutions of the equation that are computed without prplugin. To add a reference, add a function to `REFERENCES`.

Each function takes an `Equation` and returns ranks in the order of its vertices, or the reason why it has none. The
distance of a reference to the exact x* is bounded by `measured`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from conformance import rapids
from conformance.equation import EPS, Equation, Extended

__all__ = [
    "REFERENCES",
    "SLOW_ALPHA",
    "Case",
    "Published",
    "Residual",
    "Solution",
    "iterate",
    "measured",
    "residual",
    "solutions",
]

DENSE_UP_TO = 1_500
"""Maximum number of vertices of a dense system: 18 MB and a few tenths of a second."""

SLOW_ALPHA = 0.999
"""Alpha from which cuGraph is not used as a reference, since each of its many iterations waits for the GPU; nor is
NetworkX for a graph of `ONE_CALL_FROM` edges."""

SLOW = "takes tens of thousands of iterations if alpha is close to 1"

CHANGES = (1e-11, 1e-13, 1e-14)
"""L1 changes at which NetworkX stops in turn, few since each reads the graph anew. Rounding may exceed the last."""

ONE_CALL_FROM = 100_000
"""Edges from which NetworkX is called once, since each call reads the graph anew."""

ONE_CHANGE = 1e-13
"""L1 change at which a single call stops."""


class Solution(NamedTuple):
    """Ranks of a reference, and a bound of their L1 distance to x*."""

    ranks: Extended
    error: float


class Published(NamedTuple):
    """Published ranks in the order of the vertices, and the tolerance of each."""

    ranks: np.ndarray
    tolerance: np.ndarray


@dataclass(frozen=True, eq=False)
class Case:
    """A graph and options, their equation, and its known solutions.

    Attributes
    ----------
    name : str
    frame : DataFrame
    graph, rank : dict
        Arguments of `prplugin.Graph`, and of its `rank`.
    equation : Equation
    solutions : dict
        Solution by reference, or a sentence if the reference has none.
    published : Published, optional
    """

    name: str
    frame: pd.DataFrame
    graph: dict[str, Any]
    rank: dict[str, Any]
    equation: Equation
    solutions: dict[str, Solution | str]
    published: Published | None = None


class Residual(NamedTuple):
    """||G x - x||, and a bound of its rounding error."""

    norm: float
    rounding: float


def dense(equation: Equation) -> np.ndarray | str:
    """Solve (I - alpha (P^T + w d^T)) x = (1 - alpha) v by Gaussian elimination, d marking dangling vertices.

    This is x = alpha (P^T x + D(x) w) + (1 - alpha) v with D(x) = d^T x moved to the left side. The matrix is the
    difference of I and a matrix of norm alpha, so its condition number in L1 is at most (1 + alpha) / (1 - alpha).
    """
    if equation.n > DENSE_UP_TO:
        return f"more than {DENSE_UP_TO:,} vertices"
    matrix = np.zeros((equation.n, equation.n))
    np.add.at(matrix, (equation.target, equation.source), equation.normalized_weight.astype(np.float64))
    matrix += np.outer(equation.w.astype(np.float64), equation.dangling)
    ranks: np.ndarray = np.linalg.solve(
        np.eye(equation.n) - equation.alpha * matrix, ((1 - equation.alpha) * equation.v).astype(np.float64)
    )
    return ranks


def networkx(equation: Equation) -> np.ndarray | str:
    """Iterate with NetworkX until the L1 change of a step is the smallest of `CHANGES` that its rounding permits.

    `networkx.pagerank` stops at an L1 change below N * tol, which at its default is an error of up to
    N * 1e-6 * alpha / (1 - alpha), so tol = change / N here. Each step multiplies the change, at most 2 at first, by
    alpha, so log(change / last) / log(alpha) more steps suffice except for rounding. A DiGraph has one edge per pair,
    so parallel edges are summed. NetworkX multiplies by 1/W, which overflows for subnormal weights, so it gets the
    normalized weights w/W.
    """
    import networkx as nx

    if equation.alpha >= SLOW_ALPHA and equation.source.size >= ONE_CALL_FROM:
        return SLOW
    graph = nx.DiGraph()
    graph.add_nodes_from(range(equation.n))
    graph.add_weighted_edges_from(
        (a, b, normalized_weight) for (a, b), normalized_weight in _weights_by_pair(equation).items()
    )
    ranks, last = dict(enumerate(equation.start.tolist())), 2.0
    for change in CHANGES if equation.source.size < ONE_CALL_FROM else (ONE_CHANGE,):
        try:
            ranks = nx.pagerank(
                graph,
                alpha=equation.alpha,
                personalization=dict(enumerate(equation.v.tolist())),
                dangling=dict(enumerate(equation.w.tolist())),
                nstart=ranks,
                tol=change / equation.n,
                max_iter=10 + int(np.log(change / last) / np.log(max(equation.alpha, 0.1))),
            )
        except nx.PowerIterationFailedConvergence:
            break
        last = change
    if last > CHANGES[0]:
        return f"rounding kept every step's change above {CHANGES[0]:g}"
    return np.array([ranks[vertex] for vertex in range(equation.n)])


def cugraph(equation: Equation) -> np.ndarray | str:
    """Iterate with cuGraph in float64 until the change is below 1e-14, or as often as exact arithmetic requires.

    As for NetworkX, weights are normalized, with one edge per pair. cuGraph has no `dangling=`: the dangling mass goes
    to v. If rounding keeps the change above 1e-14, `measured` bounds the error.
    """
    if reason := rapids.missing("cugraph"):
        return reason
    if not equation.source.size:
        return "builds no graph without edges"
    if equation.alpha >= SLOW_ALPHA:
        return SLOW
    if equation.dangling.any() and not np.array_equal(equation.w, equation.v):
        return "ignores dangling="
    weights_by_pair = _weights_by_pair(equation)
    vertices = np.arange(equation.n, dtype=np.int32)
    edges = pd.DataFrame(list(weights_by_pair), columns=["src", "dst"], dtype=np.int32).assign(
        weight=list(weights_by_pair.values())
    )
    personalization = pd.DataFrame({"vertex": vertices, "values": equation.v.astype(np.float64)})
    try:
        ranks, _ = rapids.pagerank(
            rapids.graph(edges, weight="weight", vertices=vertices),
            alpha=equation.alpha,
            personalization=rapids.as_cudf(personalization),
            tol=1e-14,
            max_iter=10 + int(np.log(1e-14 / 2) / np.log(max(equation.alpha, 0.1))),
        )
    except Exception as error:  # cuGraph's errors have no other common class
        return f"raised {type(error).__name__}"
    return rapids.by_position(ranks, pd.Index(vertices))


def _weights_by_pair(equation: Equation) -> dict[tuple[int, int], float]:
    """Return the sum of the normalized weights of each pair."""
    weights_by_pair: defaultdict[tuple[int, int], float] = defaultdict(float)
    for edge in zip(
        equation.source.tolist(), equation.target.tolist(), equation.normalized_weight.astype(float), strict=True
    ):
        weights_by_pair[edge[:2]] += edge[2]
    return weights_by_pair


REFERENCES: dict[str, Callable[[Equation], np.ndarray | str]] = {
    "dense": dense,
    "networkx": networkx,
    "cugraph": cugraph,
}
"""References by name."""


def solutions(equation: Equation) -> dict[str, Solution | str]:
    """Return the solution of every reference with its error bound, or the reason why it has none."""
    answers = {name: reference(equation) for name, reference in REFERENCES.items()}
    return {
        name: answer if isinstance(answer, str) else measured(equation, np.asarray(answer, np.longdouble))
        for name, answer in answers.items()
    }


def measured(equation: Equation, ranks: Extended) -> Solution:
    """Return ranks with a bound of their distance to x*, which follows from their residual.

    G is affine and contracts by alpha in L1, so ||x - x*|| <= ||x - G x|| + ||G x - G x*|| <= ||x - G x|| + alpha
    ||x - x*||, hence ||x - x*|| <= ||G x - x|| / (1 - alpha), for any x.
    """
    found = residual(equation, ranks)
    return Solution(ranks, (found.norm + found.rounding) / (1 - equation.alpha))


def residual(equation: Equation, ranks: Extended) -> Residual:
    """Compute ||G x - x|| by a scatter in extended precision; the methods gather in float64.

    All terms of G x are non-negative for x >= 0, so k roundings of a term are a relative error of at most k * EPS (EPS
    is two unit roundoffs, which covers higher orders). Ranks of references may be negative by an ulp, hence |x|.
    """
    norm = np.abs(equation.step(ranks) - ranks).sum()
    return Residual(float(norm), float(equation.rounding_depth * EPS * (2 * np.abs(ranks).sum() + 1)))


def iterate(equation: Equation, steps: int) -> Solution:
    """Return the `steps`-th iterate of the power method, and a bound of its distance to an iterate in float64.

    A step in float64 with plain loops has a relative error of k * 2**-52 (see `residual`); each later step shrinks it
    by alpha, and 1 + alpha + alpha**2 + ... <= 1 / (1 - alpha), as well as <= `steps`.
    """
    x = equation.start
    for _ in range(steps):
        x = equation.step(x)
    return Solution(x, equation.rounding_depth * 2.0**-52 * min(steps + 1, 1 / (1 - equation.alpha)))
