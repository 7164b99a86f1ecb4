"""`persistent`: steps over pieces of any size, and Anderson mixing in many iterations per launch."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_degrees import IN_DEGREES, graph, row_sums
from method_params import param

import prplugin
from prplugin.graph.edges import Problem
from prplugin.methods import persistent
from prplugin.methods.engines import gpu_merge
from prplugin.numerics import StepRounding
from prplugin.solver.certificate import Certificate

PERSISTENT = [param("persistent")]
ALPHA = 0.85


def test_change_for_tol_meets_bound():
    rounding = StepRounding(row=40, edge=2, dangling=5, vectors=2, norm=6)
    for alpha in (0.01, 0.5, 0.85, 0.999):
        for dtype in ("float64", "float32"):
            certificate = Certificate(alpha, 1000, rounding, dtype, 1)
            for tol in (certificate.provable, 1e-3, 1.0):
                assert certificate.of_step(certificate.change_for(tol) * (1 - 1e-9)) <= tol
                assert certificate.of_step(certificate.change_for(tol) * (1 + 1e-6)) > min(tol, 1 - 1e-9)
    assert Certificate(0.0, 9, rounding, "float64", 1).change_for(1e-9) == math.inf
    unprovable = Certificate(
        1 - 1e-9, 9, StepRounding(row=2, edge=2, dangling=5, vectors=2, norm=6, single=1), "float64", 1
    )
    assert unprovable.change_for(1e-3) < 0


def step_of(adjacency, dtype="float64", size=512):
    """Return a step whose pieces have `size` rows plus edges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_merge, "even_size", lambda *_: size)
        plan = persistent.PersistentPlan(adjacency.on("device"))
    step = gpu_merge.MergeStep(Problem(adjacency.on("device"), ALPHA), plan)
    step.set_contribution_dtype(dtype)
    return step


def expected_step(adjacency, ranks, dtype):
    """Return the ranks after one step on the host, with sums rounded once."""
    out = adjacency.out_weight
    contributions = (ranks * (out > 0) if adjacency.weighted else ranks / np.maximum(out, 1) * (out > 0)).astype(dtype)
    dangling_mass = math.fsum(ranks[out == 0])
    return np.array(
        [
            ALPHA * row_sum + (ALPHA * dangling_mass + 1 - ALPHA) / adjacency.n
            for row_sum in row_sums(adjacency, contributions)
        ]
    )


@pytest.mark.gpu
@pytest.mark.parametrize("method", PERSISTENT)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [32, 100, 512, 2048])
@pytest.mark.parametrize("name", IN_DEGREES)
def test_steps_over_pieces_of_any_size(method, name, size, weighted, dtype):
    adjacency = graph(IN_DEGREES[name], weighted)
    step = step_of(adjacency, dtype, size)
    ranks = np.random.default_rng(0).dirichlet(np.ones(adjacency.n))
    step.start(ranks)
    for _ in range(3):
        measured = step()
        after = expected_step(adjacency, ranks, dtype)
        # A difference of ranks has the absolute error of the ranks, so `abs` covers small differences.
        assert measured.change == pytest.approx(np.abs(after - ranks).sum(), rel=1e-12, abs=1e-14)
        assert measured.largest == pytest.approx(np.abs(after - ranks).max(), rel=1e-12, abs=1e-14)
        ranks = after
    np.testing.assert_allclose(step.ranks().get(), ranks, rtol=1e-13, atol=0)


@pytest.mark.gpu
@pytest.mark.parametrize("method", PERSISTENT)
@given(in_degrees=st.lists(st.integers(0, 400), min_size=1, max_size=300), size=st.integers(16, 2048))
def test_steps_of_arbitrary_in_degrees(method, in_degrees, size):
    adjacency = graph(in_degrees, weighted=False)
    step = step_of(adjacency, size=size)
    ranks = np.full(adjacency.n, 1 / adjacency.n)
    step.start(ranks)
    for _ in range(2):
        step()
        ranks = expected_step(adjacency, ranks, "float64")
    np.testing.assert_allclose(step.ranks().get(), ranks, rtol=1e-13, atol=0)


# --- a step for one ranking after another ---------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["persistent", "propagation-blocking"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_kept_step_ranks_as_a_new_one_does(method, weighted):
    cudf = pytest.importorskip("cudf")
    n, random = 70_000, np.random.default_rng(5)  # more than `EARLY_HISTORY`
    around = np.arange(n)
    # A ring with a few chords needs many iterations, and so a history.
    frame = undirected_edges(around, (around + 1) % n)
    frame = pd.concat([frame, pd.DataFrame(random.integers(0, n, (2000, 2)), columns=["src", "dst"])])
    frame = cudf.from_pandas(
        frame.astype("int32").assign(w=random.random(len(frame)))[["src", "dst", *["w"] * weighted]]
    )
    weight = "w" if weighted else None
    options = [
        {}, {}, {"alpha": 0.99}, {"alpha": 0.99}, {"tol": 1e-9}, {"dtype": "float32", "tol": 1e-4}, {},
        {"personalization": [3, 5]}, {"dangling": [7]}, {"alpha": 0.99, "nstart": [1]}, {"alpha": 0.99}, {"max_iter": 200},
    ]  # fmt: skip
    graph = prplugin.Graph(frame, weight=weight)
    for each in options:
        kept = graph.rank(method=method, **each)
        new = prplugin.Graph(frame, weight=weight).rank(method=method, **each)
        assert (kept.iterations, kept.error_bound) == (new.iterations, new.error_bound), each
        assert (kept.ranks == new.ranks).all(), each
    assert graph._graph.adjacency.take_step(method) is not None


# --- Anderson mixing ----------------------------------------------------------------------------------------------

MIXING_METHODS = [param("persistent"), param("propagation-blocking")]


def undirected_edges(one, other):
    return pd.DataFrame({"src": np.concatenate([one, other]), "dst": np.concatenate([other, one])})


def slow_graphs():
    """Return graphs that need many plain iterations, each with its limit of iterations with mixing."""
    random, positions = np.random.default_rng(3), np.arange(90_000).reshape(300, 300)
    buyers, items = random.integers(0, 20_000, 200_000), 20_000 + (3000 * random.random(200_000) ** 2).astype(int)
    across = np.concatenate([positions[:, :-1].ravel(), positions[:-1].ravel()])
    onward = np.concatenate([positions[:, 1:].ravel(), positions[1:].ravel()])
    return {
        "star": (undirected_edges(np.zeros(1000, int), np.arange(1, 1001)), 6),
        "purchases": (undirected_edges(buyers, items), 13),
        "grid": (undirected_edges(across, onward), 21),
    }


def exact(frame, alpha, weight=None, v=None, tol=1e-12):
    """Return ranks iterated in float64 until their error is at most `tol`, or rounding prevents it."""
    sparse = pytest.importorskip("scipy.sparse")
    ids, codes = np.unique(np.concatenate([frame["src"], frame["dst"]]), return_inverse=True)
    n, m = len(ids), len(frame)
    weights = np.ones(m) if weight is None else frame[weight].to_numpy()
    matrix = sparse.csr_matrix((weights, (codes[m:], codes[:m])), shape=(n, n))
    out = np.asarray(matrix.sum(axis=0)).ravel()
    v = np.full(n, 1 / n) if v is None else v
    x, change = v.copy(), np.inf
    while True:
        y = (
            alpha * (matrix @ np.divide(x, out, out=np.zeros(n), where=out > 0) + x[out == 0].sum() * v)
            + (1 - alpha) * v
        )
        before, change = change, np.abs(y - x).sum()
        x = y
        if alpha * change / (1 - alpha) <= tol or change >= before:
            return x


@pytest.mark.gpu
@pytest.mark.parametrize("method", MIXING_METHODS)
@pytest.mark.parametrize("name", ["star", "purchases", "grid"])
def test_mixing_converges_in_few_iterations(monkeypatch, method, name):
    frame, limit = slow_graphs()[name]
    graph = prplugin.Graph(frame)
    mixed = graph.rank(method=method)
    expected = exact(frame, ALPHA)
    assert mixed.converged
    assert mixed.iterations <= limit
    assert mixed.error_bound <= 1e-6
    assert np.abs(mixed.ranks - expected).sum() <= mixed.error_bound + 1e-12
    assert graph.rank(method=method).ranks.tobytes() == mixed.ranks.tobytes()
    monkeypatch.setattr(gpu_merge, "MIXING_FROM", math.inf)
    plain = graph.rank(method=method)
    assert plain.iterations > 1.5 * mixed.iterations
    assert np.abs(plain.ranks - expected).sum() <= plain.error_bound + 1e-12


@pytest.mark.gpu
@pytest.mark.parametrize("method", MIXING_METHODS)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(("alpha", "tol"), [(0.85, 1e-6), (0.85, 1e-11), (0.99, 1e-6), (0.99, 1e-10), (0.999, 1e-8)])
def test_error_bound_holds_with_mixing(method, weight, directed, alpha, tol):
    random = np.random.default_rng(11)
    within = random.integers(0, 300, (2000, 2)) + 300 * random.integers(0, 12, (2000, 1))
    between = random.integers(0, 3600, (12, 2))
    edges = np.concatenate([within, between])
    frame = pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1], "weight": random.random(len(edges)) + 0.01})
    graph = prplugin.Graph(frame, weight=weight, directed=directed)
    ids = np.unique(edges)
    v = random.dirichlet(np.full(len(ids), 0.1))
    ranking = graph.rank(
        method=method,
        alpha=alpha,
        tol=tol,
        personalization=pd.Series(v, index=ids).rename_axis("vertex"),
        max_iter=20_000,
    )
    if not directed:
        loops = frame["src"] == frame["dst"]
        back = frame[~loops].rename(columns={"src": "dst", "dst": "src"})
        frame = pd.concat([frame, back], ignore_index=True)
    assert ranking.converged
    assert ranking.error_bound <= tol
    expected = exact(frame, alpha, weight, v, tol / 100)
    assert np.abs(ranking.ranks - expected).sum() <= ranking.error_bound + tol / 100


@pytest.mark.gpu
@pytest.mark.parametrize("method", MIXING_METHODS)
@pytest.mark.parametrize("alpha", [0.85, 0.999])
def test_mixing_stops_at_rounding_level_of_cycle(method, alpha):
    positions = np.arange(150)
    graph = prplugin.Graph(pd.DataFrame({"src": positions, "dst": (positions + 1) % 150}))
    tol = 1e-11 if alpha < 0.9 else 1e-10
    ranking = graph.rank(method=method, alpha=alpha, tol=tol, personalization={0: 1.0})
    expected = (1 - alpha) * alpha**positions / (1 - alpha**150)
    assert ranking.converged
    assert np.abs(ranking.ranks - expected).sum() <= ranking.error_bound + 1e-13


@pytest.mark.gpu
@pytest.mark.parametrize("method", MIXING_METHODS)
def test_fast_convergence_allocates_no_history(monkeypatch, method):
    random = np.random.default_rng(4)
    frame = pd.DataFrame({"src": random.integers(0, 2000, 60_000), "dst": random.integers(0, 2000, 60_000)})

    def refuse(step, goal, change):
        raise AssertionError("a history was allocated")

    monkeypatch.setattr(gpu_merge, "EARLY_HISTORY", 0)
    monkeypatch.setattr(gpu_merge.MergeStep, "_allocate_history", refuse)
    assert prplugin.Graph(frame).rank(method=method).iterations <= 10


@pytest.mark.gpu
@pytest.mark.parametrize("method", MIXING_METHODS)
def test_iterations_are_plain_without_memory_for_history(monkeypatch, method):
    graph = prplugin.Graph(slow_graphs()["grid"][0])
    with monkeypatch.context() as patch:
        patch.setattr(gpu_merge, "MIXING_FROM", math.inf)
        plain = graph.rank(method=method)
    monkeypatch.setattr(gpu_merge, "WINDOWS", ((1 << 50, 1 << 50),) * 2)
    without_history = graph.rank(method=method)
    assert (without_history.iterations, without_history.ranks.tobytes()) == (plain.iterations, plain.ranks.tobytes())


@pytest.mark.gpu
@pytest.mark.parametrize("method", MIXING_METHODS)
@pytest.mark.parametrize("alpha", [0.85, 0.99])
@pytest.mark.parametrize("name", ["star", "purchases", "grid"])
def test_history_allocated_early_keeps_the_bits(monkeypatch, method, alpha, name):
    graph = prplugin.Graph(slow_graphs()[name][0])
    rankings = []
    for early in (0, 1 << 30):
        monkeypatch.setattr(gpu_merge, "EARLY_HISTORY", early)
        rankings.append(graph.rank(method=method, alpha=alpha))
    one, other = rankings
    assert (one.iterations, one.ranks.tobytes()) == (other.iterations, other.ranks.tobytes())
