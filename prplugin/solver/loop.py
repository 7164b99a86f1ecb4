"""The iteration that solves x = G x, where G x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v.

One loop serves all methods, one ranking or many seeds, and one process or several workers. From a start x it repeats:

1. **Exact step.** Compute y = G x for all vertices, with sums in float64, and the change ||y - x|| (norms are L1).
2. **Error bound.** ||y - x*|| <= (alpha * ||y - x|| + ||e||) / (1 - alpha), with a bound of the rounding errors e of
   the step (`prplugin.solver.certificate`). It holds for every x: nothing else has to be exact.
3. **Stop** if the stopping rule is met (for ``stop="error"``: bound <= tol), if the order of the highest ranks is
   proved, or if the budget of edge passes is spent. The result is y.
4. **Accelerate.** Choose the next x. By default it is y, and the next step is called plain. If a tolerance is to be
   proved, it may be an Anderson mix of the last iterates, or the result of the fast inexact solver of the method
   (`Step.advance`, for example Gauss-Seidel sweeps in float32).

All passes over the edges count as iterations, those of `Step.advance` included. For stopping rules other than
``stop="error"``, and for ``tol=0``, the loop takes plain steps only.

**Termination.** Each plain step multiplies the error by at most alpha, so `Certificate.steps` of them prove the
tolerance, rounding aside. Acceleration ends after that many passes, and plain steps follow. A small problem that still
converges slowly is solved directly (`prplugin.solver.slow`), and the next step proves the solution.

**Stagnation at rounding level.** In exact arithmetic, consecutive plain steps have changes d_(k+1) <= alpha * d_k. The
iterates stagnate once d_(k+1) >= (1 + alpha) / 2 * d_k.

**Float32 phase.** If contributions in float32 make a step faster, and the result is float32 or an error bound is to be
proved, the iteration starts with them. The certificate of this phase counts their roundings too. Unless the stopping
rule is met before, float64 continues from the ranks of this phase when the change reaches `goal_in_float32`, or when
the iterates stagnate. A rule other than ``stop="error"`` counts as met in float32 only if its tolerance is at least
2 * noise / (1 - alpha). With rounding, d_(k+1) <= alpha * d_k + 2 * noise, so smaller changes may be rounding errors.

**Stagnation in float64.** If a tolerance is to be proved, a single ranking restarts from means of iterates
(`prplugin.solver.acceleration.MeanRestart`), which prove every tolerance that is not refused. In a batch, seeds that
stagnate end without convergence; they continue individually (`prplugin.solver.batch`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from prplugin.cpu.sums import total, totals
from prplugin.methods.base import Step, starts_in_float32
from prplugin.options import Options, proves
from prplugin.solver.acceleration import MeanRestart, Mixing
from prplugin.solver.certificate import Certificate
from prplugin.solver.slow import SlowConvergence
from prplugin.solver.stopping import goal_in_float32, goal_of, is_met, steps_left
from prplugin.solver.top_k import OrderProof
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats
from prplugin.types.order import Order

MAX_PASSES_BETWEEN_BOUNDS = 128
"""Maximum number of passes over the edges between two error bounds."""


@dataclass(slots=True)
class Outcome:
    """State of the loop, and its result. For many seeds the first four are arrays with an entry per seed.

    `live`: Whether the iteration continues.
    `converged`: Whether the stopping rule was met.
    `iterations`: Number of passes over the edges.
    `error_bound`: Proved upper bound of the L1 distance to the exact PageRank. It covers the cast to the requested
    type, and refers to ranks that sum to 1.
    `passes`: Maximum of `iterations`.
    `order`: Certified order of the highest ranks, if it was requested.
    """

    live: Any
    converged: Any
    iterations: Any
    error_bound: Any
    passes: int = 0
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """Parameters of the iteration; `run` iterates until the stopping rule is met or the budget is spent.

    `certificate`: Error bounds of steps in float64.
    `budget`: Maximum number of passes. Passes of the float32 phase count only if it is the user's `max_iter`.
    `watch`: Called after each error bound with the number of passes, the bound, and those of passes directly before.
    `order`: Ends the loop once the order of the highest ranks is proved.
    `most`: Maximum number of passes, those of the float32 phase included.
    """

    certificate: Certificate
    options: Options
    budget: int
    watch: Callable[[int, float, Sequence[float]], object]
    order: OrderProof | None = None
    slow: SlowConvergence | None = None
    most: int = sys.maxsize

    def run(self, step: Step, start: Floats | float | None) -> Outcome:
        """Iterate from `start`; afterwards `step.ranks()` returns the result.

        `start`: Ranks of sum 1; a number is the rank of every vertex. None: each seed starts at its personalization.
        """
        certificate, options, budget = self.certificate, self.options, self.budget
        live: Any = True if step.seeds is None else np.ones(step.seeds, np.bool_)
        state = Outcome(live, live & False, 0 * live, math.inf * live)
        if narrow := budget > 1 and starts_in_float32(step, options):
            step.set_contribution_dtype("float32")
        step.start(start)
        if budget == 0:
            state.error_bound = certificate.of_start(step().change)
            state.converged = (options.stop == "error") & (state.error_bound <= options.tol)
            step.start(start)
        if narrow:
            proof = certificate.for_rounding(step.rounding)
            self._until(
                step,
                state,
                proof,
                goal_in_float32(options, proof, certificate),
                min(budget - 1, self.most),
                narrow=True,
            )
            if not np.all(state.converged):
                # The float64 certificate bounds ||x|| by `_mass`; float32 rounding may have made the sum larger.
                ranks = step.ranks()
                if step.seeds is None:
                    ranks /= step.add(total(ranks))
                else:
                    xp = namespace(ranks)
                    sums = totals(ranks)
                    ranks /= xp.where(xp.asarray(state.converged) | (sums == 0), 1.0, sums)
                step.set_contribution_dtype("float64")
                step.start(ranks)
                state.live = ~np.asarray(state.converged)[()]
        if budget > 0 and (state.live if step.seeds is None else state.live.any()):
            last = budget if options.max_iter is not None else state.passes + budget
            self._until(step, state, certificate, goal_of(options, certificate), min(last, self.most))
        if self.order is not None:
            state.order = self.order.final_order(step.ranks(), certificate, state.error_bound)
        return state

    def _until(
        self, step: Step, state: Outcome, proof: Certificate, goal: float, last: int, *, narrow: bool = False
    ) -> None:
        """Iterate in one precision until no seed is live, or `last` passes have been made.

        `proof`: Error bounds of steps in this precision.
        `goal`: L1 change at which the phase is expected to end; negative if unknown.
        `narrow`: Whether this is the float32 phase.
        """
        options, alpha = self.options, proof.alpha
        mixing = Mixing(step, alpha) if proves(options) else None
        # Plain steps alone follow after this number of passes: they prove the tolerance whatever acceleration gained.
        accelerated = last if narrow or mixing is None else state.passes + proof.steps(options.tol)
        mean: MeanRestart | None = None
        before: Any = math.inf
        alone = step.seeds is None
        step.final_goal = goal
        while state.passes < last:
            aim = goal if self.order is None else max(goal, self.order.goal(proof))
            if mixing is not None and (mean is not None or state.passes >= accelerated):
                mixing = None
            step.set_live(state.live)
            most = min(MAX_PASSES_BETWEEN_BOUNDS, last - state.passes)
            passes, sums = (0, None) if mixing is None else step.advance(aim, most)
            if passes and mixing is not None:
                mixing.restart()
            if sums is None:
                before = math.inf if passes else before
                sums = step(None if mixing is None else mixing.moves)
                passes += 1
            state.passes += passes
            state.iterations = state.iterations + passes * state.live
            bound = proof.of_step(sums.change)
            state.error_bound = bound if alone else np.where(state.live, bound, state.error_bound)
            self.watch(
                state.passes,
                float(bound if alone else state.error_bound.max()),
                proof.of_step(np.array(sums.earlier)).tolist() if sums.earlier else (),
            )
            ended = is_met(options, sums, state.error_bound, proof.n)
            if self.order is not None and self.order.prove(step, proof, float(state.error_bound)):
                ended = True
            if options.stop == "error" or not narrow or goal >= 2 * proof.noise / (1 - alpha):
                state.converged = state.converged | state.live & ended
            # In exact arithmetic, the changes of consecutive plain steps satisfy d_(k+1) <= alpha * d_k. After anything
            # but a plain step `before` is infinite. Mixed steps may also grow, but for no progress in a whole call.
            stagnates = (min(sums.change, *sums.earlier) if sums.earlier else sums.change) >= (1 + alpha) / 2 * before
            if narrow:
                ended = ended | stagnates | (sums.change <= goal)
            elif not alone:
                ended = ended | stagnates
            if options.tol > 0:  # tol=0 asks for exactly `max_iter` steps, stagnation or not
                state.live = state.live & (ended ^ True)
            # The bound is that of the current ranks, so these are not accelerated after the last pass.
            if not (state.live if alone else state.live.any()) or state.passes >= last:
                return
            left = partial(steps_left, state.live, before, sums.change, aim)
            before = sums.change
            if alone and mean is None and proves(options) and (stagnates or state.passes >= 2 * accelerated):
                mean = MeanRestart(step, alpha)
            if self.slow is not None and self.slow.restart_or_warn(step, state.passes, last, float(sums.change), aim):
                accelerated_now = True
            elif mean is not None:
                accelerated_now = mean.after_step()
            else:
                accelerated_now = mixing is not None and mixing.after_step(left)
            before = (math.inf if accelerated_now else before) if alone else np.where(accelerated_now, math.inf, before)
