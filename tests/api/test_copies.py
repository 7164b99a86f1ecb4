"""Copies of graphs and rankings: pickle, copy, deepcopy and other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from timed_edges import random_edges

import prplugin

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda graph: pickle.loads(pickle.dumps(graph))}


GRAPHS = {
    "integers": lambda: prplugin.Graph(random_edges()),
    "strings": lambda: prplugin.Graph(random_edges().astype({"src": str, "dst": str}), weight="w"),
    "objects": lambda: prplugin.Graph(random_edges().map(lambda x: frozenset([x])), "src", "dst"),
    "polars": lambda: prplugin.Graph(pl.from_pandas(random_edges()), directed=False, weight="w"),
    "decay": lambda: prplugin.Graph(random_edges(), "src", "dst", "w", time="t", half_life=10**5),
    "matrix": lambda: prplugin.Graph.from_csr([0, 1, 2, 3], [1, 0, 0]),
    "matrix with ids": lambda: prplugin.Graph.from_csr([0, 1, 2, 3], [1, 0, 0], vertices=["a", "b", "c"]),
}


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("name", GRAPHS)
def test_copies_rank_alike_and_are_independent(name, copied):
    graph = GRAPHS[name]()
    ids = graph.rank().frame["vertex"]
    more = pd.DataFrame({"src": [ids[1], ids[1]], "dst": [ids[2], ids[0]], "w": [9.0, 5.0], "t": [10**6, 10**6]})
    more = more.rename(columns={"w": "weight"}) if name.startswith("matrix") else more
    for updated in range(3):  # a graph of a frame, then one that was updated, and one whose residual is known
        before, original = copy.copy(graph).rank(), copy.copy(graph).csc()
        other = COPIES[copied](graph)
        assert other.rank().ranks.tobytes() == before.ranks.tobytes()
        assert other.rank().frame.equals(before.frame)
        assert repr(other) == repr(graph)
        graph.update(add=more)
        changed = graph.rank()
        assert changed.ranks.tobytes() != before.ranks.tobytes()
        assert other.rank().ranks.tobytes() == before.ranks.tobytes(), updated
        for mine, old in zip(other.csc(), original, strict=True):
            np.testing.assert_array_equal(mine, old)
        other.update(remove=random_edges().iloc[[3]]) if name == "integers" else other.update(add=more)
        copy_of_changed = COPIES[copied](graph)
        np.testing.assert_allclose(copy_of_changed.rank().ranks, graph.rank().ranks, rtol=0, atol=2e-6)


@pytest.mark.parametrize("copied", COPIES)
def test_attributes_and_classes_of_users_are_kept(copied):
    graph = GRAPHS["integers"]()
    graph.name = ["web"]
    assert COPIES[copied](graph).name == ["web"]
    assert type(COPIES[copied](graph)) is prplugin.Graph


def test_updates_of_a_copy_do_not_change_the_graph():
    """Regression test: copy.copy shared what update changes."""
    graph = prplugin.Graph(random_edges(), "src", "dst", "w", time="t", half_life=10**5)
    graph.update(add=random_edges(seed=1).assign(t=10**6))
    expected = copy.copy(graph).rank().ranks.tobytes()
    weights = graph.csr().weights.copy()
    other = copy.copy(graph)
    for seed in range(2, 5):
        other.update(add=random_edges(n=100, seed=seed).assign(t=2 * 10**6))
        other.rank()
    assert copy.copy(graph).rank().ranks.tobytes() == expected
    np.testing.assert_array_equal(graph.csr().weights, weights)
    assert graph.number_of_edges == 1000


def test_copies_are_ranked_and_updated_during_a_ranking_of_the_graph():
    graph = prplugin.Graph(random_edges())
    seen = []

    def during(progress):
        if not seen:
            seen.append(copy.copy(graph))
            seen[0].update(add=random_edges(seed=1))

    expected = graph.rank().ranks.tobytes()
    assert graph.rank(progress=during).ranks.tobytes() == expected
    assert seen[0].number_of_edges == 2 * graph.number_of_edges


def _in_process(graph):
    return graph.rank()


@pytest.fixture(scope="module")
def process():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", ["integers", "strings", "polars", "decay"])
def test_graphs_and_rankings_cross_processes(name, process):
    graph = GRAPHS[name]()
    ranking = process.submit(_in_process, graph).result()
    expected = graph.rank()
    assert ranking.ranks.tobytes() == expected.ranks.tobytes()
    assert ranking.frame.equals(expected.frame)
    assert ranking.to_dict() == expected.to_dict()


def test_rankings_are_pickled_without_what_lookups_cache():
    graph = prplugin.Graph(random_edges(2000, 9000).astype({"src": str, "dst": str}))
    for ranking in (graph.rank(), graph.rank(seeds=["1", "5"], top=3), graph.rank(top=3, certified=True)):
        size = len(pickle.dumps(ranking))
        found = ranking.to_dict()
        assert next(iter(found)) in ranking
        del ranking.__dict__["frame"]
        assert len(pickle.dumps(ranking)) <= size + 100
        assert pickle.loads(pickle.dumps(ranking)).to_dict() == found
        assert copy.deepcopy(ranking).to_dict() == found
