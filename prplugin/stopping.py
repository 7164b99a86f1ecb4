"""Stopping rules: when an iteration ends, and what that proves.

A rule is one class here, and found by its name. It says which measurements of a step meet it, down to which L1 change
that takes, how many passes are allowed, and what an error calls it. Whoever iterates asks the rule, and compares no
names. Measurements and bounds are those of `prplugin.methods.base.Sums` and of `prplugin.solver.certificate`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import InvalidOptionError

Floats: TypeAlias = NDArray[np.float64]
Norm: TypeAlias = float | Floats
Verdict: TypeAlias = bool | NDArray[np.bool_]
"""A number or a truth value of one vector, or for many seeds an array with an entry per seed."""

Stop = Literal["error", "delta", "vertex", "networkx"]
STOPS: tuple[Stop, ...] = get_args(Stop)

USUAL_ITERATIONS = 1 / 5
"""Typical iterations of a ranking, as a fraction of those that contraction by alpha requires: 20 at the defaults.

Social networks take fewer, web graphs up to three times as many.
"""

MOST_ITERATIONS = 10**6
"""Iterations without `max_iter`, if no error bound is to be proved: near alpha 1, contraction may need 10**13."""

FLOAT32_CHANGE_FRACTION = 1 / 4
"""Largest L1 change that float32 rounding is expected to cause, as a fraction of its proved bound."""


class Measured(Protocol):
    """Norms of y - x, measured by a step from x to y; for many seeds arrays with an entry per seed."""

    @property
    def change(self) -> Norm:
        """Return ||y - x||, in L1."""

    @property
    def largest(self) -> Norm:
        """Return max |y_i - x_i|."""


class Proof(Protocol):
    """Error bounds in one precision: `prplugin.solver.certificate.Certificate`."""

    alpha: float
    n: int
    noise: float

    @property
    def provable(self) -> float:
        """Smallest tolerance that the loop proves on every graph."""

    def change_for(self, tol: float) -> float:
        """Return the change at which the bound equals `tol`."""

    def steps(self, tol: float) -> int:
        """Return the number of steps after which the bound is at most `tol`."""

    def moves(self, threshold: float) -> int:
        """Return the number of steps after which the change is at most `threshold`."""


class Rule:
    """A stopping rule with its tolerance.

    `proves`: Whether it is a proved error bound, so that any iterate will do, whatever found it.
    `ends`: Whether the iteration ends when it is met.
    `repeats`: Whether the method may make many plain steps in one call, which measures their L1 changes only.
    `least_move`: Greatest move of a rank that does not count.
    """

    name: ClassVar[str]
    proves = False
    ends = True
    repeats = True
    least_move = 0.0

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def met(self, sums: Measured, bound: Norm, n: int) -> Verdict:
        """Return whether a step with these sums, and with this error bound after it, meets the rule."""
        raise NotImplementedError

    def met_by_start(self, bound: Norm) -> Verdict:
        """Return whether ranks with this error bound meet the rule before any step."""
        return bound < 0  # never: the rule is about the change of a step

    def goal(self, proof: Proof) -> float:
        """Return approximately the L1 change at which the rule is met; negative if it is not about that change."""
        return self.tol

    def allows_float32(self, dtype: str) -> bool:
        """Return whether a ranking of this type may begin with contributions in float32."""
        return dtype == "float32"

    def goal_in_float32(self, in_float32: Proof, in_float64: Proof, least: float) -> float:
        """Return the L1 change at which the float32 phase ends.

        `least`: Relative to the goal in float64, the least goal for which it need not take over.
        """
        return self.goal(in_float32)

    def budget(self, proof: Proof, max_iter: int | None, dtype: str) -> int:
        """Return the maximum number of passes: `max_iter`, or as many as contraction by alpha needs.

        Raises InvalidOptionError if the tolerance is not provable.
        """
        return min(proof.moves(self.tol), MOST_ITERATIONS) if max_iter is None else max_iter

    def likely_steps(self, alpha: float, max_iter: int | None) -> int:
        """Estimate the number of iterations of a ranking on an unknown graph."""
        if alpha == 0:
            return 1
        contraction = (math.log(self.tol) + math.log(self._start(alpha) / 2)) / math.log(alpha)
        likely = max(1, round(USUAL_ITERATIONS * contraction))
        return likely if max_iter is None else max(1, min(likely, max_iter))

    def _start(self, alpha: float) -> float:
        """Return what 2 * alpha**k is to be divided by for an upper bound of what the rule measures after k steps."""
        return 1.0

    def unmet(self) -> str:
        """Return what was not reached, for an error."""
        raise NotImplementedError

    def remedy(self, iterations: int, max_iter: int | None) -> str:
        """Return what to do if the iterations did not suffice, for an error."""
        if max_iter is not None:
            return "Allow a larger max_iter or tol."
        if iterations >= MOST_ITERATIONS:
            return f"Without max_iter= there are at most {MOST_ITERATIONS:,}: pass more, a larger tol, or stop='error'."
        return "More would not: allow a larger tol."


class ProvedError(Rule):
    """The L1 distance to the exact PageRank is proved to be at most `tol`."""

    name = "error"
    proves = True

    def met(self, sums: Measured, bound: Norm, n: int) -> Verdict:
        return bound <= self.tol

    def met_by_start(self, bound: Norm) -> Verdict:
        return bound <= self.tol

    def goal(self, proof: Proof) -> float:
        return proof.change_for(self.tol)

    def allows_float32(self, dtype: str) -> bool:
        return True

    def goal_in_float32(self, in_float32: Proof, in_float64: Proof, least: float) -> float:
        """Return the L1 change at which the float32 phase ends.

        It is the change that meets the rule by the bounds `in_float32`. If float32 rounding keeps changes above that,
        float64 takes over at the returned change. So whether a ranking ends in float32 or in float64, and how much
        memory it takes, is known before it starts.
        """
        goal, of_float64 = self.goal(in_float32), in_float64.change_for(self.tol)
        errors = FLOAT32_CHANGE_FRACTION * in_float32.noise  # below, changes are mostly rounding errors
        # At the change `of_float64`, about one float64 step proves `tol`.
        return goal if goal >= max(errors, least * of_float64) else max(of_float64, errors)

    def budget(self, proof: Proof, max_iter: int | None, dtype: str) -> int:
        if not self.tol >= proof.provable:
            raise InvalidOptionError(
                f"tol={self.tol:g} cannot be proved for this graph in {dtype} at alpha={proof.alpha:g}, because of "
                f"rounding: the smallest provable tol is {proof.provable:.2g}. Ask for that or more"
                + (", or for dtype='float64'." if dtype == "float32" else ".")
            )
        # Accelerated passes, as many plain steps, and the step that proves.
        return 2 * proof.steps(self.tol) + 1 if max_iter is None else max_iter

    def _start(self, alpha: float) -> float:
        return 1 - alpha

    def unmet(self) -> str:
        return f"a proved error of {self.tol:g}"

    def remedy(self, iterations: int, max_iter: int | None) -> str:
        return super().remedy(0, max_iter)  # contraction alone bounds its passes


class ChangeOfRanks(Rule):
    """The L1 change of an iteration is at most `tol`."""

    name = "delta"

    def met(self, sums: Measured, bound: Norm, n: int) -> Verdict:
        return sums.change <= self.tol

    def unmet(self) -> str:
        return f"an L1 change of {self.tol:g}"


class ChangeOfVertex(Rule):
    """No rank changes by more than `tol` in an iteration."""

    name = "vertex"
    repeats = False

    def __init__(self, tol: float) -> None:
        super().__init__(tol)
        self.least_move = tol

    def met(self, sums: Measured, bound: Norm, n: int) -> Verdict:
        return sums.largest <= self.tol

    def goal(self, proof: Proof) -> float:
        return -1.0

    def unmet(self) -> str:
        return f"no vertex moving by more than {self.tol:g}"


class ChangeAsNetworkX(Rule):
    """The L1 change of an iteration is below n * `tol`, as in NetworkX."""

    name = "networkx"

    def met(self, sums: Measured, bound: Norm, n: int) -> Verdict:
        return sums.change < n * self.tol  # strictly, as in NetworkX

    def goal(self, proof: Proof) -> float:
        return proof.n * self.tol

    def unmet(self) -> str:
        return f"an L1 change of n * {self.tol:g}"


class Iterate(Rule):
    """``tol=0``: exactly `max_iter` plain steps, which the rule `of` that was named does not end."""

    proves = False
    ends = False

    def __init__(self, of: Rule) -> None:
        super().__init__(0.0)
        self._of, self.repeats = of, of.repeats

    def met(self, sums: Measured, bound: Norm, n: int) -> Verdict:
        return self._of.met(sums, bound, n)

    def met_by_start(self, bound: Norm) -> Verdict:
        return self._of.met_by_start(bound)

    def goal(self, proof: Proof) -> float:
        return -1.0

    def allows_float32(self, dtype: str) -> bool:
        return False

    def budget(self, proof: Proof, max_iter: int | None, dtype: str) -> int:
        assert max_iter is not None  # `Options` refuses tol=0 without it
        return max_iter

    def likely_steps(self, alpha: float, max_iter: int | None) -> int:
        assert max_iter is not None
        return max(1, max_iter)


RULES = {rule.name: rule for rule in (ProvedError, ChangeOfRanks, ChangeOfVertex, ChangeAsNetworkX)}


@lru_cache(64)  # shared by repeated rankings
def rule_of(stop: str, tol: float) -> Rule:
    """Return the rule of the options `stop` and `tol`."""
    rule = RULES[stop](tol)
    return Iterate(rule) if tol == 0 else rule
