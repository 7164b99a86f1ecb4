"""Protocol of the strategies, and the one that leaves the acceleration to the method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from prplugin.methods.base import Step, Sums

MAX_PASSES = 128
"""Maximum number of passes over the edges between two error bounds."""


class Now(NamedTuple):
    """State of the loop before a step. For many seeds, the changes are arrays with an entry per seed."""

    passes: int  # over the edges, so far
    last: int  # number of passes after which the phase ends
    goal: float  # L1 change at which the phase is expected to end; negative if unknown
    live: Any  # whether the iteration continues
    change: Any  # L1 change of the last step; infinite before the first
    before: Any  # that of the step before, or infinite if another iterate was proposed in between


class Proposal(NamedTuple):
    """The step holds another iterate than the last one."""

    passes: Any = 0  # over the edges that this took; many seeds: one number, or one per seed
    sums: Sums | None = None  # measurements of the last of them, if that was a plain step
    moved: Any = True  # for many seeds: which seeds have another iterate


class Strategy(Protocol):
    """Proposes iterates. What it proposes needs no proof: the next step proves whatever it starts from."""

    def propose(self, step: Step, now: Now) -> Proposal | None:
        """Replace the iterate of the step by one nearer to the solution; return None if it stays.

        Called before every step.
        """

    def moves(self, step: Step) -> Any:
        """Return the array that receives y - x of the next step, or None."""
        return None

    def forget(self) -> None:
        """Discard what is known of earlier iterates: another strategy has replaced the last one."""
        return


def proposal(strategies: Sequence[Strategy], step: Step, now: Now) -> Proposal | None:
    """Return the proposal of the first strategy that has one."""
    for strategy in strategies:
        if (found := strategy.propose(step, now)) is not None:
            for other in strategies:
                if other is not strategy:
                    other.forget()
            return found
    return None


def moves_of(strategies: Sequence[Strategy], step: Step) -> Any:
    """Return the array that receives y - x of the next step, for the strategy that needs it, or None."""
    return next((moves for strategy in strategies if (moves := strategy.moves(step)) is not None), None)


class OwnIterations(Strategy):
    """Lets the method make many passes in one call, as it can: see `prplugin.methods.base.Step.advance`.

    `until`: Number of passes from which on it proposes nothing.
    `plain`: Whether only plain steps are allowed, for rules about the change of one: see `Step.repeat`.
    """

    def __init__(self, until: int, *, plain: bool = False) -> None:
        self._until, self._plain = until, plain

    def propose(self, step: Step, now: Now) -> Proposal | None:
        if now.passes >= self._until:
            return None
        iterate = step.repeat if self._plain else step.advance
        passes, sums = iterate(now.goal, min(MAX_PASSES, now.last - now.passes))
        made = passes > 0 if isinstance(passes, int) else passes.any()  # `np.any` of a number takes 8 us
        return Proposal(passes, sums) if made else None
