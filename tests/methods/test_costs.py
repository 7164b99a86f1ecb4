"""Costs by which "auto" chooses, compared with the times in benchmarks/results/kernels.json; nothing is timed here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.kernels import summary
from prplugin.machine import Machine
from prplugin.methods.registry import candidates, methods
from prplugin.options import Options
from prplugin.types.edges import Coo

ROWS = json.loads((Path(__file__).parents[2] / "benchmarks/results/kernels.json").read_text())["rows"]


def measured(graph):
    """Return the milliseconds per iteration of each method in float32, in which rankings start where it is faster."""
    return {row["what"]: row["ms float32"] for row in ROWS if row["graph"] == graph and row["ms float32"]}


@pytest.mark.parametrize("graph", sorted({row["graph"] for row in ROWS}))
def test_method_of_least_cost_is_among_fastest(graph):
    row = next(row for row in ROWS if row["graph"] == graph)
    adjacency = SimpleNamespace(
        n=row["vertices"], m=row["edges"], largest_in_degree=row["longest row"], spread=1.0, weighted=False,
        memory_space="device", frame_space="device", given=Coo,
    )  # fmt: skip
    ms = measured(graph)
    available = {name: method for name, method in candidates(adjacency).items() if name in ms and name != "streamed"}
    chosen = min(available, key=lambda name: available[name].cost(adjacency, Machine(threads=16)))
    assert ms[chosen] <= 1.25 * min(ms[name] for name in available), (chosen, ms)


@pytest.mark.parametrize(
    ("n", "m", "spread", "persistent", "blocking"),
    [  # milliseconds per ranking of a prepared graph on one H100: docs/decisions/0005-gpu-cost-model.md
        (8_000_000, 47_760_000, 0.084, 6.92, 9.16),
        (4_000_000, 64_000_000, 0.166, 9.23, 11.9),
        (8_000_000, 100_000_000, 0.182, 17.6, 20.2),
        (8_000_000, 100_000_000, 0.269, 21.1, 23.6),
        (5_198_312, 80_000_000, 0.911, 8.77, 7.93),
        (2_395_554, 67_108_864, 0.959, 6.58, 6.36),
        (8_000_000, 80_000_000, 0.999, 13.0, 8.39),
    ],
    ids=["grid", "local web, 4M", "local web, 8M", "crawl", "purchases", "R-MAT 22", "uniform"],
)
def test_spread_of_sources_decides_on_large_graphs(n, m, spread, persistent, blocking):
    adjacency = SimpleNamespace(n=n, m=m, spread=spread, weighted=False)
    costs = [methods()[name].cost(adjacency, Machine(threads=16)) for name in ("persistent", "propagation-blocking")]
    assert (costs[0] < costs[1]) == (persistent < blocking)


def result_row(graph, method, layout, single, double, *, begins="float32", auto=False):
    return {
        "graph": graph, "what": method, "ms layout": layout, "ms float32": single, "ms float64": double,
        "begins in": begins, "auto": auto,
    }  # fmt: skip


def test_summary_compares_the_choice_with_the_best():
    peer = {"graph": "one", "what": "cuGraph", "ms layout": "", "ms float32": 0.1, "ms float64": ""}
    nondeterministic = result_row("one", "edge", "", 0.001, 0.001)
    sentence, table = summary(
        [
            peer, nondeterministic,
            result_row("one", "ready", 0.0, 9.0, 0.2, begins="float64", auto=True),
            result_row("one", "quick", 3.0, 0.1, 0.4),
            result_row("two", "ready", 0.0, 0.105, 0.2, auto=True),
            result_row("two", "quick", 0.0, 0.1, 0.2),
            result_row("three", "ready", 0.0, 0.1, 0.2),  # the row of the choice is missing
        ]
    )  # fmt: skip
    assert sentence == (
        "`auto` chooses a method within 10% of the fastest ranking on 2 of 2 graphs, and within 10% of the fastest "
        "iteration on 1."
    )
    one, two = table
    assert one["best iteration"] == "quick"
    assert one["best ranking"] == "ready"
    assert one["auto's iteration over it"] == pytest.approx(2)
    assert one["auto's ranking over it"] == 1
    assert one["auto"] == "ready"
    assert two["auto's ranking over it"] == pytest.approx(1.05)


def test_summary_of_no_results_has_no_table():
    assert summary([])[1] == []


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
    assert (given := Options(**options)).rule.likely_steps(given.alpha, given.max_iter) == steps
