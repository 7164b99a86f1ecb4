"""CSV, TSV and SNAP text."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa

from prplugin.errors import InvalidEdgesError
from prplugin.frames.columns import KNOWN_PAIRS, Columns
from prplugin.io.blocks import blocks
from prplugin.io.columns import INTEGER, NUMBER, Column, read_columns
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["read"]

SAMPLE = 100
"""Records by which it is told whether ids are integers."""

POSITIONAL = ("source", "destination", "weight")


def read(selection: Selection, compression: str | None, delimiter: str | None) -> EdgeFile:
    """Read fields between delimiters, or, without one, between spaces or tabs; see `prplugin.io.read_edges`."""
    text = blocks(selection.path, compression, delimiter)
    first, start, record = next(((block, *found) for block in text for found in block.records()), (None, 0, b""))
    if first is None:
        comments = " or comments" if delimiter is None else ""
        raise InvalidEdgesError(f"{selection.name} holds no edges: all its lines are empty{comments}.")
    labels = first.labels(start, record)
    headed = _is_header(labels, selection) if selection.header is None else selection.header
    names = [label.strip() for label in labels] if headed else _by_position(labels)
    hint = _hint(selection, labels, first.line_at(start), delimiter) if headed else ""
    found = selection.resolved(names, hint=hint)

    body = chain([first.part(start + len(record) if headed else start)], text)
    first = next((block for block in body if any(block.records())), first.part(len(first.text)))
    sample = first.table(len(names), sorted({*found.source, *found.destination})).slice(0, SAMPLE)
    frame = read_columns(chain([first], body), len(names), _columns(found, sample, selection))
    return EdgeFile(
        frame, found.source_names, found.destination_names, found.weight_name, unused_weight=found.unused_weight
    )


def _is_header(labels: list[str], selection: Selection) -> bool:
    """Return whether a first line names the columns: its names are known or asked for, or it is not all numbers."""
    names = {label.strip() for label in labels}
    if any(set(pair) <= names for pair in KNOWN_PAIRS) or names & selection.named:
        return True
    return not all(NUMBER.fullmatch(name) for name in names)


def _by_position(labels: list[str]) -> list[str]:
    names = list(POSITIONAL[: len(labels)])
    names += [f"column{number}" for number in range(len(names) + 1, len(labels) + 1)]
    if len(names) >= 3 and not NUMBER.fullmatch(labels[2].strip()):
        names[2] = "column3"
    return names


def _hint(selection: Selection, labels: list[str], line: int, delimiter: str | None) -> str:
    """Return what else the first line may be than a header; nothing if the user said that it is one."""
    if selection.header:
        return ""
    hint = f" Line {line:,} was taken for a header: pass --no-header if it is an edge"
    if delimiter is not None and labels[0].startswith(("#", "%")):
        return f"{hint}, or --format snap if it is a comment."
    if len(labels) == 1:
        return f"{hint}, or --format if its fields are divided by something else."
    return f"{hint}."


def _columns(found: Columns, sample: pa.Table, selection: Selection) -> list[Column]:
    """Return the columns to read: both endpoints of a column of ids as one kind."""
    columns: dict[int, Column] = {}
    for source, destination, *names in zip(
        found.source, found.destination, found.source_names, found.destination_names, strict=True
    ):
        endpoints = (source, destination)
        kind = _kind([sample[str(end)] for end in endpoints]) if selection.ids == "auto" else selection.ids
        for position, name in zip(endpoints, names, strict=True):
            if position not in columns or kind == "string":
                columns[position] = Column(position, str(name), kind, zeros=selection.ids == "integer")
    if found.weight is not None:
        columns[found.weight] = Column(found.weight, str(found.weight_name), "weight")
    return list(columns.values())


def _kind(endpoints: list[pa.ChunkedArray]) -> str:
    """Tell integers from strings by majority, so that one malformed line cannot turn a column into the other kind.

    A leading zero speaks for strings: as integers 007 and 7 would be one vertex.
    """
    ids = [text.decode(errors="replace").strip() for column in endpoints for text in column.to_pylist()]
    return "integer" if 2 * sum(bool(INTEGER.fullmatch(text)) for text in ids) > len(ids) or not ids else "string"
