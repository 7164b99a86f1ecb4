"""The generators of benchmarks: seeded, the same on CPU and GPU, and of the degrees that they promise."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from benchmarks.generate import retweets, rmat, scattered, uniform, web, weighted
from prplugin.gpu import runtime

MADE = {
    "rmat": (lambda memory_space: rmat(10, memory_space=memory_space), "840f2719b28a0f83"),
    "uniform": (lambda memory_space: uniform(1000, 5000, memory_space=memory_space), "7aa839f5866a8659"),
    "web": (lambda memory_space: web(3000, 20_000, memory_space=memory_space), "0882255fe0758025"),
    "retweets": (lambda memory_space: retweets(3000, 20_000, memory_space=memory_space), "02ffd3641bad46d7"),
}


def digest(frame):
    return hashlib.sha256(np.stack([frame[name].to_numpy() for name in frame]).astype("<i8").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", MADE)
def test_graphs_are_the_same_everywhere(name):
    make, known = MADE[name]
    assert digest(make("host")) == known


LARGER = {
    "rmat": lambda memory_space: rmat(16, memory_space=memory_space),
    "uniform": lambda memory_space: uniform(100_000, 1_000_000, seed=7, memory_space=memory_space),
    "web": lambda memory_space: web(100_000, 1_000_000, seed=7, memory_space=memory_space),
    "retweets": lambda memory_space: retweets(18_469, 60_000, memory_space=memory_space),
    "scattered ids": lambda memory_space: scattered(rmat(12, memory_space=memory_space)),
    "weights": lambda memory_space: weighted(uniform(1000, 50_000, memory_space=memory_space)),
}


@pytest.mark.gpu
@pytest.mark.skipif(bool(runtime.missing()) or find_spec("cudf") is None, reason="needs a GPU and cuDF")
@pytest.mark.parametrize("make", [*(make for make, _ in MADE.values()), *LARGER.values()], ids=[*MADE, *LARGER])
def test_graphs_are_the_same_on_the_gpu(make):
    pd.testing.assert_frame_equal(make("device").to_pandas(), make("host"), check_exact=True)


def fractions(ends, n, shift, tiers):
    """Of the edges, those at the n / 2**(shift * tier) vertices that have most."""
    falling = np.sort(np.bincount(ends, minlength=n))[::-1]
    return np.array([falling[: n >> shift * tier].sum() for tier in range(1, tiers + 1)]) / ends.size


def test_degrees_of_uniform_graphs_are_poisson():
    n, m = 50_000, 500_000
    edges = uniform(n, m)
    for end in ("src", "dst"):
        degrees = np.bincount(edges[end], minlength=n)
        assert degrees.size == n
        assert degrees.var() == pytest.approx(m / n, rel=0.05)
        expected = n * np.exp(-10) * 10**5 / 120
        assert (degrees == 5).sum() == pytest.approx(expected, rel=0.1)


def test_degrees_of_kronecker_graphs_follow_their_quadrants():
    scale = 14
    n = 1 << scale
    edges = rmat(scale)
    assert len(edges) == 16 * n
    for end in ("src", "dst"):
        degrees = np.bincount(edges[end], minlength=n)
        # A vertex of k ones in its bits, before they were put in random order, has 0.76**(scale - k) * 0.24**k of them.
        assert degrees.max() == pytest.approx(len(edges) * 0.76**scale, rel=0.1)
        second = np.sort(degrees)[::-1][1 : 1 + scale].mean()
        assert second == pytest.approx(len(edges) * 0.76 ** (scale - 1) * 0.24, rel=0.1)


@pytest.mark.parametrize(
    ("make", "end", "odds", "shift", "tiers"),
    [
        (web, "dst", 3 / 4, 2, 5),
        (web, "src", 1 / 2, 2, 5),
        (retweets, "dst", 1 / 2, 3, 4),
        (retweets, "src", 1 / 2, 2, 5),
    ],
)
def test_popular_vertices_have_their_fractions(make, end, odds, shift, tiers):
    n, m = 1 << 16, 1_000_000
    edges = make(n, m)
    # A draw that ends in an earlier tier falls on a smaller part of itself, too.
    ends_in = [odds**tier * (1 - odds) for tier in range(tiers)]
    last = odds**tiers
    expected = np.array(
        [
            last + sum(ends_in[tier] * min(1, 2.0 ** (-shift * (wanted - tier))) for tier in range(tiers))
            for wanted in range(1, tiers + 1)
        ]
    )
    measured = fractions(edges[end].to_numpy(), n, shift, tiers)
    # Those that have most are a little more than those meant to have most.
    assert np.all(measured >= expected - 0.01)
    assert measured == pytest.approx(expected, abs=0.06)


def test_retweets_are_weighted_by_coins():
    weights = retweets(1000, 100_000)["retweets"]
    assert [(weights == w).mean() for w in (1, 2, 3)] == pytest.approx([1 / 2, 1 / 4, 1 / 8], rel=0.05)


def test_few_are_retweeted_by_many():
    retweeters = np.bincount(retweets(18_469, 60_000)["dst"])
    assert retweeters.max() > 100 * retweeters.mean()
