"""Interfaces of methods.

Every module of this package and of `prplugin.papers` that declares `runs_on` is a method, with the attributes of
`Method`. The table `prplugin.methods.registry.BUILT_IN` lists them; entry points of the group "prplugin.methods" are
methods of other distributions. Modules that begin with _ are shared by several methods.

The types in the signatures of a method can be imported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from prplugin.graph.edges import Edges, Problem
from prplugin.graph.memory import Counts, Made, Memory, Rate
from prplugin.graph.teleports import Seeds
from prplugin.machine import Machine
from prplugin.numerics import StepRounding
from prplugin.stopping import Norm, Verdict
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats, Integers

__all__ = [
    "Array", "Edges", "Floats", "Integers", "Machine", "Made", "Memory", "Method", "Problem", "Rate", "Seeds",
    "SeedsStep", "Step", "StepRounding", "Sums",
]  # fmt: skip


Passes: TypeAlias = int | Integers
"""Number of edge passes, or for many seeds an array with an entry per seed."""

Sum = TypeVar("Sum", bound=float | Array)


class Sums(NamedTuple):
    """Norms of y - x, measured by a step from x to y: numbers, or for many seeds arrays with one entry per seed."""

    change: Norm  # ||y - x||, in L1
    largest: Norm  # max |y_i - x_i|
    earlier: Sequence[float] = ()  # the changes of steps before, made by the same call of `Step.advance`


class Step(Protocol):
    """State of the iteration: holds the current ranks and their dangling mass; each call applies G once.

    If the ranks are distributed over several processes, each holds the ranks of its own rows. All processes take the
    same steps in the same order, and get the same sums.
    """

    rounding: StepRounding  # of the next step
    float32_is_faster: bool = False  # whether float32 contributions make a step faster
    least_float32_goal: float = 0.0  # as in `Rule.goal_in_float32`: near 1 if they do so by little
    every_pass: bool = False  # whether `advance` ends after each pass if it can, since somebody watches
    free_start: bool = False  # whether `start` may replace equal ranks by others of sum 1 that are nearer to the result
    seeds: int | None = None  # number of columns of the ranks; None for a vector
    notes: tuple[str, ...] = ()  # lines on the choices of the method, for `Ranking.explain`
    reusable: bool = False  # whether it has `rest` and `reuse`
    keeps_history: bool = False  # whether it has `history`, `products` and `mix`; else it may mix in `advance` itself

    def set_contribution_dtype(self, dtype: str) -> None:
        """Store contributions as "float64" (default) or "float32" from the next `start` on, and update `rounding`."""
        return

    def rest(self) -> bool:
        """Free what only this ranking needs; return whether the graph may keep the `reusable` step for `reuse`."""
        return False

    def reuse(self, problem: Problem) -> None:
        """Take another equation on the same graph. Ranks that were returned before stay as they are."""
        raise TypeError("this step ranks once")

    def start(self, ranks: Floats | float) -> None:
        """Set the ranks to x_0: an array in host or device memory, which is not altered, or one number for all."""

    def __call__(self, moves: Array | None = None) -> Sums:
        """Replace the ranks x by y = G x; write y - x to `moves`, float32 of the shape of the ranks, if given."""

    def advance(self, goal: float, budget: int) -> tuple[Passes, Sums | None]:
        """Approach the solution quickly, in any precision and order of updates, without an error bound.

        End at an L1 change of `goal` per step, or after `budget` edge passes. Return the number of edge passes (0: not
        supported, or it would not pay now), and the measurements of the last pass if they prove as much as those of a
        plain step. Many seeds: the number may be an array with one entry per seed.
        """
        return 0, None

    def repeat(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Take plain steps, at most `budget`, until one changes the ranks by at most `goal`; faster than one by one.

        Return their number (0: not supported), and the measurements of the last.
        """
        return 0, None

    def follow(self, met: Callable[[Sums], Verdict], budget: int, least_move: float) -> tuple[int, bool] | None:
        """Iterate by another, inexact form of the step until a rule about its own changes is met; None: it has none.

        `met` tells whether the measurements of a pass meet the rule, and moves up to `least_move` may be left out.
        Return the number of passes, at most `budget`, and whether the rule was met.
        """
        return None

    def ranks(self) -> Floats:
        """Return the current ranks, in the order of the result; the next step may overwrite them."""

    def history(self, rows: int) -> Array | None:
        """Return a buffer for `rows` moves, in float32 and each of the shape of the ranks; None if it does not fit."""
        return None

    def products(self, moves: Array, rows: list[int]) -> Floats:
        """Return the dot products of all pairs of the given rows of `moves`, in float64 on the host.

        Many seeds: one matrix per seed. The bits are the same for any number of threads, and in all processes.
        """
        raise TypeError("this step keeps no history of moves")

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        """Replace the ranks y by z = max(y - weights @ moves, 0), divided by its sum.

        Many seeds: one row of weights per seed; a seed whose weights are all 0 keeps y. `jump` receives the change of
        the ranks, except for many seeds; it may alias one of `moves`.
        """
        raise TypeError("this step keeps no history of moves")

    def set_live(self, live: Array) -> None:
        """Stop updating the ranks of each seed for which `live`, one boolean per seed, is False."""
        return

    def add(self, value: Sum) -> Sum:
        """Return the sum of a number or an array over all processes, with the same bits in each."""
        return value


class SeedsStep(Step, Protocol):
    """State of the iteration for several seeds at once: the ranks of each seed are a column of a matrix.

    The result of a column does not depend on the other columns.
    """

    width: int  # maximum number of seeds per batch

    def seed(self, seeds: Seeds) -> None:
        """Set at most `width` personalizations for the next `start`."""

    def start(self, ranks: Floats | float | None) -> None:
        """Set the ranks of all seeds to the same vector, or to a matrix; None: each seed's personalization."""

    def transposed(self) -> Floats:
        """Return the ranks as a matrix with one row per seed, in the order of the result.

        It may share memory with the ranks: call `start` before the next step.
        """


class Method(Protocol):
    """Module of a method. The first line of its docstring describes it to users.

    `name`: Value of the argument `method` of `pagerank`.
    `runs_on`: Processor. "auto" chooses among the methods of the processor in whose memory the edges are.
    `unavailable_reason`: Returns why the method cannot run here, or None. If there is no adjacency, only reasons that
    hold for every graph count.
    `memory`: Bytes of a ranking per edge and per vertex, as measured; `unavailable_reason` compares them with the free
    memory, and `estimate` shows them.
    `prepare`: Returns a `Step`. Its keyword-only arguments, described in its docstring, are the options of the method.
    Graph and vectors may be in the other memory space: `Problem.on` and `Edges.on` copy them.

    A module may also have:

    `cost`: ``cost(adjacency, machine)`` estimates the seconds of a ranking. "auto" chooses the least among all methods
    that declare it, for a graph of equal in-degrees.
    `reads`: The layouts of the edges that it can read, in order of preference; by default only `Csc`. What it keeps by
    `Edges.keep` stays until a method that does not read it ranks.
    `nondeterministic`: True if the last bits of the ranks vary between runs; "auto" never chooses such a method.
    `batch_cost`: ``batch_cost(adjacency, machine, seeds)`` estimates the seconds of many personalizations in one call.
    `batch`: ``batch(problem, machine, seeds, **options)`` returns a `SeedsStep` for many personalizations at once. A
    method that has only `batch_cost` ranks them one after another.
    `batch_from`: Number of seeds from which `batch` is used, by default 1; fewer are ranked one after another.
    `forms`: The values of its option `form`, with a `prplugin.papers._forms.Form` for each.
    `compile_ahead`: ``compile_ahead(weighted)`` starts to compile kernels on other threads while the graph is built.
    """

    name: str
    runs_on: Literal["cpu", "gpu"]
    unavailable_reason: Callable[[Edges | Counts | None, Machine], str | None]
    memory: Memory
    cost: Callable[[Edges | Counts, Machine], float]  # optional
    prepare: Callable[Concatenate[Problem, Machine, ...], Step]


class SeedsMethod(Method, Protocol):
    """A method that ranks many personalizations in one call."""

    batch_cost: Callable[[Edges | Counts, Machine, int], float]
    batch: Callable[Concatenate[Problem, Machine, int, ...], SeedsStep]  # optional
