"""NumPy or CuPy: where an array lies, and how it gets to the other side. CuPy is never imported for a NumPy array."""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeAlias

import numpy as np

__all__ = ["Place", "copied", "gpu_of", "moved", "namespace", "place_of", "settle"]

Place: TypeAlias = Literal["host", "device"]
"""The memory of the processor, or that of the current GPU."""


def place_of(array: Any) -> Place:
    """Say where an array lies."""
    return "host" if namespace(array) is np else "device"


def namespace(array: Any) -> Any:
    """Give the library of an array, NumPy or CuPy, which have the same functions."""
    cupy = sys.modules.get("cupy")
    return cupy if cupy is not None and isinstance(array, cupy.ndarray) else np


def moved(array: Any, place: Place) -> Any:
    """Copy an array to the other side; give back one that is there, and None."""
    if array is None or place_of(array) == place:
        return array
    if place == "host":
        return array.get()
    import cupy  # only a method that runs on the GPU asks for this, and it has looked for CuPy

    return cupy.asarray(array)


def copied(array: Any) -> Any:
    """Copy an array of one dimension, which may be a part of another, to memory of its own.

    On the GPU by a plain copy of memory: the kernel that CuPy takes for it has to be compiled first.
    """
    if namespace(array) is np:
        return array.copy()
    import cupy  # holds it

    copy = cupy.empty(array.shape, array.dtype)
    if copy.nbytes:
        copy.data.copy_from_device_async(array.data, array.nbytes)
    return copy


def gpu_of(array: Any) -> Any:
    """Give the GPU that an array lies on, a context manager that makes it the current one; None on the host."""
    return None if namespace(array) is np else array.device


def settle(place: Place) -> None:
    """Wait for what the current stream was given, if that is the GPU's: other streams may then read what it wrote."""
    if place == "device":
        import cupy  # holds what lies there

        cupy.cuda.get_current_stream().synchronize()
