"""Read the columns in use of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from prplugin.errors import InvalidEdgesError, listed
from prplugin.frames import device_files
from prplugin.frames.row_groups import int96_columns, refuse_far_times
from prplugin.io.blocks import content
from prplugin.io.formats import STANDARD_STREAM
from prplugin.io.selection import EdgeFile, Selection, missing_endpoints


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    with _opened(selection, compression) as (file, source):
        found = selection.resolved(file.schema_arrow.names)
        weight = [] if found.weight is None else [found.weight_name]
        ends = [*found.source_names, *found.destination_names]
        reason: str | None = "it is not a file on disk"
        if selection.missing == "drop":
            reason = "it does not drop rows"
        elif not compression and Path(selection.path).is_file():
            reason = device_files.unavailable_reason(os.stat(selection.path).st_size)
            if reason is None and _has_nulls(file, ends):
                reason = "an endpoint is missing"
        if reason is None:
            return EdgeFile(selection.path, found)
        device_files.log_fallback(selection.name, reason)
        table = _table(selection, file, source, [*ends, *weight])
        missing = reduce(pc.or_, [table[end].is_null(nan_is_null=True) for end in dict.fromkeys(ends)])
        dropped = pc.sum(missing).as_py() or 0
        if dropped and selection.missing == "error":
            rows = listed(np.flatnonzero(missing.to_numpy()))
            raise InvalidEdgesError(f"{selection.name}: {missing_endpoints(dropped)} Counted from 0: {rows}.")
        kept = table.filter(pc.invert(missing)) if dropped else table
        return EdgeFile(kept.to_pandas(ignore_metadata=True), found, dropped=dropped)


def read_values(selection: Selection, compression: str | None, kinds: dict[str, str]) -> pd.DataFrame:
    """Read the columns of `kinds` that a file has; see `prplugin.io.read_values`."""
    with _opened(selection, compression) as (file, source):
        selection.require_values(file.schema_arrow.names, list(kinds))
        names = [name for name in kinds if name in file.schema_arrow.names]
        return _table(selection, file, source, names).to_pandas(ignore_metadata=True)


def _has_nulls(file: pq.ParquetFile, names: list[Any]) -> bool:
    """Return whether one of the columns has nulls by the statistics of its row groups."""
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    found = [chunk.statistics for chunk in chunks if chunk.path_in_schema in names]
    return any(each is not None and each.null_count for each in found)


def _table(selection: Selection, file: pq.ParquetFile, source: pa.NativeFile, names: list[Any]) -> pa.Table:
    if times := int96_columns(file.metadata, names):
        again = pq.ParquetFile(source, coerce_int96_timestamp_unit="ms", page_checksum_verification=True)
        refuse_far_times(again.read(columns=times), selection.name)
    return file.read(columns=list(dict.fromkeys(names)))


@contextmanager
def _opened(selection: Selection, compression: str | None) -> Iterator[tuple[pq.ParquetFile, pa.NativeFile]]:
    try:
        if compression or selection.path == STANDARD_STREAM:
            source = pa.BufferReader(content(selection.path, compression))
            yield pq.ParquetFile(source, page_checksum_verification=True), source
        else:
            # A file of Arrow's own: its threads may outlive a read, and would need the interpreter for one of Python.
            with open(selection.path, "rb"), pa.OSFile(os.fsencode(selection.path)) as file:  # the first for the errno
                yield pq.ParquetFile(file, page_checksum_verification=True), file
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the operating system, with the file name
        raise InvalidEdgesError(f"{selection.name} is no Parquet file that can be read: {error}") from error
