"""Many seeds side by side on the host: what `numpy` and `numba` share."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.graph.problem import Problem, Seeds
from prplugin.methods.base import SeedsStep, Sums
from prplugin.methods.engines.host_step import HostStep
from prplugin.types.arrays import moved
from prplugin.types.edges import Floats

__all__ = ["HostBatch", "width_for"]

WIDTHS = (8, 32)
"""Seeds of a batch: 32 floats are two lines of a cache."""

MOST_BYTES = 1 << 32
"""Of the matrices of a batch of more than the least width."""


def width_for(seeds: int, bytes_a_seed: int) -> int:
    """Return how many seeds go side by side: the least width that holds all, or as many as there is room for."""
    room = [width for width in WIDTHS if width == WIDTHS[0] or width * bytes_a_seed <= MOST_BYTES]
    return next((width for width in room if width >= seeds), room[-1])


class HostBatch(HostStep, SeedsStep):
    """Ranks as a matrix of `width` columns, one per seed; the others are 0.

    So sums are made in the same order, whatever the number of seeds.
    """

    def __init__(self, problem: Problem, width: int) -> None:
        self.width = width
        self._alpha, self._target = problem.alpha, problem.dangling
        self._n = problem.adjacency.n

    def seed(self, seeds: Seeds) -> None:
        self._count, self.seeds = seeds.count, self.width
        self._entries = seeds.on("host").by_row()
        self._live = np.ones(self.width, np.bool_)

    def start(self, ranks: Floats | float | None) -> None:
        if isinstance(ranks, np.ndarray) and ranks.ndim == 2:
            self._ranks = ranks
        else:
            self._ranks = np.zeros((self._n, self.width))
            if ranks is None:
                rows, columns, values = self._entries
                self._ranks[rows, columns] = values
            else:
                self._ranks[:, : self._count] = ranks if isinstance(ranks, float) else moved(ranks, "host")[:, None]
        self._mass = self._alpha * self._begun()

    def keep(self, live: Any) -> None:
        self._live = live

    def __call__(self, moves: Any = None) -> Sums:
        change, largest, dangling = self._step(moves)
        self._mass = self._alpha * dangling
        return Sums(change, largest)

    def _begun(self) -> Floats:
        """Make ready for the first step; return D of each column."""
        raise NotImplementedError

    def _step(self, moves: Any) -> tuple[Floats, Floats, Floats]:
        """Iterate once; return ||y - x||, max |y - x| and D(y) of each column."""
        raise NotImplementedError

    @property
    def _pour(self) -> Floats:
        """The factor of each seed's values."""
        rest = np.full(self._live.size, 1 - self._alpha)
        return rest + self._mass if self._target is None else rest

    def ranks(self) -> Floats:
        return self._ranks

    def transposed(self) -> Floats:
        return np.ascontiguousarray(self._ranks[:, : self._count].T)
