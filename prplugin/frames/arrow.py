"""Conversion of frames and columns of polars, pyarrow, DuckDB and others to pandas. Imports narwhals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, errors_of, full_name, listed
from prplugin.frames.columns import Frame
from prplugin.frames.host_columns import decode_arrow
from prplugin.frames.reading import polars_engine_unavailable
from prplugin.frames.remedies import advice
from prplugin.frames.suggested import SAMPLED
from prplugin.types.arrays import is_a, on_host


def is_supported(frame: object) -> bool:
    """Return whether narwhals or Arrow can read a frame. Dask frames may not fit in memory, and are excluded."""
    if isinstance(frame, pa.Table):
        return True
    known = nw.from_native(frame, pass_through=True, allow_series=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known is not frame and not known.implementation.is_dask()
    return not isinstance(known, (nw.Series, type)) and hasattr(frame, "__arrow_c_stream__")


def open_frame(frame: object, what: str = "edges") -> tuple[Any, list[Hashable]]:
    """Return the frame as a narwhals frame or a pyarrow.Table, and its column labels; `what` names it in messages."""
    with _errors_of(frame, what):
        known = frame if isinstance(frame, pa.Table) else nw.from_native(frame, pass_through=True)
        if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
            return known, list(known.collect_schema().names())
    try:
        table = pa.table(frame)
    except MemoryError:
        raise
    except Exception as error:  # of Arrow, or of the object that exports the table
        raise _kind_of(what)(f"{what} of type {full_name(frame)} are not a table: {error}") from error
    if isinstance(frame, pa.RecordBatchReader) and not any(column.num_chunks for column in table.columns):
        raise _kind_of(what)(
            f"{what} are a pyarrow.RecordBatchReader that has been read already, or has no batch: keep its table, "
            "reader.read_all(), and pass that."
        )
    return table, list(table.column_names)


def _kind_of(what: str) -> type[PageRankError]:
    return InvalidEdgesError if what == "edges" else InvalidOptionError


def _errors_of(frame: object, what: str) -> AbstractContextManager[None]:
    return errors_of(f"{what}, of type {full_name(frame)},", _kind_of(what))


LOST_BY_DUCKDB = {
    "UHUGEINT": "Cast it to strings, CAST(... AS VARCHAR), or if it holds weights, CAST(... AS DOUBLE).",
    "TIME WITH TIME ZONE": "Cast it to strings, CAST(... AS VARCHAR).",
}
"""Remedies for types of DuckDB whose export to Arrow makes values equal: from 2**127 on, or of several offsets."""


def table_of(frame: Frame, positions: Sequence[int], what: str = "edges") -> tuple[pa.Table, Any]:
    """Return the columns at `positions` as a pyarrow.Table, and the library of the result."""
    if isinstance(frame, pa.Table):
        return frame.select(list(positions)), nw.Implementation.PYARROW
    schema = frame.collect_schema()
    names = [schema.names()[position] for position in positions]
    if objects := [name for name in names if schema[name] == nw.Object]:
        first = frame.lazy().select(objects[0]).head(SAMPLED).collect()[objects[0]].to_list()
        how = "Convert it to integers or strings."
        if not any(isinstance(value, float) for value in first):  # whose text differs from that of equal integers
            how = advice("Convert it", "objects to strings", column=objects[0])
        raise InvalidEdgesError(
            f"column {objects[0]!r} is of type {schema[objects[0]]}, which Arrow does not have. {how}"
        )
    native = frame.to_native()
    if frame.implementation.is_duckdb():
        kinds = dict(zip(native.columns, map(str, native.types), strict=True))
        for name in names:
            if (remedy := LOST_BY_DUCKDB.get(kinds[name])) is not None:
                raise _kind_of(what)(
                    f"column {name!r} is of DuckDB's type {kinds[name]}, of which Arrow does not have all values: "
                    f"different ones would be equal. {remedy}"
                )
    with _errors_of(native, what):
        frame = frame.select(*names)
        if isinstance(frame, nw.LazyFrame):
            frame = _collect(frame)
    try:
        return frame.to_arrow(), frame.implementation
    except pa.ArrowException as error:
        raise InvalidEdgesError(f"columns {listed(names)} cannot be held by Arrow: {error}. Cast them.") from error


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    if frame.implementation.is_polars() and polars_engine_unavailable() is None:
        with suppress(ImportError):  # of a cudf-polars for another version of polars
            return frame.collect(engine="gpu")
    return frame.collect()


def as_pandas(given: object, what: str) -> Any:
    """Convert frames and columns to pandas, CuPy arrays to NumPy, and return other objects unchanged."""
    given = on_host(nw.to_native(given, pass_through=True))
    if isinstance(given, pa.Array):
        return series(given, what)
    known = nw.from_native(given, pass_through=True, allow_series=True)
    if isinstance(known, nw.Series) and not known.implementation.is_pandas():
        return series(known.to_arrow(), what)
    if not is_a(given, "pandas", "DataFrame") and is_supported(given):
        frame, names = open_frame(given, what)
        return as_frame(table_of(frame, range(len(names)), what)[0]).set_axis(names, axis="columns")
    return given


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a pandas frame with columns labelled by position."""
    columns = zip(table.columns, table.column_names, strict=True)
    by_position = {position: series(column, f"column {name!r}") for position, (column, name) in enumerate(columns)}
    return pd.DataFrame(by_position, copy=False)


def series(column: pa.Array | pa.ChunkedArray, label: str) -> pd.Series:
    """Return an Arrow column as a Series; dictionaries as categories, other encodings decoded, the rest uncopied."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        signed = pa.dictionary(pa.int64(), kind.value_type, kind.ordered)  # pandas has no unsigned category codes
        try:
            return pd.Series(column.cast(signed).to_pandas())
        except (ValueError, pa.ArrowException):  # repeated or null categories
            pass
    if pa.types.is_null(kind) and not len(column):
        return pd.Series([], dtype=object)
    return pd.Series(pd.arrays.ArrowExtensionArray(decode_arrow(column, label)))
