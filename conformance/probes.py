"""What cuGraph does where an answer would be wrong, or is silent on: small experiments, written down as they come out.

Each is a pair of functions of no arguments, cuGraph's side and prplugin's, that return a short text; an exception is an
answer, too. docs/semantics.md says what is to be expected, and tests/api/test_differences.py holds both sides to it.
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
"""0 points at 1 and 2, which point back."""

SINK = pd.DataFrame({"src": [0, 1], "dst": [1, 2]})
"""0 -> 1 -> 2, which dangles."""

HOLE = pd.DataFrame({"src": pd.array([0, None, 2], "Int64"), "dst": pd.array([1, 2, 0], "Int64")})

TWICE = pd.DataFrame({"src": [0, 0, 0, 1, 2], "dst": [1, 1, 2, 0, 0], "weight": [1.0, 3.0, 1.0, 1.0, 1.0]})
"""0 -> 1 of weight 1 and of weight 3, 0 -> 2 of weight 1."""


OUT_WEIGHTS = pd.DataFrame({"vertex": [-1, 0, 1], "sums": [1.0, 2.0, 2.0]})
"""Of `AROUND`."""

AROUND = pd.DataFrame({"src": [-1, 0, 0, 1, 1], "dst": [0, 1, -1, -1, 0], "weight": [1.0, 1.0, 1.0, 1.0, 1.0]})
"""0 points at 1 and -1, 1 at -1 and 0, -1 at 0."""


class Finding(NamedTuple):
    """What one side did, and what the other."""

    what: str
    cugraph: str
    prplugin: str


class _Probe(NamedTuple):
    cugraph: Callable[[], str]
    prplugin: Callable[[], str]


def findings() -> list[Finding]:
    """Run every probe; cuGraph's side says why not where it is absent."""
    reason = rapids.missing("cugraph")
    return [Finding(what, reason or _answer(probe.cugraph), _answer(probe.prplugin)) for what, probe in PROBES.items()]


def _answer(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except Exception as error:  # that is the answer
        text = (str(error).splitlines() or [""])[0]
        return f"{type(error).__name__}: {text[:90]}{'...' if len(text) > 90 else ''}".removesuffix(": ")


# --- the two sides ------------------------------------------------------------------------------------------------


def _theirs(frame: pd.DataFrame, options: dict[str, Any] | None = None, **graph: Any) -> Callable[[], str]:
    def ask() -> str:
        given = {name: rapids.as_cudf(value) for name, value in (options or {}).items()}
        with rapids.quietly():
            ranks = rapids.module("cugraph").pagerank(rapids.graph(frame, **graph), **given)
        return _spelled(ranks.to_pandas())

    return ask


def _ours(frame: pd.DataFrame, **arguments: Any) -> Callable[[], str]:
    return lambda: _spelled(prplugin.pagerank(frame, **arguments))


def _spelled(ranks: pd.DataFrame) -> str:
    """Write down ranks, their sum and their type: few vertices, so all of them."""
    column = ranks["pagerank"]
    by_vertex = ", ".join(f"{vertex}: {rank:.4g}" for vertex, rank in zip(ranks["vertex"], column, strict=True))
    return f"{by_vertex}; sum {column.astype(np.float64).sum():.4g}; {column.dtype}"


def _weighing(*weights: float) -> pd.DataFrame:
    return TRIANGLE.assign(weight=list(weights))


def _landing(values: dict[int, float]) -> pd.DataFrame:
    return pd.DataFrame({"vertex": list(values), "values": np.array(list(values.values()), np.float32)})


def _steps() -> str:
    ranking = prplugin.Graph(SINK).rank()
    return f"{ranking.iterations} iterations, error at most {ranking.error_bound:.1e}; {ranking.ranks.dtype}"


def _both(frame: pd.DataFrame, options: dict[str, Any], **graph: Any) -> _Probe:
    arguments = {name: value for name, value in graph.items() if name != "multi"}
    return _Probe(_theirs(frame, options, **graph), _ours(frame, **arguments, **options))


def _only_columns() -> str:
    with rapids.quietly():
        ranks = rapids.module("cugraph").pagerank(rapids.graph(SINK))
    return f"the columns {', '.join(map(str, ranks.columns))}, and no count; {ranks['pagerank'].dtype}"


PROBES: dict[str, _Probe] = {
    "A null among the ids": _both(HOLE, {}),
    "A negative weight": _both(_weighing(1.0, -0.25, 1.0, 1.0), {}, weight="weight"),
    "A NaN among the weights": _both(_weighing(1.0, math.nan, 1.0, 1.0), {}, weight="weight"),
    "Denormal weights 1e-310, 3e-310": _both(_weighing(1e-310, 3e-310, 1.0, 1.0), {}, weight="weight"),
    "Personalization of a vertex not in the graph": _both(SINK, {"personalization": _landing({0: 1, 9: 3})}),
    "dangling={1: 1} (without it: 0: 0.1844, 1: 0.3412, 2: 0.4744)": _both(SINK, {"dangling": {1: 1}}),
    "tol=0": _both(SINK, {"tol": 0.0}),
    "max_iter=0": _both(SINK, {"max_iter": 0}),
    "alpha=1": _both(SINK, {"alpha": 1.0}),
    "A pair with weights 1 and 3 (its sum: 0: 0.4865, 1: 0.3808, 2: 0.1327)": _both(TWICE, {}, weight="weight"),
    "precomputed_vertex_out_weight where an id is -1 (as without it)": _Probe(
        _theirs(AROUND, {"precomputed_vertex_out_weight": OUT_WEIGHTS}, weight="weight"),
        _ours(AROUND, weight="weight"),
    ),
    "The same with 2 for -1": _Probe(
        _theirs(AROUND.replace(-1, 2), {"precomputed_vertex_out_weight": OUT_WEIGHTS.replace(-1, 2)}, weight="weight"),
        _ours(AROUND.replace(-1, 2), weight="weight"),
    ),
    "Iterations, error and type of an unweighted graph": _Probe(_only_columns, _steps),
}
"""By what is asked."""
