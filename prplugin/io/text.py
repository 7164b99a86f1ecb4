"""CSV, TSV and SNAP text."""

from __future__ import annotations

from itertools import chain, islice

import pandas as pd

from prplugin.errors import InvalidEdgesError
from prplugin.frames.columns import KNOWN_PAIRS, Columns
from prplugin.io.columnar import columns
from prplugin.io.content import text_content
from prplugin.io.records import CSV, INTEGER, NUMBER, TSV, WHITESPACE, Dialect, Field, Record, records
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["read_csv", "read_snap", "read_tsv"]

SAMPLE = 100
"""Lines by which it is told whether ids are integers."""

POSITIONAL = ("source", "destination", "weight")


def read_csv(selection: Selection, compression: str | None) -> EdgeFile:
    """Read fields between commas; see `prplugin.io.read_edges`."""
    return _read(selection, compression, CSV)


def read_tsv(selection: Selection, compression: str | None) -> EdgeFile:
    """Read fields between tabs; see `prplugin.io.read_edges`."""
    return _read(selection, compression, TSV)


def read_snap(selection: Selection, compression: str | None) -> EdgeFile:
    """Read fields between spaces or tabs, with comments; see `prplugin.io.read_edges`."""
    return _read(selection, compression, WHITESPACE)


def _read(selection: Selection, compression: str | None, dialect: Dialect) -> EdgeFile:
    data = text_content(selection.path, compression)
    path = selection.name
    lines = records(path, data, dialect)
    first = next(lines, None)
    if first is None:
        raise InvalidEdgesError(f"{path} holds no edges: all its lines are empty{_or_comments(dialect)}.")
    headed = _is_header(first, selection) if selection.header is None else selection.header
    labels = [label.strip() for label in first.fields] if headed else _by_position(first)
    found = selection.resolved(labels, hint=_hint(selection, first, dialect) if headed else "")
    sample = list(islice(lines if headed else chain([first], lines), SAMPLE))
    fields = _fields(found, sample, selection)
    start = first.end if headed else first.start

    read = columns(path, data, start, dialect, len(labels), fields)
    return EdgeFile(pd.DataFrame(read, copy=False), found.source_names, found.destination_names, found.weight_name)


def _is_header(first: Record, selection: Selection) -> bool:
    """Say whether a first line names the columns: it has names that are known or asked for, or is not all numbers."""
    labels = {label.strip() for label in first.fields}
    if any(set(pair) <= labels for pair in KNOWN_PAIRS) or labels & selection.named:
        return True
    return not all(NUMBER.fullmatch(label) for label in labels)


def _by_position(first: Record) -> list[str]:
    names = list(POSITIONAL[: len(first.fields)])
    names += [f"column{number}" for number in range(len(names) + 1, len(first.fields) + 1)]
    if len(names) >= 3 and not NUMBER.fullmatch(first.fields[2].strip()):
        names[2] = "column3"
    return names


def _hint(selection: Selection, first: Record, dialect: Dialect) -> str:
    """Say what else the first line may be than a header; nothing if the user said that it is one."""
    if selection.header:
        return ""
    hint = f" Line {first.line:,} was taken for a header: pass --no-header if it is an edge"
    if dialect.delimiter is not None and first.fields[0].startswith(("#", "%")):
        return f"{hint}, or --format snap if it is a comment."
    if len(first.fields) == 1:
        return f"{hint}, or --format if its fields are divided by something else."
    return f"{hint}."


def _or_comments(dialect: Dialect) -> str:
    return " or comments" if dialect.delimiter is None else ""


def _fields(found: Columns, sample: list[Record], selection: Selection) -> list[Field]:
    """Say what to read: both ends of a column of ids as one kind."""
    fields: dict[int, Field] = {}
    for source, destination, *names in zip(
        found.source, found.destination, found.source_names, found.destination_names, strict=True
    ):
        ends = (source, destination)
        kind = _kind(ends, sample) if selection.ids == "auto" else selection.ids
        for position, name in zip(ends, names, strict=True):
            if position not in fields or kind == "string":
                fields[position] = Field(position, str(name), kind)
    if found.weight is not None:
        fields[found.weight] = Field(found.weight, str(found.weight_name), "weight")
    return list(fields.values())


def _kind(ends: tuple[int, int], sample: list[Record]) -> str:
    """Tell integers from strings by majority, so that one malformed line cannot turn a column into the other kind.

    A leading zero speaks for strings: as integers 007 and 7 would be one vertex.
    """
    ids = [record.fields[end].strip() for record in sample for end in ends if end < len(record.fields)]
    integers = sum(bool(INTEGER.fullmatch(text)) and (text == "0" or text.lstrip("-")[0] != "0") for text in ids)
    return "integer" if 2 * integers > len(ids) or not ids else "string"
