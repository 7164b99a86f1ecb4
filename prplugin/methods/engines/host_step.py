"""Shared parts of steps on the host: Anderson mixing in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.methods.base import Step
from prplugin.numerics import symmetric
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats

CHUNK = 8192
"""Entries per chunk of a vector: few enough that no BLAS splits a dot product among threads, and that all rows stay in
the cache."""


class HostStep(Step):
    """A step whose ranks are a NumPy array, or this process's part of them: see `prplugin.numerics`."""

    keeps_history = True

    def history(self, rows: int) -> Any:
        return np.empty((rows, *self.ranks().shape), np.float32)

    def products(self, moves: Array, rows: list[int]) -> Floats:
        n, k = moves.shape[1], len(rows)
        found = np.zeros((k, k))
        for first in range(0, n, CHUNK):
            part = [moves[row, first : first + CHUNK].astype(np.float64) for row in rows]
            for i in range(k):
                for j in range(i + 1):
                    found[i, j] += part[i].dot(part[j])
        products: Floats = self.add(symmetric(found))
        return products

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        # weights @ moves is a correction of the ranks, so float32 suffices for it.
        ranks = self.ranks()
        mixed = np.empty_like(ranks)
        used = [(weight, row) for weight, row in zip(weights.astype(np.float32), moves, strict=True) if weight]
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
        mixed /= self.add(total(mixed)) or 1.0
        np.subtract(mixed, ranks, out=jump, casting="same_kind")
        self.start(mixed)
