"""The solver loop: acceleration, stopping rules, iteration budgets, stagnation, float32 steps, direct solution."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from rational_pagerank import distance, solve
from solver_graphs import GRAPHS, Float32Step, communities, cycle, separate_blocks, star

import prplugin
from conformance.options import pairwise
from prplugin.cpu.sums import GroupSums
from prplugin.graph.edges import Problem
from prplugin.machine import this_machine
from prplugin.methods import numpy
from prplugin.methods.base import Step, Sums
from prplugin.numerics import StepRounding
from prplugin.options import Options
from prplugin.solver import solve as solver
from prplugin.solver.acceleration.anderson import AndersonMixing
from prplugin.solver.acceleration.direct import DirectSolver, SlowConvergence, is_small
from prplugin.solver.certificate import Certificate
from prplugin.solver.groups import GroupProof, bounds_of_groups
from prplugin.solver.loop import Now, Outcome, Phase, Proposal, Strategy, iterate, iterate_batch
from prplugin.types.edges import Csc

HOST_METHODS = ["numpy", "native"]


def plain_iterations(graph, alpha, tol):
    """Count the plain iterations from uniform ranks that meet the same stopping rule."""
    offsets, targets, _ = graph.csr()
    n, sizes = offsets.size - 1, np.diff(offsets)
    x, iterations, change = np.full(n, 1 / n), 0, np.inf
    while alpha / (1 - alpha) * change > tol:
        sums = np.bincount(targets, np.repeat(x / np.maximum(sizes, 1), sizes), n)
        y = alpha * (sums + x[sizes == 0].sum() / n) + (1 - alpha) / n
        change, x, iterations = np.abs(y - x).sum(), y, iterations + 1
    return iterations


# --- acceleration -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", HOST_METHODS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("alpha", [0.85, 0.99])
def test_acceleration_saves_iterations_and_bound_holds(method, directed, alpha):
    graph = prplugin.Graph(communities(), directed=directed, vertices=range(480))
    ranking = graph.rank(alpha=alpha, tol=1e-8, method=method)
    again = graph.rank(alpha=alpha, tol=1e-8, method=method)
    finer = graph.rank(alpha=alpha, tol=1e-11, method="numpy")
    assert ranking.error_bound <= 1e-8
    assert np.abs(ranking.ranks - finer.ranks).sum() <= ranking.error_bound + finer.error_bound
    assert ranking.iterations < 0.6 * plain_iterations(graph, alpha, 1e-8)
    assert again.ranks.tobytes() == ranking.ranks.tobytes()


@pytest.mark.parametrize("method", HOST_METHODS)
def test_mixing_begins_again_when_a_slow_mode_is_left(method):
    """A random graph whose fast modes end the mixing, and a vertex that links to itself alone."""
    random, n, m = np.random.default_rng(0), 2000, 10_000
    edges = pd.DataFrame({"src": random.integers(1, n, m), "dst": random.integers(0, n, m)})
    edges.loc[m] = 0, 0
    graph = prplugin.Graph(edges)
    for tol, fast in ((1e-6, 30), (1e-10, 50)):
        ranking = graph.rank(method=method, tol=tol)
        assert ranking.error_bound <= tol
        assert ranking.iterations <= fast < plain_iterations(graph, 0.85, tol)


def test_a_seed_that_a_batch_leaves_with_few_passes_is_solved_directly():
    """A ring with one more edge and alpha near 1, after 1,500 of 2,400 passes."""
    n, made = 400, 1500
    edges = pd.DataFrame({"src": [*range(n), 0], "dst": [*range(1, n), 0, 200]})
    start = np.eye(1, n)[0]
    problem = Problem(adjacency_of(prplugin.Graph(edges)), 0.99999, start, None)
    options = Options(alpha=problem.alpha, tol=1e-7, max_iter=2400)
    slow = partial(SlowConvergence, problem, DirectSolver(), made)
    step = numpy.prepare(problem, this_machine())
    outcome = solver.solve(step, options, n, start, lambda *_: lambda *_: None, slow=slow, made=made)
    assert outcome.converged
    assert outcome.iterations < 900


@pytest.mark.parametrize("method", HOST_METHODS)
def test_a_looser_tolerance_never_takes_more_iterations(method):
    tolerances = 10.0 ** -np.arange(0.5, 7, 0.5)
    for edges in (*GRAPHS.values(), communities()):
        graph = prplugin.Graph(edges)
        values = np.random.default_rng(1).random(len(graph.vertices))
        for alpha in (0.5, 0.85):
            for teleports in ({}, {"personalization": values}, {"seeds": graph.vertices[:3]}):
                counts = [graph.rank(alpha=alpha, tol=tol, method=method, **teleports).iterations for tol in tolerances]
                assert (np.diff(counts, axis=0) >= 0).all(), (alpha, list(teleports), counts)


BLOCKS = {
    "size": [10, 50, 200],
    "directed": [True, False],
    "personalization": [None, {0: 1.0}, dict.fromkeys(range(0, 4000, 7), 1.0)],
    "alpha": [0.99, 0.999, 0.9999],
}


@pytest.mark.parametrize(tuple(BLOCKS), [tuple(row[name] for name in BLOCKS) for row in pairwise(BLOCKS)])
def test_no_host_method_takes_twice_the_iterations_on_separate_blocks(size, directed, personalization, alpha):
    graph = separate_blocks(size, directed)
    counts = [
        graph.rank(alpha=alpha, personalization=personalization, method=method).iterations for method in HOST_METHODS
    ]
    assert max(counts) <= 2 * min(counts)


@pytest.mark.parametrize("method", HOST_METHODS)
def test_star_converges_in_few_iterations(method):
    graph = prplugin.Graph(star(100_000), directed=False)
    assert graph.rank(method=method).iterations <= 10


def test_fast_convergence_is_not_accelerated():
    random = np.random.default_rng(3)
    graph = prplugin.Graph(pd.DataFrame({"src": random.integers(0, 50, 5000), "dst": random.integers(0, 50, 5000)}))
    assert graph.rank(method="numpy").iterations == plain_iterations(graph, 0.85, 1e-6)


@pytest.mark.parametrize("threads", [2, 5])
def test_bits_do_not_depend_on_thread_count(threads):
    graph = prplugin.Graph(communities(400), vertices=range(4800))
    one = graph.rank(alpha=0.95, tol=1e-10, method="native", threads=1)
    several = graph.rank(alpha=0.95, tol=1e-10, method="native", threads=threads)
    assert several.ranks.tobytes() == one.ranks.tobytes()
    assert one.iterations < plain_iterations(graph, 0.95, 1e-10)


@pytest.mark.parametrize("method", HOST_METHODS)
@pytest.mark.parametrize("stop", ["delta", "vertex", "networkx"])
def test_other_stop_rules_take_plain_steps(method, stop):
    graph = prplugin.Graph(communities(), vertices=range(480))
    ranking = graph.rank(alpha=0.95, tol=1e-9, stop=stop, method=method)
    plain = graph.rank(alpha=0.95, tol=0, max_iter=ranking.iterations, method=method)
    assert plain.ranks.tobytes() == ranking.ranks.tobytes()


@pytest.mark.parametrize("method", HOST_METHODS)
@pytest.mark.parametrize("budget", range(10))
def test_max_iter_counts_every_iteration(method, budget):
    graph = prplugin.Graph(communities(), vertices=range(480))
    with pytest.raises(prplugin.NotConvergedError) as caught:
        graph.rank(alpha=0.99, tol=1e-10, max_iter=budget, method=method)
    ranking = caught.value.ranking
    assert ranking.iterations == budget
    exact = graph.rank(alpha=0.99, tol=1e-11).ranks
    assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound + 1e-11 <= 2 + 2e-11


@pytest.mark.parametrize("seed", range(40))
def test_small_graphs_agree_with_exact_solution(seed):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 9)), int(random.integers(1, 20))
    edges = random.integers(0, n, (m, 2))
    alpha, tol = float(random.choice([0.0, 1e-17, 0.5, 0.85, 0.99])), float(random.choice([1e-3, 1e-6, 1e-10]))
    exact = solve(n, [(int(u), int(v), Fraction(1)) for u, v in edges], alpha)
    graph = prplugin.Graph(pd.DataFrame(edges, columns=["src", "dst"]), vertices=range(n))
    for name in HOST_METHODS:
        ranking = graph.rank(method=name, alpha=alpha, tol=tol)
        assert distance(ranking.ranks, exact) <= ranking.error_bound <= tol


# --- rounding level -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", HOST_METHODS)
@pytest.mark.parametrize(
    "edges", [cycle(30), star(60), pd.concat([cycle(7), cycle(12) + 7])], ids=["cycle", "star", "two cycles"]
)
def test_smallest_provable_tol_is_met_at_stagnation(method, edges):
    graph = prplugin.Graph(edges)
    with pytest.raises(prplugin.InvalidOptionError, match="cannot be proved") as caught:
        graph.rank(personalization={0: 1.0}, tol=1e-18, alpha=0.9, method=method)
    smallest_tol = float(str(caught.value).split("the smallest provable tol is ")[1].split(". Ask")[0]) * 1.1
    ranking = graph.rank(personalization={0: 1.0}, tol=smallest_tol, alpha=0.9, method=method)
    assert ranking.error_bound <= smallest_tol


def run_loop(name, *, narrow=True, **options):
    adjacency, options = adjacency_of(prplugin.Graph(GRAPHS[name])), Options(**options)
    step = Float32Step(Problem(adjacency, options.alpha))
    step.float32_is_faster = narrow
    start = np.arange(1.0, adjacency.n + 1)
    seen = []
    watch = lambda *state: seen.append((*state[:2], step.ranks().copy()))  # noqa: E731
    return solver.solve(step, options, adjacency.n, start / start.sum(), lambda *_: watch), step, seen


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("stop", ["delta", "vertex", "networkx"])
@pytest.mark.parametrize("tol", [1e-6, 1e-8, 1e-11])
def test_unproved_rule_met_in_float32_holds_in_float64(name, stop, tol):
    """Check that float64 takes over where float32 iterates may stagnate above the tolerance."""
    outcome, step, _ = run_loop(name, tol=tol, stop=stop, dtype="float32")
    assert outcome.converged
    if stop == "vertex" or tol == 1e-11:
        assert [dtype for dtype, _ in step.starts] == ["float32", "float64"]
    step.set_contribution_dtype("float64")
    step.start(step.ranks())
    last = step()
    assert (last.largest if stop == "vertex" else last.change) <= (step.ranks().size if stop == "networkx" else 1) * tol


@pytest.mark.parametrize("name", ["random", "cycle", "path"])
def test_float32_proves_attainable_tolerance(name):
    """Check that slow graphs end in float32 as well: the memory estimate relies on the dtype of the last step."""
    outcome, step, _ = run_loop(name, tol=1e-6)
    assert outcome.converged
    assert {dtype for dtype, _ in step.starts} == {"float32"}
    exact = run_loop(name, tol=1e-10)
    assert np.abs(step.ranks() - exact[1].ranks()).sum() <= outcome.error_bound + exact[0].error_bound <= 2e-6


@pytest.mark.parametrize("max_iter", range(2, 20))
def test_last_bound_is_that_of_the_returned_ranks(max_iter):
    """Check that ranks are not mixed after the last pass that `max_iter` allows."""
    outcome, step, seen = run_loop("cycle", narrow=False, tol=1e-9, max_iter=max_iter)
    assert outcome.iterations == max_iter
    assert seen[-1][1] == outcome.error_bound
    assert (seen[-1][2] == step.ranks()).all()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("alpha", [0.85, 0.99])
def test_float64_starts_from_ranks_of_sum_1(name, alpha):
    outcome, step, _ = run_loop(name, alpha=alpha, tol=1e-7 / (1 - alpha), stop="delta", dtype="float32")
    assert outcome.converged
    assert dict(step.starts)["float64"] == pytest.approx(1, abs=1e-14)


def test_float64_proves_where_float32_cannot():
    """Choose alpha so close to 1 that float32 rounding outweighs the contraction: float32 steps prove no bound."""
    outcome, _, seen = run_loop("random", alpha=1 - 1e-8, tol=1e-3, dtype="float32")
    assert outcome.converged
    assert seen[0][1] == np.inf  # rounding errors may make the sum of the ranks arbitrarily large
    assert outcome.error_bound <= 1e-3


def test_plain_steps_are_repeated_in_float64_alone():
    repeated = []

    class Repeating(Float32Step):
        def repeat(self, goal, most):
            repeated.append(self._dtype)
            return 0, None

    adjacency = adjacency_of(prplugin.Graph(GRAPHS["random"]))
    options = Options(tol=1e-11, stop="delta", dtype="float32")
    step = Repeating(Problem(adjacency, options.alpha))
    assert solver.solve(step, options, adjacency.n, 1 / adjacency.n, lambda *_: lambda *_: None).converged
    assert [dtype for dtype, _ in step.starts] == ["float32", "float64"]
    assert set(repeated) == {"float64"}


def test_a_closer_tolerance_is_met_where_rounding_permits():
    problem = Problem(adjacency_of(prplugin.Graph(GRAPHS["random"])), 0.85)
    n, found = problem.adjacency.n, {}
    for closer in (1e-4, 1e-9, 1e-17, 0.0):
        step = numpy.prepare(problem, this_machine())
        options = Options(alpha=0.85, tol=1e-6)
        outcome = solver.solve(step, options, n, 1 / n, lambda *_: lambda *_: None, closer=closer)
        assert outcome.converged
        found[closer] = outcome.error_bound
    assert found[1e-9] <= 1e-9 < found[1e-4] == found[1e-17] == found[0.0] <= 1e-6


def test_the_layout_of_another_method_is_freed():
    graph = prplugin.Graph(GRAPHS["random"])
    adjacency = adjacency_of(graph)
    for kept, stays in ((adjacency.get(Csc), True), (np.zeros(1), False)):
        adjacency.keep(kept)
        graph.rank(method="numpy")
        assert (adjacency.kept(type(kept)) is kept) == stays


class Scripted(Step):
    """Step whose changes are given."""

    def __init__(self, changes):
        self.changes = iter(changes)

    def __call__(self, moves=None):
        change = next(self.changes)
        return Sums(change, change)


class Proposes(Strategy):
    """Proposes once, before the step of this number."""

    def __init__(self, at, proposal):
        self.at, self.proposal, self.asked = at, proposal, 0

    def propose(self, step, now):
        self.asked += 1
        return self.proposal if self.asked == self.at else None


def loop_of(changes, proposal, *, seeds=None):
    """Run the loop in float32, with a proposal before the third step; return its number of passes."""
    rounding = StepRounding(1, 1, 1, 1, 1, single=1)
    options = Options(alpha=0.5, tol=1e-12)
    phase = Phase(options.rule, Certificate(0.5, 9, rounding, "float64", 1), [Proposes(3, proposal)], -1.0, 20, True)
    live = True if seeds is None else np.ones(seeds, np.bool_)
    state = Outcome(live, live & False, 0 * np.int64(live), np.inf)
    if seeds is None:
        iterate(Scripted(changes), phase, state, lambda *_: None, None)
    else:
        iterate_batch(Scripted(changes), phase, state, lambda *_: None)
    return state.passes, state.iterations, state.live


def test_a_change_after_a_proposal_is_no_sign_of_stagnation():
    """Changes after another iterate are compared with the next ones only, and those of plain steps always."""
    assert loop_of([1e-2, 1e-3, 5e-3, 1e-3, 9e-4], Proposal(passes=1))[:2] == (6, 6)
    assert loop_of([1e-2, 1e-3], Proposal(passes=2, sums=Sums(9e-4, 9e-4)))[:2] == (4, 4)
    moved = np.array([True, False])
    changes = [np.array(each) for each in ([1e-2, 1e-2], [1e-3, 1e-3], [5e-3, 5e-3], [1e-3, 0.0], [9e-4, 0.0])]
    passes, iterations, live = loop_of(changes, Proposal(passes=1, moved=moved), seeds=2)
    assert (passes, iterations.tolist(), live.tolist()) == (6, [6, 4], [False, False])
    changes = [np.array([each, each]) for each in (1e-2, 1e-3, 5e-3, 1e-3, 9e-4)]
    assert loop_of(changes, Proposal(passes=1), seeds=2)[0] == 6  # all have another iterate unless it says which


def test_many_steps_in_one_call_stagnate_by_the_least_change():
    phase = Phase(Options().rule, Certificate(0.5, 9, StepRounding(1, 1, 1, 1, 1), "float64", 1), [], -1.0, 20, True)
    for earlier, stagnates in (((), True), ((1.0,), True), ((1.0, 0.75), True), ((1.0, 0.7), False)):
        assert phase.stagnates(Sums(0.8, 0.8, earlier), 1.0) == stagnates
    assert phase.stagnates(Sums(0.75, 0.75), 1.0)
    assert not phase.stagnates(Sums(0.7, 0.7), 1.0)


class ProvesAt:
    """Order that is proved after so many steps."""

    def __init__(self, count):
        self.left = count

    def goal(self, certificate):
        return -1.0

    def prove(self, step, certificate, bound):
        self.left -= 1
        return self.left == 0


def test_a_proved_order_ends_the_iteration_in_float32():
    options, rounding = Options(alpha=0.5, tol=1e-12), StepRounding(1, 1, 1, 1, 1, single=1)
    phase = Phase(options.rule, Certificate(0.5, 9, rounding, "float64", 1), [], -1.0, 20, True)
    state = Outcome(True, False, 0, np.inf)
    iterate(Scripted([1e-1, 1e-2, 1e-3, 1e-4, 1e-5]), phase, state, lambda *_: None, ProvesAt(3))
    assert (state.passes, state.converged, state.live) == (3, True, False)


@pytest.mark.parametrize("until", [0, 12, 40])
def test_nothing_is_mixed_after_the_passes_of_plain_steps(until, monkeypatch):
    adjacency = adjacency_of(prplugin.Graph(communities(), vertices=range(480)))
    step, mixed, made = numpy.prepare(Problem(adjacency, 0.99), this_machine()), [], []
    mix = step.mix
    monkeypatch.setattr(step, "mix", lambda *arguments: (mixed.append(len(made)), mix(*arguments)))
    rule = Options(alpha=0.99, tol=1e-11).rule
    certificate = Certificate(0.99, 480, step.rounding, "float64", 1)
    mixing = AndersonMixing(0.99, None, until)
    step.start(1 / 480)
    iterate(step, Phase(rule, certificate, [mixing], -1.0, 60, False), Outcome(True, False, 0, np.inf),
            lambda *_: made.append(1), None)  # fmt: skip
    assert len(made) == 60
    assert bool(mixed) == (until > 0)
    assert max(mixed, default=0) < max(until, 1)
    assert mixing.moves(step) is None


@pytest.mark.parametrize(
    ("options", "free"),
    [({}, True), ({"max_iter": 90}, False), ({"stop": "delta"}, False), ({"personalization": [1]}, False)],
)
def test_a_method_may_choose_the_start_where_any_will_do(options, free, monkeypatch):
    prepared, prepare = [], numpy.prepare
    monkeypatch.setattr(
        numpy, "prepare", lambda *given, **more: prepared.append(prepare(*given, **more)) or prepared[0]
    )
    prplugin.Graph(GRAPHS["random"]).rank(method="numpy", **options)
    assert [(step.free_start, step.every_pass) for step in prepared] == [(free, False)]
    prepared.clear()
    prplugin.Graph(GRAPHS["random"]).rank(method="numpy", progress=lambda state: None, **options)
    assert [(step.free_start, step.every_pass) for step in prepared] == [(free, True)]


# --- very slow convergence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", HOST_METHODS)
def test_small_slow_graph_is_solved_directly(method):
    pytest.importorskip("scipy")
    n, alpha = 150, 0.99999
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranking = prplugin.Graph(cycle(n)).rank(personalization={0: 1.0}, alpha=alpha, method=method)
    assert ranking.iterations < 10_000
    exact = (1 - alpha) * alpha ** np.arange(n) / (1 - alpha**n)
    assert np.abs(ranking.ranks - exact).sum() <= ranking.error_bound <= 1e-6


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("dangling", [None, {3: 1.0, 5: 2.0}])
def test_direct_solution_includes_dangling_vertices_and_weights(monkeypatch, weight, dangling):
    pytest.importorskip("scipy")
    random = np.random.default_rng(2)
    edges = communities().assign(w=lambda frame: random.random(len(frame)))
    graph = prplugin.Graph(edges, weight=weight, vertices=range(500))
    iterated = graph.rank(alpha=0.99, tol=1e-10, dangling=dangling, method="numpy")
    monkeypatch.setattr("prplugin.solver.acceleration.direct.DIRECT_AFTER", 3)
    direct = graph.rank(alpha=0.99, tol=1e-10, dangling=dangling, method="numpy")
    assert direct.iterations < iterated.iterations / 2
    assert np.abs(direct.ranks - iterated.ranks).sum() <= 2e-10


@pytest.mark.parametrize("method", HOST_METHODS)
def test_tol_0_takes_plain_steps_only(monkeypatch, method):
    monkeypatch.setattr("prplugin.solver.acceleration.direct.DIRECT_AFTER", 3)
    alpha, steps = 0.99, 6
    graph = prplugin.Graph(cycle(150))
    ranking = graph.rank(personalization={0: 1.0}, nstart={0: 1.0}, alpha=alpha, tol=0, max_iter=steps, method=method)
    expected = np.zeros(150)
    expected[: steps + 1] = (1 - alpha) * alpha ** np.arange(steps + 1)
    expected[steps] = alpha**steps
    np.testing.assert_allclose(ranking.ranks, expected, rtol=1e-12)


@pytest.mark.parametrize("method", HOST_METHODS)
def test_delta_rule_takes_plain_steps_only(monkeypatch, method):
    monkeypatch.setattr("prplugin.solver.acceleration.direct.DIRECT_AFTER", 3)
    graph = prplugin.Graph(cycle(150))
    ranking = graph.rank(personalization={0: 1.0}, nstart={0: 1.0}, alpha=0.9, tol=1e-3, stop="delta", method=method)
    # Iteration k moves a mass of 0.9**k to the next vertex: its change is 2 * 0.9**k, at most 1e-3 from k = 73.
    assert ranking.iterations == 73


def test_slow_convergence_of_larger_graph_warns(monkeypatch):
    monkeypatch.setattr("prplugin.solver.acceleration.direct.MAX_DIRECT_VERTICES", 10)
    monkeypatch.setattr("prplugin.solver.acceleration.direct.RATE_SECONDS", 0.05)
    monkeypatch.setattr("prplugin.solver.acceleration.direct.WARN_SECONDS", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the warning ends the ranking
        with pytest.raises(prplugin.PageRankWarning, match=r"about [\d,]+ more iterations, [\d,]+ seconds"):
            prplugin.Graph(cycle(3000)).rank(personalization={0: 1.0}, alpha=0.999999, method="numpy")


def test_slow_convergence_is_measured_over_a_second_and_warns_once(monkeypatch):
    """Changes fall by a factor of 10 in 500 passes, then in 1000; a pass takes 0.01 seconds."""
    warned = []
    clock = SimpleNamespace(now=100.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr("prplugin.solver.acceleration.direct.time", clock)
    monkeypatch.setattr("prplugin.solver.acceleration.direct.warnings.warn", lambda text, *_, **__: warned.append(text))
    strategy, none = SlowConvergence(None), SimpleNamespace()

    def propose(passes, change, *, last=10_000, goal=1e-6):
        clock.now = 100 + passes / 100
        assert strategy.propose(none, Now(passes, last, goal, True, change, math.inf)) is None
        return len(warned)

    assert propose(0, math.inf) == 0
    assert propose(50, 1e-3) == 0
    assert propose(150, 1e-9, goal=1e-12) == 0  # a second, and no more
    assert propose(250, 1e-3 * 10**-0.4, goal=10**-5.4) == 0  # 1000 passes are left
    assert propose(360, 10**-3.51, goal=10**-4.5) == 0  # 990 passes are left
    assert propose(480, 10**-3.51) == 1  # as far as before: all that are allowed are left
    assert "about 9,520 more iterations, 95 seconds" in warned[-1]
    assert propose(600, 1e-3) == 1

    strategy = SlowConvergence(None)
    propose(50, 1e-2)
    assert propose(200, 1e-2 * 10**-0.1) == 2  # 3.9 decades in 1500 passes each
    assert "about 5,850 more iterations, 58 seconds" in warned[-1]
    strategy = SlowConvergence(None)
    propose(50, 1e-2)
    assert propose(200, 1e-2 * 10**-0.1, last=1250) == 3  # 1050 are allowed
    assert "about 1,050 more iterations, 10 seconds" in warned[-1]
    strategy = SlowConvergence(None)
    propose(50, 1e-2)
    assert propose(200, 1e-2 * 10**-0.1, last=1190) == 3  # 990
    assert propose(350, 1e-2 * 10**-0.2, goal=0.0) == 4  # unknown
    assert "about 9,650 more iterations, 96 seconds" in warned[-1]


def test_direct_solution_is_proposed_once_after_passes_in_all():
    problem = Problem(adjacency_of(prplugin.Graph(cycle(9))), 0.85, np.eye(1, 9)[0])
    for made in (0, 500):
        strategy, started = SlowConvergence(problem, made=made), []
        step = SimpleNamespace(start=started.append)
        nows = [Now(passes, 10_000, 1e-9, True, 1e-3, 1e-3) for passes in (1, 1999 - made, 2000 - made, 2001 - made)]
        assert [strategy.propose(step, now) for now in nows] == [None, None, Proposal(), None]
        (solution,) = started
        np.testing.assert_allclose(solution, 0.15 * 0.85 ** np.arange(9) / (1 - 0.85**9), rtol=1e-12)


@pytest.mark.parametrize(("n", "small"), [(2000, True), (2001, False)])
def test_problems_of_few_vertices_are_small(n, small):
    assert is_small(Problem(adjacency_of(prplugin.Graph(cycle(n))), 0.85)) == small


def test_error_bound_exceeds_two_by_rounding_alone():
    graph = prplugin.Graph(communities(), vertices=range(480))
    seen = []
    graph.rank(alpha=0.999, tol=1e-3, progress=seen.append)
    assert 2 < max(state.error_bound for state in seen if state.stage == "iterations") <= 2 + 1e-10


@pytest.mark.parametrize("method", HOST_METHODS)
def test_error_bound_covers_cast_of_disjoint_distributions(method):
    n = 256
    loops = prplugin.Graph(pd.DataFrame({"src": np.arange(n), "dst": np.arange(n)}))
    ranking = loops.rank(
        nstart=dict.fromkeys(range(n - 1), 1.0), personalization={n - 1: 1.0}, stop="delta", tol=1e-9, alpha=1 - 1e-12,
        dtype="float32", method=method,
    )  # fmt: skip
    # x* = v, and the ranks stay near the start, where v is 0: the cast of 1 / 255 makes their sum larger than 1.
    distance_to_v = sum(map(Fraction, ranking.ranks[:-1].tolist())) + abs(1 - Fraction(float(ranking.ranks[-1])))
    assert 2 + 1e-8 < distance_to_v <= Fraction(ranking.error_bound)


@pytest.mark.parametrize("seeds", [None, [0, 1]])
@pytest.mark.parametrize("stop", ["delta", "vertex", "networkx"])
def test_rules_without_proof_have_a_limit_of_iterations(stop, seeds, monkeypatch):
    """Contraction near alpha 1 guarantees them only after 10**13 iterations."""
    monkeypatch.setattr("prplugin.stopping.MOST_ITERATIONS", 2_000)
    graph, how = prplugin.Graph(cycle(50)), {"alpha": 1 - 1e-12, "tol": 1e-17, "stop": stop, "seeds": seeds}
    nstart = None if seeds else {0: 1}
    with pytest.raises(
        prplugin.NotConvergedError, match=r"Without max_iter= there are at most 2,000: pass more"
    ) as caught:
        graph.rank(**how, nstart=nstart)
    assert caught.value.ranking.iterations == 2_000
    with pytest.raises(prplugin.NotConvergedError, match="Allow a larger max_iter"):
        graph.rank(**how, nstart=nstart, max_iter=2_500)
    assert graph.rank(**how | {"stop": "error", "tol": 0.1}).converged


@pytest.mark.parametrize("max_iter", [None, 7])
def test_inexact_forms_may_take_twice_the_passes_of_exact_steps(max_iter):
    """Unless their number is limited: roundings may keep changes above those of exact steps."""
    budgets, options = [], Options(tol=1e-6, stop="delta", max_iter=max_iter)

    class Following(Float32Step):
        def follow(self, met, budget, least_move):
            budgets.append(budget)

    adjacency = adjacency_of(prplugin.Graph(GRAPHS["random"]))
    step = Following(Problem(adjacency, options.alpha))
    solver.solve(step, options, adjacency.n, 1 / adjacency.n, lambda *_: lambda *_: None)
    moves = Certificate(options.alpha, adjacency.n, step.rounding, "float64", 1).moves(1e-6)
    assert budgets == [max_iter or 2 * moves]


def test_bounds_of_inexact_forms_are_watched():
    class Following(Float32Step):
        def follow(self, met, budget, least_move):
            return 3, True

    adjacency, options, seen = adjacency_of(prplugin.Graph(GRAPHS["random"])), Options(tol=1e-6, stop="delta"), []
    step = Following(Problem(adjacency, options.alpha))
    outcome = solver.solve(step, options, adjacency.n, 1 / adjacency.n, lambda *_: lambda *state: seen.append(state))
    assert seen == [(3, outcome.error_bound, ())]
    assert (outcome.iterations, outcome.passes, outcome.converged, outcome.live) == (3, 3, True, False)
    assert step.ranks().tolist() == [1 / adjacency.n] * adjacency.n  # those before the exact step that proves the bound


@pytest.mark.parametrize("tol", [1e-9, 1e-18])
def test_groups_are_proved_by_steps_in_float64(tol):
    """After iterations whose contributions are float32; the refused tolerance is five times that of a step without change."""
    edges = pd.concat([cycle(7), cycle(12) + 7])
    step = Float32Step(Problem(adjacency_of(prplugin.Graph(edges)), 0.85))
    proof, exact = GroupProof(np.array([0, 7, 19]), Options(tol=tol)), step.rounding
    step.start(1 / 19)
    if tol < 1e-12:
        depth = GroupSums(np.repeat([0, 1], [7, 12]), 2).depth
        least = 5 * bounds_of_groups(0.85, np.zeros(1), np.ones(1), exact, depth, "float64", 1)[0]
        with pytest.raises(prplugin.InvalidOptionError, match=f"ask for {least:.2g} or more"):
            proof.begin(step)
        return
    proof.begin(step)
    step.set_contribution_dtype("float32")
    outcome = Outcome(False, True, 4, 1e-6)
    proof.settle(step, outcome, 1e-15, lambda *_: pytest.fail("the first step proves both groups"))
    assert (step.rounding, outcome.iterations, proof.iterations.tolist()) == (exact, 5, [5, 5])
    assert step.starts[-1] == ("float64", pytest.approx(1))
    assert proof.bounds.max() == outcome.error_bound < 1e-12
    np.testing.assert_allclose(proof.sums, [7 / 19, 12 / 19], rtol=1e-12)


def test_a_proposal_lets_the_other_strategies_forget():
    class Forgets(Proposes):
        forgot = 0

        def forget(self):
            self.forgot += 1

    phase = Phase(Options().rule, Certificate(0.5, 9, StepRounding(1, 1, 1, 1, 1), "float64", 1), [], -1.0, 20, False)
    strategies = [Forgets(2, Proposal(1)), Forgets(1, Proposal(2)), Forgets(2, Proposal(3))]
    phase = phase._replace(strategies=strategies)
    now = Now(0, 20, -1.0, True, 1.0, 1.0)
    assert [phase.proposal(None, now) for _ in range(3)] == [Proposal(2), Proposal(1), None]
    assert [one.forgot for one in strategies] == [1, 1, 2]


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_float32_meets_a_rule_of_changes_above_what_rounding_causes(factor):
    certificate = Certificate(0.9, 9, StepRounding(1, 1, 1, 1, 1, single=1), "float64", 1)
    goal = factor * 2 * certificate.noise / 0.1
    for stop, narrow, met in (
        ("delta", True, factor > 1), ("delta", False, True), ("error", True, True), ("error", False, True),
    ):  # fmt: skip
        phase = Phase(Options(stop=stop).rule, certificate, [], goal, 20, narrow)
        assert phase.may_converge == met
