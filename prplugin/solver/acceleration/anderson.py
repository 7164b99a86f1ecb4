"""Anderson mixing of the iterates, between plain steps.

It extrapolates the fixed point of an affine map from its last iterates. Let y_j = G x_j be steps of
G x = A x + b from any vectors x_j, and f_j = y_j - x_j their residuals. For weights a_j of sum 1,

    z = sum_j a_j y_j    has    G z - z = A sum_j a_j f_j,

since z - b = A sum_j a_j x_j. The a_j that minimise ||sum_j a_j f_j|| in L2 cancel the slow modes of the residual, each
of which a plain step shrinks by alpha at most (Walker and Ni 2011, "Anderson acceleration for fixed-point iterations").
Iterates are mixed once in `period` steps, from the residuals of the last `cycles * period` steps; one cycle is reduced
rank extrapolation.

The error bound does not depend on the mixing: z, clipped at 0 and divided by its sum, is a start like any other, and
one exact step from it proves the bound.
"""

from __future__ import annotations

import numpy as np

from prplugin.methods.base import Step
from prplugin.numerics import depth_for
from prplugin.solver.loop import Now, Proposal, Strategy
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats

MIN_GAIN = 0.15
"""Minimum gain of a mix, in plain steps. Mixing pauses after two consecutive mixes that gain less."""

RIDGE = 1e-12
"""Relative ridge: this times the trace is added to the diagonal, since residuals may be nearly dependent."""


class AndersonMixing(Strategy):
    """Mixes the iterates at the end of each cycle.

    The history holds the differences of consecutive iterates, called moves: the residual y - x of each plain step, and
    the jump z - y of each mix from y to z.

    Mixing that has paused begins again once the changes shrink by less than the square root of the factor at the pause:
    slow modes, which it removes, set the pace when the fast ones have gone. Native kernels do the same.

    `until`: Number of passes from which on it proposes nothing.
    """

    def __init__(self, alpha: float, seeds: int | None, until: int) -> None:
        self._depth, self._until = depth_for(alpha, seeds), until
        self._rows: Array | None = None
        self._recording = False  # whether the last step wrote its residual to the free row
        self._ended = False
        self._gained_little: np.bool_ | Booleans = np.False_
        self._paused: np.bool_ | Booleans = np.False_
        self._resuming: np.float64 | Floats = np.float64(1)  # ratio of two changes above which mixing begins again
        self.forget()

    def forget(self) -> None:
        self._recording = False
        self._history: list[int] = []
        """Rows of the moves, oldest first; the last `_since` of them belong to the current cycle."""
        self._jump: int | None = None
        self._since = 0

    def moves(self, step: Step) -> Array | None:
        self._recording = False
        if self._ended or self._paused.all():
            return None
        if self._rows is None:
            self._rows = step.history(self._depth.rows)
        self._recording = self._rows is not None
        return None if self._rows is None else self._rows[self._free()]

    def propose(self, step: Step, now: Now) -> Proposal | None:
        if now.passes >= self._until:
            self._ended = True
        if self._paused.any():
            self._paused = self._paused & (now.change <= now.before * self._resuming)
        if self._ended or not self._recording or self._rows is None:
            return None
        self._history.append(self._free())
        self._since += 1
        if self._since < self._depth.period:
            return None
        # The goal does not matter: then a tolerance only decides where the same iteration ends, and a looser one never
        # takes more passes. Leaving a mix out because few steps were left took more passes more often than fewer.
        pays_now = ~self._paused & np.asarray(now.live)
        if not pays_now.any():
            self._gained_little = pays_now
            self.forget()
            return None
        rows = self._rows[: max(self._history) + 1]
        steps = [row for row in self._history if row != self._jump]
        products = step.products(rows, steps)
        row_weights = np.zeros((*products.shape[:-2], len(rows)))
        row_weights[..., steps] = mixing_weights(products)
        little, rate = _gains_little(products, row_weights[..., steps])
        gained_little = pays_now & little
        pausing = gained_little & self._gained_little
        self._paused, self._gained_little = self._paused | pausing, gained_little & ~pausing
        self._resuming = np.where(pausing, np.sqrt(rate), self._resuming)
        # sum_j a_j y_j = y_last - sum_k (sum_(j<k) a_j) d_k with the moves d_k: small corrections, no cancellation.
        step_weights = row_weights[..., self._history]
        weights = np.zeros_like(row_weights)
        weights[..., self._history] = np.cumsum(step_weights, axis=-1) - step_weights
        mixed = pays_now & np.isfinite(weights).all(axis=-1)
        weights[~mixed] = 0
        # `mix` reads an entry of all moves before it writes that of the jump: the jump may overwrite the oldest move.
        self._jump = self._free() if len(self._history) < self._depth.rows else self._history[0]
        step.mix(rows, weights, self._rows[self._jump])
        if self._depth.cycles == 1 or self._paused.all():
            self.forget()
            return Proposal(moved=mixed)
        self._history = [
            *self._history[len(self._history) - self._depth.period * (self._depth.cycles - 1) :],
            self._jump,
        ]
        self._since = 0
        return Proposal(moved=mixed)

    def _free(self) -> int:
        return next(row for row in range(self._depth.rows) if row not in self._history)


def _gains_little(products: Floats, weights: Floats) -> tuple[Booleans, Floats]:
    """Return whether ||sum_j a_j f_j|| exceeds ||f|| after `MIN_GAIN` more plain steps at the rate of the last one.

    Also return that rate, the ratio of the last two residuals.
    """
    mixed_norm = ((products * weights[..., None, :]).sum(axis=-1) * weights).sum(axis=-1)
    last, before = products[..., -1, -1], products[..., -2, -2]  # squared
    with np.errstate(all="ignore"):
        rate = np.sqrt(last / before)
        return (rate < 1) & (mixed_norm > last * rate ** (2 * MIN_GAIN)), rate


def mixing_weights(products: Floats) -> Floats:
    """Minimise a^T M a over a of sum 1, for each matrix M of dot products of residuals, the newest residual last.

    With a = e_last - T^T g, where T takes differences of neighbours, this is the least squares problem
    (T M T^T) g = T M e_last. With its ridge the matrix is positive definite, so elimination needs no pivoting. All
    operations are elementwise, so the bits are the same on every machine.
    """
    forward = np.diff(products, axis=-2)
    matrix, right = np.diff(forward, axis=-1), forward[..., -1].copy()
    size = matrix.shape[-1]
    trace = np.trace(matrix, axis1=-2, axis2=-1)
    matrix[..., range(size), range(size)] += np.where(trace > 0, RIDGE * trace, 1.0)[..., None]
    for pivot in range(size):
        factors = matrix[..., pivot + 1 :, pivot] / matrix[..., pivot, pivot, None]
        matrix[..., pivot + 1 :, :] -= factors[..., None] * matrix[..., pivot, None, :]
        right[..., pivot + 1 :] -= factors * right[..., pivot, None]
    for pivot in reversed(range(size)):
        right[..., pivot] /= matrix[..., pivot, pivot]
        right[..., :pivot] -= matrix[..., :pivot, pivot] * right[..., pivot, None]
    weights = np.zeros(products.shape[:-1])
    weights[..., -1] = 1
    weights[..., :-1] += right
    weights[..., 1:] -= right
    return weights
