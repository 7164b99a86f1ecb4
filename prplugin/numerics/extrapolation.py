"""Anderson mixing: extrapolate the fixed point of an affine map from its last iterates.

Let y_j = G x_j be steps of G x = A x + b from any vectors x_j, and f_j = y_j - x_j their residuals. For weights a_j of
sum 1,

    z = sum_j a_j y_j    has    G z - z = A sum_j a_j f_j,

since z - b = A sum_j a_j x_j. The a_j that minimise ||sum_j a_j f_j|| in L2 cancel the slow modes of the residual, each
of which a plain step shrinks by alpha at most (Walker and Ni 2011, "Anderson acceleration for fixed-point iterations").
Iterates are mixed once in `period` steps, from the residuals of the last `cycles * period` steps; one cycle is reduced
rank extrapolation.

The error bound does not depend on the mixing: z, clipped at 0 and divided by its sum, is a start like any other, and
one exact step from it proves the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prplugin.types.edges import Floats

RIDGE = 1e-12
"""Relative ridge: this times the trace is added to the diagonal, since residuals may be nearly dependent."""

LONG_FROM = 0.9
"""Least alpha for which the longer history needs fewer edge passes: docs/convergence.md."""


class Depth(NamedTuple):
    """Length of the history of iterates.

    `period`: Steps from one mix to the next.
    `cycles`: Number of periods whose residuals are mixed, at most.
    """

    period: int
    cycles: int

    @property
    def rows(self) -> int:
        """Number of vectors in the history: the residuals, and the change made by each mix between them."""
        return self.period * self.cycles + self.cycles - 1


def depth_for(alpha: float, seeds: int | None = None) -> Depth:
    """Return the length of the history. Many seeds get a shorter one, since it is most of their memory."""
    if seeds is not None:
        return Depth(8, 1)
    return Depth(9, 2) if alpha > LONG_FROM else Depth(3, 2)


def symmetric(lower: Floats) -> Floats:
    """Return the symmetric matrices that have these lower triangles; the entries above must be 0."""
    matrices: Floats = lower + np.tril(lower, -1).swapaxes(-2, -1)
    return matrices


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
