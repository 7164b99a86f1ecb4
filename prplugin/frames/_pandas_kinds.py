"""Kinds of ids of every pandas type, such as integer and string, and errors for others. Imports pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from prplugin.errors import InvalidEdgesError, InvalidOptionError, RefusedRows, counted, listed, refusal
from prplugin.frames._pandas_objects import ZONED, ObjectColumn, missing_rows
from prplugin.types.edges import Integers

Kind = Literal["integer", "number", "string"]


def _casts(form: str, integer: str, number: str, string: str) -> dict[Kind, str]:
    return {"integer": form.format(integer), "number": form.format(number), "string": form.format(string)}


CASTS = {
    **dict.fromkeys(("pandas", "cudf"), _casts(".astype({})", "'int64'", "'float64'", "str")),
    "polars": _casts(".cast(polars.{})", "Int64", "Float64", "String"),
    "pyarrow": _casts(".cast(pyarrow.{}())", "int64", "float64", "string"),
    "duckdb": _casts("CAST(... AS {})", "BIGINT", "DOUBLE", "VARCHAR"),
}
"""Syntax of casts by library, for frames that the pandas adapter reads; pandas syntax for other libraries."""

CONVERSIONS = {
    "pandas": ("column.tolist()", "column.to_dict()"),
    "cudf": ("column.to_arrow().to_pylist()", "column.to_pandas().to_dict()"),
    "polars": ("column.to_list()", "dict(enumerate(column))"),
    "pyarrow": ("column.to_pylist()", "dict(enumerate(column.to_pylist()))"),
}
"""Conversion of a column to a list of its values, and to a dict of its values by position or index, by library."""

_library: ContextVar[str] = ContextVar("library", default="pandas")


@contextmanager
def casts_of(library: str) -> Iterator[None]:
    """Return a context manager in which messages use the syntax of a library, unless it is not in `CASTS`."""
    token = _library.set(library if library in CASTS else _library.get())
    try:
        yield
    finally:
        _library.reset(token)


def cast_to(kind: Kind) -> str:
    """Return the code that casts a column to a kind of type, in the syntax of the current library."""
    return CASTS[_library.get()][kind]


def ambiguous_refused(what: str, first: list[Any], count: int) -> InvalidOptionError:
    """Return the error for a Series of values by vertex that is probably a column of vertices.

    Its index is the default one; or it has no name and ascends, and all values are distinct vertices.
    """
    as_list, as_dict = CONVERSIONS.get(_library.get(), CONVERSIONS["pandas"])
    return InvalidOptionError(
        f"{what} is a column without an index of vertices: a Series of {counted(count, 'entry', 'entries')}, the first "
        f"{listed([repr(value) for value in first])}, whose index has no name and ascends. If these are vertices, pass "
        f"a list of them: {what}={as_list}. If they are values of the vertices in the index, pass a dict: "
        f"{what}={as_dict}. Or name the index: Series.rename_axis('vertex')."
    )


def check_kinds(columns: list[Any], kinds: list[str], what: str, find: Callable[[Any, str], str]) -> None:
    """Raise for ids that are null or of other kinds than the graph's; `find` is `kind_of` for their library."""
    for column, kind in zip(columns, kinds, strict=True):
        found = find(column, what)
        if "empty" not in (found, kind) and found != kind:
            raise InvalidOptionError(
                f"{what} names vertices by ids of kind {found}, but the graph's are of kind {kind}: cast them, for "
                f"instance with {cast_to('string' if kind == 'string' else 'integer')}."
            )


def common_kind(columns: list[Any], labels: list[str], find: Callable[[Any, str], str]) -> str:
    """Return the common kind of ids of all columns; raise if kinds differ. `find` is `kind_of` for their library."""
    kinds = [find(column, label) for column, label in zip(columns, labels, strict=True)]
    filled = [(kind, label) for kind, label in zip(kinds, labels, strict=True) if kind != "empty"]
    for kind, label in filled:
        if kind != filled[0][0]:
            raise InvalidEdgesError(
                f"{filled[0][1]} holds ids of kind {filled[0][0]}, but {label} of kind {kind}: "
                "cast one to the type of the other, so that equal vertices have equal ids; for instance with "
                f"{cast_to('string')}."
            )
    return filled[0][0] if filled else "empty"


def kind_of(column: pd.Series | ObjectColumn, label: str) -> str:
    """Return the kind of ids in a column, "empty" for an untyped column without ids; raise for nulls and floats."""
    if isinstance(column, ObjectColumn):
        try:
            return kind_of(column.objects, label)
        except InvalidEdgesError:
            column = column.column  # for row numbers in the message
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return "integer"  # cannot hold nulls
    if types.is_object_dtype(dtype) and types.infer_dtype(column, skipna=False) == "string":
        return "string"  # infer_dtype found no nulls
    if isinstance(dtype, pd.CategoricalDtype):
        refuse_rows(missing_rows(column), label)
        used = column.cat.remove_unused_categories()
        return kind_of(pd.Series(used.cat.categories), label)
    if types.is_float_dtype(dtype) and not len(column):
        return "empty"  # pandas infers float for an empty list
    if types.is_float_dtype(dtype) or types.is_complex_dtype(dtype):
        raise floats_refused(dtype, label, missing_rows(column))
    refuse_rows(missing_rows(column), label)
    if types.is_bool_dtype(dtype) and not types.is_object_dtype(dtype):
        return "boolean"
    if types.is_integer_dtype(dtype):
        return "integer"
    if isinstance(dtype, pd.DatetimeTZDtype) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None):
        return ZONED
    if types.is_datetime64_any_dtype(dtype) and not str(dtype).startswith(("date32", "date64")):
        return "datetime"
    if types.is_object_dtype(dtype):
        return _kind_of_objects(column, label)
    if types.is_string_dtype(dtype):
        return "string"
    if getattr(dtype, "kind", None) == "m":
        return "timedelta"
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(dtype, label)
    return str(dtype)


def _kind_of_arrow(dtype: pd.ArrowDtype, label: str) -> str:
    """Return the kind of the Python objects that an Arrow type converts to."""
    if "list" in str(dtype) or "struct" in str(dtype) or "map" in str(dtype):
        raise unhashable_refused(dtype, label)
    names = {"date": "date", "binary": "bytes", "large_binary": "bytes", "decimal": "decimal.Decimal"}
    return next((kind for name, kind in names.items() if str(dtype).startswith(name)), str(dtype))


def _kind_of_objects(column: pd.Series, label: str) -> str:
    inferred = types.infer_dtype(column, skipna=False)
    if inferred in ("string", "integer", "boolean", "empty", "bytes", "date"):
        return str(inferred)
    if inferred in ("datetime", "datetime64"):
        zoned = getattr(column.iloc[0], "tzinfo", None) is not None
        return ZONED if zoned else "datetime"
    if inferred in ("timedelta", "timedelta64"):
        return "timedelta"
    kinds = column.map(type)
    if kinds.nunique() > 1:
        rows = [0, int(np.flatnonzero(kinds != kinds.iloc[0])[0])]
        type_names = [kinds.iloc[row].__name__ for row in rows]
        raise refusal(InvalidEdgesError, RefusedRows(partial(_format_mixed_kinds, label), len(rows), rows, type_names))
    kind: type = kinds.iloc[0]
    if issubclass(kind, (float, complex, np.inexact)):
        raise floats_refused(kind.__name__, label)
    if kind.__hash__ is None:
        raise unhashable_refused(kind.__name__, label)
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__


def floats_refused(dtype: object, label: str, missing: Integers | None = None) -> InvalidEdgesError:
    """Return the error for floating-point ids; `missing` holds the rows without a value."""
    hint = ""
    if missing is not None and missing.size:
        hint = (
            f" {counted(missing.size, 'row has', 'rows have')} no value ({listed(missing)}, counted from 0), which may "
            "be why: drop them first."
        )
    return InvalidEdgesError(
        f"{label} holds {dtype} ids, which do not compare reliably.{hint} Cast it with "
        f"{cast_to('integer')} or to strings with {cast_to('string')}."
    )


def unhashable_refused(dtype: object, label: str) -> InvalidEdgesError:
    """Return the error for ids of an unhashable type."""
    return InvalidEdgesError(
        f"{label} holds ids of type {dtype}, which have no hash. Cast it to strings, for instance with "
        f"{cast_to('string')}."
    )


def refuse_rows(
    rows: Integers, label: str, noun: str = "null", remedy: str = ": a vertex needs an id. Drop or fill them."
) -> None:
    """Raise for a column with nulls, or other invalid values, in these rows, unless there are none."""
    if rows.size:
        format_message = partial(_format_rows, label, noun, remedy)
        raise refusal(InvalidEdgesError, RefusedRows(format_message, rows.size, rows[:5].tolist(), []))


def _format_rows(label: str, noun: str, remedy: str, rows: RefusedRows) -> str:
    return (
        f"{label} has {counted(rows.count, noun)}, in {'row' if rows.count == 1 else 'rows'} "
        f"{listed(rows.padded(rows.rows))} (counted from 0){remedy}"
    )


def format_values(label: str, noun: str, fault: str, remedy: str, values: RefusedRows, *, what: str = "value") -> str:
    """Return the message about invalid values of a column; `noun` names an entry, such as "row"."""
    shown = [f"{content} in {noun} {row}" for content, row in zip(values.contents, values.rows, strict=True)]
    return (
        f"{label} has {counted(values.count, what)} {fault}: {listed(values.padded(shown), 3)} "
        f"(counted from 0). {remedy}"
    )


def _format_mixed_kinds(label: str, mixed: RefusedRows) -> str:
    first = mixed.contents[0]
    other = next(place for place, kind in enumerate(mixed.contents) if kind != first)
    return (
        f"{label} mixes kinds of ids: {first} in row {mixed.rows[0]}, {mixed.contents[other]} in row "
        f"{mixed.rows[other]} (counted from 0). Cast it to one type, for instance with {cast_to('string')}."
    )
