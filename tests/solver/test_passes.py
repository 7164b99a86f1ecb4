"""Passes over the edges that rankings take, as recorded: acceleration that loses its effect fails no other test.

Sums over tolerances. Who changes the acceleration records them again, and looks which rise. Those of `native` are
exact, since its kernels compute the same everywhere; those of `numpy` may differ by the order in which a BLAS adds.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from fake_gpu import install
from listings import OURS
from solver_graphs import communities, cycle, star

import prplugin
from prplugin.streams import attempts, local

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


ORDERS = {
    "communities": [15, 41, 120, 20, 55, 139, 26, 62, 155],
    "undirected": [17, 26, 47, 19, 32, 56, 22, 37, 67],
    "skewed": [11, 18, 35, 12, 19, 40, 17, 23, 44],
    "weighted": [13, 23, 50, 19, 26, 52, 20, 34, 64],
    "slow mode": [17, 24, 48, 20, 28, 69, 24, 44, 71],
    "star": [10, 10, 20, 16, 13, 20, 16, 13, 20],
    "path": [43, 196, 842, 43, 196, 842, 43, 196, 842],
}
PUSHES = {
    "communities": [[15, 5], [58, 24], [330, 118]],
    "undirected": [[33, 14], [199, 68], [2551, 415]],
    "skewed": [[89, 34], [367, 102], [2560, 635]],
    "weighted": [[72, 24], [306, 85], [2154, 558]],
    "slow mode": [[104, 38], [469, 140], [2848, 809]],
    "star": [[268, 88], [1228, 322], [9936, 2353]],
    "path": [[10, 5], [20, 5], [52, 26]],
}
UPDATES = {
    "communities": [[12, 17, 18], [46, 41, 42], [329, 367, 282]],
    "undirected": [[9, 12, 13], [34, 42, 34], [416, 208, 87]],
    "skewed": [[10, 8, 9], [11, 19, 12], [12, 45, 15]],
    "weighted": [[6, 7, 9], [12, 20, 22], [13, 17, 17]],
    "slow mode": [[12, 9, 11], [25, 26, 28], [176, 184, 194]],
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


def passes_of_orders(graph, method):
    """Return the passes of certified orders of few and of many vertices."""
    ranked = [
        [graph.rank(method=method, alpha=alpha, tol=tol, top=k, certified=True).iterations for tol in (1e-6, 1e-11)]
        for k in (1, 7, 60) for alpha in (0.5, 0.85, 0.97)
    ]  # fmt: skip
    return [sum(iterations) for iterations in ranked]


@pytest.mark.parametrize("name", GRAPHS)
def test_certified_orders_take_the_recorded_passes(name):
    assert passes_of_orders(GRAPHS[name](), "native") == ORDERS[name]


def passes_of_pushes(graph, alpha):
    """Return the passes of five seeds, and those of certified orders, which begin with pushes."""
    ids = graph.vertices.tolist()[:40:8]
    ranked = [graph.rank(personalization=[v], alpha=alpha, tol=tol) for v in ids for tol in (1e-3, 1e-8)]
    assert {ranking.method for ranking in ranked} == {"push"}
    ordered = [graph.rank(personalization=[v], alpha=alpha, top=5, certified=True) for v in ids]
    return [sum(ranking.iterations for ranking in rankings) for rankings in (ranked, ordered)]


@pytest.mark.parametrize("name", GRAPHS)
def test_pushes_take_the_recorded_passes(name, monkeypatch):
    monkeypatch.setattr(local, "MIN_EDGES", 0)
    monkeypatch.setattr(local, "PUSH_SLOWDOWN", 1e-6)
    graph = GRAPHS[name]()
    assert [passes_of_pushes(graph, alpha) for alpha in (0.5, 0.85, 0.98)] == PUSHES[name]


def passes_after_updates(name, alpha):
    """Return the passes of pushes after each of three updates, of one, ten and a hundred edges."""
    graph, random, found = GRAPHS[name](), np.random.default_rng(5), []
    graph.rank(alpha=alpha, tol=1e-9)
    ids = graph.vertices.to_numpy()
    for count in (1, 10, 100):
        added = pd.DataFrame(random.choice(ids, (count, 2)), columns=["src", "dst"])
        graph.update(add=added.assign(w=0.5) if name == "weighted" else added)
        ranking = graph.rank(alpha=alpha, tol=1e-9)
        assert ranking.method == "push"
        found.append(ranking.iterations)
    return found


@pytest.mark.parametrize("name", UPDATES)
def test_pushes_after_updates_take_the_recorded_passes(name, monkeypatch):
    monkeypatch.setattr(attempts, "_max_pushes", lambda *_: math.inf)
    assert [passes_after_updates(name, alpha) for alpha in (0.5, 0.85, 0.98)] == UPDATES[name]


@pytest.mark.parametrize("name", ["communities", "star"])
def test_kernels_of_the_gpu_mix_as_numpy_does(name, monkeypatch):
    expected = [passes(GRAPHS[name](), "numpy", alpha) for alpha in (0.85, 0.95)]
    launched = install(monkeypatch, OURS)
    found = [passes(GRAPHS[name](), "node", alpha) for alpha in (0.85, 0.95)]
    assert found == pytest.approx(expected, rel=0.1, abs=2)  # it begins in float32
    assert {name for _, name, *_ in launched} >= {"products", "mix"}
