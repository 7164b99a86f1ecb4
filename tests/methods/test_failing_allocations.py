"""Failure of each device allocation in turn: OutOfMemoryError, no leak, and the same bits in the next call."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import prplugin
from conformance import rapids
from prplugin.machine import this_machine
from prplugin.methods.registry import methods
from prplugin.types.arrays import to_host

UNAVAILABLE = rapids.missing("cudf")
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.gpu,
    pytest.mark.skipif(bool(UNAVAILABLE), reason=str(UNAVAILABLE)),
]

GPU_METHODS = [
    name
    for name, method in methods().items()
    if method.runs_on == "gpu" and not method.unavailable_reason(None, this_machine())
]


class FailingResource:
    """Memory resource that counts allocations and fails at one of them."""

    def __init__(self, failing: int = 0) -> None:
        self.failing, self.count = failing, 0
        import rmm

        upstream = rmm.mr.CudaMemoryResource()

        def allocate(size, stream):
            self.count += 1
            if self.count == self.failing:
                raise MemoryError("std::bad_alloc: injected")
            return upstream.allocate(size, stream)

        callbacks = rmm.mr.CallbackMemoryResource(allocate, upstream.deallocate)
        self.resource = rmm.mr.TrackingResourceAdaptor(callbacks)

    @property
    def leaked(self) -> int:
        return self.resource.get_allocated_bytes()


@contextmanager
def failing_resource(monkeypatch, failing=0):
    import rmm

    # pytest would keep exceptions that Thrust ignores, with the arrays of their frames.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    before, resource = rmm.mr.get_current_device_resource(), FailingResource(failing)
    rmm.mr.set_current_device_resource(resource.resource)
    try:
        yield resource
    finally:
        gc.collect()
        rmm.mr.set_current_device_resource(before)


def frame(ids="int32"):
    random = np.random.default_rng(5)
    endpoints = random.integers(0, 60, (2, 400))
    columns = {"src": endpoints[0].astype(np.int32), "dst": endpoints[1].astype(np.int32), "w": random.random(400)}
    cudf = rapids.module("cudf")
    resource = cudf.DataFrame(columns)
    if ids == "str":
        resource["src"], resource["dst"] = resource["src"].astype("str"), resource["dst"].astype("str")
    return (
        resource
        if ids != "sparse"
        else resource.assign(src=resource["src"] * 1_000_003, dst=resource["dst"] * 1_000_003)
    )


def ranks(edges, **options):
    return [edges.pagerank(**options)["pagerank"].to_numpy()]


def compressed(edges):
    """Return both layouts; read through host memory, the entries of a row may have another order."""
    graph, arrays = prplugin.Graph(edges, weight="w"), []
    for offsets, indices, weights in (map(to_host, layout) for layout in (graph.csr(), graph.csc())):
        order = np.lexsort((weights, indices, np.repeat(np.arange(offsets.size - 1), np.diff(offsets))))
        arrays += [offsets, indices[order], weights[order]]
    return arrays


def bits(arrays):
    return [array.tobytes() for array in arrays]


CALLS = {
    **{f"method {name}": (lambda edges, name=name: ranks(edges, method=name), "int32") for name in GPU_METHODS},
    "weights": (lambda edges: ranks(edges, weight="w"), "int32"),
    "sparse ids": (ranks, "sparse"),
    "strings": (ranks, "str"),
    "undirected, first": (lambda edges: ranks(edges, directed=False, duplicates="first", weight="w"), "int32"),
    "personalized": (lambda edges: ranks(edges, personalization={3: 1}, dangling=[1, 2], nstart={4: 2}), "int32"),
    "top, certified": (lambda edges: ranks(edges, top=5, certified=True), "int32"),
    "among": (lambda edges: ranks(edges, among=[5, 3]), "int32"),
    "many seeds": (lambda edges: ranks(edges, seeds=list(range(20))), "int32"),
    "many seeds, top": (lambda edges: ranks(edges, seeds=[{1: 1}, {2: 1, 3: 4}], top=3, weight="w"), "int32"),
    "arrays": (compressed, "int32"),
}


def errors_of(call, edges, expected):
    """Return the type of the error of a call, if any, and those of the errors that it replaced.

    A destructor of cuDF that calls `free` while an exception is pending raises SystemError.
    """
    try:
        # Through host memory the call may succeed; sums have another order there.
        for found, array in zip(call(edges), expected, strict=True):
            np.testing.assert_allclose(found, array, rtol=0, atol=2e-6)
    except (prplugin.OutOfMemoryError, SystemError) as error:
        raised: BaseException | None = error
        types = []
        while raised is not None:
            types.append(type(raised))
            raised = raised.__cause__ or raised.__context__
        return types
    return []


@pytest.mark.parametrize("name", CALLS)
def test_failing_allocation_raises_and_frees_memory(name, monkeypatch):
    call, ids = CALLS[name]
    edges = frame(ids)
    if name.removeprefix("method ") == "edge":
        pytest.skip("edge is nondeterministic")
    expected = call(edges)
    with failing_resource(monkeypatch) as counted:
        assert bits(call(edges)) == bits(expected)
    assert counted.count
    for failing in range(1, counted.count + 1):
        with failing_resource(monkeypatch, failing) as resource:
            errors = errors_of(call, edges, expected)
            gc.collect()
            assert not resource.leaked, f"allocation {failing}: {resource.leaked} bytes are leaked, after {errors}"
        if failing % 10 == 1:
            assert bits(call(edges)) == bits(expected)
