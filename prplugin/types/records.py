"""Records of a ranking: how it was computed, and the proved order of the highest-ranked vertices."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

from prplugin.types.edges import Integers


class Considered(NamedTuple):
    """A candidate method, its estimated seconds (None: not estimated), and why it was chosen or not."""

    method: str
    seconds: float | None
    reason: str


class History(NamedTuple):
    """Record of how a ranking was computed.

    `choice`: `considered`, or a function that returns it, since it takes as long as a small ranking.
    `stages`: Name and seconds of each stage.
    `bounds`: Number of edge passes, and the error bound proved after them.
    `unused_weight`: Name of a column that may hold weights, if `weight` was not given.
    `notes`: Lines of the method on its own choices.
    `unknown`: Number of vertices that the graph lacks and that were ignored, by argument.
    """

    n: int
    m: int
    weighted: bool
    alpha: float
    tol: float
    stop: str
    choice: tuple[Considered, ...] | Callable[[], tuple[Considered, ...]]
    stages: tuple[tuple[str, float], ...]
    bounds: tuple[tuple[int, float], ...]
    unused_weight: Hashable = None
    notes: tuple[str, ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()

    @property
    def considered(self) -> tuple[Considered, ...]:
        """The chosen method, then the others by their seconds, then the unavailable ones."""
        return self.choice() if callable(self.choice) else self.choice

    @property
    def bytes_per_pass(self) -> int:
        """Bytes of memory traffic of one pass over the in-edges, if each value is read or written once.

        Per edge an index, and 8 bytes for a weight; per vertex 8 bytes each for the offset, the old rank, its factor,
        the new rank, and the contribution read and written. Cache misses on contributions come on top.
        """
        return self.m * ((4 if self.n <= 2**31 else 8) + 8 * self.weighted) + self.n * 6 * 8


class TieRows(NamedTuple):
    """Vertices whose order is not proved, or that are proved equal.

    `first`: Number of vertices that are proved to rank higher than all of them.
    `rows` (array of int64): Their positions, in the order of the result if they are equal, else by descending rank.
    `equal`: Whether all are proved equal.
    """

    first: int
    rows: Integers
    equal: bool


@dataclass(slots=True, eq=False, repr=False)
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
