"""The loop gives a step that takes several iterations at once the same ranks, steps and bounds as one that does not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods import numpy as method
from prplugin.methods.base import Ending, Sums
from prplugin.options import Options
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import _Walk, iterate, step_budget


class Ahead:
    """The NumPy method's step, as one of a GPU."""

    narrow_pays = True

    def __init__(self, problem, at_once):
        self._step = method.prepare(problem, this_machine())
        self.chain, self.at_once = self._step.chain, at_once
        self.given, self.rewound, self.dtypes = [], 0, []

    def start(self, ranks):
        self._step.start(ranks)

    def __call__(self):
        self.given.append(1)
        return self._step()

    def many(self, count):
        assert 1 < count <= self.at_once
        self.given.append(count)
        self._before = self._step.ranks().copy()
        return [self._step() for _ in range(count)]

    def rewind(self, count):
        self.rewound += 1
        self._step.start(self._before)
        for _ in range(count):
            self._step()

    def contribute_in(self, dtype):
        self.dtypes.append(dtype)
        self.chain = replace(self.chain, single=int(dtype == "float32"))

    def ranks(self):
        return self._step.ranks()


class Launched(Ahead):
    """The same, as one that sees by itself when to end."""

    lost, measured = 0, ()

    def start(self, ranks):
        super().start(ranks)
        self._last = math.inf

    def until(self, ending):
        assert 1 <= ending.steps <= self.at_once
        self._before = self._step.ranks().copy()
        taken = []
        while len(taken) < ending.steps:
            taken.append(self._step())
            before, self._last = self._last, taken[-1].change
            if self._last <= ending.goal or self._last >= ending.stall * before:
                break
        self.given.append(len(taken))
        return taken

    def advance(self, goal, budget):
        self.measured = []
        while len(self.measured) < budget:
            self.measured += self.until(Ending(min(self.at_once, budget - len(self.measured)), goal))
            if self._last <= goal:
                break
        return len(self.measured)


def graph(name):
    random = np.random.default_rng(5)
    edges = {
        "random": (random.integers(0, 300, 2000), random.integers(0, 300, 2000)),
        "a cycle": (np.arange(30), (np.arange(30) + 1) % 30),
        "a path": (np.arange(40), np.arange(40) + 1),
        "a star": (np.arange(1, 60), np.zeros(59, int)),
    }[name]
    return prplugin.Graph(pd.DataFrame({"src": edges[0], "dst": edges[1]}))._graph.adjacency


def ran(adjacency, step, options):
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.chain, options.dtype, options.scale)
    start = np.arange(1.0, adjacency.n + 1)
    seen = []
    outcome = iterate(
        step, start / start.sum(), certificate, options, step_budget(certificate, options),
        lambda *state: seen.append(state),
    )  # fmt: skip
    return outcome, seen


@pytest.mark.parametrize("name", ["random", "a cycle", "a path", "a star"])
@pytest.mark.parametrize("at_once", [1, 2, 16])
@pytest.mark.parametrize("kind", [Ahead, Launched])
@pytest.mark.parametrize(
    "options",
    [
        {"tol": 1e-6}, {"tol": 1e-13, "alpha": 0.5}, {"tol": 1e-9, "alpha": 0.99}, {"tol": 1e-10, "alpha": 0.999},
        {"tol": 1e-6, "stop": "delta"}, {"tol": 1e-9, "stop": "vertex"}, {"tol": 1e-9, "stop": "networkx"},
        {"tol": 0, "max_iter": 23}, {"tol": 1e-10, "max_iter": 7}, {"tol": 1e-6, "max_iter": 1}, {"tol": 1, "max_iter": 0},
    ],
    ids=str,
)  # fmt: skip
def test_steps_ahead_change_nothing(monkeypatch, name, at_once, kind, options):
    monkeypatch.setattr("prplugin.solver.loop.MANY", math.inf)
    monkeypatch.setattr("prplugin.solver.loop._may_leap", lambda step: False)
    monkeypatch.setattr("prplugin.methods.base.allows_float32", lambda options: False)
    adjacency, options = graph(name), Options(**options)
    problem = Problem(adjacency, options.alpha)
    plain, seen = ran(adjacency, method.prepare(problem, this_machine()), options)
    step = kind(problem, at_once)
    ahead, seen_ahead = ran(adjacency, step, options)
    assert (ahead.iterations, ahead.converged, ahead.error_bound) == (
        plain.iterations, plain.converged, plain.error_bound,
    )  # fmt: skip
    assert ahead.ranks.tobytes() == plain.ranks.tobytes()
    assert seen_ahead == seen
    assert max(step.given) <= at_once
    assert not step.dtypes


def test_most_steps_are_given_at_once():
    adjacency = graph("a cycle")
    step = Ahead(Problem(adjacency, 0.99), 16)
    outcome, _ = ran(adjacency, step, Options(alpha=0.99, tol=1e-6))
    assert outcome.iterations > 1000
    assert len(step.given) < outcome.iterations / 10


def test_a_launch_that_ends_by_itself_is_looked_at_once(monkeypatch):
    monkeypatch.setattr("prplugin.solver.loop._may_leap", lambda step: False)
    monkeypatch.setattr("prplugin.methods.base.allows_float32", lambda options: False)
    adjacency = graph("random")
    step = Launched(Problem(adjacency, 0.85), 256)
    outcome, _ = ran(adjacency, step, Options(tol=1e-8))
    assert step.given == [outcome.iterations]
    assert step.rewound == 0


def test_a_walk_that_went_too_far_goes_back():
    step = Ahead(Problem(graph("random"), 0.85), 16)
    step.start(np.full(300, 1 / 300))
    walk = _Walk(step, None)
    third = [walk(7, 100).change for _ in range(3)][-1]
    walk.end()
    assert (step.given, step.rewound) == ([7], 1)
    again = method.prepare(Problem(graph("random"), 0.85), this_machine())
    again.start(np.full(300, 1 / 300))
    assert [again().change for _ in range(3)][-1] == third
    assert step.ranks().tobytes() == again.ranks().tobytes()


def test_float32_comes_first_and_float64_where_it_is_not_enough():
    adjacency = graph("random")
    for tol, dtypes in ((1e-5, ["float32"]), (1e-7, ["float32", "float64"])):
        step = Ahead(Problem(adjacency, 0.85), 16)
        outcome, _ = ran(adjacency, step, Options(tol=tol, dtype="float32"))
        assert outcome.converged
        assert step.dtypes[: len(dtypes)] == dtypes


# --- float32 first ------------------------------------------------------------------------------------------------


class Rounded(Ahead):
    """A step whose contributions are rounded to float32 where that is asked for."""

    def __init__(self, problem):
        super().__init__(problem, 16)
        self._problem, self._dtype, self.sums = problem, "float64", []

    def start(self, ranks):
        self._ranks = ranks.copy()
        self.sums.append((self._dtype, ranks.sum()))

    def contribute_in(self, dtype):
        super().contribute_in(dtype)
        self._dtype = dtype

    def __call__(self):
        n, alpha, edges = self._problem.adjacency.n, self._problem.alpha, self._problem.adjacency.edges
        out = self._problem.adjacency.out_weight
        terms = (self._ranks / np.maximum(out, 1)).astype(self._dtype).astype(float)[edges.source]
        lost = alpha * self._ranks[out == 0].sum() / n
        ranks = alpha * np.bincount(edges.destination, terms, n) + lost + (1 - alpha) / n
        moves = np.abs(ranks - self._ranks)
        self._ranks = ranks
        return Sums(moves.sum(), moves.max())

    def many(self, count):
        self._before = self._ranks
        return [self() for _ in range(count)]

    def rewind(self, count):
        self._ranks = self._before
        for _ in range(count):
            self()

    def ranks(self):
        return self._ranks


@pytest.mark.parametrize("name", ["random", "a cycle", "a path", "a star"])
@pytest.mark.parametrize("stop", ["delta", "vertex", "networkx"])
@pytest.mark.parametrize("tol", [1e-6, 1e-8, 1e-11])
def test_a_rule_without_a_proof_is_met_in_float64(name, stop, tol):
    """Iterates in float32 may stand still where exact steps would not."""
    adjacency = graph(name)
    step = Rounded(Problem(adjacency, 0.85))
    outcome, _ = ran(adjacency, step, Options(tol=tol, stop=stop, dtype="float32"))
    assert outcome.converged
    assert step.dtypes == ["float32", "float64"]
    last = step()
    assert (last.largest if stop == "vertex" else last.change) <= (adjacency.n if stop == "networkx" else 1) * tol


@pytest.mark.parametrize("name", ["random", "a cycle", "a path"])
def test_what_float32_can_prove_it_proves(name):
    """Slow graphs, too: what a ranking ends in, and so the memory that it takes, is known beforehand.

    Of a star all the leaves round alike, and it never stands as still as that.
    """
    adjacency = graph(name)
    step = Rounded(Problem(adjacency, 0.85))
    outcome, _ = ran(adjacency, step, Options(tol=1e-6))
    assert outcome.converged
    assert step.dtypes == ["float32"]
    exact, _ = ran(adjacency, Rounded(Problem(adjacency, 0.85)), Options(tol=1e-10))
    assert np.abs(outcome.ranks - exact.ranks).sum() <= outcome.error_bound + exact.error_bound <= 2e-6


@pytest.mark.parametrize("name", ["random", "a cycle", "a path", "a star"])
@pytest.mark.parametrize("alpha", [0.85, 0.99])
def test_float64_begins_with_a_sum_that_its_certificate_allows(name, alpha):
    adjacency = graph(name)
    step = Rounded(Problem(adjacency, alpha))
    outcome, _ = ran(adjacency, step, Options(alpha=alpha, tol=1e-7 / (1 - alpha), stop="delta", dtype="float32"))
    assert outcome.converged
    sums = dict(step.sums)
    assert sums["float64"] == pytest.approx(1, abs=1e-14)


def test_where_float32_proves_nothing_float64_does():
    """At this alpha roundings to float32 can outweigh the contraction: there is no bound before float64."""
    adjacency = graph("random")
    step = Rounded(Problem(adjacency, 1 - 1e-8))
    outcome, seen = ran(adjacency, step, Options(alpha=1 - 1e-8, tol=1e-3, dtype="float32"))
    assert outcome.converged
    assert seen[0][1] == math.inf
    assert outcome.error_bound <= 1e-3
