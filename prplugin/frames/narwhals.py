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
import pyarrow as pa

from prplugin.errors import InvalidEdgesError
from prplugin.frames import pandas
from prplugin.frames._pandas_kinds import casts_of
from prplugin.frames.arrow import as_frame, is_supported, open_frame, table_of
from prplugin.frames.columns import Columns
from prplugin.frames.labels import Labels
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges, Integers

__all__ = ["Vertices", "WrappedFrame", "is_supported", "is_wrapped", "memory_space", "open_frame", "read"]

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

    def with_ids(self, ids: list[Any], kinds: list[str]) -> Self:
        columns = zip(self.ids, ids, self.fields, strict=True)
        fields = [field if old.dtype == new.dtype else None for old, new, field in columns]
        return replace(self, ids=ids, kinds=kinds, fields=fields)

    def _frame(self, ranks: np.ndarray, rows: Integers | None, labels: Labels | None) -> Any:
        names, columns = self.columns_of_result(rows, labels)
        of_seeds = [] if labels is None else [None] if labels.rows is None else self.fields
        schema, arrays = [], []
        for name, column, field in zip(names, columns, [*of_seeds, *self.fields], strict=True):
            arrays.append(_like(column, field))
            schema.append(pa.field(name, arrays[-1].type, metadata=None if field is None else field.metadata))
        arrays.append(pa.array(ranks.copy()))  # a frame must not alias the ranks
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


def read(frame: Any, columns: Columns, vertices: object, **how: Any) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints of a frame from `open_frame`: see `prplugin.frames.pandas.read`."""
    used, columns = columns.in_use()
    table, backend = table_of(frame, used)
    syntax = "pyarrow" if isinstance(frame, pa.Table) else str(frame.implementation.value)
    with casts_of(syntax):
        edges, known = pandas.read(as_frame(table), columns, vertices, **how)
    fields = fields_of_vertices(table.schema, columns, vertices)
    return edges, Vertices(known.names, known.ids, known.kinds, fields, backend, syntax)


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
