"""Anderson mixing of vectors on the GPU: launches the kernels of gpu/mixing.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.gpu import runtime
from prplugin.gpu.lazy import cupy
from prplugin.methods.base import Array, Floats, Step

THREADS = 256  # threads per block: at least one per pair of moves

BLOCKS = 128

GROUPS = 8  # vertices that a block processes at a time, with many seeds


class MixedOnDevice(Step):
    """A step whose ranks are in device memory: a vector, or a matrix with one column per seed."""

    keeps_history = True
    _ranks: Any  # n float64, or n x seeds

    def history(self, rows: int) -> Any:
        # Temporary vectors beside the history: of a mix, of its division by the sum, and of the start from it.
        if not runtime.fits((4 * rows + 4 * 8) * self._ranks.size):
            return None
        return cupy.empty((rows, *self._ranks.shape), np.float32)

    def products(self, moves: Array, rows: list[int]) -> Floats:
        count, n, *seeds = moves.shape
        shape, threads = self._shape(seeds)
        partials = cupy.empty((shape, count * (count + 1) // 2, *seeds))
        self._mixing("products", moves)((BLOCKS,), threads, (n, moves, partials))
        found = np.zeros((count, count, *seeds))
        row, column = np.tril_indices(count)
        found[row, column] = found[column, row] = self.add(partials.get().sum(axis=0))
        products = np.moveaxis(found, -1, 0) if seeds else found
        return products[..., rows, :][..., rows]

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        _, n, *seeds = moves.shape
        shape, threads = self._shape(seeds)
        sums = cupy.empty((shape, *seeds))
        transposed = cupy.asarray(np.ascontiguousarray(weights.T))
        self._mixing("mix", moves)((BLOCKS,), threads, (n, moves, transposed, self._ranks, jump, sums))
        totals = self.add(sums.get().sum(axis=0))
        norms = cupy.asarray(np.where(weights.any(axis=-1) & (totals > 0), totals, 1.0))
        self._ranks /= norms
        if not seeds:  # the kernel wrote z - y
            jump -= (norms - 1.0) * self._ranks
        self.start(self._ranks)

    def _shape(self, seeds: list[int]) -> tuple[int, tuple[int, ...]]:
        """Return the number of partial sums, and the shape of a block."""
        return (BLOCKS * GROUPS, (seeds[0], GROUPS)) if seeds else (BLOCKS, (THREADS,))

    def _mixing(self, name: str, moves: Array) -> Any:
        return runtime.kernel("gpu/mixing.cu", ("seeds_" if moves.ndim == 3 else "") + name, ROWS=len(moves))
