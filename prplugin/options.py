"""The options of one ranking, validated once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import InvalidOptionError
from prplugin.stopping import STOPS, Rule, Stop, rule_of
from prplugin.suggestions import close_name

Duplicates = Literal["sum", "first", "last", "error"]
Ids = Literal["auto", "integer", "string"]
Missing = Literal["error", "drop"]
Unknowns = Literal["error", "ignore"]
DUPLICATES = get_args(Duplicates)
FLOATS = {"d": "float64", "f": "float32"}
"""Types of ranks by NumPy type character."""

EXCLUDED_BY_SEED = frozenset(["seeds", "neighbors"])
"""Names in `exclude` of vertices that each ranking has of its own: those to which it teleports, and their targets."""


@dataclass(slots=True, eq=False, repr=False)
class EdgeOptions:
    """Options for reading the columns of a frame as edges; `directed` and `duplicates` are validated."""

    source: Hashable | list[Hashable] = None
    destination: Hashable | list[Hashable] = None
    weight: Hashable = None
    directed: bool = True
    vertices: object = None
    duplicates: Duplicates = "sum"
    missing: Missing = "error"
    time: Hashable = None
    half_life: object = None
    window: object = None
    now: object = None
    by: Hashable | list[Hashable] = None
    bipartite: bool = False
    workers: int | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("half_life", "window", "now") if getattr(self, name) is not None]
        if self.time is None and given:
            raise InvalidOptionError(f"{given[0]} is given without a column of times: name that column with time=.")
        if self.time is not None and self.half_life is None and self.window is None:
            raise InvalidOptionError("time= has no effect by itself: pass half_life=, window=, or both.")
        validate_bool("directed", self.directed)
        if validate_bool("bipartite", self.bipartite):
            why = "is not supported with bipartite=True"
            refuse({"by": self.by, "vertices": self.vertices}, why)
        check_choice("duplicates", self.duplicates, DUPLICATES)
        if self.workers is not None:
            self.workers = validate_int("workers", self.workers, least=1)
        if self.missing != "error":
            check_choice("missing", self.missing, get_args(Missing))

    @property
    def edge_list(self) -> bool:
        """Return whether the edges are needed in the order of the rows."""
        return not self.directed or self.duplicates != "sum" or self.half_life is not None or self.bipartite


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class FileOptions:
    """Options for reading a file of edges, as the user passed them; `prplugin.io.read_edges` validates them."""

    format: str | None = None
    ids: Ids = "auto"
    header: bool | None = None
    delimiter: str | None = None
    comment: str | None = None
    skip: int = 0
    null: str | Sequence[str] = ()

    def given(self) -> dict[str, object]:
        """Return the options that differ from their defaults."""
        given = {}
        for name, default in FILE_DEFAULTS.items():
            value = getattr(self, name)
            if value is not default and not (isinstance(value, str) and value == default):
                given[name] = value
        return given


class Unknown:
    """Vertices of arguments that the graph lacks: of which arguments they are ignored, and how many have been."""

    def __init__(self, unknown: str = "error") -> None:
        self._ignored = unknown == "ignore"
        self.counts: dict[str, int] = {}

    def ignores(self, what: str) -> bool:
        """Return whether they are ignored in an argument; those of `exclude` always are."""
        return self._ignored or what == "exclude"

    def found(self) -> tuple[tuple[str, int], ...]:
        """Return the number ignored, by argument."""
        return tuple(self.counts.items())


def excluded_by_seed(given: object) -> frozenset[str]:
    """Return the names in `exclude`, alone or in a list, of vertices that each ranking has of its own."""
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, (list, tuple, set, frozenset)):
        return frozenset()
    try:
        return EXCLUDED_BY_SEED.intersection(given)
    except TypeError:  # an entry without a hash
        return excluded_by_seed([each for each in given if isinstance(each, str)])


def refuse_all_but(allowed: tuple[str, ...], what: str, how: EdgeOptions) -> None:
    """Raise if options other than `allowed` are given for a graph or a matrix; they apply to frames only."""
    for argument in fields(EdgeOptions):
        given = getattr(how, argument.name)
        default = given is argument.default or (isinstance(given, str) and given == argument.default)
        if argument.name not in allowed and not default:
            raise InvalidOptionError(f"{argument.name}= applies to frames only, not to {what}: omit it.")


def refuse(arguments: Mapping[str, object], why: str) -> None:
    """Raise for the first argument that is not None."""
    for name, given in arguments.items():
        if given is not None:
            raise InvalidOptionError(f"{name}= {why}: omit it.")


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Options:
    """The options of a ranking, those given by vertex as the user passed them; raises InvalidOptionError."""

    alpha: float = 0.85
    personalization: object = None
    seeds: object = None
    among: Any = None
    exclude: object = None
    dangling: object = None
    nstart: object = None
    unknown: Unknowns = "error"
    tol: float = 1e-6
    max_iter: int | None = None
    stop: Stop = "error"
    scale: Literal[1, "n"] = 1
    dtype: str = "float64"
    method: str = "auto"
    top: int | None = None
    certified: bool = False
    method_options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.alpha = _real("alpha", self.alpha)
        if not 0 <= self.alpha < 1:
            raise InvalidOptionError(
                f"alpha must be at least 0 and less than 1, not {self.alpha!r}. The usual value is 0.85; "
                "at 1 nothing teleports, and PageRank need not be unique."
            )
        self.tol = _real("tol", self.tol)
        if not 0 <= self.tol < math.inf:
            raise InvalidOptionError(f"tol must be a finite number of at least 0, not {self.tol!r}.")
        if self.max_iter is not None:
            self.max_iter = validate_int("max_iter", self.max_iter, least=0)
        elif self.tol == 0:
            raise InvalidOptionError(
                "tol=0 never stops by itself: pass max_iter=k as well for the k-th power iterate, or a positive tol."
            )
        if self.top is not None:
            self.top = validate_int("top", self.top, least=1)
        check_choice("stop", self.stop, STOPS)
        if validate_bool("certified", self.certified):
            self._check_certified()
        if not isinstance(self.scale, (Integral, str)) or isinstance(self.scale, bool) or self.scale not in (1, "n"):
            raise InvalidOptionError(
                f"scale must be 1 (ranks sum to 1) or 'n' (they sum to the number of vertices), not {self.scale!r}."
            )
        self.dtype = _float_name(self.dtype)
        if not isinstance(self.method, str):
            raise InvalidOptionError(f"method must be a name such as 'auto', not {self.method!r}.")
        if self.personalization is not None and self.seeds is not None:
            raise InvalidOptionError(
                "personalization is one teleport distribution and seeds are many: pass one of the two."
            )
        if self.unknown != "error":
            check_choice("unknown", self.unknown, get_args(Unknowns))
        if self.exclude is not None and self.personalization is None and self.seeds is None:
            self._check_exclude()

    @property
    def rule(self) -> Rule:
        """The stopping rule."""
        return rule_of(self.stop, self.tol)

    def _check_exclude(self) -> None:
        if words := excluded_by_seed(self.exclude):
            name = min(words)
            what = "the vertices" if name == "seeds" else "the out-neighbours of those"
            raise InvalidOptionError(
                f"exclude={name!r} leaves out {what} to which a ranking teleports: pass personalization= or "
                "seeds=, or list the vertices to leave out."
            )

    def _check_certified(self) -> None:
        order = "certified=True proves the order of"
        if not self.rule.proves:
            raise InvalidOptionError(
                f"{order} the highest ranks: use stop='error' with a positive tol, at which it ends if the order "
                "cannot be proved."
            )
        if self.top is None and self.among is None:
            raise InvalidOptionError(
                f"{order} the highest ranks: pass their number as top=k, or the vertices to compare as among=."
            )
        if self.seeds is not None:
            raise InvalidOptionError(
                f"{order} one ranking, but seeds= requests several: rank each seed in a separate call, or omit "
                "certified."
            )

    def requested(self, ranks: NDArray[np.float64]) -> NDArray[np.floating]:
        """Return ranks of sum 1 in the requested scale and type."""
        return (ranks if self.scale == 1 else ranks * ranks.shape[-1]).astype(self.dtype, copy=False)


FILE_DEFAULTS = {field.name: field.default for field in fields(FileOptions)}

Record = TypeVar("Record", EdgeOptions, FileOptions, Options)


def of_arguments(record: type[Record], arguments: Mapping[str, Any]) -> Record:
    """Return the options of a record among the arguments of a public function, which have the names of its fields."""
    return record(**{name: arguments[name] for name in record.__slots__})


GRAPH_ARGUMENTS = tuple(field.name for record in (EdgeOptions, FileOptions) for field in fields(record))
RANK_ARGUMENTS = *(field.name for field in fields(Options)), "progress"
"""Arguments of `prplugin.Graph` and of its `rank`; `prplugin.pagerank` has both."""


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        close = close_name(value, choices) if isinstance(value, str) else None
        suggestion = f" Did you mean {close!r}?" if close else ""
        raise InvalidOptionError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.{suggestion}")


def _real(name: str, value: object) -> float:
    # float first: the check of an abstract class takes several times as long.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (float, Real)):
        raise InvalidOptionError(f"{name} must be a number, not {value!r}.")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # the stub of Real has no comparisons


def validate_bool(name: str, value: object) -> bool:
    """Return a Boolean option as bool; raise InvalidOptionError for other values."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidOptionError(f"{name} must be True or False, not {value!r}.")


def validate_int(name: str, value: object, *, least: int = 1, multiple_of: int = 1, at_most: int | None = None) -> int:
    """Return an integer option as int; raise InvalidOptionError for other values."""
    # int first: the check of an abstract class takes several times as long.
    if isinstance(value, (int, Integral)) and not isinstance(value, (bool, np.bool_)):
        number = int(value)
        if number >= least and number % multiple_of == 0 and (at_most is None or number <= at_most):
            return number
    kind = f"a whole number of at least {least}" if multiple_of == 1 else f"a positive multiple of {multiple_of}"
    limit = "" if at_most is None else f" and at most {at_most:,}"
    raise InvalidOptionError(f"{name} must be {kind}{limit}, not {value!r}.")


def _float_name(dtype: object) -> str:
    try:
        # numpy.dtype(None) is float64; "" is no type.
        return FLOATS[np.dtype("" if dtype is None else dtype).char]  # type: ignore[call-overload]
    except (TypeError, KeyError):
        raise InvalidOptionError(f"dtype must be 'float64' or 'float32', not {dtype!r}.") from None
