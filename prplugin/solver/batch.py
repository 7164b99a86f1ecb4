"""Rankings of many seeds: seeds are iterated in batches, and an iteration reads each edge once for the whole batch.

Batches save no time in NumPy, nor for few seeds in compiled kernels. Such seeds are ranked individually.

A batch runs in `prplugin.solver.loop` with one column per seed. Each seed has its own error bound, its own mixing
weights and its own last iteration; its result does not depend on the other seeds of the batch. With a proved tolerance,
the iteration of a seed starts at its personalization, which is closer to the solution than uniform ranks.

Seeds that have not converged when their batch ends, because they stagnate at rounding level, continue individually.
So do those of a small problem that converge slowly: they are solved directly, with one factorization for all seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.problem import Problem, Seeds
from prplugin.machine import Machine
from prplugin.methods.base import SeedsStep
from prplugin.options import Options, proves
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Loop
from prplugin.solver.slow import DIRECT_AFTER, DirectSolver, SlowConvergence, is_small
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


Watch: TypeAlias = Callable[[Options, int], Callable[[int, float, Sequence[float]], None]]
"""Returns, for a budget, the function that the loop calls: see `prplugin.solver.loop.Loop`."""


def batches(
    method: Any,
    problem: Problem,
    seeds: Seeds,
    start: Floats | None,
    options: Options,
    machine: Machine,
    watch: Watch,
) -> Iterator[Batch]:
    """Rank the seeds in their order; yield one `Batch` for each `SeedsStep.width` seeds.

    `problem`: Has no personalization.
    `start`: Start of every seed. If None: the personalization of the seed, or 1 / n where no error is to be proved or
    seeds are ranked one by one.
    `watch`: Called with the budget once per batch, or seed; returns the function that the loop calls.
    """
    fewest = method.batch_from(problem.adjacency) if hasattr(method, "batch_from") else 1
    if not hasattr(method, "batch") or seeds.count < fewest:
        yield from _one_by_one(method, problem, seeds, start, options, machine, watch)
        return
    step: SeedsStep = method.batch(problem, machine, seeds.count, **options.method_options)
    adjacency = problem.adjacency
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.rounding, options.dtype, options.scale)
    allowed = step_budget(certificate, options)
    budget = min(allowed, certificate.steps(options.tol)) if proves(options) else allowed
    most = DIRECT_AFTER if proves(options) and is_small(problem) else sys.maxsize
    solver = DirectSolver()
    begin: Floats | float | None = 1.0 / adjacency.n if start is None and not proves(options) else start
    for first in range(0, seeds.count, step.width):
        part = seeds.slice(first, min(first + step.width, seeds.count))
        step.seed(part)
        outcome = Loop(certificate, options, budget, watch(options, allowed), most=most).run(step, begin)
        own = slice(part.count)
        batch = Batch(step.transposed(), outcome.converged[own], outcome.iterations[own], outcome.error_bound[own])
        individual_below = allowed if proves(options) else 0
        for place in np.flatnonzero(~batch.converged & (batch.iterations < individual_below)).tolist():
            posed = replace(problem, personalization=part.vector(place, adjacency.n))
            begun = batch.ranks[place] / total(batch.ranks[place])
            _rank_into(batch, place, method, posed, begun, options, machine, lambda *_: lambda *_: None, solver)
        yield batch


def _one_by_one(
    method: Any, problem: Problem, seeds: Seeds, start: Floats | None, options: Options, machine: Machine,
    watch: Watch,
) -> Iterator[Batch]:  # fmt: skip
    """Rank each seed individually; yield one `Batch` for each `AT_A_TIME` seeds."""
    n, solver = problem.adjacency.n, DirectSolver()
    for first in range(0, seeds.count, AT_A_TIME):
        part = seeds.slice(first, min(first + AT_A_TIME, seeds.count)).on("host")
        k = part.count
        batch = Batch(np.empty((k, n)), np.zeros(k, np.bool_), np.zeros(k, np.int64), np.zeros(k))
        for place in range(k):
            posed = replace(problem, personalization=part.vector(place, n))
            _rank_into(
                batch, place, method, posed, 1.0 / n if start is None else start, options, machine, watch, solver
            )
        yield batch


def _rank_into(
    batch: Batch, place: int, method: Any, problem: Problem, start: Floats | float, options: Options, machine: Machine,
    watch: Watch, solver: DirectSolver,
) -> None:  # fmt: skip
    """Rank one seed of a batch individually, after the iterations that the batch has made, and write its results."""
    step, adjacency = method.prepare(problem, machine, **options.method_options), problem.adjacency
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.rounding, options.dtype, options.scale)
    made = int(batch.iterations[place])
    budget = step_budget(certificate, options) - (0 if options.max_iter is None else made)
    slow = SlowConvergence(problem, solver, made) if proves(options) and is_small(problem) else None
    outcome = Loop(certificate, options, budget, watch(options, budget), slow=slow).run(step, start)
    batch.ranks[place], batch.converged[place] = step.ranks(), outcome.converged
    batch.iterations[place], batch.error_bounds[place] = made + outcome.iterations, outcome.error_bound
