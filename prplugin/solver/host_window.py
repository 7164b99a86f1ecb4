"""A window of iterates in NumPy."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.sums import total
from prplugin.methods.base import SpreadStep
from prplugin.numerics.extrapolation import WINDOW, leap_weights
from prplugin.types.edges import Floats

__all__ = ["HostWindow"]

CHUNK = 8192
"""Terms of a dot product: few enough that no BLAS shares them among threads, and that two lie in the first cache."""


class HostWindow:
    """Takes a window of iterates and leaps ahead of them: see `prplugin.numerics.extrapolation.Window`.

    Parameters
    ----------
    ranks : array of n float64
        What the next step begins from.
    spread : SpreadStep, optional
        The step, where the ranks are but this process's part.
    """

    _spread: SpreadStep | None = None

    def __init__(self, ranks: Floats, spread: SpreadStep | None = None) -> None:
        self._spread = spread
        self.restart(ranks)

    def restart(self, ranks: Floats) -> None:
        self.last = ranks.copy()  # anew: who took the old one may keep it
        self._moves: list[np.ndarray] = []

    def add(self, ranks: Floats) -> None:
        # A move is kept in float32: weights need no more, for where a leap leads is but a start.
        move = np.empty(ranks.size, np.float32)
        np.subtract(ranks, self.last, out=move, casting="same_kind")
        self._moves.append(move)
        np.copyto(self.last, ranks)

    @property
    def left(self) -> int:
        return WINDOW - len(self._moves)

    def leap(self) -> Floats | None:
        moves, self._moves = self._moves, []
        products = _gram(moves)
        if self._spread is None:
            weights = leap_weights(products)
        else:
            # On machines that differ they might differ in their last bits, and so might what is worth a leap.
            weights = self._spread.of_first(leap_weights(self._spread.add(products)))
        if weights is None:
            return None
        ranks = self.last.copy()
        for move, weight in zip(moves[1:], weights, strict=True):
            ranks -= weight * move
        np.maximum(ranks, 0.0, out=ranks)
        ranks /= total(ranks) if self._spread is None else self._spread.add(total(ranks))
        return ranks


def _gram(moves: list[np.ndarray]) -> Floats:
    """Multiply all moves with all, i >= j, in float64 and always in the same order."""
    k, n = len(moves), moves[0].size
    products = np.zeros((k, k))
    for first in range(0, n, CHUNK):
        part = np.array([move[first : first + CHUNK] for move in moves], np.float64)
        for i in range(k):
            for j in range(i + 1):
                products[i, j] += part[i].dot(part[j])
    return products
