"""The effect of each argument of `pagerank`, `Graph` and `Graph.rank`."""

from __future__ import annotations

import inspect
import logging
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from method_params import METHODS, same_ranks

import prplugin
from prplugin.cpu.threads import equal_work
from prplugin.types.arrays import highest

EDGES = pd.DataFrame(
    {"src": [1, 1, 2, 3, 3, 5, 3], "dst": [2, 3, 3, 1, 4, 5, 1], "w": [1.0, 2.0, 0.5, 4.0, 1.0, 1.0, 2.0]}
)


def random_edges(n=300, m=2500, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame({"src": random.integers(0, n, m), "dst": random.integers(0, n, m) // 2, "w": random.random(m)})


def ranks_of(edges, **arguments):
    arguments.setdefault("tol", 1e-12)
    return prplugin.pagerank(edges, **arguments)["pagerank"].to_numpy()


def assert_close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=3e-12)


def test_the_method_of_frames_is_the_function():
    assert pd.DataFrame.pagerank is prplugin.pagerank
    assert inspect.signature(EDGES.pagerank).parameters["alpha"].default == 0.85
    assert "personalization" in EDGES.pagerank.__doc__
    pd.testing.assert_frame_equal(EDGES.pagerank(), prplugin.pagerank(EDGES, "src", "dst"))


def test_graph_and_rank_share_the_defaults_of_pagerank():
    full = inspect.signature(prplugin.pagerank).parameters
    parts = {
        **inspect.signature(prplugin.Graph).parameters,
        **inspect.signature(prplugin.Graph.rank).parameters,
    }
    del parts["self"]
    assert {name: p.default for name, p in full.items()} == {name: p.default for name, p in parts.items()}


def test_subclasses_of_dataframe_have_the_method():
    class Coo(pd.DataFrame):
        pass

    pd.testing.assert_frame_equal(Coo(EDGES).pagerank(), EDGES.pagerank())


def test_two_vertices_by_hand():
    # 1 -> 2, and 2 is dangling: x1 = alpha * x2 / 2 + (1 - alpha) / 2, x1 + x2 = 1.
    ranks = ranks_of(pd.DataFrame({"src": [1], "dst": [2]}), alpha=0.5)
    assert_close(ranks, [0.4, 0.6])


@pytest.mark.parametrize("method", METHODS)
class TestDuplicates:
    def test_rows_count_as_parallel_edges(self, method):
        repeated = pd.DataFrame({"src": [1, 1, 1, 1], "dst": [2, 2, 2, 3]})
        weighted = pd.DataFrame({"src": [1, 1], "dst": [2, 3], "w": [3, 1]})
        assert_close(ranks_of(repeated, method=method), ranks_of(weighted, weight="w", method=method))

    def test_weights_of_parallel_edges_add(self, method):
        parallel = pd.DataFrame({"src": [1, 1, 1], "dst": [2, 3, 2], "w": [1, 2, 5]})
        added = pd.DataFrame({"src": [1, 1], "dst": [2, 3], "w": [6, 2]})
        assert_close(ranks_of(parallel, weight="w", method=method), ranks_of(added, weight="w", method=method))

    @pytest.mark.parametrize("keep", ["first", "last"])
    @pytest.mark.parametrize("directed", [True, False])
    def test_first_or_last_row_per_pair(self, method, keep, directed):
        edges = random_edges(40, 900)
        kept = edges.copy()
        if not directed:
            kept["src"], kept["dst"] = np.sort(edges[["src", "dst"]].to_numpy(), axis=1).T
        kept = edges[~kept.duplicated(["src", "dst"], keep=keep)]
        assert len(kept) < len(edges)
        arguments = {"weight": "w", "directed": directed, "vertices": range(40), "method": method}
        one = ranks_of(edges, duplicates=keep, **arguments)
        assert same_ranks(method, one, ranks_of(kept, **arguments))

    def test_error_accepts_rows_without_duplicates(self, method):
        edges = EDGES.drop_duplicates(["src", "dst"])
        assert ranks_of(edges, duplicates="error").tolist() == ranks_of(edges).tolist()


def test_duplicates_of_pairs_that_fit_no_packed_key(monkeypatch):
    edges = random_edges(40, 900)
    packed = ranks_of(edges, duplicates="last", weight="w")
    monkeypatch.setattr("prplugin.graph.dedup.packs", lambda largest, count: False)
    monkeypatch.setattr("prplugin.cpu.sorting.packs", lambda largest, count: False)
    assert ranks_of(edges, duplicates="last", weight="w").tolist() == packed.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_undirected_edges_count_both_ways_and_self_loops_once(method):
    both = pd.concat([EDGES, EDGES[EDGES.src != EDGES.dst].rename(columns={"src": "dst", "dst": "src"})])
    assert_close(ranks_of(EDGES, directed=False, method=method), ranks_of(both, method=method))
    assert_close(
        ranks_of(EDGES, directed=False, weight="w", method=method),
        ranks_of(both, weight="w", method=method),
    )


class TestCompressedRows:
    def test_csr(self):
        offsets, indices, weights = prplugin.Graph(EDGES, weight="w").csr()
        assert offsets.tolist() == [0, 2, 3, 6, 6, 7]
        assert indices.tolist() == [1, 2, 2, 0, 3, 0, 4]
        assert weights.tolist() == [1, 2, 0.5, 4, 1, 2, 1]
        assert (offsets.dtype, indices.dtype, weights.dtype) == (np.int64, np.int32, np.float64)

    def test_csc(self):
        offsets, indices, weights = prplugin.Graph(EDGES).csc()
        assert offsets.tolist() == [0, 2, 3, 5, 6, 7]
        assert indices.tolist() == [2, 2, 0, 0, 1, 2, 4]
        assert weights is None

    def test_counts(self):
        graph = prplugin.Graph(EDGES, directed=False, vertices=[9])
        assert (graph.number_of_vertices, graph.number_of_edges) == (6, 13)
        assert graph.csr().offsets[-1] == 13


@pytest.mark.parametrize("method", METHODS)
class TestStopping:
    def change(self, edges, k, method):
        """Return the change of each vertex in the k-th plain iteration."""
        one, other = (ranks_of(edges, tol=0, max_iter=i, method=method) for i in (k, k - 1))
        return np.abs(one - other)

    @pytest.mark.parametrize(
        ("stop", "norm"),
        [
            ("delta", lambda change: change.sum()),
            ("vertex", lambda change: change.max()),
            ("networkx", lambda change: change.sum() / change.size),
        ],
    )
    def test_iterations_end_at_the_first_change_within_the_tolerance(self, method, stop, norm):
        edges = random_edges()
        for tol in (1e-3, 1e-7):
            ranking = prplugin.Graph(edges).rank(stop=stop, tol=tol, method=method)
            assert ranking.converged
            assert norm(self.change(edges, ranking.iterations, method)) <= tol
            assert norm(self.change(edges, ranking.iterations - 1, method)) > tol

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize(("stop", "iterations"), [("delta", 1), ("networkx", 2)])
    def test_change_equal_to_the_tolerance_meets_all_rules_except_networkx(self, method, stop, iterations, dtype):
        graph = prplugin.Graph(pd.DataFrame({"src": [0, 0, 1], "dst": [0, 1, 0]}))
        tol = 0.25 if stop == "delta" else 0.125  # the L1 change of the first iteration is exactly 1/4
        assert graph.rank(alpha=0.5, tol=tol, stop=stop, method=method, dtype=dtype).iterations == iterations

    def test_iterations_end_when_the_error_is_proved(self, method):
        ranking = prplugin.Graph(random_edges()).rank(tol=1e-8, method=method)
        assert ranking.error_bound <= 1e-8
        with pytest.raises(prplugin.NotConvergedError):
            prplugin.Graph(random_edges()).rank(tol=1e-8, max_iter=ranking.iterations - 1, method=method)

    def test_start_at_the_solution_takes_one_iteration(self, method):
        graph = prplugin.Graph(random_edges())
        first = graph.rank(tol=1e-12, method=method).frame
        nstart = pd.DataFrame({"vertex": first["vertex"], "values": 7 * first["pagerank"]})
        assert graph.rank(nstart=nstart, method=method).iterations == 1

    def test_no_iterations(self, method):
        graph = prplugin.Graph(EDGES)
        ranking = graph.rank(tol=0, max_iter=0, nstart={1: 1, 3: 3}, method=method)
        assert ranking.ranks.tolist() == [0.25, 0, 0.75, 0, 0]
        exact = graph.rank(tol=1e-12).ranks
        assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound
        converged = graph.rank(tol=0.5, max_iter=0, method=method, alpha=0)
        assert (converged.iterations, converged.converged) == (0, True)

    def test_slowly_converging_graphs_are_accelerated(self, method):
        cycle = pd.DataFrame({"src": range(50), "dst": np.roll(range(50), -1)})
        graph, options = prplugin.Graph(cycle), {"alpha": 0.99, "nstart": {0: 1}, "method": method}
        ranking = graph.rank(tol=1e-8, **options)
        assert ranking.converged
        plain = graph.rank(tol=1e-10, stop="delta", **options)  # alpha / (1 - alpha) * 1e-10 is about 1e-8
        assert plain.converged
        assert ranking.iterations < plain.iterations / 2
        assert 1000 < plain.iterations < 3000


@pytest.mark.parametrize("method", METHODS)
class TestVectors:
    def test_dangling_mass_follows_personalization(self, method):
        edges = pd.DataFrame({"src": [1, 2], "dst": [2, 3]})
        personalized = ranks_of(edges, personalization={1: 2, 3: 6}, method=method)
        assert_close(
            personalized, ranks_of(edges, personalization={1: 1, 3: 3}, dangling={1: 10, 3: 30}, method=method)
        )
        looped = pd.DataFrame({"src": [1, 2, 3, 3], "dst": [2, 3, 1, 3], "w": [1, 1, 1, 3]})
        assert_close(personalized, ranks_of(looped, weight="w", personalization={1: 2, 3: 6}, method=method))

    def test_dangling_without_personalization(self, method):
        edges = pd.DataFrame({"src": [1, 2], "dst": [2, 3]})
        looped = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 2]})
        assert_close(ranks_of(edges, dangling={2: 5}, method=method), ranks_of(looped, method=method))

    def test_nstart_does_not_change_the_result(self, method):
        edges = random_edges()
        assert_close(ranks_of(edges, nstart={0: 1}, method=method), ranks_of(edges, method=method))

    def test_vertices_not_reachable_from_personalization_have_rank_zero(self, method):
        edges = pd.DataFrame({"src": [1, 2, 8], "dst": [2, 1, 1]})
        assert ranks_of(edges, personalization={1: 1}, method=method)[2] == 0


@pytest.mark.parametrize("method", METHODS)
def test_scale_and_dtype(method):
    graph = prplugin.Graph(random_edges())
    plain = graph.rank(tol=1e-7, method=method)
    scaled = graph.rank(tol=1e-7, scale="n", method=method)
    n = graph.number_of_vertices
    assert plain.ranks.sum() == pytest.approx(1, abs=1e-12)
    assert scaled.ranks.sum() == pytest.approx(n, abs=1e-9)
    np.testing.assert_allclose(scaled.ranks, n * plain.ranks, rtol=1e-15)
    again = graph.rank(tol=1e-7, scale=np.int64(1), progress=np.False_, method=method)
    assert same_ranks(method, again.ranks, plain.ranks)
    assert scaled.iterations == plain.iterations
    small = graph.rank(tol=1e-7, dtype=np.float32, method=method)
    assert small.ranks.dtype == small.frame["pagerank"].dtype == np.float32
    assert small.error_bound > 2**-24
    exact = graph.rank(tol=1e-12).ranks
    assert np.abs(small.ranks - exact).sum() <= small.error_bound


class TestTop:
    def test_highest_first(self):
        full = EDGES.pagerank()
        top = EDGES.pagerank(top=3)
        assert top["vertex"].tolist() == full.sort_values("pagerank", ascending=False)["vertex"].tolist()[:3]
        assert top.index.tolist() == [0, 1, 2]

    def test_top_of_more_than_all_vertices(self):
        assert len(EDGES.pagerank(top=99)) == 5

    def test_ties_keep_the_order_of_the_result(self):
        edges = pd.DataFrame({"src": list("dbac"), "dst": list("bacd")})
        assert edges.pagerank(top=3)["vertex"].tolist() == ["d", "b", "a"]
        values = np.random.default_rng(1).integers(0, 5, 1000) / 5
        for k in (1, 10, 250, 999, 1000, 2000):
            assert highest(values, k).tolist() == np.argsort(-values, kind="stable")[:k].tolist()


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_bits_do_not_depend_on_the_number_of_threads(threads):
    graph = prplugin.Graph(random_edges(20_000, 60_000), weight="w")
    one = graph.rank(method="native", threads=1, tol=1e-10)
    several = graph.rank(method="native", threads=threads, tol=1e-10)
    assert one.ranks.tobytes() == several.ranks.tobytes()
    assert (one.iterations, one.error_bound) == (several.iterations, several.error_bound)


class TestAuto:
    def test_auto_chooses_compiled_kernels_at_every_size(self):
        assert prplugin.Graph(EDGES).rank().method == "native"
        random = np.random.default_rng(0)
        edges = pd.DataFrame(random.integers(0, 100_000, (1 << 20, 2)), columns=["src", "dst"])
        assert prplugin.Graph(edges).rank().method == "native"

    def test_the_reason_of_the_choice_is_logged(self, caplog):
        with caplog.at_level(logging.INFO, logger="prplugin"):
            EDGES.pagerank()
        assert "native for 5 vertices and 7 edges: " in caplog.text
        assert "numpy" in caplog.text


class TestProgress:
    def test_function_is_called_at_every_stage_and_iteration(self):
        states = []
        ranking = prplugin.Graph(EDGES).rank(progress=states.append)
        EDGES.pagerank(progress=states.append)
        first = next(index for index, state in enumerate(states) if state.stage == "vertices")
        assert [state.stage for state in states[first:][:3]] == ["vertices", "edges", "iterations"]
        iterations = [state for state in states[:first] if state.stage == "iterations"]
        assert iterations[0].iterations == 1
        assert all(one.iterations < other.iterations for one, other in pairwise(iterations))
        assert iterations[-1].iterations == ranking.iterations
        assert iterations[-1].error_bound == ranking.error_bound
        assert iterations[-1].expected == ranking.iterations
        # Acceleration takes fewer iterations than the rate of the first ones predicts.
        assert ranking.iterations / 3 < iterations[len(iterations) // 2].expected < 3 * ranking.iterations
        assert all(0 <= one.seconds <= other.seconds for one, other in pairwise(iterations))

    def test_errors_of_the_function_are_passed_on(self):
        def interrupt(state):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            EDGES.pagerank(progress=interrupt)
        assert len(EDGES.pagerank()) == 5

    def test_no_bar_without_a_terminal(self, capfd):
        EDGES.pagerank(progress=True)
        assert capfd.readouterr() == ("", "")


def test_str_of_a_ranking():
    ranking = prplugin.Graph(EDGES).rank()
    text = str(ranking)
    assert text.startswith(f"PageRank of 5 vertices: converged after {ranking.iterations} iterations of native")
    assert ranking.seconds > 0
    assert ranking.frame is ranking.frame


@pytest.mark.parametrize(
    "lengths", [[0], [5], [3] * 1025, [0] * 5000, [10**6] * 3000, [0] * 4000 + [10**7] + [1] * 4000], ids=len
)
@pytest.mark.parametrize("count", [1, 2, 16, 1000])
def test_pieces_of_equal_work_cover_every_row_once(lengths, count):
    offsets = np.cumsum([0, *lengths])
    pieces = equal_work(offsets, count)
    assert len(pieces) <= count
    assert [row for first, last in pieces.tolist() for row in range(first, last)] == list(range(len(lengths)))


def test_auto_chooses_a_method_that_has_the_options():
    assert prplugin.Graph(EDGES).rank(threads=2).method == "native"


def test_rankings_and_errors_can_be_pickled():
    graph = prplugin.Graph(EDGES)
    ranking = pickle.loads(pickle.dumps(graph.rank(top=2)))
    pd.testing.assert_frame_equal(ranking.frame, EDGES.pagerank(top=2))
    with pytest.raises(prplugin.NotConvergedError) as caught:
        graph.rank(max_iter=1)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert error.ranking.ranks.tolist() == caught.value.ranking.ranks.tolist()


def test_without_compiled_kernels_numpy_ranks_with_a_warning(hide_kernels):
    hide_kernels("there is no compiler")
    with pytest.warns(prplugin.PageRankWarning, match="method 'numpy': there is no compiler"):
        assert prplugin.Graph(EDGES).rank().method == "numpy"
