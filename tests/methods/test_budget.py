"""The budget of device memory: parsing, accounting, errors, and the choice of "auto". The first parts need no GPU."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from method_params import param

import prplugin
from benchmarks.generate import rmat
from conformance import rapids
from prplugin.gpu import runtime
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.edges import Edges
from prplugin.graph.memory import Counts
from prplugin.machine import this_machine
from prplugin.methods import streamed
from prplugin.methods.registry import candidates, choose, methods
from prplugin.types.edges import Coo, Csc, Grouped

GPU_METHODS = {name for name, method in methods().items() if method.runs_on == "gpu"}
DETERMINISTIC = {name for name in GPU_METHODS if not getattr(methods()[name], "nondeterministic", False)}


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("", None), (" ", None), ("0", 0), ("800000000", 800_000_000), ("800MB", 800_000_000), ("1.5 GiB", 3 << 29),
        ("2kb", 2_000), ("3TB", 3 * 10**12), ("64b", 64),
    ],
)  # fmt: skip
def test_budget_is_parsed(monkeypatch, given, size):
    monkeypatch.setenv(runtime.BUDGET, given)
    assert runtime.budget() == size


@pytest.mark.parametrize("given", ["much", "-1", "1e9", "12 bits", "GB", "1,000"])
def test_invalid_budget_raises(monkeypatch, given):
    monkeypatch.setenv(runtime.BUDGET, given)
    with pytest.raises(prplugin.InvalidOptionError, match=r"PRPLUGIN_DEVICE_MEMORY must be a number of bytes, .*, not"):
        runtime.budget()


class CupyStub:
    """Stub of the CuPy functions that allocate."""

    def __init__(self):
        self.allocator = self.allocate
        self.ndarray = type(None)
        runtime = SimpleNamespace(getDevice=lambda: 0, memGetInfo=lambda: (10_000, 20_000))
        self.cuda = SimpleNamespace(
            runtime=runtime,
            get_allocator=lambda: self.allocator,
            using_allocator=self.using,
            MemoryPointer=lambda memory, offset: memory,
            UnownedMemory=lambda ptr, size, owner, gpu: SimpleNamespace(ptr=ptr, size=size, owner=owner),
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
        )

    def allocate(self, size):
        return SimpleNamespace(ptr=1, size=size)

    @contextmanager
    def using(self, allocator):
        before, self.allocator = self.allocator, allocator
        try:
            yield
        finally:
            self.allocator = before

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: 500)


@pytest.fixture
def memory(monkeypatch):
    memory = CupyStub()
    monkeypatch.setitem(sys.modules, "cupy", memory)
    monkeypatch.delitem(sys.modules, "rmm", raising=False)  # else its memory is allocated
    monkeypatch.setattr(runtime, "cupy", memory)
    monkeypatch.setattr(runtime, "_used", type(runtime._used)(int))
    return memory


def test_no_budget_counts_nothing(memory, monkeypatch):
    monkeypatch.delenv(runtime.BUDGET, raising=False)
    with runtime.device_allocation("device"):
        assert memory.allocator == memory.allocate
    assert runtime.available_bytes() == 10_500
    assert runtime.fits(runtime.FEW_BYTES)


def test_allocations_reduce_free_bytes(memory, monkeypatch):
    monkeypatch.setenv(runtime.BUDGET, "1000")
    with runtime.device_allocation("device"):
        held = memory.allocator(600)
        assert (held.size, runtime.available_bytes()) == (600, 400)
        assert [runtime.fits(400), runtime.fits(401)] == [True, False]
        with runtime.device_allocation("device"):  # nested contexts share one budget
            more = memory.allocator(400)
            assert runtime.available_bytes() == 0
        del held
        gc.collect()
        assert runtime.available_bytes() == 600
    del more
    gc.collect()
    assert runtime.available_bytes() == 1000
    monkeypatch.setenv(runtime.BUDGET, "1TB")
    assert runtime.available_bytes() == 10_500


def test_failed_allocation_is_not_counted(memory, monkeypatch):
    def fail(size):
        raise MemoryError("none")

    monkeypatch.setenv(runtime.BUDGET, "1000")
    memory.allocator = fail
    with pytest.raises(prplugin.MethodUnavailableError, match="ran out: none"), runtime.device_allocation("device"):
        memory.allocator(600)
    assert runtime.available_bytes() == 1000


def test_allocation_beyond_budget_raises(memory, monkeypatch):
    monkeypatch.setenv(runtime.BUDGET, "1000")
    message = r"the GPU's memory ran out: 500 bytes are wanted, and PRPLUGIN_DEVICE_MEMORY leaves 400 of 1,000"
    with runtime.device_allocation("device"):
        held = memory.allocator(600)
    with pytest.raises(prplugin.MethodUnavailableError, match=message), runtime.device_allocation("device"):
        memory.allocator(500)
    assert held.size == 600


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


@pytest.mark.parametrize("gpu", [False, True])
def test_budget_offers_gpu_methods_to_host_frames(monkeypatch, gpu):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None if gpu else "there is none")
    monkeypatch.setenv(runtime.BUDGET, "1GB")
    graph = prplugin.Graph(pd.DataFrame({"src": [1, 2], "dst": [2, 1]}))
    assert set(candidates(adjacency_of(graph))) == (DETERMINISTIC if gpu else {"numpy", "native"})


@pytest.mark.parametrize("frame_space", ["host", "device"])
def test_edges_beyond_budget_are_streamed(memory, monkeypatch, frame_space):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "attribute", lambda name: 232_448)
    monkeypatch.setattr(memory.cuda.runtime, "memGetInfo", lambda: (80 * 10**9, 80 * 10**9))
    n, m = 10**7, 3 * 10**8
    graph = Counts(n, m, False, "host", frame_space=frame_space)
    for size, chosen in (("40GB", None), ("480MB", "streamed")):  # a tenth of two columns of int64
        monkeypatch.setenv(runtime.BUDGET, size)
        found = choose("auto", graph, this_machine(), {}).name
        assert found == chosen if chosen else found != "streamed"
    monkeypatch.setenv(runtime.BUDGET, "100MB")
    with pytest.raises(prplugin.MethodUnavailableError, match=r"streamed: it needs about .* bytes of GPU memory"):
        choose("auto", graph, this_machine(), {})


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
def test_ranks_agree_within_budget_of_a_tenth_of_edges(monkeypatch, method, arguments, library):
    monkeypatch.delenv(runtime.BUDGET, raising=False)
    monkeypatch.setattr(streamed, "LEAST_BYTES", 2**16)
    edges = rmat(13, 200)
    edges["w"] = np.random.default_rng(0).random(len(edges))
    size = len(edges) * 16
    ranking = {}
    if "personalization" in arguments:
        ranking = {"personalization": {int(edges["src"][0]): 1.0, int(edges["dst"][5]): 3.0}}
        arguments = {}
    frame = rapids.as_cudf(edges) if library == "cudf" else edges
    expected = prplugin.Graph(frame, **arguments).rank(tol=1e-9, **ranking)
    peak = [0]
    bytes_left = runtime._reserve

    def record_peak(limit, gpu, wanted=0):
        before = bytes_left(limit, gpu, wanted)
        peak[0] = max(peak[0], runtime._used[gpu])
        return before

    monkeypatch.setattr(runtime, "_reserve", record_peak)
    monkeypatch.setenv(runtime.BUDGET, str(size // 10))
    found = prplugin.Graph(frame, **arguments).rank(tol=1e-9, **ranking)
    assert found.method == method
    assert 0 < peak[0] <= size // 10
    assert type(found.frame) is type(frame)
    one, other = rapids.on_host(found.frame["pagerank"]), rapids.on_host(expected.frame["pagerank"])
    assert np.abs(one - other).sum() <= found.error_bound + expected.error_bound
    assert (rapids.on_host(found.frame["vertex"]) == rapids.on_host(expected.frame["vertex"])).all()
