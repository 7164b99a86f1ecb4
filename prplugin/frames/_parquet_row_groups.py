"""Vertices and edges of Parquet files of which one row group is in memory at a time. Imports pandas.

The first pass collects the vertices and their degrees, the second stores the edges. The host holds one row group, the
degrees and the id of each vertex, and 4 bytes per edge (8 from 2**31 vertices on), 8 more with a weight, and another 4
if edges are needed by row, for ``directed=False`` or `duplicates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from prplugin.errors import InvalidEdgesError, PageRankError
from prplugin.frames import _pandas_ids, narwhals, pandas
from prplugin.frames._parquet_files import File
from prplugin.frames.columns import Columns
from prplugin.machine import COMPILED_FROM
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

__all__ = ["read"]

Group: TypeAlias = tuple[Any, pandas.Vertices]
"""Edges of a row group as positions among its own vertices, and these vertices."""


def read(
    files: list[File], common: list[pa.Field | None], columns: Columns, vertices: object, *, edge_list: bool
) -> tuple[Edges | GroupedEdges, narwhals.Vertices]:
    """Factorize the endpoints: see `prplugin.frames.base.FrameAdapter.read`."""

    def groups() -> Iterator[Group]:
        row = 0
        for file in files:
            for table in file.tables(common):
                edges, group = _factorize(table, columns, row)
                yield edges, group.inner
                row += table.num_rows

    # An empty table of the common types; where a file keeps its own type (weights, some integers), int64 stands in.
    schema = [field or pa.field(str(position), pa.int64()) for position, field in enumerate(common)]
    no_edges, written = narwhals.read(pa.schema(schema).empty_table(), columns, vertices, edge_list=True)
    additional: pandas.Vertices = written.inner
    labels = [f"column {name!r}" for name in (*columns.source_names, *columns.destination_names)]
    found = (_IntegerIds if additional.kinds == ["integer"] else _OtherIds)(additional, labels)
    for edges, group in chain(groups(), [(no_edges, additional)]):
        found.m += edges.m
        degrees = [np.bincount(ends, minlength=edges.n) for ends in (edges.destination, edges.source)]
        found.add(group, degrees)
    found.merge()
    known = pandas.Vertices(additional.names, found.columns(), additional.kinds)
    put = _by_row if edge_list or found.m < COMPILED_FROM else _by_target
    edges = put(groups(), found, weighted=columns.weight is not None)
    return edges, replace(written, inner=known, fields=narwhals.fields_of_vertices(common, columns, vertices))


def _factorize(table: pa.Table, columns: Columns, first_row: int) -> tuple[Any, narwhals.Vertices]:
    """Factorize a row group that begins at row `first_row` of the dataset."""
    try:
        return narwhals.read(table, columns, None, edge_list=True)
    except PageRankError as error:
        if not first_row:
            raise
        where = f"in the row group that begins with row {first_row:,}, from which rows are counted here"
        raise type(error)(f"{where}: {error}") from error


# --- vertices of all row groups -----------------------------------------------------------------------------------


class _IntegerIds:
    """Distinct integer ids in ascending order, and their in- and out-degrees; complete after `merge`."""

    def __init__(self, like: pandas.Vertices, labels: list[str]) -> None:
        self.m, self.degrees = 0, np.empty((2, 0), np.int64)
        self._like, self._labels = like.columns[0], labels
        self._ids = _integers(like)[:0]
        self._unmerged: list[tuple[Integers, list[Integers]]] = []

    def add(self, group: pandas.Vertices, degrees: list[Integers]) -> None:
        self._unmerged.append((_integers(group), degrees))
        if sum(ids.size for ids, _ in self._unmerged) > self._ids.size:  # sort at most twice as many as were added
            self.merge()

    def merge(self) -> None:
        """Merge the row groups added since the last merge."""
        ids, degrees = zip((self._ids, self.degrees), *self._unmerged, strict=True)
        self._ids, places = np.unique(_concatenated(ids, self._labels), return_inverse=True)
        self.degrees = np.zeros((2, self._ids.size), np.int64)
        for sums, counts in zip(self.degrees, zip(*degrees, strict=True), strict=True):
            np.add.at(sums, places, np.concatenate(counts))
        self._unmerged = []

    def positions(self, group: pandas.Vertices) -> Integers:
        """Return the position of each vertex of a row group."""
        return np.searchsorted(self._ids, _integers(group).astype(self._ids.dtype, copy=False))

    def columns(self) -> list[Any]:
        return [_pandas_ids.integers_like(self._ids, [pd.Series(self._like)])]


class _OtherIds:
    """Distinct other ids, or ids of several columns, in the order of first appearance, and their degrees."""

    def __init__(self, like: pandas.Vertices, labels: list[str]) -> None:
        self.m, self.degrees = 0, np.empty((2, 0), np.int64)
        self._kinds, self._labels = like.kinds, labels
        self._known: dict[Any, int] = {}
        self._parts = [[column[:0]] for column in like.columns]

    def add(self, group: pandas.Vertices, degrees: list[Integers]) -> None:
        known = self._known
        positions = np.fromiter((known.setdefault(key, len(known)) for key in _keys(group)), np.int64, len(group))
        new = np.flatnonzero(positions >= self.degrees.shape[1])
        for parts, column in zip(self._parts, group.columns, strict=True):
            parts.append(column.take(new))
        self.degrees = np.pad(self.degrees, ((0, 0), (0, new.size)))
        self.degrees[:, positions] += degrees  # positions in a row group are distinct

    def merge(self) -> None:
        """Do nothing, since `add` merges each row group."""

    def positions(self, group: pandas.Vertices) -> Integers:
        return np.fromiter((self._known[key] for key in _keys(group)), np.int64, len(group))

    def columns(self) -> list[Any]:
        found = []
        for parts, kind in zip(self._parts, self._kinds, strict=True):
            columns = [pd.Series(part) for part in parts]
            if kind == "integer":  # perhaps of several types, which pandas would convert to floats
                ids = _concatenated([_pandas_ids.integers(column, "") for column in columns], self._labels)
                found.append(_pandas_ids.integers_like(ids, columns))
            else:
                found.append(pd.concat(columns, ignore_index=True).array)
        return found


def _integers(vertices: pandas.Vertices) -> Integers:
    return _pandas_ids.integers(pd.Series(vertices.columns[0]), "")


def _concatenated(ids: Iterable[Integers], labels: list[str]) -> Integers:
    arrays = list(ids)
    return np.concatenate(_pandas_ids.in_one_type(arrays, [True] * len(arrays), labels))


def _keys(vertices: pandas.Vertices) -> Iterable[Any]:
    try:
        columns = [np.asarray(_comparable(column), object).tolist() for column in vertices.columns]
    except (UnicodeDecodeError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"a column of ids holds text that is not UTF-8: {error}. Cast it to binary.") from error
    return columns[0] if len(columns) == 1 else zip(*columns, strict=True)


def _comparable(column: Any) -> Any:
    """Return times of day as integers, since Python's `datetime.time` has no nanoseconds; others unchanged."""
    kind = getattr(column.dtype, "pyarrow_dtype", None)
    if kind is None or not pa.types.is_time(kind):
        return column
    return pa.array(column).cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())


# --- edges --------------------------------------------------------------------------------------------------------


def _by_row(groups: Iterator[Group], found: _IntegerIds | _OtherIds, *, weighted: bool) -> Edges:
    """Return the edges in the order of the rows."""
    n = found.degrees.shape[1]
    source, destination = np.empty((2, found.m), index_dtype(n))
    weights = np.empty(found.m) if weighted else None
    begin = 0
    for edges, group in groups:
        positions, rows = found.positions(group), slice(begin, begin + edges.m)
        source[rows], destination[rows] = positions[edges.source], positions[edges.destination]
        if weights is not None:
            weights[rows] = edges.weights
        begin += edges.m
    return Edges(source, destination, weights, n)


def _by_target(groups: Iterator[Group], found: _IntegerIds | _OtherIds, *, weighted: bool) -> GroupedEdges:
    """Return the edges grouped by target."""
    from prplugin.cpu.pieces import CscBuilder  # imports Numba

    in_degrees, out_degrees = found.degrees
    builder, index = CscBuilder(in_degrees, out_degrees, weighted=weighted), index_dtype(in_degrees.size)
    for edges, group in groups:
        positions = found.positions(group).astype(index, copy=False)
        builder.add(positions[edges.source], positions[edges.destination], edges.weights)
    return builder.edges()
