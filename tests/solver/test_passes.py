"""Passes over the edges that rankings take, as recorded: acceleration that loses its effect fails no other test.

They are sums over tolerances, seeds and types. Who changes the acceleration records them anew by
``PYTHONPATH=.:tests/helpers python tests/solver/test_passes.py``, and looks which rise. Those of `native` and of pushes
are exact, since kernels compute the same everywhere; those of `numpy` may differ by the order in which a BLAS adds.
"""

from __future__ import annotations

import json
import math
import re
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_gpu import install
from listings import OURS
from solver_graphs import communities, cycle, star

import prplugin
from prplugin.streams import attempts, local_pushes

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

RECORDED = Path(__file__).with_name("passes.json")


def passes(graph, method, alpha, **options):
    tolerances = (1e-3, 1e-5) if options.get("dtype") == "float32" else (1e-3, 1e-6, 1e-9)
    rankings = [graph.rank(method=method, alpha=alpha, tol=tol, **options) for tol in tolerances]
    return int(sum(sum(getattr(ranking, "each_iterations", [ranking.iterations])) for ranking in rankings))


def of_method(method, graph):
    """Return the passes of a method: for each alpha, with both vectors given, and of ten seeds in each type."""
    ids = graph.vertices.tolist()
    vectors = {"personalization": {ids[0]: 1.0, ids[1]: 2.0}, "dangling": {ids[1]: 1.0}}
    seeds = [
        passes(graph, method, alpha, seeds=ids[:40:4], dtype=dtype)
        for alpha in (0.5, 0.85, 0.95)
        for dtype in ("float64", "float32")
    ]
    plain, given = ([passes(graph, method, alpha, **each) for alpha in METHODS[method]] for each in ({}, vectors))
    return [plain, given, seeds]


def of_orders(graph):
    """Return the passes of certified orders of few and of many vertices."""
    return [
        sum(
            graph.rank(method="native", alpha=alpha, tol=tol, top=k, certified=True).iterations for tol in (1e-6, 1e-11)
        )
        for k in (1, 7, 60)
        for alpha in (0.5, 0.85, 0.97)
    ]


def of_pushes(graph):
    """Return the passes of five seeds, and those of certified orders, which begin with pushes."""
    ids, found = graph.vertices.tolist()[:40:8], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_pushes, "MIN_EDGES", 0)
        patch.setattr(local_pushes, "PUSH_SLOWDOWN", 1e-6)
        for alpha in (0.5, 0.85, 0.98):
            ranked = [graph.rank(personalization=[v], alpha=alpha, tol=tol) for v in ids for tol in (1e-3, 1e-8)]
            assert {ranking.method for ranking in ranked} == {"push"}
            ordered = [graph.rank(personalization=[v], alpha=alpha, top=5, certified=True) for v in ids]
            found.append([int(sum(each.iterations for each in rankings)) for rankings in (ranked, ordered)])
    return found


def of_updates(graph):
    """Return the passes of pushes after each of three updates, of one, ten and a hundred edges."""
    ids, found = graph.vertices.to_numpy(), []
    weighted = graph.csr().weights is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempts, "_max_pushes", lambda *_: math.inf)
        for alpha in (0.5, 0.85, 0.98):
            changing, random = copy(graph), np.random.default_rng(5)
            changing.rank(alpha=alpha, tol=1e-9)
            for count in (1, 10, 100):
                added = pd.DataFrame(random.choice(ids, (count, 2)), columns=["src", "dst"])
                changing.update(add=added.assign(w=0.5) if weighted else added)
                ranking = changing.rank(alpha=alpha, tol=1e-9)
                assert ranking.method == "push"
                found.append(int(ranking.iterations))
    return found


KINDS = {
    "native": (partial(of_method, "native"), GRAPHS),
    "numpy": (partial(of_method, "numpy"), [name for name in GRAPHS if name != "path"]),
    "orders": (of_orders, GRAPHS),
    "pushes": (of_pushes, GRAPHS),
    "updates": (of_updates, [name for name in GRAPHS if name not in ("path", "star")]),
}
"""Rankings whose passes are recorded, by graph."""


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (_, names) in KINDS.items() for name in names])
def test_passes_are_those_recorded(kind, name):
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[kind][name]
    found = KINDS[kind][0](GRAPHS[name]())
    if kind == "numpy":
        for each, expected in zip(found, recorded, strict=True):
            assert each == pytest.approx(expected, rel=0.02, abs=1)
    else:
        assert found == recorded


@pytest.mark.parametrize("name", GRAPHS)
def test_both_methods_mix_alike_above_the_alphas_of_sweeps(name):
    """The mixing of the kernels has a transcription in NumPy, which the other method runs."""
    graph = GRAPHS[name]()
    for alpha in (0.93, 0.99):
        native, numpy = (passes(graph, method, alpha) for method in METHODS)
        assert native == pytest.approx(numpy, rel=0.01, abs=1)


@pytest.mark.parametrize("name", ["communities", "star"])
def test_kernels_of_the_gpu_mix_as_numpy_does(name, monkeypatch):
    expected = [passes(GRAPHS[name](), "numpy", alpha) for alpha in (0.85, 0.95)]
    launched = install(monkeypatch, OURS)
    found = [passes(GRAPHS[name](), "node", alpha) for alpha in (0.85, 0.95)]
    assert found == pytest.approx(expected, rel=0.1, abs=2)  # it begins in float32
    assert {name for _, name, *_ in launched} >= {"products", "mix"}


if __name__ == "__main__":
    measured = {kind: {name: measure(GRAPHS[name]()) for name in names} for kind, (measure, names) in KINDS.items()}
    lines = (
        re.sub(r"\s+(?=[\d\]])|(?<=\[)\s+(?=\[)", " ", json.dumps(measured, indent=1))
        .replace("[ ", "[")
        .replace(" ]", "]")
    )
    RECORDED.write_text(lines + "\n", encoding="utf-8")
