"""Inputs on which one rounding term is the largest part of the error: bounds hold with it, and fail without it."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from rational_pagerank import distance, solve

import prplugin
from prplugin.cpu.sums import total
from prplugin.graph.edges import Problem
from prplugin.graph.teleports import normalised
from prplugin.machine import this_machine
from prplugin.methods.base import Step, Sums
from prplugin.methods.registry import methods
from prplugin.numerics import StepRounding
from prplugin.options import Options
from prplugin.solver import solve as solver
from prplugin.solver.certificate import Certificate

ALPHA = 0.85
U = 2.0**-53
LOST = 2.0**-54 * (1 - 2.0**-20)
"""A term that is lost when it is added to a sum from 1/2 to 1."""


def iterated(step, start, count=120):
    """Take plain steps; return the measurements of the last."""
    step.start(start)
    for _ in range(count):
        sums = step()
    return sums


def assert_needed(error, step, n, sums, **zero):
    """Check that the bound of a step covers the error, and would not with these depths instead of its own."""
    bounds = [
        Certificate(ALPHA, n, rounding, "float64", 1).of_step(sums.change)
        for rounding in (step.rounding, step.rounding._replace(**zero))
    ]
    assert bounds[1] < error <= bounds[0]


def self_loops(n, **given):
    """Return the equation of a graph in which every vertex links to itself alone: its ranks are v."""
    graph = prplugin.Graph(pd.DataFrame({"src": np.arange(n), "dst": np.arange(n)}))
    return Problem(adjacency_of(graph), ALPHA, **given)


@pytest.mark.parametrize("method", ["numpy", "native"])
def test_row_sums_that_lose_most(method):
    """A vertex with 32^3 edges to itself, whose weights are lost in each level of the sum when they are added."""
    at = np.arange(32**3)
    weights = np.where((at < 32) | ((at < 1024) & (at % 32 == 0)) | (at % 1024 == 0), LOST, 0.0)
    weights[0] = 1.0
    graph = prplugin.Graph(pd.DataFrame({"src": 0 * at, "dst": 0 * at, "w": weights}), weight="w")
    step = methods()[method].prepare(Problem(adjacency_of(graph), ALPHA), this_machine())
    sums = iterated(step, np.ones(1))
    assert_needed(1 - Fraction(step.ranks()[0]), step, 1, sums, row=0)


@pytest.mark.parametrize("zero", ["dangling", "vectors"])
def test_sums_over_vertices_that_lose_most(zero):
    """The sum of v is rounded up, and that of the dangling ranks down, in all levels: ranks become too small twice.

    The vertex at position 1 is not dangling, so that the sums have their groups from different vertices.
    """
    n, values = 1 << 16, np.zeros(1 << 16)
    for width in (2048, 64, 2):  # columns of each level
        values[width : 32 * width : width] = U * (1 + 2.0**-20)
        values[width + 1 : 32 * width : width] = LOST
    values[:2] = 1.0, 0.0
    exact = [Fraction(value) for value in values[values > 0].tolist()]
    graph = prplugin.Graph(pd.DataFrame({"src": [1], "dst": [1]}), vertices=range(n))
    v = normalised(values, "v")
    step = methods()["numpy"].prepare(Problem(adjacency_of(graph), ALPHA, v), this_machine())
    sums = iterated(step, v)
    found = [Fraction(rank) for rank in step.ranks()[values > 0].tolist()]
    assert step.ranks()[values == 0].tolist() == [0.0] * int((values == 0).sum())
    error = sum(abs(rank - value / sum(exact)) for rank, value in zip(found, exact, strict=True))
    assert_needed(error, step, n, sums, **{zero: 0})


class SimulatedStep(Step):
    """A loop over the edges of a hub without neighbours, of which each but the first is too small for the sum.

    `seeds`: Number of equal columns.
    """

    def __init__(self, in_edges, seeds):
        self._loss, self.seeds = 1 - in_edges * U / 2, seeds
        self.rounding = StepRounding(row=in_edges, edge=1, dangling=0, vectors=1, norm=1)

    def start(self, ranks):
        self._x = ranks

    def __call__(self, moves=None):
        before, self._x = self._x, ALPHA * self._x * self._loss + (1 - ALPHA)
        change = abs(self._x - before)
        if self.seeds is None:
            return Sums(change, change)
        return Sums(*np.full((2, self.seeds), change))

    def ranks(self):
        return np.full(self.seeds or 1, self._x)


@pytest.mark.parametrize("seeds", [None, 3])
def test_hub_of_2_26_in_edges(seeds):
    bounds = {}
    for row in (2**26, 0):
        step = SimulatedStep(2**26, seeds)
        step.rounding = step.rounding._replace(row=row)
        outcome = solver.solve(step, Options(alpha=ALPHA, tol=0, max_iter=200), 1, 1.0, lambda *_: lambda *_: None)
        bounds[row] = outcome.error_bound
    error = 1 - Fraction(step.ranks()[0])
    assert np.all(bounds[0] < error / 1000)
    assert np.all(error <= bounds[2**26])


def test_norm_that_loses_most():
    """The change of many vertices, added in one loop, where the ranks approach the solution by alpha in every step."""
    n = 100_000
    x, v = np.append(1.0, np.zeros(n)), np.append(0.0, np.full(n, 0.8 * U))
    moves = (1 - ALPHA) * np.abs(v - x)  # of which all but the first are lost
    loop = float(np.add.accumulate(moves)[-1])
    assert loop == moves[0]
    exact = Fraction(moves[0]) + n * Fraction(moves[1])
    # ||y - x*|| = alpha ||x - x*|| = alpha / (1 - alpha) ||y - x||.
    error = Fraction(ALPHA) / (1 - Fraction(ALPHA)) * exact
    rounding = StepRounding(row=0, edge=0, dangling=0, vectors=0, norm=n)
    certificates = [Certificate(ALPHA, n, stated, "float64", 1) for stated in (rounding, rounding._replace(norm=0))]
    assert certificates[1].of_step(loop) < error <= certificates[0].of_step(loop)


def test_contributions_that_float32_rounds_up():
    n = 1024
    v = np.full(n, 2.0**-10 * (1 + 2.0**-24 + 2.0**-40))
    v[-1] -= v.sum() - 1
    step = methods()["numpy"].prepare(self_loops(n, personalization=v), this_machine())
    step.rounding = step.rounding._replace(single=1)
    x, alpha = v, ALPHA
    for _ in range(50):  # a step whose contributions are cast
        before, x = x, alpha * x.astype(np.float32).astype(float) + (1 - alpha) * v
    error = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(x.tolist(), v.tolist(), strict=True))
    assert error > 0.9 * ALPHA * 2.0**-24
    assert_needed(error, step, n, Sums(float(np.abs(x - before).sum()), 0.0), single=0)


@pytest.mark.parametrize("method", ["numpy", "native"])
def test_ranks_whose_cast_rounds_up_everywhere(method):
    n = 1024
    v = dict.fromkeys(range(n - 1), 1 + 2.0 ** (-24) + 2.0 ** (-40))
    v[n - 1] = n - sum(v.values())
    graph = prplugin.Graph(pd.DataFrame({"src": np.arange(n), "dst": np.arange(n)}))
    ranking = graph.rank(personalization=v, nstart=v, tol=0, max_iter=3, dtype="float32", method=method)
    wide = graph.rank(personalization=v, nstart=v, tol=0, max_iter=3, method=method)
    sum_v = sum(map(Fraction, v.values()))
    exact = [Fraction(value) / sum_v for value in v.values()]
    assert wide.error_bound < distance(ranking.ranks, exact) <= Fraction(ranking.error_bound)
    assert distance(ranking.ranks, exact) > 0.9 * 2.0**-24


def test_scaled_ranks_that_all_round_down():
    ranks = np.full(3, np.nextafter(1 / 3, 1))  # 3 * rank = 1 + 2**-53 becomes 1
    certificate = Certificate(ALPHA, 3, StepRounding(0, 0, 0, 0, 0), "float64", "n")
    requested = Options(scale="n").requested(ranks)
    assert requested.tolist() == [1.0] * 3
    error = distance(requested, [Fraction(rank) for rank in ranks.tolist()], 3)
    assert 0.9 * U < error <= certificate.cast
    assert Certificate(ALPHA, 3, StepRounding(0, 0, 0, 0, 0), "float64", 1).cast == 0


def test_sum_of_ranks_that_hides_the_error_of_one():
    """All ranks are exact but the first, which is too large by what its sum loses."""
    n = 32**3
    ranks = np.zeros(n)
    for width in (1024, 32):
        ranks[width : 32 * width : width] = LOST
    exact_first = 1 - sum(map(Fraction, ranks.tolist()), Fraction(0))
    ranks[0] = 1 - U
    error = Fraction(ranks[0]) - exact_first
    assert error > 20 * U
    assert total(ranks) == ranks[0]
    bound, certificate = float(error) * (1 + 2.0**-50), Certificate(ALPHA, n, StepRounding(0, 0, 0, 0, 0), "float64", 1)
    assert (bound + abs(1 - total(ranks))) / 2 < error <= certificate.of_vertex(bound, total(ranks))
    # Nor is the error of one rank half of the L1 error if the sum shows it.
    wrong = np.array([0.5 + 2.0**-20, 0.5])
    assert certificate.of_vertex(2.0**-20, total(wrong)) >= 2.0**-20


@pytest.mark.parametrize("method", ["numpy", "native"])
def test_weights_whose_times_are_rounded(method):
    """Edges a million half-lives old, of which one is a third of a half-life older."""
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 0, 0], "at": [-3_000_001.0, -3_000_000.0, 0.0, 0.0]})
    graph = prplugin.Graph(edges, time="at", half_life=3.0)
    with localcontext(prec=60):
        ratio = Fraction(Decimal(2) ** (-1 / Decimal(3)))
    exact = solve(3, [(0, 1, ratio), (0, 2, Fraction(1)), (1, 0, Fraction(1)), (2, 0, Fraction(1))], ALPHA)
    problem = Problem(adjacency_of(graph), ALPHA)
    step = methods()[method].prepare(problem, this_machine())
    sums = iterated(step, np.full(3, 1 / 3), 300)
    roundings = 2 * problem.adjacency.roundings
    assert_needed(distance(step.ranks(), exact), step, 3, sums, edge=step.rounding.edge - roundings)
