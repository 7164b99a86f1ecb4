"""Local queries: ranks by pushes from the seeds, their bounds and orders, compared with exact solutions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from drawn_graphs import frame, graphs
from exact_order import assert_order_is_exact
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples
from rational_pagerank import distance, solve

import prplugin
from prplugin.graph.edges import Edges
from prplugin.options import Options
from prplugin.streams import local_pushes
from prplugin.streams.local_pushes import LocalPushes
from prplugin.types.edges import Coo, PackedRows

N, M = 20_000, 100_000


@pytest.fixture
def small_graphs(monkeypatch):
    """Let pushes rank graphs of any size, however many edges they take."""
    monkeypatch.setattr(local_pushes, "MIN_EDGES", 0)
    monkeypatch.setattr(local_pushes, "PUSH_SLOWDOWN", 1e-6)


@pytest.fixture(scope="module")
def edges():
    """Return edges in hosts of 50 vertices, a few of which leave the host; some vertices have none."""
    random = np.random.default_rng(0)
    source = random.integers(0, N, M)
    near = np.minimum(source // 50 * 50 + random.integers(0, 50, M), N - 1)
    target = np.where(random.random(M) < 0.002, random.integers(0, N, M), near)
    dangling = random.random(N) < 0.1
    return pd.DataFrame({"src": source, "dst": target, "w": random.exponential(size=M)})[~dangling[source]]


@pytest.fixture(scope="module")
def graph(edges):
    return prplugin.Graph(edges, vertices=range(N))


weights = st.one_of(st.just(1.0), st.sampled_from([0.0, 0.5, 3.0, 1e-9, 1e12]))


def personalizations(n):
    return st.dictionaries(st.integers(0, n - 1), st.sampled_from([1.0, 2.0, 0.1]), min_size=1, max_size=3)


@pytest.mark.usefixtures("small_graphs")
@given(
    data=st.data(), graph=st.one_of(graphs(weight=weights), graphs(weight=st.just(1.0))),
    alpha=st.sampled_from([0.0, 0.3, 0.85, 0.99]), tol=st.sampled_from([0.5, 1e-3, 1e-6, 1e-10]),
)  # fmt: skip
@settings(max_examples=examples(400), deadline=None)
def test_bounds_hold(data, graph, alpha, tol):
    n, rows = graph
    given_values = data.draw(personalizations(n), "personalization")
    weight = data.draw(st.sampled_from(["w", None]), "weight")
    prepared = prplugin.Graph(frame(rows), weight=weight, vertices=list(range(n)))
    ranking = prepared.rank(alpha=alpha, personalization=given_values, tol=tol)
    exact = solve(n, [(u, v, Fraction(w if weight else 1)) for u, v, w in rows], alpha, given_values)
    assert ranking.method == "push"
    assert distance(ranking.ranks, exact) <= Fraction(ranking.error_bound) <= Fraction(tol)
    assert abs(ranking.ranks.sum() - 1) < 1e-12


@pytest.mark.usefixtures("small_graphs")
@given(
    data=st.data(), graph=st.one_of(graphs(weight=weights), graphs(weight=st.just(1.0))),
    alpha=st.sampled_from([0.0, 0.3, 0.85, 0.99]), k=st.integers(1, 6), tol=st.sampled_from([1e-2, 1e-6, 1e-11]),
)  # fmt: skip
@settings(max_examples=examples(400), deadline=None)
def test_certified_orders_are_exact(data, graph, alpha, k, tol):
    n, rows = graph
    given_values = data.draw(personalizations(n), "personalization")
    prepared = prplugin.Graph(frame(rows), weight="w", vertices=list(range(n)))
    exact = solve(n, [(u, v, Fraction(w)) for u, v, w in rows], alpha, given_values)
    ranking = prepared.rank(alpha=alpha, personalization=given_values, tol=tol, top=k, certified=True)
    assert_order_is_exact(ranking, exact, k)
    assert ranking.certified or ranking.error_bound <= tol


@pytest.mark.usefixtures("small_graphs")
@given(
    data=st.data(), graph=graphs(weight=st.just(1.0)), alpha=st.sampled_from([0.0, 0.5, 0.85]),
    top=st.one_of(st.none(), st.integers(1, 4)), method=st.sampled_from(["auto", "native"]),
)  # fmt: skip
@settings(max_examples=examples(300), deadline=None)
def test_certified_orders_among_some_are_exact(data, graph, alpha, top, method):
    n, rows = graph
    given_values = data.draw(personalizations(n), "personalization")
    some = data.draw(st.lists(st.integers(0, n - 1), unique=True, min_size=1), "among")
    excluded = data.draw(st.one_of(st.none(), st.lists(st.integers(0, n - 1), unique=True)), "exclude")
    exact = solve(n, [(u, v, Fraction(w)) for u, v, w in rows], alpha, given_values)
    ranking = prplugin.Graph(frame(rows), weight="w", vertices=list(range(n))).rank(
        alpha=alpha, personalization=given_values, among=some, exclude=excluded, top=top, certified=True, method=method
    )
    found = ranking.frame["vertex"].tolist()
    returned = [v for v in some if v not in (excluded or [])]
    assert len(found) == min(len(returned), top or len(returned))
    assert set(found) <= set(returned)
    if ranking.certified:
        ranks = [exact[v] for v in found]
        assert ranks == sorted(ranks, reverse=True)
        assert all(exact[v] <= min(ranks, default=1) for v in returned if v not in found)
    for tie in ranking.ties:
        assert not tie.equal or len({exact[v] for v in tie.frame["vertex"]}) == 1


def whole(graph, **options):
    """Rank by iterations over all edges, nearly exactly."""
    return graph.rank(method="native", **{"tol": 1e-12, **options})


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("alpha", [0.5, 0.85])
@pytest.mark.parametrize("seeds", [[3], [3, 700, 19_000], {8: 2.0, 51: 1.0}])
def test_selections_are_those_of_all_ranks(edges, weight, alpha, seeds):
    graph = prplugin.Graph(edges, weight=weight, vertices=range(N))
    exact = whole(graph, alpha=alpha, personalization=seeds)
    local_ranking = graph.rank(alpha=alpha, personalization=seeds)
    assert local_ranking.method == "push"
    assert np.abs(local_ranking.ranks - exact.ranks).sum() <= local_ranking.error_bound <= 1e-6
    frame = local_ranking.frame
    assert len(frame) == N
    own = list(seeds)
    for exclude in (None, [10, 11, 12], "seeds"):
        excluded = [] if exclude is None else own if exclude == "seeds" else exclude
        kept = frame[~frame["vertex"].isin(excluded)]
        some = [12, 3, 8, 15_000, 9]
        cases = {
            "all": ({}, kept),
            "top": ({"top": 7}, kept.sort_values("pagerank", ascending=False, kind="stable")[:7]),
            "among": (
                {"among": some},
                frame.set_index("vertex").loc[[v for v in some if v not in excluded]].reset_index(),
            ),
        }
        for options, expected in cases.values():
            found = graph.rank(alpha=alpha, personalization=seeds, exclude=exclude, **options)
            pd.testing.assert_frame_equal(found.frame, expected.reset_index(drop=True), check_exact=True)
            assert found.ranks.tolist() == local_ranking.ranks.tolist()
            repr(found)
    assert graph.rank(alpha=alpha, personalization=seeds, top=N + 5).frame["vertex"].is_unique


def test_more_are_asked_for_than_have_ranks():
    chain = pd.DataFrame({"src": range(70_000), "dst": range(1, 70_001)})
    graph = prplugin.Graph(pd.concat([chain, pd.DataFrame({"src": [0, 0], "dst": [80_000, 80_001]})]))
    ranking = graph.rank(personalization=[69_999], top=5, exclude=[0, 1, 2])
    assert ranking.method == "push"
    assert ranking.frame["vertex"].tolist() == [69_999, 70_000, 3, 4, 5]
    assert ranking.frame["pagerank"].tolist()[2:] == [0.0] * 3
    # The rank of vertex 70,000 is 0 in float32, so that it is one of those in order of position.
    ranking = graph.rank(personalization=[69_999], top=3, alpha=1e-60, dtype="float32")
    assert ranking.method == "push"
    assert ranking.frame["vertex"].tolist() == [69_999, 0, 1]


@pytest.fixture
def calls(monkeypatch):
    """Return a list that receives the numbers that each call of the kernel gets, and its result."""
    found, push = [], local_pushes.kernels.push_listed

    def spy(**given):
        spent = push(**given)
        found.append(SimpleNamespace(**given, spent=spent))
        return spent

    monkeypatch.setattr(local_pushes.kernels, "push_listed", spy)
    return found


@pytest.mark.parametrize("options", [{}, {"tol": 1.5}, {"alpha": 0.5, "tol": 1e-9}, {"dtype": "float32", "tol": 1e-5}])
def test_pushes_end_at_the_tolerance_or_at_their_budget(graph, calls, options):
    ranking = graph.rank(personalization=[5], **options)
    alpha, tol = options.get("alpha", 0.85), options.get("tol", 1e-6)
    of_cast = 2.0**-24 if "dtype" in options else 0
    n, m = N, graph.number_of_edges
    (call,) = calls
    assert ranking.method == "push"
    assert call.ratio == pytest.approx(0.98 * (tol - of_cast) * (1 - alpha) / (2 * alpha), rel=1e-6)
    steps = Options(alpha=alpha, tol=tol).rule.likely_steps(alpha, None)
    assert call.budget == pytest.approx(steps * (n + m) / 6, rel=1e-12)
    assert call.trial == pytest.approx(0.06 * (4 - 0.5 * np.log(min(tol, 1))) * (n + m), rel=1e-12)
    assert ranking.iterations == -(-call.spent // m)
    assert (call.spent > 0) == (ranking.iterations > 0)


def test_checks_of_an_order_share_budget_and_trial(graph, calls):
    ranking = graph.rank(personalization=[5], top=20, certified=True)
    assert ranking.method == "push"
    ratios = [call.ratio for call in calls]
    assert len(calls) > 2
    assert ratios == pytest.approx([8 ** (4 - at) * 0.98e-6 * 0.15 / 1.7 for at in range(len(calls))])
    spent = np.cumsum([0, *(call.spent for call in calls)])
    for name in ("budget", "trial"):
        given = np.array([getattr(call, name) for call in calls])
        np.testing.assert_allclose(given + spent[:-1], given[0], rtol=1e-12)
    assert ranking.iterations == -(-spent[-1] // graph.number_of_edges)


@pytest.mark.usefixtures("small_graphs")
def test_passes_of_pushes_are_rounded_up(calls):
    graph = prplugin.Graph(pd.DataFrame({"src": [1], "dst": [2]}), vertices=[3])
    assert graph.rank(personalization=[1]).iterations == sum(call.spent for call in calls) > 0
    assert graph.rank(personalization=[3]).iterations == 0


def test_order_is_proved_by_gaps_that_exceed_that_of_the_bounds(graph, monkeypatch):
    gaps, margins, of_gap, order_of = [], [], local_pushes.bounds.of_gap, local_pushes.order_of
    monkeypatch.setattr(local_pushes.bounds, "of_gap", lambda *given: gaps.append(of_gap(*given)) or gaps[-1])
    monkeypatch.setattr(
        local_pushes, "order_of", lambda *given: margins.append((given[2], gaps[-1])) or order_of(*given)
    )
    assert graph.rank(personalization=[5], top=3, certified=True).certified
    assert margins
    assert all(2 * margin == gap > 0 for margin, gap in margins)


@pytest.mark.usefixtures("small_graphs")
def test_order_within_the_tolerance_that_is_not_proved(monkeypatch):
    monkeypatch.setattr(local_pushes, "TRIAL_FRACTION", 1e3)
    graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3, 4], "dst": [2, 1, 4, 3]}))
    ranking = graph.rank(personalization={1: 1.0, 3: 1.0 + 1e-12}, top=1, certified=True, tol=1e-3)
    assert ranking.method == "push"
    assert ranking.error_bound <= 1e-3
    assert not ranking.certified
    assert [tie.frame["vertex"].tolist() for tie in ranking.ties] == [[3, 1]]


def adjacency(layout=Coo, m=60_000, n=10_000):
    """Return the edges of a graph as `may_pay` looks at them."""
    return SimpleNamespace(n=n, m=m, memory_space="host", given=layout)


@pytest.mark.parametrize(
    ("edges", "options", "seeds", "pays"),
    [
        (adjacency(), {}, 10, True), (adjacency(), {}, 11, False), (adjacency(m=59_999), {}, 1, False),
        (adjacency(PackedRows), {}, 1, False), (adjacency(), {"stop": "delta"}, 1, False),
        (adjacency(), {"method": "native"}, 1, False), (adjacency(), {"max_iter": 50}, 1, False),
        (adjacency(), {"method_options": {"threads": 1}}, 1, False),
        (SimpleNamespace(**vars(adjacency()) | {"memory_space": "device"}), {}, 1, False),
    ],
)  # fmt: skip
def test_queries_that_pushes_may_answer(edges, options, seeds, pays, monkeypatch):
    monkeypatch.setattr(local_pushes, "_budget", lambda *given: 640.0)  # whose 16th is 10 pushes
    monkeypatch.setattr(local_pushes, "isinstance", lambda *given: False, raising=False)
    assert LocalPushes.may_pay(edges, Options(**options), seeds) == pays


def test_pushes_need_compiled_kernels(hide_kernels):
    hide_kernels("none")
    assert not LocalPushes.may_pay(adjacency(), Options(), 1)


def test_a_query_takes_the_arrays_of_the_last_one(monkeypatch):
    made, pushes, edges = [], LocalPushes(), Edges(Coo(np.array([0, 1]), np.array([1, 2]), None, 4))
    of_query = local_pushes._Arrays
    monkeypatch.setattr(local_pushes, "_Arrays", lambda *given: made.append(given) or of_query(*given))
    seeds = np.array([0]), np.array([1.0])
    ranks = [pushes.rank(edges, seeds, Options(), local_pushes.Wanted()).dense().tolist() for _ in range(3)]
    assert len(made) == 1
    assert ranks[0] == ranks[1] == ranks[2]


@pytest.mark.parametrize(
    "options", [{}, {"top": 4}, {"among": [9, 3, 77]}, {"dtype": "float32", "tol": 1e-4}, {"scale": "n"}]
)
@pytest.mark.parametrize("exclude", [None, [9, 4], "seeds"])
def test_many_seeds_are_ranked_as_one_by_one(graph, options, exclude):
    seeds = [[3], [9, 77], {700: 3.0}, [19_999]]
    found = graph.rank(seeds=seeds, exclude=exclude, **options)
    assert found.method == "push"
    parts = []
    for at, seed in enumerate(seeds):
        one = graph.rank(personalization=seed, exclude=exclude, **options)
        parts.append(one.frame.assign(seed=at)[["seed", "vertex", "pagerank"]])
        assert (found.each_iterations[at], found.each_error_bound[at]) == (one.iterations, one.error_bound)
    pd.testing.assert_frame_equal(found.frame, pd.concat(parts, ignore_index=True), check_exact=True)


def test_seeds_whose_pushes_take_too_long_are_iterated():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.integers(0, 5_000, (60_000, 2)), columns=["src", "dst"])
    island = pd.DataFrame({"src": range(10_000, 10_050), "dst": range(10_001, 10_051)})
    graph = prplugin.Graph(pd.concat([frame, island]))
    assert graph.rank(personalization=[1]).method != "push"
    assert graph.rank(personalization=[10_010]).method == "push"
    mixed = graph.rank(seeds=[1, 10_010, 2, 10_020])
    for at, seed in enumerate([1, 10_010, 2, 10_020]):
        exact = whole(graph, personalization=[seed]).ranks
        assert np.abs(mixed.ranks[at] - exact).sum() <= mixed.each_error_bound[at] + 1e-12 <= 1e-6 + 1e-12
    many = graph.rank(seeds=list(range(30)), top=3)
    assert many.converged
    assert many.rows.shape == (30, 3)


def test_handed_over_iterations_meet_the_tolerance(graph, monkeypatch):
    plain = whole(graph, personalization=[5])
    monkeypatch.setattr(local_pushes, "PUSH_SLOWDOWN", 1e3)
    ranking = graph.rank(personalization=[5])
    assert ranking.method != "push"
    assert np.abs(ranking.ranks - plain.ranks).sum() <= ranking.error_bound <= 1e-6


@pytest.mark.parametrize("alpha", [0.5, 0.85, 0.95])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_graph_without_locality_takes_hardly_more_work(alpha, tol):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"src": (20_000 * random.random(200_000) ** 2).astype(int)})
    graph = prplugin.Graph(frame.assign(dst=random.integers(0, 20_000, 200_000)))
    seeds = frame["src"][:5].tolist()
    several = [graph.rank(personalization=[seed], alpha=alpha, tol=tol) for seed in seeds]
    plain = [graph.rank(personalization=[seed], alpha=alpha, tol=tol, method="native") for seed in seeds]
    for one, other in zip(several, plain, strict=True):
        assert one.method == other.method == "native"
        assert one.iterations <= other.iterations + 1  # the pushes count as one at least
        assert np.abs(one.ranks - other.ranks).sum() <= one.error_bound + other.error_bound <= 2 * tol


@pytest.mark.parametrize("options", [
    {"tol": 0, "max_iter": 3}, {"stop": "delta"}, {"max_iter": 100}, {"method": "native"}, {"nstart": [4]},
    {"dangling": [4]}, {"threads": 1},
])  # fmt: skip
def test_other_requests_are_iterated(graph, options):
    assert graph.rank(personalization=[5], **options).method != "push"


def test_same_bits_in_every_run_and_thread(graph):
    first = graph.rank(personalization=[5], tol=1e-9)
    barrier = threading.Barrier(4)

    def rank(seed):
        barrier.wait()
        return graph.rank(personalization=[seed], tol=1e-9).ranks

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rank, [5, 100, 5, 5]))
    for ranks in (found[0], found[2], found[3], prplugin.Graph.from_csr(*graph.csr()).rank(
        personalization=[5], tol=1e-9).ranks):  # fmt: skip
        assert ranks.tobytes() == first.ranks.tobytes()


def test_queries_follow_updates(edges):
    graph = prplugin.Graph(edges[["src", "dst"]], vertices=range(N))
    assert graph.rank(personalization=[5]).method == "push"
    added = pd.DataFrame({"src": [5, 5, N], "dst": [N, 900, 5]})
    graph.update(add=added, remove=edges[["src", "dst"]].iloc[:3])
    for seed in (5, 900, N):
        ranking = graph.rank(personalization=[seed])
        assert ranking.method == "push"
        assert np.abs(ranking.ranks - whole(graph, personalization=[seed]).ranks).sum() <= ranking.error_bound <= 1e-6


def test_extreme_weights_are_iterated(edges):
    heavy = edges.assign(w=np.where(edges["src"] == 7, 1e200, 1e-200))
    assert prplugin.Graph(heavy, weight="w").rank(personalization=[7]).method != "push"


def test_vertices_of_several_columns(edges):
    parts = {"a": edges["src"] // 100, "b": edges["src"] % 100, "c": edges["dst"] // 100, "d": edges["dst"] % 100}
    graph = prplugin.Graph(pd.DataFrame(parts), ["a", "b"], ["c", "d"])
    ranking = graph.rank(personalization=[(1, 50)], top=5, certified=True)
    assert ranking.method == "push"
    exact = whole(graph, personalization=[(1, 50)], top=5).frame
    assert ranking.frame[["a", "b"]].equals(exact[["a", "b"]])


def test_certified_order_ends_early(graph):
    ranking = graph.rank(personalization=[5], top=3, certified=True)
    assert ranking.certified
    assert ranking.method == "push"
    assert ranking.error_bound > 1e-6
    assert ranking.frame["vertex"].tolist() == whole(graph, personalization=[5], top=3).frame["vertex"].tolist()


def test_tolerance_too_small_to_prove_is_refused(graph):
    with pytest.raises(prplugin.InvalidOptionError, match="cannot be proved"):
        graph.rank(personalization=[5], tol=1e-17)


@pytest.mark.usefixtures("small_graphs")
def test_equal_seeds_are_not_proved_above_vertices_not_yet_touched():
    """Regression test of a condition: three equal seeds tie at the first check, before their target is touched."""
    edges = pd.DataFrame({"src": [1, 2, 3], "dst": [9, 9, 9]})
    ranking = prplugin.Graph(edges).rank(personalization=[1, 2, 3], top=2, certified=True, tol=1e-2)
    assert ranking.frame["vertex"].tolist()[0] == 9
    assert ranking.certified


def test_passes_of_pushes_that_were_not_enough_count(graph, monkeypatch):
    monkeypatch.setattr(local_pushes, "PUSH_SLOWDOWN", 1e3)
    before, rank = graph.rank(personalization=[5]), local_pushes.LocalPushes.rank
    assert before.method != "push"

    def rank_with_more(*arguments, **options):
        found = rank(*arguments, **options)
        assert found.passes > 0
        return found._replace(passes=found.passes + 1000)

    monkeypatch.setattr(local_pushes.LocalPushes, "rank", rank_with_more)
    assert graph.rank(personalization=[5]).iterations == before.iterations + 1000


@pytest.mark.usefixtures("small_graphs")
@pytest.mark.parametrize(
    ("weight", "pushed"), [(2.0**500, True), (2.0**-500, True), (1.01 * 2.0**500, False), (0.99 * 2.0**-500, False)]
)
def test_only_out_weights_whose_quotients_lose_digits_are_iterated(weight, pushed):
    graph = prplugin.Graph(pd.DataFrame({"src": [1, 2], "dst": [2, 3], "w": [1.0, weight]}), weight="w")
    assert (graph.rank(personalization=[1]).method == "push") == pushed


@pytest.mark.usefixtures("small_graphs")
def test_order_of_all_touched_vertices_is_proved():
    graph = prplugin.Graph(pd.DataFrame({"src": [1, 3], "dst": [2, 4]}))
    for top in (1, 2, 3):
        ranking = graph.rank(personalization=[1], top=top, certified=True)
        assert (ranking.method == "push") == (top < 3)
        assert ranking.certified == (top < 3)  # vertices 3 and 4 have no rank, which is not looked for
        assert ranking.frame["vertex"].tolist() == [1, 2, 3][:top]


def test_iterations_start_where_pushes_end():
    """The tolerance is below the rounding of the cast: nothing is pushed, so that q = v and R = 1."""
    alpha, n = 0.8, 4
    edges = Edges(Coo(np.array([0, 1]), np.array([1, 2]), None, n))
    found = LocalPushes().rank(
        edges, (np.array([0, 3]), np.array([0.75, 0.25])), Options(alpha=alpha, tol=1e-9, dtype="float32"),
        local_pushes.Wanted(),
    )  # fmt: skip
    assert not found.met
    # Vertex 3 has no out-edges, so that E is alpha / (1 - alpha) times the residual of the other.
    e = alpha * 0.75 / (1 - alpha)
    np.testing.assert_allclose(found.dense(), np.array([0.75, 0, 0, 0.25]) + e / n, rtol=1e-15)
