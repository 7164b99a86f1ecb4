"""Rankings of many seeds: seeds are iterated in batches, and an iteration reads each edge once for the whole batch.

Batches save no time in NumPy, nor for one seed in compiled kernels. Such seeds are ranked individually.

A batch runs in `prplugin.solver.loop` with one column per seed. Each seed has its own error bound, its own mixing
weights and its own last iteration; its result does not depend on the other seeds of the batch. With a proved tolerance,
the iteration of a seed starts at its personalization, which is closer to the solution than uniform ranks.

Seeds that have not converged when their batch ends, because they stagnate at rounding level, continue individually.
So do those of a small problem that converge slowly: they are solved directly, with one factorization for all seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.edges import Problem
from prplugin.graph.teleports import Seeds
from prplugin.machine import Machine
from prplugin.methods.base import Method, SeedsStep
from prplugin.options import Options
from prplugin.solver.acceleration.direct import DIRECT_AFTER, DirectSolver, SlowConvergence, is_small
from prplugin.solver.solve import WatchOf, solve
from prplugin.types.array_module import Booleans
from prplugin.types.edges import Floats, Integers

AT_A_TIME = 32
"""Seeds per `Batch` if they are ranked individually."""


class Batch(NamedTuple):
    """Results of one batch of k seeds.

    `ranks` (k x n array of float64): One row per seed. The next batch may overwrite it.
    `converged`, `iterations`, `error_bounds` (arrays of k entries): As in `prplugin.solver.loop.Outcome`.
    """

    ranks: Floats
    converged: Booleans
    iterations: Integers
    error_bounds: Floats


def batches(
    method: Method, problem: Problem, seeds: Seeds, start: Floats | None, options: Options, machine: Machine,
    watch: WatchOf,
) -> Iterator[Batch]:  # fmt: skip
    """Rank the seeds in their order; yield one `Batch` for each `SeedsStep.width` seeds.

    `problem`: Has no personalization.
    `start`: Start of every seed. If None: the personalization of the seed, or 1 / n where no error is to be proved or
    seeds are ranked one by one.
    `watch`: Called with the budget once per batch, or seed; returns the function that the loop calls.
    """
    if not hasattr(method, "batch") or seeds.count < getattr(method, "batch_from", 1):
        yield from _one_by_one(method, problem, seeds, start, options, machine, watch)
        return
    step: SeedsStep = method.batch(problem, machine, seeds.count, **options.method_options)
    n = problem.adjacency.n
    most = DIRECT_AFTER if options.rule.proves and is_small(problem) else sys.maxsize
    solver = DirectSolver()
    begin: Floats | float | None = 1.0 / n if start is None and not options.rule.proves else start
    for first in range(0, seeds.count, step.width):
        part = seeds.slice(first, min(first + step.width, seeds.count))
        step.seed(part)
        outcome = solve(step, options, n, begin, watch, most=most)
        own = slice(part.count)
        results = outcome.converged, outcome.iterations, outcome.error_bound
        batch = Batch(step.transposed(), *(np.asarray(of_seeds)[own] for of_seeds in results))
        unfinished = ~batch.converged & (options.max_iter is None or batch.iterations < options.max_iter)
        for place in np.flatnonzero(unfinished).tolist():
            posed = problem._replace(personalization=part.vector(place, n))
            begun = batch.ranks[place] / total(batch.ranks[place])
            _rank_into(batch, place, method, posed, begun, options, machine, lambda *_: lambda *_: None, solver)
        yield batch


def _one_by_one(
    method: Method, problem: Problem, seeds: Seeds, start: Floats | None, options: Options, machine: Machine,
    watch: WatchOf,
) -> Iterator[Batch]:  # fmt: skip
    """Rank each seed individually; yield one `Batch` for each `AT_A_TIME` seeds."""
    n, solver = problem.adjacency.n, DirectSolver()
    for first in range(0, seeds.count, AT_A_TIME):
        part = seeds.slice(first, min(first + AT_A_TIME, seeds.count)).on("host")
        k = part.count
        batch = Batch(np.empty((k, n)), np.zeros(k, np.bool_), np.zeros(k, np.int64), np.zeros(k))
        for place in range(k):
            posed = problem._replace(personalization=part.vector(place, n))
            _rank_into(
                batch, place, method, posed, 1.0 / n if start is None else start, options, machine, watch, solver
            )
        yield batch


def _rank_into(
    batch: Batch, place: int, method: Method, problem: Problem, start: Floats | float, options: Options,
    machine: Machine, watch: WatchOf, solver: DirectSolver,
) -> None:  # fmt: skip
    """Rank one seed of a batch individually, after the iterations that the batch has made, and write its results."""
    step, adjacency = method.prepare(problem, machine, **options.method_options), problem.adjacency
    made = int(batch.iterations[place])
    slow = partial(SlowConvergence, problem, solver, made) if options.rule.proves and is_small(problem) else None
    outcome = solve(step, options, adjacency.n, start, watch, slow=slow, made=made)
    batch.ranks[place], batch.converged[place] = step.ranks(), outcome.converged
    batch.iterations[place], batch.error_bounds[place] = made + outcome.iterations, outcome.error_bound
