"""Proofs of equal ranks: pairs of vertices that differ in a single condition are not proved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.graph.edges import Edges
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.types.edges import Coo


def proofs(pairs, n, weights=None, *, vectors=(), alpha=0.85):
    source, destination = np.array(pairs, np.int32).reshape(-1, 2).T
    weights = None if weights is None else np.array(weights, np.float64)
    edges = Coo(source.copy(), destination.copy(), weights, n)
    return EqualRanks(Edges(edges), lambda: vectors, alpha=alpha)


@pytest.mark.parametrize(
    ("pairs", "weights", "vectors", "equal"),
    [
        ([(2, 0), (3, 1)], None, (), True),
        ([(2, 0), (3, 1), (3, 4)], None, (), False),  # out-degrees
        ([(2, 0), (3, 1), (4, 1)], None, (), False),  # in-degrees
        ([(2, 0), (2, 1)], [2.0**53] * 2, (), True),
        ([(2, 0), (2, 1)], [2.0**53 + 2] * 2, (), False),  # perhaps of unequal integers
        ([(2, 0), (2, 1)], [1.0, 2.0], (), False),
        ([(2, 0), (2, 1)], None, ([2.0**53] * 5,), True),
        ([(2, 0), (2, 1)], None, ([2.0**53 + 2] * 5,), False),
        ([(2, 0), (2, 1)], None, ([1.0, 2.0, 1.0, 1.0, 1.0],), False),
        ([(2, 0), (3, 1)], None, ([1.0, 1.0, 1.0, 2.0, 1.0],), False),  # of the sources
    ],
)  # fmt: skip
def test_each_condition_is_needed(pairs, weights, vectors, equal):
    equal_ranks = proofs(pairs, 5, weights, vectors=[np.array(vector) for vector in vectors])
    assert equal_ranks.equal(0, 1, np.full(5, 0.2)) == equal
    assert equal_ranks.equal(1, 0, np.full(5, 0.2)) == equal


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_vectors_may_be_given_by_vertex(value):
    assert proofs([(2, 0), (2, 1)], 3, vectors=[{0: 1.0, 1: value}]).equal(0, 1, np.full(3, 1 / 3)) == (value == 1.0)


def test_failed_search_leaves_no_trace():
    """Sets and their sizes are those before the search: 0 and 1 need 2 and 3 to be equal, which get unlike edges."""
    equal_ranks, ranks = proofs([(2, 0), (3, 1), (4, 2), (4, 5), (6, 3), (7, 6), (8, 9)], 12), np.full(12, 1 / 12)
    assert equal_ranks.equal(10, 11, ranks)
    parents, sizes = dict(equal_ranks._parents), {v: size for v, size in equal_ranks._sizes.items() if size > 1}
    assert not equal_ranks.equal(0, 1, ranks)
    assert not equal_ranks.equal(2, 3, ranks)
    assert equal_ranks._parents == parents
    assert {v: size for v, size in equal_ranks._sizes.items() if size > 1} == sizes


@pytest.mark.parametrize("values", [[1 << 53, 1 << 53], [1 << 60, (1 << 60) + 1]])
@pytest.mark.parametrize("kind", ["personalization", "weight"])
def test_integers_that_float64_cannot_tell_apart_are_no_proof(kind, values):
    edges = pd.DataFrame({"src": [3, 3, 1, 2], "dst": [1, 2, 3, 3], "w": [*values, 1, 1]})
    graph = prplugin.Graph(edges, weight="w" if kind == "weight" else None)
    personalization = dict(zip((1, 2), values, strict=True)) if kind == "personalization" else None
    ranking = graph.rank(personalization=personalization, top=2, certified=True)
    assert any(tie.equal for tie in ranking.ties) == (values[0] == values[1])


def depths(equal_ranks):
    """Return the number of steps from each vertex to the root of its set."""

    def depth(vertex):
        return 1 + depth(equal_ranks._parents[vertex]) if vertex in equal_ranks._parents else 0

    return [depth(vertex) for vertex in equal_ranks._parents]


def test_sets_stay_flat():
    """A smaller set joins the larger one, in whatever order a pair is named."""
    n, ranks = 40, np.full(40, 1 / 40)
    for pairs in ([(0, other) for other in range(1, n)], [(other, 0) for other in range(1, n)]):
        equal_ranks = proofs([], n)
        assert all(equal_ranks.equal(*pair, ranks) for pair in pairs)
        assert depths(equal_ranks) == [1] * (n - 1)
        assert max(equal_ranks._sizes.values()) == n


def two_paths(length):
    """Return the edges of two paths, of which vertices at the same place have equal ranks, each proved by the last."""
    path = [(2 * i, 2 * i + 2) for i in range(length)]
    return path + [(source + 1, target + 1) for source, target in path]


def test_a_search_may_spend_an_eighth_of_the_budget(monkeypatch):
    monkeypatch.setattr("prplugin.graph.equal_ranks.MIN_PAIRS", 80)
    n = 60
    ranks = np.full(n, 1 / n)
    assert proofs(two_paths(29), n).equal(16, 17, ranks)  # 9 pairs
    assert not proofs(two_paths(29), n).equal(18, 19, ranks)  # 10, and their edges
    spent = proofs(two_paths(29), n)
    assert not spent.equal(58, 59, ranks)
    assert not spent.equal(16, 17, ranks)  # an eighth of what is left
    assert spent.equal(12, 13, ranks)
    large = EqualRanks(proofs(two_paths(29), n)._adjacency, list, m=10**9, alpha=0.85)
    assert large.equal(58, 59, ranks)
