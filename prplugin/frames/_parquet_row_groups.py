"""Read Parquet files one row group at a time. Imports pandas.

The first pass collects the vertices and their degrees, the second stores the edges. Host memory holds one row group,
the degrees and the id of each vertex, and 4 bytes per edge (8 for 2**31 or more vertices), plus 8 for a weight, plus 4
if an edge list is required, for ``directed=False`` or `duplicates`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from prplugin.errors import PageRankError
from prplugin.frames import _pandas_ids, narwhals
from prplugin.frames._parquet_files import File
from prplugin.frames.columns import Columns
from prplugin.frames.vertex_index import VertexIndex
from prplugin.machine import COMPILED_FROM
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

__all__ = ["read"]

Group: TypeAlias = tuple[Any, Integers]
"""Edges of a row group as positions in its vertices, and the positions of these vertices in the result."""


def read(
    files: list[File], common: list[pa.Field | None], columns: Columns, vertices: object, *, edge_list: bool
) -> tuple[Edges | GroupedEdges, narwhals.Vertices]:
    """Factorize the endpoints: see `prplugin.frames.base.FrameAdapter.read`."""

    def groups() -> Iterator[tuple[Any, narwhals.Vertices]]:
        row = 0
        for file in files:
            for table in file.tables(common):
                yield _factorize(table, columns, row)
                row += table.num_rows

    # An empty table of the common types; int64 for columns whose files keep their types (weights, some integers).
    schema = [field or pa.field(str(position), pa.int64()) for position, field in enumerate(common)]
    no_edges, additional = narwhals.read(pa.schema(schema).empty_table(), columns, vertices, edge_list=True)
    labels = [f"column {name!r}" for name in (*columns.source_names, *columns.destination_names)]
    totals = _VertexDegrees(additional, labels)
    for edges, own in chain(groups(), [(no_edges, additional)]):
        totals.add(edges, own)
    totals.merge()
    known = replace(additional, ids=totals.ids, fields=narwhals.fields_of_vertices(common, columns, vertices))
    index = VertexIndex(known)
    placed = ((edges, index.positions_of(own, "")) for edges, own in groups())
    build = _by_row if edge_list or totals.m < COMPILED_FROM else _by_target
    return build(placed, totals, weighted=columns.weight is not None), known


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


class _VertexDegrees:
    """Distinct vertices of the row groups, integers ascending, and their in- and out-degrees; complete after `merge`.

    `like`: Additional vertices, whose columns have the types of the result.
    """

    def __init__(self, like: narwhals.Vertices, labels: list[str]) -> None:
        self.m, self.degrees = 0, np.empty((2, 0), np.int64)
        self.ids: list[Any] = [column[:0] for column in like.ids]
        self._like, self._labels = like, labels
        self._unmerged: list[tuple[list[Any], list[Integers]]] = []

    def add(self, edges: Edges, vertices: narwhals.Vertices) -> None:
        """Add the vertices of a row group; merge once unmerged vertices outnumber merged ones."""
        self.m += edges.m
        degrees = [np.bincount(ends, minlength=edges.n) for ends in (edges.destination, edges.source)]
        self._unmerged.append((vertices.ids, degrees))
        if sum(len(ids[0]) for ids, _ in self._unmerged) > len(self.ids[0]):
            self.merge()

    def merge(self) -> None:
        """Merge the vertices of row groups added since the last merge."""
        ids, degrees = zip((self.ids, self.degrees), *self._unmerged, strict=True)
        self._unmerged = []
        kinds = self._like.kinds
        columns = [
            pd.Series(self._integers(parts) if kind == "integer" else _pandas_ids.concat_in_common_type(parts, "ids"))
            for parts, kind in zip(map(list, zip(*ids, strict=True)), kinds, strict=True)
        ]
        found: list[Any]
        if kinds == ["integer"]:
            distinct, codes = np.unique(columns[0].to_numpy(), return_inverse=True)
            found = [distinct]
        else:
            codes, found = _pandas_ids.distinct(columns, kinds)
        self.ids = [
            _pandas_ids.integers_like(ids, [like.dtype]) if kind == "integer" else ids
            for ids, like, kind in zip(found, self._like.ids, kinds, strict=True)
        ]
        self.degrees = np.zeros((2, len(found[0])), np.int64)
        for sums, counts in zip(self.degrees, zip(*degrees, strict=True), strict=True):
            np.add.at(sums, codes, np.concatenate(counts))

    def _integers(self, parts: list[Any]) -> Integers:
        arrays = [_pandas_ids.integers(part) for part in parts]
        return np.concatenate(_pandas_ids.in_one_type(arrays, [True] * len(arrays), self._labels))


# --- edges --------------------------------------------------------------------------------------------------------


def _by_row(groups: Iterator[Group], totals: _VertexDegrees, *, weighted: bool) -> Edges:
    """Return the edges in the order of the rows."""
    n = totals.degrees.shape[1]
    source, destination = np.empty((2, totals.m), index_dtype(n))
    weights = np.empty(totals.m) if weighted else None
    begin = 0
    for edges, positions in groups:
        rows = slice(begin, begin + edges.m)
        source[rows], destination[rows] = positions[edges.source], positions[edges.destination]
        if weights is not None:
            weights[rows] = edges.weights
        begin += edges.m
    return Edges(source, destination, weights, n)


def _by_target(groups: Iterator[Group], totals: _VertexDegrees, *, weighted: bool) -> GroupedEdges:
    """Return the edges grouped by target."""
    from prplugin.cpu.group import CscBuilder  # imports Numba

    in_degrees, out_degrees = totals.degrees
    builder, index = CscBuilder(in_degrees, out_degrees, weighted=weighted), index_dtype(in_degrees.size)
    for edges, own in groups:
        positions = own.astype(index, copy=False)
        builder.add(positions[edges.source], positions[edges.destination], edges.weights)
    return builder.edges()
