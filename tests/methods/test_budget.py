"""Limits of device memory, and what "auto" chooses where a method does not fit. The first parts need no GPU."""

from __future__ import annotations

import logging
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from limits import limited_memory
from method_params import param

import prplugin
from benchmarks.generate import rmat
from conformance import rapids
from prplugin.gpu import runtime
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.edges import Edges
from prplugin.graph.memory import Counts, Memory
from prplugin.machine import this_machine
from prplugin.methods import estimates, registry, streamed
from prplugin.methods.engines import gpu_pull
from prplugin.methods.registry import candidates, choose, methods
from prplugin.types.edges import Coo, Csc, Grouped

GPU_METHODS = {name for name, method in methods().items() if method.runs_on == "gpu"}
EDGES = pd.DataFrame({"src": [1, 2, 3, 1], "dst": [2, 3, 1, 3]})
DETERMINISTIC = {name for name in GPU_METHODS if not getattr(methods()[name], "nondeterministic", False)}


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.fixture
def pool(monkeypatch):
    """Return CuPy's pool, of which 300 bytes are used and 500 are free, on a GPU of which 10,000 bytes are free."""
    pool = SimpleNamespace(limit=0, used_bytes=lambda: 300, free_bytes=lambda: 500, get_limit=lambda: pool.limit)
    cuda = SimpleNamespace(runtime=SimpleNamespace(memGetInfo=lambda: (10_000, 20_000)))
    monkeypatch.setattr(runtime, "cupy", SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool))
    monkeypatch.delitem(sys.modules, "rmm", raising=False)
    return pool


def test_the_limit_of_the_pool_of_cupy_limits_the_available_bytes(pool, monkeypatch):
    found = []
    for pool.limit in (0, 1_000, 300, 100, 10**12):
        found.append(runtime.available_bytes())
    assert found == [10_500, 700, 0, 0, 10_500]
    pool.limit = runtime.FEW_BYTES
    assert [runtime.fits(runtime.FEW_BYTES), runtime.fits(runtime.FEW_BYTES + 1)] == [True, False]


def test_limits_of_resources_of_rmm_limit_the_available_bytes(pool, monkeypatch):
    """A resource with a limit, over a pool, over another limit."""
    lowest = SimpleNamespace(get_allocation_limit=lambda: 9_000, get_allocated_bytes=lambda: 1_000)
    middle = SimpleNamespace(pool_size=lambda: 700, upstream_mr=lowest)
    highest = SimpleNamespace(get_allocation_limit=lambda: 800, get_allocated_bytes=lambda: 50, upstream_mr=middle)
    resources = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "rmm", SimpleNamespace(mr=resources))
    for resource, expected in ((lowest, 8_000), (middle, 8_000), (highest, 750), (SimpleNamespace(), 10_000)):
        resources.get_current_device_resource = lambda given=resource: given
        assert runtime.available_bytes() == expected


# --- choice of "auto" ---------------------------------------------------------------------------------------------


def ungrouped_and_grouped_edges():
    endpoints = np.array([0, 1, 2, 2], np.int32), np.array([1, 2, 0, 0], np.int32)
    offsets = np.array([0, 2, 3, 4])
    yield Coo(*endpoints, None, 3)
    yield Grouped(Csc(offsets, np.array([2, 2, 0, 1], np.int32), None), np.array([1.0, 1.0, 2.0]), 4, lambda: endpoints)


@pytest.mark.parametrize("edges", list(ungrouped_and_grouped_edges()), ids=lambda edges: type(edges).__name__)
def test_spilled_edges_are_ranked_by_gpu_methods(edges):
    assert all(method.runs_on == "cpu" for method in candidates(Edges(edges)).values())
    spilled = replace(edges, frame_space="device")
    assert set(candidates(Edges(spilled))) == DETERMINISTIC
    if isinstance(spilled, Coo):  # ungrouped, as undirected edges and duplicates require
        for kept in (with_reverse_edges(spilled), drop_duplicates(spilled, "first", directed=True)):
            assert set(candidates(Edges(kept))) == DETERMINISTIC


def test_edges_beyond_the_memory_are_streamed(monkeypatch):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "attribute", lambda name: 232_448)
    graph = Counts(10**7, 3 * 10**8, False, "host", frame_space="device")
    for size, chosen in ((40 * 10**9, None), (480 * 10**6, "streamed")):  # a tenth of two columns of int64
        monkeypatch.setattr(runtime, "available_bytes", lambda size=size: size)
        found = choose("auto", graph, this_machine(), {}).name
        assert found == chosen if chosen else found != "streamed"
    monkeypatch.setattr(runtime, "available_bytes", lambda: 100 * 10**6)
    monkeypatch.setattr(runtime, "FEW_BYTES", 0)
    with pytest.raises(prplugin.MethodUnavailableError, match=r"streamed: it needs about .* bytes of GPU memory"):
        choose("auto", graph, this_machine(), {})


@pytest.fixture
def failing(monkeypatch):
    """Return methods of the GPU that "auto" prefers to "native"; each runs out of memory in its second step."""

    def prepare(problem, machine):
        step, called = methods()["numpy"].prepare(problem, machine), []

        def take(self, moves=None):
            called.append(self)
            if len(called) > 1:
                raise prplugin.OutOfMemoryError("the GPU's memory ran out")
            return ours.__call__(self, moves)

        ours = type(step)
        step.__class__ = type("Failing", (ours,), {"__call__": take})
        return step

    fakes = {
        name: SimpleNamespace(
            name=name, runs_on="gpu", reads=(), memory=Memory(), cost=lambda *_, cost=cost: cost, prepare=prepare,
            unavailable_reason=lambda *_: None,
        )
        for cost, name in enumerate(("fastest", "fast"), start=-2)
    }  # fmt: skip
    monkeypatch.setattr(registry, "candidates", lambda graph: {**fakes, "native": methods()["native"]})
    monkeypatch.setattr(runtime, "device_allocation", lambda *_, **__: nullcontext())
    monkeypatch.setattr(estimates, "describe_method_memory", lambda *_: "It needs more.")
    return fakes


def test_auto_falls_back_to_the_next_method_if_memory_runs_out(failing, caplog):
    graph = prplugin.Graph(EDGES)
    with caplog.at_level(logging.INFO, logger="prplugin"):
        found = graph.rank(tol=1e-9)
    assert found.method == "native"
    assert len(found._history.bounds) == found.iterations  # of this attempt alone
    for name in failing:
        assert f"{name} is not used: the GPU's memory ran out: the GPU's memory ran out. It needs more." in caplog.text
    assert found.ranks.tolist() == graph.rank(method="native", tol=1e-9).ranks.tolist()


def test_all_methods_that_run_out_of_memory_are_listed(failing, monkeypatch):
    monkeypatch.setattr(registry, "candidates", lambda graph: failing)
    with pytest.raises(prplugin.MethodUnavailableError, match=r"no method can run here: fastest: .* ran out.*; fast: "):
        prplugin.Graph(EDGES).rank()


def test_a_method_that_is_named_raises(failing, monkeypatch):
    monkeypatch.setitem(registry.methods()._imported, "persistent", failing["fast"])
    with pytest.raises(prplugin.OutOfMemoryError, match=r"It needs more"):
        prplugin.Graph(EDGES).rank(method="persistent")


# --- on the GPU ---------------------------------------------------------------------------------------------------

LIBRARIES = [
    "pandas",
    pytest.param("cudf", marks=pytest.mark.skipif(bool(rapids.missing("cudf")), reason=str(rapids.missing("cudf")))),
]
ARGUMENTS = {
    "unweighted": {},
    "weighted": {"weight": "w"},
    "undirected": {"directed": False},
    "personalized": {"personalization": True},
}


@pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("method", [param("streamed")])
def test_ranks_agree_within_a_tenth_of_the_edges(monkeypatch, method, arguments, library):
    monkeypatch.setattr(streamed, "LEAST_BYTES", 2**16)
    monkeypatch.setattr(runtime, "FEW_BYTES", 0)
    monkeypatch.setattr(gpu_pull, "SMALL", 0)
    edges = rmat(13, 200)
    edges["w"] = np.random.default_rng(0).random(len(edges))
    ranking = {}
    if "personalization" in arguments:
        ranking = {"personalization": {int(edges["src"][0]): 1.0, int(edges["dst"][5]): 3.0}}
        arguments = {}
    frame = rapids.as_cudf(edges) if library == "cudf" else edges
    expected = prplugin.Graph(frame, **arguments).rank(tol=1e-9, **ranking)
    with limited_memory(len(edges) * 16 // 10):
        found = prplugin.Graph(frame, **arguments).rank(
            tol=1e-9, method="auto" if library == "cudf" else method, **ranking
        )
    assert found.method == method
    assert type(found.frame) is type(frame)
    one, other = rapids.on_host(found.frame["pagerank"]), rapids.on_host(expected.frame["pagerank"])
    assert np.abs(one - other).sum() <= found.error_bound + expected.error_bound
    assert (rapids.on_host(found.frame["vertex"]) == rapids.on_host(expected.frame["vertex"])).all()


@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(bool(rapids.missing("cudf")), reason=str(rapids.missing("cudf")))
@pytest.mark.gpu
def test_auto_falls_back_where_an_allocation_fails():
    """Small graphs skip the query of the memory, so that it is an allocation that fails."""
    edges = rmat(13, 200)
    graph = prplugin.Graph(rapids.as_cudf(edges.assign(w=1.5)), weight="w")
    with limited_memory(4 * len(edges)):  # normalized weights take twice as much
        found = graph.rank()
    assert found.method not in ("persistent", "propagation-blocking")
    assert np.abs(rapids.on_host(found.ranks) - rapids.on_host(graph.rank().ranks)).sum() <= 2e-6
