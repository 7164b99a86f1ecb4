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
from typing import TYPE_CHECKING, Any, NamedTuple

from prplugin.errors import InvalidEdgesError, listed
from prplugin.frames import device_files, narwhals
from prplugin.frames.columns import Columns, Frame
from prplugin.frames.vertices import Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace, is_a
from prplugin.types.edges import Coo, Grouped

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@dataclass(frozen=True)
class Opened:
    """Paths of Parquet files or folders, and the dataset of their files."""

    paths: list[str]
    dataset: ds.Dataset


class _Parquet(NamedTuple):
    """Adapter of datasets of pyarrow, or of paths: of files and folders, read to the host or the GPU.

    `of_paths`: Whether it reads paths. Their results are pandas frames.
    """

    of_paths: bool

    def accepts(self, frame: object) -> bool:
        return bool(_paths(frame)) if self.of_paths else is_a(frame, "pyarrow.dataset", "Dataset")

    def memory_space_of(self, frame: Frame) -> MemorySpace:
        on_host = not self.of_paths or device_files.unavailable_reason(sum(map(_size, _paths(frame))))
        return "host" if on_host else "device"

    def open_frame(self, frame: Frame) -> tuple[ds.Dataset, list[Hashable]]:
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
        self, frame: ds.Dataset, columns: Columns, how: EdgeOptions, *, edge_list: bool = False, lasting: bool = True
    ) -> tuple[Coo | Grouped, Vertices]:
        from prplugin.frames import row_groups

        used, columns = columns.in_use()
        files, common = row_groups.files_of(frame, columns, used)
        at_once = columns.time is not None  # the latest time is known only when all are read
        if self.of_paths:
            try:
                if reason := device_files.unavailable_reason(sum(map(_size, frame.files))):
                    raise device_files.NotReadError(reason)
                if at_once:
                    raise device_files.NotReadError("edges with times are read on the host")
                return device_files.read(files, columns, how, edge_list=edge_list)
            except device_files.NotReadError as error:
                device_files.log_fallback(listed(frame.files), error)
        if (table := row_groups.table_of(files, common, at_once=at_once)) is not None:
            edges, known = narwhals.read(table, columns, how, edge_list=edge_list, lasting=lasting)
        else:
            edges, known = row_groups.read(files, common, columns, how, edge_list=edge_list)
        if self.of_paths:
            import narwhals as nw  # loaded by the readers

            output: Any = known.boundary
            known = replace(known, boundary=replace(output, backend=nw.Implementation.PANDAS))
        return edges, known


DATASETS, PATHS = _Parquet(of_paths=False), _Parquet(of_paths=True)  # the adapters of datasets and of paths


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
