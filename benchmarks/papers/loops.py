"""Loops of the papers on one CPU thread, compiled from loops.cpp by the system's C++ compiler at the first call."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from prplugin.cpu.build import FLAGS, suffix, system_compiler

SOURCE = Path(__file__).with_name("loops.cpp")

INTEGER, SINGLE = (np.ctypeslib.ndpointer(dtype, flags="C_CONTIGUOUS") for dtype in (np.int64, np.float32))


@cache
def _function(name: str, result: Any, *arguments: Any, optimized: bool = True) -> Any:
    found = getattr(_library(optimized=optimized), name)
    found.restype, found.argtypes = result, [ctypes.c_int64, *arguments]
    return found


@cache
def _library(*, optimized: bool) -> Any:
    if (command := system_compiler()) is None:
        raise FileNotFoundError("the loops of the papers need a C++ compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / f"loops{suffix('')}"
        level = [] if optimized else ["-O0"]  # the last one counts
        subprocess.run([*command, *FLAGS, "-shared", *level, str(SOURCE), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))  # stays loaded when the file is deleted


def multiply(matrix: Any, before: Any, after: Any) -> None:
    """Multiply a dense float32 matrix by a vector, row by row."""
    _function("multiply", None, SINGLE, SINGLE, SINGLE)(before.size, matrix, before, after)


def power_method(matrix: Any, ranks: Any, most: int, epsilon: float, *, optimized: bool) -> int:
    """Run the paper's whole power method, which writes the ranks; return the number of rounds."""
    real = ctypes.c_float
    call = _function("power_method", ctypes.c_int64, SINGLE, SINGLE, SINGLE, ctypes.c_int64, real, optimized=optimized)
    count: int = call(ranks.size, matrix, ranks, np.empty_like(ranks), most, epsilon)
    return count


def multiply_columns(base: Any, bounds: Any, rows: Any, entries: Any, before: Any, after: Any) -> None:
    """Add the product of a dense float32 matrix, column by column, whose column j is base[j] except at its edges."""
    call = _function("multiply_columns", None, SINGLE, INTEGER, INTEGER, SINGLE, SINGLE, SINGLE, SINGLE)
    call(before.size, base, bounds, rows, entries, before, after, np.empty(rows.size, np.float32))
