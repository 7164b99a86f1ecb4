"""Number of roundings in a computed value: the counts on which the error bound rests."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

FAN_IN = 32
"""Terms added per group. A larger value is slightly faster and gives a slightly larger bound."""


@lru_cache(1024)
def rounding_depth(terms: int, fan_in: int = FAN_IN) -> int:
    """Return the most additions that a term goes through when `terms` terms are added in groups of `fan_in`."""
    additions = 0
    while terms > fan_in:
        additions += fan_in - 1
        terms = -(-terms // fan_in)
    return additions + max(terms - 1, 0)


def fan_in_for(longest: int) -> int:
    """Return the number of terms, and of sums, added at a time, such that three levels reach `longest` terms."""
    fan_in = FAN_IN
    while fan_in**3 < longest:
        fan_in += 1
    return fan_in


def group_sum_depth(longest: int) -> int:
    """Return the rounding depth of a sum of up to `longest` terms by `GroupSums`, or by kernels of the same order.

    The three summands are additions within a piece, within a group of pieces, and of those groups.
    """
    fan_in = fan_in_for(longest)
    return min(longest, fan_in) + min(longest // fan_in + 1, fan_in) + longest // fan_in**2 + 1


def compensated_depth(terms: int) -> int:
    """Return the rounding depth of a compensated sum of up to `terms` terms, for any order of additions.

    If each term goes through at most k additions, the relative error is at most u + (k * u)**2, u = 2**-53 (Ogita, Rump
    and Oishi 2005, "Accurate sum and dot product", Sum2), and k * k * u <= 1 + (k / 2**26)**2.
    """
    return 2 + (terms >> 26) ** 2


class StepRounding(NamedTuple):
    """Rounding depths in a step, by what is summed. A quotient or a product counts as one rounding.

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

    @property
    def rank(self) -> int:
        """Most roundings from x to a rank of y.

        Through an edge: the term, its row sum, the product with alpha, and two additions. Through D: its sum, the
        product with alpha, the entry of w, their product, and two additions. From v: 1 - alpha, the entry, their
        product, and one or two additions.
        """
        return max(self.edge + self.row + 3, self.dangling + self.vectors + 4, self.vectors + 4)
