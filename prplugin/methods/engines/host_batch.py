"""Many seeds side by side on the processor: what `numpy` and `numba` share."""

from __future__ import annotations

import numpy as np

from prplugin.graph.problem import Problem, Seeds
from prplugin.methods.base import BatchEnding, BatchState, BatchStep
from prplugin.types.arrays import moved
from prplugin.types.edges import Floats

__all__ = ["HostBatch", "width_for"]

WIDTHS = (8, 32)
"""Of a batch: 32 floats are two lines of a cache, and all registers for vectors that hold as many doubles."""

MOST_BYTES = 1 << 31
"""Of the matrices of a batch of more than the least width."""


def width_for(seeds: int, n: int, bytes_a_rank: int) -> int:
    """Give how many seeds go side by side: the least width that holds them all, or as many as there is room for."""
    room = [width for width in WIDTHS if width == WIDTHS[0] or width * bytes_a_rank * n <= MOST_BYTES]
    return next((width for width in room if width >= seeds), room[-1])


class HostBatch(BatchStep):
    """Ranks as a matrix, a column a seed, and when each column ends."""

    def __init__(self, problem: Problem, width: int) -> None:
        self.width = width
        self._alpha, self._target = problem.alpha, problem.dangling
        self._n = problem.adjacency.n
        self._ranks: Floats = np.zeros((self._n, self.width))
        self._zero = True

    def start(self, seeds: Seeds, ranks: Floats | float | None) -> None:
        if not self._zero:  # memory that is new is not touched before its threads do
            self._ranks.fill(0.0)
        self._zero = False
        self._seeds = seeds.on("host")
        self._entries = self._seeds.by_row()
        if ranks is None:
            rows, columns, values = self._entries
            self._ranks[rows, columns] = values
        else:
            self._ranks[:, : seeds.count] = ranks if isinstance(ranks, float) else moved(ranks, "host")[:, None]
        self._live = np.arange(self.width) < seeds.count
        self._state = BatchState.of(self.width)
        self._mass = self._alpha * self._begun()

    def until(self, count: int, ending: BatchEnding) -> BatchState:
        for _ in range(count):
            if not self._live.any():
                break
            change, largest, dangling = self._step()
            self._mass = self._alpha * dangling
            self._state.add(self._live, change, largest)
            self._live = self._live & ~self._state.ended(ending)
        return self._state.first(self._seeds.count)

    def _begun(self) -> Floats:
        """Make ready for the first step; give D of each column."""
        raise NotImplementedError

    def _step(self) -> tuple[Floats, Floats, Floats]:
        """Iterate once; give ||y - x||, max |y - x| and D(y) of each column."""
        raise NotImplementedError

    @property
    def _pour(self) -> Floats:
        """What each seed's values are multiplied by."""
        rest = np.full(self.width, 1 - self._alpha)
        return rest + self._mass if self._target is None else rest

    def ranks(self) -> Floats:
        return np.ascontiguousarray(self._ranks[:, : self._seeds.count].T)
