"""``method="measured"``: methods that move a clock of their own stand in for the real ones, so that no timing decides."""

from __future__ import annotations

import gc
import logging
import weakref
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.methods import measured
from prplugin.methods import numpy as by_numpy
from prplugin.methods import registry as known
from prplugin.options import Options, likely_steps

EDGES = pd.DataFrame({"src": [0, 0, 1, 2, 3, 3, 4], "dst": [1, 2, 2, 0, 0, 4, 4]})


class Clock:
    """Time passes only where something takes some."""

    now = 0.0

    def __call__(self):
        return self.now


@dataclass
class Racer:
    """A method whose layout and steps take what they are told to, and whose first plan takes a second more."""

    name: str
    clock: Clock
    layout: float
    step: float
    cost_: float = 1.0
    reason: str | None = None
    fails: Exception | None = None
    runs_on: str = "cpu"
    prepared: int = 0
    steps: int = 0
    plans: list = field(default_factory=list)

    def unavailable_reason(self, adjacency, machine):
        return self.reason

    def cost(self, adjacency, machine):
        return self.cost_

    @property
    def prepare(self):
        def prepare(problem, machine, *, threads=None):
            assert not any(plan() for plan in self.plans), "a plan is still there"
            self.clock.now += self.layout + (not self.prepared)
            self.prepared += 1
            if self.fails is not None:
                raise self.fails
            plan = Plan(self, by_numpy.prepare(problem, machine))
            self.plans.append(weakref.ref(plan))
            return plan

        return prepare


class Plan:
    """One step after the other, by NumPy."""

    def __init__(self, racer, inner):
        self._racer, self._inner = racer, inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __call__(self, moves=None):
        self._racer.clock.now += self._racer.step
        self._racer.steps += 1
        return self._inner(moves)

    def advance(self, goal, budget):
        return 0, None


@pytest.fixture
def race(monkeypatch):
    """Let only these methods be there."""
    clock = Clock()
    monkeypatch.setattr(measured, "perf_counter", clock)

    def run(**racers):
        plans = []
        there = {name: Racer(name, clock, plans=plans, **how) for name, how in racers.items()}
        monkeypatch.setattr(known, "methods", lambda: there)
        return SimpleNamespace(**there)

    return run


def test_the_fastest_ranking_wins_whatever_the_estimates(race):
    methods = race(
        hare={"layout": 1.0, "step": 0.01, "cost_": 1.0},
        tortoise={"layout": 0.0, "step": 0.02, "cost_": 2.0},
    )
    assert prplugin.Graph(EDGES).rank(method="measured").method == "tortoise"
    assert methods.hare.prepared == 2  # timed, and no more
    assert methods.tortoise.prepared == 3  # and taken
    assert prplugin.Graph(EDGES).rank().method == "hare"


def test_ranks_are_those_of_the_method(race):
    race(one={"layout": 0.0, "step": 1.0}, other={"layout": 0.0, "step": 0.5})
    pd.testing.assert_frame_equal(EDGES.pagerank(method="measured"), EDGES.pagerank(method="other"))


def test_a_graph_is_timed_once_and_the_count_of_steps_decides_each_time(race):
    methods = race(
        quick={"layout": 1.0, "step": 0.1},
        ready={"layout": 0.0, "step": 0.2},
    )
    graph = prplugin.Graph(EDGES)
    assert graph.rank(method="measured", tol=0, max_iter=5).method == "ready"
    before = methods.quick.prepared, methods.ready.prepared
    assert graph.rank(method="measured", tol=0, max_iter=20).method == "quick"
    assert (methods.quick.prepared, methods.ready.prepared) == (before[0] + 1, before[1])
    assert graph.rank(method="measured", alpha=0.99, tol=0, max_iter=5).method == "ready"
    assert graph.rank(method="measured", tol=0, max_iter=5, dtype="float32").method == "ready"
    assert methods.quick.prepared == before[0] + 1


def test_options_and_the_precision_of_the_first_steps_are_timed_anew(race):
    methods = race(one={"layout": 0.0, "step": 0.1}, other={"layout": 0.0, "step": 0.2})
    graph = prplugin.Graph(EDGES)
    for times, options in enumerate([{}, {"threads": 2}, {"threads": 3}, {"stop": "delta"}], 1):
        for _ in range(2):
            assert graph.rank(method="measured", **options).method == "one"
        assert methods.other.prepared == 2 * times


@pytest.mark.parametrize(
    ("others", "taken"), [({}, "alone"), ({"slow": {"layout": 0.0, "step": 0.0, "cost_": 21.0}}, "alone")]
)
def test_where_there_is_no_choice_nothing_is_timed(race, others, taken):
    methods = race(alone={"layout": 0.0, "step": 1.0}, **others)
    assert prplugin.Graph(EDGES).rank(method="measured").method == taken
    assert methods.alone.prepared == 1
    assert all(getattr(methods, name).prepared == 0 for name in others)


def test_nothing_is_timed_on_no_vertices(race):
    methods = race(one={"layout": 0.0, "step": 1.0}, other={"layout": 0.0, "step": 0.5})
    assert len(EDGES[:0].pagerank(method="measured")) == 0
    assert methods.one.prepared == methods.other.prepared == 0


def test_what_takes_longer_than_the_fastest_is_not_waited_for(race):
    """Of the ranking of 20 steps the first takes 2 seconds, and as many samples as it wants; the second as many as it has."""
    methods = race(
        fast={"layout": 0.0, "step": 0.1},
        slow={"layout": 1.5, "step": 0.3, "cost_": 2.0},
        slower={"layout": 0.0, "step": 5.0, "cost_": 3.0},
    )
    prplugin.Graph(EDGES).rank(method="measured")
    assert methods.slow.steps == 1 + 2  # the first of a plan that is thrown away
    assert methods.slower.steps == 1 + 1


def test_short_steps_are_timed_more_often(race):
    methods = race(short={"layout": 0.0, "step": 1e-6}, long={"layout": 0.0, "step": 1e-6 * 1.5})
    prplugin.Graph(EDGES).rank(method="measured", tol=0, max_iter=2 * measured.MAX_SAMPLES * measured.STEPS_PER_SAMPLE)
    assert methods.long.steps == 1 + measured.MAX_SAMPLES


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MethodUnavailableError("the GPU's memory ran out: 7 bytes."), "the GPU's memory ran out: 7 bytes."),
        (MemoryError("no room"), "the memory ran out: no room"),
        (InvalidOptionError("threads is odd"), "threads is odd"),
    ],
    ids=["GPU", "host", "option"],
)
def test_what_fails_is_left_out_with_the_reason(race, caplog, error, says):
    methods = race(
        broken={"layout": 0.0, "step": 0.0, "fails": error},
        one={"layout": 0.0, "step": 1.0},
        other={"layout": 0.0, "step": 0.5},
    )
    graph = prplugin.Graph(EDGES)
    with caplog.at_level(logging.INFO, logger="prplugin"):
        assert graph.rank(method="measured", threads=1).method == "other"
    assert f"broken is left out: {says}" in caplog.text
    graph.rank(method="measured", threads=1)
    assert methods.broken.prepared == 1


def test_where_all_fail_the_first_reason_is_given(race):
    race(
        one={"layout": 0.0, "step": 0.0, "fails": InvalidOptionError("threads is odd")},
        other={"layout": 0.0, "step": 0.0, "fails": MemoryError("no room")},
    )
    with pytest.raises(InvalidOptionError, match="threads is odd"):
        EDGES.pagerank(method="measured")


def test_unavailable_methods_are_not_timed(race):
    methods = race(
        unavailable={"layout": 0.0, "step": 0.0, "reason": "it is resting"},
        one={"layout": 0.0, "step": 1.0},
        other={"layout": 0.0, "step": 0.5},
    )
    assert prplugin.Graph(EDGES).rank(method="measured").method == "other"
    assert methods.unavailable.prepared == 0
    methods.one.reason = methods.other.reason = "so is this"
    with pytest.raises(MethodUnavailableError, match=r"unavailable: it is resting; one: so is this; other: so is this"):
        EDGES.pagerank(method="measured")


def test_it_says_what_each_takes(race, caplog):
    race(one={"layout": 0.5, "step": 0.25}, other={"layout": 1.0, "step": 0.125})
    with caplog.at_level(logging.INFO, logger="prplugin"):
        EDGES.pagerank(method="measured")
    assert (
        "other for 5 vertices and 7 edges and 20 steps, as measured: "
        "one 5.5 s (layout 0.5, step 0.25), other 3.5 s (layout 1, step 0.12)"
    ) in caplog.text


def test_no_plan_outlives_its_timing(race):
    enabled = gc.isenabled()
    gc.disable()
    try:
        race(
            one={"layout": 0.0, "step": 1.0},
            broken={"layout": 0.0, "step": 0.0, "fails": MemoryError("no room")},
            other={"layout": 0.0, "step": 0.5},
        )
        EDGES.pagerank(method="measured")  # `prepare` looks
    finally:
        if enabled:
            gc.enable()


def test_an_option_of_no_method_is_refused_before_anything_is_timed():
    with pytest.raises(InvalidOptionError, match="'thread' is neither an argument of pagerank nor an option"):
        EDGES.pagerank(method="measured", thread=2)
    with pytest.raises(InvalidOptionError, match=r"no method .* takes all of 'tile'"):
        EDGES.pagerank(method="measured", tile=32)


def test_of_the_real_methods_it_takes_one():
    ranking = prplugin.Graph(EDGES).rank(method="measured")
    assert ranking.method == "numpy"  # nothing else is worth the start of a compiler
    assert prplugin.Graph(EDGES).rank(method="measured", threads=1).method == "numba"


def test_large_graphs_time_both_methods_of_the_cpu(monkeypatch):
    timings = {}
    monkeypatch.setattr(
        measured, "timed", lambda method, *_: timings.setdefault(method.name, measured.Timing(0.0, 1.0))
    )
    random = np.random.default_rng(1)
    edges = pd.DataFrame({"src": random.integers(0, 1000, 800_000), "dst": random.integers(0, 1000, 800_000)})
    prplugin.Graph(edges).rank(method="measured", tol=1e-2)
    assert set(timings) == {"numpy", "numba"}


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, 20),
        ({"max_iter": 7}, 7),
        ({"max_iter": 1000}, 20),
        ({"max_iter": 0}, 1),
        ({"tol": 0, "max_iter": 3}, 3),
        ({"alpha": 0}, 1),
        ({"alpha": 0.99}, 380),
        ({"stop": "delta"}, 18),
        ({"tol": 5e-324}, 919),
        ({"tol": 2.0}, 2),
    ],
    ids=str,
)
def test_likely_steps(options, steps):
    assert likely_steps(Options(**options)) == steps


# --- on the GPU ---------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.skipif(bool(reason := prplugin.gpu.runtime.unavailable_reason()), reason=str(reason))
@pytest.mark.parametrize("weight", [None, "w"])
def test_on_the_gpu_it_takes_one_of_those_that_auto_may(weight, caplog):
    cudf = pytest.importorskip("cudf")
    random = np.random.default_rng(1)
    edges = cudf.DataFrame({name: random.integers(0, 10_000, 200_000) for name in ("src", "dst")})
    edges["w"] = random.random(200_000)
    graph = prplugin.Graph(edges, weight=weight)
    with caplog.at_level(logging.INFO, logger="prplugin"):
        ranking = graph.rank(method="measured")
    may = known.candidates(graph._graph.adjacency)
    assert ranking.method in may
    (kept,) = graph._timings.values()
    assert set(kept) <= set(may)
    assert {"persistent", "propagation-blocking"} <= set(kept)
    assert all(timing.layout > 0 and timing.step > 0 for timing in kept.values())
    assert "as measured: " in caplog.text
    named = graph.rank(method=ranking.method)
    assert named.ranks.tobytes() == ranking.ranks.tobytes()
    graph.rank(method="measured", alpha=0.5)
    assert len(graph._timings) == 1
