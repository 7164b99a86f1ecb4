"""Solve one ranking, or a batch of seeds: the entry for frames, prepared graphs, updated graphs, seeds and workers.

**Float32 phase.** If contributions in float32 make a step faster, and the result is float32 or an error bound is to be
proved, the iteration starts with them. The certificate of this phase counts their roundings too. Unless the stopping
rule is met before, float64 continues from the ranks of this phase when the change reaches `Rule.goal_in_float32`, or
when the iterates stagnate.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias, cast

import numpy as np

from prplugin.cpu.sums import total, totals
from prplugin.graph.edges import PartOfProblem, Problem
from prplugin.machine import Machine
from prplugin.methods.base import Method, Step
from prplugin.options import Options
from prplugin.progress import Watch
from prplugin.solver.acceleration.anderson import AndersonMixing
from prplugin.solver.acceleration.direct import WARN_PASSES, SlowConvergence
from prplugin.solver.certificate import Certificate, certificate_of
from prplugin.solver.groups import GroupProof
from prplugin.solver.loop import BoundWatch, Now, Outcome, Phase, Proposal, Strategy, iterate, iterate_batch
from prplugin.solver.top_k import NO_ORDER, OrderProof
from prplugin.stopping import Rule
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats

MAX_PASSES = 128
"""Maximum number of passes over the edges between two error bounds."""

WatchOf: TypeAlias = Callable[[Options, int], BoundWatch]
"""Returns, for a maximum number of passes, the function that the loop calls."""


class OwnIterations(Strategy):
    """Lets the method make many passes in one call, as it can: see `prplugin.methods.base.Step.advance`.

    `until`: Number of passes from which on it proposes nothing.
    `plain`: Whether only plain steps are allowed, for rules about the change of one: see `Step.repeat`.
    """

    def __init__(self, until: int, *, plain: bool = False) -> None:
        self._until, self._plain = until, plain

    def propose(self, step: Step, now: Now) -> Proposal | None:
        """Make up to `MAX_PASSES` passes by the method itself."""
        if now.passes >= self._until:
            return None
        iterate = step.repeat if self._plain else step.advance
        passes, sums = iterate(now.goal, min(MAX_PASSES, now.last - now.passes, self._until - now.passes))
        made = passes > 0 if isinstance(passes, int) else passes.any()  # `np.any` of a number takes 8 us
        return Proposal(passes, sums) if made else None


def solve_by(
    method: Method, problem: Problem, options: Options, machine: Machine, watch: Watch, start: Floats | None, *,
    closer: float = math.inf, order: OrderProof | None = None, groups: GroupProof | None = None, lasting: bool = False,
) -> tuple[Floats, Outcome]:  # fmt: skip
    """Prepare a method and iterate; return ranks and outcome. All other memory is freed on return, and on errors.

    `start`: Ranks of sum 1; None: 1/n each. `groups`: Proves the ranks of each group; the ranks returned have sum 1.
    `lasting`: Whether the graph keeps the step, if it is reusable, for the next ranking.
    The other parameters are those of `solve`.
    """
    adjacency = problem.adjacency
    if adjacency.n == 0:
        return adjacency.out_weight, Outcome(False, True, 0, 0.0, order=None if order is None else NO_ORDER)
    if groups is not None and (parts := groups.parts(adjacency)):
        return _solve_each(method, problem, options, machine, watch, start, groups, parts)
    adjacency.keep_only(getattr(method, "reads", ()))
    step = None if options.method_options else adjacency.take_step(method.name)
    if step is None:
        step = method.prepare(problem, machine, **options.method_options)
    else:
        step.reuse(problem)
    step.every_pass = watch.report is not None
    # Where any start will do: the bound is proved, and nobody asks for a number of iterations or for other teleports.
    step.free_start = options.rule.proves and options.max_iter is None and problem.personalization is None
    # tol=0 asks for exactly `max_iter` plain steps. Only a proved error bound allows a direct solution as an iterate.
    slow = partial(SlowConvergence, problem if options.rule.proves else None) if options.rule.ends else None
    run = partial(solve, step, n=adjacency.n, watch=watch.iterations, order=order, slow=slow, closer=closer)
    begin: Floats | float = 1.0 / adjacency.n if start is None else start
    if groups is None:
        outcome = run(options, start=begin)
    else:
        step.start(begin)
        every = groups.begin(step)
        provable = certificate_of(every.alpha, adjacency.n, step.rounding, every.dtype, every.scale).provable
        outcome = run(every, start=begin)

        def again(how: Options, made: int) -> Outcome:
            return run(how, start=step.ranks().copy(), made=made, watch=partial(watch.iterations, made=made))

        groups.settle(step, outcome, provable, again)
        watch.iterations(options, 0)(int(outcome.iterations), float(outcome.error_bound), ())
    outcome.notes, ranks = step.notes, step.ranks()
    if lasting and step.reusable and not options.method_options and step.rest():
        adjacency.keep_step(method.name, step)
    return ranks, outcome


def _solve_each(
    method: Method, problem: Problem, options: Options, machine: Machine, watch: Watch, start: Floats | None,
    groups: GroupProof, parts: list[tuple[int, int]],
) -> tuple[Floats, Outcome]:  # fmt: skip
    """Rank each group by itself; the ranks of each have sum 1."""
    ranks, outcomes = np.empty(problem.adjacency.n), []
    for first, past in parts:
        v, begin = (
            None if given is None or not (own := given[first:past]).any() else own / total(own)
            for given in (problem.personalization, start)
        )
        posed = (Problem if v is None else PartOfProblem)(problem.adjacency.part(first, past), problem.alpha, v)
        ranks[first:past], outcome = solve_by(method, posed, options, machine, watch, begin)
        outcomes.append(outcome)
        watch.made += int(outcome.iterations)
    return ranks, groups.settle_alone(outcomes)


def solve(
    step: Step, options: Options, n: int, start: Floats | float | None, watch: WatchOf, *,
    order: OrderProof | None = None, slow: Callable[[], Strategy] | None = None, closer: float = math.inf,
    made: int = 0, most: int = sys.maxsize,
) -> Outcome:  # fmt: skip
    """Iterate from `start` until the stopping rule is met or the budget is spent; `step.ranks()` has the result.

    Raises InvalidOptionError if the tolerance is not provable.

    `n`: Number of vertices of the whole graph.
    `start`: Ranks of sum 1; a number is the rank of every vertex. None: each seed starts at its personalization.
    `watch`: Called with the options and the budget; what it returns is called after each error bound.
    `order`: Ends the iteration once the order of the highest ranks is proved.
    `slow`: Returns the strategy that reacts to slow convergence, which needs more than `WARN_PASSES` passes in all.
    `closer`: Tolerance used instead of ``options.tol`` if it is smaller, and rounding permits a bound below it.
    `made`: Number of passes that were made before, which count towards ``options.max_iter`` and other limits.
    `most`: Maximum number of passes, those of the float32 phase included.
    """
    if step.rounding.single:  # an earlier batch of seeds ended in float32
        step.set_contribution_dtype("float64")
    certificate = certificate_of(options.alpha, n, step.rounding, options.dtype, options.scale)
    if options.tol > closer > certificate.provable:
        options = replace(options, tol=closer)
    rule = options.rule
    counts = not rule.proves or options.max_iter is not None
    budget = allowed = rule.budget(certificate, options.max_iter, options.dtype) - counts * made
    if step.seeds is None:
        state = Outcome(True, False, 0, math.inf)
    else:
        every = np.ones(step.seeds, np.bool_)
        state = Outcome(every, ~every, 0 * every, np.full(step.seeds, math.inf))
        # Seeds that stagnate are ranked individually, rather than by plain steps of the whole batch.
        budget = min(budget, certificate.steps(rule.tol)) if rule.proves else budget
    reactions = [slow()] if slow is not None and made + budget > WARN_PASSES else []
    on_bound = watch(options, allowed)

    def run(proof: Certificate, goal: float, last: int, *, narrow: bool) -> None:
        strategies = list(reactions)
        if rule.proves:
            until = last if narrow else state.passes + proof.steps(rule.tol)
            strategies.append(OwnIterations(until))
            strategies += [AndersonMixing(proof.alpha, step.seeds, until)] if step.keeps_history else []
        elif rule.repeats and not narrow:
            strategies.append(OwnIterations(last, plain=True))
        phase = Phase(rule, proof, strategies, goal, min(last, most), narrow)
        if step.seeds is None:
            iterate(step, phase, state, on_bound, order)
        else:
            iterate_batch(step, phase, state, on_bound)

    narrow = budget > 1 and step.float32_is_faster and rule.allows_float32(options.dtype)
    if narrow:
        step.set_contribution_dtype("float32")
    step.start(cast("Floats | float", start))  # None is for the steps of seeds alone
    if budget == 0:
        state.error_bound = certificate.of_start(step().change)
        state.converged = rule.met_by_start(state.error_bound)
        step.start(cast("Floats | float", start))
    elif not rule.proves:
        # Roundings in float32 may keep changes above those of exact steps, which the budget is for.
        _follow(step, state, rule, certificate, budget if options.max_iter is not None else 2 * budget, on_bound)
    if narrow:
        proof = certificate.for_rounding(step.rounding)
        run(proof, rule.goal_in_float32(proof, certificate, step.least_float32_goal), budget - 1, narrow=True)
        if not np.all(state.converged):
            _continue_in_float64(step, state)
    last = budget if options.max_iter is not None else state.passes + budget
    run(certificate, rule.goal(certificate), last, narrow=False)
    if order is not None:
        state.order = order.final_order(step.ranks(), certificate, float(state.error_bound))
    return state


def _follow(
    step: Step, state: Outcome, rule: Rule, certificate: Certificate, budget: int, on_bound: BoundWatch
) -> None:
    """Iterate by the step's inexact form, if it has one, until its own changes meet the rule.

    The exact step after it proves the bound of the ranks before that step, which are the result.
    """
    met = partial(rule.met, bound=math.inf, n=certificate.n)
    if (found := step.follow(lambda sums: rule.ends and met(sums), budget, rule.least_move)) is None:
        return
    state.live, (state.passes, state.converged), ranks = False, found, step.ranks().copy()
    bound = certificate.of_start(float(step().change))
    state.iterations, state.error_bound = state.passes, bound
    step.start(ranks)
    on_bound(state.passes, bound, ())


def _continue_in_float64(step: Step, state: Outcome) -> None:
    """Start from the ranks of the float32 phase, with sum 1: rounding in float32 may have made it larger."""
    ranks = step.ranks()
    if step.seeds is None:
        ranks /= step.add(total(ranks))
        state.live = True
    else:
        xp, sums = namespace(ranks), totals(ranks)
        ranks /= xp.where(xp.asarray(state.converged) | (sums == 0), 1.0, sums)
        state.live = ~np.asarray(state.converged)
    step.set_contribution_dtype("float64")
    step.start(ranks)
