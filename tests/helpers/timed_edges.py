"""Random edges with weights and times."""

from __future__ import annotations

import numpy as np
import pandas as pd


def random_edges(n=80, m=500, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame({
        "src": random.integers(0, n, m) ** 2 // n, "dst": random.integers(0, n, m), "w": random.random(m),
        "t": random.integers(0, 10**6, m),
    })  # fmt: skip
