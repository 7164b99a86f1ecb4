"""Property tests: the error bound covers the true error, computed in rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from drawn_graphs import alphas, frame, graphs, vectors
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from method_params import GPU_METHODS, METHODS, examples
from rational_pagerank import distance, solve

import prplugin


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data(), graph=graphs(), alpha=alphas)
@settings(max_examples=examples(150), deadline=None)
def test_error_bound_covers_true_error(method, data, graph, alpha):
    n, rows = graph
    personalization = data.draw(vectors(n), "personalization")
    dangling = data.draw(vectors(n), "dangling")
    nstart = data.draw(vectors(n), "nstart")
    dtype = data.draw(st.sampled_from(["float64", "float32"]), "dtype")
    scale = data.draw(st.sampled_from([1, "n"]), "scale")
    max_iter = data.draw(st.sampled_from([None, 0, 1, 5, 200]), "max_iter")
    ranking = prplugin.Graph(frame(rows), weight="w", vertices=list(range(n))).rank(
        method=method, alpha=alpha, personalization=personalization, dangling=dangling, nstart=nstart, dtype=dtype,
        scale=scale, max_iter=max_iter, tol=1e-6 if max_iter is None else 0,
    )  # fmt: skip
    exact = solve(n, [(u, v, Fraction(w)) for u, v, w in rows], alpha, personalization, dangling)
    true = distance(ranking.ranks, exact, n if scale == "n" else 1)
    assert true <= Fraction(ranking.error_bound)
    assert max_iter is not None or ranking.error_bound <= 1e-6
    assert ranking.ranks.dtype == dtype


@pytest.mark.parametrize("method", METHODS)
@given(graph=graphs(), alpha=alphas, directed=st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_tol_1e_minus_12_is_met_on_small_graphs(method, graph, alpha, directed):
    n, rows = graph
    assume(alpha <= 0.9)
    ranking = prplugin.Graph(frame(rows), vertices=list(range(n)), directed=directed).rank(
        method=method, alpha=alpha, tol=1e-12
    )
    both = rows if directed else [*rows, *((v, u, w) for u, v, w in rows if u != v)]
    exact = solve(n, [(u, v, Fraction(1)) for u, v, _ in both], alpha)
    assert distance(ranking.ranks, exact) <= Fraction(ranking.error_bound) <= Fraction(1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32 - 1), alpha=alphas, weighted=st.booleans(), hub=st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_larger_graphs_agree_with_dense_solution(method, seed, alpha, weighted, hub):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 400)), int(random.integers(1, 3000))
    source, target = random.integers(0, n, m), random.integers(0, n, m)
    if hub:
        target[random.random(m) < 0.8] = 0  # an in-degree that takes several levels of grouped sums
    w = random.exponential(size=m) if weighted else np.ones(m)
    edges = pd.DataFrame({"src": source, "dst": target, "w": w})
    tol = 1e-9 if alpha > 0.9 else 1e-11
    ranking = prplugin.Graph(edges, weight="w" if weighted else None, vertices=range(n)).rank(
        alpha=alpha, tol=tol, method=method
    )
    matrix = np.zeros((n, n))
    np.add.at(matrix, (target, source), w)
    out = matrix.sum(axis=0)
    matrix = np.where(out > 0, matrix / np.where(out > 0, out, 1), 1 / n)
    solution = np.linalg.solve(np.eye(n) - alpha * matrix, np.full(n, (1 - alpha) / n))
    # The solver is backward stable, and ||(I - alpha A)^-1|| = 1 / (1 - alpha).
    solver_error = 50 * n * 2.0**-53 / (1 - alpha)
    assert np.abs(ranking.ranks - solution).sum() <= ranking.error_bound + solver_error
    assert ranking.error_bound <= tol


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("alpha", "tol"), [(0.85, 1e-11), (0.99, 1e-9)])
def test_hub_with_most_edges_meets_documented_tolerances(method, alpha, tol):
    leaves = np.arange(1, 300_001)
    edges = pd.DataFrame({"src": np.append(leaves, 0), "dst": np.append(np.zeros_like(leaves), 1)})
    graph = prplugin.Graph(edges)
    if method == "dense":
        pytest.skip("a dense matrix of 300,001 vertices exceeds the memory of any GPU")
    if method == "edge":  # the rounding depth of atomic additions is the in-degree
        with pytest.raises(prplugin.InvalidOptionError, match="the smallest provable tol is"):
            graph.rank(alpha=alpha, tol=tol, method=method)
        return
    ranking = graph.rank(alpha=alpha, tol=tol, method=method)
    # Closed form: each leaf but the first has t = (1 - alpha) / n, the hub h = t + alpha * (first + (n - 2) * t), and
    # first = t + alpha * h.
    n, a = leaves.size + 1, Fraction(alpha)
    t = (1 - a) / n
    hub = (t + a * (n - 1) * t) / (1 - a * a)
    error = abs(Fraction(ranking.ranks[0]) - hub) + abs(Fraction(ranking.ranks[1]) - t - a * hub)
    error += sum(
        abs(Fraction(value) - t) * count
        for value, count in zip(*map(np.ndarray.tolist, np.unique(ranking.ranks[2:], return_counts=True)), strict=True)
    )
    assert error <= Fraction(ranking.error_bound) <= Fraction(tol)


@pytest.mark.parametrize("method", METHODS)
@given(graph=graphs(), k=st.integers(0, 6))
@settings(max_examples=examples(60), deadline=None)
def test_tol_0_returns_kth_power_iterate(method, graph, k):
    n, rows = graph
    rows = [(u, v) for u, v, _ in rows]
    out = [sum(u == source for source, _ in rows) for u in range(n)]
    x = [Fraction(1, n)] * n
    a = Fraction(0.85)
    for _ in range(k):
        dangling_mass = sum((x[u] for u in range(n) if not out[u]), Fraction(0))
        y = [(a * dangling_mass + 1 - a) / n] * n
        for u, v in rows:
            y[v] += a * x[u] / out[u]
        x = y
    ranking = prplugin.Graph(frame([(u, v, 1.0) for u, v in rows]), vertices=list(range(n))).rank(
        tol=0, max_iter=k, method=method
    )
    assert ranking.iterations == k
    assert not ranking.converged
    assert distance(ranking.ranks, x) < Fraction(1e-14)


PERIODIC_GRAPHS = {
    "2-cycle": ([0, 1], [1, 0], {0: 1}),
    "cycle": (list(range(30)), [*range(1, 30), 0], {0: 1}),
    "star with dangling hub": (list(range(1, 60)), [0] * 59, None),
    "two cycles": ([0, 1, 2, 3, 4], [1, 0, 3, 4, 2], {0: 1, 3: 2}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PERIODIC_GRAPHS)
@pytest.mark.parametrize("alpha", [0.85, 0.99, pytest.param(0.999, marks=pytest.mark.slow)])
def test_every_tolerance_is_proved_or_refused(method, name, alpha):
    """Rank graphs with eigenvalues of modulus alpha, where rounding keeps the change of an iteration from falling."""
    if alpha == 0.999 and method in GPU_METHODS - {"warp"}:
        pytest.skip("38,000 iterations: one GPU method is enough, because all share the loop and its stopping rule")
    source, target, nstart = PERIODIC_GRAPHS[name]
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target}))
    with pytest.raises(prplugin.InvalidOptionError, match="the smallest provable tol is") as caught:
        graph.rank(alpha=alpha, tol=1e-17, method=method)
    smallest = float(str(caught.value).split("the smallest provable tol is ")[1].split(". Ask")[0])
    assert smallest < 1e-13 / (1 - alpha)
    ranking = graph.rank(alpha=alpha, tol=1.1 * smallest, nstart=nstart, method=method)
    assert ranking.error_bound <= 1.1 * smallest
    exact = solve(graph.number_of_vertices, [(u, v, Fraction(1)) for u, v in zip(source, target, strict=True)], alpha)
    assert distance(ranking.ranks, exact) <= Fraction(ranking.error_bound)
