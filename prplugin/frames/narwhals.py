"""Adapter of polars frames, pyarrow tables, DuckDB relations, and others that narwhals or Arrow's C interface supports.

Columns become Arrow-backed pandas columns that share their memory, and the pandas adapter reads them, so that ids are
compared, and errors reported, in the same way. For a lazy frame only the columns in use are collected, into the type
that narwhals collects it to: a `polars.DataFrame` for a `polars.LazyFrame`, a `pyarrow.Table` for a DuckDB relation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from prplugin.errors import InvalidEdgesError, full_name, listed
from prplugin.frames import pandas
from prplugin.frames._pandas_ids import decode_arrow
from prplugin.frames._pandas_kinds import casts_of
from prplugin.frames.base import is_a, on_host
from prplugin.frames.columns import Columns
from prplugin.frames.vertices import Labels
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges, Integers

memory_space: MemorySpace = "host"


@dataclass(frozen=True)
class Vertices(pandas.Vertices):
    """Vertices as pandas arrays, written to frames of the library of the edges."""

    fields: list[pa.Field | None]  # Arrow field of each vertex column; None: the common type in pandas
    backend: Any  # narwhals.Implementation, the library of the result
    syntax: str  # library of the edges, whose syntax messages use for casts
    wrap: Callable[..., Any] | None = None  # converts results to frames of narwhals

    @contextmanager
    def active(self) -> Iterator[None]:
        with super().active(), casts_of(self.syntax):
            yield

    def convert(self, given: Any, what: str) -> Any:
        return as_pandas(on_host(given), what)

    def with_ids(self, ids: list[Any], kinds: list[str]) -> Self:
        columns = zip(self.ids, ids, self.fields, strict=True)
        fields = [field if old.dtype == new.dtype else None for old, new, field in columns]
        return replace(self, ids=ids, kinds=kinds, fields=fields)

    def _frame(self, ranks: np.ndarray, rows: Integers | None, labels: Labels | None) -> Any:
        names, columns = self.columns_of_result(ranks, rows, labels)
        of_seeds = [] if labels is None else [None] if labels.rows is None else self.fields
        schema, arrays = [], []
        for name, column, field in zip(names, columns, [*of_seeds, *self.fields], strict=True):
            arrays.append(_like(column, field))
            schema.append(pa.field(name, arrays[-1].type, metadata=None if field is None else field.metadata))
        arrays.append(pa.array(ranks.reshape(-1).copy()))  # a frame must not alias the ranks
        schema.append(pa.field("pagerank", arrays[-1].type))
        return self._native(pa.table(arrays, schema=pa.schema(schema)))

    def _ids(self) -> Any:
        columns = [_like(column, field) for column, field in zip(self.ids, self.fields, strict=True)]
        table = pa.table(columns, names=self.names)
        if len(columns) > 1:
            return self._native(table)
        if self.backend.is_pyarrow():
            return self._wrapped(table[0])
        return self._wrapped(nw.from_arrow(table, backend=self.backend)[str(self.names[0])].to_native())

    def _native(self, frame: pa.Table) -> Any:
        native = frame if self.backend.is_pyarrow() else nw.from_arrow(frame, backend=self.backend).to_native()
        return self._wrapped(native)

    def _wrapped(self, native: Any) -> Any:
        return native if self.wrap is None else self.wrap(native, allow_series=True)


class WrappedFrame:
    """Adapter of a frame of narwhals itself, whose results are frames of narwhals too."""

    memory_space: MemorySpace = "host"

    def __init__(self, frame: Any) -> None:
        if frame.implementation.is_dask():
            raise InvalidEdgesError(
                "edges are a narwhals frame of Dask: pass the Dask frame itself, edges.to_native()."
            )
        # A frame of narwhals.stable.v1 has that module; one of narwhals.dataframe is made by narwhals.from_native.
        self._wrap = getattr(sys.modules[type(frame).__module__], "from_native", nw.from_native)

    def open_frame(self, frame: Any) -> tuple[Any, list[Hashable]]:
        return open_frame(nw.to_native(frame))

    def read(self, frame: Any, columns: Columns, vertices: object, **how: Any) -> tuple[Any, Vertices]:
        # A pandas frame is not read by the adapter of pandas, since the result is made from Arrow.
        edges, known = read(frame, columns, vertices, **how)
        return edges, replace(known, wrap=self._wrap)


def is_wrapped(frame: object) -> bool:
    """Return whether a frame is one of narwhals itself."""
    return isinstance(frame, (nw.DataFrame, nw.LazyFrame))


def is_supported(frame: object) -> bool:
    """Return whether narwhals or Arrow can read a frame. Dask frames may not fit in memory, and are excluded."""
    if isinstance(frame, pa.Table):
        return True
    known = nw.from_native(frame, pass_through=True, allow_series=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known is not frame and not known.implementation.is_dask()
    return not isinstance(known, nw.Series) and hasattr(frame, "__arrow_c_stream__")


def open_frame(frame: Any) -> tuple[Any, list[Hashable]]:
    """Return the frame as a narwhals frame or a pyarrow.Table, and its column labels."""
    known = frame if isinstance(frame, pa.Table) else nw.from_native(frame, pass_through=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known, list(known.collect_schema().names())
    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"edges of type {full_name(frame)} are not a table: {error}") from error
    return table, list(table.column_names)


def read(frame: Any, columns: Columns, vertices: object, **how: Any) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints of a frame from `open_frame`: see `prplugin.frames.pandas.read`."""
    used, columns = columns.in_use()
    table, backend = _table(frame, used)
    vertices = as_pandas(on_host(vertices), "vertices")
    syntax = "pyarrow" if isinstance(frame, pa.Table) else str(frame.implementation.value)
    with casts_of(syntax):
        edges, known = pandas.read(as_frame(table), columns, vertices, **how)
    fields = fields_of_vertices(table.schema, columns, vertices)
    return edges, Vertices(known.names, known.ids, known.kinds, fields, backend, syntax)


def _table(frame: Any, positions: Sequence[int]) -> tuple[pa.Table, Any]:
    """Return the columns at `positions` as a pyarrow.Table, and the library of the result."""
    if isinstance(frame, pa.Table):
        return frame.select(list(positions)), nw.Implementation.PYARROW
    schema = frame.collect_schema()
    names = [schema.names()[position] for position in positions]
    if objects := [name for name in names if schema[name] == nw.Object]:
        raise InvalidEdgesError(
            f"column {objects[0]!r} is of type {schema[objects[0]]}, which Arrow does not have. Convert it, for "
            "instance with .map_elements(str, return_dtype=polars.String)."
        )
    frame = frame.select(*names)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    try:
        return frame.to_arrow(), frame.implementation
    except pa.ArrowException as error:
        raise InvalidEdgesError(f"columns {listed(names)} cannot be held by Arrow: {error}. Cast them.") from error


def as_pandas(given: Any, what: str) -> Any:
    """Convert frames and columns to pandas; return pandas objects and anything else unchanged."""
    if isinstance(given, pa.Array):
        return series(pa.chunked_array([given]), what)
    known = nw.from_native(given, pass_through=True, allow_series=True)
    if isinstance(known, nw.Series) and not known.implementation.is_pandas():
        array = known.to_arrow()
        return series(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]), what)
    if not is_a(given, "pandas", "DataFrame") and is_supported(given):
        frame, names = open_frame(given)
        return as_frame(_table(frame, range(len(names)))[0]).set_axis(names, axis="columns")
    return given


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a pandas frame with columns labelled by position."""
    columns = zip(table.columns, table.column_names, strict=True)
    by_position = {position: series(column, f"column {name!r}") for position, (column, name) in enumerate(columns)}
    return pd.DataFrame(by_position, copy=False)


def series(column: pa.ChunkedArray, label: str) -> pd.Series:
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


def fields_of_vertices(fields: Sequence[pa.Field | None], columns: Columns, vertices: object) -> list[pa.Field | None]:
    """Return the common field of both endpoints per vertex column; None if they differ or are unknown."""
    pairs = zip(columns.source, columns.destination, strict=True)
    return [None if vertices is not None else _common_field(fields[source], fields[target]) for source, target in pairs]


def _common_field(source: pa.Field | None, target: pa.Field | None) -> pa.Field | None:
    """Return the field of two endpoints, without run-end encoding; None if they differ or either is None."""
    if source is None or target is None or source.type != target.type or source.metadata != target.metadata:
        return None
    return source.with_type(source.type.value_type) if pa.types.is_run_end_encoded(source.type) else source


def _like(column: Any, field: pa.Field | None) -> pa.ChunkedArray:
    """Return a pandas Series or array as an Arrow array, in the type of `field` if given."""
    array = pa.array(getattr(column, "array", column))
    return array if field is None else array.cast(field.type)
