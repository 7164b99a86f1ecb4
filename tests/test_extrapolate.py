"""Leaps: fewer steps, the same proof."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods import numpy
from prplugin.methods.base import Ending
from prplugin.numerics.extrapolation import WINDOW
from prplugin.options import Options
from prplugin.solver.certificate import Certificate
from prplugin.solver.host_window import HostWindow
from prplugin.solver.loop import _left, iterate, step_budget


def communities(size=40, count=12, seed=0):
    """Groups that few edges join: many eigenvalues next to 1, of which plain steps shrink each by alpha."""
    random = np.random.default_rng(seed)
    within = [random.integers(0, size, (size * 4, 2)) + group * size for group in range(count)]
    between = random.integers(0, size * count, (count, 2))
    edges = np.concatenate([*within, between])
    return pd.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]})


def test_a_window_with_few_modes_leads_to_the_end():
    # x = (1 - a_k) end + a_k * (another distribution for each mode), a_k falling at the pace of the mode.
    random = np.random.default_rng(1)
    end, *others = random.dirichlet(np.ones(50), size=6)
    paces = np.array([0.99, 0.85, -0.9, 0.5, 0.2])

    def iterate(k):
        return end + sum(0.1 * pace**k * (other - end) for pace, other in zip(paces, others, strict=True))

    window = HostWindow(iterate(0))
    for k in range(1, WINDOW + 1):
        assert window.left > 0
        window.add(iterate(k))
    assert window.left == 0
    ranks = window.leap()
    assert ranks.sum() == pytest.approx(1)
    assert (ranks >= 0).all()
    assert np.abs(ranks - end).sum() < 1e-3 * np.abs(iterate(WINDOW) - end).sum()


def test_no_leap_where_it_would_not_pay(monkeypatch):
    x = np.full(9, 1 / 9)
    window = HostWindow(x)
    for _ in range(WINDOW):
        window.add(x)  # standing still
    assert window.leap() is None
    monkeypatch.setattr("prplugin.numerics.extrapolation.WORTH", 0.0)
    for k in range(WINDOW):
        window.add(np.random.default_rng(k).dirichlet(np.ones(9)))
    assert window.leap() is None


@pytest.mark.parametrize("method", ["numpy", "numba"])
@pytest.mark.parametrize("directed", [True, False])
def test_fewer_steps_and_a_bound_that_holds(monkeypatch, method, directed):
    graph = prplugin.Graph(communities(), directed=directed)
    arguments = {"alpha": 0.99, "tol": 1e-10, "method": method}
    leaping = graph.rank(**arguments)
    again = graph.rank(**arguments)
    monkeypatch.setattr("prplugin.solver.loop.MANY", np.inf)
    monkeypatch.setattr("prplugin.methods.numba.worth_from", lambda adjacency: np.inf)
    plain = graph.rank(**arguments)
    assert leaping.iterations < plain.iterations / 2
    assert leaping.error_bound <= 1e-10
    assert np.abs(leaping.ranks - plain.ranks).sum() <= leaping.error_bound + plain.error_bound
    assert again.ranks.tobytes() == leaping.ranks.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_same_bits_for_any_number_of_threads(threads):
    graph = prplugin.Graph(communities())
    one = graph.rank(alpha=0.99, tol=1e-10, method="numba", threads=1)
    assert graph.rank(alpha=0.99, tol=1e-10, method="numba", threads=threads).ranks.tobytes() == one.ranks.tobytes()


def test_a_bad_leap_costs_one_step(monkeypatch):
    def astray(window):
        window._moves = []
        return np.eye(1, window.last.size)[0]

    graph = prplugin.Graph(communities())
    with monkeypatch.context() as plainly:
        plainly.setattr("prplugin.solver.loop.MANY", np.inf)
        plain = graph.rank(alpha=0.99, tol=1e-8)
    monkeypatch.setattr(HostWindow, "leap", astray)
    led = graph.rank(alpha=0.99, tol=1e-8)
    assert led.converged
    # Windows after 17, 17 + 34, 17 + 34 + 68 ... steps of rest.
    assert plain.iterations <= led.iterations <= plain.iterations + np.log2(plain.iterations)


@pytest.mark.parametrize("stop", ["delta", "vertex", "networkx"])
def test_other_rules_take_plain_steps(monkeypatch, stop):
    graph = prplugin.Graph(communities())
    ranking = graph.rank(alpha=0.99, tol=1e-9, stop=stop)
    monkeypatch.setattr("prplugin.solver.loop.MANY", np.inf)
    assert graph.rank(alpha=0.99, tol=1e-9, stop=stop).ranks.tobytes() == ranking.ranks.tobytes()


class Launched:
    """The NumPy method's step, many at a time, which records its moves."""

    narrow_pays = False

    def __init__(self, problem, at_once):
        self._step = numpy.prepare(problem, this_machine())
        self.chain, self.at_once, self.moves = self._step.chain, at_once, None

    def start(self, ranks):
        self._step.start(ranks)
        self._last, self.moves = math.inf, None

    def __call__(self):
        return self.many(1)[0]

    def many(self, count):
        return self.until(Ending(count))

    def until(self, ending):
        assert 1 <= ending.steps <= self.at_once
        assert self.moves is None or ending.steps <= len(self.moves)
        self._before, taken = self._step.ranks().copy(), []
        while len(taken) < ending.steps:
            old = self._step.ranks().copy()
            taken.append(self._step())
            if self.moves is not None:
                self.moves[len(taken) - 1] = self._step.ranks() - old
            before, self._last = self._last, taken[-1].change
            if self._last <= ending.goal or self._last >= ending.stall * before:
                break
            if len(taken) == ending.look and _left(before, self._last, self._last, ending.goal) > ending.many:
                break
        self.moves = None if self.moves is None or len(taken) == len(self.moves) else self.moves[len(taken) :]
        return taken

    def record(self, moves):
        self.moves = moves

    def rewind(self, count):
        self.start(self._before)
        for _ in range(count):
            self._step()

    def contribute_in(self, dtype):
        raise AssertionError("it has no less")

    def ranks(self):
        return self._step.ranks()


class Recorded(HostWindow):
    """A window of what a step has recorded: what the GPU's is, in NumPy."""

    def __init__(self, step):
        self._step = step
        self.restart(step.ranks())

    def restart(self, ranks):
        super().restart(ranks)
        self._record = np.full((WINDOW, ranks.size), np.nan, np.float32)
        self._step.record(self._record)

    def add(self, ranks):
        np.copyto(self.last, ranks)
        self._moves.append(self._record[len(self._moves)])


@pytest.mark.parametrize("at_once", [1, 5, WINDOW, 256])
@pytest.mark.parametrize("personalised", [False, True])
@pytest.mark.parametrize("size", [1, 40])
def test_launches_end_where_a_window_begins_and_where_it_leaps(monkeypatch, at_once, personalised, size):
    """Else steps from before a leap would be looked at after it."""
    monkeypatch.setattr("prplugin.solver.loop._may_leap", lambda step: True)
    monkeypatch.setattr("prplugin.solver.loop._window", Recorded)
    leaps = []
    leap = HostWindow.leap
    monkeypatch.setattr(HostWindow, "leap", lambda window: leaps.append(leap(window)) or leaps[-1])
    adjacency = prplugin.Graph(communities(size=size, count=480 // size))._graph.adjacency
    v = np.eye(1, adjacency.n)[0] if personalised else None
    options = Options(alpha=0.97, tol=1e-10)
    step = Launched(Problem(adjacency, 0.97, v), at_once)
    certificate = Certificate(0.97, adjacency.n, adjacency.m, step.chain, "float64", 1)
    start = np.full(adjacency.n, 1 / adjacency.n)
    outcome = iterate(step, start, certificate, options, step_budget(certificate, options), lambda *_: None)
    exact = step.ranks().copy()
    assert leaps
    assert outcome.converged
    step.start(start)
    for _ in range(1100):
        step()
    assert np.abs(step.ranks() - exact).sum() <= 2.1e-10
