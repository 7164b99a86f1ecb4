"""The methods: one module each, found by listing this folder. Modules whose names begin with _ hold their kernels.

A method module has

- `name`: what users call it by;
- `unfit(adjacency, machine)`: why it cannot run here, or None; `adjacency` is None for "on any graph";
- `cost(adjacency, machine)`: an estimate of seconds, by which "auto" chooses;
- `prepare(problem, machine, **options)`: a `Step`; its keyword-only arguments are the options of the method;

and a docstring whose first line says what it is. Adding a method touches no other file.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Concatenate, NamedTuple, Protocol

from prplugin.certificate import StepChain
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.edges import Floats
from prplugin.machine import Machine
from prplugin.problem import Problem

__all__ = ["Method", "Step", "Sums", "check_options", "choose", "methods"]

logger = logging.getLogger(__name__)


class Sums(NamedTuple):
    """What a step from x to y measured.

    Attributes
    ----------
    change : float
        ||y - x||, in L1.
    largest : float
        The greatest |y_i - x_i|.
    dangling : float
        D(y): how much rank dangling vertices hold.
    """

    change: float
    largest: float
    dangling: float


class Step(Protocol):
    """One iteration, again and again: holds the current ranks where the method wants them."""

    chain: StepChain

    def start(self, ranks: Floats) -> float:
        """Take x_0, which is not altered, and return D(x_0)."""

    def __call__(self, dangling: float) -> Sums:
        """Replace the ranks x by G x, given D(x)."""

    def ranks(self) -> Floats:
        """Give the current ranks, in the order of the result."""


class Method(Protocol):
    """The shape of a method's module."""

    name: str
    unfit: Callable[[Adjacency | None, Machine], str | None]
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


def check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Raise InvalidOptionError if an option is not one of the method's."""
    known = _options_of(method)
    for name in options:
        if name not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options of its own"
            raise InvalidOptionError(f"{name!r} is not an argument of pagerank, and method {method.name!r} {takes}.")


def _options_of(method: Method) -> list[str]:
    return [p.name for p in inspect.signature(method.prepare).parameters.values() if p.kind is p.KEYWORD_ONLY]


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
                f"method must be 'auto' or one of {', '.join(map(repr, methods()))}, not {name!r}."
            )
        method: Method = methods()[name]
        if reason := method.unfit(adjacency, machine):
            raise MethodUnavailableError(f"method {name!r} cannot run here: {reason}")
        check_options(method, options)
        return method
    for option in options:
        if not any(option in _options_of(method) for method in methods().values()):
            raise InvalidOptionError(f"{option!r} is neither an argument of pagerank nor an option of any method.")
    costs = {
        method: method.cost(adjacency, machine)
        for method in methods().values()
        if method.unfit(adjacency, machine) is None and set(options) <= set(_options_of(method))
    }
    if not costs:
        raise InvalidOptionError(f"no method that can run here takes all of {', '.join(map(repr, options))}.")
    chosen: Method = min(costs, key=costs.__getitem__)
    logger.info(
        "%s for %d vertices and %d edges: %s",
        chosen.name, adjacency.n, adjacency.m,
        ", ".join(f"{method.name} {seconds:.2g} s" for method, seconds in costs.items()),
    )  # fmt: skip
    return chosen
