"""Adapter of Parquet files, given by path or as a pyarrow dataset.

If memory suffices, or edges have times, the columns in use are read as one table, otherwise one row group at a time:
see `prplugin.frames._parquet_row_groups`. The narwhals adapter reads the table or each row group, so that ids are
compared, and errors reported, in the same way. Ranks are returned as a `pyarrow.Table`.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _parquet_row_groups, narwhals
from prplugin.frames._parquet_files import File, files_of
from prplugin.frames.columns import Columns
from prplugin.machine import bytes_available
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges

__all__ = ["memory_space", "open_frame", "read"]

memory_space: MemorySpace = "host"

PEAK = 4
"""Upper estimate of the peak memory of reading and factorizing a table, in multiples of its size."""


def open_frame(frame: Any) -> tuple[ds.Dataset, list[Hashable]]:
    """Open a path as a pyarrow dataset; return the dataset, and its column labels."""
    if isinstance(frame, (str, os.PathLike)):
        path = os.fspath(frame)
        try:
            try:  # folders named `key=value` add columns that the files do not have
                frame = ds.dataset(path, format="parquet", partitioning="hive")
            except pa.ArrowTypeError:  # the files have columns of these names, of another type
                frame = ds.dataset(path, format="parquet")
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


def read(
    frame: ds.Dataset, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, narwhals.Vertices]:
    """Factorize the endpoints of a dataset: see `prplugin.frames.base.FrameAdapter.read`. Edges never alias columns."""
    used, columns = columns.in_use()
    files, common = files_of(frame, columns, used)
    at_once = columns.time is not None  # the latest time is known only when all are read
    if (table := _table(files, common, at_once=at_once)) is not None:
        return narwhals.read(table, columns, vertices, edge_list=edge_list, lasting=lasting)
    return _parquet_row_groups.read(files, common, columns, vertices, edge_list=edge_list)


def _table(files: list[File], common: list[pa.Field | None], *, at_once: bool) -> pa.Table | None:
    """Return all row groups as one table; None if memory does not suffice, or if their types differ.

    With `at_once`, available memory is not checked, and different types raise InvalidEdgesError.
    """
    max_bytes, rows = bytes_available() / PEAK, sum(file.rows for file in files)
    tables: list[pa.Table] = []
    total_bytes = total_rows = 0
    for file in files:
        for table in file.tables(common):
            tables.append(table)
            total_bytes, total_rows = total_bytes + table.nbytes, total_rows + table.num_rows
            if at_once and table.schema != tables[0].schema:
                raise InvalidEdgesError(
                    f"{file.where} has other types than the files before it, which edges with times may not have: "
                    "cast the files to one type."
                )
            if not at_once and (table.schema != tables[0].schema or total_bytes * rows > max_bytes * total_rows):
                return None
    return pa.concat_tables(tables) if tables else None
