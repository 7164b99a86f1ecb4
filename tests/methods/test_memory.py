"""A call on the processor holds, beside the user's columns, at most twice those and 40 bytes a vertex."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from benchmarks.generate import grid, rmat, scattered_ids
from benchmarks.peers._memory import peak_bytes
from prplugin.machine import COMPILED_FROM
from prplugin.methods import numba as method


def web(n=240_000, m=1_100_000):
    """Three of five pages link to nothing; the others to pages that are near by number."""
    random = np.random.default_rng(0)
    source = 5 * random.integers(0, n // 5, m) + random.integers(0, 2, m)
    target = np.clip(source + random.geometric(0.02, m) * random.choice([-1, 1], m), 0, n - 1)
    return pd.DataFrame({"src": source, "dst": target}).astype("int32")


def named():
    """As a reader of files gives them: one object for each string of a column."""
    edges = rmat(16)
    ids = scattered_ids(1 << 16).astype(str).astype(object)
    return pd.DataFrame({name: ids[edges[name]] for name in edges}, dtype=object)


MAKE = {"grid": lambda: grid(550), "web": web, "objects": named}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_call_holds_no_more_than_it_may(make, monkeypatch):
    monkeypatch.setattr(method, "least_steps_for_sweeps", lambda adjacency: 0.0)
    edges = make()
    assert len(edges) >= COMPILED_FROM
    n = len(prplugin.pagerank(edges, tol=1e-10))  # compiles
    peak = peak_bytes(lambda: prplugin.pagerank(edges, tol=1e-10))
    assert peak <= 2 * edges.memory_usage(index=False).sum() + 40 * n
