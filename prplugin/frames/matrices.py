"""Arrays and sparse matrices of SciPy and CuPy: edges in whose vertices are positions, ranks out as a frame.

Rows are sources and columns targets, as in the adjacency matrices of both libraries. On the host ranks come in a frame
of pandas; for arrays on the GPU in one of cuDF where cuDF is loaded, else in one of pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError, counted, listed
from prplugin.frames import cudf, pandas
from prplugin.frames.base import Labels, SeedValues, converted
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.compressed import adjacency_of
from prplugin.types.arrays import Place, moved, namespace, place_of
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, Floats, Integers, index_dtype, offset_dtype

__all__ = [
    "Matrix",
    "Vertices",
    "adjacency",
    "given_as",
    "read_positions",
    "read_seeds",
    "read_values",
    "write",
    "write_ids",
]

LIBRARIES = ("scipy.sparse", "cupyx.scipy.sparse")


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix as it was given; nothing of it is checked yet.

    Attributes
    ----------
    layout : str
        "csr", "csc" or "coo".
    rows, columns : arrays
        What SciPy calls `indptr` and `indices` ("csr"), `indices` and `indptr` ("csc"), `row` and `col` ("coo").
    weights : array or None
    n : int or None
        Rows and columns; None where the offsets say it.
    names : tuple of str
        What messages call rows, columns and weights.
    """

    layout: str
    rows: Any
    columns: Any
    weights: Any
    n: int | None
    names: tuple[str, str, str]

    @property
    def place(self) -> Place:
        """Where its arrays lie."""
        return place_of(self.rows)


@dataclass(frozen=True)
class Vertices:
    """The vertices 0..n-1, in this order.

    Attributes
    ----------
    n : int
    place : "host" or "device"
        Where the ranks lie.
    adapter : module
        That of the frames which ranks come in.
    """

    n: int
    place: Place
    adapter: ModuleType

    def __len__(self) -> int:
        return self.n

    def described(self, rows: Integers) -> list[str]:
        """Spell out the ids of some vertices for a message."""
        return [str(row) for row in rows.tolist()]

    @cached_property
    def named(self) -> Any:
        """The same as the adapter has them."""
        names: list[Hashable] = ["vertex"]
        if self.adapter is cudf:
            import cupy  # holds the graph

            return cudf.Vertices(names, [cupy.arange(self.n)], ["integer"])
        import pandas as pd  # for the frame of the result, or values given by vertex

        return pandas.Vertices(names, [pd.array(np.arange(self.n), dtype=np.dtype(np.int64))], ["integer"])


def given_as(offsets: Any, indices: Any, weights: Any) -> Matrix:
    """Tell a sparse matrix from three arrays.

    Raises
    ------
    InvalidEdgesError
        If it is neither.
    """
    if indices is not None:
        offsets, indices, weights = _array(offsets), _array(indices), _array(weights)
        if len({place_of(array) for array in (offsets, indices, weights) if array is not None}) > 1:
            raise InvalidEdgesError("offsets, indices and weights lie partly on the GPU: bring all to one side.")
        return Matrix("csr", offsets, indices, weights, None, ("offsets", "indices", "weights"))
    matrix = offsets
    if not any(_is_sparse(matrix, library) for library in LIBRARIES):
        raise InvalidEdgesError(
            "from_csr takes offsets, indices and perhaps weights, or one sparse matrix of SciPy or CuPy, "
            f"not {type(matrix).__module__}.{type(matrix).__qualname__} alone."
        )
    if weights is not None:
        raise InvalidEdgesError("from_csr takes the weights of a sparse matrix from the matrix: leave out weights=.")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidEdgesError(
            f"the matrix has the shape {matrix.shape}: an adjacency matrix has as many rows as columns, one a vertex."
        )
    n = int(matrix.shape[0])
    match matrix.format:
        case "csr":
            return Matrix("csr", matrix.indptr, matrix.indices, matrix.data, n, ("indptr", "indices", "data"))
        case "csc":
            return Matrix("csc", matrix.indices, matrix.indptr, matrix.data, n, ("indices", "indptr", "data"))
        case "coo":
            return Matrix("coo", matrix.row, matrix.col, matrix.data, n, ("row", "col", "data"))
    raise InvalidEdgesError(
        f"the matrix is in the format {matrix.format!r}, of which from_csr reads csr, csc and coo: convert it, with "
        ".tocsr() for instance."
    )


def adjacency(matrix: Matrix) -> tuple[Adjacency, Vertices]:
    """Check a matrix and make a graph of copies of its arrays, in the types that a graph has; on their side.

    Parallel entries stay parallel edges, those of value 0 edges of weight 0. Where all weigh 1 there are no weights.

    Raises
    ------
    InvalidEdgesError
        For lengths that do not agree, offsets that fall, indices out of range, and weights that are not finite numbers
        of at least 0.
    """
    by_target = matrix.layout == "csc"
    of_rows, of_columns, of_weights = matrix.names
    if matrix.layout == "coo":
        n = matrix.n or 0
        rows, columns = _positions(matrix.rows, n, of_rows), _positions(matrix.columns, n, of_columns)
        if rows.size != columns.size:
            raise InvalidEdgesError(f"{of_rows} has {rows.size:,} entries, and {of_columns} {columns.size:,}.")
        weights = _weights(matrix.weights, rows.size, of_weights)
        made = Adjacency(Edges(rows, columns, weights, n))
    else:
        of_offsets, of_members = (of_columns, of_rows) if by_target else (of_rows, of_columns)
        given, members = (matrix.columns, matrix.rows) if by_target else (matrix.rows, matrix.columns)
        offsets = _offsets(given, int(members.size), matrix.n, of_offsets, of_members)
        indices = _positions(members, offsets.size - 1, of_members)
        weights = _weights(matrix.weights, indices.size, of_weights)
        made = adjacency_of(Compressed(offsets, indices, weights), by_target=by_target)
    adapter = cudf if matrix.place == "device" and "cudf" in sys.modules else pandas
    return made, Vertices(made.n, made.place, adapter)


def read_values(given: object, vertices: Vertices, what: str) -> Floats:
    """Return a distribution given by vertex as an array over all vertices, where the graph is."""
    values: Floats = moved(vertices.adapter.read_values(_for(given, vertices), vertices.named, what), vertices.place)
    return values


def read_seeds(given: Any, vertices: Vertices, what: str) -> SeedValues:
    """Return the distributions of many seeds, as the adapter of the frame does."""
    given = converted(given, lambda one: _for(one, vertices))
    seeds: SeedValues = vertices.adapter.read_seeds(given, vertices.named, what)
    return replace(seeds, rows=moved(seeds.rows, vertices.place), values=moved(seeds.values, vertices.place))


def read_positions(given: Any, vertices: Vertices, what: str) -> Integers:
    """Return the positions of the vertices asked for, in the order given."""
    rows: Integers = vertices.adapter.read_positions(_for(given, vertices), vertices.named, what)
    return rows


def _for(given: Any, vertices: Vertices) -> Any:
    """Return what is given, arrays in the memory of the adapter."""
    return moved(given, vertices.adapter.place) if namespace(given) is not np else given


def write(vertices: Vertices, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> Any:
    """Put the ranks of all vertices, or of those at `rows`, in a frame; of many seeds, as its adapter does."""
    place: Place = vertices.adapter.place
    return vertices.adapter.write(vertices.named, moved(ranks, place), moved(rows, place), labels)


def write_ids(vertices: Vertices) -> Any:
    """Return the vertices as a column of the adapter's library."""
    return vertices.adapter.write_ids(vertices.named)


def _is_sparse(matrix: object, library: str) -> bool:
    """Say whether this is a sparse matrix of a library, which is loaded if it is."""
    module = sys.modules.get(library)
    return module is not None and bool(module.issparse(matrix))


def _array(given: Any) -> Any:
    """Give an array of NumPy or CuPy as it is, and a list as an array."""
    return given if given is None or namespace(given) is not np else np.asarray(given)


def _offsets(given: Any, m: int, n: int | None, label: str, members: str) -> Integers:
    """Check where rows begin; a copy."""
    _require_integers(given, label)
    if not given.size or (n is not None and given.size != n + 1):
        entries = f"{n + 1:,} entries, one more than there are vertices" if n is not None else "at least one entry"
        raise InvalidEdgesError(f"{label} has {counted(given.size, 'entry', 'entries')}: it needs {entries}.")
    if int(given[0]) != 0 or int(given[-1]) != m:
        raise InvalidEdgesError(
            f"{label} goes from {int(given[0]):,} to {int(given[-1]):,}: it must begin with 0 and end with the length "
            f"of {members}, {m:,}."
        )
    xp = namespace(given)
    if (falling := xp.flatnonzero(given[1:] < given[:-1])).size:
        raise InvalidEdgesError(
            f"{label} falls {counted(falling.size, 'time')}, after {'entry' if falling.size == 1 else 'entries'} "
            f"{listed(falling)} (counted from 0): it says where each row begins, and rows come one after another."
        )
    dtype = np.dtype(np.int64) if xp is np else offset_dtype(m)
    offsets: Integers = given.astype(dtype)
    return offsets


def _positions(given: Any, n: int, label: str) -> Integers:
    """Check positions of vertices; a copy."""
    _require_integers(given, label)
    if given.size and (int(given.min()) < 0 or int(given.max()) >= n):
        xp = namespace(given)
        outside = xp.flatnonzero((given < 0) | (given >= n))
        shown = [f"{int(given[place])} in entry {place}" for place in outside[:3].tolist()]
        raise InvalidEdgesError(
            f"{label} has {counted(outside.size, 'value')} that {'is' if outside.size == 1 else 'are'} no vertex of 0 "
            f"to {n - 1}: {listed(shown + [''] * (outside.size - len(shown)), 3)} (counted from 0)."
        )
    positions: Integers = given.astype(index_dtype(n))
    return positions


def _require_integers(given: Any, label: str) -> None:
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidEdgesError(
            f"{label} must be an array of integers of one dimension, not of {given.dtype} of {given.ndim}."
        )


def _weights(given: Any, m: int, label: str) -> Floats | None:
    """Check weights; a copy, or None where all are 1."""
    if given is None:
        return None
    if given.shape != (m,):
        raise InvalidEdgesError(f"{label} has the shape {given.shape}: it needs one value for each of {m:,} edges.")
    weights = pandas.numbers_of_array(given, label, InvalidEdgesError)
    return None if bool((weights == 1).all()) else weights
