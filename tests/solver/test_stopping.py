"""A stopping rule is one class: who iterates, validates, documents or explains asks it."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from solver_graphs import Float32Step

import prplugin
from prplugin import stopping
from prplugin.graph.edges import Edges, Problem
from prplugin.numerics import StepRounding
from prplugin.options import Options
from prplugin.solver.certificate import Certificate
from prplugin.solver.solve import solve
from prplugin.stopping import RULES, STOPS, Iterate, Rule, rule_of
from prplugin.types.edges import Coo

EDGES = {"src": [0, 1, 1, 2, 2, 3, 4], "dst": [1, 2, 3, 0, 3, 0, 3]}


class Every(Rule):
    """Every change of a rank is at most a tenth of `tol`: a further rule."""

    name = "every"
    repeats = False

    def met(self, sums, bound, n):
        return 10 * sums.largest <= self.tol

    def goal(self, proof):
        return -1.0

    def unmet(self):
        return f"moves of {self.tol:g} / 10"


@pytest.fixture
def graph():
    return prplugin.Graph(pd.DataFrame(EDGES))


def test_every_name_has_one_class_and_the_documentation_names_it():
    classes = {each.name: each for each in vars(stopping).values() if isinstance(each, type) and hasattr(each, "name")}
    assert tuple(classes) == tuple(RULES) == STOPS
    for name in STOPS:
        assert f'"{name}"' in inspect.getdoc(prplugin.pagerank)
        assert type(rule_of(name, 0.1)) is RULES[name]
        assert type(rule_of(name, 0.0)) is Iterate


def test_a_further_rule_is_one_class(graph, monkeypatch):
    """It is accepted, iterates, proves a bound and is named by errors, though no other module knows of it."""
    monkeypatch.setitem(RULES, "every", Every)
    monkeypatch.setattr("prplugin.options.STOPS", (*STOPS, "every"))
    found = graph.rank(stop="every", tol=1e-5)
    assert found.iterations == graph.rank(stop="vertex", tol=1e-6).iterations < graph.rank(stop="vertex").iterations + 9
    assert found.converged
    assert 0 < found.error_bound < 1
    with pytest.raises(prplugin.NotConvergedError, match=r"3 iterations did not reach moves of 1e-05 / 10; the error"):
        graph.rank(stop="every", tol=1e-5, max_iter=3)


@pytest.mark.parametrize(
    ("stop", "unmet"),
    [
        ("error", "a proved error of 1e-05"),
        ("delta", "an L1 change of 1e-05"),
        ("vertex", "no vertex moving by more than 1e-05"),
        ("networkx", r"an L1 change of n \* 1e-05"),
    ],
)
def test_errors_name_the_rule(graph, stop, unmet):
    with pytest.raises(prplugin.NotConvergedError, match=rf"^2 iterations did not reach {unmet}; the error is at most"):
        graph.rank(stop=stop, tol=1e-5, max_iter=2)
    exact = graph.rank(stop=stop, tol=0, max_iter=2)
    assert exact.iterations == 2
    assert not exact.converged


class Inexact(Float32Step):
    """Step whose inexact form has changes that are larger than those of exact steps by their rounding in float32."""

    float32_is_faster = False

    def follow(self, met, budget, least_move):
        for passes in range(1, budget + 1):
            sums = self()
            if met(sums._replace(change=sums.change * (1 + 2**-10))):
                return passes, True
        return budget, False


def test_inexact_forms_may_take_more_passes_than_exact_steps():
    """All mass starts at one vertex of a cycle, so that no change of an exact step is below its bound 2 * alpha**k."""
    n, alpha, passes = 4000, 0.5, 12
    problem = Problem(Edges(Coo(np.arange(n), (np.arange(n) + 1) % n, None, n)), alpha, None)
    start = np.zeros(n)
    start[0] = 1
    tol = 2 * alpha**passes  # which exact steps reach after one pass more: that is their budget
    options = Options(alpha=alpha, stop="delta", tol=tol)
    found = solve(Inexact(problem), options, n, start, lambda *_: lambda *_: None)
    assert found.converged
    assert found.passes == passes + 2


def test_float64_takes_over_where_float32_would_take_many_more_passes():
    """Regression test: 59 passes over cnr-2000 to 5e-7, and 55 to 4e-7, at which float64 took over."""
    rounding = StepRounding(row=40, edge=2, dangling=60, vectors=0, norm=60)
    wide = Certificate(0.85, 1000, rounding, "float64", 1)
    narrow = wide.for_rounding(rounding._replace(single=1))
    handed_over = set()
    for tol in np.geomspace(1e-8, 1e-2, 100):
        rule = rule_of("error", float(tol))
        proves = rule.goal(narrow) >= 0.65 * rule.goal(wide)
        expected = rule.goal(narrow) if proves else max(rule.goal(wide), narrow.noise / 4)
        assert rule.goal_in_float32(narrow, wide, 0.65) == expected
        handed_over.add(proves)
    assert handed_over == {False, True}
    assert rule_of("error", 5e-7).goal_in_float32(narrow, wide, 0.0) == rule_of("error", 5e-7).goal(narrow)
