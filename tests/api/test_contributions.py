"""`Ranking.contributions`: the terms of the equation of one rank, compared with a dense computation."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import prplugin

ALPHA = 0.8
IDS = [f"page {i}" for i in range(12)]
RANDOM = np.random.default_rng(7)
EDGES = pd.DataFrame({
    "src": RANDOM.choice(IDS[:9], 60), "dst": RANDOM.choice(IDS, 60), "weight": RANDOM.integers(1, 9, 60) / 4,
})  # fmt: skip


def transition(graph):
    """Return the dense matrix of w / W, parallel edges summed, without the rows of dangling vertices."""
    n, csr = graph.number_of_vertices, graph.csr()
    matrix = np.zeros((n, n))
    weights = np.ones(csr.indices.size) if csr.weights is None else csr.weights
    np.add.at(matrix, (np.repeat(np.arange(n), np.diff(csr.offsets)), csr.indices), weights)
    sums = matrix.sum(axis=1, keepdims=True)
    return np.divide(matrix, sums, out=matrix, where=sums > 0)


def check(graph, ranking, v=None, w=None, scale=1.0):
    """Compare the contributions to every rank with those of the dense matrix."""
    n, ids = graph.number_of_vertices, list(graph.vertices)
    matrix, ranks = transition(graph), np.asarray(ranking.ranks, float)
    v = np.full(n, 1 / n) if v is None else v
    w = v if w is None else w
    for i, vertex in enumerate(ids):
        frame = ranking.contributions(vertex)
        found = {(row[0], row[1]): row[2:] for row in zip(*(list(frame[name]) for name in frame.columns), strict=True)}
        assert list(frame.columns) == ["vertex", "kind", "pagerank", "share", "contribution"]
        assert (np.diff(np.asarray(frame["contribution"])) <= 0).all()
        dangling = ranks[matrix.sum(axis=1) == 0].sum()
        expected = {(ids[j], "edge"): (ranks[j], ALPHA * matrix[j, i]) for j in np.flatnonzero(matrix[:, i])}
        expected[vertex, "dangling"] = dangling, ALPHA * w[i]
        expected[vertex, "teleport"] = ranks.sum(), (1 - ALPHA) * v[i]
        assert found.keys() == expected.keys()
        for key, (rank, share) in expected.items():
            np.testing.assert_allclose(found[key], (rank, share, rank * share), rtol=1e-12, atol=1e-300)
        assert abs(frame["contribution"].sum() - ranks[i]) <= ranking.error_bound * scale


@pytest.mark.parametrize("how", [{}, {"weight": "weight"}, {"weight": "weight", "directed": False}], ids=str)
def test_contributions_are_the_terms_of_the_equation(how):
    graph = prplugin.Graph(EDGES, **how)
    check(graph, graph.rank(alpha=ALPHA))
    check(graph, graph.rank(alpha=ALPHA, scale="n", dtype="float32", tol=1e-4), scale=graph.number_of_vertices)


def test_given_teleport_and_dangling_distributions():
    graph = prplugin.Graph(EDGES)
    v, w = (np.array([given.get(vertex, 0.0) for vertex in graph.vertices]) for given in ({IDS[1]: 0.25, IDS[3]: 0.75}, {IDS[5]: 1.0}))  # fmt: skip
    personalization = {IDS[1]: 1.0, IDS[3]: 3.0}
    check(graph, graph.rank(alpha=ALPHA, personalization=personalization), v)
    check(graph, graph.rank(alpha=ALPHA, personalization=personalization, dangling=[IDS[5]]), v, w)
    check(graph, graph.rank(alpha=ALPHA, personalization=personalization, top=2, among=IDS[:4]), v)


def test_on_packed_saved_and_csr_graphs(tmp_path):
    integers = pd.DataFrame({"src": RANDOM.integers(0, 50, 9000), "dst": RANDOM.integers(0, 40, 9000) ** 2 // 40})
    plain = prplugin.Graph(integers)
    plain.save(tmp_path / "plain")
    plain.save(tmp_path / "packed", packed=True)
    for graph in (
        prplugin.Graph.load(tmp_path / "plain"),
        prplugin.Graph.load(tmp_path / "packed"),
        prplugin.Graph.from_csr(*plain.csr()),
    ):
        ranking = graph.rank(alpha=ALPHA)
        for vertex in range(graph.number_of_vertices):
            assert abs(ranking.contributions(vertex)["contribution"].sum() - ranking[vertex]) <= ranking.error_bound
        check(graph, ranking)  # last, since it unpacks the edges


def test_edges_in_several_packed_pieces():
    sources = np.concatenate([np.arange(1, 6001), np.arange(1, 50)])
    edges = pd.DataFrame({"src": sources, "dst": np.r_[np.zeros(6000, int), np.full(49, 6001)]})
    ranking = prplugin.Graph(edges).rank(tol=1e-9)
    plain = ranking.contributions(0), ranking.contributions(6001), ranking.contributions(3)
    graph = prplugin.Graph(edges)
    graph._graph = graph._graph.packed()
    packed = graph.rank(tol=1e-9)
    for vertex, expected in zip((0, 6001, 3), plain, strict=True):
        found = packed.contributions(vertex)
        assert set(found["vertex"]) == set(expected["vertex"])
        assert len(found) == len(expected)
        assert abs(found["contribution"].sum() - packed[vertex]) <= packed.error_bound


def test_by_seed():
    graph = prplugin.Graph(EDGES, weight="weight")
    rankings = graph.rank(alpha=ALPHA, seeds=IDS[:3])
    frame = rankings.contributions(IDS[4])
    for seed, ranks in zip(IDS[:3], rankings.ranks, strict=True):
        part = frame[frame["seed"] == seed]
        at = list(graph.vertices).index(IDS[4])
        assert abs(part["contribution"].sum() - ranks[at]) <= rankings.error_bound
        assert part["contribution"].is_monotonic_decreasing
        teleport = graph.rank(alpha=ALPHA, personalization=[seed]).contributions(IDS[4]).set_index("kind")["share"]
        assert float(part.set_index("kind")["share"]["teleport"]) == teleport["teleport"]
    assert len(rankings.contributions(IDS[4], top=2)) == 6
    with pytest.raises(prplugin.PageRankError, match="without top="):
        graph.rank(seeds=IDS[:3], top=2).contributions(IDS[4])


def test_frames_of_the_library_and_vertices_of_several_columns():
    graph = prplugin.Graph(pl.from_pandas(EDGES))
    frame = graph.rank(alpha=ALPHA).contributions(IDS[0], top=3)
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 3
    check(graph, graph.rank(alpha=ALPHA))
    several = EDGES.assign(a=1, b=1)
    graph = prplugin.Graph(several, ["src", "a"], ["dst", "b"])
    frame = graph.rank().contributions((IDS[0], 1))
    assert list(frame.columns) == ["src", "a", "kind", "pagerank", "share", "contribution"]


def test_after_an_update_and_without_the_graph():
    graph = prplugin.Graph(EDGES)
    ranking = graph.rank(alpha=ALPHA)
    for without in (pickle.loads(pickle.dumps(ranking)), copy.copy(ranking)):
        with pytest.raises(prplugin.PageRankError, match=r"prplugin.Graph\(edges\).rank\(\).contributions"):
            without.contributions(IDS[0])
    graph.update(add=EDGES[:3])
    with pytest.raises(prplugin.PageRankError, match="rank it again"):
        ranking.contributions(IDS[0])
    check(graph, graph.rank(alpha=ALPHA))
    with pytest.raises(prplugin.NotConvergedError) as caught:
        prplugin.pagerank(EDGES, max_iter=1, tol=1e-9)
    with pytest.raises(prplugin.PageRankError, match="Keep a graph"):
        caught.value.ranking.contributions(IDS[0])


def test_unknown_vertices_and_options():
    ranking = prplugin.Graph(EDGES).rank()
    with pytest.raises(KeyError, match="'page 99' is not among the 12 vertices of this graph, which are like 'page"):
        ranking.contributions("page 99")
    with pytest.raises(prplugin.InvalidOptionError, match="top"):
        ranking.contributions(IDS[0], top=0)
    with pytest.raises(prplugin.InvalidOptionError, match="string"):
        ranking.contributions(5)


def test_the_command_line(tmp_path):
    from click.testing import CliRunner

    from prplugin.cli import main

    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    found = CliRunner().invoke(main, ["rank", str(tmp_path / "edges.csv"), "--top", "2", "--why", IDS[0]])
    assert found.exit_code == 0, found.output
    assert "contribution" in found.output
    wrong = CliRunner().invoke(main, ["rank", str(tmp_path / "edges.csv"), "--why", "nobody"])
    assert wrong.exit_code == 1
    assert "'nobody' is not among" in wrong.output
    by_seed = CliRunner().invoke(main, ["rank", str(tmp_path / "edges.csv"), "--seeds", IDS[0], "--why", IDS[0]])
    assert by_seed.exit_code == 2
