"""Steps of the compiled kernels: over the vertices of a worker, compared with NumPy; and with contributions in float32."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from kernel_calls import named

import prplugin
from prplugin.cpu import kernels
from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.sums import BLOCK_ROWS
from prplugin.graph.edges import Problem
from prplugin.machine import this_machine
from prplugin.methods import native


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 255, 256, 257, 5000])
def test_step_with_ghosts(n, index, weighted, uniform):
    random = np.random.default_rng(n)
    ghosts, alpha, dangling = n // 3, 0.85, 0.2
    offsets = offsets_of(random.integers(0, 9, n))
    offsets[n // 2 + 1 :] += 300  # a row of several groups
    sources = random.integers(0, n + ghosts, offsets[-1]).astype(index)
    weights = random.random(sources.size) if weighted else None
    inverse = random.random(n) * random.integers(0, 2, n)
    target, teleport = (np.array([1 / n]) if uniform else random.random(n) for _ in range(2))
    ranks, contributions = random.random(n), random.random(n + ghosts)
    terms = contributions[sources] * (1.0 if weights is None else weights)
    sums = np.bincount(np.repeat(np.arange(n), np.diff(offsets)), terms, n)
    expected = alpha * (sums + dangling * target) + teleport
    move = expected - ranks
    bits = set()
    for threads in (1, 2, 5):
        found, following, moves = ranks.copy(), np.full(n + ghosts, 7.0), np.empty(n, np.float32)
        measured = np.empty((-(-n // BLOCK_ROWS), 4))
        named(
            kernels.step_rows,
            offsets, sources, weights, inverse, target, teleport, alpha, 16, dangling, found, contributions, following,
            moves, measured, threads,
        )  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        np.testing.assert_allclose(moves, move, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(following[:n], expected * inverse, rtol=1e-13)
        assert (following[n:] == 7.0).all()
        change, largest, mass, total = measured.T
        assert change.sum() == pytest.approx(np.abs(move).sum(), rel=1e-12)
        assert largest.max() == pytest.approx(np.abs(move).max(), rel=1e-12)
        assert mass.sum() == pytest.approx(expected[inverse == 0].sum(), rel=1e-12)
        assert total.sum() == pytest.approx(expected.sum(), rel=1e-12)
        bits.add((found.tobytes(), following.tobytes(), moves.tobytes(), measured.tobytes()))
    assert len(bits) == 1


def test_large_graphs_begin_in_float32():
    """Tolerances above and below what float32 proves."""
    random, n = np.random.default_rng(7), native.FLOAT32_FROM
    edges = pd.DataFrame({"src": random.integers(0, n - 9, 2 * n), "dst": random.integers(0, n, 2 * n)})
    edges = pd.concat([edges, pd.DataFrame({"src": range(n - 1), "dst": range(1, n)})])
    graph, v = prplugin.Graph(edges), {3: 1.0, n - 1: 2.0}
    exact = graph.rank(method="numpy", tol=1e-11, personalization=v)
    for tol in (1e-3, 1e-6, 1e-7, 1e-10):
        found = graph.rank(method="native", tol=tol, personalization=v)
        error = np.abs(found.ranks - exact.ranks).sum()
        assert error <= found.error_bound + exact.error_bound
        assert found.error_bound <= tol
        assert (graph.rank(method="native", tol=tol, personalization=v, threads=3).ranks == found.ranks).all()
    step = native.prepare(Problem(adjacency_of(graph), 0.85), this_machine())
    assert step.float32_is_faster
    before, ranks = step.rounding, {}
    for dtype in ("float64", "float32"):
        step.set_contribution_dtype(dtype)
        assert step.rounding == before._replace(single=int(dtype == "float32"))
        step.start(1 / n)
        step()
        ranks[dtype] = step.ranks().copy()
    difference = np.abs(ranks["float64"] - ranks["float32"]).sum()
    assert 0 < difference < 0.85 * 2.0**-24
