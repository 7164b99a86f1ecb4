"""Rankings of many seeds: seeds are iterated in batches, and an iteration reads each edge once for the whole batch.

A batch runs in `prplugin.solver.loop` with one column per seed. Each seed has its own error bound, its own mixing
weights and its own end; its result does not depend on the other seeds of the batch. With a proved tolerance, the
iteration of a seed starts at its personalization, which is closer to the solution than uniform ranks.

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

__all__ = ["Batch", "batches"]


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
    watch: Callable[[float, int], Callable[[int, float], None]],
) -> Iterator[Batch]:
    """Rank the seeds in their order; yield one `Batch` for each `SeedsStep.width` seeds.

    `problem`: Has no personalization.
    `start`: Start of every seed. If None: the personalization of the seed, or 1 / n where no error is to be proved.
    `watch`: Called once per batch with tolerance and budget; returns the function that the loop calls.
    """
    step: SeedsStep = method.batch(problem, machine, seeds.count, **options.method_options)
    adjacency = problem.adjacency
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.rounding, options.dtype, options.scale)
    allowed = step_budget(certificate, options)
    budget = min(allowed, certificate.steps(options.tol)) if proves(options) else allowed
    begin: Floats | float | None = 1.0 / adjacency.n if start is None and not proves(options) else start
    for first in range(0, seeds.count, step.width):
        part = seeds.slice(first, min(first + step.width, seeds.count))
        step.seed(part)
        watched = watch(options.tol if options.stop == "error" else 0.0, allowed)
        outcome = Loop(certificate, options, budget, watched).run(step, begin)
        own = slice(part.count)
        batch = Batch(step.transposed(), outcome.converged[own], outcome.iterations[own], outcome.error_bound[own])
        individual_below = allowed if proves(options) else 0
        for place in np.flatnonzero(~batch.converged & (batch.iterations < individual_below)).tolist():
            batch_ranks, batch_passes = batch.ranks[place], int(batch.iterations[place])
            posed = replace(problem, personalization=part.vector(place, adjacency.n))
            individual = method.prepare(posed, machine, **options.method_options)
            rounding = individual.rounding
            proof = Certificate(options.alpha, adjacency.n, adjacency.m, rounding, options.dtype, options.scale)
            left = step_budget(proof, options) - (0 if options.max_iter is None else batch_passes)
            end = Loop(proof, options, left, lambda *_: None).run(individual, batch_ranks / total(batch_ranks))
            batch.ranks[place] = individual.ranks()
            batch.converged[place], batch.iterations[place] = end.converged, batch_passes + end.iterations
            batch.error_bounds[place] = end.error_bound
        yield batch
