"""Adapter of Parquet files, given by path or as a pyarrow dataset.

If memory suffices, or edges have times, the columns in use are read as one table. Otherwise row groups are read one at
a time, in two passes: the first collects the vertices and their degrees, the second stores the edges. The host then
holds one row group, the degrees and the id of each vertex, and 4 bytes per edge (8 from 2**31 vertices on), 8 more with
a weight, and another 4 if edges are needed by row, for ``directed=False`` or `duplicates`. The pandas adapter reads the
table or each row group, so that ids are compared, and errors reported, in the same way. Ranks are returned as a
`pyarrow.Table`.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, PageRankError
from prplugin.frames import narwhals, pandas
from prplugin.frames._pandas_kinds import casts_of
from prplugin.frames.columns import Columns
from prplugin.machine import COMPILED_FROM, bytes_available
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from prplugin.frames._parquet_files import File

__all__ = ["memory_space", "open_frame", "read"]

memory_space: MemorySpace = "host"

PEAK = 4
"""Upper estimate of the peak memory of reading and factorizing a table, in multiples of its size."""


@dataclass(frozen=True)
class _Group:
    """A factorized row group: codes refer to the vertices of this row group."""

    edges: Any
    vertices: pandas.Vertices


def open_frame(frame: Any) -> tuple[ds.Dataset, list[Hashable]]:
    """Open a path as a pyarrow dataset; return the dataset, and its column labels."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(frame, (str, os.PathLike)):
        path = os.fspath(frame)
        try:
            frame = _dataset(path)
        except FileNotFoundError as error:
            raise InvalidEdgesError(f"edges are the path {path!r}, where there is no file.") from error
        except (OSError, pa.ArrowException) as error:
            raise InvalidEdgesError(
                f"edges are the path {path!r}, where no Parquet can be read: {error}. "
                "prplugin.Graph.from_file(path, format='csv') reads text whatever its name."
            ) from error
        if not frame.files:
            raise InvalidEdgesError(f"edges are the path {path!r}, a folder in which there is no Parquet file.")
    if not isinstance(getattr(frame, "format", None), ds.ParquetFileFormat):
        raise InvalidEdgesError("the dataset is not of Parquet files: read it, or write it as Parquet.")
    try:
        frame.get_fragments()
    except ValueError as error:
        raise InvalidEdgesError(
            "the dataset has a filter, or computes columns: rank the table that it gives, dataset.to_table()."
        ) from error
    return frame, list(frame.schema.names)


def _dataset(path: str) -> ds.Dataset:
    """Open the files at a path as a dataset; folders named `key=value` add columns that the files do not have."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        return ds.dataset(path, format="parquet", partitioning="hive")
    except pa.ArrowTypeError:  # the files have columns of these names, of another type
        return ds.dataset(path, format="parquet")


def read(
    frame: ds.Dataset, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, narwhals.Vertices]:
    """Factorize the endpoints of a dataset: see `prplugin.frames.base.FrameAdapter.read`. Edges never alias columns."""
    import narwhals as nw
    import pyarrow as pa

    from prplugin.frames._parquet_files import common_schema, files_of  # imports pandas

    used, columns = columns.in_use()
    names = [frame.schema.names[position] for position in used]
    schema = pa.schema([frame.schema.field(position) for position in used])
    files = files_of(frame, columns, names)
    common = common_schema(files, schema, columns)
    fields = narwhals.fields_of_vertices(common, columns, vertices)
    given = narwhals.as_pandas(vertices, "vertices")
    at_once = columns.time is not None  # the latest time is known only when all are read
    if (table := _table(files, common, at_once=at_once)) is not None:
        with casts_of("pyarrow"):
            read = pandas.read(narwhals.as_frame(table), columns, given, edge_list=edge_list, lasting=lasting)
        return read[0], narwhals.Vertices(read[1], fields, nw.Implementation.PYARROW, "pyarrow")

    def groups() -> Iterator[_Group]:
        row = 0
        for file in files:
            for table in file.tables(common):
                yield _read(table, columns, None, row)
                row += table.num_rows

    # An empty table of the common types; where a file keeps its own type (weights, some integers), int64 stands in.
    none = pa.schema(
        [field or pa.field(name, pa.int64()) for field, name in zip(common, names, strict=True)]
    ).empty_table()
    more = _read(none, columns, given, 0)
    labels = [f"column {name!r}" for name in (*columns.source_names, *columns.destination_names)]
    integers = more.vertices.kinds == ["integer"]
    found = _Integers(more.vertices, labels) if integers else _Others(more.vertices, labels)
    for group in chain(groups(), [more]):
        found.add(group)
    found.merge()
    put = _as_edge_list if edge_list or found.m < COMPILED_FROM else _by_target
    edges = put(groups(), found, weighted=columns.weight is not None)
    known = pandas.Vertices(more.vertices.names, found.columns(), more.vertices.kinds)
    return edges, narwhals.Vertices(known, fields, nw.Implementation.PYARROW, "pyarrow")


def _table(files: list[File], common: list[pa.Field | None], *, at_once: bool) -> pa.Table | None:
    """Return all row groups as one table; None if memory does not suffice, or if their types differ.

    With `at_once` memory is not asked for, and different types are an error.
    """
    import pyarrow as pa

    most, rows = bytes_available() / PEAK, sum(file.rows for file in files)
    tables: list[pa.Table] = []
    held = taken = 0
    for file in files:
        for table in file.tables(common):
            tables.append(table)
            held, taken = held + table.nbytes, taken + table.num_rows
            if at_once and table.schema != tables[0].schema:
                raise InvalidEdgesError(
                    f"{file.where} has other types than the files before it, which edges with times may not have: "
                    "cast the files to one type."
                )
            if not at_once and (table.schema != tables[0].schema or held * rows > most * taken):
                return None
    return pa.concat_tables(tables) if tables else None


def _read(table: pa.Table, columns: Columns, vertices: object, first_row: int) -> _Group:
    """Factorize a row group that begins at row `first_row` of the dataset."""
    try:
        with casts_of("pyarrow"):
            return _Group(*pandas.read(narwhals.as_frame(table), columns, vertices, edge_list=True))
    except PageRankError as error:
        if not first_row:
            raise
        where = f"in the row group that begins with row {first_row:,}, from which rows are counted here"
        raise type(error)(f"{where}: {error}") from error


# --- vertices of all row groups -----------------------------------------------------------------------------------


class _Found:
    """Distinct vertices of all row groups, and their degrees.

    Parameters
    ----------
    like : pandas.Vertices
        Vertices whose kinds and types are those of the ids.
    labels : list of str
        Names of the columns, for messages.

    Attributes
    ----------
    m : int
        Number of edges.
    in_degrees, out_degrees : arrays of n int64
        Complete after `merge`.
    """

    def __init__(self, like: pandas.Vertices, labels: list[str]) -> None:
        self.m = 0
        self.in_degrees = self.out_degrees = np.empty(0, np.int64)
        self._like, self._labels = like, labels

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.in_degrees.size


class _Integers(_Found):
    """Vertices with integer ids, in ascending order."""

    def __init__(self, like: pandas.Vertices, labels: list[str]) -> None:
        super().__init__(like, labels)
        self._seen: list[tuple[Integers, ...]] = [(_plain(like)[:0], self.in_degrees, self.out_degrees)]
        self._waiting = 0

    def add(self, group: _Group) -> None:
        edges = group.edges
        self.m += edges.m
        self._seen.append((_plain(group.vertices), *_degrees(edges)))
        self._waiting += edges.n
        if self._waiting > self.n:  # so that a merge sorts at most twice as many as were added
            self.merge()

    def merge(self) -> None:
        """Merge the row groups added since the last merge."""
        seen, *degrees = zip(*self._seen, strict=True)
        ids, counts = _in_one_type(list(seen), self._labels), [np.concatenate(column) for column in degrees]
        self._ids, places = np.unique(ids, return_inverse=True)
        self.in_degrees, self.out_degrees = np.zeros((2, self._ids.size), np.int64)
        for sums, count in zip((self.in_degrees, self.out_degrees), counts, strict=True):
            np.add.at(sums, places, count)
        self._seen, self._waiting = [(self._ids, self.in_degrees, self.out_degrees)], 0

    def positions(self, vertices: pandas.Vertices) -> Integers:
        """Return the position of each vertex of a row group."""
        found: Integers = np.searchsorted(self._ids, _plain(vertices).astype(self._ids.dtype, copy=False))
        return found

    def columns(self) -> list[Any]:
        import pandas as pd

        from prplugin.frames._pandas_ids import integers_like  # imports pandas

        return [integers_like(self._ids, [pd.Series(self._like.columns[0])])]


class _Others(_Found):
    """Vertices with other ids, or of several columns, in the order of first appearance."""

    def __init__(self, like: pandas.Vertices, labels: list[str]) -> None:
        super().__init__(like, labels)
        self._known: dict[Any, int] = {}
        self._new: list[list[Any]] = [[column[:0]] for column in like.columns]

    def add(self, group: _Group) -> None:
        edges = group.edges
        self.m += edges.m
        new = []
        for place, key in enumerate(_keys(group.vertices)):
            if key not in self._known:
                self._known[key] = len(self._known)
                new.append(place)
        for parts, column in zip(self._new, group.vertices.columns, strict=True):
            parts.append(column.take(np.array(new, np.int64)))
        places, more = self.positions(group.vertices), np.zeros(len(self._known) - self.n, np.int64)
        self.in_degrees, self.out_degrees = (np.append(counts, more) for counts in (self.in_degrees, self.out_degrees))
        for counts, count in zip((self.in_degrees, self.out_degrees), _degrees(edges), strict=True):
            counts[places] += count  # positions in a row group are distinct

    def merge(self) -> None:
        """Do nothing, since `add` merges each row group."""

    def positions(self, vertices: pandas.Vertices) -> Integers:
        return np.fromiter((self._known[key] for key in _keys(vertices)), np.int64, len(vertices))

    def columns(self) -> list[Any]:
        import pandas as pd

        from prplugin.frames._pandas_ids import integers, integers_like  # imports pandas

        found = []
        for parts, kind in zip(self._new, self._like.kinds, strict=True):
            columns = [pd.Series(part) for part in parts]
            if kind == "integer":  # perhaps of several types, which pandas would convert to floats
                ids = _in_one_type([integers(column, "") for column in columns], self._labels)
                found.append(integers_like(ids, columns))
            else:
                found.append(pd.concat(columns, ignore_index=True).array)
        return found


def _plain(vertices: pandas.Vertices) -> Integers:
    import pandas as pd

    from prplugin.frames._pandas_ids import integers  # imports pandas

    return integers(pd.Series(vertices.columns[0]), "")


def _in_one_type(arrays: list[Integers], labels: list[str]) -> Integers:
    from prplugin.frames._pandas_ids import in_one_type  # imports pandas

    joined: Integers = np.concatenate(in_one_type(arrays, [True] * len(arrays), labels))
    return joined


def _keys(vertices: pandas.Vertices) -> Iterable[Any]:
    try:
        columns = [_comparable(column).tolist() for column in vertices.columns]
    except UnicodeDecodeError as error:
        raise InvalidEdgesError(f"a column of ids holds text that is not UTF-8: {error}. Cast it to binary.") from error
    return columns[0] if len(columns) == 1 else zip(*columns, strict=True)


def _comparable(column: Any) -> Any:
    """Return times of day as integers, since Python's `datetime.time` has no nanoseconds; others unchanged."""
    import pyarrow as pa

    kind = getattr(column.dtype, "pyarrow_dtype", None)
    if kind is None or not pa.types.is_time(kind):
        return column
    return pa.array(column).cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())


def _degrees(edges: Any) -> tuple[Integers, Integers]:
    return np.bincount(edges.destination, minlength=edges.n), np.bincount(edges.source, minlength=edges.n)


# --- edges --------------------------------------------------------------------------------------------------------


def _as_edge_list(groups: Iterator[_Group], found: _Integers | _Others, *, weighted: bool) -> Edges:
    """Return the edges in the order of the rows."""
    source, destination = np.empty((2, found.m), index_dtype(found.n))
    weights = np.empty(found.m) if weighted else None
    begin = 0
    for group in groups:
        edges, positions = group.edges, found.positions(group.vertices)
        rows = slice(begin, begin + edges.m)
        source[rows], destination[rows] = positions[edges.source], positions[edges.destination]
        if weights is not None:
            weights[rows] = edges.weights
        begin += edges.m
    return Edges(source, destination, weights, found.n)


def _by_target(groups: Iterator[_Group], found: _Integers | _Others, *, weighted: bool) -> GroupedEdges:
    """Return the edges grouped by target."""
    from prplugin.cpu.pieces import CscBuilder  # imports Numba

    pieces = CscBuilder(found.in_degrees, found.out_degrees, weighted=weighted)
    index = index_dtype(found.n)
    for group in groups:
        edges, positions = group.edges, found.positions(group.vertices).astype(index, copy=False)
        pieces.add(positions[edges.source], positions[edges.destination], edges.weights)
    return pieces.edges()
