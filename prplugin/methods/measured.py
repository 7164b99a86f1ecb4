"""Which method is fastest on this very graph: ``method="measured"``.

A ranking takes layout + steps * step: the seconds before its first step, how many steps it is likely to take
(`prplugin.options.likely_steps`), and the seconds of one. The methods that "auto" may choose are timed for layout and
step, by rising estimate, each alone in memory. A first plan compiles what there is to compile, builds what all methods
share, and is thrown away; a second one is timed, and then its steps, in the precision in which the ranking begins, as
many at once as it is given there.

What takes too long is not waited for: a method whose estimate is `HOPELESS` times the least is not timed at all, and
others only until they have taken as long as the fastest ranking so far.

What was timed is kept: neither alpha nor tol change how long a step takes, only how many there are.
"""

from __future__ import annotations

import logging
import math
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.errors import InvalidOptionError, MethodUnavailableError, OutOfMemoryError, PageRankError
from prplugin.gpu import runtime
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Method, Step, begins_in_float32
from prplugin.methods.registry import contenders
from prplugin.options import Options, allows_float32, likely_steps
from prplugin.types.arrays import synchronize

__all__ = ["Kept", "Timing", "fastest", "measured", "timed"]

logger = logging.getLogger(__name__)

HOPELESS = 20
"""Times the least estimate."""

FEWEST, MOST = 3, 25
"""Samples of a step: of short ones as many as take `ENOUGH`."""

ENOUGH = 0.02
"""Seconds."""

AT_ONCE = 20
"""Steps of a sample, at most."""


class Timing(NamedTuple):
    """What a method takes, in seconds.

    Attributes
    ----------
    layout : float
        Before the first step.
    step : float
        The median of some.
    """

    layout: float
    step: float

    def ranking(self, steps: int) -> float:
        """Give what a ranking of so many steps takes."""
        return self.layout + steps * self.step


Kept: TypeAlias = dict[tuple[Any, ...], dict[str, Timing]]
"""What was timed on one graph, by what it depends on and by method."""


def fastest(problem: Problem, machine: Machine, options: Options, kept: Kept) -> Method:
    """Find the method that takes the least time, among those that "auto" may choose.

    Parameters
    ----------
    kept : dict
        Of the graph; what is timed is added.

    Raises
    ------
    InvalidOptionError
        If no method takes the options.
    MethodUnavailableError
        If none can run here.
    """
    race = _worth_timing(problem, machine, options)
    if len(race) == 1 or problem.adjacency.n == 0:
        return race[0]
    steps = likely_steps(options)
    key = _key(machine, options)
    timings = kept.get(key, {})
    if not any(method.name in timings for method in race):
        timings = kept[key] = _all_timed(race, problem, machine, options)
    chosen = min((method for method in race if method.name in timings), key=lambda m: timings[m.name].ranking(steps))
    logger.info(
        "%s for %d vertices and %d edges and %d steps, as measured: %s",
        chosen.name, problem.adjacency.n, problem.adjacency.m, steps,
        ", ".join(
            f"{name} {timing.ranking(steps):.2g} s (layout {timing.layout:.2g}, step {timing.step:.2g})"
            for name, timing in timings.items()
        ),
    )  # fmt: skip
    return chosen


def measured(machine: Machine, options: Options, kept: Kept) -> dict[str, float]:
    """Give the seconds of a ranking by each method that was timed for such options."""
    steps = likely_steps(options)
    return {name: timing.ranking(steps) for name, timing in kept.get(_key(machine, options), {}).items()}


def _key(machine: Machine, options: Options) -> tuple[Any, ...]:
    given = sorted((name, repr(value)) for name, value in options.method_options.items())
    return (machine, allows_float32(options), *given)


def _worth_timing(problem: Problem, machine: Machine, options: Options) -> list[Method]:
    """Give the contenders up to the first whose estimate is hopeless."""
    race: list[Method] = []
    limit = math.inf
    for method in contenders(problem.adjacency, machine, options.method_options):
        estimate = method.cost(problem.adjacency, machine)
        if estimate > limit:
            logger.info("%s and what is slower are not timed: an estimate of %.2g s", method.name, estimate)
            break
        limit = min(limit, HOPELESS * estimate)
        race.append(method)
    return race


def _all_timed(race: list[Method], problem: Problem, machine: Machine, options: Options) -> dict[str, Timing]:
    """Time methods one after the other; those that have no room, or refuse an option's value, are left out."""
    timings: dict[str, Timing] = {}
    refusals: list[PageRankError] = []
    for method in race:
        refusal: PageRankError
        limit = min((timing.ranking(likely_steps(options)) for timing in timings.values()), default=math.inf)
        try:
            memory_space = "device" if method.runs_on == "gpu" else problem.adjacency.memory_space
            with runtime.allocating(memory_space, problem.adjacency.gpu):
                timings[method.name] = timed(method, problem, machine, options, limit)
            continue
        # Only what they say is kept: with where they were raised they would hold half a plan.
        except (InvalidOptionError, MethodUnavailableError) as error:
            refusal = type(error)(str(error))
        except MemoryError as error:
            refusal = OutOfMemoryError(f"the memory ran out: {error}")
        logger.info("%s is left out: %s", method.name, refusal)
        refusals.append(refusal)
    if not timings:
        raise refusals[0]
    return timings


def timed(method: Method, problem: Problem, machine: Machine, options: Options, limit: float = math.inf) -> Timing:
    """Time a method's layout, and its steps until they have taken long enough.

    Parameters
    ----------
    limit : float
        Seconds that a ranking by another method takes: once this one has taken as many, a sample is enough.
    """

    def begun() -> Step:
        step = method.prepare(problem, machine, **options.method_options)
        if begins_in_float32(step, options):
            step.contribute_in("float32")
        step.start(1.0 / problem.adjacency.n)
        synchronize("device" if method.runs_on == "gpu" else "host")
        return step

    at_once = min(AT_ONCE, likely_steps(options))
    _take(begun(), at_once)
    began = perf_counter()
    step = begun()
    layout = perf_counter() - began
    samples: list[float] = []
    spent = 0.0
    while len(samples) < MOST and not (len(samples) >= FEWEST and spent >= ENOUGH):
        began = perf_counter()
        taken = _take(step, at_once)
        seconds = perf_counter() - began
        samples.append(seconds / taken)
        spent += seconds
        if layout + spent >= limit:
            break
    return Timing(layout, float(np.median(samples)))


def _take(step: Step, at_once: int) -> int:
    """Take passes as the loop would, up to a limit, and wait for them; say how many."""
    passes, sums = step.advance(0.0, at_once)
    if sums is None:
        step()
        passes += 1
    return passes
