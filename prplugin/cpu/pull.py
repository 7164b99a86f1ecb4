"""The step x := alpha * (P^T x + D * w) + (1 - alpha) * v of one vector, compiled: see pull.cpp."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.packing import PIECE
from prplugin.numerics import Depth, compensated_depth, group_sum_depth, rounding_depth
from prplugin.types.edges import Compressed, Floats, Integers, PackedRows, bits_of

BLOCK_ROWS, LANES = 256, 8
"""Rows whose norms are summed together, and interleaved sums of a block, as in row_sums.hpp and pull.cpp."""

CHUNK_ROWS = 16 * BLOCK_ROWS
"""Rows per piece of work on whole vectors, as in pull.cpp."""

PRODUCTS = 24 * 24
"""Dot products per chunk: the square of `MOST_ROWS` in mixing.hpp."""


@lru_cache(1024)
def norm_depth(rows: int) -> int:
    """Return the most additions that a row's change or rank goes through in the sums of a step over `rows` rows.

    Those of a lane of a block, the lanes (more than in groups of 16 rows, where these are summed), the blocks in groups
    of `FAN_IN` level by level, and the sums of the eight levels.
    """
    return min(rows, BLOCK_ROWS // LANES + 3 + rounding_depth(-(-rows // BLOCK_ROWS)) + 8)


ORDERED_EDGES = range(100_000, 800_000)
"""Numbers of edges of unweighted graphs whose rows are summed by number of in-edges: docs/decisions/0019."""


def order_rows(offsets: Integers, threads: int) -> Integers:
    """Return the rows of each block, counted from its first, by number of in-edges."""
    order: Integers = np.empty(offsets.size - 1, np.uint8)
    kernels.order_rows(offsets, order, threads)
    return order


def packed_depth(m: int) -> int:
    """Return the rounding depth of a row sum of packed edges, of which the graph has m.

    It is that of a run within a piece, summed with the fan-in for `PIECE` terms, and of the compensated sum of the runs
    of a row.
    """
    return group_sum_depth(PIECE) + compensated_depth(-(-m // PIECE) + 1)


PLAIN = Depth(0, 0)
"""Depth of the history of an iteration without mixing."""


class Pull:
    """Iteration of one vector; `ranks` and what belongs to it stay in the arrays of this object.

    `in_edges`: Offsets, sources and normalized weights, or unweighted packed edges.
    `order`: Order of rows by `order_rows`; None for their own.
    `inverse_out_weight`: 1 / W of each vertex, 0 for dangling ones; in weighted graphs 1 instead of 1 / W.
    `target`, `teleport`: w and (1 - alpha) * v: n entries, or one for all vertices.
    """

    def __init__(
        self, in_edges: Compressed | PackedRows, order: Integers | None, inverse_out_weight: Floats, target: Floats,
        teleport: Floats, alpha: float, fan_in: int, threads: int,
    ) -> None:  # fmt: skip
        n = inverse_out_weight.size
        edges: tuple[Any, ...]
        if isinstance(in_edges, PackedRows):
            edges = (None, None, None, *in_edges, bits_of(n), np.zeros(n), np.empty(in_edges.rows.size))
        else:
            edges = (*in_edges, None, None, None, 0, None, None)
        self._graph = (*edges, inverse_out_weight, target, teleport, alpha, fan_in, order)
        self._sums = np.empty((-(-n // BLOCK_ROWS), 4))
        self._memory, self._norm = np.zeros(704), 1.0
        self._contributions = np.empty((2, n))
        self._history: Any = (None, None)
        self._threads = threads
        self._ranks: Floats = np.empty(n)
        self.largest = 0.0

    def start(self, ranks: Any) -> None:
        """Set the ranks."""
        self._ranks[:] = ranks
        self._norm = self._memory[3] = 1.0

    @property
    def ranks(self) -> Floats:
        """Ranks of sum 1; those of a sweep are divided by their sum."""
        return self._ranks if self._memory[3] == 1 else self._ranks / self._memory[3]

    def iterate(self, budget: int, goal: float = -1.0, depth: Depth = PLAIN) -> Floats:
        """Make steps until one changes the ranks by at most `goal`, at most `budget`; return the change of each.

        Iterates are mixed in between, with a history of the given depth, until a call without; they may then be swept,
        whose changes bound the error as well. The ranks do not depend on the number of steps per call.
        """
        changes = np.empty(budget)
        if depth.rows > 0 and self._history[0] is None:
            n = self._ranks.size
            self._history = np.empty((depth.rows, n), np.float32), np.empty((-(-n // CHUNK_ROWS), PRODUCTS))
        # By position: 27 names cost 4 % of a call on a small frame.
        steps = kernels.iterate(
            *self._graph, self._ranks, self._contributions, self._sums, self._memory, self._norm, goal, *depth[:2],
            *self._history, changes, self._threads,
        )  # fmt: skip
        self._norm, self.largest = 0.0, float(self._memory[2])
        return changes[:steps]
