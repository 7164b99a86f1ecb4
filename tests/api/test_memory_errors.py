"""Failure of allocations on the host in turn: OutOfMemoryError, and the same ranks in the next call."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import prplugin

PACKAGE = str(Path(prplugin.__file__).parent)
ALLOCATING = (
    "empty", "zeros", "full", "ones", "concatenate", "arange", "empty_like", "zeros_like", "unique", "bincount",
    "flatnonzero", "repeat", "array", "argsort", "cumsum", "sort", "searchsorted", "ascontiguousarray",
)  # fmt: skip
"""Functions of NumPy that allocate memory."""

RNG = np.random.default_rng(0)
EDGES = pd.DataFrame(RNG.integers(0, 60, (400, 2)), columns=["src", "dst"]).assign(
    w=RNG.random(400), t=RNG.integers(0, 1000, 400)
)
GRAPH = prplugin.Graph(EDGES)


def updated():
    graph = prplugin.Graph(EDGES)
    graph.rank()
    graph.update(add=EDGES[:5])
    return graph.rank().frame


CALLS = {
    "weights": lambda: EDGES.pagerank(weight="w"),
    "times": lambda: EDGES.pagerank(time="t", half_life=100),
    "text": lambda: EDGES.astype({"src": str, "dst": str}).pagerank(),
    "repeated edges": lambda: EDGES.pagerank(duplicates="first", directed=False),
    "several frames": lambda: prplugin.pagerank([EDGES, EDGES]),
    "groups": lambda: EDGES.assign(group=EDGES["src"] % 3).pagerank(by="group"),
    "personalization": lambda: GRAPH.rank(personalization={1: 1.0, 2: 3.0}, exclude=[5, 6]).frame,
    "seeds": lambda: EDGES.pagerank(seeds=list(range(9))),
    "selected ranks of seeds": lambda: GRAPH.rank(seeds=[1, 2, 3], among=[5, 6], top=2).frame,
    "contributions": lambda: GRAPH.rank().contributions(1),
    "update": updated,
}


class Allocations:
    """Counts the package's calls of NumPy's functions that allocate; number `failing` raises MemoryError."""

    def __init__(self):
        self.count, self.failing = 0, 0

    def counted(self, function):
        def allocate(*arguments, **named):
            if sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
                self.count += 1
                if self.count == self.failing:
                    raise MemoryError("Unable to allocate 512 bytes")
            return function(*arguments, **named)

        return allocate

    def fail(self, number):
        self.count, self.failing = 0, number


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CALLS)
def test_failed_allocations_raise_out_of_memory_error(monkeypatch, name, step):
    call, allocations = CALLS[name], Allocations()
    expected = call()
    for function in ALLOCATING:
        monkeypatch.setattr(np, function, allocations.counted(getattr(np, function)))
    call()
    assert allocations.count > 10
    for number in range(1, allocations.count + 1, step):
        allocations.fail(number)
        with pytest.raises(prplugin.OutOfMemoryError, match=r"ran out.*Unable to allocate 512 bytes"):
            call()
    allocations.fail(0)
    pd.testing.assert_frame_equal(call(), expected)
