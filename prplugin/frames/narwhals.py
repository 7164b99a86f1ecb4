"""Adapter of polars frames, pyarrow tables, DuckDB relations, and others that narwhals or Arrow's C interface supports.

Columns become Arrow-backed pandas columns that share their memory, and the pandas adapter reads them, so that ids are
compared, and errors reported, in the same way. For a lazy frame only the columns in use are collected, into the type
that narwhals collects it to: a `polars.DataFrame` for a `polars.LazyFrame`, a `pyarrow.Table` for a DuckDB relation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames import pandas
from prplugin.frames.columns import Columns, Dtype, Frame, always
from prplugin.frames.vertices import Boundary, Entry, Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import is_a
from prplugin.types.edges import Coo, Grouped

if TYPE_CHECKING:
    import pyarrow as pa

    from prplugin.frames.ids import Ids


@dataclass(eq=False, repr=False)
class Output(Boundary):
    """Writes results to frames of the library of the edges.

    `fields`: Arrow field of each vertex column, which holds as long as its pandas type is that in `dtypes`; None: the
    common type in pandas.
    """

    fields: list[pa.Field | None]
    dtypes: list[Dtype]
    backend: Any  # narwhals.Implementation, the library of the result
    from_native: Callable[..., Any] | None = None  # converts results to frames of narwhals

    def frame_of(self, ids: Ids, entries: list[Entry]) -> Frame:
        import narwhals as nw
        import pyarrow as pa

        schema, arrays = [], []
        for name, column, part in entries:
            field = self.fields[part] if part is not None and self.dtypes[part] == column.dtype else None
            array = pa.array(getattr(column, "array", column))
            arrays.append(array if field is None else array.cast(field.type))
            schema.append(pa.field(name, arrays[-1].type, metadata=None if field is None else field.metadata))
        table = pa.table(arrays, schema=pa.schema(schema))
        if self.backend.is_pandas():  # whose times of day have microseconds
            import pandas as pd

            nanoseconds = pa.time64("ns")
            return table.to_pandas(types_mapper={nanoseconds: pd.ArrowDtype(nanoseconds)}.get)
        return table if self.backend.is_pyarrow() else nw.from_arrow(table, backend=self.backend).to_native()

    def wrap(self, frame: object) -> Any:
        return frame if self.from_native is None else self.from_native(frame, allow_series=True)


def accepts(frame: object) -> bool:
    """Return whether narwhals or Arrow can read a frame. Imports narwhals."""
    from prplugin.frames.arrow import is_supported

    return is_supported(frame)


memory_space_of = always("host")


def open_frame(frame: object) -> tuple[Any, list[Hashable]]:
    """Return the frame as a narwhals frame or a pyarrow.Table, and its column labels."""
    from prplugin.frames import arrow

    return arrow.open_frame(frame)


def read(frame: Frame, columns: Columns, how: EdgeOptions, **options: bool) -> tuple[Coo | Grouped, Vertices]:
    """Factorize the endpoints of a frame from `open_frame`: see `prplugin.frames.pandas.read`."""
    from prplugin.frames.arrow import as_frame, table_of

    used, columns = columns.in_use()
    table, backend = table_of(frame, used)
    edges, known = pandas.read(as_frame(table), columns, how, **options)
    fields = fields_of_vertices(table.schema, columns, how.vertices)
    output = Output(fields, [column.dtype for column in known.columns], backend)
    return edges, replace(known, boundary=output)


def fields_of_vertices(fields: Sequence[pa.Field | None], columns: Columns, vertices: object) -> list[pa.Field | None]:
    """Return the common field of both endpoints per vertex column; None if they differ or are unknown."""
    pairs = zip(columns.source, columns.destination, strict=True)
    return [None if vertices is not None else _common_field(fields[source], fields[target]) for source, target in pairs]


def _common_field(source: pa.Field | None, target: pa.Field | None) -> pa.Field | None:
    """Return the field of two endpoints, without run-end encoding; None if they differ or either is None."""
    if source is None or target is None or source.type != target.type or source.metadata != target.metadata:
        return None
    import pyarrow as pa

    return source.with_type(source.type.value_type) if pa.types.is_run_end_encoded(source.type) else source


class _WrappedFrames:
    """Adapter of frames of narwhals itself, whose results are frames of narwhals too."""

    def accepts(self, frame: object) -> bool:
        return is_a(frame, "narwhals", "DataFrame") or is_a(frame, "narwhals", "LazyFrame")

    memory_space_of = staticmethod(memory_space_of)

    def open_frame(self, frame: Frame) -> tuple[Any, list[Hashable]]:
        if frame.implementation.is_dask():
            raise InvalidEdgesError(
                "edges are a narwhals frame of Dask: pass the Dask frame itself, edges.to_native()."
            )
        return frame, open_frame(frame.to_native())[1]

    def read(self, frame: Frame, columns: Columns, how: EdgeOptions, **options: bool) -> tuple[Coo | Grouped, Vertices]:
        # A pandas frame is not read by the adapter of pandas, since the result is made from Arrow.
        edges, known = read(open_frame(frame.to_native())[0], columns, how, **options)
        # A frame of narwhals.stable.v1 has that module; one of narwhals.dataframe is made by narwhals.from_native.
        from_native = getattr(sys.modules[type(frame).__module__], "from_native", sys.modules["narwhals"].from_native)
        output: Any = known.boundary
        return edges, replace(known, boundary=replace(output, from_native=from_native))


WRAPPED = _WrappedFrames()  # the adapter of frames of narwhals itself
