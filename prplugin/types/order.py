"""The order of the highest vertices, as far as it is proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from prplugin.types.edges import Integers

__all__ = ["Order", "TieRows"]


class TieRows(NamedTuple):
    """Vertices whose order is not proved, or that are proved equal.

    `first`: How many vertices are proved to be higher than all of them.
    `rows` (array of int64): Their positions, in the order of the result if they are equal, else as they seem to fall.
    `equal`: Whether all are proved to be equal.
    """

    first: int
    rows: Integers
    equal: bool


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The k highest vertices as far as they are proved.

    `rows` (array of k int64): Their positions, falling; of equal ones, in the order of the result.
    `ties` (tuple of TieRows): What is not told apart, from the top down; the last may go on past the k highest.
    `margin`: Proved: no rank is further from the exact one.
    """

    rows: Integers
    ties: tuple[TieRows, ...]
    margin: float

    @property
    def proved(self) -> bool:
        """Whether all ties are of equal vertices."""
        return all(tie.equal for tie in self.ties)
