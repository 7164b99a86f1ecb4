"""Parquet: only the columns that are needed are read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from prplugin.errors import InvalidEdgesError
from prplugin.io.content import content
from prplugin.io.formats import STANDARD_STREAM, described
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["read"]


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    path = selection.path
    if compression or path == STANDARD_STREAM:
        return _read(selection, pa.BufferReader(content(path, compression)))
    with open(path, "rb"):  # pyarrow's own messages for what cannot be opened are of several lines
        pass
    return _read(selection, path)


def _read(selection: Selection, file: object) -> EdgeFile:
    with _damage_named(selection.path):
        parquet = pq.ParquetFile(file)
    columns = selection.resolved(parquet.schema_arrow.names)
    needed: list[Hashable] = list(dict.fromkeys([*columns.source_names, *columns.destination_names]))
    if columns.weight is not None and columns.weight_name not in needed:
        needed.append(columns.weight_name)
    with _damage_named(selection.path):
        frame = parquet.read(columns=needed).to_pandas(ignore_metadata=True)
    names = columns.source_names, columns.destination_names, columns.weight_name
    return EdgeFile(frame, *names, unused_weight=columns.unused_weight)


@contextmanager
def _damage_named(path: str) -> Iterator[None]:
    """Name the file in errors of pyarrow."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's, which names the file
        raise InvalidEdgesError(f"{described(path)} is no Parquet file that can be read: {error}") from error
