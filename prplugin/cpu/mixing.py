"""Anderson mixing of vectors in NumPy: see `prplugin.numerics.extrapolation`."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.numerics.extrapolation import symmetric
from prplugin.types.edges import Floats

__all__ = ["mixed", "products"]

CHUNK = 8192
"""Entries per chunk of a vector: few enough that no BLAS splits a dot product among threads, and that all rows stay in
the cache."""


def products(moves: Any, rows: list[int]) -> Floats:
    """Return the k x k dot products of k `rows` of float32, in float64 and always in the same order of additions."""
    n, k = moves.shape[1], len(rows)
    found = np.zeros((k, k))
    for first in range(0, n, CHUNK):
        part = [moves[row, first : first + CHUNK].astype(np.float64) for row in rows]
        for i in range(k):
            for j in range(i + 1):
                found[i, j] += part[i].dot(part[j])
    return symmetric(found)


def mixed(ranks: Floats, rows: Any, weights: Floats, jump: Any) -> Floats:
    """Return z = max(ranks - weights @ rows, 0), and write z - ranks to `jump`.

    The product is a correction of the ranks, so float32 suffices for it. `jump` may alias one of `rows`: each chunk is
    read before it is written.
    """
    mixed = np.empty_like(ranks)
    used = [(weight, row) for weight, row in zip(weights.astype(np.float32), rows, strict=True) if weight]
    correction = np.empty(min(CHUNK, len(ranks)), np.float32)
    term = np.empty_like(correction)
    for first in range(0, len(ranks), CHUNK):
        here = slice(first, first + CHUNK)
        part = mixed[here]
        correction[:] = 0
        for weight, row in used:
            correction[: len(part)] += np.multiply(weight, row[here], out=term[: len(part)])
        np.subtract(ranks[here], correction[: len(part)], out=part)
        np.maximum(part, 0.0, out=part)
        np.subtract(part, ranks[here], out=jump[here], casting="same_kind")
    return mixed
