"""Adapter of Parquet files, given by path or as a pyarrow dataset.

If memory suffices, or edges have times, the columns in use are read as one table, otherwise one row group at a time, by
`prplugin.frames.row_groups`. Ranks are returned as a `pyarrow.Table`.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames import narwhals
from prplugin.frames.base import is_a
from prplugin.frames.columns import Columns
from prplugin.frames.vertices import Vertices
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def accepts(frame: object) -> bool:
    """Return whether an object is a path or a dataset of pyarrow."""
    return isinstance(frame, (str, os.PathLike)) or is_a(frame, "pyarrow.dataset", "Dataset")


def memory_space_of(frame: object) -> MemorySpace:
    """Return "host"."""
    return "host"


def open_frame(frame: Any) -> tuple[ds.Dataset, list[Hashable]]:
    """Open a path as a pyarrow dataset; return the dataset, and its column labels."""
    import pyarrow as pa
    import pyarrow.dataset as ds

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
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints of a dataset: see `prplugin.frames.FrameAdapter.read`. Edges never alias columns."""
    from prplugin.frames import row_groups

    used, columns = columns.in_use()
    files, common = row_groups.files_of(frame, columns, used)
    at_once = columns.time is not None  # the latest time is known only when all are read
    if (table := row_groups.table_of(files, common, at_once=at_once)) is not None:
        return narwhals.read(table, columns, vertices, edge_list=edge_list, lasting=lasting)
    return row_groups.read(files, common, columns, vertices, edge_list=edge_list)
