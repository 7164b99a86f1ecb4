"""Peak memory of a call on the CPU besides the caller's columns: at most twice these plus 40 bytes per vertex."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from benchmarks.generate import grid, rmat, scattered_ids
from benchmarks.peers._memory import peak_bytes


def web(n=240_000, m=1_100_000):
    """Return a web graph: three of five pages are dangling, the others link to pages with ids close to theirs."""
    random = np.random.default_rng(0)
    source = 5 * random.integers(0, n // 5, m) + random.integers(0, 2, m)
    target = np.clip(source + random.geometric(0.02, m) * random.choice([-1, 1], m), 0, n - 1)
    return pd.DataFrame({"src": source, "dst": target}).astype("int32")


def rmat_of_strings():
    """Return an R-MAT graph of Python strings, one object per distinct string, as file readers return them."""
    edges = rmat(16)
    ids = scattered_ids(1 << 16).astype(str).astype(object)
    return pd.DataFrame({name: ids[edges[name]] for name in edges}, dtype=object)


GRAPHS = {"grid": lambda: grid(550), "web": web, "objects": rmat_of_strings}


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_peak_memory_is_within_limit(make):
    edges = make()
    n = len(prplugin.pagerank(edges, tol=1e-10))  # import modules before measuring
    peak = peak_bytes(lambda: prplugin.pagerank(edges, tol=1e-10))
    assert peak <= 2 * edges.memory_usage(index=False).sum() + 40 * n
