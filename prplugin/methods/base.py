"""The methods: one module each, found by listing this folder. Modules whose names begin with _ serve several.

A method module has

- `name`: what users call it by;
- `runs_on`: "cpu" or "gpu"; "auto" chooses among those of the side where the edges lie;
- `unavailable_reason(adjacency, machine)`: why it cannot run here, or None; `adjacency` is None for "on any graph";
- `memory`: the bytes that a ranking holds per edge and per vertex; `unavailable_reason` goes by it;
- `cost(adjacency, machine)`: an estimate of seconds, by which "auto" chooses;
- `prepare(problem, machine, **options)`: a `Step`; its keyword-only arguments are the options of the method. Graph and
  vectors may lie on the other side: `Problem.on` and `Adjacency.on` bring them over;
- perhaps `nondeterministic = True`: the last bits of its ranks vary from run to run, and "auto" never chooses it;
- perhaps `batch(problem, machine, seeds, **options)`: a `SeedsStep`, for rankings of many personalizations at once, and
  `batch_cost(adjacency, machine, seeds)`, an estimate of seconds for so many;
- perhaps `ahead(weighted)`: begins to compile, on other threads, what it will need, while the graph is made;

and a docstring whose first line says what it is. Adding a method touches no other file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, NamedTuple, Protocol

from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory
from prplugin.graph.problem import Problem, Seeds
from prplugin.machine import Machine
from prplugin.numerics.rounding import StepRounding
from prplugin.options import Options, allows_float32
from prplugin.types.edges import Floats

__all__ = [
    "Method",
    "SeedsStep",
    "Step",
    "Sums",
]


class Sums(NamedTuple):
    """What a step from x to y measured: numbers, or for many seeds arrays with an entry per seed.

    Attributes
    ----------
    change : float
        ||y - x||, in L1.
    largest : float
        The greatest |y_i - x_i|.
    """

    change: Any
    largest: Any


class Step(Protocol):
    """One iteration, again and again: holds the current ranks, and their sum over dangling vertices.

    Where the ranks are spread over several processes, each holds those of its own rows; all processes take the same
    steps in the same order, and see the same sums.

    Attributes
    ----------
    rounding : StepRounding
        The rounding depths of the next step.
    narrow_pays : bool
        Whether it is faster with contributions in float32.
    seeds : int, optional
        How many columns the ranks have; None: they are a vector.
    """

    rounding: StepRounding
    narrow_pays: bool = False
    seeds: int | None = None

    def contribute_in(self, dtype: str) -> None:
        """Hold contributions in "float64", initially, or in "float32", from the next `start` on; `rounding` follows."""
        return

    def start(self, ranks: Any) -> None:
        """Take x_0, from host or device, or one number that stands for all of its entries; it is not altered."""

    def __call__(self, moves: Any = None) -> Sums:
        """Replace the ranks x by y = G x; write y - x to `moves`, float32 of the shape of the ranks, if given."""

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Get nearer to the solution fast, in any precision and order: nothing of it is proved.

        Parameters
        ----------
        goal : float
            What a step may change in the end.
        budget : int
            The most passes over the edges.

        Returns
        -------
        passes : int
            How many it took. 0: it cannot, or it would not pay now.
        sums : Sums, optional
            What the last pass measured, if that was a plain step.
        """
        return 0, None

    def ranks(self) -> Floats:
        """Return the current ranks, in the order of the result; the next step may overwrite them."""

    def history(self, rows: int) -> Any:
        """Return room for so many moves, float32 and each of the shape of the ranks.

        None where there is no room, or where the step mixes by itself in `advance`.
        """

    def products(self, moves: Any, rows: list[int]) -> Floats:
        """Return the dot products of some rows of `moves` with one another, in float64 on the host.

        Many seeds: one matrix per seed. The bits are the same for any number of threads, and in all processes.
        """

    def mix(self, moves: Any, weights: Floats, jump: Any) -> None:
        """Go on from z = max(y - weights @ moves, 0), divided by its sum, where y are the ranks.

        Many seeds: a row of weights per seed; a seed of which all are 0 goes on from y. `jump` takes z - y before the
        division; it may be one of `moves`.
        """

    def keep(self, live: Any) -> None:
        """Leave the ranks of a seed as they are from now on where `live`, a boolean per seed, is False."""
        return

    def add(self, value: Any) -> Any:
        """Add up a number or an array over all processes: the same bits in each."""
        return value


class SeedsStep(Step, Protocol):
    """Iterations of several seeds side by side: the ranks of each are a column of a matrix.

    What a column comes to depends on no other column.

    Attributes
    ----------
    width : int
        How many seeds it takes at once, at most.
    """

    width: int

    def seed(self, seeds: Seeds) -> None:
        """Take the personalizations of the next `start`, `width` at most."""

    def start(self, ranks: Any) -> None:
        """Begin all seeds with the same ranks, or a matrix of them; None: each with its personalization."""

    def transposed(self) -> Floats:
        """Return the ranks as a matrix with a row per seed, in the order of the result.

        `start` may overwrite them, and no step can follow before that.
        """


class Method(Protocol):
    """The shape of a method's module."""

    name: str
    runs_on: Literal["cpu", "gpu"]
    unavailable_reason: Callable[[Adjacency | None, Machine], str | None]
    memory: Memory
    cost: Callable[[Adjacency, Machine], float]
    prepare: Callable[Concatenate[Problem, Machine, ...], Step]


def begins_in_float32(step: Step, options: Options) -> bool:
    """Say whether it does: where that is faster."""
    return step.narrow_pays and allows_float32(options)
