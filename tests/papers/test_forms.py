"""Kernels of Kim, Wu and Bowen in the papers' form, compared with NumPy; their proofs and errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from method_params import param

import prplugin
from benchmarks.papers import in_place
from prplugin.errors import InvalidOptionError
from prplugin.graph.edges import Edges, Problem
from prplugin.machine import this_machine
from prplugin.methods.registry import methods
from prplugin.papers import _forms
from prplugin.papers._forms import EdgeCentric, InPlace, NodeCentric, PowerMethod, Spmv
from prplugin.papers.binned import BinnedPull
from prplugin.papers.segmented import PAPER_CANDIDATES, Schedule, Segment
from prplugin.types.edges import Coo, Csc

ALPHA = 0.85
N, M = 3000, 40_000


def on_a_gpu(test):
    for mark in param("node").marks:
        test = mark(test)
    return test


def skewed(seed=1):
    """Return edges with in-degrees from 0 to thousands, parallel edges, self-loops and dangling vertices."""
    random = np.random.default_rng(seed)
    source = random.integers(0, N * 3 // 4, M).astype(np.int32)
    return source, (N * random.random(M) ** 4).astype(np.int32)


def undirected():
    """Return one row per undirected edge, and both directions of each; a self-loop has one."""
    source, target = skewed(2)
    other = source != target
    both = np.append(source, target[other]), np.append(target, source[other])
    return np.stack((source, target), axis=1), both


def graph_of(source, target):
    return Edges(Coo(source, target, None, N))


def power(source, target, count, *, spread):
    """Iterate in float64 from uniform ranks; the dangling mass is spread or dropped."""
    out = np.bincount(source, minlength=N)
    x = np.full(N, 1 / N)
    for _ in range(count):
        y = ALPHA * np.bincount(target, x[source] / out[source], N)
        x = y + (x.sum() - y.sum() if spread else 1 - ALPHA) / N
    return x


def iterated(form, count):
    form.load(1 / N, N)
    for _ in range(count):
        form()
    return form.in_order().get()


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=2e-4)  # rows of thousands of edges, one after another


LAUNCHES = [{"blocks": 1000, "threads": 1000}, {"blocks": 3, "threads": 32}]


@on_a_gpu
@pytest.mark.parametrize("launch", LAUNCHES)
def test_kernels_of_kim(launch):
    import cupy

    source, target = skewed()
    there = graph_of(source, target).on("device")
    degrees = cupy.asarray(np.bincount(source, minlength=N).astype(np.int32))
    expected = power(source, target, 3, spread=False)
    offsets, sources, _ = there.get(Csc)
    close(iterated(NodeCentric(offsets, sources, degrees, ALPHA, **launch), 3), expected)
    pairs = cupy.asarray(np.stack((source, target), axis=1))
    close(iterated(EdgeCentric(pairs, degrees, ALPHA, **launch), 3), expected)


@on_a_gpu
@pytest.mark.parametrize("launch", LAUNCHES)
def test_kernels_of_kim_on_an_undirected_graph(launch):
    import cupy

    pairs, both = undirected()
    expected = power(*both, 3, spread=False)
    offsets, sources, _ = graph_of(*both).on("device").get(Csc)
    close(iterated(NodeCentric(offsets, sources, None, ALPHA, **launch), 3), expected)
    degrees = cupy.asarray(np.bincount(both[0], minlength=N).astype(np.int32))
    close(iterated(EdgeCentric(cupy.asarray(pairs), degrees, ALPHA, undirected=True, **launch), 3), expected)


def spmv_of(adjacency, lanes=None, thresholds=None):
    if lanes is not None:
        return Spmv(adjacency, lanes)
    plan = BinnedPull(adjacency, thresholds)
    return Spmv(adjacency, bins=(plan.layout, plan.sizes))


@on_a_gpu
@pytest.mark.parametrize(
    "which",
    [
        *({"lanes": lanes} for lanes in (1, 16, 64)),
        *({"thresholds": pair} for pair in ((6, 96), (0, 0), (0, M), (M, M), (2, 40))),
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_products_and_power_method_of_wu(which, weighted):
    import cupy

    source, target = skewed()
    weights = np.random.default_rng(3).exponential(size=M) if weighted else np.ones(M)
    there = Edges(Coo(source, target, weights if weighted else None, N)).on("device")
    spmv = spmv_of(there, **which)
    ranks = np.random.default_rng(4).random(N).astype(np.float32)
    values = weights / np.bincount(source, weights, N)[source]
    sums = cupy.full(N, np.nan, np.float32)
    spmv(cupy.asarray(ranks), sums)
    expected = np.bincount(target, values * ranks[source], N)
    np.testing.assert_allclose(sums.get(), expected, rtol=2e-4, atol=1e-6)
    if not weighted:
        close(iterated(PowerMethod(spmv, ALPHA), 3), power(source, target, 3, spread=True))


WHOLE = {
    "one thread": ("node", 1, 1),
    "one warp": ("warp", 1, 32),
    "a block of one warp": ("block", 1, 32),
    "one-to-one 256 1024": ("node", 256, 1024),
    "warp-min 256 1024": ("warp", 256, 1024),
    "block-min 512 512": ("block", 512, 512),
    "block-min 4096 64": ("block", 4096, 64),
    "block-min 7 1024": ("block", 7, 1024),
}


@on_a_gpu
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("cuts", [(), (N // 30, N // 2)], ids=["one segment", "three segments"])
def test_update_rule_of_bowen(name, cuts):
    graph = in_place.graph_of_the_paper(graph_of(*skewed()))
    method, blocks, threads = WHOLE[name]
    bounds = (0, *cuts, N)
    lanes = 32 if method == "warp" else None
    segment = Segment(method=method, blocks=blocks, threads=threads, lanes=lanes)
    spans = list(pairwise(bounds))
    offsets, sources, _ = graph.on("device").get(Csc)
    degrees = _forms.out_degrees(graph.on("device"), np.int64)
    form = InPlace(offsets, sources, degrees, ALPHA, [segment] * len(spans), spans)
    epsilon = 1e-7

    def rounds():
        form.load(1 / N, N)
        form.epsilon = epsilon
        count = 1
        while form() and count < in_place.MOST:
            count += 1
        return count, form.scores.get()

    count, scores = rounds()
    expected_count, expected = in_place.scores(graph, epsilon)
    if blocks * threads <= 32:  # vertices one after another, as on one CPU thread
        assert abs(count - expected_count) <= 1
        # A move of about epsilon may be kept in one of them.
        assert np.abs(scores - expected).sum() < 100 * epsilon
    else:
        assert count < in_place.MOST
        # Kept scores may be off by epsilon / (1 - alpha) on average.
        assert np.abs(scores - expected).sum() < 2 * N * epsilon / (1 - ALPHA)
    form.load(1 / N, N)
    form.epsilon = np.inf
    assert form() == 0
    assert (form.scores == np.float32(1 / N)).all()


@on_a_gpu
def test_every_vertex_is_updated_once_in_a_round_of_bowen():
    graph = in_place.graph_of_the_paper(graph_of(*skewed())).on("device")
    for method, blocks, threads in WHOLE.values():
        form = _forms.whole_graph(graph, ALPHA, method, blocks, threads)
        form.load(0.5, N)  # no score stays
        form.epsilon = 1e-9
        assert form() == N


FORMS = {
    "node": {"blocks": 1000, "threads": 1000},
    "edge": {"blocks": 1000, "threads": 1000},
    "warp": {"blocks": 256, "threads": 1024},
    "block": {"blocks": 512, "threads": 512},
    "binned": {},
    "segmented": {"segments": 5},
}


@on_a_gpu
@pytest.mark.parametrize("tol", [1e-6, 1e-9])
@pytest.mark.parametrize("method", FORMS)
def test_ranks_by_the_paper_form_are_proved(method, tol):
    source, target = skewed()
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target}), vertices=range(N))
    exact = graph.rank(method="numpy", tol=1e-11)
    ranking = graph.rank(method=method, form="paper", tol=tol, **FORMS[method])
    assert ranking.converged
    assert (
        np.abs(np.asarray(ranking.ranks) - np.asarray(exact.ranks)).sum() <= ranking.error_bound + 1e-11 <= tol + 1e-11
    )


@on_a_gpu
@pytest.mark.parametrize("method", FORMS)
def test_the_paper_form_advances(method):
    source, target = skewed()
    problem = Problem(graph_of(source, target), ALPHA)
    step = methods()[method].prepare(problem, this_machine(), form="paper", **FORMS[method])
    step.start(1 / N)
    passes, _ = step.advance(1e-5, 50)
    assert 5 < passes < 50
    x = power(source, target, 200, spread=True)
    assert np.abs(step.ranks().get() - x).sum() < 5e-4
    assert step.advance(1e-5, 50) == (0, None)  # float32 gets no closer
    step.start(1 / N)
    assert step.advance(-1.0, 4)[0] == 3
    assert step.advance(-1.0, 1) == (0, None)  # the pass left is that of the proof


@on_a_gpu
def test_a_schedule_of_other_lanes_is_refused():
    source, target = skewed()
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target}))
    n, m = graph.number_of_vertices, graph.number_of_edges
    schedule = Schedule(n=n, m=m, segments=(Segment(method="warp", threads=64, lanes=8),))
    with pytest.raises(InvalidOptionError, match="has 32 lanes, and a segment of the schedule 8"):
        graph.rank(method="segmented", segments=1, schedule=schedule, form="paper")


@on_a_gpu
def test_measured_schedule_has_the_launches_of_the_paper(tmp_path):
    source, target = skewed()
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target}))
    path = tmp_path / "schedule.json"
    first = graph.rank(method="segmented", segments=4, form="paper", save=path)
    launches = {(each.method, each.blocks, each.threads) for each in PAPER_CANDIDATES}
    assert {(each.method, each.blocks, each.threads) for each in Schedule.load(path).segments} <= launches
    again = graph.rank(method="segmented", segments=4, form="paper", schedule=path)
    assert np.abs(np.asarray(first.ranks) - np.asarray(again.ranks)).sum() <= first.error_bound + again.error_bound


def test_candidates_are_the_launches_of_the_paper():
    launches = {(each.method, each.blocks, each.threads) for each in PAPER_CANDIDATES}
    assert {("block", 512, 512), ("block", 4096, 64), ("warp", 256, 1024), ("node", 256, 1024)} <= launches


@on_a_gpu
@pytest.mark.parametrize("threads", [8, 16])
def test_dense_takes_blocks_smaller_than_a_warp(threads):
    source, target = skewed()
    for weight in (None, "w"):
        graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target, "w": 0.5 + source % 7}), weight=weight)
        expected, found = (graph.rank(method="dense", threads=count, tol=1e-9) for count in (32, threads))
        difference = np.abs(np.asarray(found.ranks) - np.asarray(expected.ranks)).sum()
        assert difference <= found.error_bound + expected.error_bound
    with pytest.raises(InvalidOptionError, match="multiple of 32"):
        graph.rank(method="dense", threads=24)


@on_a_gpu
def test_heads_have_the_same_bits_with_any_threads_per_block():
    source, target = skewed()
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target}))
    ranks = [
        np.asarray(graph.rank(method="cpu-split", split=8, block_threads=count).ranks) for count in (64, 256, 1000)
    ]
    assert all((each == ranks[0]).all() for each in ranks)
