"""Anderson mixing in NumPy, shared by all steps on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu import mixing
from prplugin.cpu.sums import total
from prplugin.methods.base import Step
from prplugin.types.edges import Floats

__all__ = ["HostStep"]


class HostStep(Step):
    """A step whose ranks are a NumPy array, or this process's part of them."""

    def history(self, rows: int) -> Any:
        return np.empty((rows, *self.ranks().shape), np.float32)

    def products(self, moves: Any, rows: list[int]) -> Floats:
        found: Floats = self.add(mixing.products(moves, rows))
        return found

    def mix(self, moves: Any, weights: Floats, jump: Any) -> None:
        ranks = mixing.mixed(self.ranks(), moves, weights, jump)
        ranks /= self.add(total(ranks))
        self.start(ranks)
