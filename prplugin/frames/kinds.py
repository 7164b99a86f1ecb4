"""Kinds of ids, such as integer and string, and messages about columns. Imports no dataframe library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

from prplugin.errors import InvalidEdgesError, InvalidOptionError, RefusedRows, counted, listed, refusal
from prplugin.types.edges import Integers

Kind = Literal["integer", "number", "string"]
ZONED = "datetime with a time zone"  # the kind of ids that are times with a zone


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


def format_mixed_kinds(label: str, mixed: RefusedRows) -> str:
    """Return the message about ids of several kinds in one column."""
    first = mixed.contents[0]
    other = next(place for place, kind in enumerate(mixed.contents) if kind != first)
    return (
        f"{label} mixes kinds of ids: {first} in row {mixed.rows[0]}, {mixed.contents[other]} in row "
        f"{mixed.rows[other]} (counted from 0). Cast it to one type, for instance with {cast_to('string')}."
    )
