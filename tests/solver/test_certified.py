"""Property tests: a certified order is the exact one, and so are its ties."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from drawn_graphs import frame, graphs, vectors
from exact_order import assert_order_is_exact
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import METHODS, examples
from rational_pagerank import solve
from solver_graphs import GRAPHS, Float32Step

import prplugin
from prplugin.graph.edges import Edges, Problem
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.numerics import StepRounding
from prplugin.options import Options
from prplugin.solver import solve as solver
from prplugin.solver.certificate import Certificate
from prplugin.solver.top_k import OrderProof, least_gap, order_of
from prplugin.types.edges import Coo

alphas = st.sampled_from([0.0, 0.3, 0.85, 0.99])


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data(), graph=graphs(), alpha=alphas, k=st.integers(1, 8), tol=st.sampled_from([1e-2, 1e-6, 1e-11]))
@settings(max_examples=examples(150), deadline=None)
def test_certified_order_is_exact(method, data, graph, alpha, k, tol):
    n, rows = graph
    personalization = data.draw(vectors(n), "personalization")
    dangling = data.draw(vectors(n), "dangling")
    nstart = data.draw(vectors(n), "nstart")
    ranking = prplugin.Graph(frame(rows), weight="w", vertices=list(range(n))).rank(
        method=method, alpha=alpha, personalization=personalization, dangling=dangling, nstart=nstart,
        tol=tol, top=k, certified=True,
    )  # fmt: skip
    assert_order_is_exact(
        ranking, solve(n, [(u, v, Fraction(w)) for u, v, w in rows], alpha, personalization, dangling), k
    )
    assert ranking.converged
    assert ranking.certified or ranking.error_bound <= tol


@pytest.mark.parametrize("method", METHODS)
@given(graph=graphs(weight=st.just(1.0)), copies=st.integers(1, 3), k=st.integers(1, 8), alpha=alphas)
@settings(max_examples=examples(150), deadline=None)
def test_copies_of_graph_are_tied(method, graph, copies, k, alpha):
    n, rows = graph
    rows = [(u + copy * n, v + copy * n, w) for u, v, w in rows for copy in range(copies)]
    ranking = prplugin.Graph(frame(rows), vertices=list(range(n * copies))).rank(
        method=method, alpha=alpha, tol=1e-11, top=k, certified=True
    )
    assert_order_is_exact(ranking, solve(n * copies, [(u, v, Fraction(1)) for u, v, _ in rows], alpha), k)


@given(graph=graphs(), personalization=st.data())
@settings(max_examples=examples(300), deadline=None)
def test_equal_ranks_have_equal_exact_ranks(graph, personalization):
    n, rows = graph
    values = personalization.draw(vectors(n))
    vector = [] if values is None else [np.array([values.get(u, 0.0) for u in range(n)])]
    exact = solve(n, [(u, v, Fraction(w)) for u, v, w in rows], 0.85, values)
    endpoints = np.array([(u, v) for u, v, _ in rows], np.int32).reshape(-1, 2)
    adjacency = Edges(Coo(endpoints[:, 0], endpoints[:, 1], np.array([w for _, _, w in rows]), n))
    equal_ranks = EqualRanks(adjacency, lambda: vector, alpha=0.85)
    ranks = np.array([float(x) for x in exact])
    for i in range(n):
        for j in range(n):
            assert not equal_ranks.equal(i, j, ranks) or exact[i] == exact[j]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("k", [1, 3, 20])
def test_float32_steps_prove_order(name, k):
    graph = prplugin.Graph(GRAPHS[name])
    adjacency, options = adjacency_of(graph), Options(tol=1e-11, top=k, certified=True)
    step = Float32Step(Problem(adjacency, options.alpha))
    order = OrderProof(k, EqualRanks(adjacency, list, alpha=options.alpha).equal, options.tol)
    outcome = solver.solve(step, options, adjacency.n, 1 / adjacency.n, lambda *_: lambda *_: None, order=order)
    assert outcome.converged
    assert outcome.order.proved
    exact = graph.rank(tol=1e-12).ranks
    assert np.abs(step.ranks() - exact).max() <= outcome.order.margin + 1e-12
    assert (np.diff(exact[outcome.order.rows]) <= 1e-15).all()
    assert exact[outcome.order.rows[-1]] >= np.sort(exact)[-k:][0] - 1e-15


def rank_certified(source, target, **options):
    return prplugin.Graph(pd.DataFrame({"src": source, "dst": target})).rank(certified=True, **options)


def test_ties_list_vertices_of_equal_rank():
    # Vertices 1 and 2 link to each other and have an in-edge from 0; 1 links to 3, and 2 to 4.
    ranking = rank_certified([0, 0, 1, 2, 1, 2], [1, 2, 2, 1, 3, 4], top=5)
    assert ranking.certified
    assert [(tie.places, tie.equal, tie.frame["vertex"].tolist()) for tie in ranking.ties] == [
        (range(2), True, [1, 2]),
        (range(2, 4), True, [3, 4]),
    ]


@pytest.mark.parametrize("n", [5, 70_000], ids=["iterated", "pushed"])
def test_at_alpha_zero_vertices_of_equal_teleport_are_tied(n):
    ranking = rank_certified(np.arange(n), np.arange(n) // 2, alpha=0.0, personalization={1: 2, 2: 1, 3: 1}, top=3)
    assert ranking.certified
    assert [(tie.places, tie.equal) for tie in ranking.ties] == [(range(1, 3), True)]


@pytest.mark.parametrize("dangling", [None, {0: 1, 1: 2}])
def test_at_alpha_zero_all_vertices_are_tied(dangling):
    ranking = rank_certified([0, 0, 1], [1, 2, 2], alpha=0.0, dangling=dangling, top=2)
    assert [(tie.places, tie.equal) for tie in ranking.ties] == [(range(3), True)]


def test_tie_may_extend_past_top():
    ranking = rank_certified([0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0], top=2)
    assert ranking.frame["vertex"].tolist() == [0, 1]
    (tie,) = ranking.ties
    assert (tie.places, tie.frame["vertex"].tolist(), tie.equal) == (range(1, 4), [1, 2, 3], True)
    assert ranking.certified


def test_unresolved_ties_are_reported():
    random = np.random.default_rng(1)
    source, target = random.integers(0, 100, 500), random.integers(0, 100, 500)
    ranking = rank_certified(source, target, top=20, tol=1e-2)
    assert ranking.converged
    assert ranking.error_bound <= 1e-2
    assert not ranking.certified
    unresolved = [tie for tie in ranking.ties if not tie.equal]
    assert unresolved
    for tie in unresolved:
        # Adjacent ranks in the tie differ by at most twice the bound per vertex.
        assert (-np.diff(tie.frame["pagerank"]) <= 2 * ranking.vertex_bound).all()
        assert len(tie.frame) == len(tie.places) > 1
    assert rank_certified(source, target, top=20, tol=1e-10).certified


def test_certified_order_stops_before_tolerance():
    random = np.random.default_rng(1)
    source, target = random.integers(0, 1000, 5000), (random.random(5000) ** 3 * 1000).astype(int)
    ranking = rank_certified(source, target, top=3, tol=1e-10, method="numpy")
    longer = prplugin.Graph(pd.DataFrame({"src": source, "dst": target})).rank(tol=1e-10, method="numpy")
    assert ranking.certified
    assert ranking.error_bound > 1e-10
    assert ranking.iterations < longer.iterations
    best = longer.ranks.argsort()[::-1][:3]
    assert ranking.frame["vertex"].tolist() == best.tolist()


@pytest.mark.parametrize("method", ["numpy", "native"])
@pytest.mark.parametrize("alpha", [0.85, 0.9, 0.98, 0.99])
def test_certified_order_takes_no_more_iterations(alpha, method):
    """Mixing pays in these rankings, also when a nearer goal is estimated for the order."""
    random, n, m = np.random.default_rng(3), 500, 1500
    source = (n * random.random(m) ** 3).astype(np.int64)
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": random.integers(0, n, m)}))
    certified = graph.rank(alpha=alpha, method=method, top=5, certified=True)
    assert certified.certified
    assert certified.iterations <= graph.rank(alpha=alpha, method=method, top=5).iterations


def test_equality_is_searched_for_once_in_ranks(monkeypatch):
    """Check that a tie which tol leaves unproved is not searched again for the result."""
    searched = []
    monkeypatch.setattr(EqualRanks, "equal", lambda self, a, b, ranks: bool(searched.append((a, b, ranks.tobytes()))))
    rank_certified([0, 1, 2, 3, 4, 4], [1, 0, 3, 2, 0, 2], top=4, tol=1e-10)
    assert len(set(searched)) == len(searched) > 0


def test_order_within_float32_rounding_is_not_certified():
    # The ranks of 1 and 2 differ by less than the rounding of float32.
    edges = pd.DataFrame({"src": [0, 0], "dst": [1, 2], "w": [1.0, 1.0 + 2**-30]})
    ranking = prplugin.Graph(edges, weight="w").rank(top=2, certified=True, tol=1e-12)
    assert ranking.frame["vertex"].tolist() == [2, 1]
    assert ranking.certified
    single = prplugin.Graph(edges, weight="w").rank(top=2, certified=True, tol=1e-6, dtype="float32")
    assert not single.certified


def test_pagerank_returns_certified_frame():
    edges = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "a", "a"]})
    frame = edges.pagerank(top=2, certified=True)
    assert frame["vertex"].tolist() == ["a", "b"]
    assert edges.pagerank(top=5, certified=True)["vertex"].tolist() == ["a", "b", "c"]


def test_certified_ranking_of_empty_graph():
    empty = pd.DataFrame({"src": pd.Series([], dtype="int64"), "dst": pd.Series([], dtype="int64")})
    ranking = prplugin.Graph(empty).rank(top=3, certified=True)
    assert ranking.ties == ()
    assert ranking.certified
    assert (len(ranking.frame), ranking.iterations, ranking.error_bound, ranking.vertex_bound) == (0, 0, 0, 0)


def test_certified_ranking_can_be_pickled():
    ranking = rank_certified([0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0], top=2)
    again = pickle.loads(pickle.dumps(ranking))
    assert again.frame.equals(ranking.frame)
    assert [tie.places for tie in again.ties] == [tie.places for tie in ranking.ties]


@pytest.mark.parametrize(
    "options", [{}, {"top": 3, "stop": "delta"}, {"top": 3, "tol": 0, "max_iter": 3}, {"top": 3, "certified": 1}]
)
def test_invalid_certified_options_raise(options):
    edges = pd.DataFrame({"src": [0, 1], "dst": [1, 0]})
    with pytest.raises(prplugin.InvalidOptionError, match="certified"):
        edges.pagerank(**{"certified": True, **options})


def test_uncertified_ranking_has_no_ties():
    ranking = prplugin.Graph(pd.DataFrame({"src": [0, 1], "dst": [1, 0]})).rank(top=1)
    assert not ranking.certified
    assert ranking.vertex_bound == ranking.error_bound
    with pytest.raises(prplugin.InvalidOptionError, match="certified=True"):
        _ = ranking.ties


def test_max_iter_leaves_order_uncertified():
    with pytest.raises(prplugin.NotConvergedError) as caught:
        rank_certified([0, 1, 2, 3, 3], [1, 0, 0, 1, 2], top=4, tol=1e-10, max_iter=1)
    assert not caught.value.ranking.certified
    assert caught.value.ranking.ties


def order_by_definition(ranks, k, margin, equal):
    """Return the k highest positions, and the first place, the positions and the equality of each tie among them."""
    descending = sorted(range(len(ranks)), key=lambda i: (-ranks[i], i))
    k = min(k, len(ranks))
    lowest = ranks[descending[k - 1]] - 2 * margin
    shown = [i for place, i in enumerate(descending) if place <= k or ranks[i] >= lowest]
    apart = [place for place in range(1, len(shown)) if ranks[shown[place - 1]] - ranks[shown[place]] > 2 * margin]
    ties = []
    for first, end in pairwise([0, *apart, len(shown)]):
        tied = shown[first:end]
        if len(tied) > 1 and first < k:
            near = [ranks[a] - ranks[b] <= 1e-6 * ranks[a] for a, b in pairwise(tied)]
            proved = all(close and equal(a, b, ranks) for close, (a, b) in zip(near, pairwise(tied), strict=True))
            shown[first:end] = sorted(tied) if proved else tied
            ties.append((first, shown[first:end], proved))
    return shown[:k], ties


@given(
    values=st.lists(st.sampled_from([0.1, 0.1 + 1e-8, 0.1 + 1e-5, 0.2, 0.2 + 5e-8, 0.3, 0.0]), min_size=1, max_size=12),
    k=st.integers(1, 14), margin=st.sampled_from([0.0, 1e-9, 2e-8, 1e-5, 0.03, 0.06, 1.0]), modulus=st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=examples(600), deadline=None)
def test_orders_follow_their_definition(values, k, margin, modulus):
    ranks, asked = np.array(values), []

    def equal(a, b, _):
        asked.append((a, b))
        return a % modulus == b % modulus

    found = order_of(ranks, k, margin, equal)
    assert len(asked) == len(set(asked))
    rows, ties = order_by_definition(values, k, margin, equal)
    assert found.rows.tolist() == rows
    assert [(tie.first, tie.rows.tolist(), tie.equal) for tie in found.ties] == ties
    assert found.margin == margin


def test_equality_is_tested_for_the_highest_and_a_few_below(monkeypatch):
    monkeypatch.setattr("prplugin.solver.top_k.MAX_EQUALITY_TESTS", 2)
    asked = []

    def equal(a, b, _):
        asked.append((a, b))
        return True

    (tie,) = order_of(np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.1]), 6, 0.0, equal).ties
    assert (tie.first, tie.equal) == (4, True)
    asked.clear()
    (tie,) = order_of(np.full(6, 0.1), 1, 0.0, equal).ties
    assert asked == [(0, 1), (1, 2), (2, 3)]
    assert not tie.equal


def test_least_gap_is_that_of_ranks_that_no_proof_makes_equal():
    ranks = np.array([0.4, 0.3, 0.3 - 1e-8, 0.1, 0.1 - 1e-9, 0.1 - 3e-9, 0.05])
    assert least_gap(ranks, 1, 0.1) == pytest.approx(0.1)
    assert least_gap(ranks, 2, 0.01) == pytest.approx(0.1)  # of the highest; below the second is its equal
    assert least_gap(ranks[2:], 1, 0.2) == pytest.approx(0.2)
    assert least_gap(ranks[3:], 3, 0.2) == pytest.approx(0.05, rel=1e-6)
    assert least_gap(ranks[3:], 2, 0.2) == np.inf  # what is so far below the last is not looked at
    assert least_gap(ranks[3:6], 2, 0.2) == np.inf
    assert least_gap(ranks[:1], 1, 0.1) == np.inf


@pytest.mark.parametrize("kth", [0.25, 0.03, 0.001])
@pytest.mark.parametrize("early", [True, False])
def test_the_first_check_is_due_at_an_estimated_gap(kth, early):
    """Half of the digits of the tolerance, or a sixteenth of the k-th rank by k**2 times as many as are checked at once."""
    k, tol, checked = 2, 1e-4, []
    certificate = Certificate(0.85, 4, StepRounding(1, 1, 1, 1, 1), "float64", 1)
    step = SimpleNamespace(ranks=lambda: np.array([0.5, kth, kth / 2, kth / 4]))

    class Noted(OrderProof):
        def _margin(self, ranks, certificate, bound):
            checked.append(bound)
            return bound

    proof = Noted(k, lambda *_: False, tol, early=early)
    assert not proof.prove(step, certificate, 1.0)
    assert not checked
    aim = min(1e-2, kth / k**2) if early else tol
    assert proof.goal(certificate) == certificate.change_for(aim)
    due = min(1e-2, max(tol, 16 * aim)) if early else tol
    proof.prove(step, certificate, due * 1.01)
    assert not checked
    proof.prove(step, certificate, due)
    assert checked == [due]
