"""Fields of text as columns: pyarrow parses on every core; where it fails, a slow pass finds the line at fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from prplugin.errors import InvalidEdgesError
from prplugin.io.records import Dialect, Field, raise_fault, records

__all__ = ["columns"]

BLOCK_BYTES = 8 << 20
"""What a thread parses at a time; no line may be longer."""

PIECE_BYTES = 2 << 20
"""What is searched line by line for a fault, a second's work, once it is known to lie there."""

Text: TypeAlias = memoryview | bytes


class _Way(NamedTuple):
    """A way to parse text: what divides fields, whether they may be quoted, and what to do to the text before."""

    delimiter: str
    quotes: bool
    prepared: Callable[[memoryview], Iterable[Text]]


def columns(
    path: str, data: bytes, start: int, dialect: Dialect, width: int, fields: list[Field]
) -> dict[str, pd.Series]:
    """Read some fields of every line.

    Parameters
    ----------
    path : str
        What messages call the file.
    data : bytes
        All of it.
    start : int
        Where in it the lines begin that are to be read.
    width : int
        How many fields each line has.

    Returns
    -------
    dict of Series by field name
        Integers as int64, or uint64 if they need it; weights as float64.

    Raises
    ------
    InvalidEdgesError
        For the first line that is not as it should be, by number.
    """
    text = memoryview(data)[start:]
    ways = _ways(text, dialect, fields)
    failure = "for no reason that can be told"
    for way, integers in product(ways, (pa.int64(), pa.uint64())):
        try:
            table = pa.concat_tables(_parsed(piece, way, width, fields, integers) for piece in way.prepared(text))
        except pa.ArrowInvalid as error:
            failure = str(error)
            continue
        if _sound(table, fields):
            return {field.name: table[str(field.position)].to_pandas() for field in fields}
        break
    for first, last in _suspects(text, ways, width, fields):
        line = 1 + data.count(b"\n", 0, start + first)
        raise_fault(path, records(path, data[start + first : start + last], dialect, line), width, fields)
    raise InvalidEdgesError(f"{path} cannot be read: {failure}")


def _ways(text: memoryview, dialect: Dialect, fields: list[Field]) -> list[_Way]:
    """Give the ways to try, the fastest first."""
    if dialect.delimiter is not None:
        return [_Way(dialect.delimiter, True, lambda text: [text])]
    evened = _Way("\t", False, lambda text: (_evened(text[first:last]) for first, last in _pieces(text)))
    if any(field.kind == "string" for field in fields):
        return [evened]
    # Most files have one tab or one space between numbers. If this one has not, a number will not parse.
    first_line = bytes(text[:4096]).split(b"\n", 1)[0]
    return [_Way("\t" if b"\t" in first_line else " ", False, lambda text: [text]), evened]


def _pieces(text: memoryview) -> Iterator[tuple[int, int]]:
    """Cut text at ends of lines."""
    first = 0
    while first < len(text):
        last = first + PIECE_BYTES
        end_of_line = bytes(text[first:last]).rfind(b"\n")
        last = first + end_of_line + 1 if last < len(text) and end_of_line >= 0 else len(text)
        yield first, last
        first = last


def _suspects(text: memoryview, ways: list[_Way], width: int, fields: list[Field]) -> Iterator[tuple[int, int]]:
    """Give the pieces that do not parse, and then all of the text: a fault may lie in how lines go together."""
    if not (ways[0].quotes and re.search(b'"', text)):  # a quoted field may go over the end of a line, and of a piece
        for first, last in _pieces(text):
            if not any(
                _parses(text[first:last], way, width, fields, integers)
                for way, integers in product(ways, (pa.int64(), pa.uint64()))
            ):
                yield first, last
    yield 0, len(text)


def _parses(text: memoryview, way: _Way, width: int, fields: list[Field], integers: pa.DataType) -> bool:
    try:
        return all(_sound(_parsed(piece, way, width, fields, integers), fields) for piece in way.prepared(text))
    except pa.ArrowInvalid:
        return False


def _evened(text: memoryview) -> bytes:
    """Put one tab between fields and nothing around them, and leave out comments."""
    letters = np.frombuffer(text, np.uint8)
    blank = _blank(letters)
    between = blank | (letters == ord("\n"))
    letters = letters[~(blank & np.append(True, between[:-1]))]
    blank = _blank(letters)
    letters = np.where(blank, np.uint8(ord("\t")), letters)
    even: bytes = letters[~(blank & np.append(letters[1:] == ord("\n"), True))].tobytes()
    if b"#" in even or b"%" in even:
        even = re.sub(rb"(?m)^[#%].*\n?", b"", even)
    return even


def _blank(letters: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Find spaces, tabs and their like, but no ends of lines."""
    found: NDArray[np.bool_] = (letters == ord(" ")) | (
        (letters >= ord("\t")) & (letters <= ord("\r")) & (letters != ord("\n"))
    )
    return found


def _parsed(text: Text, way: _Way, width: int, fields: list[Field], integers: pa.DataType) -> pa.Table:
    types = {"integer": integers, "string": pa.string(), "weight": pa.float64()}
    schema = pa.schema([(str(field.position), types[field.kind]) for field in fields])
    if not bytes(text[:4096]).strip() and not bytes(text).strip():
        return schema.empty_table()
    return csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(column_names=[str(position) for position in range(width)], block_size=BLOCK_BYTES),
        csv.ParseOptions(
            delimiter=way.delimiter,
            quote_char='"' if way.quotes else False,
            # Only then can a block not be cut at any line's end, which takes a single thread to find out.
            newlines_in_values=way.quotes and re.search(b'"', text) is not None,
        ),
        csv.ConvertOptions(column_types=schema, include_columns=schema.names, null_values=[]),
    )


def _sound(table: pa.Table, fields: list[Field]) -> bool:
    """Say whether all values are of those that a field may have."""
    return all(_sound_column(table[str(field.position)], field) for field in fields)


def _sound_column(column: pa.ChunkedArray, field: Field) -> bool:
    if field.kind == "weight":
        weights = column.to_numpy()
        return bool(np.all((weights >= 0) & (weights < np.inf)))
    if field.kind == "string":
        return not pc.any(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py()
    if field.largest is None or len(column) == 0:
        return True
    ends = pc.min_max(column).as_py()
    return bool(ends["min"] >= 1 and ends["max"] <= field.largest)
