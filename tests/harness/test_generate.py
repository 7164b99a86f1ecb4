"""Generators of benchmark graphs: seeded, identical on CPU and GPU, and with the documented distribution of degrees."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from benchmarks.generate import crawl, cube, local_web, purchases, retweets, rmat, scattered, uniform, web, weighted
from prplugin.gpu import runtime

SMALL = {
    "rmat": (lambda memory_space: rmat(10, memory_space=memory_space), "840f2719b28a0f83"),
    "uniform": (lambda memory_space: uniform(1000, 5000, memory_space=memory_space), "7aa839f5866a8659"),
    "web": (lambda memory_space: web(3000, 20_000, memory_space=memory_space), "0882255fe0758025"),
    "retweets": (lambda memory_space: retweets(3000, 20_000, memory_space=memory_space), "02ffd3641bad46d7"),
    "crawl": (lambda memory_space: crawl(3000, 20_000, memory_space=memory_space), "5948c30f882ea4d4"),
    "local web": (lambda memory_space: local_web(3000, 20_000, memory_space=memory_space), "eb1d328ba7ea86e9"),
    "purchases": (lambda memory_space: purchases(2000, 300, 20_000, memory_space=memory_space), "723dd393be9c5723"),
    "cube": (lambda memory_space: cube(8, memory_space=memory_space), "37471d6af6017cbc"),
}


def digest(frame):
    return hashlib.sha256(np.stack([frame[name].to_numpy() for name in frame]).astype("<i8").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", SMALL)
def test_graphs_are_reproducible(name):
    make, expected = SMALL[name]
    assert digest(make("host")) == expected


LARGER = {
    "rmat": lambda memory_space: rmat(16, memory_space=memory_space),
    "uniform": lambda memory_space: uniform(100_000, 1_000_000, seed=7, memory_space=memory_space),
    "web": lambda memory_space: web(100_000, 1_000_000, seed=7, memory_space=memory_space),
    "crawl": lambda memory_space: crawl(100_000, 1_000_000, seed=7, memory_space=memory_space),
    "retweets": lambda memory_space: retweets(18_469, 60_000, memory_space=memory_space),
    "scattered ids": lambda memory_space: scattered(rmat(12, memory_space=memory_space)),
    "weights": lambda memory_space: weighted(uniform(1000, 50_000, memory_space=memory_space)),
}


@pytest.mark.gpu
@pytest.mark.skipif(bool(runtime.unavailable_reason()) or find_spec("cudf") is None, reason="needs a GPU and cuDF")
@pytest.mark.parametrize("make", [*(make for make, _ in SMALL.values()), *LARGER.values()], ids=[*SMALL, *LARGER])
def test_graphs_on_the_gpu_equal_those_on_the_cpu(make):
    pd.testing.assert_frame_equal(make("device").to_pandas(), make("host"), check_exact=True)


def fractions(endpoints, n, shift, tiers):
    """Return, per tier, the fraction of edges at the n / 2**(shift * tier) vertices of highest degree."""
    degrees = np.sort(np.bincount(endpoints, minlength=n))[::-1]
    return np.array([degrees[: n >> shift * tier].sum() for tier in range(1, tiers + 1)]) / endpoints.size


def test_degrees_of_uniform_graphs_are_poisson():
    n, m = 50_000, 500_000
    edges = uniform(n, m)
    for column in ("src", "dst"):
        degrees = np.bincount(edges[column], minlength=n)
        assert degrees.size == n
        assert degrees.var() == pytest.approx(m / n, rel=0.05)
        expected = n * np.exp(-10) * 10**5 / 120
        assert (degrees == 5).sum() == pytest.approx(expected, rel=0.1)


def test_degrees_of_kronecker_graphs_follow_the_quadrant_probabilities():
    scale = 14
    n = 1 << scale
    edges = rmat(scale)
    assert len(edges) == 16 * n
    for column in ("src", "dst"):
        degrees = np.bincount(edges[column], minlength=n)
        # Before ids are permuted, a vertex with k one bits has a fraction 0.76**(scale - k) * 0.24**k of the edges.
        assert degrees.max() == pytest.approx(len(edges) * 0.76**scale, rel=0.1)
        second = np.sort(degrees)[::-1][1 : 1 + scale].mean()
        assert second == pytest.approx(len(edges) * 0.76 ** (scale - 1) * 0.24, rel=0.1)


@pytest.mark.parametrize(
    ("make", "column", "probability", "shift", "tiers"),
    [
        (web, "dst", 3 / 4, 2, 5),
        (web, "src", 1 / 2, 2, 5),
        (retweets, "dst", 1 / 2, 3, 4),
        (retweets, "src", 1 / 2, 2, 5),
    ],
)
def test_fractions_of_edges_at_popular_vertices(make, column, probability, shift, tiers):
    n, m = 1 << 16, 1_000_000
    edges = make(n, m)
    # A draw from an earlier tier hits the vertices of a later one, too: they are 2**-shift of it per tier.
    ends_in = [probability**tier * (1 - probability) for tier in range(tiers)]
    last = probability**tiers
    expected = np.array(
        [
            last + sum(ends_in[tier] * min(1, 2.0 ** (-shift * (wanted - tier))) for tier in range(tiers))
            for wanted in range(1, tiers + 1)
        ]
    )
    measured = fractions(edges[column].to_numpy(), n, shift, tiers)
    # The vertices of highest degree have at least the edges of the vertices of the tier.
    assert np.all(measured >= expected - 0.01)
    assert measured == pytest.approx(expected, abs=0.06)


# Measured on cnr-2000 (first of each pair) and web-NotreDame.
CRAWLS = {
    "dangling": (0.24, 0.58), "in-degree below 2": (0.42, 0.60), "below 3": (0.64, 0.74), "up to 6": (0.87, 0.91),
    "below 64": (0.989, 0.992), "in-edges of 0.1 %": (0.39, 0.14), "of 1 %": (0.56, 0.34), "of 5 %": (0.72, 0.59),
    "of 20 %": (0.86, 0.77), "out-edges of 5 %": (0.27, 0.60), "out-edges of 20 %": (0.70, 0.88),
    "distance below 10": (0.17, 0.20), "below 50": (0.31, 0.38), "below 1,000": (0.53, 0.49), "below 50,000": (0.99, 0.79),
}  # fmt: skip


def test_crawl_is_like_real_crawls():
    n, m = 325_557, 3_216_152
    edges = crawl(n, m)
    assert len(edges) == m
    sources, targets = edges["src"].to_numpy(), edges["dst"].to_numpy()
    outward, inward = np.bincount(sources, minlength=n), np.bincount(targets, minlength=n)
    assert outward.size == inward.size == n
    assert inward.min() == 1
    assert 10_000 < inward.max() < 40_000  # 18,235 in cnr-2000, 10,721 in web-NotreDame
    distances = np.abs(sources - targets)

    def part(degrees, fraction):
        return np.sort(degrees)[::-1][: int(fraction * n)].sum() / m

    measured = [
        (outward == 0).mean(), (inward < 2).mean(), (inward < 3).mean(), (inward <= 6).mean(), (inward < 64).mean(),
        *(part(inward, fraction) for fraction in (0.001, 0.01, 0.05, 0.2)),
        *(part(outward, fraction) for fraction in (0.05, 0.2)),
        *((distances < limit).mean() for limit in (10, 50, 1000, 50_000)),
    ]  # fmt: skip
    for (what, crawls), value in zip(CRAWLS.items(), measured, strict=True):
        assert min(crawls) - 0.08 < value < max(crawls) + 0.08, what
    assert (inward < 2).mean() > 0.5  # Wu and others 2010, Figure 3


def test_crawl_has_an_in_edge_per_vertex():
    assert sorted(crawl(7, 7)["dst"]) == list(range(7))
    with pytest.raises(ValueError, match="m=6 edges are fewer than the n=7 vertices"):
        crawl(7, 6)


def test_retweet_counts_are_geometric():
    weights = retweets(1000, 100_000)["retweets"]
    assert [(weights == w).mean() for w in (1, 2, 3)] == pytest.approx([1 / 2, 1 / 4, 1 / 8], rel=0.05)


def test_in_degrees_of_retweets_are_skewed():
    retweeters = np.bincount(retweets(18_469, 60_000)["dst"])
    assert retweeters.max() > 100 * retweeters.mean()
