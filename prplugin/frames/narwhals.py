"""Frames of polars, tables of pyarrow, relations of DuckDB, and whatever else narwhals or Arrow's C interface knows.

Their columns become Arrow-backed columns of pandas, which share their memory, and the pandas adapter does the rest; so
ids mean the same, and errors read the same, as there. A lazy frame is collected, of the columns in use alone, into what
narwhals collects it into: a `polars.LazyFrame` into a `polars.DataFrame`, a relation of DuckDB into a `pyarrow.Table`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, listed
from prplugin.frames import pandas
from prplugin.frames.base import Labels, full_name
from prplugin.frames.casts import casts_of
from prplugin.frames.columns import Columns
from prplugin.frames.wrapped import WrappedVertices
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges, Integers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Vertices",
    "accepts",
    "as_frame",
    "as_pandas",
    "fields_of_vertices",
    "memory_space",
    "opened",
    "read",
    "series",
]

memory_space: MemorySpace = "host"


@dataclass(frozen=True)
class Vertices(WrappedVertices):
    """The vertices as the pandas adapter has them.

    Attributes
    ----------
    inner : pandas.Vertices
    fields : list of pyarrow.Field or None
        How the result holds each column: as all endpoints do, or, where these differ, as their common type in pandas.
    backend : narwhals.Implementation
        The library of the result.
    library : str
        The library of the edges, in which messages spell casts.
    """

    inner: pandas.Vertices
    fields: list[pa.Field | None]
    backend: Any
    library: str

    def active(self) -> AbstractContextManager[Any]:
        return casts_of(self.library)

    def convert(self, given: Any, what: str) -> Any:
        import pandas as pd

        converted = as_pandas(given, what)
        if isinstance(converted, pd.Series) and converted is not given:
            names = listed([repr(name) for name in [*self.inner.names, "values"]])
            raise InvalidOptionError(
                f"{what} is a column without an index: it must be a dict of vertex: value, or a frame with the columns "
                f"{names}."
            )
        return converted

    def read_positions(self, given: Any, what: str) -> Integers:
        rows: Integers = self._call("read_positions", as_pandas(given, what), what)
        return rows

    def write(self, ranks: np.ndarray, rows: Integers | None, labels: Labels | None = None) -> Any:
        import pyarrow as pa

        names, ids, fields = self.inner.names, self.inner.columns, self.fields
        if labels is not None:
            frame = self.inner.write(ranks, rows, labels)
            names = list(frame.columns[:-1])
            ids, rows = [frame[name].array for name in names], None
            fields = [*([None] if labels.rows is None else fields), *fields]
        columns = [
            _like(column if rows is None else column.take(rows), field)
            for column, field in zip(ids, fields, strict=True)
        ]
        values = pa.array(ranks.reshape(-1).copy())  # what a frame holds is its own
        schema = [
            pa.field(name, column.type, metadata=None if field is None else field.metadata)
            for name, column, field in zip(names, columns, fields, strict=True)
        ]
        schema.append(pa.field("pagerank", values.type))
        return self.wrap(pa.table([*columns, values], schema=pa.schema(schema)))

    def write_ids(self) -> Any:
        import pyarrow as pa

        columns = [_like(column, field) for column, field in zip(self.inner.columns, self.fields, strict=True)]
        table = pa.table(columns, names=self.inner.names)
        if len(columns) > 1:
            return self.wrap(table)
        if self.backend.is_pyarrow():
            return table[0]
        import narwhals as nw

        return nw.from_arrow(table, backend=self.backend)[str(self.inner.names[0])].to_native()

    def wrap(self, frame: pa.Table) -> Any:
        import narwhals as nw

        return frame if self.backend.is_pyarrow() else nw.from_arrow(frame, backend=self.backend).to_native()


def accepts(frame: object) -> bool:
    """Return whether this is a table of narwhals or Arrow; Dask's are not, as they may be larger than the memory."""
    import narwhals as nw  # light, and the other adapters have said no
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return True
    known = nw.from_native(frame, pass_through=True, allow_series=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known is not frame and not known.implementation.is_dask()
    return not isinstance(known, nw.Series) and hasattr(frame, "__arrow_c_stream__")


def opened(frame: Any) -> tuple[Any, list[Hashable]]:
    """Return the frame as one of narwhals or pyarrow, and its column labels."""
    import narwhals as nw
    import pyarrow as pa

    known = frame if isinstance(frame, pa.Table) else nw.from_native(frame, pass_through=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known, list(known.collect_schema().names())
    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"edges of type {full_name(frame)} are no table: {error}") from error
    return table, list(table.column_names)


def read(frame: Any, columns: Columns, vertices: object, **how: bool) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints of a narwhals frame or pyarrow.Table from `opened`, as the pandas adapter does."""
    used, columns = columns.alone()
    table, backend = _table(frame, used)
    vertices = as_pandas(vertices, "vertices")
    with casts_of(_library_of(frame)):
        edges, known = pandas.read(as_frame(table), columns, vertices, **how)
    return edges, Vertices(known, fields_of_vertices(table.schema, columns, vertices), backend, _library_of(frame))


def _library_of(frame: Any) -> str:
    """Return the name of the library of a frame from `opened`: that of the user, not of what it is collected into."""
    return "pyarrow" if not hasattr(frame, "implementation") else str(frame.implementation.value)


def _table(frame: Any, positions: Sequence[int]) -> tuple[pa.Table, Any]:
    """Return some columns of a frame as a table of Arrow, and the library of the result."""
    import narwhals as nw
    import pyarrow as pa

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
    """Return frames and columns as those of pandas, and anything else, pandas' own included, as it is."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(given, pa.Array):
        return series(pa.chunked_array([given]), what)
    known = nw.from_native(given, pass_through=True, allow_series=True)
    if isinstance(known, nw.Series) and not known.implementation.is_pandas():
        array = known.to_arrow()
        return series(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]), what)
    if not pandas.accepts(given) and accepts(given):
        frame, names = opened(given)
        return as_frame(_table(frame, range(len(names)))[0]).set_axis(names, axis="columns")
    return given


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a frame of pandas whose columns are labelled by position."""
    import pandas as pd

    columns = zip(table.columns, table.column_names, strict=True)
    held = {place: series(column, f"column {name!r}") for place, (column, name) in enumerate(columns)}
    return pd.DataFrame(held, copy=False)


def series(column: pa.ChunkedArray, label: str) -> pd.Series:
    """Return a column as a Series: dictionaries as categories, other encodings decoded, the rest without a copy."""
    import pandas as pd
    import pyarrow as pa

    from prplugin.frames._pandas_ids import arrow_plainly  # imports pandas

    kind = column.type
    if pa.types.is_dictionary(kind):
        signed = pa.dictionary(pa.int64(), kind.value_type, kind.ordered)  # pandas has no categories of unsigned codes
        try:
            return pd.Series(column.cast(signed).to_pandas())
        except (ValueError, pa.ArrowException):  # repeated or null categories
            pass
    if pa.types.is_null(kind) and not len(column):
        return pd.Series([], dtype=object)
    return pd.Series(pd.arrays.ArrowExtensionArray(arrow_plainly(column, label)))


def fields_of_vertices(fields: Sequence[pa.Field | None], columns: Columns, vertices: object) -> list[pa.Field | None]:
    """Return the field of each column of a vertex: that of both endpoints, or None where it is not known or not one."""
    pairs = zip(columns.source, columns.destination, strict=True)
    return [None if vertices is not None else _common_field(fields[one], fields[other]) for one, other in pairs]


def _common_field(one: pa.Field | None, other: pa.Field | None) -> pa.Field | None:
    """Return the field that both are, without run-end encoding; None where they differ, or one is None."""
    import pyarrow as pa

    if one is None or other is None or one.type != other.type or one.metadata != other.metadata:
        return None
    return one.with_type(one.type.value_type) if pa.types.is_run_end_encoded(one.type) else one


def _like(column: Any, field: pa.Field | None) -> pa.ChunkedArray:
    """Return a column of pandas as one of Arrow, in the type of a field if there is one."""
    import pyarrow as pa

    array = pa.array(column)
    return array if field is None else array.cast(field.type)
