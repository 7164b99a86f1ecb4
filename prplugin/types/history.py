"""How a ranking came about: a record small enough to be kept with every one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from prplugin.types.arrays import Place

__all__ = ["Considered", "History"]


class Considered(NamedTuple):
    """A method, and why it was taken or not.

    Attributes
    ----------
    method : str
    seconds : float or None
        What a ranking by it takes, as estimated or measured, at the least; None where nobody asked.
    reason : str
    """

    method: str
    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    """How a ranking came about.

    Attributes
    ----------
    n, m : int
        Vertices and edges.
    weighted : bool
        Whether edges have weights.
    place : {"host", "device"}
        Where the method worked.
    alpha, tol : float
    stop : str
        As they were asked for.
    considered : tuple of Considered
        The method chosen first, then others by their seconds, then those that could not be.
    stages : tuple of (str, float)
        What was done, and the seconds that it took.
    bounds : tuple of (int, float)
        After so many passes over the edges, this bound on all errors together was proved.
    """

    n: int
    m: int
    weighted: bool
    place: Place
    alpha: float
    tol: float
    stop: str
    considered: tuple[Considered, ...]
    stages: tuple[tuple[str, float], ...]
    bounds: tuple[tuple[int, float], ...]

    @property
    def bytes_a_pass(self) -> int:
        """The bytes that a pass over the edges moves, by a model: what a pull over in-edges reads or writes, once.

        An edge is an index, of 4 bytes up to 2**31 vertices, and a share of 8 if it has a weight. A vertex is an
        offset, the old rank and what it is multiplied by, the new rank, and its contribution, in and out: 8 bytes each.
        Contributions that are gathered more than once, past what the caches hold, come on top.
        """
        edge = (4 if self.n <= 2**31 else 8) + (8 if self.weighted else 0)
        return self.m * edge + self.n * 6 * 8
