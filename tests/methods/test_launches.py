"""Launches of kernels that only a GPU runs: their arguments are checked against the .cu files, and nothing is computed."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import fake_gpu
import numpy as np
import pytest
from fake_gpu import Array, install, load

from prplugin.gpu import blocks, runtime
from prplugin.graph.edges import Edges
from prplugin.machine import Machine
from prplugin.methods import persistent, propagation_blocking
from prplugin.methods.engines import gpu_merge
from prplugin.methods.engines.gpu_batch import DeviceBatch
from prplugin.types.edges import Coo, Csc

N = 50
ATTRIBUTES = {
    "MaxSharedMemoryPerBlockOptin": 232_448, "MaxThreadsPerMultiProcessor": 2048, "MultiProcessorCount": 132,
}  # fmt: skip
UNSIGNED = {"unsigned": np.uint32, "unsigned int": np.uint32, "unsigned long long": np.uint64, "wide_t": np.uint64}


class Pointer:
    """A `cupy.cuda.MemoryPointer`."""

    ptr = 4096

    def __add__(self, distance):
        return self

    def memset_async(self, value, size):
        pass


class Allocated(Array):
    """An array whose memory has an address."""

    def __new__(cls, shape, dtype=np.float64, pointer=None):
        return np.zeros(shape, dtype).view(cls)

    @property
    def data(self):
        return Pointer()


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """Return the launches on a GPU whose kernels do nothing."""
    launched = install(monkeypatch, defaultdict(lambda: lambda *_: None))
    cupy = sys.modules["cupy"]
    cupy.empty = cupy.zeros = cupy.ndarray = Allocated
    cupy.cuda.alloc = lambda size: Pointer()
    cupy.cuda.driver = SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda *_: 2)
    for name, scalar in UNSIGNED.items():
        monkeypatch.setitem(fake_gpu.SCALARS, name, (scalar,))
    monkeypatch.setattr(runtime, "attribute", ATTRIBUTES.get)
    of_install = runtime.kernel

    def kernel(*of, **macros):
        one = of_install(*of, **macros)

        def launch(*arguments, shared_mem=0, enable_cooperative_groups=False):
            one(*arguments, shared_mem)

        launch.kernel, launch.ptr, launch.max_dynamic_shared_size_bytes = launch, 0, 0
        return launch

    monkeypatch.setattr(runtime, "kernel", kernel)
    return launched


def names(launched):
    return {name for _, name, *_ in launched}


def on_device(array):
    return None if array is None else array.view(Array)


class OnDevice:
    """A graph in device memory."""

    memory_space = "device"

    def __init__(self, graph):
        self._graph, self.out_weight = graph, on_device(graph.out_weight)
        graph.add(Csc(*map(on_device, graph.get(Csc))))

    def __getattr__(self, name):
        return getattr(self._graph, name)


def problem(weighted, **vectors):
    random = np.random.default_rng(0)
    source, destination = (on_device(column.astype(np.int32)) for column in random.integers(0, N, (2, 400)))
    graph = OnDevice(Edges(Coo(source, destination, random.random(400) if weighted else None, N)))
    given = {"personalization": None, "dangling": None} | vectors
    return SimpleNamespace(adjacency=graph, alpha=0.85, vector_depth=0, **given)


def vector():
    return on_device(np.full(N, 1 / N))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", ["no vectors", "personalization", "dangling"])
@pytest.mark.parametrize("method", [persistent, propagation_blocking], ids=["persistent", "propagation-blocking"])
def test_iterations(launched, monkeypatch, method, given, weighted):
    given = problem(weighted, **{given: vector()})
    given.on = lambda space: given
    monkeypatch.setattr(blocks, "split", lambda chunks, most: np.zeros((1, 3), np.int64))
    step = method.prepare(given, Machine(threads=1))
    for dtype in ("float64", "float32"):
        step.set_contribution_dtype(dtype)
        for free_start, ranks in ((False, 1 / N), (True, 1 / N), (False, vector())):
            step.free_start = free_start
            step.start(ranks)
            step._iterate(step._latest, step._totals[0], 5, 1e-6, 0.9, 2.0, 10.0)
    step._allocate_history(1e-6, 1.0)
    step._history.set(phase=gpu_merge.BEGINNING, width=32)
    step._iterate(step._latest, step._totals[0], 5, 1e-6, 0.9, 2.0, 10.0, step._history)
    assert step.rest()
    step.reuse(given)
    step.start(1 / N)
    step._iterate(step._latest, step._totals[0], 5, 1e-6, 0.9, 2.0, 10.0)
    assert names(launched) >= {"merge_start", "propagate" if method is propagation_blocking else "persist"}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dangling", [None, vector()], ids=["v", "w"])
def test_many_seeds(launched, monkeypatch, weighted, dangling):
    monkeypatch.setattr("prplugin.methods.engines.gpu_batch._crossing", lambda pieces: (Allocated(1, np.int64), 1))
    step = DeviceBatch(problem(weighted, dangling=dangling), 8)
    entries = on_device(np.arange(2)), on_device(np.arange(2)), on_device(np.ones(2))
    seeds = SimpleNamespace(entries_by_vertex=lambda: entries)
    step.seed(SimpleNamespace(count=2, on=lambda space: seeds))
    for dtype in ("float64", "float32"):
        step.set_contribution_dtype(dtype)
        step.start(None)
        step()
        step(Allocated((N, 8), np.float32))
    assert names(launched) >= {"batch_begin", "batch_step", "batch_cross", "batch_total"}


@pytest.mark.parametrize("ordered", [False, True])
def test_blocks(launched, ordered):
    source, destination = np.random.default_rng(0).integers(0, N, (2, 400)).astype(np.int32)
    layout, *_ = blocks.build(on_device(source), on_device(destination), 0, N, N, 6, 5, ordered=ordered)
    blocks.endpoints(replace(layout, marks=blocks.all_marks(N)), N)
    assert names(launched) >= {"by_tile", "by_piece", "finish_cells", "endpoints"}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_ids(launched, monkeypatch, dtype):
    sort, factorize = load(monkeypatch, "sort", "factorize")
    columns = [on_device(np.arange(9000).astype(dtype)) for _ in range(3)]
    weights = on_device(np.ones(9000))
    factorize.extremes([], weights)
    for some in (columns[:1], columns[:2], columns):
        factorize.extremes(some, weights)
        factorize._estimate(some)
        factorize._dense(some, 0, 9000)
        factorize._insert(some, np.dtype(dtype), np.uint64(0), Allocated(101, np.uint64))
        factorize._factorize_one_block(some, 9)
    for bits in (5, 17):
        for payloads in ((), (columns[1],), (columns[1], weights)):
            sort.sorted_by(columns[0], bits, *payloads)
            sort.sorted_by(columns[0], bits, *payloads, owned=True)
            sort.sorted_by(sort.distances(columns[0], 3), bits, *payloads)
        sort.order_of(columns[0], bits)
    sort.partitioned(columns[0], 17, weights)
    assert names(launched) >= {"extremes", "encode", "sketch", "insert", "digit_counts", "sort_pass"}


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [2, 3])
def test_strings(launched, monkeypatch, width, columns):
    _, _, strings = load(monkeypatch, "sort", "factorize", "strings")
    monkeypatch.setattr(strings, "slots_needed", lambda hashes: 50)
    found = Allocated(5, np.uint64)
    found[:] = 3, 0, 0, 5, 0  # distinct strings, failures; and the bytes of the strings
    monkeypatch.setattr(
        sys.modules["cupy"], "zeros", lambda shape, dtype: found if shape == 5 else Allocated(shape, dtype)
    )
    column = strings.Strings(Allocated(30, np.uint8), on_device(np.arange(0, 33, 3).astype(width)))
    assert strings.factorize_strings([column] * columns) is not None
    assert names(launched) >= {"hash_strings", "insert", "collect", "place", "recode", "copy_strings"}
