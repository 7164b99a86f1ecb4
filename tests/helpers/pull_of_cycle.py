"""An iteration over a directed cycle by the compiled kernels."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.sums import order_rows
from prplugin.methods.native import Pull
from prplugin.types.edges import Compressed


def cycle(n=1000):
    """Return an iteration over a directed cycle, in which every vertex has the same rank."""
    edges = Compressed(np.arange(n + 1), (np.arange(n, dtype="i4") - 1) % n, None)
    pull = Pull(edges, order_rows(edges.offsets, 1), np.ones(n), np.array([1 / n]), np.array([0.15 / n]), 0.85, 1024, 2)
    pull.start(np.arange(n) * 2 / (n * (n - 1)))
    return pull
