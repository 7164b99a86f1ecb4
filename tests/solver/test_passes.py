"""Passes over the edges that rankings take, as recorded: acceleration that loses its effect fails no other test.

Sums over tolerances. Who changes the acceleration records them again, and looks which rise. Those of `native` are
exact, since its kernels compute the same everywhere; those of `numpy` may differ by the order in which a BLAS adds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from solver_graphs import communities, cycle, star

import prplugin

ALPHAS = (0.5, 0.85, 0.9, 0.95, 0.99)


def skewed(*, weighted=False):
    """Return random edges to few targets, with weights over two orders of magnitude."""
    random, n, m = np.random.default_rng(7), 1500, 9000
    edges = pd.DataFrame({"src": random.integers(0, n, m), "dst": (n * random.random(m) ** 3).astype(int)})
    return edges.assign(w=2.0 ** random.integers(-3, 4, m)) if weighted else edges


def slow_mode():
    """Return random edges, whose modes are fast, and a vertex that links to itself alone."""
    random, n, m = np.random.default_rng(0), 2000, 10_000
    edges = pd.DataFrame({"src": random.integers(1, n, m), "dst": random.integers(0, n, m)})
    edges.loc[m] = 0, 0
    return edges


GRAPHS = {
    "communities": lambda: prplugin.Graph(communities(), vertices=range(480)),
    "undirected": lambda: prplugin.Graph(communities(), directed=False, vertices=range(480)),
    "skewed": lambda: prplugin.Graph(skewed()),
    "weighted": lambda: prplugin.Graph(skewed(weighted=True), weight="w"),
    "slow mode": lambda: prplugin.Graph(slow_mode()),
    "star": lambda: prplugin.Graph(star(500), directed=False),
    "path": lambda: prplugin.Graph(cycle(300).iloc[:-1]),
}
METHODS = {"native": ALPHAS, "numpy": ALPHAS[:3]}  # above, both make the same steps
"""Values of alpha by method."""


def passes(graph, method, alpha, **options):
    tolerances = (1e-3, 1e-5) if options.get("dtype") == "float32" else (1e-3, 1e-6, 1e-9)
    rankings = [graph.rank(method=method, alpha=alpha, tol=tol, **options) for tol in tolerances]
    return sum(sum(getattr(ranking, "each_iterations", [ranking.iterations])) for ranking in rankings)


def passes_of(graph, method):
    """Return the passes of a method: for each alpha, with both vectors given, and of ten seeds in each type."""
    ids = graph.vertices.tolist()
    vectors = {"personalization": {ids[0]: 1.0, ids[1]: 2.0}, "dangling": {ids[1]: 1.0}}
    seeds = [
        passes(graph, method, alpha, seeds=ids[:40:4], dtype=dtype)
        for alpha in (0.5, 0.85, 0.95)
        for dtype in ("float64", "float32")
    ]
    return (
        [passes(graph, method, alpha) for alpha in METHODS[method]],
        [passes(graph, method, alpha, **vectors) for alpha in METHODS[method]],
        seeds,
    )


RECORDED = {
    "communities": {
        "native": ([32, 86, 116, 179, 498], [37, 74, 85, 169, 274], [388, 177, 528, 252, 591, 290]),
        "numpy": ([40, 97, 127], [45, 91, 114], [472, 224, 906, 471, 1701, 851]),
    },
    "undirected": {
        "native": ([27, 54, 63, 84, 138], [34, 66, 75, 118, 210], [342, 150, 718, 324, 1142, 528]),
        "numpy": ([30, 58, 61], [37, 71, 83], [385, 194, 754, 402, 1179, 570]),
    },
    "skewed": {
        "native": ([22, 34, 37, 63, 72], [27, 37, 39, 66, 73], [329, 154, 459, 221, 556, 257]),
        "numpy": ([31, 53, 58], [37, 57, 61], [367, 184, 560, 277, 655, 329]),
    },
    "weighted": {
        "native": ([27, 48, 55, 89, 106], [31, 48, 53, 90, 106], [365, 166, 630, 303, 786, 372]),
        "numpy": ([37, 72, 82], [42, 79, 90], [436, 215, 783, 374, 910, 457]),
    },
    "slow mode": {
        "native": ([27, 51, 63, 84, 108], [31, 58, 56, 94, 103], [325, 151, 486, 238, 582, 287]),
        "numpy": ([36, 65, 76], [42, 78, 84], [430, 200, 716, 357, 942, 487]),
    },
    "star": {
        "native": ([14, 14, 14, 39, 48], [14, 14, 13, 39, 48], [387, 177, 328, 150, 278, 123]),
        "numpy": ([15, 15, 15], [15, 13, 15], [142, 80, 150, 80, 399, 200]),
    },
    "path": {
        "native": ([40, 193, 308, 680, 2580], [65, 267, 406, 874, 4259], [90, 60, 151, 60, 177, 60]),
    },
}


@pytest.mark.parametrize("name", GRAPHS)
def test_native_takes_the_recorded_passes(name):
    assert passes_of(GRAPHS[name](), "native") == RECORDED[name]["native"]


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "path"])
def test_numpy_takes_about_the_recorded_passes(name):
    for found, recorded in zip(passes_of(GRAPHS[name](), "numpy"), RECORDED[name]["numpy"], strict=True):
        assert found == pytest.approx(recorded, rel=0.02, abs=1)


@pytest.mark.parametrize("name", GRAPHS)
def test_both_methods_mix_alike_above_the_alphas_of_sweeps(name):
    """The mixing of the kernels has a transcription in NumPy, which the other method runs."""
    graph = GRAPHS[name]()
    for alpha in (0.93, 0.99):
        native, numpy = (passes(graph, method, alpha) for method in METHODS)
        assert native == pytest.approx(numpy, rel=0.01, abs=1)
