"""Read the columns in use of Parquet, Feather and JSON Lines.

Files and folders of Parquet are not read here, but opened: `prplugin.frames.parquet` reads them by row groups.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import feather

from prplugin.errors import InvalidEdgesError, listed, path_errors
from prplugin.frames import device_files, row_groups
from prplugin.frames.columns import Columns
from prplugin.frames.parquet import Opened
from prplugin.io.formats import STANDARD_STREAM
from prplugin.io.selection import EdgeFile, Selection, missing_endpoints
from prplugin.io.text_blocks import content, pieces
from prplugin.types.edges import Integers


class Table(NamedTuple):
    """The columns of a table in memory, as `pyarrow.parquet.ParquetFile` names them."""

    schema_arrow: Any
    table: pa.Table

    def read(self, columns: list[Hashable]) -> pa.Table:
        """Return some columns."""
        return self.table.select(columns)


class Parquet:
    """A Parquet file of which columns are read at once; its INT96 times are checked."""

    def __init__(self, source: pa.NativeFile, name: str) -> None:
        self._source, self._name = source, name
        self._file = pq.ParquetFile(source, page_checksum_verification=True)
        self.schema_arrow = self._file.schema_arrow

    def read(self, columns: list[Hashable]) -> pa.Table:
        """Return some columns."""
        if times := row_groups.int96_columns(self._file.metadata, columns):
            again = pq.ParquetFile(self._source, coerce_int96_timestamp_unit="ms", page_checksum_verification=True)
            row_groups.refuse_far_times(again.read(columns=times), self._name)
        return self._file.read(columns=columns)


def read_parquet(selection: Selection, compression: str | None) -> EdgeFile:
    """Open a file or a folder; read a compressed file, or one with missing endpoints: see `prplugin.io.read_edges`."""
    if not compression and selection.path != STANDARD_STREAM and _is_text(selection.path):
        dataset = row_groups.open_paths([selection.path])
        found = selection.resolved(dataset.schema.names)
        opened = EdgeFile(Opened([selection.path], dataset), found)
        reason = "it does not drop rows"
        if selection.missing == "error":
            if not _has_nulls(dataset, [*found.source_names, *found.destination_names]):
                return opened
            reason = "an endpoint is missing"
        device_files.log_fallback(selection.name, reason)
        return _of_table(selection, _in_memory(opened), found)
    with _opened(selection, compression) as file:
        return _of_file(selection, file)


def read_feather(selection: Selection, compression: str | None) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    with _opened(selection, compression) as file:
        return _of_file(selection, file)


def read_json_lines(selection: Selection, compression: str | None) -> EdgeFile:
    """Read one edge per line, an object of JSON; see `prplugin.io.read_edges`."""
    rows = _json_rows(selection, compression)
    found = selection.resolved(list(dict.fromkeys(chain.from_iterable(rows))))
    ends, weight = [*found.source_names, *found.destination_names], found.weight_name
    missing = [any(row.get(end) is None for end in ends) for row in rows]
    dropped, kept = _kept(selection, missing)
    names = dict.fromkeys([*ends, *(name for name in (weight, found.time_name) if name is not None)])
    complete = rows if kept is None else [rows[row] for row in kept]
    frame = pd.DataFrame({name: [row.get(name) for row in complete] for name in names})
    return EdgeFile(selection.with_times(frame, found), found, dropped=dropped, kept=kept)


def read_values(selection: Selection, compression: str | None, kinds: dict[str, str]) -> pd.DataFrame:
    """Read the columns of `kinds` that a file has; see `prplugin.io.read_values`."""
    if selection.format == "jsonl":
        frame = pd.DataFrame(_json_rows(selection, compression))
        found = selection.values_by_name(list(frame), kinds)
        return frame[[*found.values()]].set_axis([*found], axis=1)
    with _opened(selection, compression) as file:
        found = selection.values_by_name(file.schema_arrow.names, kinds)
        return file.read(columns=[*found.values()]).to_pandas(ignore_metadata=True).set_axis([*found], axis=1)


def in_pandas(file: EdgeFile) -> EdgeFile:
    """Return the edges of files that were opened, or of several frames, as one pandas frame."""
    if isinstance(file.frame, Opened):
        return replace(file, frame=_in_memory(file).to_pandas(ignore_metadata=True))
    return replace(file, frame=pd.concat(file.frame, ignore_index=True)) if isinstance(file.frame, list) else file


def _in_memory(file: EdgeFile) -> pa.Table:
    """Read the columns in use of an opened dataset as one table, in common types of its files."""
    used, columns = file.columns.in_use()
    files, common = row_groups.files_of(file.frame.dataset, columns, used)
    table = row_groups.table_of(files, common, at_once=True)
    return files[0].plain_schema.empty_table() if table is None else table


def _is_text(path: str) -> bool:
    """Return whether the name is UTF-8, which datasets of Arrow require."""
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def _of_file(selection: Selection, file: Table | Parquet) -> EdgeFile:
    found = selection.resolved(file.schema_arrow.names)
    device_files.log_fallback(selection.name, "it is not a file of Parquet on disk")
    values = [name for name in (found.weight_name, found.time_name) if name is not None]
    names = dict.fromkeys([*found.source_names, *found.destination_names, *values])
    return _of_table(selection, file.read(columns=list(names)), found)


def _of_table(selection: Selection, table: pa.Table, found: Columns) -> EdgeFile:
    ends = dict.fromkeys([*found.source_names, *found.destination_names])
    missing = reduce(pc.or_, [table[end].is_null(nan_is_null=True) for end in ends])
    dropped, kept = _kept(selection, missing)
    table = table if kept is None else table.filter(pc.invert(missing))
    return EdgeFile(table.to_pandas(ignore_metadata=True), found, dropped=dropped, kept=kept)


def _kept(selection: Selection, missing: pa.ChunkedArray | list[bool]) -> tuple[int, Integers | None]:
    """Return the number of rows without an endpoint, and the others, None for all; raise if none is to be dropped."""
    lacking = np.asarray(missing, np.bool_)
    if not (count := int(np.count_nonzero(lacking))):
        return 0, None
    if selection.missing == "error":
        rows = listed(np.flatnonzero(lacking))
        raise InvalidEdgesError(f"{selection.name}: {missing_endpoints(count)} Counted from 0: {rows}.")
    return count, np.flatnonzero(~lacking)


def _has_nulls(dataset: ds.Dataset, names: list[Hashable]) -> bool:
    """Return whether one of the columns has nulls by the statistics of the row groups."""
    for fragment in dataset.get_fragments():
        with row_groups.errors_of(fragment):
            metadata = fragment.metadata
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                chunks = map(group.column, range(group.num_columns))
                found = [chunk.statistics for chunk in chunks if chunk.path_in_schema in names]
                if any(each is not None and each.null_count for each in found):
                    return True
    return False


@contextmanager
def _opened(selection: Selection, compression: str | None) -> Iterator[Any]:
    """Open a table of Parquet or Feather."""
    kind = selection.format.title()
    try:
        if compression or selection.path == STANDARD_STREAM:
            source: Any = pa.BufferReader(content(selection.path, compression))
        else:
            # A file of Arrow's own: its threads may outlive a read, and would need the interpreter for one of Python.
            with path_errors(selection.path), open(selection.path, "rb"):  # for the errors
                source = pa.OSFile(os.fsencode(selection.path))
        with source:
            if selection.format == "feather":
                table = feather.read_table(source, memory_map=False)
                yield Table(table.schema, table)
            else:
                yield Parquet(source, selection.name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeError) as error:
        if isinstance(error, (InvalidEdgesError, MemoryError)):
            raise
        raise InvalidEdgesError(f"{selection.name} is no {kind} file that can be read: {error}") from error


def _json_rows(selection: Selection, compression: str | None) -> list[dict[Hashable, object]]:
    """Read the objects of a file, one per line."""
    rows, rest, number = [], b"", 0
    for piece in chain(pieces(selection.path, compression), [b"\n"]):
        *lines, rest = (rest + piece).split(b"\n")
        for number, line in enumerate(lines, number + 1):  # noqa: B020 - counts on
            if line.strip():
                rows.append(_json_row(selection.name, number, line))
    if not rows:
        raise InvalidEdgesError(f"{selection.name} holds no edges or values: all its lines are empty.")
    return rows


def _json_row(name: str, number: int, line: bytes) -> dict[Hashable, object]:
    try:
        pairs = json.loads(line, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise InvalidEdgesError(f"{name}, line {number:,}: it is no JSON ({error}).") from error
    is_object = line.lstrip()[:1] == b"{"
    row = dict(pairs) if is_object else {}
    if not is_object or len(row) < len(pairs):
        fault = "an object has a name twice" if is_object else 'it is no object, such as {"src": 1, "dst": 2}'
        raise InvalidEdgesError(f"{name}, line {number:,}: {fault}.")
    return row
