"""The methods: one module each, found by listing this folder. Modules whose names begin with _ serve several.

A method module has

- `name`: what users call it by;
- `runs_on`: "cpu" or "gpu"; "auto" chooses among those of the side where the edges lie;
- `unfit(adjacency, machine)`: why it cannot run here, or None; `adjacency` is None for "on any graph";
- `memory`: the bytes that a ranking holds per edge and per vertex; `unfit` goes by it;
- `cost(adjacency, machine)`: an estimate of seconds, by which "auto" chooses;
- `prepare(problem, machine, **options)`: a `Step`; its keyword-only arguments are the options of the method. Graph and
  vectors may lie on the other side: `Problem.on` and `Adjacency.on` bring them over;
- perhaps `varies = True`: the last bits of its ranks vary from run to run, and "auto" never chooses it;
- perhaps `batch(problem, machine, seeds, **options)`: a `BatchStep`, for rankings of many personalizations at once, and
  `batch_cost(adjacency, machine, seeds)`, an estimate of seconds for so many;
- perhaps `ahead(weighted)`: begins to compile, on other threads, what it will need, while the graph is made;

and a docstring whose first line says what it is. Adding a method touches no other file.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, Concatenate, Literal, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np

from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory
from prplugin.graph.problem import Problem, Seeds
from prplugin.machine import Machine
from prplugin.numerics.rounding import StepChain
from prplugin.options import Options, allows_float32
from prplugin.types.edges import Floats

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
    """

    steps: int
    goal: float = -1.0
    stall: float = math.inf


@runtime_checkable
class LaunchStep(GpuStep, Protocol):
    """A step that iterates many times in one launch, and by itself sees when to end it.

    Attributes
    ----------
    measured : list of Sums
        What each iteration of the last `advance` measured.
    lost : int
        Iterations of it that brought nothing: the contraction promises as much less.
    """

    measured: list[Sums]
    lost: int

    def until(self, ending: Ending) -> list[Sums]:
        """Iterate as `many` does, until a launch ends."""

    def advance(self, goal: float, budget: int) -> int:
        """Get nearer to the solution with Anderson mixing, by plain iterations in between and at the end.

        It ends after the first iteration that changes at most `goal`, in L1; after `budget` of them; or where roundings
        keep plain iterations from changing less and less. Return how many it took.
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
    memory: Memory
    cost: Callable[[Adjacency, Machine], float]
    prepare: Callable[Concatenate[Problem, Machine, ...], Step]


def begins_in_float32(step: Step, options: Options) -> TypeGuard[GpuStep]:
    """Say whether it does: where that is faster."""
    return isinstance(step, GpuStep) and step.narrow_pays and allows_float32(options)
