"""Rankings of many seeds: seeds are iterated in batches, and an iteration reads each edge once for the whole batch.

Batches save no time in NumPy, nor for few seeds in Numba. Such seeds are ranked individually.

A batch runs in `prplugin.solver.loop` with one column per seed. Each seed has its own error bound, its own mixing
weights and its own last iteration; its result does not depend on the other seeds of the batch. With a proved tolerance,
the iteration of a seed starts at its personalization, which is closer to the solution than uniform ranks.

Seeds that have not converged when their batch ends, because they stagnate at rounding level, continue individually.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.problem import Problem, Seeds
from prplugin.machine import Machine
from prplugin.methods.base import SeedsStep
from prplugin.options import Options, proves
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Loop
from prplugin.solver.stopping import step_budget
from prplugin.types.edges import Floats

AT_A_TIME = 32
"""Seeds per `Batch` if they are ranked individually."""


class Batch(NamedTuple):
    """Results of one batch of k seeds.

    `ranks` (k x n array of float64): One row per seed. The next batch may overwrite it.
    `converged`, `iterations`, `error_bounds` (arrays of k entries): As in `prplugin.solver.loop.Outcome`.
    """

    ranks: Floats
    converged: Any
    iterations: Any
    error_bounds: Floats


def batches(
    method: Any,
    problem: Problem,
    seeds: Seeds,
    start: Floats | None,
    options: Options,
    machine: Machine,
    watch: Callable[[Options, int], Callable[[int, float], None]],
) -> Iterator[Batch]:
    """Rank the seeds in their order; yield one `Batch` for each `SeedsStep.width` seeds.

    `problem`: Has no personalization.
    `start`: Start of every seed. If None: the personalization of the seed, or 1 / n where no error is to be proved or
    seeds are ranked one by one.
    `watch`: Called with the budget once per batch, or seed; returns the function that the loop calls.
    """
    n, m = problem.adjacency.n, problem.adjacency.m
    fewest = method.batch_from(problem.adjacency) if hasattr(method, "batch_from") else 1
    step: SeedsStep | None = None
    width, begin = AT_A_TIME, 1.0 / n if start is None else start
    if hasattr(method, "batch") and seeds.count >= fewest:
        step = method.batch(problem, machine, seeds.count, **options.method_options)
        certificate = Certificate(options.alpha, n, m, step.rounding, options.dtype, options.scale)
        allowed = step_budget(certificate, options)
        budget = min(allowed, certificate.steps(options.tol)) if proves(options) else allowed
        width = step.width

    def rank_alone(batch: Batch, place: int, personalization: Floats, start: Floats | float, watch: Any) -> None:
        """Rank one seed individually, after the iterations that the batch has made, and write its results."""
        posed = replace(problem, personalization=personalization)
        step, made = method.prepare(posed, machine, **options.method_options), int(batch.iterations[place])
        certificate = Certificate(options.alpha, n, m, step.rounding, options.dtype, options.scale)
        budget = step_budget(certificate, options) - (0 if options.max_iter is None else made)
        outcome = Loop(certificate, options, budget, watch(options, budget)).run(step, start)
        batch.ranks[place], batch.converged[place] = step.ranks(), outcome.converged
        batch.iterations[place], batch.error_bounds[place] = made + outcome.iterations, outcome.error_bound

    for first in range(0, seeds.count, width):
        part = seeds.slice(first, min(first + width, seeds.count))
        k = part.count
        if step is None:
            part = part.on("host")
            batch = Batch(np.empty((k, n)), np.zeros(k, np.bool_), np.zeros(k, np.int64), np.zeros(k))
            for place in range(k):
                rank_alone(batch, place, part.vector(place, n), begin, watch)
        else:
            step.seed(part)
            loop = Loop(certificate, options, budget, watch(options, allowed))
            outcome = loop.run(step, start if start is not None or proves(options) else begin)
            batch = Batch(step.transposed(), outcome.converged[:k], outcome.iterations[:k], outcome.error_bound[:k])
            alone = ~batch.converged & (batch.iterations < (allowed if proves(options) else 0))
            for place in np.flatnonzero(alone).tolist():
                begun = batch.ranks[place] / total(batch.ranks[place])
                rank_alone(batch, place, part.vector(place, n), begun, lambda *_: lambda *_: None)
        yield batch
