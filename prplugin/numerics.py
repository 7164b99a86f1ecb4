"""Rounding depths, on which the error bound rests, and depths of histories; they do not depend on the graph."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

FAN_IN = 32
"""Terms added per group. A larger value is slightly faster and gives a slightly larger bound."""


@lru_cache(1024)
def rounding_depth(terms: int) -> int:
    """Return the most additions that a term goes through when `terms` terms are added in groups of `FAN_IN`."""
    additions = 0
    while terms > FAN_IN:
        additions += FAN_IN - 1
        terms = -(-terms // FAN_IN)
    return additions + max(terms - 1, 0)


@lru_cache(1024)
def fan_in_for(longest: int) -> int:
    """Return the number of terms, and of sums, added at a time, such that three levels reach `longest` terms."""
    fan_in = FAN_IN
    while fan_in**3 < longest:
        fan_in += 1
    return fan_in


@lru_cache(1024)
def group_sum_depth(longest: int) -> int:
    """Return the rounding depth of a sum of up to `longest` terms by `GroupSums`, or by kernels of the same order.

    The three summands are additions within a piece, within a group of pieces, and of those groups.
    """
    fan_in = fan_in_for(longest)
    return min(longest, fan_in) + min(longest // fan_in + 1, fan_in) + longest // fan_in**2 + 1


def compensated_depth(terms: int) -> int:
    """Return the rounding depth of a compensated sum of up to `terms` terms, for any order of additions.

    If each term goes through at most k additions, the relative error is at most u + gamma(k)**2, where u = 2**-53 and
    gamma(k) = k * u / (1 - k * u) (Ogita, Rump and Oishi 2005, "Accurate sum and dot product", Sum2).
    """
    return 2 + (terms * terms << 53) // ((1 << 53) - terms) ** 2


class StepRounding(NamedTuple):
    """Rounding depths in a step, by what is summed. A quotient or a product counts as one rounding.

    The depths are integers of Python, so that it is hashable: rankings of equal depths share a certificate.

    `row`: Additions that a term of a row sum goes through.
    `edge`: Roundings in a term of a row sum, those of contribution, normalized weight, product and out-weight.
    `dangling`: Additions that a rank goes through in the dangling mass D.
    `vectors`: Roundings in an entry of v or w.
    `norm`: Roundings in a term of ||y - x||, and additions that it goes through.
    `single`: Roundings to float32 in a term of a row sum.
    """

    row: int
    edge: int
    dangling: int
    vectors: int
    norm: int
    single: int = 0


# --- Anderson mixing: see `prplugin.solver.acceleration.anderson` -------------------------------------------------


LONG_FROM = 0.9
"""Least alpha for which the longer history needs fewer edge passes: docs/convergence.md."""


class Depth(NamedTuple):
    """Length of the history of iterates.

    `period`: Steps from one mix to the next.
    `cycles`: Number of periods whose residuals are mixed, at most.
    `rows`: Number of vectors in the history: the residuals, and the change made by each mix between them.
    """

    period: int
    cycles: int
    rows: int = 0


@lru_cache(1024)
def depth_for(alpha: float, seeds: int | None = None) -> Depth:
    """Return the length of the history. Many seeds get a shorter one, since it is most of their memory."""
    period, cycles = (8, 1) if seeds is not None else (9, 2) if alpha > LONG_FROM else (3, 2)
    return Depth(period, cycles, period * cycles + cycles - 1)
