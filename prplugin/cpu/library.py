"""The compiled CPU kernels: loading, and the check of every argument before a pointer is passed.

A kernel is declared beside the Python that calls it, by its name and its parameters:

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
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as np

from prplugin.cpu.build import LIBRARIES, digest, suffix

VARIABLES = {"I": ("i4", "i8"), "K": ("i4", "i8"), "F": ("f8", "f4"), "G": ("f8", "f4")}
"""Types that a type variable stands for; the first one if all of its arrays are None."""

DTYPES = {np.dtype(name): name for name in ("i1", "i4", "i8", "f4", "f8", "u1")} | {np.dtype(np.bool_): "u1"}
"""Types of arguments, in the byte order of the machine."""

FIXED = {name: name for name in DTYPES.values()}
"""Types of arrays that do not depend on a type variable."""

_pointer_at = ctypes.c_void_p.from_address

HEADER = object.__basicsize__
"""Bytes of an array object before the address of its data, in the ABI of NumPy; `ndarray.ctypes` takes 2 us."""

INTERRUPTED = -(2**63)
"""Result of a kernel that ended since a signal handler raised an exception."""


@cache
def library() -> Any:
    """Load the kernels compiled for this machine's instructions; raise OSError if there are none."""
    end = suffix(platform.system())
    found = _load_current(f"kernels-1{end}")
    if (level := found.instruction_level()) > 1:
        found = _load_current(f"kernels-{level}{end}")
    python = ctypes.pythonapi
    functions = python.PyGILState_Ensure, python.PyGILState_Release, python.PyErr_CheckSignals, python.PyErr_Fetch
    found.connect_interpreter(*(ctypes.cast(function, ctypes.c_void_p) for function in functions))
    return found


def _load_current(name: str) -> Any:
    """Load a library; raise OSError if it was compiled from other sources, whose kernels may have other parameters."""
    path = LIBRARIES / name
    if not path.exists():
        raise OSError("the CPU kernels were not compiled when prplugin was installed, for want of a C++ compiler")
    found = ctypes.CDLL(str(path))
    found.sources_digest.restype = ctypes.c_int64
    if found.sources_digest() != digest():
        raise OSError(
            f"{path} was compiled from other sources: run python prplugin/cpu/build.py, or install prplugin again"
        )
    return found


@cache
def unavailable_reason() -> str | None:
    """Return why there are no compiled kernels, or None."""
    try:
        library()
    except OSError as error:
        return str(error)
    return None


def is_available() -> bool:
    """Return whether compiled kernels are there and can be loaded."""
    return unavailable_reason() is None


class Kernel:
    """A function of the library, for each combination of types.

    Parameters
    ----------
    name : str
        Name of the C function, without types.
    parameters : str
        Declarations of all parameters, separated by blanks.
    """

    def __init__(self, name: str, parameters: str) -> None:
        self.name = name
        self.parameters = [_Parameter(declared) for declared in parameters.split()]
        self._sizes = list(dict.fromkeys(size for each in self.parameters for size, *_ in each.dimensions if size))
        self.variables = list(dict.fromkeys(each.dtype for each in self.parameters if each.dtype in VARIABLES))
        self._functions: dict[tuple[str, ...], Any] = {}

    def __call__(self, *arguments: object) -> int:
        """Check the arguments and call the kernel without the interpreter's lock; return its result."""
        sizes: dict[str, int] = {}
        types = FIXED.copy()
        passed = [
            parameter.checked(argument, sizes, types, self.name) if parameter.is_array else argument
            for parameter, argument in zip(self.parameters, arguments, strict=True)
        ]
        variant = tuple([types.get(variable, VARIABLES[variable][0]) for variable in self.variables])
        function = self._functions.get(variant) or self._load(variant)
        found: int = function(*[sizes.get(size, 0) for size in self._sizes], *passed)
        if found == INTERRUPTED:
            _raise_exception()
        return found

    def _load(self, variant: tuple[str, ...]) -> Any:
        function = getattr(library(), "_".join((self.name, *variant)))
        function.restype = ctypes.c_int64
        function.argtypes = [
            *(ctypes.c_int64 for _ in self._sizes),
            *(parameter.ctype for parameter in self.parameters),
        ]
        self._functions[variant] = function
        return function


class _Dimension(NamedTuple):
    """A length: the size of a name (0 for ""), over `divisor` and rounded up, plus `more`."""

    name: str
    more: int
    divisor: int


class _Parameter:
    """One parameter of a kernel."""

    def __init__(self, declared: str) -> None:
        self.name, kind = declared.split(":")
        kind, _, shape = kind.partition("[")
        self.dtype = kind
        self.is_array = bool(shape)
        self.variants = VARIABLES.get(kind, (kind,))
        self.written, self.optional = "!" in shape, "?" in shape
        self.dimensions: list[_Dimension] = []
        for size in shape.partition("]")[0].split(",") if shape else ():
            name, sign, number = size.partition("/" if "/" in size else "+")
            if name.isdigit():
                name, number = "", name
            self.dimensions.append(
                _Dimension(name, 0 if sign == "/" else int(number or 0), int(number) if sign == "/" else 1)
            )
        self.ctype: Any = ctypes.c_void_p if self.is_array else ctypes.c_double if kind == "f8" else ctypes.c_int64

    def checked(self, argument: object, sizes: dict[str, int], types: dict[str, str], kernel: str) -> Any:
        """Return the pointer to an array, whose sizes and types are compared with those known so far."""
        if argument is None and self.optional:
            return None
        if not isinstance(argument, np.ndarray):
            self._refuse(kernel, "is no array")
        dtype, flags, shape = DTYPES.get(argument.dtype, "?"), argument.flags, argument.shape
        if types.setdefault(self.dtype, dtype) != dtype or dtype not in self.variants:
            self._refuse(kernel, f"has type {argument.dtype.str.lstrip('<|')}, not {types[self.dtype]}")
        if not (flags.carray or (flags.c_contiguous and flags.aligned and not self.written)):
            self._refuse(kernel, f"is not contiguous, aligned{' and writable' if self.written else ''}")
        if len(shape) != len(self.dimensions):
            self._refuse(kernel, f"has shape {shape}")
        for axis, (name, more, divisor) in enumerate(self.dimensions):  # `zip` with strict= takes three times as long
            size = sizes.setdefault(name, shape[axis] - more) if name else 0
            if shape[axis] != -(-size // divisor) + more or size < 0:
                self._refuse(kernel, f"has shape {shape}, where {sizes} are known")
        return _pointer_at(id(argument) + HEADER)

    def _refuse(self, kernel: str, why: str) -> NoReturn:
        raise TypeError(f"argument {self.name} of the kernel {kernel} {why}")


def _raise_exception() -> None:
    """Raise the exception of the signal handler that ended a kernel."""
    pointers = (ctypes.c_void_p * 3)()
    library().take_exception(pointers)
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    restore(*pointers)
