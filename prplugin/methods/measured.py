"""Choice of the method that is fastest on the given graph: ``method="measured"``.

A ranking takes layout + steps * step: the seconds before its first step, the likely number of steps
(`prplugin.options.likely_steps`), and the seconds per step. The methods that "auto" may choose are timed for layout and
step, by ascending estimate, one in memory at a time, unless the estimate is `SKIP_RATIO` times the least; samples end
once they have taken as long as the fastest ranking so far. A first plan compiles kernels and builds the arrays that all
methods share, and is discarded; a second one is timed, then its steps, in the initial precision of a ranking and in
batches as large as the solver requests. Timings are kept for later rankings: alpha and tol change the number of steps.
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
from prplugin.methods.base import Method, Step
from prplugin.methods.registry import contenders
from prplugin.options import Options, allows_float32, likely_steps
from prplugin.types.arrays import synchronize

logger = logging.getLogger(__name__)

SKIP_RATIO = 20  # ratio to the least estimate from which a method is not timed
SAMPLES = 5  # maximum number of samples of a step
STEPS_PER_SAMPLE = 20  # maximum number of steps per sample


class Timing(NamedTuple):
    """Measured time of a method, in seconds."""

    layout: float  # before the first step
    step: float  # median

    def ranking(self, steps: int) -> float:
        """Return the seconds of a ranking of `steps` steps."""
        return self.layout + steps * self.step


TimingCache: TypeAlias = dict[tuple[Any, ...], dict[str, Timing]]
"""Timings on one graph, by the settings that they depend on and by method."""


def fastest(problem: Problem, machine: Machine, options: Options, cache: TimingCache) -> Method:
    """Return the fastest of the methods that "auto" may choose; new timings are added to the cache."""
    candidates = _worth_timing(problem, machine, options)
    if len(candidates) == 1 or problem.adjacency.n == 0:
        return candidates[0]
    key = _key(machine, options)
    if not any(method.name in cache.get(key, {}) for method in candidates):
        cache[key] = _all_timed(candidates, problem, machine, options)
    seconds = measured(machine, options, cache)
    chosen = min((method for method in candidates if method.name in seconds), key=lambda one: seconds[one.name])
    logger.info(
        "%s for %d vertices and %d edges and %d steps, as measured: %s",
        chosen.name, problem.adjacency.n, problem.adjacency.m, likely_steps(options),
        ", ".join(
            f"{name} {seconds[name]:.2g} s (layout {timing.layout:.2g}, step {timing.step:.2g})"
            for name, timing in cache[key].items()
        ),
    )  # fmt: skip
    return chosen


def measured(machine: Machine, options: Options, cache: TimingCache) -> dict[str, float]:
    """Return the seconds of a ranking for each method that was timed with such options."""
    steps = likely_steps(options)
    return {name: timing.ranking(steps) for name, timing in cache.get(_key(machine, options), {}).items()}


def _key(machine: Machine, options: Options) -> tuple[Any, ...]:
    given = sorted((name, repr(value)) for name, value in options.method_options.items())
    return (machine, allows_float32(options), *given)


def _worth_timing(problem: Problem, machine: Machine, options: Options) -> list[Method]:
    """Return the contenders whose estimate is at most `SKIP_RATIO` times the least."""
    adjacency = problem.adjacency
    costs = [
        (method.cost(adjacency, machine), method) for method in contenders(adjacency, machine, options.method_options)
    ]
    least = min(cost for cost, _ in costs)
    return [method for cost, method in costs if cost <= SKIP_RATIO * least]


def _all_timed(candidates: list[Method], problem: Problem, machine: Machine, options: Options) -> dict[str, Timing]:
    """Time the methods one by one; omit methods that do not fit in memory, or reject an option value."""
    timings: dict[str, Timing] = {}
    refusals: list[PageRankError] = []
    for method in candidates:
        limit = min((timing.ranking(likely_steps(options)) for timing in timings.values()), default=math.inf)
        problem.adjacency.layout = None  # of another method
        try:
            memory_space = "device" if method.runs_on == "gpu" else problem.adjacency.memory_space
            with runtime.device_allocation(memory_space, problem.adjacency.gpu):
                timings[method.name] = timed(method, problem, machine, options, limit)
        # Keep only the message: the traceback would keep arrays alive.
        except (InvalidOptionError, MethodUnavailableError) as error:
            refusals.append(type(error)(str(error)))
        except MemoryError as error:
            refusals.append(OutOfMemoryError(f"the memory ran out: {error}"))
        if method.name not in timings:
            logger.info("%s is left out: %s", method.name, refusals[-1])
    if not timings:
        raise refusals[0]
    return timings


def timed(method: Method, problem: Problem, machine: Machine, options: Options, limit: float = math.inf) -> Timing:
    """Time a method's layout, and samples of its steps; one is enough after `limit` seconds, of another's ranking."""

    def started() -> Step:
        step = method.prepare(problem, machine, **options.method_options)
        if step.float32_is_faster and allows_float32(options):
            step.set_contribution_dtype("float32")
        step.start(1.0 / problem.adjacency.n)
        synchronize("device" if method.runs_on == "gpu" else "host")
        return step

    most_steps = min(STEPS_PER_SAMPLE, likely_steps(options))
    _take(started(), most_steps)
    began = perf_counter()
    step = started()
    layout = perf_counter() - began
    samples: list[float] = []
    while not samples or (len(samples) < SAMPLES and perf_counter() - began < limit):
        first = perf_counter()
        taken = _take(step, most_steps)
        samples.append((perf_counter() - first) / taken)
    return Timing(layout, float(np.median(samples)))


def _take(step: Step, most_steps: int) -> int:
    """Run at most `most_steps` passes as the solver does, and wait for them; return their number."""
    passes: int
    passes, sums = step.advance(0.0, most_steps)
    if sums is None:
        step()
        passes += 1
    return passes
