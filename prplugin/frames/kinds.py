"""Kinds of ids, such as integer and string, and messages about columns. Imports no dataframe library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from prplugin.errors import InvalidEdgesError, InvalidOptionError, RefusedRows, counted, listed, refusal
from prplugin.frames.remedies import cast_advice, drop_advice, remedy
from prplugin.types.edges import Integers

EXACT = 2**53  # from this on, a float64 may be another integer than the one that was meant
ZONED = "datetime with a time zone"  # the kind of ids that are times with a zone


def ambiguous_refused(what: str, first: Sequence[object], count: int, readings: Iterable[str]) -> InvalidOptionError:
    """Return the error for a Series that may be a column of vertices, or of values of the vertices in its index.

    `readings`: Remedies for values.
    """
    vertices = remedy("vertices of a column")
    values = [code for code in map(remedy, readings) if code]
    values.append("a frame with the columns 'vertex' and 'values'")
    return InvalidOptionError(
        f"{what} is a column without an index of vertices: a Series of {counted(count, 'entry', 'entries')}, the first "
        f"{listed([repr(value) for value in first])}. If these are vertices, pass a list of them"
        f"{f': {vertices}' if vertices else ''}. If they are values of vertices, say of which: {', or '.join(values)}."
    )


def floats_refused(dtype: object, label: str, missing: Integers, unsafe: object) -> InvalidEdgesError:
    """Return the error for floating-point ids.

    `missing`: Rows without a value. `unsafe`: The first value that is no certain integer, or None.
    """
    hint = ""
    if missing.size:
        hint = (
            f" {counted(missing.size, 'row has', 'rows have')} no value ({listed(missing)}, counted from 0), which may "
            "be why."
        )
    how = f"It has {unsafe!r}: read it as integers or text in the first place, since floats lose digits."
    if unsafe is None:
        how = cast_advice("Cast it to integers", "cast to integers", label)
    return InvalidEdgesError(f"{label} holds {dtype} ids, which do not compare reliably.{hint} {how}")


def unhashable_refused(dtype: object, label: str, *, lists: bool) -> InvalidEdgesError:
    """Return the error for ids of an unhashable type; `lists`: whether they are lists of ids."""
    how = "A vertex needs an id such as a number or a string."
    if lists:
        how = cast_advice("If they are lists of vertices, make a row of each entry", "rows of lists", label)
    return InvalidEdgesError(f"{label} holds ids of type {dtype}, which have no hash. {how}")


def refuse_rows(rows: Integers, label: str, noun: str = "null", how: str | None = None) -> None:
    """Raise for a column with nulls, or other invalid values, in these rows, unless there are none."""
    if rows.size:
        how = f": a vertex needs an id. Drop or fill them.{drop_advice(label)}" if how is None else how
        format_message = partial(_format_rows, label, noun, how)
        raise refusal(InvalidEdgesError, RefusedRows(format_message, rows.size, rows[:5].tolist(), []))


def _format_rows(label: str, noun: str, how: str, rows: RefusedRows) -> str:
    return (
        f"{label} has {counted(rows.count, noun)}, in {'row' if rows.count == 1 else 'rows'} "
        f"{listed(rows.padded(rows.rows))} (counted from 0){how}"
    )


def format_values(label: str, noun: str, fault: str, remedy: str, values: RefusedRows, *, what: str = "value") -> str:
    """Return the message about invalid values of a column; `noun` names an entry, such as "row"."""
    shown = [f"{content} in {noun} {row}" for content, row in zip(values.contents, values.rows, strict=True)]
    return (
        f"{label} has {counted(values.count, what)} {fault}: {listed(values.padded(shown), 3)} "
        f"(counted from 0). {remedy}"
    )


def format_mixed_kinds(label: str, how: str, mixed: RefusedRows) -> str:
    """Return the message about ids of several kinds in one column, with a sentence of advice."""
    first = mixed.contents[0]
    other = next(place for place, kind in enumerate(mixed.contents) if kind != first)
    return (
        f"{label} mixes kinds of ids: {first} in row {mixed.rows[0]}, {mixed.contents[other]} in row "
        f"{mixed.rows[other]} (counted from 0). {how}"
    )
