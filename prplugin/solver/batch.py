"""Many seeds at once: each edge is read once for a batch of them.

A batch goes through the loop of one ranking, with a column per seed: see `prplugin.solver.loop`. Each seed has its own
proof and its own mixing, and ends by itself; what it comes to does not depend on the seeds beside it. A seed that is to
be proved begins at its personalization, where most of its ranks will be.

A seed that its batch does not bring to the tolerance, though it can be proved, stagnates at rounding level: it goes on
alone after its batch.
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
    """What came of some seeds side by side.

    Attributes
    ----------
    ranks : matrix of float64, a row a seed
        Which those of the next batch may overwrite.
    converged, iterations, error_bounds : arrays
        One a seed: as those of `prplugin.solver.loop.Outcome`.
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
    """Rank the seeds in their order, as many at once as the method takes side by side.

    Parameters
    ----------
    problem : Problem
        Without a personalization.
    start : array of n float64, of sum 1, optional
        Not given: each seed's own personalization, or 1 / n where no error is to be proved.
    watch : function
        Given tolerance and budget, gives what is called with steps taken and bound, anew for each batch.
    """
    step: SeedsStep = method.batch(problem, machine, seeds.count, **options.method_options)
    adjacency = problem.adjacency
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.rounding, options.dtype, options.scale)
    allowed = step_budget(certificate, options)
    budget = min(allowed, certificate.steps(options.tol)) if proves(options) else allowed
    begin: Floats | float | None = 1.0 / adjacency.n if start is None and not proves(options) else start
    for first in range(0, seeds.count, step.width):
        part = seeds.part(first, min(first + step.width, seeds.count))
        step.seed(part)
        watched = watch(options.tol if options.stop == "error" else 0.0, allowed)
        outcome = Loop(certificate, options, budget, watched).run(step, begin)
        own = slice(part.count)
        batch = Batch(step.transposed(), outcome.converged[own], outcome.iterations[own], outcome.error_bound[own])
        alone_from = allowed if proves(options) else 0
        for place in np.flatnonzero(~batch.converged & (batch.iterations < alone_from)).tolist():
            so_far, spent = batch.ranks[place], int(batch.iterations[place])
            posed = replace(problem, personalization=part.vector(place, adjacency.n))
            alone = method.prepare(posed, machine, **options.method_options)
            proof = Certificate(options.alpha, adjacency.n, adjacency.m, alone.rounding, options.dtype, options.scale)
            left = step_budget(proof, options) - (0 if options.max_iter is None else spent)
            end = Loop(proof, options, left, lambda *_: None).run(alone, so_far / total(so_far))
            batch.ranks[place] = alone.ranks()
            batch.converged[place], batch.iterations[place] = end.converged, spent + end.iterations
            batch.error_bounds[place] = end.error_bound
        yield batch
