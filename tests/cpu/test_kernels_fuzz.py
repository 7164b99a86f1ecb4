"""Every kernel with random valid arguments: it writes only what it may, the same bits on any number of threads.

`.ci/sanitize` runs this on a library that checks every access and every operation on integers.

A kernel is tested here by an entry in `INPUTS`; kernels of updates, packing and runs, which read structures of several
arrays, have tests of their own beside this file. An entry is a function of a `Draw` that returns the sizes of dimensions, and the arguments whose
values matter, by name. Others are drawn: numbers in [0, 1) for floats, zeros for integers, None for some optional
arrays, 1 to 3 threads. Arrays named `scratch` may differ between numbers of threads.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from typing import Any

import numpy as np
import pytest

import prplugin
from prplugin.cpu.library import VARIABLES, Kernel

SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257, 1000, 5000]
"""With widths of vectors and sizes of blocks, plus and minus one."""

BEYOND_32_BITS = 2**31 + 5


class Draw:
    """Random numbers for the arguments of one call.

    With `first`, compressed rows begin there, and optional arrays are None: they may be as long as the edges.
    """

    def __init__(self, size: int, types: dict[str, str], seed: int, first: int | None = None) -> None:
        self.size, self.types, self.first = size, types, first or 0
        self.has_optional = first is None
        self.random = np.random.default_rng(seed)

    def integers(self, high: int, size: Any, dtype: str = "i8") -> Any:
        """Return integers below `high`, or zeros if there are none; `dtype` may be a type variable."""
        return self.random.integers(0, max(high, 1), size).astype(self.types.get(dtype, dtype))

    def one_of(self, *values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def rows(self, rows: int, columns: int, dtype: str) -> tuple[Any, Any]:
        """Return offsets and indices of compressed rows, some empty and one long, that begin at `first`."""
        lengths = self.random.integers(0, 5, rows) * (columns > 0)
        if rows and columns:
            lengths[self.random.integers(rows)] = self.random.integers(2000)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype="i8")))
        # Pages of zeros that nothing touches take no memory.
        indices = np.zeros(self.first + offsets[-1], self.types[dtype])
        indices[self.first :] = self.integers(columns, offsets[-1])
        return offsets + self.first, indices


def iterate(draw: Draw) -> dict[str, Any]:
    n, size = draw.size, max(draw.size, 1)
    offsets, sources = draw.rows(n, n, "I")
    period, cycles = draw.one_of((0, 0), (2, 1), (5, 2), (8, 2)) if draw.has_optional else (0, 0)
    history = ... if cycles else None
    return {
        "n": n, "m": sources.size, "budget": 40, "rows": max(period * cycles + cycles - 1, 0), "offsets": offsets,
        "sources": sources, "target": np.full(draw.one_of(1, size), 1 / size),
        "teleport": np.full(draw.one_of(1, size), 0.15 / size), "alpha": 0.85, "fan_in": 32, "memory": np.zeros(704),
        "norm": 1.0, "goal": draw.one_of(-1.0, 1e-6), "period": period, "cycles": cycles,
        "history": history, "scratch": history,
    }  # fmt: skip


def step_rows(draw: Draw) -> dict[str, Any]:
    known = {name: value for name, value in iterate(draw).items() if name in ("n", "m", "offsets", "sources", "target")}
    more = {"all": draw.size, "teleport": np.full(1, 0.1), "alpha": 0.85, "fan_in": 32, "dangling": 0.1}
    return known | more


def count_ids(draw: Draw) -> dict[str, Any]:
    n, parts = draw.size, draw.one_of(1, 2, 3)
    ids = draw.integers(n, 3 * n, "I") - np.array(7, draw.types["I"])
    return {"m": 3 * n, "n": n, "parts": parts, "ids": ids, "low": -7}


def add_compensated(draw: Draw) -> dict[str, Any]:
    n = draw.size
    return {"k": 3 * n, "n": n, "groups": draw.integers(n, 3 * n, "I")}


def scatter(draw: Draw) -> dict[str, Any]:
    n = draw.size
    targets = draw.integers(n, 3 * n, "I")
    places = np.cumsum(np.bincount(targets, minlength=n)) - np.bincount(targets, minlength=n)
    weights = draw.one_of(..., None)
    return {
        "k": 3 * n, "n": n, "m": 3 * n, "sources": draw.integers(n, 3 * n, "I"), "targets": targets,
        "places": places, "weights": weights, "placed_weights": weights,
    }  # fmt: skip


def batch_step(draw: Draw) -> dict[str, Any]:
    n, width = draw.size, draw.one_of(8, 16, 40, 64)
    offsets, sources = draw.rows(n, n, "I")
    return {
        "n": n, "m": sources.size, "width": width, "teleports": 2, "offsets": offsets, "sources": sources,
        "fan_in": 32, "teleport_rows": draw.integers(3, n) - 1, "live": draw.integers(2, width, "u1"),
    }  # fmt: skip


def batch_columns(draw: Draw) -> dict[str, Any]:
    n, width, rows = draw.size, draw.one_of(8, 16, 40, 64), 5
    return {
        "n": n, "width": width, "rows": rows, "stride": n * width + draw.one_of(0, 24), "k": 3, "seeds": width - 1,
        "chosen": draw.integers(rows, 3),
    }  # fmt: skip


INPUTS = {
    "iterate": iterate,
    "step_rows": step_rows,
    "count_ids": count_ids,
    "add_compensated": add_compensated,
    "scatter": scatter,
    "batch_step": batch_step,
    "batch_begin": batch_columns,
    "batch_products": batch_columns,
    "batch_mix": batch_columns,
    "batch_transpose": batch_columns,
}

WITH_OFFSETS = ["iterate"]
"""Kernels that read compressed rows in place, wherever the offsets say."""


def all_kernels() -> dict[str, Kernel]:
    """Return the kernels that any module of the package declares."""
    found = {}
    for module in pkgutil.walk_packages(prplugin.cpu.__path__, "prplugin.cpu."):
        declared = vars(importlib.import_module(module.name)).values()
        found |= {each.name: each for each in declared if isinstance(each, Kernel)}
    return found


KERNELS = all_kernels()
VARIANTS = [
    (name, types)
    for name, kernel in ((name, KERNELS[name]) for name in INPUTS)
    for types in itertools.product(*(VARIABLES[variable] for variable in kernel.variables))
]


def arguments(kernel: Kernel, draw: Draw) -> dict[str, Any]:
    """Return all arguments of a call by name."""
    given = INPUTS[kernel.name](draw)
    drawn: dict[str, Any] = {}
    for parameter in kernel.parameters:
        name = parameter.name
        wanted = given.get(name, ...)
        if wanted is ... and not parameter.is_array:
            wanted = {"threads": 1}[name]
        if wanted is ... and parameter.optional and name not in given and not draw.has_optional & draw.one_of(0, 1):
            wanted = None
        if wanted is ...:
            shape = [-(-given.get(size, 0) // divisor) + more for size, more, divisor in parameter.dimensions]
            dtype = draw.types.get(parameter.dtype, parameter.dtype)
            wanted = draw.random.random(shape).astype(dtype) if dtype[0] == "f" else np.zeros(shape, dtype)
        drawn[name] = wanted
    return drawn


def call(kernel: Kernel, drawn: dict[str, Any], threads: int) -> tuple[int, dict[str, Any]]:
    """Call a kernel on copies of what it writes; return its result and these copies."""
    written = {
        each.name: drawn[each.name].copy()
        for each in kernel.parameters
        if each.written and drawn[each.name] is not None
    }
    passed = drawn | written | ({"threads": threads} if "threads" in drawn else {})
    before = {
        name: array.copy() for name, array in passed.items() if isinstance(array, np.ndarray) and array.size < 1e6
    }
    result = kernel(*passed.values())
    for name in before.keys() - written.keys():
        np.testing.assert_array_equal(passed[name], before[name], err_msg=f"{kernel.name} wrote to {name}")
    return result, {name: array for name, array in written.items() if "scratch" not in name}


@pytest.mark.parametrize(("name", "types"), VARIANTS, ids=["_".join((name, *types)) for name, types in VARIANTS])
def test_random_arguments(name, types):
    kernel = KERNELS[name]
    for seed, size in enumerate(SIZES * 3):
        drawn = arguments(kernel, Draw(size, dict(zip(kernel.variables, types, strict=True)), seed))
        expected, alone = call(kernel, drawn, 1)
        for threads in (2, 3, 100) if "threads" in drawn else ():
            result, together = call(kernel, drawn, threads)
            assert result == expected, (seed, size, threads)
            for array in alone:
                np.testing.assert_array_equal(together[array], alone[array], err_msg=f"{array}: {seed, size, threads}")


@pytest.mark.parametrize("name", WITH_OFFSETS)
def test_offsets_beyond_32_bits(name):
    kernel = KERNELS[name]
    types = {variable: VARIABLES[variable][0] for variable in kernel.variables}
    near = arguments(kernel, Draw(100, types, seed=1, first=0))
    try:
        far = arguments(kernel, Draw(100, types, seed=1, first=BEYOND_32_BITS))
    except MemoryError:
        pytest.skip("needs 9 GB of address space")
    expected, arrays = call(kernel, near, 2)
    result, others = call(kernel, far, 2)
    assert result == expected
    for array in arrays:
        np.testing.assert_array_equal(others[array], arrays[array])
