"""Edges by position: what every frame library's reader hands on, and all that the graph is built from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from prplugin.graph.arrays import Place, gpu_of, place_of, settle

__all__ = ["Edges", "Floats", "GroupedEdges", "Integers", "index_dtype", "offset_dtype"]

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

    @property
    def place(self) -> Place:
        """Where they lie."""
        return place_of(self.source)

    @property
    def gpu(self) -> Any:
        """The GPU that they lie on, a context manager; None on the host."""
        return gpu_of(self.source)


class GroupedEdges:
    """Edges that were brought together by target before anyone asked for them by row.

    They stand in for `Edges`; `source` and `destination` are made when one of them is first asked for.

    Parameters
    ----------
    in_edges : tuple of arrays
        Offsets and sources of the edges by target.
    out_degrees : array of n float64
    by_row : function
        Gives the source and the destination of each row.
    """

    weights = None

    def __init__(
        self,
        in_edges: tuple[Integers, Integers],
        out_degrees: Floats,
        by_row: Callable[[], tuple[Integers, ...]],
    ) -> None:
        self.in_edges = in_edges
        self.out_degrees = out_degrees
        self.n = out_degrees.size
        self.m = in_edges[1].size
        self.place: Place = place_of(out_degrees)
        self._by_row: Callable[[], tuple[Integers, ...]] | None = by_row
        self._lock = Lock()

    @property
    def gpu(self) -> Any:
        """The GPU that they lie on, a context manager; None on the host."""
        return gpu_of(self.out_degrees)

    @property
    def source(self) -> Integers:
        """As that of `Edges`."""
        return self._ends()[0]

    @property
    def destination(self) -> Integers:
        """As that of `Edges`."""
        return self._ends()[1]

    def _ends(self) -> tuple[Integers, ...]:
        with self._lock:
            if self._by_row is not None:
                self._rows = self._by_row()
                settle(self.place)
                self._by_row = None
        return self._rows


def index_dtype(n: int) -> np.dtype[Any]:
    """Give the narrowest signed type that counts n vertices."""
    return np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)


def offset_dtype(m: int) -> np.dtype[Any]:
    """Give the narrowest signed type that counts m edges."""
    return index_dtype(m)
