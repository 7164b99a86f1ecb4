"""The residual of changing graphs: each term of its bound, from measurements, and the work of its rounds."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin import local
from prplugin.cpu import kernels
from prplugin.graph.edges import Edges
from prplugin.numerics import rounding_depth
from prplugin.streams import attempts
from prplugin.streams import residual as residual_module
from prplugin.streams.host_edges import HostEdges
from prplugin.streams.residual import Residual
from prplugin.types.edges import Coo

N, ALPHA, UNIT = 6, 0.75, 2.0**-53


def weighted_edges(m=12, n=N):
    """Return edges, of which vertex 0 has none."""
    random = np.random.default_rng(2)
    source, destination = random.integers(1, n, m).astype(np.int32), random.integers(0, n, m).astype(np.int32)
    return Coo(source, destination, random.random(m) + 0.5, n)


@pytest.fixture(params=[False, True], ids=["uniform", "given"])
def prepared(request):
    """Return edges on the host, and a residual of some ranks, with uniform or given teleport."""
    edges = HostEdges(Edges(weighted_edges()), None)
    random = np.random.default_rng(3)
    ranks, v = random.random(N), random.random(N)
    return edges, Residual(edges, ALPHA, v / v.sum() if request.param else None, ranks / ranks.sum())


def depth_of_v(residual):
    return 0 if residual.v is None else rounding_depth(N) + 3


def test_rounding_error_of_a_new_residual(prepared):
    """c v - y rounds once, c v too if v is given, which carries its own roundings; then the kernel adds its own."""
    edges, residual = prepared
    v = 1.0 if residual.v is None else residual.v
    r = residual.c * v - residual.y
    of_kernel, out = np.zeros(1), edges.out_edges
    expected = np.abs(r).sum() + (0.0 if residual.v is None else (depth_of_v(residual) + 1) * residual.c)
    kernels.add_contributions(
        out.begins, out.ends, out.indices, out.weights, edges.out_weight, residual.y, ALPHA, r, edges.depth, of_kernel
    )
    assert residual.rounding_error[0] == pytest.approx(expected + of_kernel[0], rel=1e-12)
    np.testing.assert_array_equal(residual.r, r)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1e9, 1e15])
@pytest.mark.parametrize("constant", [False, True])
def test_bound_has_each_term(prepared, scale, constant):
    """Compare with the formulas of the module, where the residual, its rounding errors or the sums are the largest."""
    _, residual = prepared
    v = np.full(N, 1 / N) if residual.v is None else residual.v
    r = v.copy() if constant else np.random.default_rng(4).normal(size=N)
    for norm in (0.0, 1e-9, 1.0):
        residual.r, residual.rounding_error = r * norm, np.array([scale])
        residual.measure()
        total, norm_r = residual.y.sum(), np.abs(residual.r).sum()
        step = 0 if constant else np.abs(residual.r - residual.r.sum() * v).sum()
        depth = (kernels.BLOCK_TERMS + 1 + depth_of_v(residual) + 8) * UNIT
        expected = ALPHA * step + 3 * depth * norm_r + 2 * UNIT * scale
        expected = expected / (total * (1 - ALPHA)) + depth
        assert expected <= residual.bound * (1 + 1e-15) <= expected * 1.001
        assert residual.rounding == pytest.approx(2 * UNIT * scale / (total * (1 - ALPHA)), rel=1e-5)


def test_change_of_c_adds_roundings(prepared):
    """The subtracted multiple of v carries the roundings of v, beside those that the kernel counts."""
    _, residual = prepared
    r, rounding_error = residual.r.copy(), np.zeros(1)
    residual.rounding_error = np.zeros(1)
    residual.measure(center=True)
    kernels.residual_norms(residual.y, r.copy(), residual.v, residual.c, True, rounding_error, np.empty(5))
    expected = rounding_error[0] + depth_of_v(residual) * np.abs(r).sum()
    assert residual.rounding_error[0] == pytest.approx(expected, rel=1e-12)
    assert abs(residual.r.sum()) < 1e-12
    assert residual.sum_r == 0


def test_residual_that_is_unknown_proves_nothing(prepared):
    _, residual = prepared
    residual.rounding_error = np.array([math.inf])
    residual.measure()
    assert residual.bound == math.inf


def test_depth_of_weights_follows_changes():
    """The term of the sums grows with the number of edges; that of the weights is the largest of any edge."""
    adjacency = Edges(weighted_edges())
    adjacency.set_out_weight(adjacency.out_weight, 0)
    edges, none = HostEdges(adjacency, None), weighted_edges().take(slice(0))
    assert edges.depth == 5
    more = replace(weighted_edges(1), roundings=7)
    edges.commit(edges.plan(more, none, "sum", directed=True))
    assert edges.depth == 2 + 2 * 7 + 5
    assert edges.adjacency.out_weight_depth == 2 + 2 * 7
    edges.commit(replace(edges.plan(more, none, "sum", directed=True), count_change=(1 << 27) + 1))
    assert edges.depth == 2 + 2 + 2 * 7 + 5
    adjacency.set_out_weight(adjacency.out_weight, 9)  # as of sums without compensation
    edges = HostEdges(adjacency, None)
    edges.commit(edges.plan(more, none, "sum", directed=True))
    assert edges.depth == 9 + 2 * 7 + 5


def local_edges(n=20_000, m=100_000):
    """Return edges between near vertices, on which rounds without relaxation converge slowly."""
    random = np.random.default_rng(0)
    source = random.integers(0, n, m)
    near = np.minimum(source // 50 * 50 + random.integers(0, 50, m), n - 1)
    return source, np.where(random.random(m) < 0.02, random.integers(0, n, m), near)


def random_pairs(n=20_000, m=100_000):
    return tuple(np.random.default_rng(0).integers(0, n, (2, m)))


@pytest.mark.parametrize(
    ("ends", "alpha", "most"), [(local_edges, 0.85, 26), (random_pairs, 0.97, 60)], ids=["relaxation", "centering"]
)
def test_rounds_take_few_passes(ends, alpha, most, monkeypatch):
    """Without relaxation the first takes 33, without centering the second 110."""
    monkeypatch.setattr(attempts, "_max_pushes", lambda *_: math.inf)
    edges = pd.DataFrame(dict(zip(("src", "dst"), ends(), strict=True)))
    graph = prplugin.Graph(edges, vertices=range(20_000))
    graph.rank(alpha=alpha)
    found = None
    for first in (0, 2000):
        added = np.random.default_rng(1).integers(0, 20_000, (2000, 2))
        graph.update(remove=edges.iloc[first : first + 2000], add=pd.DataFrame(added, columns=["src", "dst"]))
        found = graph.rank(alpha=alpha)
    assert found.method == "push"
    assert found.iterations <= most


@pytest.mark.parametrize(("tol", "options"), [(1e-7, {}), (1.5, {}), (1e-6, {"dtype": "float32"})])
def test_pushes_may_take_as_long_as_a_method(tol, options, monkeypatch):
    """From an error of 2 a method takes as many passes as one took, and from a smaller one fewer as it is nearer to tol."""
    found, spent, push = [], [], Residual.push

    def spy(self, edges, goal, max_edges):
        found.append((self.bound, goal, max_edges))
        spent.append(push(self, edges, goal, max_edges))
        return spent[-1]

    monkeypatch.setattr(Residual, "push", spy)
    graph = prplugin.Graph(pd.DataFrame({"src": [0, 1, 2, 2], "dst": [1, 2, 0, 3]}))
    graph.update(add=pd.DataFrame({"src": [3], "dst": [0]}))
    ranked = [graph.rank(tol=tol, method="numpy").iterations for tol in (1e-3, 1e-9, 1e-6)]
    graph.update(add=pd.DataFrame({"src": [3], "dst": [1]}))
    ranking = graph.rank(tol=tol, **options)
    assert ranking.method == "push"
    assert ranking.iterations == 1 - (-spent[0] // 6)  # the pass that computes the residual, and the pushes
    ((error, goal, most),) = found
    assert goal < tol if options else goal == tol  # the cast takes a part
    left = max(ranked) * max(0.0, math.log(min(error, 2.0) / tol) / math.log(2 / tol))
    assert most == pytest.approx(1_000_000 + (14 + left) * (6 + 8 * 4) / 3, rel=1e-12)


def unweighted(n=200):
    """Return random edges on the host."""
    return HostEdges(Edges(Coo(*np.random.default_rng(5).integers(0, n, (2, 5 * n)).astype(np.int32), None, n)), None)


def change(edges, residual, source, destination):
    """Add an edge to the graph of a residual."""
    ends, none = (np.array([end]) for end in (source, destination)), np.empty(0, np.int64)
    plan = edges.plan(Coo(*ends, None, edges.n), Coo(none, none, None, edges.n), "sum", directed=True)
    edges.commit(plan)
    residual.apply(edges, plan)


@pytest.mark.parametrize("alpha", [0.3, 0.85])
def test_estimate_after_a_change_is_of_the_residual(alpha):
    """It grows by alpha / (S (1 - alpha)) times what |r| grows by where it changes; S is the sum of y before."""
    edges = unweighted()
    residual = Residual(edges, alpha, np.full(200, 1 / 200), np.full(200, 1 / 200))
    residual.push(edges, 1e-2, math.inf)
    sum_y, bound, r = residual.y.sum(), residual.bound, residual.r.copy()
    change(edges, residual, 3, 9)
    changed = [3, *edges.out_edges.indices[edges.out_edges.begins[3] : edges.out_edges.ends[3]]]
    assert set(np.flatnonzero(residual.r != r)) <= set(changed) == {*changed, *residual.changed} | {9}
    grown = np.abs(residual.r[residual.changed]).sum() - np.abs(r[residual.changed]).sum()
    assert grown > 1e-6
    assert residual.bound == pytest.approx(bound + alpha * grown / (sum_y * (1 - alpha)), rel=1e-9)


@pytest.fixture
def calls(monkeypatch):
    """Return a function that lets the calls of kernels that push a residual be recorded, and returns their list."""

    def record(residual):
        found, measure = [], residual.measure

        def spy(kernel, **given):
            call = SimpleNamespace(
                **given | {"listed": given.get("listed", np.empty(0))[: given.get("count", [0])[0]].copy()}
            )
            call.before, call.scale = residual.bound, residual.sum_y * (1 - residual.alpha) / residual.alpha
            call.spent = kernel(**given)
            found.append(call)
            return call.spent

        def measured(*, center=False):
            measure(center=center)
            found[-1].center, found[-1].after = center, residual.bound

        for name in ("push_listed", "push_all"):
            monkeypatch.setattr(kernels, name, partial(spy, getattr(kernels, name)))
        monkeypatch.setattr(residual, "measure", measured)
        return found

    return record


@pytest.mark.parametrize(("tol", "pushes"), [(1e-2, False), (1e-4, True), (1e-6, True)])
def test_pushes_near_a_change_end_at_the_tolerance(tol, pushes, calls):
    """The change leaves a bound below the first tolerance."""
    edges, n = unweighted(), 200
    residual = Residual(edges, 0.85, None, np.full(n, 1 / n))
    residual.push(edges, 1e-11, math.inf)
    change(edges, residual, 3, 9)
    r, changed = residual.r.copy(), residual.changed
    found = calls(residual)
    spent = residual.push(edges, tol, math.inf)
    first = found[0]
    least = residual_module.CANDIDATE_FACTOR * tol * first.scale / n
    near = [vertex for vertex in sorted({*changed.tolist()}) if abs(r[vertex]) > least]
    assert first.listed.tolist() == near
    assert (first.listed_from, first.ratio, first.budget, first.trial) == (pytest.approx(least), 0.0, n, math.inf)
    goal = max(np.abs(r[near]).sum() - (first.before - tol) * first.scale, 0.0)
    assert first.goal == pytest.approx(goal, abs=1e-12)
    assert residual.bound <= tol
    assert spent == sum(call.spent for call in found)
    assert (spent > 0) == pushes
    assert not residual.changed.size


@pytest.mark.parametrize("alpha", [0.85, 0.97])
@pytest.mark.parametrize("most", [math.inf, 300_000, 100_000, 20_000, 0])
@pytest.mark.parametrize("tol", [1e-7, 1e-2])
def test_rounds_follow_their_rules(alpha, most, tol, calls):
    """By the description of the module: which threshold and relaxation a round has, whether c changes, and when they end."""
    n, m = 2000, 10_000
    ends = (end.astype(np.int32) for end in local_edges(n, m))
    edges = HostEdges(Edges(Coo(*ends, None, n)), None)
    residual = Residual(edges, alpha, None, np.full(n, 1 / n))
    found = calls(residual)
    least, relaxation, spent, ended = 2 / (1 + alpha), 1.0, 0, residual.bound <= tol or most == 0
    total = residual.push(edges, tol, most)
    for call in found:
        assert not ended
        assert call.relaxation == pytest.approx(relaxation, rel=1e-12)
        fraction = residual_module.UNPUSHED_FRACTION
        assert call.threshold == pytest.approx(fraction * call.before * call.scale / (m + 4 * n), rel=1e-12)
        assert call.center == (call.spent > residual_module.MIN_CENTERED_FRACTION * m)
        spent, ratio = spent + call.spent, call.after / call.before
        ended = call.after <= tol or spent >= most
        if ratio >= 1:
            ended, relaxation = ended or relaxation <= least, min(relaxation, least)
        elif spent > most / 4 and spent + call.spent * math.log(tol / call.after) / math.log(ratio) > most:
            ended = True
        elif relaxation == 1 and ratio > residual_module.FAST_RATIO:
            relaxation = 1 / (1 + alpha) + 1 / (1 + math.sqrt(1 - alpha**2))
    assert ended
    assert total == spent


def test_nothing_is_pushed_at_the_tolerance():
    edges = unweighted()
    residual = Residual(edges, 0.85, None, np.full(200, 1 / 200))
    assert residual.push(edges, residual.bound, math.inf) == 0


@pytest.mark.parametrize("given_v", [False, True])
def test_ranks_without_error_have_no_residual(given_v):
    """Of a graph with vertices without out-edges: y is scaled so that r sums to 0."""
    source, target = np.array([0, 1, 1, 2]), np.array([1, 2, 3, 0])
    v = np.array([0.1, 0.2, 0.3, 0.4]) if given_v else np.full(4, 0.25)
    step = np.zeros((4, 4))
    np.add.at(step, (target, source), 1 / np.array([1, 2, 2, 1]))
    step[:, 3] = v
    exact = np.linalg.solve(np.eye(4) - ALPHA * step, (1 - ALPHA) * v)
    residual = Residual(HostEdges(Edges(Coo(source, target, None, 4)), None), ALPHA, v if given_v else None, exact)
    assert np.abs(residual.r).max() < 1e-13
    assert residual.costs.tolist() == [5, 6, 5, 4]


def test_vertices_are_added_between_those_of_a_residual(prepared):
    _, residual = prepared
    change_of, y, r, costs = np.array([4, 0]), residual.y.copy(), residual.r.copy(), residual.costs.copy()
    residual.changed, positions = change_of, np.array([0, 2, 3, 4, 6, 7])
    residual.add_vertices(8, positions)
    assert residual.changed.tolist() == [6, 0]
    new = [1, 5]
    assert (residual.y[new] == (residual.c if residual.v is None else 0)).all()
    assert (residual.r[new] == 0).all()
    assert (residual.costs[new] == 4).all()
    assert residual.v is None or (residual.v[new] == 0).all()
    for found, old in ((residual.y, y), (residual.r, r), (residual.costs, costs)):
        np.testing.assert_array_equal(found[positions], old)


def test_rows_that_grow_by_any_number_of_edges_have_room():
    edges, more, none = unweighted(10), np.arange(5000) % 10, np.empty(0, np.int64)
    added = Coo(np.full(5000, 3), more, None, 10)
    plan = edges.plan(added, Coo(none, none, None, 10), "sum", directed=True)
    assert plan.used <= edges.out_edges.indices.size
    edges.commit(plan)
    assert edges.m == 5050
    assert edges.out_weight[3] == np.bincount(edges.adjacency.get(Coo).source, minlength=10)[3]


def test_costs_follow_changes():
    edges = unweighted()
    residual = Residual(edges, 0.85, None, np.full(200, 1 / 200))
    change(edges, residual, 3, 9)
    np.testing.assert_array_equal(residual.costs, edges.out_edges.ends - edges.out_edges.begins + 4)


def test_residual_without_ranks_proves_nothing(prepared):
    _, residual = prepared
    residual.y[:] = 0
    residual.measure()
    assert (residual.bound, residual.sum_y) == (math.inf, 1.0)


def test_rounds_that_reduce_nothing_end():
    """The rounding errors of the sums alone exceed the tolerance."""
    edges = unweighted()
    residual = Residual(edges, 0.85, None, np.full(200, 1 / 200))
    assert residual.push(edges, 1e-18, 1e9) < 1e5
    assert 1e-18 < residual.bound < 1e-12


def test_passes_of_residuals_that_are_kept_or_computed_anew(monkeypatch):
    spent, push = [], Residual.push
    monkeypatch.setattr(Residual, "push", lambda *given: spent.append(push(*given)) or spent[-1])
    random = np.random.default_rng(0)
    graph = prplugin.Graph(pd.DataFrame(random.integers(0, 50, (200, 2)), columns=["src", "dst"]), vertices=range(50))
    graph.rank()
    expected = [1, 0, 1]  # beside pushes: a new residual, one that is kept, and one computed anew
    for at, fraction in enumerate((0.1, 0.1, 0.0)):
        monkeypatch.setattr(attempts, "MAX_ROUNDING_FRACTION", fraction)
        graph.update(add=pd.DataFrame({"src": [at], "dst": [at + 7]}))
        ranking = graph.rank()
        assert ranking.method == "push"
        assert ranking.iterations == expected[at] - (-spent[at] // (201 + at))


@pytest.mark.parametrize(("options", "most"), [({}, 5e-7), ({"method": "numpy"}, 1e-6)])
def test_methods_go_on_to_half_the_tolerance_after_pushes(options, most, monkeypatch):
    """So that pushes suffice after the next change."""
    monkeypatch.setattr(attempts, "_max_pushes", lambda *_: 0.0)
    random = np.random.default_rng(0)
    graph = prplugin.Graph(
        pd.DataFrame(random.integers(0, 900, (9000, 2)), columns=["src", "dst"]), vertices=range(900)
    )
    graph.rank(tol=1e-2)
    graph.update(add=pd.DataFrame(random.integers(0, 900, (900, 2)), columns=["src", "dst"]))
    asked = []
    solve_by = local.solve_by
    monkeypatch.setattr(
        local, "solve_by", lambda *given, **more: asked.append(more["closer"]) or solve_by(*given, **more)
    )
    ranking = graph.rank(**options)
    assert ranking.method != "push"
    assert asked == [most]
    assert ranking.error_bound <= most
