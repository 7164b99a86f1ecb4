"""Proved order of the highest-ranked vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from prplugin.types.edges import Integers


class TieRows(NamedTuple):
    """Vertices whose order is not proved, or that are proved equal.

    `first`: Number of vertices that are proved to rank higher than all of them.
    `rows` (array of int64): Their positions, in the order of the result if they are equal, else by descending rank.
    `equal`: Whether all are proved equal.
    """

    first: int
    rows: Integers
    equal: bool


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The k highest-ranked vertices, with the part of their order that is proved.

    `rows` (array of k int64): Their positions by descending rank; equal ranks in the order of the result.
    `ties` (tuple of TieRows): Groups of unresolved order, highest first; the last may extend beyond the k highest.
    `margin`: Proved upper bound of the error of each rank.
    """

    rows: Integers
    ties: tuple[TieRows, ...]
    margin: float

    def at(self, positions: Integers) -> Order:
        """Return the order of ranks that are those of the vertices at `positions`."""
        ties = tuple(tie._replace(rows=positions[tie.rows]) for tie in self.ties)
        return Order(positions[self.rows], ties, self.margin)

    @property
    def proved(self) -> bool:
        """Return whether all ties are between vertices that are proved equal."""
        return all(tie.equal for tie in self.ties)
