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
import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NoReturn

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
        self.variables = list(dict.fromkeys(each.dtype for each in self.parameters if each.dtype in VARIABLES))
        self._sizes = list(dict.fromkeys(size for each in self.parameters for size, *_ in each.dimensions if size))

    def __call__(self, *arguments: object) -> int:
        """Check the arguments and call the kernel without the interpreter's lock; return its result."""
        found: int = self._checked_call(*arguments)
        if found == INTERRUPTED:
            _raise_exception()
        return found

    @cached_property
    def _checked_call(self) -> Callable[..., int]:
        """Function generated from the declarations: a loop over them takes several times as long as a small kernel.

        It only finds that something is wrong, and `_fail` what: Python compiles few and long lines in less time.
        """
        arrays = [each for each in self.parameters if each.is_array]
        sizes = {size: self._first("{0}.shape[{1}] - {2}", size, "0") for size in self._sizes}
        types = {one: self._first("dtypes[{0}.dtype]", one, repr(VARIABLES[one][0])) for one in self.variables}
        tests = [f"size_{size} >= 0" for size in sizes]
        tests += [f"type_{one} in {VARIABLES[one]}" for one in types]
        tests += [f"({each.name} is None or {each.test})" if each.optional else each.test for each in arrays]
        pointers = {
            each.name: f"pointer_at(id({each.name}) + HEADER)"
            + f" if {each.name} is not None else None" * each.optional
            for each in arrays
        }
        names = [each.name for each in self.parameters]
        passed = [*(f"size_{size}" for size in sizes), *(pointers.get(name, name) for name in names)]
        lines = [
            f"def call({', '.join(names)}):",
            "    try:",
            *(f"        size_{size} = {value}" for size, value in sizes.items()),
            *(f"        type_{one} = {value}" for one, value in types.items()),
            f"        valid = {' and '.join(tests) or True}",
            "    except (AttributeError, IndexError, KeyError):",
            "        valid = False",
            f"    if not valid: fail({', '.join(names)})",
            f"    return load({''.join(f'type_{one}, ' for one in types)})(",
            f"        {', '.join(passed)})",
        ]
        known: dict[str, Any] = {
            "fail": self._fail, "load": cache(self._load), "dtypes": DTYPES, "ndarray": np.ndarray,
            "pointer_at": ctypes.c_void_p.from_address, "HEADER": HEADER,
        }  # fmt: skip
        exec("\n".join(lines), known)  # of declarations in this package alone
        call: Callable[..., int] = known["call"]
        return call

    def _first(self, value: str, variable: str, default: str) -> str:
        """Return an expression for a size or type: its value by an array that must be given, or the first that is."""
        found = default
        for each in sorted(self.parameters, key=lambda each: not each.optional):  # later ones enclose earlier ones
            sized = enumerate(each.dimensions)
            axes = [(axis, more) for axis, (name, more, divisor) in sized if name == variable and divisor == 1]
            if each.is_array and (axes or each.dtype == variable):
                one = value.format(each.name, *(axes[0] if axes else ()))
                found = f"{one} if {each.name} is not None else {found}" if each.optional else one
        return found

    def _load(self, *variant: str) -> Any:
        function = getattr(library(), "_".join((self.name, *variant)))
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_int64] * len(self._sizes) + [parameter.ctype for parameter in self.parameters]
        return function

    def _fail(self, *arguments: object) -> NoReturn:
        """Raise TypeError for the first argument that does not agree with its declaration and those before."""
        sizes: dict[str, int] = {}
        types: dict[str, str] = {}
        for each, argument in zip(self.parameters, arguments, strict=True):
            if not each.is_array or (argument is None and each.optional):
                continue
            why = None
            if not isinstance(argument, np.ndarray):
                why = "is no array"
            else:
                if (dtype := DTYPES.get(argument.dtype, "")) in each.variants:
                    types.setdefault(each.dtype, dtype)
                for (name, more, divisor), size in zip(each.dimensions, argument.shape, strict=False):
                    if name and divisor == 1 and size >= more:
                        sizes.setdefault(name, size - more)
                if dtype != (expected := types.get(each.dtype, each.dtype)):
                    why = f"has type {argument.dtype.str.lstrip('<|')}, not {expected}"
                elif argument.flags.num & each.flags != each.flags:
                    why = f"is not contiguous, aligned{' and writable' if each.written else ''}"
                elif argument.shape != tuple(
                    -(-sizes.get(name, 0) // divisor) + more for name, more, divisor in each.dimensions
                ):
                    why = f"has shape {argument.shape}, where {sizes} are known"
            if why is not None:
                raise TypeError(f"argument {each.name} of the kernel {self.name} {why}")
        raise AssertionError("the arguments agree with their declarations")


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
        self.ctype: Any = ctypes.c_void_p if self.is_array else ctypes.c_double if kind == "f8" else ctypes.c_int64

    @property
    def test(self) -> str:
        """Expression that is true for a valid array, given all sizes and types."""
        dtype = f"type_{self.dtype}" if self.dtype in VARIABLES else repr(self.dtype)
        shape = "".join(
            (f"-(-size_{name} // {divisor})" if divisor > 1 else f"size_{name} + {more}" if name else str(more)) + ", "
            for name, more, divisor in self.dimensions
        )
        return (
            f"isinstance({self.name}, ndarray) and dtypes[{self.name}.dtype] == {dtype} and "
            f"{self.name}.flags.num & {self.flags} == {self.flags} and {self.name}.shape == ({shape})"
        )


def _raise_exception() -> None:
    """Raise the exception of the signal handler that ended a kernel."""
    pointers = (ctypes.c_void_p * 3)()
    library().take_exception(pointers)
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    restore(*pointers)
