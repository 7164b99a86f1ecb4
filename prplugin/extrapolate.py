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

import numpy as np

from prplugin.graph.edges import Floats
from prplugin.graph.sums import total

__all__ = ["WINDOW", "Extrapolation"]

WINDOW = 17
"""Steps in a window: docs/decisions/0007-extrapolate.md."""

WORTH = 0.5
"""Only a residual that is foretold to fall below this part of the last step's is worth a leap."""

NOISE = 1e-12
"""What roundings to float32 may leave of an eigenvalue of 0 of the scaled Gram matrix, as a part of the largest."""

CHUNK = 8192
"""Terms of a dot product: few enough that no BLAS shares them among threads, and that two lie in the first cache."""


class Extrapolation:
    """Takes a window of iterates and leaps ahead of them.

    Parameters
    ----------
    ranks : array of n float64
        What the next step begins from.

    Attributes
    ----------
    last : array of n float64
        The iterate taken last, from which a leap is made and to which a failed one goes back.
    """

    def __init__(self, ranks: Floats) -> None:
        self.restart(ranks)

    def restart(self, ranks: Floats) -> None:
        """Begin a window with what the next step begins from."""
        self.last = ranks.copy()  # anew: who took the old one may keep it
        self._moves: list[np.ndarray] = []

    def add(self, ranks: Floats) -> None:
        """Take the next iterate. Its move is kept in float32: weights need no more, for y is but a start."""
        move = np.empty(ranks.size, np.float32)
        np.subtract(ranks, self.last, out=move, casting="same_kind")
        self._moves.append(move)
        np.copyto(self.last, ranks)

    @property
    def full(self) -> bool:
        """Whether there are enough iterates to leap from."""
        return len(self._moves) == WINDOW

    def leap(self) -> Floats | None:
        """Give the extrapolated ranks, or None where they would not be worth it; the window begins anew."""
        moves, self._moves = self._moves, []
        products = _gram(moves)
        weights = _weights(products)
        if weights is None or not weights @ products @ weights < WORTH**2 * products[-1, -1]:
            return None
        # sum_j g_j x_(j+1) = x_last - sum_j (g_0 + ... + g_(j-1)) d_j, which loses nothing to rounding.
        ranks = self.last.copy()
        for move, weight in zip(moves[1:], np.cumsum(weights), strict=False):
            ranks -= weight * move
        np.maximum(ranks, 0.0, out=ranks)
        ranks /= total(ranks)
        return ranks


def _gram(moves: list[np.ndarray]) -> Floats:
    """Multiply all moves with all, in float64 and always in the same order."""
    k, n = len(moves), moves[0].size
    products = np.zeros((k, k))
    for first in range(0, n, CHUNK):
        part = np.array([move[first : first + CHUNK] for move in moves], np.float64)
        for i in range(k):
            for j in range(i + 1):
                products[i, j] += part[i].dot(part[j])
    return products + np.tril(products, -1).T


def _weights(products: Floats) -> Floats | None:
    """Minimise g^T M g over g of sum 1: g is M^-1 1, scaled; where M is singular, along directions that cost 0."""
    norms = np.sqrt(np.diag(products))
    if not (norms > 0).all():
        return None  # a step that changed nothing: there is nowhere to go
    values, vectors = np.linalg.eigh(products / np.outer(norms, norms))
    values = np.maximum(values, NOISE * values[-1])
    weights: Floats = vectors @ ((vectors.T @ (1 / norms)) / values) / norms
    whole = weights.sum()
    return weights / whole if np.isfinite(whole) and whole != 0 else None
