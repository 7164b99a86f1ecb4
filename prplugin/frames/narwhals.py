"""Frames of polars, tables of pyarrow, relations of DuckDB, and whatever else narwhals or Arrow's C interface knows.

Their columns become Arrow-backed columns of pandas, which share their memory, and the pandas adapter does the rest; so
ids mean the same, and errors read the same, as there. A lazy frame is collected, of the columns in use alone, into what
narwhals collects it into: a `polars.LazyFrame` into a `polars.DataFrame`, a relation of DuckDB into a `pyarrow.Table`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, listed
from prplugin.frames import pandas
from prplugin.frames.base import Labels, SeedValues, converted
from prplugin.frames.columns import Columns
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Vertices",
    "accepts",
    "as_frame",
    "as_pandas",
    "common_field",
    "opened",
    "place",
    "read",
    "read_positions",
    "read_seeds",
    "read_values",
    "series",
    "write",
    "write_ids",
]

place = "host"


@dataclass(frozen=True)
class Vertices:
    """The vertices as the pandas adapter has them.

    Attributes
    ----------
    vertices : pandas.Vertices
    fields : list of pyarrow.Field or None
        How the result holds each column: as all ends do, or, where these differ, as their common type in pandas.
    backend : narwhals.Implementation
        The library of the result.
    """

    vertices: pandas.Vertices
    fields: list[pa.Field | None]
    backend: Any

    def __len__(self) -> int:
        return len(self.vertices)

    def described(self, rows: Integers) -> list[str]:
        """Spell out the ids of some vertices for a message."""
        return self.vertices.described(rows)


def accepts(frame: object) -> bool:
    """Say whether this is a table that narwhals or Arrow knows. Dask's are not: they may be larger than the memory."""
    import narwhals as nw  # light, and the other adapters have said no
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return True
    known = nw.from_native(frame, pass_through=True, allow_series=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known is not frame and not known.implementation.is_dask()
    return not isinstance(known, nw.Series) and hasattr(frame, "__arrow_c_stream__")


def opened(frame: Any) -> tuple[Any, list[Hashable]]:
    """Give the frame as narwhals or pyarrow has it, and the names of its columns."""
    import narwhals as nw
    import pyarrow as pa

    known = frame if isinstance(frame, pa.Table) else nw.from_native(frame, pass_through=True)
    if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
        return known, list(known.collect_schema().names())
    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        kind = type(frame)
        raise InvalidEdgesError(f"edges of type {kind.__module__}.{kind.__qualname__} are no table: {error}") from error
    return table, list(table.column_names)


def read(
    frame: Any, columns: Columns, vertices: object, *, by_row: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Replace the ids of a frame by positions, as the pandas adapter does.

    Parameters
    ----------
    frame : narwhals frame or pyarrow.Table
        From `opened`.
    """
    used, columns = columns.alone()
    table, backend = _table(frame, used)
    vertices = as_pandas(vertices, "vertices")
    edges, known = pandas.read(as_frame(table), columns, vertices, by_row=by_row, lasting=lasting)
    fields = [
        common_field([table.field(end) for end in ends]) if vertices is None else None
        for ends in zip(columns.source, columns.destination, strict=True)
    ]
    return edges, Vertices(known, fields, backend)


def read_values(given: object, vertices: Vertices, what: str) -> Floats:
    """Spread values given for some vertices over all of them, 0 for the others, as the pandas adapter does."""
    return pandas.read_values(_values_as_pandas(given, vertices, what), vertices.vertices, what)


def read_seeds(given: Any, vertices: Vertices, what: str) -> SeedValues:
    """Return the distributions of many seeds, as the pandas adapter does."""
    given = converted(given, lambda one: _values_as_pandas(one, vertices, what))
    return pandas.read_seeds(given, vertices.vertices, what)


def read_positions(given: Any, vertices: Vertices, what: str) -> Integers:
    """Return the positions of the vertices asked for, in the order given."""
    return pandas.read_positions(as_pandas(given, what), vertices.vertices, what)


def _values_as_pandas(given: Any, vertices: Vertices, what: str) -> Any:
    """Give a frame of values by vertex as one of pandas, and anything else, but no column of values alone, as it is."""
    import pandas as pd

    as_given = given
    given = as_pandas(given, what)
    if isinstance(given, pd.Series) and given is not as_given:
        names = listed([repr(name) for name in [*vertices.vertices.names, "values"]])
        raise InvalidOptionError(
            f"{what} is a column without an index: it must be a dict of vertex: value, or a frame with the columns "
            f"{names}."
        )
    return given


def write(vertices: Vertices, ranks: np.ndarray, rows: Integers | None, labels: Labels | None = None) -> Any:
    """Put the ranks of all vertices, or of those at `rows`, in a frame; of many seeds, as the pandas adapter does."""
    import narwhals as nw
    import pyarrow as pa

    names, ids, of_ids = vertices.vertices.names, vertices.vertices.columns, vertices.fields
    if labels is not None:
        frame = pandas.write(vertices.vertices, ranks, rows, labels)
        names = list(frame.columns[:-1])
        of_seeds = [None] if labels.rows is None else of_ids
        ids, of_ids, rows = [frame[name].array for name in names], [*of_seeds, *of_ids], None
        ranks = ranks.reshape(-1)
    columns = [_like(column if rows is None else column.take(rows), of) for column, of in zip(ids, of_ids, strict=True)]
    fields = [
        pa.field(name, column.type, metadata=None if of is None else of.metadata)
        for name, column, of in zip(names, columns, of_ids, strict=True)
    ]
    values = pa.array(ranks.copy())  # what a frame holds is its own
    table = pa.table([*columns, values], schema=pa.schema([*fields, pa.field("pagerank", values.type)]))
    return table if vertices.backend.is_pyarrow() else nw.from_arrow(table, backend=vertices.backend).to_native()


def write_ids(vertices: Vertices) -> Any:
    """Return the vertices as a column of the library, or as a frame where they have several columns."""
    import narwhals as nw
    import pyarrow as pa

    known = vertices.vertices
    columns = [_like(column, field) for column, field in zip(known.columns, vertices.fields, strict=True)]
    table = pa.table(columns, names=known.names)
    if vertices.backend.is_pyarrow():
        return table if len(columns) > 1 else table[0]
    frame = nw.from_arrow(table, backend=vertices.backend)
    return frame.to_native() if len(columns) > 1 else frame[str(known.names[0])].to_native()


def _table(frame: Any, positions: Sequence[int]) -> tuple[pa.Table, Any]:
    """Take some columns of a frame as Arrow has them; also say in which library the result is to come."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame.select(list(positions)), nw.Implementation.PYARROW
    schema = frame.collect_schema()
    names = [schema.names()[position] for position in positions]
    if objects := [name for name in names if schema[name] == nw.Object]:
        raise InvalidEdgesError(
            f"column {objects[0]!r} is of type {schema[objects[0]]}, which Arrow does not have. Cast it, to strings "
            "for instance."
        )
    frame = frame.select(*names)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    try:
        return frame.to_arrow(), frame.implementation
    except pa.ArrowException as error:
        raise InvalidEdgesError(f"columns {listed(names)} cannot be held by Arrow: {error}. Cast them.") from error


def as_pandas(given: Any, what: str) -> Any:
    """Give a frame and a column as those of pandas, and anything else, pandas' own included, as it is."""
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
    """Hold the columns of a table in a frame of pandas, under their positions."""
    import pandas as pd

    columns = zip(table.columns, table.column_names, strict=True)
    held = {place: series(column, f"column {name!r}") for place, (column, name) in enumerate(columns)}
    return pd.DataFrame(held, copy=False)


def series(column: pa.ChunkedArray, label: str) -> pd.Series:
    """Hold a column in pandas: without a copy, but for dictionaries, which become categories, and other encodings."""
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


def common_field(fields: list[pa.Field | None]) -> pa.Field | None:
    """Give the field that all are, without run-end encoding; None where they differ, or one is None."""
    import pyarrow as pa

    known = [field for field in fields if field is not None]
    first = known[0] if len(known) == len(fields) else None
    if first is None or any(field.type != first.type or field.metadata != first.metadata for field in known):
        return None
    return first.with_type(first.type.value_type) if pa.types.is_run_end_encoded(first.type) else first


def _like(column: Any, field: pa.Field | None) -> pa.ChunkedArray:
    """Give a column of pandas as one of Arrow, in the type of a field if there is one."""
    import pyarrow as pa

    array = pa.array(column)
    return array if field is None else array.cast(field.type)
