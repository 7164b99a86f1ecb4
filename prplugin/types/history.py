"""How a ranking came about: a record small enough to be kept with every one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from prplugin.types.arrays import MemorySpace

__all__ = ["Considered", "History"]


class Considered(NamedTuple):
    """A method, its seconds as estimated or measured (None: not asked), and why it was taken or not."""

    method: str
    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    """How a ranking came about.

    `considered` has the method chosen first, then others by their seconds, then those that could not be. `stages` are
    what was done, with the seconds that it took. `bounds` are passes over the edges, with the error bound proved then.
    `unused_weight` is a column of the frame that seems to hold weights, where none was named.
    """

    n: int
    m: int
    weighted: bool
    memory_space: MemorySpace
    alpha: float
    tol: float
    stop: str
    considered: tuple[Considered, ...]
    stages: tuple[tuple[str, float], ...]
    bounds: tuple[tuple[int, float], ...]
    unused_weight: Hashable = None

    @property
    def bytes_a_pass(self) -> int:
        """The bytes that a pass over in-edges reads or writes, if each value is read or written once.

        Per edge an index, and 8 for a weight; per vertex an offset, the old rank and its factor, the new rank, and its
        contribution in and out, 8 each. Contributions that the caches do not hold come on top.
        """
        return self.m * ((4 if self.n <= 2**31 else 8) + 8 * self.weighted) + self.n * 6 * 8
