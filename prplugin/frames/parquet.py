"""Adapter of Parquet files, given by path or as a pyarrow dataset.

If memory suffices, or edges have times, the columns in use are read as one table, otherwise one row group at a time, by
`prplugin.frames.row_groups`. Ranks of a dataset are returned as a `pyarrow.Table`, those of a path as a pandas frame.
Files of a path are read to the GPU if `prplugin.frames.device_files` can do so.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prplugin.errors import InvalidEdgesError, listed
from prplugin.frames import device_files, narwhals
from prplugin.frames.columns import Columns, Frame, always
from prplugin.frames.vertices import Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace, is_a
from prplugin.types.edges import Edges, GroupedEdges

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def accepts(frame: object) -> bool:
    """Return whether an object is a dataset of pyarrow."""
    return is_a(frame, "pyarrow.dataset", "Dataset")


memory_space_of = always("host")


@dataclass(frozen=True)
class Opened:
    """Paths of Parquet files or folders, and the dataset of their files."""

    paths: list[str]
    dataset: ds.Dataset


def open_frame(frame: Frame) -> tuple[ds.Dataset, list[Hashable]]:
    """Open a path as a pyarrow dataset; return the dataset, and its column labels."""
    import pyarrow.dataset as ds

    if isinstance(frame, Opened) or (paths := _paths(frame)):
        from prplugin.frames import row_groups

        frame = frame.dataset if isinstance(frame, Opened) else row_groups.open_paths(paths)
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
    frame: ds.Dataset, columns: Columns, how: EdgeOptions, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints of a dataset: see `prplugin.frames.FrameAdapter.read`. Edges never alias columns."""
    from prplugin.frames import row_groups

    used, columns = columns.in_use()
    files, common = row_groups.files_of(frame, columns, used)
    at_once = columns.time is not None  # the latest time is known only when all are read
    if (table := row_groups.table_of(files, common, at_once=at_once)) is not None:
        return narwhals.read(table, columns, how, edge_list=edge_list, lasting=lasting)
    return row_groups.read(files, common, columns, how, edge_list=edge_list)


class _Paths:
    """Adapter of paths of files and folders, on the host or on the GPU. Results are pandas frames."""

    def accepts(self, frame: object) -> bool:
        return bool(_paths(frame))

    def memory_space_of(self, frame: Frame) -> MemorySpace:
        return "host" if device_files.unavailable_reason(sum(map(_size, _paths(frame)))) else "device"

    open_frame = staticmethod(open_frame)

    def read(self, frame: ds.Dataset, columns: Columns, how: EdgeOptions, **options: bool) -> Any:
        import narwhals as nw  # loaded by the readers

        from prplugin.frames import row_groups

        used, in_use = columns.in_use()
        try:
            if reason := device_files.unavailable_reason(sum(map(_size, frame.files))):
                raise device_files.NotReadError(reason)
            if columns.time is not None:
                raise device_files.NotReadError("edges with times are read on the host")
            return device_files.read(
                row_groups.files_of(frame, in_use, used)[0], in_use, how, edge_list=options["edge_list"]
            )
        except device_files.NotReadError as error:
            device_files.log_fallback(listed(frame.files), error)
        edges, known = read(frame, columns, how, **options)
        output: Any = known.boundary
        return edges, replace(known, boundary=replace(output, backend=nw.Implementation.PANDAS))


PATHS = _Paths()  # the adapter of paths


def _paths(given: object) -> list[str]:
    """Return one path, or a list of paths, as a list of strings; an empty list for other objects."""
    if isinstance(given, Opened):
        return given.paths
    paths: list[Any] = [*given] if isinstance(given, (list, tuple)) else [given]
    return [os.fsdecode(path) for path in paths] if all(isinstance(path, (str, os.PathLike)) for path in paths) else []


def _size(path: str | os.PathLike[str]) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if there are none."""
    place = Path(path)
    return sum(each.stat().st_size for each in (place.rglob("*") if place.is_dir() else [place]) if each.is_file())
