"""Lines of text one by one, each with its number: for the first lines, and to find the one at fault."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from prplugin.errors import InvalidEdgesError

__all__ = ["CSV", "TSV", "WHITESPACE", "Dialect", "Field", "Record", "fault", "raise_fault", "records"]

INTEGER = re.compile(r"-?[0-9]+")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
LEAST, MOST_SIGNED, MOST = -(2**63), 2**63 - 1, 2**64 - 1


class Dialect(NamedTuple):
    """How a line divides into fields.

    Attributes
    ----------
    delimiter : str or None
        None: runs of spaces and tabs; no quotes, and lines that begin with # or % are comments.
    """

    delimiter: str | None


CSV, TSV, WHITESPACE = Dialect(","), Dialect("\t"), Dialect(None)


class Record(NamedTuple):
    """One line of fields, or several lines where a quoted field goes over them.

    Attributes
    ----------
    line : int
        The number of its first line in the file, from 1.
    start, end : int
        Where it begins and ends, in bytes.
    fields : list of str
        Bytes that are not UTF-8 are in them as lone surrogates.
    """

    line: int
    start: int
    end: int
    fields: list[str]


class Field(NamedTuple):
    """A field that is read.

    Attributes
    ----------
    position : int
        Among the fields of a line, from 0.
    name : str
    kind : {"integer", "string", "weight"}
    largest : int or None
        Ids must be from 1 up to this.
    """

    position: int
    name: str
    kind: str
    largest: int | None = None


def records(path: str, data: bytes, dialect: Dialect, first: int = 1) -> Iterator[Record]:
    """Go through the lines that are neither empty nor comments; the first has the number `first`.

    Raises
    ------
    InvalidEdgesError
        For a quoted field that does not end as it should.
    """
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="")
    if dialect.delimiter is None:
        end = 0
        for number, line in enumerate(text, first):
            start, end = end, end + _size(line)
            bare = line.strip(" \t\r\n\f\v")
            if bare and bare[0] not in "#%":
                yield Record(number, start, end, re.split(r"[ \t\f\v]+", bare))
        return
    taken_lines, taken_bytes = first - 1, 0

    def lines() -> Iterator[str]:
        nonlocal taken_lines, taken_bytes
        for line in text:
            taken_lines += 1
            taken_bytes += _size(line)
            yield line

    reader = csv.reader(lines(), delimiter=dialect.delimiter, strict=True)
    while True:
        number, start = taken_lines + 1, taken_bytes
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault(path, number, f"its quotes do not go together ({error}).")
        if fields:
            yield Record(number, start, taken_bytes, fields)


def raise_fault(path: str, lines: Iterator[Record], width: int, fields: list[Field]) -> None:
    """Raise InvalidEdgesError for the first line that is not `width` fields of the right kinds; return if none."""
    past_signed: Record | None = None
    negative = False
    for record in lines:
        if len(record.fields) != width:
            fault(
                path, record.line,
                f"it has {_fields(len(record.fields))} where the first has {width}: {_shown(' '.join(record.fields))}.",
            )  # fmt: skip
        for field in fields:
            text = record.fields[field.position]
            _check(path, record.line, field, text)
            if field.kind == "integer":
                negative = negative or int(text) < 0
                past_signed = past_signed or (record if int(text) > MOST_SIGNED else None)
        if negative and past_signed:
            fault(path, past_signed.line, "an id is past 2**63, and others are negative: pass --ids string.")


def fault(path: str, line: int, what: str) -> NoReturn:
    """Raise InvalidEdgesError about a line of a file."""
    raise InvalidEdgesError(f"{path}, line {line:,}: {what}")


def _check(path: str, line: int, field: Field, text: str) -> None:
    what = f"column {field.name!r} has {_shown(text)}"
    if not text.strip():
        fault(path, line, f"column {field.name!r} is empty.")
    if any("\udc80" <= character <= "\udcff" for character in text):
        raw = text.encode("utf-8", "surrogateescape")[:60]
        fault(path, line, f"column {field.name!r} has {raw!r}, which is not UTF-8 text. Convert the file to UTF-8.")
    bare = text.strip(" \t")
    if field.kind == "integer":
        if not INTEGER.fullmatch(bare):
            fault(path, line, f"{what}, which is no integer, though the ids are. Correct it, or pass --ids string.")
        if not LEAST <= int(bare) <= MOST:
            fault(path, line, f"{what}, which no 64-bit integer holds. Pass --ids string.")
        if field.largest is not None and not 1 <= int(bare) <= field.largest:
            fault(path, line, f"{what}, but the size line allows 1 to {field.largest}.")
    elif field.kind == "weight":
        if not NUMBER.fullmatch(bare):
            fault(path, line, f"{what}, which is no finite number.")
        if float(bare) < 0:
            fault(path, line, f"{what}, which is below 0: PageRank needs weights of at least 0.")
        if float(bare) == float("inf"):
            fault(path, line, f"{what}, which is past the range of float64. Scale the column.")


def _size(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode("utf-8", "surrogateescape"))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"
