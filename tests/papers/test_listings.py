"""Every listing of the five papers by its method and options, under every stopping rule.

On a GPU one iteration of each is compared with the listing in NumPy; without one, the same functions stand for the
kernels, so that methods, launches and the solver run, and the listings themselves are compared with the papers' examples.
"""

from __future__ import annotations

import io
import re
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fake_gpu import install
from listings import OURS, PAPERS, F

import prplugin
from prplugin.cli import main
from prplugin.errors import InvalidOptionError
from prplugin.gpu import runtime
from prplugin.methods.registry import methods
from prplugin.papers import cpu_split
from prplugin.papers._schedule import Schedule, Segment

ALPHA, N, M = 0.85, 30, 150


class Case(NamedTuple):
    """A listing, and how it is called; `kernels` are those of an iteration."""

    paper: str
    listing: str
    method: str
    kernels: tuple[str, ...]
    form: str = "paper"
    options: Any = MappingProxyType({})  # for the comparison: one thread or warp where a kernel updates scores in place
    undirected: bool = False


ONE_THREAD, ONE_WARP = {"threads": 1, "blocks": 1}, {"threads": 32, "blocks": 1}

CASES = [
    Case("Kim", "Algorithm 3", "node", ("node_centric",)),
    Case("Kim", "Algorithm 3, degrees from ptrArray", "node", ("node_centric",), undirected=True),
    Case("Kim", "Algorithms 1 and 2", "edge", ("initialize", "edge_centric")),
    Case("Kim", "Algorithms 1 and 2 with line 6", "edge", ("initialize", "edge_centric"), undirected=True),
    Case("Kumar", "design 2", "cpu-split", ("fixed_loop", "add_partial_ranks"), options={"split": 3}),
    Case("Kumar", "design 2, all on the GPU", "cpu-split", ("fixed_loop", "add_partial_ranks"), options={"split": "all"}),
    Case("Kumar", "an N per block", "cpu-split", ("fixed_loop", "add_partial_ranks"), options={"split": [0, 5, 2]}),
    Case("Wu", "Algorithms 1 and 4 to 6", "binned", ("spmv",), options={"thresholds": (1, 9)}),
    Case("Wu", "1T1R", "node", ("spmv",), "wu"),
    Case("Wu", "16T1R", "warp", ("spmv",), "wu"),
    Case("Wu", "1W1R", "warp", ("spmv",), "wu", {"lanes": 64}),
    Case("Bowen", "GPU One to One", "node", ("one_to_one",), "bowen", ONE_THREAD),
    Case("Bowen", "GPU Warp Sum", "warp", ("warp_reduce",), options=ONE_WARP),
    Case("Bowen", "GPU Block Sum", "block", ("block_reduce",), options=ONE_WARP),
    Case("Bowen", "heterogeneous", "segmented", ("one_to_one", "warp_reduce"), options={"segments": 2}),
    Case("Bowen", "heterogeneous with CPU", "segmented", ("warp_reduce",), options={"segments": 2, "cpu": True}),
    Case("Swaroop", "Section 5", "dense", ("store_rank", "matmul", "rank_diff")),
]  # fmt: skip


def edges():
    """Return edges with in-degrees from 0 to many, parallel edges, self-loops and dangling vertices."""
    random = np.random.default_rng(1)
    source = random.integers(0, N * 3 // 4, M)
    return pd.DataFrame({"src": source, "dst": (N * random.random(M) ** 3).astype(int)})


def graph_of(case):
    return prplugin.Graph(edges(), vertices=range(N), directed=not case.undirected)


def options_of(case):
    """Return the options of a case; a schedule that is not measured, since only some launches are in order."""
    if case.method != "segmented":
        return {"form": case.form, **case.options}
    warp, node = Segment(method="warp", blocks=1, threads=32, lanes=32), Segment(method="node", blocks=1, threads=1)
    chosen = (warp, Segment(method="host", threads=1)) if "cpu" in case.options else (node, warp)
    schedule = Schedule(n=N, m=M, segments=chosen)
    return {"form": case.form, "schedule": schedule, **case.options}


def iterated(case, count, epsilon=0.0):
    """Return the scores after some iterations of a listing, divided by their sum, by loops over the edges."""
    frame = edges()
    if case.undirected:
        other = frame[frame["src"] != frame["dst"]].rename(columns={"src": "dst", "dst": "src"})
        frame = pd.concat([frame, other])
    source, target = frame["src"].to_numpy(), frame["dst"].to_numpy()
    degree, in_degree = np.bincount(source, minlength=N), np.bincount(target, minlength=N)
    in_place = case.paper == "Bowen"
    order = np.argsort(-in_degree, kind="stable") if case.method == "segmented" else range(N)
    score = np.full(N, 1 / N, F)
    moves = []
    for _ in range(count):
        old, before = (score if in_place else score.copy()), score.copy()
        kept = old[degree == 0].sum() / F(N) if case.paper in ("Wu", "Swaroop") else F(0)  # spread, or dropped
        for v in order:
            total = sum((old[u] / F(degree[u]) for u in source[target == v]), F(0))
            new = F(1 - ALPHA) / F(N) + F(ALPHA) * (total + kept)
            if not in_place or abs(new - score[v]) > epsilon:
                score[v] = new
        moves.append(abs(score - before))
    return score / score.sum(), moves


@pytest.fixture
def gpu(monkeypatch):
    """Return the launches of kernels, on the GPU that there is or on one of NumPy."""
    if runtime.unavailable_reason():
        return install(monkeypatch, {**OURS, **PAPERS})
    return None


every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.paper}, {case.listing}")


def test_every_form_is_in_the_table():
    declared = {(name, form) for name, method in methods().items() for form in getattr(method, "forms", ())}
    assert declared == {(case.method, case.form) for case in CASES}
    assert len({case.paper for case in CASES}) == 5


@pytest.mark.parametrize("method", sorted({case.method for case in CASES}))
def test_the_command_line_lists_forms_with_their_papers_and_values(method):
    shown = CliRunner().invoke(main, ["methods", "--method", method]).output
    for form, of in methods()[method].forms.items():
        assert repr(form) in shown
        assert of.listing.split()[0] in shown
        assert all(f"{name}={value!r}" in " ".join(shown.split()) for name, value in of.values.items())


@every_case
def test_an_iteration_is_that_of_the_listing(case, gpu):
    graph = graph_of(case)
    for count in (1, 3):
        ranking = graph.rank(method=case.method, tol=0, max_iter=count, **options_of(case))
        expected, _ = iterated(case, count)
        np.testing.assert_allclose(ranking.ranks, expected, rtol=2e-5)
        exact = graph.rank(method="numpy", tol=1e-12).ranks
        assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound + 1e-12
        assert ranking.iterations == count
    shown = io.StringIO()
    ranking.explain(shown)
    assert "3 passes by the paper's kernels in float32, 1 exact pass in float64" in shown.getvalue()
    if gpu is not None:
        ran = {name for _, name, *_ in gpu} & set(PAPERS)
        assert ran == set(case.kernels)


RULES = [("delta", 1e-4), ("vertex", 1e-5), ("networkx", 1e-6), ("error", 1e-5)]


@every_case
@pytest.mark.parametrize(("stop", "tol"), RULES)
def test_every_rule_counts_the_iterations_of_the_paper(case, stop, tol, gpu):
    graph = graph_of(case)
    ranking = graph.rank(method=case.method, stop=stop, tol=tol, **options_of(case))
    assert ranking.converged
    exact = graph.rank(method="numpy", tol=1e-12).ranks
    assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound + 1e-12
    shown = io.StringIO()
    ranking.explain(shown)
    if stop == "error":
        assert "by the paper's kernels in float32" in shown.getvalue()
        assert not re.search(r"\b0 passes by", shown.getvalue())
        return
    assert f"{ranking.iterations} passes by the paper's kernels in float32, 1 exact pass" in shown.getvalue()
    expected, moves = iterated(case, ranking.iterations, tol if stop == "vertex" else 0.0)
    np.testing.assert_allclose(ranking.ranks, expected, rtol=1e-4)
    measured = [each.max() if stop == "vertex" else each.sum() for each in moves]
    threshold = N * tol if stop == "networkx" else tol
    assert measured[-1] <= 1.01 * threshold
    assert all(each > 0.99 * threshold for each in measured[:-1])


LAUNCHES = {
    ("node", "paper"): (1000, 1000), ("edge", "paper"): (1000, 1000), ("node", "bowen"): (256, 1024),
    ("warp", "paper"): (256, 1024), ("block", "paper"): (256, 1024), ("dense", "paper"): (-(-N // 32), 32),
    ("node", "wu"): (1, 64), ("warp", "wu"): (-(-N * 16 // 64), 64), ("cpu-split", "paper"): (1, 256),
}  # fmt: skip
"""Blocks and threads per block that each paper states, or that its listing needs for N vertices."""


@pytest.mark.parametrize(("method", "form"), LAUNCHES)
def test_the_launch_of_the_paper_is_the_default_of_its_form(method, form, monkeypatch):
    launched = install(monkeypatch, {**OURS, **PAPERS})
    graph = prplugin.Graph(edges(), vertices=range(N))
    split = {"split": 2} if method == "cpu-split" else {}
    graph.rank(method=method, form=form, tol=0, max_iter=1, **split)
    assert {(blocks, threads) for _, name, blocks, threads, _ in launched if name in PAPERS} == {LAUNCHES[method, form]}


@pytest.mark.parametrize("cpu", [False, True])
def test_the_scheduler_measures_the_launches_of_the_paper(cpu, monkeypatch):
    launched = install(monkeypatch, {**OURS, **PAPERS})
    graph = prplugin.Graph(edges(), vertices=range(N))
    assert graph.rank(method="segmented", form="paper", segments=3, cpu=cpu).converged
    grids = {(blocks, threads) for _, name, blocks, threads, _ in launched if name == "block_reduce"}
    assert {(512, 512), (4096, 64), (256, 1024)} <= grids
    assert {(256, 1024)} == {(blocks, threads) for _, name, blocks, threads, _ in launched if name == "one_to_one"}


@pytest.mark.parametrize("method", sorted({case.method for case in CASES}))
def test_what_the_papers_do_not_have_is_refused(method, gpu):
    graph = prplugin.Graph(edges())
    with pytest.raises(InvalidOptionError, match=r"form must be 'paper'.* or None, not 'papers'"):
        graph.rank(method=method, form="papers")
    with pytest.raises(InvalidOptionError, match="leave out personalization="):
        graph.rank(method=method, form="paper", personalization={0: 1.0})
    weighted = prplugin.Graph(edges().assign(w=1.5), weight="w")
    if method in ("binned", "dense"):
        assert weighted.rank(method=method, form="paper").converged
    else:
        with pytest.raises(InvalidOptionError, match="leave out weight="):
            weighted.rank(method=method, form="paper")


@pytest.mark.parametrize(
    ("method", "options", "match"),
    [
        ("warp", {"form": "paper", "lanes": 16}, "form='paper' has 32 lanes, not 16"),
        ("warp", {"form": "wu", "lanes": 32}, "form='wu' has 16 or 64 lanes, not 32"),
        ("node", {"form": "wu", "threads": 128}, "groups of 64 threads"),
        ("warp", {"form": "wu", "blocks": 2}, "no thread takes a second row"),
        ("cpu-split", {"form": "paper", "threads": 2}, "one host thread"),
        ("cpu-split", {"form": "paper", "by_degree": True}, "in their own order"),
        ("cpu-split", {"form": "paper", "block_threads": 2048}, "block_threads must be"),
    ],
)
def test_options_that_a_paper_does_not_have_are_refused(method, options, match, gpu):
    with pytest.raises(InvalidOptionError, match=match):
        prplugin.Graph(edges()).rank(method=method, **options)


def test_weights_in_the_forms_that_store_values(gpu):
    random = np.random.default_rng(2)
    graph = prplugin.Graph(edges().assign(w=random.random(M)), weight="w")
    exact = graph.rank(method="numpy", tol=1e-12).ranks
    for method, form in (("binned", "paper"), ("dense", "paper"), ("node", "wu"), ("warp", "wu")):
        ranking = graph.rank(method=method, form=form, stop="delta", tol=1e-6)
        assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound + 1e-12 < 1e-4


# --- the listings and the papers' examples ------------------------------------------------------------------------


def test_example_of_kim():
    """Compare node 0 of Figure 1, whose neighbours have 1, 2, 3 and 3 edges, after one iteration."""
    ptr, adj = np.array([0, 4] + [4] * 9), np.array([1, 2, 3, 4])
    degrees = np.array([4, 1, 2, 3, 3, 1, 1, 1, 1, 1], np.int32)
    old, new = np.full(10, 0.1, F), np.empty(10, F)
    PAPERS["node_centric"](1, 1, {"UNDIRECTED": 0}, 10, F(0.85), ptr, adj, degrees, old, new)
    assert new[0] == pytest.approx(0.199, abs=5e-4)
    pairs = np.array([[1, 0], [2, 0], [3, 0], [4, 0]], np.int32)
    edge = np.full(10, F(0.15 / 10))
    PAPERS["edge_centric"](1, 1, {"UNDIRECTED": 0}, 4, F(0.85), degrees, pairs, old, edge)
    np.testing.assert_allclose(edge, new, rtol=1e-6)


def test_example_of_kumar():
    """Split Figure 4 at N = 4: node 4 has sources 2, 5, 6, 7 on the GPU, and 8, 9, 12 on the host."""
    rows = {
        1: [6, 7], 2: [2, 4, 9], 3: [1], 4: [2, 5, 6, 7, 8, 9, 12], 5: [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 16],
        6: [6, 9, 12], 7: [1, 4, 7, 9, 11], 8: [2, 5, 6, 8, 11, 12], 9: [3, 7, 9, 11, 12],
    }  # fmt: skip
    offsets = np.append(0, np.cumsum([len(row) for row in rows.values()] + [0] * 8))
    sources = np.concatenate(list(rows.values())).astype(np.int32)
    ranks, ones = (2.0 ** np.arange(17)).astype(F), np.ones(17, np.int32)
    heads, limits, tails = np.empty(17, F), np.array([4]), np.empty(17, F)
    PAPERS["fixed_loop"](1, 1, {}, 17, 17, limits, offsets, sources, ones, ranks, heads)
    cpu_split.divided_tails(limits, offsets, sources, ones, ranks, tails)
    assert heads[3] == sum(2.0**each for each in (2, 5, 6, 7))
    assert tails[3] == sum(2.0**each for each in (8, 9, 12))
    assert [row + 1 for row in np.flatnonzero(tails)] == [4, 5, 7, 8, 9]
    np.testing.assert_array_equal((heads + tails)[:9], [sum(2.0**each for each in row) for row in rows.values()])


def test_example_of_swaroop(gpu):
    """Compare the matrix of Section 3, whose fourth column is 1/6 and whose others are 1 / N_j."""
    from prplugin.papers.dense import google_matrix

    links = [(2, 1), (1, 2), (2, 3), (5, 3), (6, 3), (1, 4), (5, 4), (1, 5), (2, 5), (6, 5), (3, 6), (5, 6)]
    graph = prplugin.Graph(pd.DataFrame(links, columns=["src", "dst"]), vertices=range(1, 7))
    found = google_matrix(graph._graph.adjacency.on("device"), 1.0).get()
    third, sixth = 1 / 3, 1 / 6
    expected = [
        [0, third, 0, sixth, 0, 0], [third, 0, 0, sixth, 0, 0], [0, third, 0, sixth, third, 0.5],
        [third, 0, 0, sixth, third, 0], [third, third, 0, sixth, 0, 0.5], [0, 0, 1, sixth, third, 0],
    ]  # fmt: skip
    order = np.asarray(graph.vertices) - 1
    np.testing.assert_allclose(found, np.array(expected)[np.ix_(order, order)], rtol=1e-6)
    ranks, last = np.full(6, 1 / 6, F), np.empty(6, F)
    PAPERS["store_rank"](1, 32, {}, 6, ranks, last)
    PAPERS["matmul"](1, 32, {}, 6, np.array(expected, F), ranks, last)
    np.testing.assert_allclose(ranks, np.sum(expected, axis=1) / 6, rtol=1e-6)
    PAPERS["rank_diff"](1, 32, {}, 6, ranks, last)
    np.testing.assert_allclose(last, abs(ranks - F(1 / 6)), rtol=1e-6)


def test_bins_of_wu_cover_every_row_once():
    values, columns = np.ones(6, F), np.arange(6, dtype=np.int32)
    ranks, sums = (2.0 ** np.arange(6)).astype(F), np.zeros(3, F)
    rows = np.array([[4, 2, 1], [0, 4, 2], [4, 0, 0]])  # begin, size and index
    for lanes, first, last in ((1, 0, 1), (16, 1, 2), (64, 2, 3)):
        PAPERS["spmv"](last, 64, {"LANES": lanes, "BINNED": 1}, first, last, None, rows, values, columns, ranks, sums)
    assert sums.tolist() == [0, 16 + 32, 1 + 2 + 4 + 8]


def test_update_rule_of_bowen_keeps_small_moves_and_reads_new_scores():
    index, neighbors = np.array([0, 1, 2, 3]), np.array([[1, 0], [0, 0], [1, 0]], np.int32)
    score, updated = np.array([0.4, 0.3, 0.3], F), np.zeros(1, np.int32)
    arguments = index, neighbors, np.array([1, 2, 1]), np.int32(0), np.int32(3), np.int32(3), F(0.85)
    PAPERS["one_to_one"](1, 1, {}, *arguments, F(0.1), score, updated)
    first = 0.05 + 0.85 * 0.3 / 2
    second = 0.05 + 0.85 * first  # of the new score of vertex 0: a move of 0.0991, which is kept out
    assert abs(second - 0.3) <= 0.1 < abs(0.1775 - 0.3)
    np.testing.assert_allclose(score, [first, 0.3, 0.05 + 0.85 * 0.3 / 2], rtol=1e-6)
    assert updated[0] == 2
