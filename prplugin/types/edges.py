"""Edges by position and compressed rows: the output of every frame adapter, and the input of every graph operation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from prplugin.types.arrays import MemorySpace, gpu_of, memory_space_of, namespace, synchronize, to_host

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]
"""Arrays of an integer type: `index_dtype(n)` for positions; int64, on the GPU `offset_dtype(m)`, for offsets.

`Floats` and `Integers` may be CuPy arrays: the edges of a cuDF frame, and all that is built from them, stay in device
memory.
"""


ANY = 5e-324, sys.float_info.max  # least and greatest positive float64: an extent that holds for any weights


class Compressed(NamedTuple):
    """A sparse matrix by rows (CSR) or by columns (CSC).

    `offsets` (array of n + 1 int64; on the GPU int32 where that holds m): The entries of row (column) i are
    ``offsets[i]:offsets[i + 1]``.
    `indices` (array of m int32, or int64 from 2**31 vertices on): The other endpoint of each edge. Parallel edges stay
    separate. The entries of a row keep the order of the frame; in the CSR of `Grouped` they are ordered by target,
    and only parallel edges keep the order of the frame. In the CSC of edges in blocks they are ordered by source.
    `weights` (array of m float64, or None): None if the edges are unweighted.
    """

    offsets: Integers
    indices: Integers
    weights: Floats | None

    def read_only(self) -> Compressed:
        """Return read-only views of arrays on the host, copies of arrays on the device."""
        if namespace(self.offsets) is not np:  # CuPy's arrays cannot be made read-only
            weights = None if self.weights is None else self.weights.copy()
            return Compressed(self.offsets.astype(np.int64), self.indices.copy(), weights)
        views = [None if array is None else array.view() for array in self]
        for view in views:
            if view is not None:
                view.flags.writeable = False
        return Compressed(*views)  # type: ignore[arg-type]  # only weights can be None


class PackedRows(NamedTuple):
    """Packed in-edges on the host, in the format of streamed.cu, in pieces of consecutive rows.

    `data` (array of uint8): The pieces, and at least `prplugin.cpu.packing.SPARE` more bytes.
    `begins` (array of int64): Offset of each piece in `data`, and the end of the last.
    `rows` (array of int64): Row of the first edge of each piece; ~row if the row begins in an earlier piece.
    """

    data: Any
    begins: Integers
    rows: Integers


@dataclass(slots=True, eq=False, repr=False)
class Coo:
    """The rows of an edge frame, with each vertex replaced by its position in the result.

    `source`, `destination` (arrays of m positions): Of type `index_dtype(n)`.
    `weights` (array of m float64, or None): Finite and at least 0. None if the edges are unweighted.
    `n`: Number of vertices; those without edges are isolated.
    `extent` (tuple of float): Lower and upper bound of the weights above 0.
    `spilled`: Whether the edges were moved to the host because their frame's GPU lacks memory for them.
    `times` (array of m float64, or None): When each edge was made, in half-lives since the origin of its `Clock`.
    `roundings`: Relative rounding errors, each of 2**-53, that a weight carries at most.
    """

    source: Integers
    destination: Integers
    weights: Floats | None
    n: int
    extent: tuple[float, float] = ANY
    spilled: bool = False
    times: Floats | None = None
    roundings: int = 0
    packed_only: ClassVar[bool] = False
    packed_rows: ClassVar[PackedRows | None] = None
    blocks: ClassVar[Any] = None

    @property
    def m(self) -> int:
        """Number of edges."""
        return self.source.size

    @property
    def memory_space(self) -> MemorySpace:
        """Memory space of the arrays."""
        return memory_space_of(self.source)

    @property
    def gpu(self) -> Any:
        """The GPU that holds the arrays, a context manager; None on the host."""
        return gpu_of(self.source)

    def take(self, rows: Any) -> Coo:
        """Return the selected edges, in the order of `rows`, of the same vertices."""
        return self._with(lambda array: array[rows])

    def on_host(self) -> Coo:
        """Return the same edges in host memory."""
        return self._with(to_host)

    def _with(self, change: Callable[[Any], Any]) -> Coo:
        """Return the edges with changed arrays."""
        arrays = {name: getattr(self, name) for name in ("source", "destination", "weights", "times")}
        changed: dict[str, Any] = {name: None if array is None else change(array) for name, array in arrays.items()}
        return replace(self, **changed)

    def as_spilled(self) -> Coo:
        """Return the same edges, marked as moved to the host for lack of GPU memory."""
        return replace(self, spilled=True)


class Grouped:
    """Edges that the frame adapter has already grouped by target (CSC).

    They have the attributes of `Coo`; `source` and `destination` are computed on first access. On the GPU these are
    ordered by target, and within a target as in the frame.

    `in_edges` (tuple of arrays): Offsets, sources and weights of the CSC layout; weights are None if unweighted.
    `out_weight`: array of n float64, or of n counts.
    `edge_list`: Function that returns the source and the destination of each edge.
    `out_weight_depth`: Rounding depth of an out-weight.
    `extent` (tuple of float): Lower and upper bound of the weights above 0.

    `spilled`: Whether the edges were moved to the host because their frame's GPU lacks memory for them.
    `packed_only`: Whether they are `prplugin.methods.packed.PackedEdges`.
    `packed_rows`: The edges in packed form on the host, if they are stored so; `in_edges` are then unpacked.
    `blocks`: The edges as `prplugin.gpu.blocks.Blocks`, if they are stored so; the sources of a row are then ascending.
    """

    packed_rows: PackedRows | None = None
    blocks: Any = None
    packed_only: ClassVar[bool] = False
    spilled = False
    roundings = 0
    out_weight_depth = 0
    extent = ANY
    _edge_list: Callable[[], tuple[Integers, ...]] | tuple[Integers, ...]

    def __init__(
        self, in_edges: tuple[Integers, Integers, Floats | None], out_weight: Floats,
        edge_list: Callable[[], tuple[Integers, ...]], out_weight_depth: int = 0, extent: tuple[float, float] = ANY,
    ) -> None:  # fmt: skip
        self.in_edges = in_edges
        self.out_weight = out_weight
        self.out_weight_depth = out_weight_depth
        self.extent = extent
        self.weights = in_edges[2]
        self.n = out_weight.size
        self.m = in_edges[1].size
        self.memory_space: MemorySpace = memory_space_of(out_weight)
        self._edge_list = edge_list
        self._lock = Lock()

    @property
    def gpu(self) -> Any:
        """The GPU that holds the arrays, a context manager; None on the host."""
        return gpu_of(self.out_weight)

    def as_spilled(self) -> Grouped:
        """Mark the edges as moved to the host for lack of GPU memory, and return them."""
        self.spilled = True
        return self

    @property
    def edge_list_is_there(self) -> bool:
        """Return whether `source` and `destination` have been computed."""
        return isinstance(self._edge_list, tuple)

    @property
    def source(self) -> Integers:
        """Source of each edge: array of m positions, computed on first access."""
        return self._endpoints()[0]

    @property
    def destination(self) -> Integers:
        """Destination of each edge: array of m positions, computed on first access."""
        return self._endpoints()[1]

    def _endpoints(self) -> tuple[Integers, ...]:
        with self._lock:
            if not isinstance(self._edge_list, tuple):
                edge_list = tuple(self._edge_list())
                synchronize(self.memory_space)
                self._edge_list = edge_list
            return self._edge_list


MAX_NARROW = np.iinfo(np.int32).max  # number of vertices, or of edges, up to which int32 is used


def index_dtype(n: int) -> np.dtype[Any]:
    """Return int32 if it holds n, the number of vertices, else int64."""
    return np.dtype(np.int32 if n <= MAX_NARROW else np.int64)


def bits_of(n: int) -> int:
    """Return the number of bits of a position among n vertices, at least 1."""
    return max(1, (n - 1).bit_length())


def offset_dtype(m: int) -> np.dtype[Any]:
    """Return int32 if it holds m, the number of edges, else int64."""
    return index_dtype(m)
