"""Anderson mixing: from the last iterates of an affine map to where they lead.

Let y_j = G x_j be steps of G x = A x + b from any vectors x_j, and f_j = y_j - x_j their residuals. For weights a_j of
sum 1,

    z = sum_j a_j y_j    has    G z - z = A sum_j a_j f_j,

since z - b is A sum_j a_j x_j. The a_j for which ||sum_j a_j f_j|| is least, in L2, remove from the residual what the
last steps have seen enough of: slow modes, which a plain step shrinks by no more than alpha each (Walker and Ni 2011,
"Anderson acceleration for fixed-point iterations"). Iterates are mixed once in `period` steps, from the residuals of
the last `cycles` times as many; with one cycle that is reduced rank extrapolation.

The proof of the error bound knows nothing of this. z is a vector to start from like any other, clipped at 0 and divided
by its sum, and the step from it is proved like any other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prplugin.types.edges import Floats

__all__ = ["Depth", "depth_for", "mixing_weights"]

RIDGE = 1e-12
"""Of the trace, added to the diagonal: residuals may be all but dependent."""

LONG_FROM = 0.9
"""Least alpha at which the longer history needs fewer passes: docs/convergence.md."""


class Depth(NamedTuple):
    """How long the history of iterates is.

    Attributes
    ----------
    period : int
        Steps from one mix to the next.
    cycles : int
        How many times as many residuals are mixed, at most.
    """

    period: int
    cycles: int

    @property
    def rows(self) -> int:
        """Vectors of the history: residuals, and what the mixes between them moved."""
        return self.period * self.cycles + self.cycles - 1


def depth_for(alpha: float, seeds: int | None = None) -> Depth:
    """Return how long the history is to be. For many seeds it is mixed less often: it is most of their memory."""
    if seeds is not None:
        return Depth(8, 1)
    return Depth(9, 2) if alpha > LONG_FROM else Depth(3, 2)


def mixing_weights(products: Floats) -> Floats:
    """Minimise a^T M a over a of sum 1, for each matrix M of the dot products of residuals; the last one is the newest.

    With a = e_last - T^T g, where T takes the differences of neighbours, that is the least squares problem
    (T M T^T) g = T M e_last. It is solved by elimination without pivots, as the matrix is positive definite with its
    ridge; elementwise, so that the bits are the same on every machine.
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
