"""Graphs of slow and of fast convergence, and a step that rounds contributions to float32."""

from __future__ import annotations

import numpy as np
import pandas as pd

import prplugin
from prplugin.machine import this_machine
from prplugin.methods import numpy as method
from prplugin.methods.base import Sums
from prplugin.methods.engines.numpy_step import HostStep
from prplugin.types.edges import Coo


def communities(size=40, count=12, seed=0):
    """Return groups joined by few edges: many eigenvalues are close to alpha, so plain iterations converge slowly."""
    random = np.random.default_rng(seed)
    within = [random.integers(0, size, (size * 4, 2)) + group * size for group in range(count)]
    between = random.integers(0, size * count, (count, 2))
    edges = np.concatenate([*within, between])
    return pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]})


def separate_blocks(size, directed):
    """Return a graph of 4,000 vertices in blocks of `size`, with two random edges per vertex within its block."""
    edges = np.random.default_rng(0).integers(0, size, (4000 // size, 2 * size, 2))
    edges = (edges + np.arange(0, 4000, size)[:, None, None]).reshape(-1, 2)
    frame = pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]})
    return prplugin.Graph(frame, directed=directed, vertices=range(4000))


def cycle(n):
    return pd.DataFrame({"src": np.arange(n), "dst": (np.arange(n) + 1) % n})


def star(n):
    return pd.DataFrame({"src": np.arange(1, n), "dst": np.zeros(n - 1, int)})


class Float32Step(HostStep):
    """Step that rounds contributions to float32 on request."""

    float32_is_faster = True

    def __init__(self, problem):
        self._problem, self._dtype, self.starts = problem, "float64", []
        self.rounding = self._exact = method.prepare(problem, this_machine()).rounding

    def set_contribution_dtype(self, dtype):
        self._dtype = dtype
        self.rounding = self._exact._replace(single=int(dtype == "float32"))

    def start(self, ranks):
        self._ranks = np.full(self._problem.adjacency.n, ranks) if isinstance(ranks, float) else ranks.copy()
        self.starts.append((self._dtype, self._ranks.sum()))

    def __call__(self, moves=None):
        n, alpha, edges = self._problem.adjacency.n, self._problem.alpha, self._problem.adjacency.get(Coo)
        out = self._problem.adjacency.out_weight
        terms = (self._ranks / np.maximum(out, 1)).astype(self._dtype).astype(float)[edges.source]
        dangling_mass = alpha * self._ranks[out == 0].sum() / n
        ranks = alpha * np.bincount(edges.destination, terms, n) + dangling_mass + (1 - alpha) / n
        change = ranks - self._ranks
        if moves is not None:
            moves[:] = change
        self._ranks = ranks
        return Sums(np.abs(change).sum(), np.abs(change).max())

    def ranks(self):
        return self._ranks


GRAPHS = {
    "random": pd.DataFrame(np.random.default_rng(5).integers(0, 300, (2000, 2)), columns=["src", "dst"]),
    "cycle": cycle(30),
    "path": pd.DataFrame({"src": np.arange(40), "dst": np.arange(40) + 1}),
    "star": star(60),
}
