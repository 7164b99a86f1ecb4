"""Parquet: only the columns that are needed are read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prplugin.errors import InvalidEdgesError
from prplugin.io.content import content
from prplugin.io.formats import STANDARD_STREAM, described
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["read", "read_values"]


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    with _opened(selection.path, compression) as file:
        found = selection.resolved(file.schema_arrow.names)
        weight = [] if found.weight is None else [found.weight_name]
        frame = _columns(file, [*found.source_names, *found.destination_names, *weight])
        names = found.source_names, found.destination_names, found.weight_name
        return EdgeFile(frame, *names, unused_weight=found.unused_weight)


def read_values(selection: Selection, compression: str | None, names: list[str]) -> pd.DataFrame:
    """Read those of the named columns that a file has."""
    with _opened(selection.path, compression) as file:
        return _columns(file, [name for name in names if name in file.schema_arrow.names])


def _columns(file: Any, names: list[Hashable] | list[str]) -> pd.DataFrame:
    return file.read(columns=list(dict.fromkeys(names))).to_pandas(ignore_metadata=True)


@contextmanager
def _opened(path: str, compression: str | None) -> Iterator[Any]:
    """Open a Parquet file; name it in errors of pyarrow."""
    try:
        if compression or path == STANDARD_STREAM:
            yield pq.ParquetFile(pa.BufferReader(content(path, compression)))
        else:
            with open(path, "rb"):  # pyarrow's own messages for what cannot be opened are of several lines
                pass
            yield pq.ParquetFile(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's, which names the file
        raise InvalidEdgesError(f"{described(path)} is no Parquet file that can be read: {error}") from error
