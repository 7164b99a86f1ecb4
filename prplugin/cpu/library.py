"""The compiled CPU kernels: loading, and the check of every argument before a pointer is passed.

A kernel is declared by its name and its parameters, those of the package in `prplugin.cpu.kernels`:

    count_ids = Kernel("count_ids", "ids:I[m] low:i8 counts:K[n]!")

Scalars are ``i8`` or ``f8``. Arrays are C-contiguous and have a type (``i1``, ``i4``, ``i8``, ``f4``, ``f8``, ``u1``,
in the notation of NumPy) or a type variable, and dimensions: a number, a name, a name plus a number (at least that
number), or a name over a number, rounded up. A name stands for the same size wherever it occurs. ``!`` marks arrays
that the kernel writes, ``?`` those that may be None, whose dimensions are then not known. Type variables are `I`, `K`:
i4 or i8; `F`, `G`: f4 or f8.

The C function gets the sizes of all names first, in the order of their first occurrence, then the arguments. Its name
has the types of the type variables as suffixes, in the same order: `count_ids_i4_i8`.
"""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import NoReturn, cast

import numpy as np

from prplugin.cpu.build import LIBRARIES, digest, suffix

VARIABLES = {"I": ("i4", "i8"), "K": ("i4", "i8"), "F": ("f8", "f4"), "G": ("f8", "f4")}
"""Types that a type variable stands for; the first one if all of its arrays are None."""

DTYPES = {np.dtype(name): name for name in ("i1", "i4", "i8", "f4", "f8", "u1")} | {np.dtype(np.bool_): "u1"}
"""Types of arguments, in the byte order of the machine."""

CONTIGUOUS_AND_ALIGNED, WRITABLE = 0x101, 0x400
"""Bits of `ndarray.flags.num`, in the ABI of NumPy; the attributes take three times as long."""

HEADER = object.__basicsize__
"""Bytes of an array object before the address of its data, in the ABI of NumPy; `ndarray.ctypes` takes 2 us."""

INTERRUPTED = -(2**63)
"""Result of a kernel that ended since a signal handler raised an exception."""


@cache
def libraries() -> list[ctypes.CDLL]:
    """Load the kernels, those of the highest instruction level first; raise OSError if there are none."""
    end = suffix(platform.system())
    found = [_load_current(f"kernels-1{end}")]
    if (level := found[0].instruction_level()) > 1:
        found.insert(0, _load_current(f"kernels-{level}{end}"))
    python = ctypes.pythonapi
    functions = python.PyGILState_Ensure, python.PyGILState_Release, python.PyErr_CheckSignals, python.PyErr_Fetch
    addresses = (ctypes.c_void_p * 4)(*(ctypes.cast(function, ctypes.c_void_p).value for function in functions))
    for each in found:
        each.connect_interpreter(addresses)
    return found


def _load_current(name: str) -> ctypes.CDLL:
    """Load a library; raise OSError if it was compiled from other sources, whose kernels may have other parameters."""
    path = LIBRARIES / name
    if not path.exists():
        raise OSError(_why_not_compiled(path.parents[2]))
    found = ctypes.CDLL(str(path))
    found.sources_digest.restype = ctypes.c_int64
    if found.sources_digest() != digest():
        raise OSError(
            f"{path} was compiled from other sources: run python prplugin/cpu/build.py, or install prplugin again"
        )
    return found


def _why_not_compiled(package: Path) -> str:
    """Return why there are no libraries in the imported folder of the package, and what to do."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import

    imported = f"prplugin was imported from {package}, which has no compiled CPU kernels"
    install = f'pip install -e "{package.parent}"'
    try:
        installed = Path(str(distribution("prplugin").locate_file("prplugin")))
    except PackageNotFoundError:
        return f"{imported}, as it is not installed: run {install}"
    if installed.exists() and not installed.samefile(package):
        return f"{imported}; it is installed in {installed}: start Python in another folder, or run {install}"
    return f"{imported}, as no C++ compiler could be used when it was installed: install one, and prplugin again"


@cache
def unavailable_reason() -> str | None:
    """Return why there are no compiled kernels, or None."""
    try:
        libraries()
    except OSError as error:
        return str(error)
    return None


def is_available() -> bool:
    """Return whether compiled kernels are there and can be loaded."""
    return unavailable_reason() is None


class Kernel:
    """A function of the library, by its name without types, and the declarations of its parameters."""

    def __init__(self, name: str, parameters: str) -> None:
        self.name, self._declared = name, parameters

    @cached_property
    def parameters(self) -> list[_Parameter]:
        """Parameters, parsed on the first call."""
        return [_Parameter(declared) for declared in self._declared.split()]

    @property
    def variables(self) -> list[str]:
        """Type variables, in the order of their first occurrence."""
        return list(dict.fromkeys(each.dtype for each in self.parameters if each.dtype in VARIABLES))

    @cached_property
    def _sizes(self) -> list[str]:
        return list(dict.fromkeys(size for each in self.parameters for size, *_ in each.dimensions if size))

    def __call__(self, *arguments: object, **named: object) -> int:
        """Check the arguments and call the kernel without the interpreter's lock; return its result."""
        found: int = self._checked_call(*arguments, **named)
        if found == INTERRUPTED:
            _raise_exception()
        return found

    @cached_property
    def _checked_call(self) -> Callable[..., int]:
        """Function generated from the declarations: a loop over them takes several times as long as a small kernel."""
        sizes = {size: f"_size_{size}" for size in self._sizes}
        types = {variable: f"_type_{variable}" for variable in self.variables}
        arguments = [each.name for each in self.parameters]
        lines = [f"def call({', '.join(arguments)}):"]
        lines += [f"    {name} = None" for name in (*sizes.values(), *types.values())]
        for index, (each, argument) in enumerate(zip(self.parameters, arguments, strict=True)):
            if each.is_array:
                checks = each.checks(argument, sizes, types, f"_fail({index}, {argument}, locals())")
                lines += [f"    if {argument} is not None:"] if each.optional else []
                indent = "        " if each.optional else "    "
                lines += [indent + line for line in (*checks, f"{argument} = _pointer_at(id({argument}) + _HEADER)")]
        key = "".join(f"{name} or {VARIABLES[variable][0]!r}, " for variable, name in types.items())
        lines.append(
            f"    return _load({key})({', '.join([*(f'{size} or 0' for size in sizes.values()), *arguments])})"
        )
        names: dict[str, object] = {
            "_fail": self._fail, "_load": cache(self._load), "_dtypes": DTYPES, "_ndarray": np.ndarray,
            "_pointer_at": ctypes.c_void_p.from_address, "_HEADER": HEADER,
        }  # fmt: skip
        exec("\n".join(lines), names)  # of declarations in this package alone
        return cast("Callable[..., int]", names["call"])

    def _load(self, *variant: str) -> Callable[..., int]:
        name = "_".join((self.name, *variant))
        library = next(each for each in libraries() if hasattr(each, name) or hasattr(each, f"instance_{name}"))
        types = [ctypes.c_int64] * len(self._sizes) + [parameter.ctype for parameter in self.parameters]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *types)
        if hasattr(library, name):
            return prototype((name, library))
        return ctypes.cast(ctypes.c_void_p.in_dll(library, f"instance_{name}"), prototype)

    def _fail(self, index: int, argument: object, known: dict[str, object]) -> NoReturn:
        """Raise TypeError for the argument of a parameter; `known` has the sizes and types of those before."""
        each = self.parameters[index]
        if not isinstance(argument, np.ndarray):
            why = "is no array"
        elif DTYPES.get(argument.dtype) != (expected := known.get(f"_type_{each.dtype}") or each.dtype):
            why = f"has type {argument.dtype.str.lstrip('<|')}, not {expected}"
        elif argument.flags.num & each.flags != each.flags:
            why = f"is not contiguous, aligned{' and writable' if each.written else ''}"
        else:
            sizes = {size: known[f"_size_{size}"] for size in self._sizes if known[f"_size_{size}"] is not None}
            why = f"has shape {argument.shape}, where {sizes} are known"
        raise TypeError(f"argument {each.name} of the kernel {self.name} {why}")


class _Parameter:
    """One parameter of a kernel; its `dimensions` are a size's name or "", what is added, and a divisor, rounded up."""

    def __init__(self, declared: str) -> None:
        self.name, kind = declared.split(":")
        kind, _, shape = kind.partition("[")
        self.dtype = kind
        self.is_array = bool(shape)
        self.variants = VARIABLES.get(kind, (kind,))
        self.written, self.optional = "!" in shape, "?" in shape
        self.flags = CONTIGUOUS_AND_ALIGNED | WRITABLE * self.written
        sizes = re.findall(r"([a-z_]*)\+?(\d*)(?:/(\d+))?[,\]]", shape)
        self.dimensions = [(name, int(more or 0), int(divisor or 1)) for name, more, divisor in sizes]
        self.ctype = ctypes.c_void_p if self.is_array else ctypes.c_double if kind == "f8" else ctypes.c_int64

    def checks(self, argument: str, sizes: dict[str, str], types: dict[str, str], failed: str) -> list[str]:
        """Return lines of Python that compare an array with the sizes and types known so far."""
        lines = [f"if not isinstance({argument}, _ndarray): {failed}", f"_dtype = _dtypes.get({argument}.dtype)"]
        if (known := types.get(self.dtype)) is None:
            wrong = f"_dtype != {self.dtype!r}"
        else:
            lines.append(f"if {known} is None and _dtype in {self.variants}: {known} = _dtype")
            wrong = f"_dtype is None or _dtype != {known}"
        wrong += f" or {argument}.flags.num & {self.flags} != {self.flags}"
        lines += [f"_shape = {argument}.shape", f"if {wrong} or len(_shape) != {len(self.dimensions)}: {failed}"]
        for axis, (name, more, divisor) in enumerate(self.dimensions):
            size, expected = sizes.get(name), str(more)
            if size is not None:
                lines.append(f"if {size} is None: {size} = _shape[{axis}] - {more}")
                expected = f"-(-{size} // {divisor})" if divisor > 1 else f"{size} + {more}" if more else size
                expected += f" or {size} < 0" if more else ""
            lines.append(f"if _shape[{axis}] != {expected}: {failed}")
        return lines


def _raise_exception() -> None:
    """Raise the exception of the signal handler that ended a kernel."""
    pointers = (ctypes.c_void_p * 3)()
    for each in libraries():
        each.take_exception(pointers)
        if pointers[0]:
            break
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    restore(*pointers)
