"""CSV, TSV and SNAP text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from prplugin.errors import InvalidEdgesError
from prplugin.frames.columns import KNOWN_PAIRS
from prplugin.io.blocks import COMMA_OR_SEMICOLON, Block, blocks
from prplugin.io.columns import INTEGER, NUMBER, Column, read_columns
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["DELIMITERS", "read", "read_values"]

SAMPLE = 100
"""Number of records that decide whether ids are integers."""

DELIMITERS = {"csv": COMMA_OR_SEMICOLON, "tsv": "\t", "snap": None}
POSITIONAL = ("source", "destination", "weight")


class _Text(NamedTuple):
    """Text at its first record: its fields, the block that it is in, where it starts and ends, and further blocks."""

    labels: list[str]
    first: Block
    start: int
    end: int
    rest: Iterator[Block]

    def records(self, *, headed: bool) -> tuple[Block, Iterator[Block]]:
        """Return the first block that has records, after the header if there is one, and all blocks from it on."""
        body = chain([self.first.part(self.end if headed else self.start)], self.rest)
        first = next((block for block in body if any(block.records())), self.first.part(len(self.first.text)))
        return first, chain([first], body)


def read(selection: Selection, compression: str | None, name: str) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    text = _opened(selection, compression, name)
    named = {*(selection.source or ()), *(selection.destination or ()), selection.weight}
    headed = _is_header(text.labels, named, KNOWN_PAIRS) if selection.header is None else selection.header
    names = [label.strip() for label in text.labels] if headed else _by_position(text.labels, POSITIONAL)
    found = selection.resolved(names, hint=_hint(text) if headed and not selection.header else "")

    first, records = text.records(headed=headed)
    sample = first.table(len(names), sorted({*found.source, *found.destination})).slice(0, SAMPLE)
    columns: dict[int, Column] = {}
    for source, destination in zip(found.source, found.destination, strict=True):
        endpoints = (source, destination)
        kind = _kind([sample[str(end)] for end in endpoints]) if selection.ids == "auto" else selection.ids
        for end in endpoints:
            if end not in columns or kind == "string":
                columns[end] = Column(end, names[end], kind, zeros=selection.ids == "integer")
    if found.weight is not None:
        columns[found.weight] = Column(found.weight, names[found.weight], "weight")
    frame = read_columns(records, len(names), list(columns.values()))
    return EdgeFile(
        frame, found.source_names, found.destination_names, found.weight_name, unused_weight=found.unused_weight
    )


def read_values(selection: Selection, compression: str | None, name: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Read the columns named by `kinds` that a file has, each as its kind: ids, and non-negative values.

    Without a header, fields have the names of `kinds` in their order.
    """
    text = _opened(selection, compression, name)
    headed = _is_header(text.labels, set(kinds), ())
    names = [label.strip() for label in text.labels] if headed else _by_position(text.labels, tuple(kinds))
    columns = [Column(names.index(name), name, kind) for name, kind in kinds.items() if name in names]
    return read_columns(text.records(headed=headed)[1], len(names), columns)


def _opened(selection: Selection, compression: str | None, name: str) -> _Text:
    """Find the first record."""
    text = blocks(selection.path, compression, selection.delimiter or DELIMITERS[name])
    for block in text:
        for start, record in block.records():
            return _Text(block.labels(start, record), block, start, start + len(record), text)
    comments = " or comments" if name == "snap" else ""
    raise InvalidEdgesError(f"{selection.name} holds no edges or values: all its lines are empty{comments}.")


def _is_header(labels: list[str], named: set[Hashable], pairs: Iterable[Sequence[str]]) -> bool:
    """Return whether a first line names the columns: its names are known or asked for, or it is not all numbers."""
    names = {label.strip() for label in labels}
    if any(set(pair) <= names for pair in pairs) or names & (named - {None}):
        return True
    return not all(NUMBER.fullmatch(name) for name in names)


def _by_position(labels: list[str], known: Sequence[str]) -> list[str]:
    """Name the fields of text without a header."""
    names = [*known[: len(labels)], *(f"column{number + 1}" for number in range(len(known), len(labels)))]
    if len(names) >= 3 and names[2] == "weight" and not NUMBER.fullmatch(labels[2].strip()):
        names[2] = "column3"
    return names


def _hint(text: _Text) -> str:
    """Return what else the first line may be than a header."""
    hint = f" Line {text.first.line_at(text.start):,} was taken for a header: pass --no-header if it is an edge"
    if text.first.delimiter is not None and text.labels[0].startswith(("#", "%")):
        return f"{hint}, or --format snap if it is a comment."
    if len(text.labels) == 1:
        return f"{hint}, or --delimiter if its fields are separated by something else."
    return f"{hint}."


def _kind(endpoints: list[pa.ChunkedArray]) -> str:
    """Tell integers from strings by majority, so that one malformed line cannot turn a column into the other kind.

    A leading zero speaks for strings: as integers 007 and 7 would be one vertex.
    """
    ids = [text.decode(errors="replace").strip() for column in endpoints for text in column.to_pylist()]
    return "integer" if 2 * sum(bool(INTEGER.fullmatch(text)) for text in ids) > len(ids) or not ids else "string"
