"""Edges by position and compressed rows: the output of every frame adapter, and the input of every graph operation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.types import array_module
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import Array, MemorySpace, is_host, to_host

Floats: TypeAlias = array_module.Floats
Integers: TypeAlias = array_module.Integers
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
        if not is_host(self.offsets):  # CuPy's arrays cannot be made read-only
            weights = None if self.weights is None else self.weights.copy()
            return Compressed(self.offsets.astype(np.int64), self.indices.copy(), weights)
        views = [None if array is None else array.view() for array in self]
        for view in views:
            if view is not None:
                view.flags.writeable = False
        return Compressed(*views)  # type: ignore[arg-type]  # only weights can be None


class Csr(Compressed):
    """Out-edges by source."""

    __slots__ = ()


class Csc(Compressed):
    """In-edges by target: entries of row i are the sources of the edges to vertex i."""

    __slots__ = ()


class PackedRows(NamedTuple):
    """Packed in-edges on the host, in the format of streamed.cu, in pieces of consecutive rows.

    `data` (array of uint8): The pieces, and at least `prplugin.cpu.packing.SPARE` more bytes.
    `begins` (array of int64): Offset of each piece in `data`, and the end of the last.
    `rows` (array of int64): Row of the first edge of each piece; ~row if the row begins in an earlier piece.
    """

    data: Integers
    begins: Integers
    rows: Integers


class PackedPart(NamedTuple):
    """Packed pieces that one launch sums."""

    first: int  # piece
    pieces: int
    bits: int  # of a source, less `base`
    base: int


class PackedParts(NamedTuple):
    """In-edges packed in device memory, part by part: see `prplugin.methods.packed.Packer`.

    `order`, `position`: As in `prplugin.methods.engines.packed_step.ReorderedPull`.
    """

    weighted: bool
    parts: tuple[PackedPart, ...]
    table: Integers  # of streamed.cu, with addresses for offsets
    largest: int  # bytes of the largest piece
    arrays: tuple[Array, ...]  # to which the table points
    order: Integers | None
    position: Integers | None

    @property
    def nbytes(self) -> int:
        """Bytes of the packed edges, with normalized weights and the table of pieces."""
        return sum(int(array.nbytes) for array in (*self.arrays, self.table))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Blocks:
    """In-edges in device memory in blocks, from tiles of sources to pieces of rows, in both orders: see blocks.cuh."""

    rows: int  # places of rows
    columns: int  # places of sources
    marks: Integers | None  # which places have a vertex: see marks.cuh
    tile_bits: int
    piece_bits: int
    tile_begins: Integers  # chunks before each tile, and all, on the host
    piece_begins: Integers
    chunk_by_piece: Integers
    tile_sources: Integers
    piece_rows: Integers
    piece_edges: Integers | None  # by piece: position of each edge among those given, and their number for padding
    spans: Integers  # tile, first chunk and end of parts of tiles, on the host
    units: int  # number of units: see `prplugin.gpu.blocks.units_of`
    shared: int  # number of pieces of several units
    bounds: tuple[Integers, Integers]  # spans and units on the device
    in_degrees: Integers  # of the rows, as uint32


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coo:
    """The rows of an edge frame, with each vertex replaced by its position in the result.

    `source`, `destination` (arrays of m positions): Of type `index_dtype(n)`.
    `weights` (array of m float64, or None): Finite and at least 0. None if the edges are unweighted.
    `n`: Number of vertices; those without edges are isolated.
    `extent` (tuple of float): Lower and upper bound of the weights above 0.
    `frame_space`: Memory space of the frame, if the edges were moved to the host for lack of GPU memory.
    `times` (array of m float64, or None): When each edge was made, in half-lives since the origin of its `Clock`.
    `roundings`: Relative rounding errors, each of 2**-53, that a weight carries at most.
    """

    source: Integers
    destination: Integers
    weights: Floats | None
    n: int
    extent: tuple[float, float] = ANY
    frame_space: MemorySpace | None = None
    times: Floats | None = None
    roundings: int = 0

    @property
    def m(self) -> int:
        """Number of edges."""
        return self.source.size

    def take(self, rows: Integers | Booleans | slice) -> Coo:
        """Return the selected edges, in the order of `rows`, of the same vertices."""
        return self._with(lambda array: array[rows])

    def on_host(self) -> Coo:
        """Return the same edges in host memory."""
        return self._with(to_host)

    def _with(self, change: Callable[[Array], Array]) -> Coo:
        """Return the edges with changed arrays."""
        arrays = {name: getattr(self, name) for name in ("source", "destination", "weights", "times")}
        changed: dict[str, Any] = {name: None if array is None else change(array) for name, array in arrays.items()}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grouped:
    """Edges that an ingest has grouped by target, in one layout.

    `out_weight`: array of n float64, or of n counts.
    `m`: Number of edges.
    `endpoints`: Function, called once, that returns the source and the destination of each edge; None: those of the
    CSC, in its order.
    `out_weight_depth`: Rounding depth of an out-weight.
    `extent`, `frame_space`, `roundings`: As in `Coo`.
    """

    layout: Csc | Blocks | PackedRows | PackedParts
    out_weight: Floats | Integers
    m: int
    endpoints: Callable[[], tuple[Integers, ...]] | None = None
    out_weight_depth: int = 0
    extent: tuple[float, float] = ANY
    frame_space: MemorySpace | None = None
    roundings: int = 0

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.out_weight.size


MAX_NARROW = np.iinfo(np.int32).max  # number of vertices, or of edges, up to which int32 is used


def index_dtype(n: int) -> np.dtype[np.generic]:
    """Return int32 if it holds n, the number of vertices, else int64."""
    return np.dtype(np.int32 if n <= MAX_NARROW else np.int64)


def bits_of(n: int) -> int:
    """Return the number of bits of a position among n vertices, at least 1."""
    return max(1, (n - 1).bit_length())


def offset_dtype(m: int) -> np.dtype[np.generic]:
    """Return int32 if it holds m, the number of edges, else int64."""
    return index_dtype(m)
