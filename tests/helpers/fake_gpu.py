"""A GPU for tests without one: NumPy arrays, and launches whose arguments are checked against the .cu files.

`launches` are executed by functions in NumPy, `ON_THE_HOST`, one per kernel. A test adds those that it needs.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np

from prplugin import gpu
from prplugin.gpu import runtime
from prplugin.graph import edges
from prplugin.graph.teleports import sums_of_runs
from prplugin.papers import segmented
from prplugin.types.arrays import to_host
from prplugin.types.edges import offset_dtype

__all__ = ["install", "load"]

SCALARS = {
    "long long": (int, np.int64), "int": (np.int32,), "float": (np.float32,), "double": (float, np.float64),
}  # fmt: skip
NULL = 0  # as CuPy takes a null pointer
ELEMENTS = {"float": np.float32, "double": np.float64, "int": np.int32, "long long": np.int64, "Totals": np.float64}


class Array(np.ndarray):
    """An array with the transfers of CuPy."""

    def get(self, stream=None, out=None, blocking=True):
        if out is None:
            return np.array(self)
        out[:] = self
        return out

    def set(self, values, stream=None):
        assert values.dtype == self.dtype
        self[:] = values

    @property
    def device(self):
        return nullcontext()

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def on_host(function):
    """Return a function of arrays in device memory that computes its result with arrays of the host."""

    def call(*arguments, **options):
        found = function(*map(to_host, arguments), **options)
        return tuple(map(to_device, found)) if isinstance(found, tuple) else to_device(found)

    def to_device(found):
        return found.view(Array) if isinstance(found, np.ndarray) else found

    return call


class CPointer:
    """A struct by value, whose arrays are those of `values`."""

    def __init__(self, address):
        self.address = address


class Stream:
    def __init__(self, **_):
        pass

    def synchronize(self):
        pass

    def record(self, *_):
        return self

    def wait_event(self, event):
        assert event is not None


class FakeCupy(ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found

        def on_the_gpu(*arguments, **options):
            result = found(*arguments, **options)
            return result.view(Array) if isinstance(result, np.ndarray) else result

        return on_the_gpu


def parameters(path, name):
    """Return type and name of each parameter of a kernel."""
    text = re.sub(r"//.*|__restrict__", "", runtime.source(path)).replace("\\\n", " ")
    defined = re.search(r"#define SEGMENT\s+([^\n]*)", text)
    listed = re.search(
        rf'extern "C" __global__ void\s+(?:\w+(?:\((?:[^()]|\([^()]*\))*\))?\s+)?{name}\(([^()]*)\)', text
    )[1]
    if defined:
        listed = listed.replace("SEGMENT", defined[1])
    return [
        re.fullmatch(r"(?:const )?(?:__grid_constant__ )?(.+?) (\**)\s*(\w+)", " ".join(each.split())).groups()
        for each in listed.split(",")
    ]


def check(path, name, macros, arguments):
    declared = parameters(path, name)
    assert len(arguments) == len(declared), (path, name, len(arguments), declared)
    for (declared_kind, pointer, parameter), given in zip(declared, arguments, strict=True):
        found = macros.get(declared_kind, declared_kind)
        kind = runtime.ctype(found) if isinstance(found, np.dtype) else found
        where = path, name, parameter, kind, type(given)
        if isinstance(given, CPointer):
            assert given.declared.name == kind, where
        elif not pointer:
            assert type(given) in SCALARS[kind], where
        elif hasattr(given, "dtype") and given is not NULL and kind in ELEMENTS:
            assert given.dtype == ELEMENTS[kind], (*where, given.dtype)
            assert given.flags.c_contiguous, where


def load(monkeypatch, *names):
    """Return modules of `prplugin.gpu` that import CuPy, imported anew with the GPU that `install` pretends."""
    loaded = []
    for name in names:
        whole = f"prplugin.gpu.{name}"
        spec = importlib.util.spec_from_file_location(whole, runtime.ROOT / "gpu" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, whole, module)
        monkeypatch.setattr(gpu, name, module, raising=False)
        spec.loader.exec_module(module)
        loaded.append(module)
    return loaded


def install(monkeypatch, kernels):
    """Pretend that there is a GPU, whose kernels are functions of the grid, the macros and their arguments."""
    fake = FakeCupy("cupy")
    fake.ndarray = Array
    properties = {"name": b"a GPU of NumPy"}
    fake.cuda = SimpleNamespace(
        Stream=Stream, Event=Stream, Device=lambda *_: SimpleNamespace(compute_capability="90", id=0),
        function=SimpleNamespace(CPointer=CPointer), get_current_stream=Stream, get_elapsed_time=lambda *_: 0.01,
        runtime=SimpleNamespace(
            getDeviceCount=lambda: 1, getDevice=lambda: 0, memGetInfo=lambda: (1 << 40, 1 << 40),
            CUDARuntimeError=RuntimeError, getDeviceProperties=lambda _: properties, deviceSynchronize=lambda: None,
        ),
    )  # fmt: skip
    fake.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 0)
    fakex = ModuleType("cupyx")
    fakex.empty_pinned = np.empty
    for name, module, lazy in (("cupy", fake, gpu.cupy), ("cupyx", fakex, gpu.cupyx)):
        monkeypatch.setitem(sys.modules, name, module)
        for attribute in set(vars(lazy)) - {"_name"}:
            monkeypatch.delattr(lazy, attribute)
        monkeypatch.setattr(lazy, "_name", name)
        # `_Lazy` caches what it has imported.
        monkeypatch.setattr(type(lazy), "__getattr__", lambda self, each: getattr(sys.modules[self._name], each))
    launched = []

    def kernel(path, name, /, **macros):
        def launch(grid, block, arguments, shared_mem=0):
            assert 1 <= grid[0] < 2**31
            assert 1 <= block[0] <= 1024
            check(path, name, macros, arguments)
            launched.append((path, name, grid[0], block[0], macros))
            values = (SimpleNamespace(**each.values) if isinstance(each, CPointer) else each for each in arguments)
            kernels[name](grid[0], block[0], macros, *values)

        launch.max_dynamic_shared_size_bytes = 0
        return launch

    def captured(pulls, *arrays):
        def launch():
            for pull in pulls:
                pull(*arrays)

        launch()
        return SimpleNamespace(launch=launch)

    def grouped(rows, columns, weights, n):
        offsets, indices, weights = edges._compress(rows, columns, weights, n)
        return offsets.astype(offset_dtype(columns.size)), indices, weights

    group = {
        "grouped": grouped, "degrees": edges.group_sizes, "sums_by": edges.sum_out_weight,
        "run_sums": sums_of_runs, "groups_of": lambda offsets, m, dtype: edges.rows_of(offsets, m).astype(dtype),
    }  # fmt: skip
    group = SimpleNamespace(**{name: on_host(function) for name, function in group.items()})
    monkeypatch.setattr(gpu, "group", group, raising=False)
    monkeypatch.setitem(sys.modules, "prplugin.gpu.group", group)
    monkeypatch.setattr(runtime, "kernel", kernel)
    monkeypatch.setattr(
        runtime, "allocate", lambda *wanted, cleared=False: [np.zeros(*each).view(Array) for each in wanted]
    )
    monkeypatch.setattr(segmented, "captured", captured)
    return launched
