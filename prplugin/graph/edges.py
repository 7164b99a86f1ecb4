"""Edges by position: what every frame library's reader hands on, and all that the graph is built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Edges", "Floats", "Integers", "index_dtype", "offset_dtype"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]
"""Of an integer type: `index_dtype(n)` for positions, int64 for offsets, on the GPU `offset_dtype(m)`.

Both may be CuPy arrays: the edges of a cuDF frame, and all that is built from them, stay on the GPU.
"""


@dataclass(frozen=True, slots=True)
class Edges:
    """The rows of an edge frame, with each vertex replaced by its position in the result.

    Attributes
    ----------
    source, destination : arrays of m positions
        Of type `index_dtype(n)`.
    weights : array of m float64, or None
        Finite and at least 0. None: every edge counts 1.
    n : int
        How many vertices there are; those that no edge names are isolated.
    """

    source: Integers
    destination: Integers
    weights: Floats | None
    n: int

    @property
    def m(self) -> int:
        """How many edges there are."""
        return self.source.size


def index_dtype(n: int) -> np.dtype[Any]:
    """Give the narrowest signed type that counts n vertices."""
    return np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)


def offset_dtype(m: int) -> np.dtype[Any]:
    """Give the narrowest signed type that counts m edges."""
    return index_dtype(m)
