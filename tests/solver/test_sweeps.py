"""Gauss-Seidel sweeps between plain steps: accuracy, reproducibility, recovery from a wrong result."""

from __future__ import annotations

import threading
import time

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.cpu.threads import Threads
from prplugin.methods.engines import numba_pull as method
from prplugin.methods.engines import sweeps
from prplugin.methods.engines.sweeps import Sweeps


@pytest.fixture(autouse=True)
def always_sweep(monkeypatch):
    monkeypatch.setattr(method, "least_steps_for_sweeps", lambda adjacency: 0.0)
    monkeypatch.setattr(method, "STREAMS", 1 << 20)  # also on a machine with many cores


def edges_of(n=900, m=4000, seed=0):
    """Return edges with self-loops, parallel edges, dangling vertices, a hub and targets close to their sources."""
    random = np.random.default_rng(seed)
    source, target = random.integers(0, n * 3 // 4, m), random.integers(0, n, m)
    target[: m // 4] = np.minimum(source[: m // 4] + random.integers(0, 3, m // 4), n - 1)
    target[m // 4 : m // 3] = 0
    return pd.DataFrame({"src": source, "dst": target, "w": random.random(m)})


@pytest.mark.parametrize("n", [2, 3, 63, 64, 65, 900])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("vectors", [False, True])
def test_sweeps_agree_with_plain_steps(n, weight, vectors):
    edges = edges_of(n)
    random = np.random.default_rng(1)
    v, w = (dict(enumerate(random.dirichlet(np.ones(n)).tolist())) if vectors else None for _ in range(2))
    graph = prplugin.Graph(edges, weight=weight, vertices=range(n))
    given = {"alpha": 0.9, "personalization": v, "dangling": w, "tol": 1e-10}
    ranking, plain = graph.rank(method="numba", **given), graph.rank(method="numpy", **given)
    assert np.abs(ranking.ranks - plain.ranks).sum() <= ranking.error_bound + plain.error_bound <= 2e-10
    assert ranking.iterations <= plain.iterations + 5


@pytest.mark.parametrize("seed", range(60))
def test_small_graphs_agree_with_plain_steps(seed):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 9)), int(random.integers(1, 20))
    edges = pd.DataFrame({"src": random.integers(0, n, m), "dst": random.integers(0, n, m)})
    graph = prplugin.Graph(edges, vertices=range(n))
    alpha, tol = float(random.choice([0.0, 1e-17, 0.5, 0.85, 0.99, 0.999])), float(random.choice([1e-3, 1e-6, 1e-10]))
    plain = graph.rank(method="numpy", alpha=alpha, tol=tol)
    ranking = graph.rank(method="numba", alpha=alpha, tol=tol)
    assert ranking.error_bound <= tol or ranking.ranks.dtype == np.float32
    assert np.abs(ranking.ranks - plain.ranks).sum() <= ranking.error_bound + plain.error_bound


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("weight", [None, "w"])
def test_bits_do_not_depend_on_thread_count(threads, weight):
    edges = edges_of(5000, 40_000)
    one = prplugin.Graph(edges, weight=weight).rank(method="numba", threads=1, tol=1e-11)
    several = prplugin.Graph(edges, weight=weight).rank(method="numba", threads=threads, tol=1e-11)
    assert one.ranks.tobytes() == several.ranks.tobytes()
    assert one.iterations == several.iterations


def test_layout_is_built_once_per_graph():
    graph = prplugin.Graph(edges_of())
    first = graph.rank(method="numba", tol=1e-10)
    layout = sweeps._layouts[graph._graph.adjacency]
    again = graph.rank(method="numba", tol=1e-10)
    assert sweeps._layouts[graph._graph.adjacency] is layout
    assert again.ranks.tobytes() == first.ranks.tobytes()
    del graph, layout


@pytest.mark.parametrize("wrong", ["no change", "noise", "nan"])
def test_wrong_sweep_result_is_corrected(monkeypatch, wrong):
    def solve(self, ranks, moves, dangling, goal, limit, buffer):
        random = np.random.default_rng(0).random(moves.size)
        ranks += {"no change": 0 * moves, "noise": random, "nan": np.nan * moves}[wrong]
        return 0.0, 1

    graph = prplugin.Graph(edges_of())
    expected = graph.rank(method="numba", tol=1e-10)
    monkeypatch.setattr(Sweeps, "solve", solve)
    ranking = graph.rank(method="numba", tol=1e-10)
    assert ranking.converged
    assert ranking.error_bound <= 1e-10
    assert np.abs(ranking.ranks - expected.ranks).sum() <= 2e-10


@pytest.mark.parametrize("budget", range(1, 9))
def test_max_iter_counts_every_iteration(budget):
    graph = prplugin.Graph(edges_of())
    with pytest.raises(prplugin.NotConvergedError) as caught:
        graph.rank(method="numba", tol=1e-12, max_iter=budget)
    assert caught.value.ranking.iterations == budget


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_piece_starts_only_after_lagged_pieces_are_done(threads):
    done, lock = set(), threading.Lock()

    def do(first):
        with lock:
            assert set(range(first - 3 + 1)) <= done
        time.sleep(0.001 * (first % 3))
        with lock:
            done.add(first)

    Threads(threads).for_each_in_order([(piece,) for piece in range(20)], do, lag=3)
    assert done == set(range(20))


def test_failing_piece_releases_waiting_threads():
    def do(first):
        if first == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Threads(3).for_each_in_order([(piece,) for piece in range(20)], do, lag=2)
