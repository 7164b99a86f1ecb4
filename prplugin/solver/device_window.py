"""A window of iterates on the GPU, which records by itself what each step changes."""

from __future__ import annotations

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.methods.base import LaunchStep
from prplugin.numerics.extrapolation import WINDOW, leap_weights
from prplugin.types.edges import Floats

__all__ = ["DeviceWindow"]

THREADS = 256
"""At least one for each pair of moves."""

BLOCKS = 128
"""Of the kernels: the same on every GPU, so that the sums are the same to the bit."""

PAIRS = WINDOW * (WINDOW + 1) // 2


class DeviceWindow:
    """Takes a window of iterates and leaps ahead of them: see `prplugin.numerics.extrapolation.Window`.

    Parameters
    ----------
    step : LaunchStep
        It records its moves, in float32: weights need no more, for where a leap leads is but a start.
    """

    def __init__(self, step: LaunchStep) -> None:
        self._step = step
        self._n = step.ranks().size
        self._moves = cupy.empty((WINDOW, self._n), np.float32)
        self.restart(step.ranks())

    def restart(self, ranks: Floats) -> None:
        self._step.record(self._moves)
        self._taken = 0

    def add(self, ranks: Floats) -> None:
        self._taken += 1
        self._ranks = ranks

    @property
    def left(self) -> int:
        return WINDOW - self._taken

    @property
    def last(self) -> Floats:
        return self._ranks  # a step that starts anew does so in memory of its own

    def leap(self) -> Floats | None:
        weights = leap_weights(self._gram())
        if weights is None:
            return None
        ranks: Floats = cupy.empty(self._n)
        sums = cupy.empty(BLOCKS)
        launch = runtime.kernel("gpu/leap.cu", "leap", WINDOW=WINDOW)
        launch((BLOCKS,), (THREADS,), (self._n, self._ranks, self._moves, cupy.asarray(weights), ranks, sums))
        ranks /= sums.get().sum()
        return ranks

    def _gram(self) -> Floats:
        partials = cupy.empty((BLOCKS, PAIRS))
        launch = runtime.kernel("gpu/leap.cu", "gram", WINDOW=WINDOW)
        launch((BLOCKS,), (THREADS,), (self._n, self._moves, partials))
        products = np.zeros((WINDOW, WINDOW))
        products[np.tril_indices(WINDOW)] = partials.get().sum(axis=0)
        return products
