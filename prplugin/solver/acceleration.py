"""What comes between plain steps for fewer of them: Anderson mixing, or, at rounding level, the mean of iterates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from prplugin.methods.base import Step
from prplugin.numerics.extrapolation import depth_for, mixing_weights
from prplugin.types.edges import Floats

__all__ = ["Mean", "Mixing"]

WORTH = 4
"""Plain steps left from which a mix is worth the vectors that it reads."""

GAIN = 0.15
"""Plain steps that a mix must gain for mixing to pay: two in a row that gain less end it."""


class Mixing:
    """Anderson mixing of the iterates: see `prplugin.numerics.extrapolation`.

    The history is a chain of moves from iterate to iterate: the residuals of plain steps, and the jumps of mixes.
    """

    def __init__(self, step: Step, alpha: float) -> None:
        self._step, self._depth = step, depth_for(alpha, step.seeds)
        self._rows: Any = None
        self._pays: Any = np.True_
        self._weak: Any = np.False_
        self.restart()

    def restart(self) -> None:
        """Forget the history."""
        self._history: list[int] = []
        """The rows of the history, from the oldest move to the newest; the last `_since` of them are of this cycle."""
        self._jump: int | None = None
        self._since = 0

    @property
    def moves(self) -> Any:
        """The row for the residual of the next step; None where mixing does not pay."""
        if not self._pays.any():
            return None
        if self._rows is None:
            self._rows = self._step.history(self._depth.rows)
        return None if self._rows is None else self._rows[self._free()]

    def after_step(self, left: Callable[[], Any]) -> bool:
        """Take note of a step, and mix if it is time; return whether it did.

        Parameters
        ----------
        left : function
            Returns how many plain steps are left, about: a number, or an array with an entry per seed.
        """
        if self._rows is None or not self._pays.any():
            return False
        self._history.append(self._free())
        self._since += 1
        if self._since < self._depth.period:
            return False
        worth = self._pays & np.asarray(left() >= WORTH)
        if not worth.any():
            self.restart()
            return False
        rows = self._rows[: max(self._history) + 1]
        steps = [row for row in self._history if row != self._jump]
        products = self._step.products(rows, steps)
        chosen = np.zeros((*products.shape[:-2], len(rows)))
        chosen[..., steps] = mixing_weights(products)
        weak = _gains_little(products, chosen[..., steps])
        self._pays, self._weak = self._pays & ~(weak & self._weak), weak
        # sum_j a_j y_j = y_last - sum over moves of the sum of the a_j before it, which loses nothing to rounding.
        along = chosen[..., self._history]
        weights = np.zeros_like(chosen)
        weights[..., self._history] = np.cumsum(along, axis=-1) - along
        weights[~(worth & np.isfinite(weights).all(axis=-1))] = 0
        # An entry of the jump is written when those of all moves have been read: it may replace the oldest of them.
        self._jump = self._free() if len(self._history) < self._depth.rows else self._history[0]
        self._step.mix(rows, weights, self._rows[self._jump])
        if self._depth.cycles == 1:
            self.restart()
            return True
        self._history = [
            *self._history[len(self._history) - self._depth.period * (self._depth.cycles - 1) :],
            self._jump,
        ]
        self._since = 0
        return True

    def _free(self) -> int:
        return next(row for row in range(self._depth.rows) if row not in self._history)


def _gains_little(products: Floats, weights: Floats) -> Any:
    """Return whether ||sum_j a_j f_j|| is above what `GAIN` more plain steps, at the last one's pace, make of ||f||."""
    least = ((products * weights[..., None, :]).sum(axis=-1) * weights).sum(axis=-1)
    last, before = products[..., -1, -1], products[..., -2, -2]
    with np.errstate(all="ignore"):
        return (last < before) & (least > last * (last / before) ** GAIN)


class Mean:
    """The mean of some iterates: their first, plus the mean of what they differ by, which loses nothing to rounding.

    Where P has eigenvalues of modulus 1 other than 1 (a cycle, a star), rounding keeps the iterates going round the
    solution: a step leaves an L1 error e of at most `noise`, they stay within noise / (1 - alpha) of x*, and so does
    their change, which is 1 / (1 - alpha) times too much for the bound. But the mean z of N iterates x_1 ... x_N has

        G z - z = (x_(N+1) - x_1) / N - mean(e),

    so that with N = 8 / (1 - alpha) its residual is at most 1.25 * noise, and what is left of the first of them. One
    step from z then proves every tolerance down to `Certificate.provable` = 5 * noise / (1 - alpha), on any graph.
    """

    def __init__(self, step: Step, alpha: float) -> None:
        self._step, self._size = step, math.ceil(8 / (1 - alpha))
        self._first: Floats | None = None

    def after_step(self) -> bool:
        """Add an iterate; go to the mean if that was the last, and say so."""
        ranks = self._step.ranks()
        if self._first is None:
            self._first, self._sum, self._count = ranks.copy(), 0 * ranks, 1
        else:
            self._sum += ranks - self._first
            self._count += 1
        if self._count < self._size:
            return False
        self._step.start(self._first + self._sum / self._size)
        self._first = None
        return True
