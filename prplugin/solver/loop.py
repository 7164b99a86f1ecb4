"""The iteration that solves x = G x, where G x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v.

From a start x it repeats:

1. **Propose.** x is the last y, or what a strategy proposes if a tolerance is to be proved: an Anderson mix of the last
   iterates, the result of the method's own inexact iterations, a direct solution (`prplugin.solver.acceleration`).
2. **Exact step.** Compute y = G x for all vertices, with sums in float64, and the change ||y - x|| (norms are L1).
3. **Error bound.** ||y - x*|| <= (alpha * ||y - x|| + ||e||) / (1 - alpha), with a bound of the rounding errors e of
   the step (`prplugin.solver.certificate`). It holds for every x: nothing else has to be exact.
4. **Stop** if the stopping rule is met (for ``stop="error"``: bound <= tol), if the order of the highest ranks is
   proved, or if the budget of edge passes is spent. The result is y.

All passes over the edges count as iterations, those of proposals included. `iterate` is the loop of one vector, and
`iterate_batch` that of many seeds, whose vectors are columns. Workers of a cluster run the same loops over the vertices
that they own. `prplugin.solver.solve` begins them.

**Termination.** Each plain step multiplies the error by at most alpha, so `Certificate.steps` of them prove the
tolerance, rounding aside. Strategies propose nothing after that many passes, and plain steps follow.

**Stagnation at rounding level.** In exact arithmetic, consecutive plain steps have changes d_(k+1) <= alpha * d_k. The
iterates stagnate once d_(k+1) >= (1 + alpha) / 2 * d_k. In float32 float64 follows; seeds of a batch then end without
convergence, and continue individually (`prplugin.solver.batch`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from prplugin.methods.base import Passes, Step, Sums
from prplugin.solver.certificate import Certificate
from prplugin.solver.top_k import OrderProof
from prplugin.stopping import Norm, Rule, Verdict
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import Array
from prplugin.types.records import Order

BoundWatch: TypeAlias = Callable[[int, float, Sequence[float]], object]
"""Called after each error bound with the number of passes, the bound, and those of the passes directly before."""


class Now(NamedTuple):
    """State of the loop before a step. For many seeds, the changes are arrays with an entry per seed."""

    passes: int  # over the edges, so far
    last: int  # number of passes after which the phase ends
    goal: float  # L1 change at which the phase is expected to end; negative if unknown
    live: Verdict  # whether the iteration continues
    change: Norm  # L1 change of the last step; infinite before the first
    before: Norm  # that of the step before, or infinite if another iterate was proposed in between


class Proposal(NamedTuple):
    """The step holds another iterate than the last one."""

    passes: Passes = 0  # over the edges that this took; many seeds: one number, or one per seed
    sums: Sums | None = None  # measurements of the last of them, if that was a plain step
    moved: Verdict = True  # for many seeds: which seeds have another iterate


class Strategy(Protocol):
    """Proposes iterates. What it proposes needs no proof: the next step proves whatever it starts from."""

    def propose(self, step: Step, now: Now) -> Proposal | None:
        """Replace the iterate of the step by one nearer to the solution; return None if it stays.

        Called before every step.
        """

    def moves(self, step: Step) -> Array | None:
        """Return the array that receives y - x of the next step, which the strategy needs, or None."""
        return None

    def forget(self) -> None:
        """Discard what is known of earlier iterates: another strategy has replaced the last one."""
        return


@dataclass(slots=True, eq=False, repr=False)
class Outcome:
    """State of the loop, and its result. For many seeds the first four are arrays with an entry per seed.

    `live`: Whether the iteration continues.
    `converged`: Whether the stopping rule was met.
    `iterations`: Number of passes over the edges.
    `error_bound`: Proved upper bound of the L1 distance to the exact PageRank. It covers the cast to the requested
    type, and refers to ranks that sum to 1.
    `passes`: Maximum of `iterations`.
    `order`: Certified order of the highest ranks, if it was requested.
    `notes`: Lines of the method for `Ranking.explain`.
    """

    live: Verdict
    converged: Verdict
    iterations: Passes
    error_bound: Norm
    passes: int = 0
    order: Order | None = None
    notes: tuple[str, ...] = ()


class Phase(NamedTuple):
    """Iterations in one precision.

    `proof`: Error bounds of steps in this precision.
    `strategies`: What may propose iterates, in order.
    `goal`: L1 change at which the phase is expected to end; negative if unknown.
    `last`: Number of passes after which it ends.
    `narrow`: Whether float64 follows.
    """

    rule: Rule
    proof: Certificate
    strategies: Sequence[Strategy]
    goal: float
    last: int
    narrow: bool

    @property
    def may_converge(self) -> bool:
        """Return whether the stopping rule counts as met in this precision.

        With rounding, d_(k+1) <= alpha * d_k + 2 * noise. In float32, changes below 2 * noise / (1 - alpha) may be
        rounding errors, and only an error bound is proved.
        """
        return self.rule.proves or not self.narrow or self.goal >= 2 * self.proof.noise / (1 - self.proof.alpha)

    def stagnates(self, sums: Sums, before: Norm) -> Verdict:
        """Return whether the changes of plain steps do not shrink; for a call of many steps, its least change."""
        least = min(float(sums.change), *sums.earlier) if sums.earlier else sums.change
        return least >= (1 + self.proof.alpha) / 2 * before

    def proposal(self, step: Step, now: Now) -> Proposal | None:
        """Return the proposal of the first strategy that has one."""
        for strategy in self.strategies:
            if (found := strategy.propose(step, now)) is not None:
                for other in self.strategies:
                    if other is not strategy:
                        other.forget()
                return found
        return None

    def step(self, step: Step, proposed: Proposal | None) -> tuple[Passes, Sums]:
        """Return the passes of the proposal and of the exact step after it, and the measurements of that step."""
        if proposed is not None and proposed.sums is not None:
            return proposed.passes, proposed.sums
        moves = next((moves for strategy in self.strategies if (moves := strategy.moves(step)) is not None), None)
        return (0 if proposed is None else proposed.passes) + 1, step(moves)


def iterate(step: Step, phase: Phase, state: Outcome, watch: BoundWatch, order: OrderProof | None) -> None:
    """Iterate one vector until the stopping rule is met, the order is proved, or the passes of the phase are spent."""
    rule, proof = phase.rule, phase.proof
    change = before = math.inf
    while state.live and state.passes < phase.last:
        goal = phase.goal if order is None else max(phase.goal, order.goal(proof))
        proposed = phase.proposal(step, Now(state.passes, phase.last, goal, True, change, before))
        before = change if proposed is None or proposed.sums is not None else math.inf
        passes, sums = phase.step(step, proposed)
        change = float(sums.change)
        state.passes = state.iterations = state.passes + int(passes)
        state.error_bound = bound = proof.of_step(change)
        watch(state.passes, bound, proof.of_step(np.array(sums.earlier)).tolist() if sums.earlier else ())
        ended = bool(rule.met(sums, bound, proof.n))
        if order is not None and order.prove(step, proof, bound):
            ended = True
        state.converged = ended and phase.may_converge
        if phase.narrow:
            ended = ended or change <= phase.goal or bool(phase.stagnates(sums, before))
        state.live = not (ended and rule.ends)


def iterate_batch(step: Step, phase: Phase, state: Outcome, watch: BoundWatch) -> None:
    """Iterate many seeds, each until the stopping rule is met or it stagnates, or the passes of the phase are spent."""
    rule, proof = phase.rule, phase.proof
    change: Norm = math.inf
    before: Norm = math.inf
    live: Booleans = np.asarray(state.live)
    while live.any() and state.passes < phase.last:
        step.set_live(live)
        proposed = phase.proposal(step, Now(state.passes, phase.last, phase.goal, live, change, before))
        before = change if proposed is None else np.where(proposed.moved, math.inf, change)
        passes, sums = phase.step(step, proposed)
        change = sums.change
        state.passes += int(np.max(passes))
        state.iterations = state.iterations + passes * live
        state.error_bound = np.where(live, proof.of_step(change), state.error_bound)
        watch(state.passes, float(np.max(state.error_bound)), ())
        ended: Booleans = np.asarray(rule.met(sums, state.error_bound, proof.n))
        if phase.may_converge:
            state.converged = state.converged | live & ended
        ended = ended | phase.stagnates(sums, before) | (phase.narrow & (change <= phase.goal))
        if rule.ends:
            state.live = live = live & ~ended
