"""Comparison of one case: rank with a method, and check the ranks against the equation and all references."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import prplugin
from conformance import rapids
from conformance.equation import EPS, Equation, Extended, equation, with_vectors
from conformance.forced import Forced
from conformance.options import STEPS, Choice
from conformance.references import Case, iterate, residual, solutions
from conformance.shapes import SHAPES
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = [
    "DTYPES",
    "LIBRARIES",
    "Result",
    "available",
    "compare",
    "library_for",
    "prepare",
    "required_tol",
]

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
"""Unit roundoff, the relative error of a cast, of each dtype of results."""

DTYPES = tuple(UNIT)

LIBRARIES = ("cudf", "pandas")
"""Libraries of the frames for GPU methods; CPU methods always get pandas frames."""


@dataclass(slots=True)
class Result:
    """Result of one method on one case.

    Attributes
    ----------
    library : str
        Library of the frame, its arguments and the result: "pandas" or "cudf".
    options : str
        Options of the method that are forced; empty for its defaults.
    outcome : str
        "ranked"; "refused" if the tolerance is below `required_tol`; "unavailable" if the method cannot rank the graph;
        "unsupported" if the library cannot represent the frame.
    tol, bound, error, residual : float
        Requested error bound, if any; `error_bound`; distance to the most exact reference; ||G x - x||.
    errors : dict
        Distance to each reference, and the error of the reference.
    failures : list of str
        A sentence per failure.
    note : str
        Reason of the outcome "unavailable" or "unsupported".
    """

    case: str
    method: str
    dtype: str
    library: str = "pandas"
    options: str = ""
    outcome: str = "ranked"
    iterations: int = 0
    tol: float | None = None
    bound: float | None = None
    error: float | None = None
    residual: float | None = None
    errors: dict[str, tuple[float, float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def name(self) -> str:
        """Return the name of the case in reports."""
        library = [] if self.library == "pandas" else [self.library]
        options = [f"[{self.options}]"] if self.options else []
        return "-".join([self.method, *options, *library, self.dtype, self.case])

    def expect(self, value: float, at_most: float, quantity: str) -> None:
        """Record a failure unless the value is at most the limit; NaN always fails."""
        if not value <= at_most:
            self.failures.append(f"{quantity}: {value:.3e} > {at_most:.3e}")


def available() -> dict[str, str | None]:
    """Return for every method the reason why it cannot run here, or None."""
    machine = this_machine()
    return {name: method.unavailable_reason(None, machine) for name, method in methods().items()}


def library_for(method: str, preferred: str = "cudf") -> str:
    """Return the library of the frames for a method: the preferred one if it is available, else pandas."""
    if methods()[method].runs_on == "gpu" and preferred == "cudf" and rapids.missing("cudf") is None:
        return "cudf"
    return "pandas"


# --- preparation --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def prepare(choice: Choice) -> Case:
    """Build the graph and the vectors of a choice, and solve its equation by every reference."""
    frame, columns = SHAPES[choice.shape]()
    graph = {**columns, "directed": choice.directed, "duplicates": choice.duplicates}
    uniform = equation(frame, **graph, alpha=choice.alpha)
    vectors = _vectors(choice, uniform.vertices)
    problem = with_vectors(uniform, **vectors)
    names = columns.get("source", ["vertex"])
    rank = {
        "alpha": choice.alpha,
        "personalization": _as_argument(vectors["personalization"], choice.personalization, names),
        "dangling": vectors["dangling"],
        "nstart": _as_argument(vectors["nstart"], choice.nstart, names),
        "scale": choice.scale,
        "top": choice.top,
        "tol": choice.tol,
        "stop": choice.stop,
    }
    if choice.stop == "iterate":
        rank |= {"tol": 0, "max_iter": STEPS, "stop": "delta"}  # takes STEPS iterations even if they stagnate
    return Case(str(choice), frame, graph, rank, problem, solutions(problem))


def _vectors(choice: Choice, vertices: list[Hashable]) -> dict[str, dict[Hashable, float] | None]:
    """Return values by vertex: one value, random values of all vertices, or values of some, including zeros."""
    n = len(vertices)
    rng = np.random.default_rng(n)
    random = dict(zip(vertices, rng.lognormal(size=n).tolist(), strict=True))
    kinds: dict[str | None, dict[Hashable, float] | None] = {
        None: None,
        "one": {vertices[n // 3]: 2},
        "random": random,
        "dict": {vertex: (index + 1) % 3 for index, vertex in enumerate(vertices[::2])},
        "vector": {vertex: 1 + index for index, vertex in enumerate(vertices[::3])},
    }
    return {name: kinds[getattr(choice, name)] for name in ("personalization", "dangling", "nstart")}


def _as_argument(vector: Mapping[Hashable, float] | None, kind: str | None, names: list[str]) -> Any:
    """Return values of one vertex as a frame, of all vertices as a Series, and of some vertices as a dict."""
    if vector is None or kind not in ("one", "random"):
        return vector
    if kind == "random":
        return pd.Series(list(vector.values()), index=pd.Index(list(vector)).set_names(names))
    rows = [vertex if isinstance(vertex, tuple) else (vertex,) for vertex in vector]
    return pd.DataFrame(rows, columns=names).assign(values=list(vector.values()))


# --- comparison ---------------------------------------------------------------------------------------------------


def compare(case: Case, method: str, dtype: str, library: str = "pandas", forced: Forced | None = None) -> Result:
    """Rank with a method, by its defaults or with forced options, and check the ranks x against the equation.

    With the exact x*, ||x - x*|| <= b = `error_bound` (all norms are L1) implies

    - ||x - s|| <= b + ||s - x*|| for a reference s;
    - ||G x - x|| <= ||G x - G x*|| + ||x* - x|| <= (1 + alpha) * b, as G contracts by alpha;
    - |sum x - 1| <= b, as x* sums to 1.
    """
    result = Result(case.name, method, dtype, library, "" if forced is None else forced.text)
    try:
        edges, graph, rank = _in_library(case, library)
    except rapids.UnsupportedFrameError as reason:
        result.outcome, result.note = "unsupported", str(reason)
        return result
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = {} if forced is None else forced.options(case, Path(folder))
            rank = rank | ((forced and forced.rule) or {})
            ranking = prplugin.Graph(edges, **graph).rank(**rank, method=method, dtype=dtype, **options)
        frame = ranking.frame
    except prplugin.MethodUnavailableError as reason:
        result.outcome, result.note = "unavailable", str(reason)
        return result
    except prplugin.InvalidOptionError as error:
        required = required_tol(case.equation, method, dtype, weighted="weight" in case.graph)
        below = str(error).startswith("tol=") and case.rank["stop"] == "error" and 0 < case.rank["tol"] < required
        if below or str(error).startswith("form= has"):  # or what the papers do not have: weights, teleports
            result.outcome = "refused"
        else:
            result.failures.append(f"refused: {error}")
        return result
    except Exception as error:  # every exception is a failure of this case; the next case still runs
        result.failures.append(f"raised {type(error).__name__}: {error}")
        return result
    result.iterations, result.bound = ranking.iterations, ranking.error_bound
    result.failures += _type_faults(case, edges, frame, ranking.ranks, dtype)
    ranks = rapids.on_host(ranking.ranks)
    x = np.asarray(ranks, np.longdouble) / (case.equation.n if case.rank["scale"] == "n" else 1)
    if not result.failures:
        result.failures += _frame_faults(case, rapids.on_host(frame), ranks)
    if not (np.isfinite(x).all() and (x >= 0).all()):
        result.failures.append("a rank is negative or not finite")
    if not ranking.converged and rank["tol"] > 0:
        result.failures.append("neither converged nor raised")
    _check_references(result, case, x)
    if forced is None or forced.rule is None:
        _check_stopping_rule(result, case, x)
    return result


def _in_library(case: Case, library: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return frame and arguments as objects of a library; dicts and lists stay as they are."""
    if library == "pandas":
        return case.frame, case.graph, case.rank
    graph, rank = ({key: rapids.as_cudf(value) for key, value in given.items()} for given in (case.graph, case.rank))
    return rapids.as_cudf(case.frame), graph, rank


def required_tol(equation: Equation, method: str, dtype: str, *, weighted: bool) -> float:
    """Return the smallest tolerance that a method has to prove; it may refuse smaller ones.

    A float32 vector has a relative error of up to a unit roundoff. A method that adds in any order (`nondeterministic`)
    has to prove the bound of plain loops: with d the largest in-degree, a rank has at most k = d + 10 roundings (with
    weights, also those of the sum over the out-edges of its source), noise = k * 2**-53, and `Certificate.provable` is
    5 * noise / (1 - alpha).
    """
    if not getattr(methods()[method], "nondeterministic", False):
        return UNIT[dtype]
    summed = [equation.target, *([equation.source] if weighted else [])]
    rounding_depth = 10 + sum(int(np.bincount(endpoints, minlength=1).max()) for endpoints in summed)
    return UNIT[dtype] + 5 * rounding_depth * 2.0**-53 / (1 - equation.alpha)


def _check_references(result: Result, case: Case, x: Extended) -> None:
    """Check the error bound."""
    assert result.bound is not None
    measured = residual(case.equation, x)
    summation_error = float(case.equation.n * EPS * (1 + np.abs(x).sum()))
    result.residual = measured.norm
    result.expect(measured.norm, (1 + case.equation.alpha) * result.bound + measured.rounding, "residual")
    result.expect(abs(float(x.sum() - 1)), result.bound + summation_error, "|sum - 1|")
    for name, solution in case.solutions.items():
        if isinstance(solution, str):
            continue
        error = _distance(x, solution.ranks)
        result.errors[name] = (error, solution.error)
        result.expect(error, result.bound + solution.error + summation_error, f"distance to {name}")
    if result.errors:
        result.error = min(result.errors.values(), key=lambda pair: pair[1])[0]
    if case.published is not None:
        excess = np.abs(x - case.published.ranks) - case.published.tolerance
        result.expect(float(excess.max()), 0.0, "distance to a published value, less its tolerance")


def _check_stopping_rule(result: Result, case: Case, x: Extended) -> None:
    """Check the stopping rule: a step's L1 change of at most t leaves a residual of at most alpha * t."""
    assert result.bound is not None
    tol, stop, n = case.rank["tol"], case.rank["stop"], case.equation.n
    cast = 2 * UNIT[result.dtype]  # of the result and of its scaling
    if tol == 0:
        steps = case.rank["max_iter"]
        expected = iterate(case.equation, steps)
        result.expect(_distance(x, expected.ranks), expected.error + cast, f"distance to iterate {steps}")
        result.expect(abs(result.iterations - steps), 0, "difference from max_iter")
    elif stop == "error":
        result.tol = tol
        result.expect(result.bound, tol, "error_bound")
    else:
        change = tol if stop == "delta" else n * tol
        rounding = case.equation.rounding_depth * 2.0**-52 + (1 + case.equation.alpha) * cast
        result.expect(result.residual or 0.0, case.equation.alpha * change + rounding, f"residual after stop={stop!r}")


def _distance(x: Extended, y: Iterable[float]) -> float:
    return float(np.abs(x - np.asarray(y, np.longdouble)).sum())


def _type_faults(case: Case, edges: Any, frame: Any, ranks: Any, dtype: str) -> list[str]:
    """Check the names, dtypes and memory space of the columns, before they are copied to the host."""
    names = case.graph.get("source", ["vertex"])
    if list(frame.columns) != [*names, "pagerank"]:
        return [f"columns {list(frame.columns)}"]
    faults = []
    if type(frame) is not type(edges):
        faults.append(f"a {type(frame).__module__}.{type(frame).__qualname__} from a {type(edges).__module__} frame")
    if (type(edges).__module__.split(".")[0] == "cudf") != (type(ranks).__module__.split(".")[0] == "cupy"):
        faults.append(f"ranks in a {type(ranks).__module__}.{type(ranks).__qualname__}")
    if {str(frame["pagerank"].dtype), str(ranks.dtype)} != {dtype}:
        faults.append(f"dtype {frame['pagerank'].dtype} in the frame, {ranks.dtype} in the ranking")
    for given, name in zip(case.graph.get("source", ["src"]), names, strict=True):
        if frame[name].dtype != edges[given].dtype:
            faults.append(f"column {name!r} of type {frame[name].dtype} from ids of type {edges[given].dtype}")
    return faults


def _frame_faults(case: Case, frame: pd.DataFrame, ranks: np.ndarray) -> list[str]:
    """Check the values of the columns and their order, on the host."""
    faults = []
    names = list(frame.columns)[:-1]
    rows = np.arange(case.equation.n)
    if case.rank["top"] is not None:
        rows = np.argsort(-ranks, kind="stable")[: case.rank["top"]]
    columns = [frame[name].tolist() for name in names]
    vertices = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    if vertices != [case.equation.vertices[row] for row in rows.tolist()]:
        faults.append("vertices are not in the order of the result")
    if not np.array_equal(frame["pagerank"].to_numpy(), ranks[rows]):
        faults.append("ranks of the frame differ from those of the ranking")
    return faults
