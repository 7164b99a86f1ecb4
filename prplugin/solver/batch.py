"""Many seeds at once: each edge is read once for a batch of them. The loop of a batch, which knows no method.

Every seed goes its own way, as if it were alone: it has its own proof, and ends by itself; what it comes to does not
depend on the seeds beside it. Plain steps are all that a batch takes, in float32 first where that is faster, as in
`prplugin.solver.loop`. A seed that is to be proved begins at its personalization, where most of its ranks will be: its
iterates never leave what can be reached from there, and a start elsewhere first has to.

A seed that plain steps do not bring to the tolerance, though it can be proved, stands still in rounding (see
`prplugin.solver.loop`): it goes on alone after its batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.problem import Problem, Seeds
from prplugin.machine import Machine
from prplugin.methods.base import BatchEnding, BatchState, BatchStep, ForesightBatch, NarrowingBatch
from prplugin.options import Options, allows_float32
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Outcome, goal_in_float32, iterate, step_budget, threshold
from prplugin.types.edges import Floats

__all__ = ["Batch", "batches"]

BIG = float(np.finfo(np.float64).max)
"""More than any change."""

LEAST, SHARE = 10, 4
"""Passes over the edges that a leap may take, however few steps are needed; and what part of the steps that the
contraction needs: a seed that takes more goes on alone, where extrapolation helps."""


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
        Not given: each seed's own personalization, or 1 / n where the k-th iterate is asked for.
    watch : function
        Given tolerance and budget, gives what is called with steps taken and bound, anew for each batch.
    """
    step: BatchStep = method.batch(problem, machine, seeds.count, **options.method_options)
    adjacency = problem.adjacency
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.chain, options.dtype, options.scale)
    loop = _Loop(step, certificate, options, step_budget(certificate, options))
    tol = options.tol if options.stop == "error" else 0.0
    begin: Floats | float | None = 1.0 / adjacency.n if start is None and tol == 0 else start
    alone = _alone(method, problem, machine, options)
    for first in range(0, seeds.count, step.width):
        part = seeds.part(first, min(first + step.width, seeds.count))
        batch, left = loop.rank(part, begin, watch(tol, loop.budget))
        for place in np.flatnonzero(left).tolist():
            so_far, spent = batch.ranks[place], int(batch.iterations[place])
            outcome = alone(part.vector(place, adjacency.n), so_far / total(so_far), spent)
            batch.ranks[place] = outcome.ranks
            batch.converged[place], batch.iterations[place] = outcome.converged, spent + outcome.iterations
            batch.error_bounds[place] = outcome.error_bound
        yield batch


def _alone(
    method: Any, problem: Problem, machine: Machine, options: Options
) -> Callable[[Floats, Floats, int], Outcome]:
    """Give what ranks one seed, from where it has come to in so many steps."""

    def rank(personalization: Floats, start: Floats, spent: int) -> Outcome:
        posed = Problem(problem.adjacency, problem.alpha, personalization, problem.dangling)
        step = method.prepare(posed, machine, **options.method_options)
        adjacency = problem.adjacency
        certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.chain, options.dtype, options.scale)
        budget = step_budget(certificate, options) - (0 if options.max_iter is None else spent)
        return iterate(step, start, certificate, options, budget, lambda *_: None)

    return rank


@dataclass(frozen=True, slots=True)
class _Loop:
    """Steps of a batch until each seed has met the rule, or the budget is spent."""

    step: BatchStep
    certificate: Certificate
    options: Options
    budget: int

    def rank(
        self, seeds: Seeds, start: Floats | float | None, watch: Callable[[int, float], None]
    ) -> tuple[Batch, Any]:
        """Rank some seeds; also say which are to go on alone."""
        options, step, count = self.options, self.step, seeds.count
        met, iterations, bounds = np.zeros(count, np.bool_), np.zeros(count, np.int64), np.full(count, math.inf)
        if self.budget == 0:
            step.start(seeds, start)
            return Batch(step.ranks(), met, iterations, bounds), ~met
        if self._proves and options.max_iter is None and isinstance(step, ForesightBatch) and step.foresees():
            return self._leaping(step, seeds, start, watch)
        narrowing = step if isinstance(step, NarrowingBatch) else None
        if narrowing and allows_float32(options) and options.max_iter is None:
            narrowing.contribute_in("float32")
            narrowing.start(seeds, start)
            rough = self.certificate.for_chain(narrowing.chain)
            goal = self._goal(rough)
            if self._proves:
                goal = goal_in_float32(goal, rough, self.certificate, options.tol)
            iterations, bounds, met = self._taken(
                BatchEnding(goal, (1 + rough.alpha) / 2, options.stop == "vertex"), self.budget, rough, watch
            )
            # As alone: without a proof, iterates in float32 may stand still where exact steps would not.
            met &= options.stop == "error"
        if not met.all():
            if narrowing:
                narrowing.contribute_in("float64")
            if narrowing and iterations.any():
                narrowing.resume(~met)
            else:
                step.start(seeds, start)
            ending = BatchEnding(self._goal(self.certificate), by_largest=options.stop == "vertex")
            most = min(self.budget, self.certificate.steps(options.tol)) if self._proves else self.budget
            further, of_these, are_met = self._taken(ending, most, self.certificate, watch)
            iterations, bounds = iterations + np.where(met, 0, further), np.where(met, bounds, of_these)
            met = met | are_met
            alone = ~met if self._proves and self.budget > most else np.zeros(count, np.bool_)
        else:
            alone = ~met
        return Batch(step.ranks(), met, iterations, bounds), alone

    def _leaping(
        self, step: ForesightBatch, seeds: Seeds, start: Floats | float | None, watch: Callable[[int, float], None]
    ) -> tuple[Batch, Any]:
        """Go by leaps, each proved by a step, as long as they count: those that bring a change down by alpha."""
        goal, count = self._goal(self.certificate), seeds.count
        limit = max(LEAST, self.certificate.steps(self.options.tol) // SHARE)
        iterations, before = np.zeros(count, np.int64), np.full(count, BIG)
        step.start(seeds, start)
        going = np.ones(count, np.bool_)
        passes = step.leap(going, goal, limit) if start is None else np.zeros(count, np.int64)
        while True:
            iterations += passes
            state = step.until(1, BatchEnding(goal))
            iterations += going
            bounds = np.array([self.certificate.of_step(change) for change in state.change.tolist()])
            watch(int(iterations.max()), float(bounds.max()))
            going &= (state.change > goal) & (state.change <= self.certificate.alpha * before) & (passes < limit)
            if not going.any():
                break
            before = state.change
            passes = step.leap(going, goal, limit)
        met = bounds <= self.options.tol
        return Batch(step.ranks(), met, iterations, bounds), ~met

    @property
    def _proves(self) -> bool:
        return self.options.stop == "error" and self.options.tol > 0

    def _goal(self, certificate: Certificate) -> float:
        """Give what a seed's last step may change, or for `stop="vertex"` change in one vertex; below 0: nothing."""
        tol = self.options.tol
        if tol == 0:
            return -1.0
        if self.options.stop != "error":
            return threshold(self.options, certificate.n)
        goal = certificate.change_for(tol)
        while 0 < goal < math.inf and certificate.of_step(goal) > tol:
            goal *= 1 - 2.0**-40
        return goal

    def _taken(
        self, ending: BatchEnding, most: int, certificate: Certificate, watch: Callable[[int, float], None]
    ) -> tuple[Any, Floats, Any]:
        """Iterate until all have ended; give the steps of each, its bound, and whether it has met the rule."""
        taken, ahead = 0, most if self.options.tol == 0 else 1
        while taken < most:
            state = self.step.until(ahead, ending)
            taken += ahead
            begun = state.steps > 0
            bounds = np.full(begun.size, math.inf)
            bounds[begun] = [certificate.of_step(change) for change in state.change[begun].tolist()]
            watch(taken, float(bounds[begun].max()))
            going = begun & ~state.ended(ending)
            if not going.any():
                break
            # As many at once as are sure to be needed, or nearly: half of those left to the last of all.
            ahead = min(max(1, int(_left(state, ending)[going].max() / 2)), most - taken)
        if self.options.stop == "error":
            return state.steps, bounds, bounds <= self.options.tol
        value = state.largest if ending.by_largest else state.change
        return state.steps, bounds, value <= threshold(self.options, certificate.n)


def _left(state: BatchState, ending: BatchEnding) -> Floats:
    """Give how many steps each seed is away from its goal, at the pace at which its change falls; 0 if none is seen."""
    value = state.largest if ending.by_largest else state.change
    with np.errstate(all="ignore"):
        left: Floats = np.log(ending.goal / value) / np.log(state.change / state.before)
    return np.where((state.change < state.before) & (ending.goal > 0) & np.isfinite(left), np.maximum(left, 0.0), 0.0)
