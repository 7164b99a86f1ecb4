"""The costs by which "auto" chooses agree with what was measured: benchmarks/results/kernels.json, no timing here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.kernels import summary
from prplugin.machine import Machine
from prplugin.methods.registry import candidates

ROWS = json.loads((Path(__file__).parents[2] / "benchmarks/results/kernels.json").read_text())["rows"]


def measured(graph):
    """In float32, as rankings begin where that is faster."""
    return {row["what"]: row["ms float32"] for row in ROWS if row["graph"] == graph and row["ms float32"]}


@pytest.mark.parametrize("graph", sorted({row["graph"] for row in ROWS}))
def test_the_least_cost_is_among_the_fastest(graph):
    row = next(row for row in ROWS if row["graph"] == graph)
    adjacency = SimpleNamespace(
        n=row["vertices"], m=row["edges"], largest_in_degree=row["longest row"], weighted=False, memory_space="device"
    )
    ms = measured(graph)
    able = {name: method for name, method in candidates(adjacency).items() if name in ms and name != "streamed"}
    chosen = min(able, key=lambda name: able[name].cost(adjacency, Machine(threads=16)))
    assert ms[chosen] <= 1.25 * min(ms[name] for name in able), (chosen, ms)


def test_the_table_has_every_method_of_the_gpu():
    adjacency = SimpleNamespace(memory_space="device")
    assert set(candidates(adjacency)) <= {row["what"] for row in ROWS}


def timed(graph, what, layout, single, double, *, begins="float32", auto=False, measured=False):
    return {
        "graph": graph, "what": what, "ms layout": layout, "ms float32": single, "ms float64": double,
        "begins in": begins, "auto": auto, "measured": measured,
    }  # fmt: skip


def test_the_choices_stand_beside_the_best():
    peer = {"graph": "one", "what": "cuGraph", "ms layout": "", "ms float32": 0.1, "ms float64": ""}
    nondeterministic = timed("one", "edge", "", 0.001, 0.001)
    sentence, table = summary(
        [
            peer, nondeterministic,
            timed("one", "ready", 0.0, 9.0, 0.2, begins="float64", auto=True),
            timed("one", "quick", 3.0, 0.1, 0.4, measured=True),
            timed("two", "ready", 0.0, 0.105, 0.2, auto=True, measured=True),
            timed("two", "quick", 0.0, 0.1, 0.2),
            timed("three", "ready", 0.0, 0.1, 0.2, auto=True),
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
    assert one["measured's ranking over it"] == pytest.approx(5 / 4)
    assert (one["auto"], one["measured"]) == ("ready", "quick")
    assert two["auto's ranking over it"] == pytest.approx(1.05)


def test_before_the_first_graph_is_through_there_is_no_table():
    assert summary([])[1] == []
