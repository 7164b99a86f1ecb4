"""Edges by position: what every frame library's reader hands on, and all that the graph is built from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from prplugin.types.arrays import MemorySpace, gpu_of, memory_space_of, synchronize

__all__ = ["ANY", "Edges", "Floats", "GroupedEdges", "Integers", "index_dtype", "offset_dtype"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]
"""Of an integer type: `index_dtype(n)` for positions, int64 for offsets, on the GPU `offset_dtype(m)`.

Both may be CuPy arrays: the edges of a cuDF frame, and all that is built from them, stay on the GPU.
"""


ANY = 5e-324, sys.float_info.max
"""Between these are all weights above 0."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The rows of an edge frame, with each vertex replaced by its position in the result.

    `source`, `destination` (arrays of m positions): Of type `index_dtype(n)`.
    `weights` (array of m float64, or None): Finite and at least 0. None: every edge counts 1.
    `n`: How many vertices there are; those that no edge names are isolated.
    `extent` (tuple of float): No weight above 0 is less than the first, and none greater than the second.
    `spilled`: Whether they are on the host because the GPU, where their frame lies, had no room for them.
    """

    source: Integers
    destination: Integers
    weights: Floats | None
    n: int
    extent: tuple[float, float] = ANY
    spilled: bool = False

    @property
    def m(self) -> int:
        """How many edges there are."""
        return self.source.size

    @property
    def memory_space(self) -> MemorySpace:
        """Where they lie."""
        return memory_space_of(self.source)

    @property
    def gpu(self) -> Any:
        """The GPU that they lie on, a context manager; None on the host."""
        return gpu_of(self.source)

    def as_spilled(self) -> Edges:
        """Give the same edges, which the GPU had no room for."""
        return replace(self, spilled=True)


class GroupedEdges:
    """Edges that were brought together by target before anyone asked for them by row.

    They stand in for `Edges`; `source` and `destination` are made when one of them is first asked for. On the GPU they
    come by target, and for each target in the order of the frame.

    `in_edges` (tuple of arrays): Offsets, sources and weights of the edges by target; None where every edge counts 1.
    `out_weight`: array of n float64, or of n counts.
    `edge_list`: Gives the source and the destination of each row.
    `out_weight_depth`: How many roundings an out-weight carries at most.
    `extent` (tuple of float): As that of `Edges`.

    `spilled`: As that of `Edges`.
    """

    def __init__(
        self,
        in_edges: tuple[Integers, Integers, Floats | None],
        out_weight: Floats,
        edge_list: Callable[[], tuple[Integers, ...]],
        out_weight_depth: int = 0,
        extent: tuple[float, float] = ANY,
    ) -> None:
        self.in_edges = in_edges
        self.out_weight = out_weight
        self.out_weight_depth = out_weight_depth
        self.extent = extent
        self.spilled = False
        self.weights = in_edges[2]
        self.n = out_weight.size
        self.m = in_edges[1].size
        self.memory_space: MemorySpace = memory_space_of(out_weight)
        self._edge_list: Callable[[], tuple[Integers, ...]] | None = edge_list
        self._lock = Lock()

    @property
    def gpu(self) -> Any:
        """The GPU that they lie on, a context manager; None on the host."""
        return gpu_of(self.out_weight)

    def as_spilled(self) -> GroupedEdges:
        """As that of `Edges`."""
        self.spilled = True
        return self

    @property
    def edge_list_is_there(self) -> bool:
        """Whether `source` and `destination` have been made."""
        return self._edge_list is None

    @property
    def source(self) -> Integers:
        """As that of `Edges`."""
        return self._endpoints()[0]

    @property
    def destination(self) -> Integers:
        """As that of `Edges`."""
        return self._endpoints()[1]

    def _endpoints(self) -> tuple[Integers, ...]:
        with self._lock:
            if self._edge_list is not None:
                self._rows = self._edge_list()
                synchronize(self.memory_space)
                self._edge_list = None
        return self._rows


def index_dtype(n: int) -> np.dtype[Any]:
    """Give the narrowest signed type that counts n vertices."""
    return np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)


def offset_dtype(m: int) -> np.dtype[Any]:
    """Give the narrowest signed type that counts m edges."""
    return index_dtype(m)
