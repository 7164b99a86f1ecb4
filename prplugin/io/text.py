"""Read CSV, TSV and SNAP text."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, islice

import pandas as pd
import pyarrow as pa

from prplugin.errors import InvalidEdgesError
from prplugin.io.blocks import COMMA_OR_SEMICOLON, Block, blocks
from prplugin.io.columns import INTEGER, NUMBER, Column, read_columns
from prplugin.io.selection import EdgeFile, Selection

SAMPLE = 100
"""Number of records in the sample that decides whether ids are integers."""

DELIMITERS = {"csv": COMMA_OR_SEMICOLON, "tsv": "\t", "snap": None}


def read(selection: Selection, compression: str | None, name: str) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    named = {*(selection.source or ()), *(selection.destination or ()), selection.weight} - {None}
    names, hint, text = _open(selection, compression, name, named, ("source", "destination", "weight"))
    found = selection.resolved(names, hint=hint if selection.header is None else "")

    first = next(text)
    sampled = list(islice(first.records(), SAMPLE))
    sample = first.part(0, sampled[-1][0] + len(sampled[-1][1])) if sampled else first
    fields = sample.table(len(names), sorted({*found.source, *found.destination}))
    columns: dict[int, Column] = {}
    for endpoints in zip(found.source, found.destination, strict=True):
        kind = _kind([fields[str(end)] for end in endpoints]) if selection.ids == "auto" else selection.ids
        for end in endpoints:
            if end not in columns or kind == "string":
                columns[end] = Column(end, names[end], kind, zeros=selection.ids == "integer")
    if found.weight is not None:
        columns[found.weight] = Column(found.weight, names[found.weight], "weight")
    return EdgeFile(read_columns(chain([first], text), len(names), list(columns.values())), found)


def read_values(selection: Selection, compression: str | None, name: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Read the columns named by `kinds` that a file has, each as its kind: ids, and non-negative values.

    Without a header, fields have the names of `kinds` in their order.
    """
    names, _, text = _open(selection, compression, name, set(kinds), tuple(kinds))
    columns = [Column(names.index(name), name, kind) for name, kind in kinds.items() if name in names]
    return read_columns(text, len(names), columns)


def _open(
    selection: Selection, compression: str | None, name: str, named: set[Hashable], known: Sequence[str]
) -> tuple[list[str], str, Iterator[Block]]:
    """Return the names of the fields, a hint for errors about a detected header, and one or more blocks of records.

    The first line is a header if it contains a name in `named`, or a field that is not a number. Without a header,
    fields have the names `known`.
    """
    text = blocks(selection.path, compression, selection.delimiter or DELIMITERS[name])
    found = next(((block, *record) for block in text for record in block.records()), None)
    if found is None:
        comments = " or comments" if name == "snap" else ""
        raise InvalidEdgesError(f"{selection.name} holds no edges or values: all its lines are empty{comments}.")
    first, start, record = found
    labels = first.labels(start, record)
    names, hint, has_header = [label.strip() for label in labels], "", selection.header
    if has_header is None:
        has_header = not named.isdisjoint(names) or not all(map(NUMBER.fullmatch, names))
    if has_header:
        hint = f" Line {first.line_at(start):,} was taken for a header: pass --no-header if it is an edge"
        if first.delimiter is not None and labels[0].startswith(("#", "%")):
            hint += ", or --format snap if it is a comment"
        elif len(labels) == 1:
            hint += ", or --delimiter if its fields are separated by something else"
        start += len(record)
        hint += "."
    else:
        fields, names = names, [f"column{number + 1}" for number in range(len(names))]
        names[: len(known)] = known[: len(names)]
        if names[2:3] == ["weight"] and not NUMBER.fullmatch(fields[2]):
            names[2] = "column3"

    def body() -> Iterator[Block]:
        following = chain([first.part(start)], text)
        # The first block is sampled, so it must contain records if the file does.
        yield next((block for block in following if any(block.records())), first.part(len(first.text)))
        yield from following

    return names, hint, body()


def _kind(endpoints: list[pa.ChunkedArray]) -> str:
    """Return the kind of ids by majority, so that one malformed line does not change the kind of a column.

    Ids with leading zeros count as strings, since the integers 007 and 7 would be one vertex.
    """
    ids = [text.decode(errors="replace").strip() for column in endpoints for text in column.to_pylist()]
    return "integer" if 2 * sum(bool(INTEGER.fullmatch(text)) for text in ids) > len(ids) or not ids else "string"
