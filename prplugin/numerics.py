"""Formulas that do not depend on the graph: rounding depths, on which the error bound rests, and extrapolation.

**Anderson mixing** extrapolates the fixed point of an affine map from its last iterates. Let y_j = G x_j be steps of
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

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from prplugin.types.edges import Floats

FAN_IN = 32
"""Terms added per group. A larger value is slightly faster and gives a slightly larger bound."""


@lru_cache(1024)
def rounding_depth(terms: int, fan_in: int = FAN_IN) -> int:
    """Return the most additions that a term goes through when `terms` terms are added in groups of `fan_in`."""
    additions = 0
    while terms > fan_in:
        additions += fan_in - 1
        terms = -(-terms // fan_in)
    return additions + max(terms - 1, 0)


@lru_cache(1024)
def fan_in_for(longest: int) -> int:
    """Return the number of terms, and of sums, added at a time, such that three levels reach `longest` terms."""
    fan_in = FAN_IN
    while fan_in**3 < longest:
        fan_in += 1
    return fan_in


@lru_cache(1024)
def group_sum_depth(longest: int) -> int:
    """Return the rounding depth of a sum of up to `longest` terms by `GroupSums`, or by kernels of the same order.

    The three summands are additions within a piece, within a group of pieces, and of those groups.
    """
    fan_in = fan_in_for(longest)
    return min(longest, fan_in) + min(longest // fan_in + 1, fan_in) + longest // fan_in**2 + 1


def compensated_depth(terms: int) -> int:
    """Return the rounding depth of a compensated sum of up to `terms` terms, for any order of additions.

    If each term goes through at most k additions, the relative error is at most u + (k * u)**2, u = 2**-53 (Ogita, Rump
    and Oishi 2005, "Accurate sum and dot product", Sum2), and k * k * u <= 1 + (k / 2**26)**2.
    """
    return 2 + (terms >> 26) ** 2


class StepRounding(NamedTuple):
    """Rounding depths in a step, by what is summed. A quotient or a product counts as one rounding.

    `row`: Additions that a term of a row sum goes through.
    `edge`: Roundings in a term of a row sum, those of contribution, normalized weight, product and out-weight.
    `dangling`: Additions that a rank goes through in the dangling mass D.
    `vectors`: Roundings in an entry of v or w.
    `norm`: Roundings in a term of ||y - x||, and additions that it goes through.
    `single`: Roundings to float32 in a term of a row sum.
    """

    row: int
    edge: int
    dangling: int
    vectors: int
    norm: int
    single: int = 0


# --- Anderson mixing ----------------------------------------------------------------------------------------------


RIDGE = 1e-12
"""Relative ridge: this times the trace is added to the diagonal, since residuals may be nearly dependent."""

LONG_FROM = 0.9
"""Least alpha for which the longer history needs fewer edge passes: docs/convergence.md."""


class Depth(NamedTuple):
    """Length of the history of iterates.

    `period`: Steps from one mix to the next.
    `cycles`: Number of periods whose residuals are mixed, at most.
    `rows`: Number of vectors in the history: the residuals, and the change made by each mix between them.
    """

    period: int
    cycles: int
    rows: int


@lru_cache(1024)
def depth_for(alpha: float, seeds: int | None = None) -> Depth:
    """Return the length of the history. Many seeds get a shorter one, since it is most of their memory."""
    period, cycles = (8, 1) if seeds is not None else (9, 2) if alpha > LONG_FROM else (3, 2)
    return Depth(period, cycles, period * cycles + cycles - 1)


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
