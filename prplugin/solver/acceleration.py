"""Acceleration between plain steps: Anderson mixing, and the mean of iterates once they stagnate at rounding level."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from prplugin.methods.base import Step
from prplugin.numerics.extrapolation import depth_for, mixing_weights
from prplugin.types.edges import Floats

MIN_STEPS_LEFT = 4
"""Minimum number of plain steps left for a mix to be faster than these steps."""

MIN_GAIN = 0.15
"""Minimum gain of a mix, in plain steps. Mixing ends after two consecutive mixes that gain less."""


class Mixing:
    """Anderson mixing of the iterates: see `prplugin.numerics.extrapolation`.

    The history holds the differences of consecutive iterates, called moves: the residual y - x of each plain step, and
    the jump z - y of each mix from y to z.
    """

    def __init__(self, step: Step, alpha: float) -> None:
        self._step, self._depth = step, depth_for(alpha, step.seeds)
        self._rows: Any = None
        self._enabled: Any = np.True_
        self._ended = False
        self._gained_little: Any = np.False_
        self.restart()

    def restart(self) -> None:
        """Discard the history."""
        self._history: list[int] = []
        """Rows of the moves, oldest first; the last `_since` of them belong to the current cycle."""
        self._jump: int | None = None
        self._since = 0

    @property
    def moves(self) -> Any:
        """Row that receives the residual of the next step, or None if mixing has ended or has no memory."""
        if self._ended:
            return None
        if self._rows is None:
            self._rows = self._step.history(self._depth.rows)
        return None if self._rows is None else self._rows[self._free()]

    def after_step(self, left: Callable[[], Any]) -> Any:
        """Record a plain step, and mix at the end of a cycle; return whether the iterate, or each seed's, was mixed.

        `left`: Returns an estimate of the number of plain steps left: a number, or an array with an entry per seed.
        """
        if self._rows is None or self._ended:
            return False
        self._history.append(self._free())
        self._since += 1
        if self._since < self._depth.period:
            return False
        pays_now = self._enabled & np.asarray(left() >= MIN_STEPS_LEFT)
        if not pays_now.any():
            self._gained_little = pays_now
            self.restart()
            return pays_now
        rows = self._rows[: max(self._history) + 1]
        steps = [row for row in self._history if row != self._jump]
        products = self._step.products(rows, steps)
        row_weights = np.zeros((*products.shape[:-2], len(rows)))
        row_weights[..., steps] = mixing_weights(products)
        gained_little = pays_now & _gains_little(products, row_weights[..., steps])
        self._enabled, self._gained_little = self._enabled & ~(gained_little & self._gained_little), gained_little
        self._ended = not self._enabled.any()
        # sum_j a_j y_j = y_last - sum_k (sum_(j<k) a_j) d_k with the moves d_k: small corrections, no cancellation.
        step_weights = row_weights[..., self._history]
        weights = np.zeros_like(row_weights)
        weights[..., self._history] = np.cumsum(step_weights, axis=-1) - step_weights
        mixed = pays_now & np.isfinite(weights).all(axis=-1)
        weights[~mixed] = 0
        # `mix` reads an entry of all moves before it writes that of the jump: the jump may overwrite the oldest move.
        self._jump = self._free() if len(self._history) < self._depth.rows else self._history[0]
        self._step.mix(rows, weights, self._rows[self._jump])
        if self._depth.cycles == 1:
            self.restart()
            return mixed
        self._history = [
            *self._history[len(self._history) - self._depth.period * (self._depth.cycles - 1) :],
            self._jump,
        ]
        self._since = 0
        return mixed

    def _free(self) -> int:
        return next(row for row in range(self._depth.rows) if row not in self._history)


def _gains_little(products: Floats, weights: Floats) -> Any:
    """Return whether ||sum_j a_j f_j|| exceeds ||f|| after `MIN_GAIN` more plain steps at the rate of the last one."""
    mixed_norm = ((products * weights[..., None, :]).sum(axis=-1) * weights).sum(axis=-1)
    last, before = products[..., -1, -1], products[..., -2, -2]
    with np.errstate(all="ignore"):
        return (last < before) & (mixed_norm > last * (last / before) ** MIN_GAIN)


class MeanRestart:
    """Restart from the mean of N = 8 / (1 - alpha) consecutive iterates, to remove a cycle at rounding level.

    A computed step is x_(k+1) = G x_k + e_k with ||e_k|| <= noise. Where P has eigenvalues of modulus 1 other than 1
    (a cycle, a star), rounding errors keep the iterates on an orbit around x* with a radius of up to
    noise / (1 - alpha). The change of a step is then of the same size, and the error bound 1 / (1 - alpha) times
    larger. The mean z of N iterates x_1 ... x_N has the residual

        G z - z = (x_(N+1) - x_1) / N - mean(e),

    which is at most 1.25 * noise for N = 8 / (1 - alpha), apart from the remaining convergence error of x_1. One step
    from z therefore proves every tolerance down to `Certificate.provable` = 5 * noise / (1 - alpha), on any graph.

    The mean is computed as x_1 + mean(x_k - x_1), which avoids rounding errors of the size of the ranks.
    """

    def __init__(self, step: Step, alpha: float) -> None:
        self._step, self._size = step, math.ceil(8 / (1 - alpha))
        self._first: Floats | None = None

    def after_step(self) -> bool:
        """Add the current iterate; after N of them restart the step from their mean. Return whether it did."""
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
