"""The methods: one module each, found by listing this folder. Modules whose names begin with _ serve several.

A method module has

- `name`: what users call it by;
- `runs_on`: "cpu" or "gpu"; "auto" chooses among those of the side where the edges lie;
- `unfit(adjacency, machine)`: why it cannot run here, or None; `adjacency` is None for "on any graph";
- `footprint(counts, machine)`: the bytes that a ranking holds, of what only numbers are known; `unfit` goes by it;
- `cost(adjacency, machine)`: an estimate of seconds, by which "auto" chooses;
- `prepare(problem, machine, **options)`: a `Step`; its keyword-only arguments are the options of the method. Graph and
  vectors may lie on the other side: `Problem.on` and `Adjacency.on` bring them over;
- perhaps `varies = True`: the last bits of its ranks vary from run to run, and "auto" never chooses it;
- perhaps `leaping_footprint(counts, machine)`: the bytes where many steps are left, and it leaps ahead;
- perhaps `batch(problem, machine, seeds, **options)`: a `BatchStep`, for rankings of many personalizations at once, and
  `batch_cost(adjacency, machine, seeds)`, an estimate of seconds for so many;
- perhaps `ahead(weighted)`: begins to compile, on other threads, what it will need, while the graph is made;

and a docstring whose first line says what it is. Adding a method touches no other file.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from heapq import heapify, heappop, heappush
from typing import Any, Concatenate, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from prplugin import cuda
from prplugin.certificate import StepChain
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.edges import Floats
from prplugin.graph.footprint import Counts, Footprint
from prplugin.machine import Machine
from prplugin.problem import Problem, Seeds

__all__ = [
    "BatchEnding",
    "BatchState",
    "BatchStep",
    "Ending",
    "ForesightBatch",
    "ForesightStep",
    "GpuStep",
    "LaunchStep",
    "Method",
    "NarrowingBatch",
    "SpreadStep",
    "Step",
    "Sums",
    "candidates",
    "check_options",
    "choose",
    "choose_batch",
    "compile_ahead",
    "contenders",
    "methods",
    "options_of",
]

logger = logging.getLogger(__name__)

SIDE = {"host": "cpu", "device": "gpu"}
"""What runs on edges that lie where they lie."""


class Sums(NamedTuple):
    """What a step from x to y measured.

    Attributes
    ----------
    change : float
        ||y - x||, in L1.
    largest : float
        The greatest |y_i - x_i|.
    """

    change: float
    largest: float


class Step(Protocol):
    """One iteration, again and again: holds the current ranks, and D of them, where the method wants them."""

    chain: StepChain

    def start(self, ranks: Floats | float) -> None:
        """Take x_0, from either side, or one number that stands for all of its entries; it is not altered."""

    def __call__(self) -> Sums:
        """Replace the ranks x by G x."""

    def ranks(self) -> Floats:
        """Give the current ranks, in the order of the result; the next step may overwrite them."""


@runtime_checkable
class SpreadStep(Step, Protocol):
    """A step of which each of several processes has a part: its ranks are those of its rows, its sums those of all.

    All of them take the same steps, in the same order, and decide alike, since they see the same numbers.
    """

    def add(self, values: Any) -> Any:
        """Add up what all processes bring, a number or an array each: the same bits in all of them."""

    def of_first(self, value: Any) -> Any:
        """Give all processes what the first of them brings."""


@runtime_checkable
class ForesightStep(Step, Protocol):
    """A step that can find where steps like its last one lead to, for less than they cost."""

    def foresee(self) -> float:
        """Keep what it takes, from the next step on; give the number of steps left from which a first look is worth it.

        That is infinite where it cannot look ahead at all.
        """

    def foreseen(self, goal: float, limit: int) -> tuple[Floats, int]:
        """Give ranks of sum 1 from which a step changes `goal`, about, and how many passes over the edges they took.

        Parameters
        ----------
        limit : int
            The most passes.
        """


@runtime_checkable
class GpuStep(Step, Protocol):
    """A step that can be given several iterations at once, and can hold contributions in less precision.

    Attributes
    ----------
    at_once : int
        How many iterations it takes at once, at most. 1 where taking them again would not give the same bits.
    narrow_pays : bool
        Whether it is faster with contributions in float32.
    """

    at_once: int
    narrow_pays: bool

    def many(self, count: int) -> list[Sums]:
        """Iterate `count` times, at most `at_once`, and only then wait for what each measured."""

    def rewind(self, count: int) -> None:
        """Go back to before the last `many`, and take only `count` of its iterations again."""

    def contribute_in(self, dtype: str) -> None:
        """Hold contributions in "float64", as at first, or in "float32", from the next `start` on; `chain` follows."""


class Ending(NamedTuple):
    """When a launch of many steps ends.

    Attributes
    ----------
    steps : int
        After so many, at the latest.
    goal : float
        After a step that changes no more, in L1. Below 0: none.
    stall : float
        After a step that changes at least so many times what the one before it did.
    look, many : int, float
        After `look` steps, if at their pace the goal is more than `many` steps away. 0: not so.
    """

    steps: int
    goal: float = -1.0
    stall: float = math.inf
    look: int = 0
    many: float = math.inf


@runtime_checkable
class LaunchStep(GpuStep, Protocol):
    """A step that iterates many times in one launch, and by itself sees when to end it."""

    def until(self, ending: Ending) -> list[Sums]:
        """Iterate as `many` does, until a launch ends."""

    def record(self, moves: Any) -> None:
        """Write what each of the next steps changes to the rows of `moves`, k x n float32; or no more, from `start` on.

        No launch may take more steps than there are rows left.
        """


class BatchEnding(NamedTuple):
    """When a column of a batch ends.

    Attributes
    ----------
    goal : float
        After a step that changes no more, in L1. Below 0: none.
    stall : float
        After a step that changes at least so many times what the one before it did.
    by_largest : bool
        Whether `goal` is for the greatest |y_i - x_i| instead.
    """

    goal: float
    stall: float = math.inf
    by_largest: bool = False


class BatchState(NamedTuple):
    """What the columns of a batch have come to since they were begun.

    Attributes
    ----------
    steps : array of int64
        How many each has taken.
    before, change, largest : arrays of float64
        ||y - x|| of the step before the last, infinite if there was none; and of the last ||y - x|| and the greatest
        |y_i - x_i|.
    """

    steps: Any
    before: Floats
    change: Floats
    largest: Floats

    @classmethod
    def of(cls, width: int) -> BatchState:
        """Give that of as many columns that are to begin."""
        return cls(np.zeros(width, np.int64), *(np.full(width, math.inf) for _ in range(3)))

    def add(self, live: Any, change: Floats, largest: Floats) -> None:
        """Note a step of the columns that are live."""
        self.steps[live] += 1
        self.before[live] = self.change[live]
        self.change[live] = change[live]
        self.largest[live] = largest[live]

    def ended(self, ending: BatchEnding) -> Any:
        """Say of each column whether its last step was to be the last."""
        value = self.largest if ending.by_largest else self.change
        with np.errstate(invalid="ignore"):  # infinitely many times 0
            return (value <= ending.goal) | (self.change >= ending.stall * self.before)

    def first(self, count: int) -> BatchState:
        """Copy that of the first so many columns."""
        return BatchState(*(array[:count].copy() for array in self))


class BatchStep(Protocol):
    """Iterations of several seeds side by side: the ranks of each are a column of a matrix.

    What a column comes to depends on no other column: it stays what it is once it has ended, while others go on.

    Attributes
    ----------
    width : int
        How many seeds it takes at once, at most.
    """

    chain: StepChain
    width: int

    def start(self, seeds: Seeds, ranks: Floats | float | None) -> None:
        """Begin with these seeds, `width` at most, all from the same ranks; None: each from its personalization."""

    def until(self, count: int, ending: BatchEnding) -> BatchState:
        """Iterate `count` times; each seed until it ends."""

    def ranks(self) -> Floats:
        """Give the ranks as a matrix with a row for each seed, in the order of the result; `start` may overwrite them.

        No step can follow before that.
        """


@runtime_checkable
class NarrowingBatch(BatchStep, Protocol):
    """A batch that is faster with contributions in float32."""

    def contribute_in(self, dtype: str) -> None:
        """Hold contributions in "float64", as at first, or in "float32", from the next beginning; `chain` follows."""

    def resume(self, columns: Any) -> None:
        """Begin anew with those seeds for which this is True, from their ranks, divided by their sums."""


@runtime_checkable
class ForesightBatch(BatchStep, Protocol):
    """A batch that can find where steps like its last one lead to, for less than they cost, as `ForesightStep`."""

    def foresees(self) -> bool:
        """Get ready to look ahead, before `start`; say whether it can on this graph."""

    def leap(self, columns: Any, goal: float, limit: int) -> Any:
        """Go to ranks from which a step changes `goal`, about, with those seeds for which `columns` is True.

        It is from where the last step led, or before the first from any start. Only these seeds are live after that.
        Give how many passes over the edges it took for each: less than `limit`, unless it got no further.
        """


class Method(Protocol):
    """The shape of a method's module."""

    name: str
    runs_on: Literal["cpu", "gpu"]
    unfit: Callable[[Adjacency | None, Machine], str | None]
    footprint: Callable[[Counts, Machine], Footprint]
    cost: Callable[[Adjacency, Machine], float]
    prepare: Callable[Concatenate[Problem, Machine, ...], Step]


@cache
def methods() -> Mapping[str, Any]:
    """Give every method by name: the modules of this folder."""
    modules = [
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
        if not info.name.startswith("_")
    ]
    return {module.name: module for module in sorted(modules, key=lambda module: str(module.name))}


def compile_ahead(weighted: bool) -> None:
    """Let the methods of the GPU begin to compile what most graphs need."""
    for method in methods().values():
        if hasattr(method, "ahead"):
            method.ahead(weighted)


def check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Raise InvalidOptionError if an option is not one of the method's."""
    known = options_of(method)
    for name in options:
        if name not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options of its own"
            raise InvalidOptionError(f"{name!r} is not an argument of pagerank, and method {method.name!r} {takes}.")


def options_of(method: Method) -> tuple[str, ...]:
    """Name the options of a method."""
    return _keywords_of(method.prepare)


@cache
def _keywords_of(prepare: Callable[..., Step]) -> tuple[str, ...]:
    return tuple(p.name for p in inspect.signature(prepare).parameters.values() if p.kind is p.KEYWORD_ONLY)


def choose(name: str, adjacency: Adjacency, machine: Machine, options: Mapping[str, Any]) -> Method:
    """Find the method of that name, or with "auto" the one of least cost among the fit that take these options.

    Raises
    ------
    InvalidOptionError
        If there is no method of that name, or the options are not its.
    MethodUnavailableError
        If the named method cannot run here, with the reason; a named method is never replaced by another.
    """
    if name != "auto":
        if name not in methods():
            raise InvalidOptionError(
                f"method must be 'auto', 'measured' or one of {', '.join(map(repr, methods()))}, not {name!r}."
            )
        method: Method = methods()[name]
        if reason := method.unfit(adjacency, machine):
            raise MethodUnavailableError(f"method {name!r} cannot run here: {reason}")
        check_options(method, options)
        return method
    able = contenders(adjacency, machine, options)
    chosen = next(able)
    if logger.isEnabledFor(logging.INFO):
        logger.info(
            "%s for %d vertices and %d edges: %s",
            chosen.name, adjacency.n, adjacency.m,
            ", ".join(f"{method.name} {method.cost(adjacency, machine):.2g} s" for method in (chosen, *able)),
        )  # fmt: skip
    return chosen


def contenders(adjacency: Adjacency, machine: Machine, options: Mapping[str, Any]) -> Iterator[Method]:
    """Give the methods that "auto" may choose, fit to run and taking these options, by rising cost; one at least.

    Raises
    ------
    InvalidOptionError
        If none takes the options.
    MethodUnavailableError
        If none can run here, with the reason of each.
    """
    for option in options:
        if not any(option in options_of(method) for method in methods().values()):
            raise InvalidOptionError(f"{option!r} is neither an argument of pagerank nor an option of any method.")
    able = [method for method in candidates(adjacency).values() if set(options) <= set(options_of(method))]
    if not able:
        raise InvalidOptionError(
            f'no method that "auto" may choose for this frame takes all of {", ".join(map(repr, options))}: '
            "name the method."
        )
    reasons: dict[str, str] = {}
    for method in _by_cost(able, adjacency, machine):
        # Asked of no more than are wanted: it looks at the GPU.
        if reason := method.unfit(adjacency, machine):
            reasons[method.name] = reason
        else:
            yield method
    if len(reasons) == len(able):
        raise MethodUnavailableError(
            "no method can run here: " + "; ".join(f"{method.name}: {reasons[method.name]}" for method in able)
        )


def choose_batch(name: str, adjacency: Adjacency, machine: Machine, options: Mapping[str, Any], seeds: int) -> Any:
    """Find the method of that name, or with "auto" the one of least cost, that ranks many seeds at once.

    Raises
    ------
    InvalidOptionError
        If there is no method of that name, or none takes the options; "measured" times one seed at a time.
    MethodUnavailableError
        If the method cannot run here, or ranks one seed at a time.
    """
    able = {known: method for known, method in methods().items() if hasattr(method, "batch")}
    if name == "measured":
        raise InvalidOptionError(
            "method='measured' times rankings of one personalization. For many at once name a method, "
            f"{', '.join(map(repr, able))}, or leave it to 'auto'."
        )
    if name != "auto":
        method = choose(name, adjacency, machine, options)
        if name not in able:
            raise MethodUnavailableError(
                f"method {name!r} ranks one personalization at a time. Call it for each, or name one that ranks many "
                f"at once: {', '.join(map(repr, able))}."
            )
        return method
    ours = [method for method in candidates(adjacency).values() if method.name in able]
    ours = [method for method in ours if set(options) <= set(options_of(method))]
    if not ours:
        raise InvalidOptionError(
            f"no method that ranks many personalizations at once takes {', '.join(map(repr, options))}: "
            f"there are {', '.join(map(repr, able))}."
        )
    chosen: Any = min(ours, key=lambda method: able[method.name].batch_cost(adjacency, machine, seeds))
    if reason := chosen.unfit(adjacency, machine):
        raise MethodUnavailableError(f"method {chosen.name!r} cannot run here: {reason}")
    return chosen


class _ShortRows:
    """A graph with rows as short as they can be: the longest takes a pass over the edges to find."""

    def __init__(self, adjacency: Adjacency) -> None:
        self._adjacency = adjacency
        self.largest_in_degree = -(-adjacency.m // max(1, adjacency.n))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adjacency, name)


def _by_cost(able: list[Method], adjacency: Adjacency, machine: Machine) -> Iterator[Method]:
    """Give methods by rising cost. None costs less for a longer row, so it is looked for only where it may decide."""
    short: Any = _ShortRows(adjacency)
    queue = [(method.cost(short, machine), False, place) for place, method in enumerate(able)]
    heapify(queue)
    while queue:
        _, exact, place = heappop(queue)
        if exact:
            yield able[place]
        else:
            heappush(queue, (able[place].cost(adjacency, machine), True, place))


def candidates(adjacency: Adjacency) -> Mapping[str, Method]:
    """Give the methods that "auto" chooses among: of the side where the frame lies, and the same bits in every run.

    Where the user has set a budget of a GPU's memory, and there is a GPU, frames of the host are for the GPU, too.
    """
    side = SIDE[adjacency.place]
    if side == "cpu" and (adjacency.spilled or (cuda.budget() is not None and cuda.missing() is None)):
        side = "gpu"
    return {
        name: method
        for name, method in methods().items()
        if method.runs_on == side and not getattr(method, "varies", False)
    }
