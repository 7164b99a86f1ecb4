"""Record of how a ranking was computed, small enough to be kept with every ranking."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Considered(NamedTuple):
    """A candidate method, its estimated or measured seconds (None: not estimated), and why it was chosen or not."""

    method: str
    seconds: float | None
    reason: str


class History(NamedTuple):
    """Record of how a ranking was computed.

    `considered`: The chosen method, then the others by their seconds, then the unavailable ones.
    `stages`: Name and seconds of each stage.
    `bounds`: Number of edge passes, and the error bound proved after them.
    `unused_weight`: Name of a column that may hold weights, if `weight` was not given.
    """

    n: int
    m: int
    weighted: bool
    alpha: float
    tol: float
    stop: str
    considered: tuple[Considered, ...]
    stages: tuple[tuple[str, float], ...]
    bounds: tuple[tuple[int, float], ...]
    unused_weight: Hashable = None

    @property
    def bytes_per_pass(self) -> int:
        """Bytes of memory traffic of one pass over the in-edges, if each value is read or written once.

        Per edge an index, and 8 bytes for a weight; per vertex 8 bytes each for the offset, the old rank, its factor,
        the new rank, and the contribution read and written. Cache misses on contributions come on top.
        """
        return self.m * ((4 if self.n <= 2**31 else 8) + 8 * self.weighted) + self.n * 6 * 8
