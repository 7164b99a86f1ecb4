"""Reader of CSR arrays, and of sparse matrices of SciPy and CuPy. The vertices are 0..n-1, or have given ids.

Rows are sources and columns are targets. Ranks are returned in a cuDF frame if the arrays are on the GPU and cuDF is
loaded, otherwise in a pandas frame.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted, full_name, listed
from prplugin.frames.columns import Column, Frame
from prplugin.frames.remedies import advice, remedy
from prplugin.frames.suggested import row_names
from prplugin.frames.vertices import Boundary, Vertices, format_ids, ids_in
from prplugin.graph.edges import Edges, edges_by_id
from prplugin.types.arrays import (
    Array,
    MemorySpace,
    finite_numbers,
    is_host,
    is_sparse,
    is_table,
    memory_space_of,
    namespace,
    plain_array,
    to_host,
    to_memory,
)
from prplugin.types.edges import Compressed, Coo, Floats, Integers, index_dtype, offset_dtype

BUILTIN = "integer", "string", "boolean"
"""Kinds of Python objects that are ids of a type of pandas if they are in a list."""


class Matrix(NamedTuple):
    """A sparse matrix before validation.

    `layout` is "csr", "csc" or "coo", whose `row` and `col` are in `offsets` and `indices`; `n` is None if the offsets
    determine it; `names` are the names of the three arrays, for messages.
    """

    layout: str
    offsets: Any
    indices: Any
    weights: Any
    n: int | None
    names: tuple[str, str, str]
    ids: Any = None  # of the rows, if the matrix has them


@dataclass(frozen=True)
class OnHost(Boundary):
    """Process arguments of a graph in device memory on the host, without cuDF."""

    memory_space: MemorySpace  # of the graph

    def convert(self, given: object, what: str) -> Any:
        return to_host(cast(Array, given))

    def values(self, array: object) -> Any:
        return to_memory(cast(Array, array), self.memory_space)


def read_matrix(offsets: Any, indices: Any, weights: Any) -> Matrix:
    """Return a `Matrix` from a sparse matrix in `offsets`, or from CSR arrays; raise InvalidEdgesError for others."""
    if indices is not None:
        if offsets is None:
            raise InvalidEdgesError("from_csr has indices, but no offsets: pass offsets, indices and perhaps weights.")
        offsets, indices, weights = (
            given if given is None or not is_host(given) else np.asanyarray(given)  # lists, too
            for given in (offsets, indices, weights)
        )
        if len({memory_space_of(array) for array in (offsets, indices, weights) if array is not None}) > 1:
            raise InvalidEdgesError("offsets, indices and weights are partly on the GPU: move all to host or device.")
        return Matrix("csr", offsets, indices, weights, None, ("offsets", "indices", "weights"))
    matrix = offsets
    if weights is not None:
        raise InvalidEdgesError("from_csr takes the weights of a matrix from the matrix: leave out weights=.")
    if is_table(matrix) and not is_sparse(matrix):
        return _read_frame(matrix)
    if not is_sparse(matrix):
        raise InvalidEdgesError(
            "from_csr takes offsets, indices and perhaps weights, or one sparse matrix of SciPy or CuPy, or a frame "
            f"with a row and a column per vertex, not {full_name(matrix)} alone."
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidEdgesError(
            f"the matrix has the shape {matrix.shape}: an adjacency matrix has as many rows as columns, one per vertex."
        )
    if matrix.format not in ("csr", "csc", "coo"):
        raise InvalidEdgesError(
            f"the matrix is in the format {matrix.format!r}, of which from_csr reads csr, csc and coo: convert it, for "
            f"instance with {remedy('format of a matrix')}."
        )
    names = ("row", "col", "data") if matrix.format == "coo" else ("indptr", "indices", "data")
    offsets, indices, weights = (getattr(matrix, name) for name in names)
    return Matrix(matrix.format, offsets, indices, weights, int(matrix.shape[0]), names)


def _read_frame(given: Frame) -> Matrix:
    """Read a frame with a row and a column per vertex, named by its index or by its first column; 0 is no edge."""
    import pandas as pd

    frame = ids_in("host").convert(given.to_pandas() if type(given).__module__.startswith("cudf") else given, "frame")
    if not isinstance(frame, pd.DataFrame):
        raise InvalidEdgesError(f"from_csr takes no {full_name(given)}.")
    labels, rows = list(frame.columns), frame.index
    if len(labels) == len(rows) + 1 and (by_label := row_names(frame.iloc[:, 0].tolist(), labels[1:])):
        rows, frame = pd.Index(frame.iloc[:, 0]), frame.iloc[:, 1:]
        labels = [by_label[label] for label in labels[1:]]
    if rows.has_duplicates or len(rows) != len(labels) or {*rows} != {*labels}:
        raise InvalidEdgesError(
            f"the frame has {counted(len(rows), 'row')} and {counted(len(labels), 'column')}: a frame that is a matrix "
            "has one of each per vertex, and its index, or its first column, has the names of the columns."
        )
    if missing := sum(int(column.isna().sum()) for _, column in frame.items()):
        how = advice("If they are no edges, fill them", "fill cells")
        raise InvalidEdgesError(f"the frame has {counted(missing, 'cell')} without a value. {how}")
    cells = [_entries_of(column, f"column {label!r}") for label, column in frame.items()]
    targets = np.repeat(rows.get_indexer(labels), [sources.size for sources, _ in cells])
    sources, weights = (np.concatenate(parts) if cells else np.empty(0) for parts in zip(*cells, strict=True))
    return Matrix("coo", sources, targets, weights, len(rows), ("rows", "columns", "cells"), rows)


def _entries_of(column: Column, label: str) -> tuple[Integers, Floats]:
    """Return the positions and the values of the cells of a column that are not 0; of a sparse one, from those."""
    cells: Any = column.array
    if isinstance(column.dtype, sys.modules["pandas"].SparseDtype) and cells.fill_value == 0:
        places, values = cells.sp_index.to_int_index().indices, finite_numbers(cells.sp_values)
    else:
        places, values = np.arange(len(column)), None
    if values is None:  # messages count rows
        values = checked_weights(column.to_numpy(), len(column), label)
        places, values = np.arange(len(column)), np.ones(len(column)) if values is None else values
    stored = np.flatnonzero(values)
    return places[stored], values[stored]


def adjacency(matrix: Matrix, ids: object = None) -> tuple[Edges, Vertices]:
    """Validate a matrix; return a graph with copies of its arrays in their memory space, and its vertices.

    `ids`: Ids of the vertices, in the order of the rows; None: 0..n-1. With integers the vertices are ordered by them.

    Repeated entries are parallel edges, and entries of value 0 are edges of weight 0. The graph is unweighted if all
    weights are 1.
    """
    layout, size, (offsets_name, indices_name, weights_name) = matrix.layout, matrix.n, matrix.names
    offsets = plain_array(matrix.offsets, offsets_name, InvalidEdgesError)
    indices = plain_array(matrix.indices, indices_name, InvalidEdgesError)
    weights = plain_array(matrix.weights, weights_name, InvalidEdgesError)
    if layout == "coo":
        n = size or 0
        rows, columns = _positions(offsets, n, offsets_name), _positions(indices, n, indices_name)
        if rows.size != columns.size:
            raise InvalidEdgesError(f"{offsets_name} has {rows.size:,} entries, and {indices_name} {columns.size:,}.")
        graph = Edges(Coo(rows, columns, checked_weights(weights, rows.size, weights_name), n))
    else:
        offsets = _offsets(offsets, int(indices.size), size, offsets_name, indices_name)
        indices = _positions(indices, offsets.size - 1, indices_name)
        weights = checked_weights(weights, indices.size, weights_name)
        graph = Edges.of(Compressed(offsets, indices, weights), by_target=layout == "csc")
    in_cudf = graph.memory_space == "device" and "cudf" in sys.modules
    if (ids := matrix.ids if ids is None else ids) is not None:
        graph, vertices = with_ids(graph, ids)
        return graph, vertices.on_device() if in_cudf else vertices
    if in_cudf:
        return graph, Vertices(["vertex"], [ids_in("device").xp.arange(graph.n)], ["integer"], "device")
    positions = np.arange(graph.n, dtype=np.int64)
    return graph, Vertices(["vertex"], [positions], ["integer"], boundary=OnHost(graph.memory_space))


def with_ids(graph: Edges, given: object, inferred: Collection[str] = BUILTIN) -> tuple[Edges, Vertices]:
    """Return the graph and its vertices with these ids, which must be distinct, one per row.

    `inferred`: Kinds of Python objects in a list that become a column of a type of their own.
    """
    import pandas as pd

    ids = ids_in("host")
    given = ids.convert(plain_array(given, "vertices"), "vertices")
    names: list[Hashable] = ["vertex"]
    if isinstance(given, pd.DataFrame) and given.shape[1] > 1:
        names = list(given.columns)
        columns = [ids.column_of(given, place) for place in range(len(names))]
    else:
        columns = ids.id_columns(given, None, "vertices")
    if isinstance(given, (list, tuple)) and pd.api.types.infer_dtype(columns[0], skipna=False) in inferred:
        columns = [columns[0].infer_objects()]
    if len(columns[0]) != graph.n:
        raise InvalidOptionError(
            f"vertices has {counted(len(columns[0]), 'id')}, but the matrix has {counted(graph.n, 'row')}: pass one id "
            "per row, in the order of the rows."
        )
    labels = ["vertices"] if len(names) == 1 else [f"vertices[{name!r}]" for name in names]
    loops, found, kinds = ids.encode(
        [columns, columns], [labels, labels], partial(edges_by_id, grouped=False, lasting=True)
    )
    vertices = Vertices(names, found, kinds, boundary=OnHost(graph.memory_space))
    assert isinstance(loops, Coo)
    positions: Any = loops.source
    if len(vertices) < graph.n:
        repeated = np.flatnonzero(np.bincount(positions) > 1)
        raise InvalidOptionError(
            f"vertices names {counted(repeated.size, 'id')} more than once: "
            f"{listed(format_ids(vertices.plain_ids, repeated))}. Each row of the matrix needs its own id."
        )
    if (positions[1:] < positions[:-1]).any():
        positions, edges = to_memory(positions, graph.memory_space), graph.get(Coo)
        graph = Edges(Coo(positions[edges.source], positions[edges.destination], edges.weights, graph.n))
    return graph, vertices


def _offsets(given: Array, m: int, n: int | None, label: str, members: str) -> Integers:
    """Check CSR or CSC offsets; return a copy as int64, on the GPU as `offset_dtype(m)`."""
    _require_integers(given, label)
    if not given.size or (n is not None and given.size != n + 1):
        entries = f"{n + 1:,} entries, one more than there are vertices" if n is not None else "at least one entry"
        raise InvalidEdgesError(f"{label} has {counted(given.size, 'entry', 'entries')}: it needs {entries}.")
    check_offsets(given, m, label, f"the length of {members}")
    offsets: Integers = given.astype(np.int64 if is_host(given) else offset_dtype(m))
    return offsets


def check_offsets(given: Array, m: int, label: str, end: str) -> None:
    """Raise unless offsets go from 0 to m, which is called `end` in messages, and never fall."""
    if int(given[0]) != 0 or int(given[-1]) != m:
        raise InvalidEdgesError(
            f"{label} goes from {int(given[0]):,} to {int(given[-1]):,}: it must begin with 0 and end with {end}, "
            f"{m:,}."
        )
    xp = namespace(given)
    if (decreases := xp.flatnonzero(given[1:] < given[:-1])).size:
        raise InvalidEdgesError(
            f"{label} falls {counted(decreases.size, 'time')}, after {'entry' if decreases.size == 1 else 'entries'} "
            f"{listed(decreases)} (counted from 0): the offsets of the rows must not decrease."
        )


def _positions(given: Array, n: int, label: str) -> Integers:
    """Check positions of vertices; return a copy as `index_dtype(n)`."""
    _require_integers(given, label)
    check_vertices(given, n, label)
    positions: Integers = given.astype(index_dtype(n))
    return positions


def check_vertices(given: Array, n: int, label: str, first: int = 0) -> None:
    """Raise unless all numbers are vertices, `first` to first + n - 1."""
    xp, last = namespace(given), first + n - 1
    if given.size and (int(given.min()) < first or int(given.max()) > last):
        outside = xp.flatnonzero((given < first) | (given > last))
        shown = [f"{int(given[place])} in entry {place}" for place in outside[:3].tolist()]
        raise InvalidEdgesError(
            f"{label} has {counted(outside.size, 'value')} that {'is' if outside.size == 1 else 'are'} no vertex of "
            f"{first} to {last}: {listed(shown + [''] * (outside.size - len(shown)), 3)} (counted from 0)."
        )


def _require_integers(given: Array, label: str) -> None:
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidEdgesError(
            f"{label} must be an array of integers of one dimension, not of {given.dtype} of {given.ndim}."
        )


def checked_weights(given: Array | None, m: int, label: str) -> Floats | None:
    """Check weights, if given; return a copy as float64, or None if all are 1."""
    if given is None:
        return None
    if given.shape != (m,):
        raise InvalidEdgesError(f"{label} has the shape {given.shape}: it needs one value for each of {m:,} edges.")
    if (weights := finite_numbers(given)) is None:
        weights = ids_in("host").numbers_of_array(given, label, InvalidEdgesError)
    return None if bool((weights == 1).all()) else weights
