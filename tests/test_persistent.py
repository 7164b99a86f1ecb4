"""Many iterations in one launch: rows across pieces, launches that end by themselves, moves on record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import param
from test_expanded import IN_DEGREES, graph, row_sums

from prplugin.graph.problem import Problem
from prplugin.methods import persistent
from prplugin.methods.base import Ending, LaunchStep
from prplugin.methods.engines import gpu_merge
from prplugin.numerics.rounding import StepChain
from prplugin.solver.certificate import Certificate

PERSISTENT = [param("persistent")]
ALPHA = 0.85


def test_a_change_that_is_asked_for_meets_the_bound():
    chain = StepChain(row=40, edge=2, dangling=5, vectors=2, norm=6)
    for alpha in (0.01, 0.5, 0.85, 0.999):
        for dtype in ("float64", "float32"):
            certificate = Certificate(alpha, 1000, 10_000, chain, dtype, 1)
            for tol in (certificate.provable, 1e-3, 1.0):
                assert certificate.of_step(certificate.change_for(tol) * (1 - 1e-9)) <= tol
                assert certificate.of_step(certificate.change_for(tol) * (1 + 1e-6)) > min(tol, 1 - 1e-9)
    assert Certificate(0.0, 9, 9, chain, "float64", 1).change_for(1e-9) == math.inf
    beyond = Certificate(
        1 - 1e-9, 9, 9, StepChain(row=2, edge=2, dangling=5, vectors=2, norm=6, single=1), "float64", 1
    )
    assert beyond.change_for(1e-3) < 0


def step_of(adjacency, dtype="float64", size=512):
    """Give a step whose pieces have `size` rows and edges."""
    plan = persistent.PersistentPlan(adjacency.on("device"))
    plan.pieces = gpu_merge.cut(adjacency.on("device").csc.offsets, adjacency.m, size, np.dtype(np.int32))
    step = gpu_merge.MergeStep(Problem(adjacency.on("device"), ALPHA), plan)
    step.contribute_in(dtype)
    return step


def expected_step(adjacency, ranks, dtype):
    """Step once on the host; sums are rounded once."""
    out = adjacency.out_weight
    contributions = (ranks * (out > 0) if adjacency.weighted else ranks / np.maximum(out, 1) * (out > 0)).astype(dtype)
    lost = math.fsum(ranks[out == 0])
    return np.array(
        [ALPHA * pulled + (ALPHA * lost + 1 - ALPHA) / adjacency.n for pulled in row_sums(adjacency, contributions)]
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
    assert isinstance(step, LaunchStep)
    ranks = np.random.default_rng(0).dirichlet(np.ones(adjacency.n))
    step.start(ranks)
    for measured in step.many(3):
        after = expected_step(adjacency, ranks, dtype)
        # Moves are differences of ranks: their error is that of the ranks, not of themselves.
        assert measured.change == pytest.approx(np.abs(after - ranks).sum(), rel=1e-12, abs=1e-14)
        assert measured.largest == pytest.approx(np.abs(after - ranks).max(), rel=1e-12, abs=1e-14)
        ranks = after
    np.testing.assert_allclose(step.ranks().get(), ranks, rtol=1e-13, atol=0)


@pytest.mark.gpu
@pytest.mark.parametrize("method", PERSISTENT)
@given(in_degrees=st.lists(st.integers(0, 400), min_size=1, max_size=300), size=st.integers(16, 2048))
def test_any_rows_in_pieces_of_any_size(method, in_degrees, size):
    adjacency = graph(in_degrees, weighted=False)
    step = step_of(adjacency, size=size)
    ranks = np.full(adjacency.n, 1 / adjacency.n)
    step.start(ranks)
    step.many(2)
    for _ in range(2):
        ranks = expected_step(adjacency, ranks, "float64")
    np.testing.assert_allclose(step.ranks().get(), ranks, rtol=1e-13, atol=0)


@pytest.mark.gpu
@pytest.mark.parametrize("method", PERSISTENT)
def test_a_launch_ends_at_its_goal_and_where_it_stalls(method):
    adjacency = graph(IN_DEGREES["all lengths"], weighted=False)
    step = step_of(adjacency)
    uniform = np.full(adjacency.n, 1 / adjacency.n)
    step.start(uniform)
    changes = [sums.change for sums in step.many(20)]
    step.start(uniform)
    assert [sums.change for sums in step.until(Ending(20, goal=changes[6]))] == changes[:7]
    assert [sums.change for sums in step.until(Ending(5))] == changes[7:12]
    assert [sums.change for sums in step.until(Ending(8, stall=0.0))] == changes[12:13]
    step.start(uniform)
    assert len(step.until(Ending(9, stall=1e-9))) == 2  # the first step has none before it to stall against


@pytest.mark.gpu
@pytest.mark.parametrize("method", PERSISTENT)
def test_a_launch_ends_where_its_goal_is_far_away(method):
    adjacency = graph(IN_DEGREES["all lengths"], weighted=False)
    step = step_of(adjacency)
    step.start(1 / adjacency.n)
    changes = [sums.change for sums in step.many(20)]
    goal = changes[8]
    left = math.log(goal / changes[3]) / math.log(changes[3] / changes[2])
    for many, taken in ((left - 1, 4), (left + 1, 9)):
        step.start(1 / adjacency.n)
        assert [sums.change for sums in step.until(Ending(20, goal=goal, look=4, many=many))] == changes[:taken]


@pytest.mark.gpu
@pytest.mark.parametrize("method", PERSISTENT)
def test_going_back_gives_the_same_bits(method):
    step = step_of(graph(IN_DEGREES["hubs side by side"], weighted=True))
    step.start(np.random.default_rng(1).dirichlet(np.ones(6)))
    step.many(3)
    reached = step.ranks().get()
    after = [sums.change for sums in step.many(7)]
    step.rewind(0)
    assert step.ranks().get().tobytes() == reached.tobytes()
    assert [sums.change for sums in step.many(7)] == after
    step.rewind(4)
    assert [step().change for _ in range(3)] == after[4:]
