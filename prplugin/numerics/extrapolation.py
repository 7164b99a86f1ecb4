"""Reduced rank extrapolation: from a window of plain steps to where they lead.

Let x_0, x_1, ... be iterates of the affine map G x = A x + b, and d_j = x_(j+1) - x_j what each step changed. For
weights g_j of sum 1,

    y = sum_j g_j x_(j+1)    has    G y - y = A sum_j g_j d_j,

so that the g_j for which ||sum g_j d_j|| is least, in L2, take out of the residual whatever the window has seen enough
of: slow modes, which plain steps shrink by no more than alpha each. It is what GMRES does that starts anew with every
window (Sidi 2017, "Vector Extrapolation Methods with Applications", chapter 2; for PageRank, with a window of three:
Kamvar and others 2003, "Extrapolation methods for accelerating PageRank computations").

The proof of the error bound knows nothing of this. y is a vector to start from like any other, non-negative and of
sum 1, and a plain step from it is proved like any other.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from prplugin.types.edges import Floats

__all__ = ["WINDOW", "Window", "host_window_bytes", "leap_weights"]

WINDOW = 17
"""Steps in a window: docs/decisions/0007-extrapolate.md."""

WORTH = 0.5
"""Only a residual that is foretold to fall below this part of the last step's is worth a leap."""

NOISE = 1e-12
"""What roundings to float32 may leave of an eigenvalue of 0 of the scaled Gram matrix, as a part of the largest."""


class Window(Protocol):
    """A window of iterates."""

    @property
    def left(self) -> int:
        """How many more it takes."""

    @property
    def last(self) -> Floats:
        """The iterate taken last, n float64, which a failed leap goes back to; who takes it may keep it."""

    def add(self, ranks: Floats) -> None:
        """Take the next iterate."""

    def leap(self) -> Floats | None:
        """Give the extrapolated ranks, or None where they would not be worth it."""

    def restart(self, ranks: Floats) -> None:
        """Begin anew with what the next step begins from."""


def host_window_bytes(n: int) -> int:
    """Count the bytes of a window while its last step is taken: all moves but one, and the iterate before."""
    return n * (4 * (WINDOW - 1) + 8)


def leap_weights(lower: Floats) -> Floats | None:
    """Give what of each move but the last to take from the last iterate, or None where that would not be worth it.

    Parameters
    ----------
    lower : array of k x k float64
        All moves of a window multiplied with all, i >= j; 0 above.
    """
    products = lower + np.tril(lower, -1).T
    weights = _least(products)
    if weights is None or not weights @ products @ weights < WORTH**2 * products[-1, -1]:
        return None
    # sum_j g_j x_(j+1) = x_last - sum_j (g_0 + ... + g_(j-1)) d_j, which loses nothing to rounding.
    return np.cumsum(weights)[:-1]


def _least(products: Floats) -> Floats | None:
    """Minimise g^T M g over g of sum 1: g is M^-1 1, scaled; where M is singular, along directions that cost 0."""
    norms = np.sqrt(np.diag(products))
    if not (norms > 0).all():
        return None  # a step that changed nothing: there is nowhere to go
    values, vectors = np.linalg.eigh(products / np.outer(norms, norms))
    values = np.maximum(values, NOISE * values[-1])
    weights: Floats = vectors @ ((vectors.T @ (1 / norms)) / values) / norms
    whole = weights.sum()
    return weights / whole if np.isfinite(whole) and whole != 0 else None
