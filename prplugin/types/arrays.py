"""NumPy or CuPy: where an array lies, and how it gets to the other side. CuPy is never imported for a NumPy array."""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeAlias

import numpy as np

__all__ = [
    "MemorySpace",
    "copied",
    "gpu_of",
    "memory_space_of",
    "namespace",
    "synchronize",
    "to_device",
    "to_host",
    "to_memory",
]

MemorySpace: TypeAlias = Literal["host", "device"]
"""The memory of the processor, or that of the current GPU."""


def memory_space_of(array: Any) -> MemorySpace:
    """Say where an array lies."""
    return "host" if namespace(array) is np else "device"


def namespace(array: Any) -> Any:
    """Give the library of an array, NumPy or CuPy, which have the same functions."""
    cupy = sys.modules.get("cupy")
    return cupy if cupy is not None and isinstance(array, cupy.ndarray) else np


def to_host(array: Any) -> Any:
    """Return an array in host memory: itself if it is there, else a copy; None for None."""
    return array if array is None or namespace(array) is np else array.get()


def to_device(array: Any) -> Any:
    """Return an array in the memory of the current GPU: itself if it is in GPU memory, else a copy; None for None."""
    if array is None or namespace(array) is not np:
        return array
    import cupy  # lazy import; only methods of the GPU ask for this, and their availability was checked

    return cupy.asarray(array)


def to_memory(array: Any, memory_space: MemorySpace) -> Any:
    """Return an array in "host" or "device" memory: itself if it is there, else a copy; None for None."""
    return to_host(array) if memory_space == "host" else to_device(array)


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


def synchronize(memory_space: MemorySpace) -> None:
    """Wait for what the current stream was given, if that is the GPU's: other streams may then read what it wrote."""
    if memory_space == "device":
        import cupy  # holds what lies there

        cupy.cuda.get_current_stream().synchronize()
