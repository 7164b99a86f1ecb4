"""``method="measured"``: stub methods advance a simulated clock, so that tests do not depend on real timings."""

from __future__ import annotations

import gc
import logging
import re
import weakref
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.methods import measured, registry
from prplugin.methods import numpy as numpy_method
from prplugin.methods.registry import Methods
from prplugin.options import Options, likely_steps

EDGES = pd.DataFrame({"src": [0, 0, 1, 2, 3, 3, 4], "dst": [1, 2, 2, 0, 0, 4, 4]})


class Clock:
    """Simulated clock, which only stub methods advance."""

    now = 0.0

    def __call__(self):
        return self.now


@dataclass
class StubMethod:
    """Method whose layout and steps take given times; the first `prepare` takes a second more."""

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
            assert not any(plan() for plan in self.plans), "an earlier step is still referenced"
            self.clock.now += self.layout + (not self.prepared)
            self.prepared += 1
            if self.fails is not None:
                raise self.fails
            plan = StubStep(self, numpy_method.prepare(problem, machine))
            self.plans.append(weakref.ref(plan))
            return plan

        return prepare


class StubStep:
    """Step of `numpy` that advances the simulated clock."""

    def __init__(self, method, inner):
        self._method, self._inner = method, inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __call__(self, moves=None):
        self._method.clock.now += self._method.step
        self._method.steps += 1
        return self._inner(moves)

    def advance(self, goal, budget):
        return 0, None


@pytest.fixture
def install_stubs(monkeypatch):
    """Return a function that replaces the registered methods by stubs with these times."""
    clock = Clock()
    monkeypatch.setattr(measured, "perf_counter", clock)

    def run(**timings):
        plans = []
        stubs = {name: StubMethod(name, clock, plans=plans, **options) for name, options in timings.items()}
        monkeypatch.setattr(registry, "methods", lambda: Methods({}, stubs))
        return SimpleNamespace(**stubs)

    return run


def test_fastest_ranking_is_chosen_despite_estimates(install_stubs):
    methods = install_stubs(
        slow_layout={"layout": 1.0, "step": 0.01, "cost_": 1.0},
        slow_step={"layout": 0.0, "step": 0.02, "cost_": 2.0},
    )
    assert prplugin.Graph(EDGES).rank(method="measured").method == "slow_step"
    assert methods.slow_layout.prepared == 2  # timed only
    assert methods.slow_step.prepared == 3  # timed and chosen
    assert prplugin.Graph(EDGES).rank().method == "slow_layout"


def test_ranks_are_those_of_chosen_method(install_stubs):
    install_stubs(one={"layout": 0.0, "step": 1.0}, other={"layout": 0.0, "step": 0.5})
    pd.testing.assert_frame_equal(EDGES.pagerank(method="measured"), EDGES.pagerank(method="other"))


def test_timings_are_reused_for_other_step_counts(install_stubs):
    methods = install_stubs(
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


def test_other_options_and_precision_are_timed_again(install_stubs):
    methods = install_stubs(one={"layout": 0.0, "step": 0.1}, other={"layout": 0.0, "step": 0.2})
    graph = prplugin.Graph(EDGES)
    for times, options in enumerate([{}, {"threads": 2}, {"threads": 3}, {"stop": "delta"}], 1):
        for _ in range(2):
            assert graph.rank(method="measured", **options).method == "one"
        assert methods.other.prepared == 2 * times


@pytest.mark.parametrize(
    ("other_methods", "chosen"), [({}, "only"), ({"slow": {"layout": 0.0, "step": 0.0, "cost_": 21.0}}, "only")]
)
def test_single_candidate_is_not_timed(install_stubs, other_methods, chosen):
    methods = install_stubs(only={"layout": 0.0, "step": 1.0}, **other_methods)
    assert prplugin.Graph(EDGES).rank(method="measured").method == chosen
    assert methods.only.prepared == 1
    assert all(getattr(methods, name).prepared == 0 for name in other_methods)


def test_empty_graph_is_not_timed(install_stubs):
    methods = install_stubs(one={"layout": 0.0, "step": 1.0}, other={"layout": 0.0, "step": 0.5})
    assert len(EDGES[:0].pagerank(method="measured")) == 0
    assert methods.one.prepared == methods.other.prepared == 0


def test_slow_methods_get_few_samples(install_stubs):
    """Check that a method gets no more samples than fit the 2 seconds that the fastest takes for 20 steps."""
    methods = install_stubs(
        fast={"layout": 0.0, "step": 0.1},
        slow={"layout": 1.5, "step": 0.3, "cost_": 2.0},
        slower={"layout": 0.0, "step": 5.0, "cost_": 3.0},
    )
    prplugin.Graph(EDGES).rank(method="measured")
    assert methods.slow.steps == 1 + 2  # one step of the first `prepare`, then two samples
    assert methods.slower.steps == 1 + 1


def test_short_steps_are_timed_more_often(install_stubs):
    methods = install_stubs(short={"layout": 0.0, "step": 1e-6}, long={"layout": 0.0, "step": 1e-6 * 1.5})
    prplugin.Graph(EDGES).rank(method="measured", tol=0, max_iter=2 * measured.SAMPLES * measured.STEPS_PER_SAMPLE)
    assert methods.long.steps == 1 + measured.SAMPLES


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MethodUnavailableError("the GPU's memory ran out: 7 bytes."), "the GPU's memory ran out: 7 bytes."),
        (MemoryError("no room"), "the memory ran out: no room"),
        (InvalidOptionError("threads is odd"), "threads is odd"),
    ],
    ids=["GPU", "host", "option"],
)
def test_failing_method_is_excluded_and_reason_logged(install_stubs, caplog, error, message):
    methods = install_stubs(
        broken={"layout": 0.0, "step": 0.0, "fails": error},
        one={"layout": 0.0, "step": 1.0},
        other={"layout": 0.0, "step": 0.5},
    )
    graph = prplugin.Graph(EDGES)
    with caplog.at_level(logging.INFO, logger="prplugin"):
        assert graph.rank(method="measured", threads=1).method == "other"
    assert f"broken is left out: {message}" in caplog.text
    graph.rank(method="measured", threads=1)
    assert methods.broken.prepared == 1


def test_first_error_is_raised_if_all_fail(install_stubs):
    install_stubs(
        one={"layout": 0.0, "step": 0.0, "fails": InvalidOptionError("threads is odd")},
        other={"layout": 0.0, "step": 0.0, "fails": MemoryError("no room")},
    )
    with pytest.raises(InvalidOptionError, match="threads is odd"):
        EDGES.pagerank(method="measured")


def test_unavailable_methods_are_not_timed(install_stubs):
    methods = install_stubs(
        unavailable={"layout": 0.0, "step": 0.0, "reason": "no device"},
        one={"layout": 0.0, "step": 1.0},
        other={"layout": 0.0, "step": 0.5},
    )
    assert prplugin.Graph(EDGES).rank(method="measured").method == "other"
    assert methods.unavailable.prepared == 0
    methods.one.reason = methods.other.reason = "no driver"
    with pytest.raises(MethodUnavailableError, match=r"one: no driver; other: no driver; unavailable: no device"):
        EDGES.pagerank(method="measured")


def test_timings_are_logged(install_stubs, caplog):
    install_stubs(one={"layout": 0.5, "step": 0.25}, other={"layout": 1.0, "step": 0.125})
    with caplog.at_level(logging.INFO, logger="prplugin"):
        EDGES.pagerank(method="measured")
    assert (
        "other for 5 vertices and 7 edges and 20 steps, as measured: "
        "one 5.5 s (layout 0.5, step 0.25), other 3.5 s (layout 1, step 0.12)"
    ) in caplog.text


def test_steps_are_freed_after_timing(install_stubs):
    enabled = gc.isenabled()
    gc.disable()
    try:
        install_stubs(
            one={"layout": 0.0, "step": 1.0},
            broken={"layout": 0.0, "step": 0.0, "fails": MemoryError("no room")},
            other={"layout": 0.0, "step": 0.5},
        )
        EDGES.pagerank(method="measured")  # `prepare` checks
    finally:
        if enabled:
            gc.enable()


def test_unknown_option_raises_before_timing():
    with pytest.raises(InvalidOptionError, match="'thread' is neither an argument of pagerank nor an option"):
        EDGES.pagerank(method="measured", thread=2)
    with pytest.raises(InvalidOptionError, match=r"no method .* takes all of 'tile'"):
        EDGES.pagerank(method="measured", tile=32)


def test_the_registered_method_that_is_measured_to_be_fastest_ranks(caplog):
    with caplog.at_level(logging.INFO, logger="prplugin"):
        ranking = prplugin.Graph(EDGES).rank(method="measured")
    measured_seconds = {
        name: float(seconds) for name, seconds in re.findall(r"([a-z-]+) (\S+) s \(layout", caplog.text)
    }
    assert set(measured_seconds) == {"numpy", "native"}
    assert measured_seconds[ranking.method] == min(measured_seconds.values())
    assert prplugin.Graph(EDGES).rank(method="measured", threads=1).method == "native"


def test_large_graph_times_both_cpu_methods(monkeypatch):
    timings = {}
    monkeypatch.setattr(
        measured, "timed", lambda method, *_: timings.setdefault(method.name, measured.Timing(0.0, 1.0))
    )
    random = np.random.default_rng(1)
    edges = pd.DataFrame({"src": random.integers(0, 1000, 800_000), "dst": random.integers(0, 1000, 800_000)})
    prplugin.Graph(edges).rank(method="measured", tol=1e-2)
    assert set(timings) == {"numpy", "native"}


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
def test_device_graph_times_candidates_of_auto(weight, caplog):
    cudf = pytest.importorskip("cudf")
    random = np.random.default_rng(1)
    edges = cudf.DataFrame({name: random.integers(0, 10_000, 200_000) for name in ("src", "dst")})
    edges["w"] = random.random(200_000)
    graph = prplugin.Graph(edges, weight=weight)
    with caplog.at_level(logging.INFO, logger="prplugin"):
        ranking = graph.rank(method="measured")
    candidates = registry.candidates(graph._graph.adjacency)
    assert ranking.method in candidates
    (timings,) = graph._graph._timings.values()
    assert set(timings) <= set(candidates)
    assert {"persistent", "propagation-blocking"} <= set(timings)
    assert all(timing.layout > 0 and timing.step > 0 for timing in timings.values())
    assert "as measured: " in caplog.text
    named = graph.rank(method=ranking.method)
    assert named.ranks.tobytes() == ranking.ranks.tobytes()
    graph.rank(method="measured", alpha=0.5)
    assert len(graph._graph._timings) == 1
