"""Dangling vertices lumped into one: the ranks, their bounds, and which graphs have it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.errors import NotConvergedError
from prplugin.graph import lumping
from prplugin.methods import native


def edges_of(n: int, m: int, *, near: bool) -> pd.DataFrame:
    """Return weighted edges from the first third of the vertices; with `near`, to vertices near in order."""
    random = np.random.default_rng(m)
    source = random.integers(0, n // 3, m)
    target = (3 * source + random.integers(-50, 50, m)) % n if near else random.integers(0, n, m)
    return pd.DataFrame({"src": 3 * source, "dst": target, "weight": random.random(m)})


GRAPHS = {
    "swept in place": edges_of(6_000, 60_000, near=False),
    "swept in phases": edges_of(60_000, 150_000, near=False),
    "in steps": edges_of(60_000, 150_000, near=True),
    "users and items": pd.DataFrame({"src": np.arange(60_000) % 9_000, "dst": 9_000 + np.arange(60_000) ** 2 % 7_001}),
}


def after(graph: prplugin.Graph, passes: int, **given: object) -> prplugin.Ranking:
    try:
        return graph.rank(method="native", max_iter=passes, tol=1e-11, **given)
    except NotConvergedError as error:
        return error.ranking


@pytest.fixture
def lumped_forms(monkeypatch):
    """Collect what is lumped."""
    found = []
    init = native.LumpedPull.__init__
    monkeypatch.setattr(
        native.LumpedPull,
        "__init__",
        lambda self, lumped, *given: (found.append(lumped), init(self, lumped, *given))[1],
    )
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_every_iterate_of_a_lumped_graph_has_a_bound(edges, weighted, lumped_forms):
    weight = "weight" if weighted and "weight" in edges else None
    graph = prplugin.Graph(edges, weight=weight)
    first, last = graph.vertices[0], graph.vertices[len(graph.vertices) - 1]
    for given in (
        {},
        {"personalization": {first: 1, last: 3}, "dangling": {last: 2.0, first: 1.0}, "alpha": 0.95},
    ):
        exact = graph.rank(method="numpy", tol=5e-12, **given)
        for passes in (1, 2, 3, 5, 8):
            found = after(graph, passes, **given)
            error = np.abs(found.ranks - exact.ranks).sum()
            assert error <= found.error_bound + exact.error_bound
            assert error > found.error_bound / 1000 or error < 1e-13
            assert found.ranks.sum() == pytest.approx(1, abs=1e-13)
            assert found.ranks.min() >= 0
            assert (after(graph, passes, threads=3, **given).ranks == found.ranks).all()
    assert lumped_forms
    # The first iterate again, since stagnation and other rules take plain steps.
    plain = [graph.rank(method=name, tol=0, max_iter=3, stop="delta").ranks for name in ("native", "numpy")]
    np.testing.assert_allclose(*plain, rtol=1e-12)
    order = graph.rank(top=5, certified=True, method="native", tol=1e-11)
    assert order.frame.vertex.tolist() == graph.rank(top=5, method="numpy", tol=1e-11).frame.vertex.tolist()


def test_the_form_is_that_of_the_graph(lumped_forms):
    graph = prplugin.Graph(GRAPHS["in steps"], weight="weight")
    graph.rank(method="native")
    linking, dangling, in_edges, _, inverse, outside, rest = lumped_forms[0]
    offsets, sources, weights = graph.csc()
    dense = np.zeros(len(graph.vertices))
    kept = np.isin(np.repeat(np.arange(offsets.size - 1), np.diff(offsets)), dangling)
    np.add.at(dense, np.asarray(sources)[kept], np.asarray(weights)[kept])
    out_weight = np.bincount(np.asarray(sources), np.asarray(weights), dense.size)
    assert (np.sort(np.concatenate((linking, dangling))) == np.arange(dense.size)).all()
    assert (out_weight[linking] > 0).all()
    assert (out_weight[dangling] == 0).all()
    np.testing.assert_allclose(outside[:-1], dense[linking] / out_weight[linking], rtol=1e-13)
    assert outside[-1] == inverse[-1] == 0
    assert in_edges.offsets.size == linking.size + 2
    assert in_edges.indices.size + rest.indices.size == graph.number_of_edges
    assert max(in_edges.indices.max(), rest.indices.max()) < linking.size


def test_few_edges_are_read_twice(lumped_forms):
    """Keep one copy of the edges of a graph that is ranked once, or whose iterations would be spared few edges."""
    edges = GRAPHS["in steps"]
    edges.pagerank(method="native")
    complete = pd.concat([edges, pd.DataFrame({"src": np.arange(60_000), "dst": 0})])
    prplugin.Graph(complete).rank(method="native")
    prplugin.Graph(edges[: lumping.LUMPED_EDGES.start - 1]).rank(method="native")
    assert not lumped_forms


def test_users_and_items_take_two_passes():
    assert prplugin.Graph(GRAPHS["users and items"]).rank(method="native", tol=1e-10).iterations <= 2


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_the_change_of_a_step_counts_the_dangling_mass_as_one_entry(edges):
    alpha, graph = 0.95, prplugin.Graph(edges)
    n = len(graph.vertices)
    move = graph.rank(method="numpy", tol=0, max_iter=1, stop="delta", alpha=alpha).ranks - 1 / n
    dangling = np.diff(graph.csr()[0]) == 0
    change = np.abs(move[~dangling]).sum() + abs(move[dangling].sum())
    assert abs(move[dangling].sum()) > change / 1000
    assert after(graph, 1, alpha=alpha).error_bound == pytest.approx(min(alpha * change / (1 - alpha), 2), rel=1e-9)
