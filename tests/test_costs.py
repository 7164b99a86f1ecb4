"""The costs by which "auto" chooses agree with what was measured: benchmarks/results/kernels.json, no timing here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from prplugin.machine import Machine
from prplugin.methods import candidates

ROWS = json.loads((Path(__file__).parents[1] / "benchmarks/results/kernels.json").read_text())["rows"]


def measured(graph):
    """In float32, as rankings begin where that is faster."""
    return {row["what"]: row["ms float32"] for row in ROWS if row["graph"] == graph and row["ms float32"]}


@pytest.mark.parametrize("graph", sorted({row["graph"] for row in ROWS}))
def test_the_least_cost_is_among_the_fastest(graph):
    row = next(row for row in ROWS if row["graph"] == graph)
    adjacency = SimpleNamespace(
        n=row["vertices"], m=row["edges"], largest_in_degree=row["longest row"], weighted=False, place="device"
    )
    ms = measured(graph)
    able = {name: method for name, method in candidates(adjacency).items() if name in ms and name != "streamed"}
    chosen = min(able, key=lambda name: able[name].cost(adjacency, Machine(threads=16)))
    assert ms[chosen] <= 1.25 * min(ms[name] for name in able), (chosen, ms)


def test_the_table_has_every_method_of_the_gpu():
    adjacency = SimpleNamespace(place="device")
    assert set(candidates(adjacency)) <= {row["what"] for row in ROWS}
