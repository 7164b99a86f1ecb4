"""Seeded graphs of the shapes that matter: skewed, uniform and regular, with ids dense or scattered over 64 bits."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["grid", "rmat", "scattered", "uniform"]


def rmat(scale: int, edge_factor: int = 16, seed: int = 1) -> pd.DataFrame:
    """Make a recursive-matrix graph: 2**scale vertices in random order, a = 0.57, b = c = 0.19, duplicates kept.

    D. Chakrabarti, Y. Zhan and C. Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004; the probabilities
    are those of Graph 500.
    """
    random = np.random.default_rng(seed)
    m = edge_factor << scale
    source, target = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for _ in range(scale):
        quadrant = random.random(m)
        source = 2 * source + (quadrant >= 0.76)
        target = 2 * target + (((quadrant >= 0.57) & (quadrant < 0.76)) | (quadrant >= 0.95))
    order = random.permutation(1 << scale)
    return pd.DataFrame({"src": order[source], "dst": order[target]})


def uniform(n: int, m: int, seed: int = 1) -> pd.DataFrame:
    """Draw both ends of every edge alike from n vertices."""
    random = np.random.default_rng(seed)
    return pd.DataFrame({"src": random.integers(0, n, m), "dst": random.integers(0, n, m)})


def grid(side: int) -> pd.DataFrame:
    """Join the neighbours of a square grid, both ways."""
    places = np.arange(side * side).reshape(side, side)
    one = np.concatenate([places[:, :-1].ravel(), places[:-1].ravel()])
    other = np.concatenate([places[:, 1:].ravel(), places[1:].ravel()])
    return pd.DataFrame({"src": np.concatenate([one, other]), "dst": np.concatenate([other, one])})


def scattered(edges: pd.DataFrame, seed: int = 2) -> pd.DataFrame:
    """Replace dense ids by ids scattered over 62 bits."""
    ids = np.random.default_rng(seed).integers(-(2**61), 2**61, int(edges.to_numpy().max()) + 1)
    return pd.DataFrame({"src": ids[edges["src"]], "dst": ids[edges["dst"]]})
