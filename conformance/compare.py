"""One case to one result: rank with a method, and hold the ranks against everything that is known about them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import prplugin
from conformance import rapids
from conformance.equation import EPS, Equation, Extended, equation, with_vectors
from conformance.options import STEPS, Choice
from conformance.references import Solution, iterate, residual, solutions
from conformance.shapes import SHAPES
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = [
    "DTYPES",
    "LIBRARIES",
    "Case",
    "Published",
    "Result",
    "available",
    "compare",
    "library_for",
    "owed",
    "prepare",
]

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
"""What a cast of the result may change, relatively."""

DTYPES = tuple(UNIT)

LIBRARIES = ("cudf", "pandas")
"""Of the frames that a method on the GPU gets; one on the processor gets those of pandas."""


class Published(NamedTuple):
    """Values from outside, in the order of the vertices, and how far from each a rank may be."""

    ranks: np.ndarray
    tolerance: np.ndarray


@dataclass(frozen=True, eq=False)
class Case:
    """A graph and options, what they mean, and what is known of the ranks.

    Attributes
    ----------
    name : str
    frame : DataFrame
    graph, rank : dict
        Arguments of `prplugin.Graph`, and of its `rank`.
    equation : Equation
    solutions : dict
        By reference; a sentence where it has none.
    published : Published, optional
    """

    name: str
    frame: pd.DataFrame
    graph: dict[str, Any]
    rank: dict[str, Any]
    equation: Equation
    solutions: dict[str, Solution | str]
    published: Published | None = None


@dataclass(slots=True)
class Result:
    """How one method did on one case.

    Attributes
    ----------
    library : str
        Of the frame, its arguments and the result: "pandas" or "cudf".
    outcome : str
        "ranked"; "refused", where no float32 vector need be as exact as asked, or no sum in the order of arrival;
        "unavailable", where the method says so; "no form", where the library has none for the frame.
    tol, bound, error, residual : float
        What the error was to stay below, if it was; `error_bound`; the distance to the most exact reference;
        ||G x - x||.
    errors : dict
        By reference: the distance to it, and the reference's own error.
    failures : list of str
        A sentence each; none where all is well.
    note : str
        Why the method is unavailable, or there is no form.
    """

    case: str
    method: str
    dtype: str
    library: str = "pandas"
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
        """What the case is called in a report."""
        return "-".join([self.method, *([] if self.library == "pandas" else [self.library]), self.dtype, self.case])

    def expect(self, value: float, at_most: float, what: str) -> None:
        """Note a failure unless the value is within the limit; NaN never is."""
        if not value <= at_most:
            self.failures.append(f"{what}: {value:.3e} > {at_most:.3e}")


def available() -> dict[str, str | None]:
    """Name every method, with the reason why it cannot run here or None."""
    machine = this_machine()
    return {name: method.unavailable_reason(None, machine) for name, method in methods().items()}


def library_for(method: str, wanted: str = "cudf") -> str:
    """Return the library of the frames that a method gets here: the one wanted where it can have it, else pandas."""
    if methods()[method].runs_on == "gpu" and wanted == "cudf" and rapids.missing("cudf") is None:
        return "cudf"
    return "pandas"


# --- preparing ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def prepare(choice: Choice) -> Case:
    """Make the graph and the vectors of a choice, and solve its equation by every reference."""
    frame, columns = SHAPES[choice.shape]()
    graph = {**columns, "directed": choice.directed, "duplicates": choice.duplicates}
    bare = equation(frame, **graph, alpha=choice.alpha)
    vectors = _vectors(choice, bare.vertices)
    meaning = with_vectors(bare, **vectors)
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
        rank |= {"tol": 0, "max_iter": STEPS, "stop": "delta"}  # also of an iteration that stands still before
    return Case(str(choice), frame, graph, rank, meaning, solutions(meaning))


def _vectors(choice: Choice, vertices: list[Hashable]) -> dict[str, dict[Hashable, float] | None]:
    """Return values by vertex: one of them, all at random, or every other one with zeros among them."""
    n = len(vertices)
    rng = np.random.default_rng(n)
    random = dict(zip(vertices, rng.lognormal(size=n).tolist(), strict=True))
    kinds: dict[str | None, dict[Hashable, float] | None] = {
        None: None,
        "one": {vertices[n // 3]: 2},
        "random": random,
        "dict": {vertex: (place + 1) % 3 for place, vertex in enumerate(vertices[::2])},
        "vector": {vertex: 1 + place for place, vertex in enumerate(vertices[::3])},
    }
    return {name: kinds[getattr(choice, name)] for name in ("personalization", "dangling", "nstart")}


def _as_argument(vector: Mapping[Hashable, float] | None, kind: str | None, names: list[str]) -> Any:
    """Pass one vertex as a frame, all as a Series and some as a dict: prplugin takes each."""
    if vector is None or kind not in ("one", "random"):
        return vector
    if kind == "random":
        return pd.Series(list(vector.values()), index=pd.Index(list(vector)))
    rows = [vertex if isinstance(vertex, tuple) else (vertex,) for vertex in vector]
    return pd.DataFrame(rows, columns=names).assign(values=list(vector.values()))


# --- comparing ----------------------------------------------------------------------------------------------------


def compare(case: Case, method: str, dtype: str, library: str = "pandas") -> Result:
    """Rank with a method and hold the ranks x against the mathematics.

    With the exact x*, ||x - x*|| <= b = `error_bound` (all norms are L1) implies

    - ||x - s|| <= b + ||s - x*|| for a reference s;
    - ||G x - x|| <= ||G x - G x*|| + ||x* - x|| <= (1 + alpha) * b, as G contracts by alpha;
    - |sum x - 1| <= b, as x* sums to 1.
    """
    result = Result(case.name, method, dtype, library)
    try:
        edges, graph, rank = _posed(case, library)
    except rapids.NoFormError as reason:
        result.outcome, result.note = "no form", str(reason)
        return result
    try:
        ranking = prplugin.Graph(edges, **graph).rank(**rank, method=method, dtype=dtype)
        frame = ranking.frame
    except prplugin.MethodUnavailableError as reason:
        result.outcome, result.note = "unavailable", str(reason)
        return result
    except prplugin.InvalidOptionError as error:
        least = owed(case.equation, method, dtype, weighted="weight" in case.graph)
        if str(error).startswith("tol=") and case.rank["stop"] == "error" and 0 < case.rank["tol"] < least:
            result.outcome = "refused"
        else:
            result.failures.append(f"refused: {error}")
        return result
    except Exception as error:  # whatever is raised is a failure of this case, and the next one runs
        result.failures.append(f"raised {type(error).__name__}: {error}")
        return result
    result.iterations, result.bound = ranking.iterations, ranking.error_bound
    result.failures += _faults_of_types(case, edges, frame, ranking.ranks, dtype)
    ranks = rapids.on_host(ranking.ranks)
    x = np.asarray(ranks, np.longdouble) / (case.equation.n if case.rank["scale"] == "n" else 1)
    if not result.failures:
        result.failures += _faults_of_frame(case, rapids.on_host(frame), ranks)
    if not (np.isfinite(x).all() and (x >= 0).all()):
        result.failures.append("a rank is negative or not finite")
    if not ranking.converged and case.rank["tol"] > 0:
        result.failures.append("neither converged nor raised")
    _hold_against_references(result, case, x)
    _hold_against_stop(result, case, x)
    return result


def _posed(case: Case, library: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return frame and arguments in the form of a library; what is a dict or a list stays one."""
    if library == "pandas":
        return case.frame, case.graph, case.rank
    graph, rank = ({key: rapids.as_cudf(value) for key, value in given.items()} for given in (case.graph, case.rank))
    return rapids.as_cudf(case.frame), graph, rank


def owed(equation: Equation, method: str, dtype: str, *, weighted: bool) -> float:
    """Return the tolerance from which a method has to prove, rather than refuse.

    No float32 vector need be within a unit roundoff. And a method whose additions come in any order
    (`nondeterministic`) owes no more than plain loops prove: with d the largest in-degree, a rank comes out of at most
    k = d + 10 roundings (where edges have weights, also of those in the sum over its source's out-edges), noise = k *
    2**-53, and
    `Certificate.provable` is 5 * noise / (1 - alpha).
    """
    if not getattr(methods()[method], "nondeterministic", False):
        return UNIT[dtype]
    summed = [equation.target, *([equation.source] if weighted else [])]
    rounding_depth = 10 + sum(int(np.bincount(endpoints, minlength=1).max()) for endpoints in summed)
    return UNIT[dtype] + 5 * rounding_depth * 2.0**-53 / (1 - equation.alpha)


def _hold_against_references(result: Result, case: Case, x: Extended) -> None:
    """Check the error bound."""
    assert result.bound is not None
    measured = residual(case.equation, x)
    adding = float(case.equation.n * EPS * (1 + np.abs(x).sum()))
    result.residual = measured.norm
    result.expect(measured.norm, (1 + case.equation.alpha) * result.bound + measured.rounding, "residual")
    result.expect(abs(float(x.sum() - 1)), result.bound + adding, "|sum - 1|")
    for name, solution in case.solutions.items():
        if isinstance(solution, str):
            continue
        error = _distance(x, solution.ranks)
        result.errors[name] = (error, solution.error)
        result.expect(error, result.bound + solution.error + adding, f"distance to {name}")
    if result.errors:
        result.error = min(result.errors.values(), key=lambda pair: pair[1])[0]
    if case.published is not None:
        excess = np.abs(x - case.published.ranks) - case.published.tolerance
        result.expect(float(excess.max()), 0.0, "distance to a published value, less its tolerance")


def _hold_against_stop(result: Result, case: Case, x: Extended) -> None:
    """Check the stopping rule: a step's L1 change of at most t leaves a residual of at most alpha * t."""
    assert result.bound is not None
    tol, stop, n = case.rank["tol"], case.rank["stop"], case.equation.n
    cast = 2 * UNIT[result.dtype]  # of the result, and of its scaling
    if tol == 0:
        steps = case.rank["max_iter"]
        expected = iterate(case.equation, steps)
        result.expect(_distance(x, expected.ranks), expected.error + cast, f"distance to iterate {steps}")
        result.expect(abs(result.iterations - steps), 0, "iterations too many or too few")
    elif stop == "error":
        result.tol = tol
        result.expect(result.bound, tol, "error_bound above tol")
    else:
        change = tol if stop == "delta" else n * tol
        rounding = case.equation.rounding_depth * 2.0**-52 + (1 + case.equation.alpha) * cast
        result.expect(result.residual or 0.0, case.equation.alpha * change + rounding, f"residual after stop={stop!r}")


def _distance(x: Extended, y: Iterable[float]) -> float:
    return float(np.abs(x - np.asarray(y, np.longdouble)).sum())


def _faults_of_types(case: Case, edges: Any, frame: Any, ranks: Any, dtype: str) -> list[str]:
    """Check the columns and what each is made of, while they lie where the method left them."""
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


def _faults_of_frame(case: Case, frame: pd.DataFrame, ranks: np.ndarray) -> list[str]:
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
        faults.append("the frame's ranks are not the ranking's")
    return faults
