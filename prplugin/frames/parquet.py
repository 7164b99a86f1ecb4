"""Parquet files as edges, by their paths or as a dataset of pyarrow: read a row group at a time, and never all at once.

Two passes over the columns in use: one finds the vertices and their degrees, one puts each edge in its place. Between
them the host holds a row group, a few numbers and the id for each vertex, and in the end 4 bytes an edge (8 past 2**31
vertices), 8 more with a weight; twice the 4 where rows are worked on first, for ``directed=False`` or `duplicates`. The
pandas adapter reads each row group, so that ids mean the same as there, and errors read the same. Ranks come as a
`pyarrow.Table`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, PageRankError
from prplugin.frames import narwhals, pandas
from prplugin.frames.columns import Columns
from prplugin.frames.narwhals import Vertices, read_positions, read_seeds, read_values, write, write_ids
from prplugin.machine import COMPILED_FROM
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = [
    "accepts",
    "opened",
    "place",
    "read",
    "read_positions",
    "read_seeds",
    "read_values",
    "write",
    "write_ids",
]

place = "host"


@dataclass(frozen=True)
class _Group:
    """A row group: its rows by positions among its own vertices."""

    edges: Any
    vertices: pandas.Vertices


def accepts(frame: object) -> bool:
    """Say whether this is a path, or a dataset of pyarrow."""
    if isinstance(frame, (str, os.PathLike)):
        return True
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(frame, dataset.Dataset)


def opened(frame: Any) -> tuple[ds.Dataset, list[Hashable]]:
    """Give the file, or the files in a folder, as a dataset, and the names of its columns."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(frame, (str, os.PathLike)):
        path = os.fspath(frame)
        try:
            frame = _dataset(path)
        except FileNotFoundError as error:
            raise InvalidEdgesError(f"edges are the path {path!r}, where there is no file.") from error
        except (OSError, pa.ArrowException) as error:
            raise InvalidEdgesError(f"edges are the path {path!r}, where no Parquet can be read: {error}") from error
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
    """Open the files at a path; folders named `key=value` give columns, but where the files have these themselves."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        return ds.dataset(path, format="parquet", partitioning="hive")
    except pa.ArrowTypeError:  # of another type than that of the values in the names
        return ds.dataset(path, format="parquet")


def read(
    frame: ds.Dataset, columns: Columns, vertices: object, *, by_row: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Replace the ids of a dataset by positions, as the pandas adapter does.

    Parameters
    ----------
    frame : pyarrow.dataset.Dataset
        From `opened`.
    lasting : bool, default True
        Of no account: edges never come back to the files.
    """
    import narwhals as nw
    import pyarrow as pa

    from prplugin.frames._parquet_files import common_schema, files_of  # imports pandas

    used, columns = columns.alone()
    names = [frame.schema.names[position] for position in used]
    schema = pa.schema([frame.schema.field(position) for position in used])
    files = files_of(frame, columns, names)
    common = common_schema(files, schema, columns)

    def groups() -> Iterator[_Group]:
        row = 0
        for file in files:
            for table in file.tables(common):
                yield _read(table, columns, None, row)
                row += table.num_rows

    # Weights may be of any type, and integers of several, but those of no rows.
    none = pa.schema(
        [field or pa.field(name, pa.int64()) for field, name in zip(common, names, strict=True)]
    ).empty_table()
    more = _read(none, columns, narwhals.as_pandas(vertices, "vertices"), 0)
    found = _found(groups(), more, [f"column {name!r}" for name in (*columns.source_names, *columns.destination_names)])
    weighted = columns.weight is not None
    put = _by_row if by_row or found.m < COMPILED_FROM else _by_target
    edges = put(groups(), found, weighted=weighted)
    fields = (
        [None] * len(columns.source)
        if vertices is not None
        else [
            narwhals.common_field([common[end] for end in ends])
            for ends in zip(columns.source, columns.destination, strict=True)
        ]
    )
    return edges, Vertices(found.vertices(), fields, nw.Implementation.PYARROW)


def _read(table: pa.Table, columns: Columns, vertices: object, first_row: int) -> _Group:
    """Read the rows of a row group, the first of which is that row of all."""
    try:
        return _Group(*pandas.read(narwhals.as_frame(table), columns, vertices, by_row=True))
    except PageRankError as error:
        if not first_row:
            raise
        where = f"in the row group that begins with row {first_row:,}, from which rows are counted here"
        raise type(error)(f"{where}: {error}") from error


# --- the vertices of all ------------------------------------------------------------------------------------------


def _found(groups: Iterator[_Group], more: _Group, labels: list[str]) -> _Found:
    """Find the vertices of all row groups and, after those, `more`; also their degrees."""
    found = (_Integers if more.vertices.kinds == ["integer"] else _Others)(more, labels)
    for group in groups:
        found.add(group)
    found.add(more)
    found.settle()
    return found


class _Found:
    """Vertices that row groups have named.

    Attributes
    ----------
    m : int
        How many edges there are.
    in_degrees, out_degrees : arrays of n int64
        Once `settle` is called.
    """

    def __init__(self, like: _Group, labels: list[str]) -> None:
        self.m = 0
        self._labels = labels
        self.in_degrees = self.out_degrees = np.empty(0, np.int64)
        self._like = like.vertices

    def add(self, group: _Group) -> None:
        """Enter the vertices of a row group."""
        raise NotImplementedError

    def settle(self) -> None:
        """Bring together what was entered."""

    def positions(self, vertices: pandas.Vertices) -> Integers:
        """Give the position of each vertex of a row group that was entered."""
        raise NotImplementedError

    def columns(self) -> list[Any]:
        """Give the ids of all, as arrays of pandas."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """How many vertices there are, once `settle` is called."""
        return self.in_degrees.size

    def vertices(self) -> pandas.Vertices:
        """Give all as the pandas adapter has them."""
        return pandas.Vertices(self._like.names, self.columns(), self._like.kinds)


class _Integers(_Found):
    """Integer ids, in ascending order."""

    def __init__(self, like: _Group, labels: list[str]) -> None:
        super().__init__(like, labels)
        self._seen: list[tuple[Integers, ...]] = [(_plain(like.vertices)[:0], self.in_degrees, self.out_degrees)]
        self._waiting = 0

    def add(self, group: _Group) -> None:
        edges = group.edges
        self.m += edges.m
        self._seen.append((_plain(group.vertices), *_degrees(edges)))
        self._waiting += edges.n
        if self._waiting > self.n:  # so that each is sorted a few times at the most
            self.settle()

    def settle(self) -> None:
        seen, *degrees = zip(*self._seen, strict=True)
        ids, counts = _in_one_type(list(seen), self._labels), [np.concatenate(column) for column in degrees]
        self._ids, places = np.unique(ids, return_inverse=True)
        self.in_degrees, self.out_degrees = (_added(places, count, self._ids.size) for count in counts)
        self._seen, self._waiting = [(self._ids, self.in_degrees, self.out_degrees)], 0

    def positions(self, vertices: pandas.Vertices) -> Integers:
        found: Integers = np.searchsorted(self._ids, _plain(vertices).astype(self._ids.dtype, copy=False))
        return found

    def columns(self) -> list[Any]:
        import pandas as pd

        from prplugin.frames._pandas_ids import integers_like  # imports pandas

        return [integers_like(self._ids, [pd.Series(self._like.columns[0])])]


class _Others(_Found):
    """Ids of any other kind, or of several columns, as they first appear."""

    def __init__(self, like: _Group, labels: list[str]) -> None:
        super().__init__(like, labels)
        self._known: dict[Any, int] = {}
        self._new: list[list[Any]] = [[column[:0]] for column in like.vertices.columns]

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
        places, n = self.positions(group.vertices), len(self._known)
        more = np.zeros(n - self.n, np.int64)
        for name, count in zip(("in_degrees", "out_degrees"), _degrees(edges), strict=True):
            counts = np.append(getattr(self, name), more)
            counts[places] += count  # each vertex of a row group is there once
            setattr(self, name, counts)

    def positions(self, vertices: pandas.Vertices) -> Integers:
        return np.fromiter((self._known[key] for key in _keys(vertices)), np.int64, len(vertices))

    def columns(self) -> list[Any]:
        import pandas as pd

        from prplugin.frames._pandas_ids import integers, integers_like  # imports pandas

        found = []
        for parts, kind in zip(self._new, self._like.kinds, strict=True):
            columns = [pd.Series(part) for part in parts]
            if kind == "integer":  # of several types, perhaps, some of which pandas would join through floats
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
    """Hold times of day as integers, since Python's have no nanoseconds."""
    import pyarrow as pa

    kind = getattr(column.dtype, "pyarrow_dtype", None)
    if kind is None or not pa.types.is_time(kind):
        return column
    return pa.array(column).cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())


def _degrees(edges: Any) -> tuple[Integers, Integers]:
    return np.bincount(edges.destination, minlength=edges.n), np.bincount(edges.source, minlength=edges.n)


def _added(places: Integers, counts: Integers, n: int) -> Integers:
    sums = np.zeros(n, np.int64)
    np.add.at(sums, places, counts)
    return sums


# --- the edges ----------------------------------------------------------------------------------------------------


def _by_row(groups: Iterator[_Group], found: _Found, *, weighted: bool) -> Edges:
    """Put the edges row by row."""
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


def _by_target(groups: Iterator[_Group], found: _Found, *, weighted: bool) -> GroupedEdges:
    """Put each edge in its place by target."""
    from prplugin.cpu.pieces import EdgesInPieces  # imports Numba

    pieces = EdgesInPieces(found.in_degrees, found.out_degrees, weighted=weighted)
    index = index_dtype(found.n)
    for group in groups:
        edges, positions = group.edges, found.positions(group.vertices).astype(index, copy=False)
        pieces.add(positions[edges.source], positions[edges.destination], edges.weights)
    return pieces.edges()
