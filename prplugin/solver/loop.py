"""The one loop: step, prove, stop or accelerate. It knows no method, and takes one ranking as it takes many seeds.

A step replaces x by y = G x, and only what it measures proves anything: `prplugin.solver.certificate`. Between steps a
method may get nearer to the solution in its own fast way (`Step.advance`); else iterates are mixed
(`prplugin.solver.acceleration`). All passes over the edges count as iterations. Rules of which nothing is proved, and
tol=0, take plain steps.

**Float32 first.** A step that is faster with contributions in float32 begins so, where the ranks are wanted in float32
or their error is to be proved, under a certificate that counts those roundings too. A plain step after a plain step
brings ||y - x|| down by alpha at least. Once one does not bring it below (1 + alpha) / 2 of what it was, iterates
stagnate at rounding level, and float64 takes over; so it does where a rule is met that no proof stands behind, if its
tolerance is so small that iterates in float32 may stagnate below it: at 2 * noise / (1 - alpha) at most, for a step
changes alpha times what the last one did, and twice the noise.

**Stagnation in float64.** One ranking then goes on from means of iterates: `prplugin.solver.acceleration.Mean`. Of many
seeds, those that stagnate end there, not converged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from prplugin.cpu.sums import total, totals
from prplugin.methods.base import Step, begins_in_float32
from prplugin.options import Options, proves
from prplugin.solver.acceleration import Mean, Mixing
from prplugin.solver.certificate import Certificate
from prplugin.solver.slow import Patience
from prplugin.solver.stopping import goal_in_float32, goal_of, is_met, steps_left
from prplugin.solver.top_k import OrderProof
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats
from prplugin.types.order import Order

__all__ = ["Loop", "Outcome"]

MOST = 128
"""Passes over the edges from one proof to the next, at most."""


@dataclass(slots=True)
class Outcome:
    """Where the loop has come to; all but `passes` and `order` are arrays with an entry per seed if there are many.

    Attributes
    ----------
    live : bool
        Whether it goes on.
    converged : bool
        Whether the stopping rule was met.
    iterations : int
        Passes over the edges.
    error_bound : float
        Proved: the L1 distance of the ranks, scaled and cast as asked, to the exact PageRank is no more.
    passes : int
        The greatest of `iterations`.
    order : Order, optional
        Of the highest ranks, if it was to be certified.
    """

    live: Any
    converged: Any
    iterations: Any
    error_bound: Any
    passes: int = 0
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps from a start until the stopping rule is met, or the budget spent.

    Attributes
    ----------
    certificate : Certificate
        Of steps in float64.
    budget : int
        Passes over the edges at most, without those in float32 unless it is the user's `max_iter`.
    watch : function
        Called after each proof with the count of passes and the error bound.
    order : OrderProof, optional
        Ends the loop once the order of the highest ranks is proved.
    patience : Patience, optional
        What is done about very slow convergence.
    """

    certificate: Certificate
    options: Options
    budget: int
    watch: Callable[[int, float], object]
    order: OrderProof | None = None
    patience: Patience | None = None

    def run(self, step: Step, start: Floats | float | None) -> Outcome:
        """Iterate; the ranks are left in the step.

        Parameters
        ----------
        start : array of n float64, of sum 1, or 1 / n for all
        """
        certificate, options, budget = self.certificate, self.options, self.budget
        live: Any = True if step.seeds is None else np.ones(step.seeds, np.bool_)
        state = Outcome(live, live & False, 0 * live, math.inf * live)
        if narrow := budget > 1 and begins_in_float32(step, options):
            step.contribute_in("float32")
        step.start(start)
        if budget == 0:
            state.error_bound = certificate.of_start(step().change)
            state.converged = (options.stop == "error") & (state.error_bound <= options.tol)
            step.start(start)
        if narrow:
            proof = certificate.for_rounding(step.rounding)
            self._until(step, state, proof, goal_in_float32(options, proof, certificate), budget - 1, narrow=True)
            if not np.all(state.converged):
                # Roundings to float32 may have brought the sum past what the certificate of float64 allows for.
                ranks = step.ranks()
                if step.seeds is None:
                    ranks /= step.add(total(ranks))
                else:
                    xp = namespace(ranks)
                    sums = totals(ranks)
                    ranks /= xp.where(xp.asarray(state.converged) | (sums == 0), 1.0, sums)
                step.contribute_in("float64")
                step.start(ranks)
                state.live = ~np.asarray(state.converged)[()]
        if np.any(state.live) and budget > 0:
            last = budget if options.max_iter is not None else state.passes + budget
            self._until(step, state, certificate, goal_of(options, certificate), last)
        if self.order is not None:
            state.order = self.order.last(step.ranks(), certificate, state.error_bound)
        return state

    def _until(
        self, step: Step, state: Outcome, proof: Certificate, goal: float, last: int, *, narrow: bool = False
    ) -> None:
        """Step, prove, stop or accelerate, until nothing is live or `last` passes are taken."""
        options, alpha = self.options, proof.alpha
        mixing = Mixing(step, alpha) if proves(options) else None
        # Whatever comes of acceleration, plain steps after so many passes prove the tolerance.
        accelerated = last if narrow or mixing is None else state.passes + proof.steps(options.tol)
        mean: Mean | None = None
        before: Any = math.inf
        while np.any(state.live) and state.passes < last:
            aim = goal if self.order is None else max(goal, self.order.goal(proof))
            if mixing is not None and (mean is not None or state.passes >= accelerated):
                mixing = None
            step.keep(state.live)
            passes, sums = (0, None) if mixing is None else step.advance(aim, min(MOST, last - state.passes))
            if passes and mixing is not None:
                mixing.restart()
            if sums is None:
                before = math.inf if passes else before
                sums = step(None if mixing is None else mixing.moves)
                passes += 1
            state.passes += passes
            state.iterations = state.iterations + passes * state.live
            state.error_bound = np.where(state.live, proof.of_step(sums.change), state.error_bound)[()]
            self.watch(state.passes, float(np.max(state.error_bound)))
            ended = is_met(options, sums, state.error_bound, proof.n)
            if self.order is not None and self.order.prove(step, proof, float(state.error_bound)):
                ended = True
            if options.stop == "error" or not narrow or goal >= 2 * proof.noise / (1 - alpha):
                state.converged = state.converged | state.live & ended
            # A plain step after a plain step shrinks the change by alpha, but for rounding.
            stagnates = sums.change >= (1 + alpha) / 2 * before
            if narrow:
                ended = ended | stagnates | (sums.change <= goal)
            elif step.seeds is not None:
                ended = ended | stagnates
            if options.tol > 0:  # else the k-th iterate is asked for, also of iterates that stagnate
                state.live = state.live & ~np.asarray(ended)[()]
            if not np.any(state.live):
                return
            # A seed is mixed whatever is left of it: by this it is the same beside any others.
            alone = step.seeds is None
            left = (
                partial(steps_left, before, sums.change, aim) if alone else partial(np.where, state.live, math.inf, 0)
            )
            before = sums.change
            if alone and mean is None and proves(options) and (stagnates or state.passes >= 2 * accelerated):
                mean = Mean(step, alpha)
            if self.patience is not None and self.patience.solves(step, state.passes, last, float(sums.change), aim):
                accelerated_now = True
            elif mean is not None:
                accelerated_now = mean.after_step()
            else:
                accelerated_now = mixing is not None and mixing.after_step(left)
            before = math.inf if accelerated_now else before
