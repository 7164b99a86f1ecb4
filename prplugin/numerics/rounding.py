"""How many roundings a computed number carries: the counts on which the error bound rests."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAN", "StepRounding", "compensated_depth", "rounding_depth"]

FAN = 32
"""Terms added per group; larger is slightly faster and proves slightly less."""


def rounding_depth(terms: int, fan: int = FAN) -> int:
    """Give the most additions that one of `terms` terms goes through when they are added in groups of `fan`."""
    additions = 0
    while terms > fan:
        additions += fan - 1
        terms = -(-terms // fan)
    return additions + max(terms - 1, 0)


def compensated_depth(terms: int) -> int:
    """Give the roundings that a compensated sum of up to `terms` terms is worth, in whatever order they are added.

    With chains of k additions its relative error is at most u + (k * u)**2, u = 2**-53 (Ogita, Rump and Oishi 2005,
    "Accurate sum and dot product", Sum2), and k * k * u <= 1 + (k / 2**26)**2.
    """
    return 2 + (terms >> 26) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRounding:
    """The longest chains of roundings in a step, by what is summed. A quotient or a product is one more.

    `row`: Additions that one term of a row sum goes through.
    `edge`: Roundings in a term of a row sum: contribution or share and product, out-weight included.
    `dangling`: Additions that a rank goes through in the sum D over dangling vertices.
    `vectors`: Roundings in an entry of v or w.
    `norm`: Roundings in a term of ||y - x||, and additions it goes through.
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
        """Roundings on the way from x to a rank of y.

        From an edge: the term, its row sum, times alpha, and two additions. From D: its sum, times alpha, the entry of
        w, times it, and two additions. From v: 1 - alpha, the entry, times it, and one or two additions.
        """
        return max(self.edge + self.row + 3, self.dangling + self.vectors + 4, self.vectors + 4)
