"""Behaviour of cuGraph and prplugin on invalid or ambiguous input: small experiments, reported without a verdict.

Each is a pair of functions without arguments, one per library, that return a short text; an exception is reported as
text. docs/semantics.md states the expected behaviour, and tests/api/test_differences.py checks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import prplugin
from conformance import rapids

__all__ = ["PROBES", "Finding", "findings"]

TRIANGLE = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 0, 0]})
"""Edges 0 -> 1, 0 -> 2, 1 -> 0, 2 -> 0."""

SINK = pd.DataFrame({"src": [0, 1], "dst": [1, 2]})
"""The path 0 -> 1 -> 2; vertex 2 is dangling."""

NULL_ID = pd.DataFrame({"src": pd.array([0, None, 2], "Int64"), "dst": pd.array([1, 2, 0], "Int64")})

PARALLEL = pd.DataFrame({"src": [0, 0, 0, 1, 2], "dst": [1, 1, 2, 0, 0], "weight": [1.0, 3.0, 1.0, 1.0, 1.0]})
"""Parallel edges 0 -> 1 of weights 1 and 3; 0 -> 2, 1 -> 0 and 2 -> 0 of weight 1."""

OUT_WEIGHTS = pd.DataFrame({"vertex": [-1, 0, 1], "sums": [1.0, 2.0, 2.0]})
"""Out-weights of `NEGATIVE_ID`."""

NEGATIVE_ID = pd.DataFrame({"src": [-1, 0, 0, 1, 1], "dst": [0, 1, -1, -1, 0], "weight": [1.0, 1.0, 1.0, 1.0, 1.0]})
"""Edges 0 -> 1, 0 -> -1, 1 -> -1, 1 -> 0, -1 -> 0."""


class Finding(NamedTuple):
    """Outcome of one experiment with each library."""

    experiment: str
    cugraph: str
    prplugin: str


class _Probe(NamedTuple):
    cugraph: Callable[[], str]
    prplugin: Callable[[], str]


def findings() -> list[Finding]:
    """Run every probe. If cuGraph is missing, its outcome is the reason."""
    reason = rapids.missing("cugraph")
    return [
        Finding(experiment, reason or _outcome(probe.cugraph), _outcome(probe.prplugin))
        for experiment, probe in PROBES.items()
    ]


def _outcome(run: Callable[[], str]) -> str:
    try:
        return run()
    except Exception as error:  # the exception is the outcome
        text = (str(error).splitlines() or [""])[0]
        return f"{type(error).__name__}: {text[:90]}{'...' if len(text) > 90 else ''}".removesuffix(": ")


# --- the two libraries --------------------------------------------------------------------------------------------


def _by_cugraph(frame: pd.DataFrame, options: dict[str, Any] | None = None, **graph: Any) -> Callable[[], str]:
    def run() -> str:
        given = {name: rapids.as_cudf(value) for name, value in (options or {}).items()}
        with rapids.quietly():
            ranks = rapids.module("cugraph").pagerank(rapids.graph(frame, **graph), **given)
        return _format_ranks(ranks.to_pandas())

    return run


def _by_prplugin(frame: pd.DataFrame, **arguments: Any) -> Callable[[], str]:
    return lambda: _format_ranks(prplugin.pagerank(frame, **arguments))


def _format_ranks(ranks: pd.DataFrame) -> str:
    """Return all ranks, their sum and their dtype as text."""
    column = ranks["pagerank"]
    by_vertex = ", ".join(f"{vertex}: {rank:.4g}" for vertex, rank in zip(ranks["vertex"], column, strict=True))
    return f"{by_vertex}; sum {column.astype(np.float64).sum():.4g}; {column.dtype}"


def _weighted_triangle(*weights: float) -> pd.DataFrame:
    return TRIANGLE.assign(weight=list(weights))


def _personalization(values: dict[int, float]) -> pd.DataFrame:
    return pd.DataFrame({"vertex": list(values), "values": np.array(list(values.values()), np.float32)})


def _iterations_and_error() -> str:
    ranking = prplugin.Graph(SINK).rank()
    return f"{ranking.iterations} iterations, error at most {ranking.error_bound:.1e}; {ranking.ranks.dtype}"


def _probe(frame: pd.DataFrame, options: dict[str, Any], **graph: Any) -> _Probe:
    arguments = {name: value for name, value in graph.items() if name != "multi"}
    return _Probe(_by_cugraph(frame, options, **graph), _by_prplugin(frame, **arguments, **options))


def _columns() -> str:
    with rapids.quietly():
        ranks = rapids.module("cugraph").pagerank(rapids.graph(SINK))
    return f"the columns {', '.join(map(str, ranks.columns))}, and no count; {ranks['pagerank'].dtype}"


PROBES: dict[str, _Probe] = {
    "A null among the ids": _probe(NULL_ID, {}),
    "A negative weight": _probe(_weighted_triangle(1.0, -0.25, 1.0, 1.0), {}, weight="weight"),
    "A NaN among the weights": _probe(_weighted_triangle(1.0, math.nan, 1.0, 1.0), {}, weight="weight"),
    "Subnormal weights 1e-310, 3e-310": _probe(_weighted_triangle(1e-310, 3e-310, 1.0, 1.0), {}, weight="weight"),
    "Personalization of a vertex not in the graph": _probe(SINK, {"personalization": _personalization({0: 1, 9: 3})}),
    "dangling={1: 1} (without it: 0: 0.1844, 1: 0.3412, 2: 0.4744)": _probe(SINK, {"dangling": {1: 1}}),
    "tol=0": _probe(SINK, {"tol": 0.0}),
    "max_iter=0": _probe(SINK, {"max_iter": 0}),
    "alpha=1": _probe(SINK, {"alpha": 1.0}),
    "Parallel edges of weights 1 and 3 (with their sum: 0: 0.4865, 1: 0.3808, 2: 0.1327)": _probe(
        PARALLEL, {}, weight="weight"
    ),
    "precomputed_vertex_out_weight with the id -1 (expected: as without it)": _Probe(
        _by_cugraph(NEGATIVE_ID, {"precomputed_vertex_out_weight": OUT_WEIGHTS}, weight="weight"),
        _by_prplugin(NEGATIVE_ID, weight="weight"),
    ),
    "precomputed_vertex_out_weight with the id 2 instead of -1": _Probe(
        _by_cugraph(
            NEGATIVE_ID.replace(-1, 2), {"precomputed_vertex_out_weight": OUT_WEIGHTS.replace(-1, 2)}, weight="weight"
        ),
        _by_prplugin(NEGATIVE_ID.replace(-1, 2), weight="weight"),
    ),
    "Iterations, error and dtype of an unweighted graph": _Probe(_columns, _iterations_and_error),
}
"""Probes by description of the experiment."""
