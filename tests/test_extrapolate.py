"""Leaps: fewer steps, the same proof."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.numerics.extrapolation import WINDOW
from prplugin.solver.host_window import HostWindow


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
