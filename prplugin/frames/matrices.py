"""Reader of CSR arrays, and of sparse matrices of SciPy and CuPy. The vertices are 0..n-1, or have given ids.

Rows are sources and columns are targets. Ranks are returned in a cuDF frame if the arrays are on the GPU and cuDF is
loaded, otherwise in a pandas frame.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted, full_name, listed
from prplugin.frames.columns import Frame, same_kind
from prplugin.frames.groups import SIDE, inverse
from prplugin.frames.remedies import advice, remedy
from prplugin.frames.suggested import row_names
from prplugin.frames.vertices import Boundary, Vertices, format_ids, ids_in
from prplugin.graph.dedup import with_reverse_edges
from prplugin.graph.edges import Edges, edges_by_id, rows_of
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

if TYPE_CHECKING:
    import pandas as pd

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
    columns: int | None = None  # number of columns if these are other vertices than the rows
    column_ids: Any = None  # of the columns, like `ids`, if these are other vertices


@dataclass(frozen=True)
class OnHost(Boundary):
    """Process arguments of a graph in device memory on the host, without cuDF."""

    memory_space: MemorySpace  # of the graph

    def convert(self, given: object, what: str) -> Any:
        return to_host(cast(Array, given))

    def values(self, array: object) -> Any:
        return to_memory(cast(Array, array), self.memory_space)


def read_matrix(offsets: Any, indices: Any, weights: Any, *, bipartite: bool = False) -> Matrix:
    """Return a `Matrix` from a sparse matrix in `offsets`, or from CSR arrays; raise InvalidEdgesError for others.

    `bipartite`: Whether rows and columns are different vertices.
    """
    if indices is not None:
        if bipartite:
            raise InvalidOptionError("bipartite=True supports sparse matrices and frames, whose shapes they state.")
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
        return _read_frame(matrix, bipartite=bipartite)
    if not is_sparse(matrix):
        raise InvalidEdgesError(
            "from_csr takes offsets, indices and perhaps weights, or one sparse matrix of SciPy or CuPy, or a frame "
            f"with a row and a column per vertex, not {full_name(matrix)} alone."
        )
    if len(matrix.shape) != 2 or (matrix.shape[0] != matrix.shape[1] and not bipartite):
        raise InvalidEdgesError(
            f"the matrix has the shape {matrix.shape}: an adjacency matrix has as many rows as columns, one per vertex."
            " If its rows and columns are different vertices, pass bipartite=True."
        )
    if matrix.format not in ("csr", "csc", "coo"):
        raise InvalidEdgesError(
            f"the matrix is in the format {matrix.format!r}, of which from_csr reads csr, csc and coo: convert it, for "
            f"instance with {remedy('format of a matrix')}."
        )
    names = ("row", "col", "data") if matrix.format == "coo" else ("indptr", "indices", "data")
    offsets, indices, weights = (getattr(matrix, name) for name in names)
    rows, columns = map(int, matrix.shape)
    return Matrix(matrix.format, offsets, indices, weights, rows, names, columns=columns if bipartite else None)


def _read_frame(given: Frame, *, bipartite: bool) -> Matrix:
    """Read a frame with a row and a column per vertex, named by its index or by its first column; 0 is no edge.

    `bipartite`: Whether rows and columns are different vertices; rows are then named by the index.
    """
    import pandas as pd

    frame = ids_in("host").convert(given.to_pandas() if type(given).__module__.startswith("cudf") else given, "frame")
    if not isinstance(frame, pd.DataFrame):
        raise InvalidEdgesError(f"from_csr takes no {full_name(given)}.")
    labels, rows = list(frame.columns), frame.index
    if bipartite:
        if rows.has_duplicates or frame.columns.has_duplicates:
            raise InvalidEdgesError("the index or the columns of the frame name a vertex twice: sum or rename these.")
    elif len(labels) == len(rows) + 1 and (by_label := row_names(frame.iloc[:, 0].tolist(), labels[1:])):
        rows, frame = pd.Index(frame.iloc[:, 0]), frame.iloc[:, 1:]
        labels = [by_label[label] for label in labels[1:]]
    if not bipartite and (rows.has_duplicates or len(rows) != len(labels) or {*rows} != {*labels}):
        raise InvalidEdgesError(
            f"the frame has {counted(len(rows), 'row')} and {counted(len(labels), 'column')}: a frame that is a matrix "
            "has one of each per vertex, and its index, or its first column, has the names of the columns."
        )
    if missing := sum(int(column.isna().sum()) for _, column in frame.items()):
        how = advice("If they are no edges, fill them", "fill cells")
        raise InvalidEdgesError(f"the frame has {counted(missing, 'cell')} without a value. {how}")
    cells = [_entries_of(column, f"column {label!r}") for label, column in frame.items()]
    places = np.arange(len(labels)) if bipartite else rows.get_indexer(labels)
    targets = np.repeat(places, [sources.size for sources, _ in cells])
    sources, weights = (np.concatenate(parts) if cells else np.empty(0) for parts in zip(*cells, strict=True))
    more = (len(labels), frame.columns) if bipartite else ()
    return Matrix("coo", sources, targets, weights, len(rows), ("rows", "columns", "cells"), rows, *more)


def _entries_of(column: pd.Series, label: str) -> tuple[Integers, Floats]:
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


def adjacency(matrix: Matrix, ids: object = None, *, directed: bool = True) -> tuple[Edges, Vertices]:
    """Validate a matrix; return a graph with copies of its arrays in their memory space, and its vertices.

    `ids`: Ids of the vertices, in the order of the rows; None: 0..n-1. With integers the vertices are ordered by them.

    Repeated entries are parallel edges, and entries of value 0 are edges of weight 0. The graph is unweighted if all
    weights are 1. `directed`: Whether entries of a matrix whose columns are other vertices are edges one way only.
    """
    layout, size, (offsets_name, indices_name, weights_name) = matrix.layout, matrix.n, matrix.names
    offsets = plain_array(matrix.offsets, offsets_name, InvalidEdgesError)
    indices = plain_array(matrix.indices, indices_name, InvalidEdgesError)
    weights = plain_array(matrix.weights, weights_name, InvalidEdgesError)
    if matrix.columns is not None and layout != "coo":
        across = matrix.columns if layout == "csr" else size
        offsets = _offsets(
            offsets, int(indices.size), size if layout == "csr" else matrix.columns, offsets_name, indices_name
        )
        columns = _positions(indices, across or 0, indices_name)
        pair = rows_of(offsets, columns.size), columns
        layout, (offsets, indices) = "coo", pair if layout == "csr" else pair[::-1]
    if layout == "coo":
        n, width = size or 0, (size if matrix.columns is None else matrix.columns) or 0
        rows, columns = _positions(offsets, n, offsets_name), _positions(indices, width, indices_name)
        if rows.size != columns.size:
            raise InvalidEdgesError(f"{offsets_name} has {rows.size:,} entries, and {indices_name} {columns.size:,}.")
        weights = checked_weights(weights, rows.size, weights_name)
        if matrix.columns is not None:
            return _two_sided(Coo(rows, columns, weights, n + width), matrix, ids, directed=directed)
        graph = Edges(Coo(rows, columns, weights, n))
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


def _two_sided(edges: Coo, matrix: Matrix, given: object, *, directed: bool) -> tuple[Edges, Vertices]:
    """Return the graph of a matrix whose rows and columns are different vertices, of the sides "src" and "dst".

    `edges`: With sources and targets by row and column. `given`: A pair of ids of the rows and of the columns.
    """
    ids, n = ids_in("host"), matrix.n or 0
    if given is None:
        given = (matrix.ids, matrix.column_ids)
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidOptionError("vertices must be a tuple of two with bipartite=True: the ids of rows and of columns.")
    columns: list[pd.Series] = []
    kinds, orders = [], []
    for own, count, what in zip(given, (n, edges.n - n), ("rows", "columns"), strict=True):
        label = f"vertices of the {what}"
        column = ids.as_column(np.arange(count)) if own is None else ids.id_columns(own, None, label)[0].infer_objects()
        kinds.append(ids.kind_of(column, label))
        if len(column) != count or column.duplicated().any():
            raise InvalidOptionError(
                f"{label}: {counted(count, 'distinct id')} are needed, one for each of the {what}."
            )
        order = np.argsort(ids.integers(column), kind="stable") if kinds[-1] == "integer" else np.arange(count)
        orders.append(order)
        columns.append(ids.take(column, order))
    kind = same_kind(kinds, ["rows", "columns"])
    sides: pd.Series = ids.take(ids.text(["src", "dst"]), np.repeat([0, 1], [n, edges.n - n]))
    joined = ids.concatenate([ids.without_categories(column.array) for column in columns], "vertices")
    space = memory_space_of(edges.source)
    places = [to_memory(inverse(order), space) for order in orders]
    dtype = index_dtype(edges.n)
    source, destination = places[0][edges.source].astype(dtype), (places[1][edges.destination] + n).astype(dtype)
    edges = replace(edges, source=source, destination=destination)
    edges = edges if directed else with_reverse_edges(edges)
    vertices = Vertices([SIDE, "vertex"], [sides.array, joined], ["string", kind], boundary=OnHost(space))
    on_device = space == "device" and "cudf" in sys.modules
    return Edges(edges, symmetric=not directed), vertices.on_device() if on_device else vertices


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
    positions = loops.source
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
