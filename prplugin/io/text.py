"""Read columns of ids and weights from CSV, TSV and SNAP text, with strict syntax of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import reduce
from itertools import chain, islice

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from prplugin.errors import InvalidEdgesError
from prplugin.frames import device_files
from prplugin.io.blocks import COMMA_OR_SEMICOLON, WORKING_BYTES, Block, blocks, check_memory, first_record
from prplugin.io.selection import EdgeFile, Missing, Selection, missing_endpoints

SAMPLE = 100  # number of records in the sample that decides whether ids are integers
DELIMITERS = {"csv": COMMA_OR_SEMICOLON, "tsv": "\t", "delimited": "\t" + COMMA_OR_SEMICOLON, "snap": None}


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    device_files.log_fallback(selection.name, "cuDF does not check text as strictly")
    named = {*(selection.source or ()), *(selection.destination or ()), selection.weight} - {None}
    names, hint, text = _open(selection, compression, named, ("source", "destination", "weight"))
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
    ends = sorted({*found.source, *found.destination})
    frame, dropped = read_columns(
        chain([first], text), len(names), list(columns.values()), endpoints=ends, missing=selection.missing
    )
    return EdgeFile(frame, found, dropped=dropped)


def read_values(selection: Selection, compression: str | None, kinds: dict[str, str]) -> pd.DataFrame:
    """Read the columns named by `kinds` that a file has, each as its kind: ids, and non-negative values.

    Without a header, fields have the names of `kinds` in their order.
    """
    names, _, text = _open(selection, compression, set(kinds), tuple(kinds))
    selection.require_values(names, list(kinds))
    columns = [Column(names.index(name), name, kind) for name, kind in kinds.items() if name in names]
    return read_columns(text, len(names), columns)[0]


def _open(
    selection: Selection, compression: str | None, named: set[Hashable], known: Sequence[str]
) -> tuple[list[str], str, Iterator[Block]]:
    """Return the names of the fields, a hint for errors about a detected header, and one or more blocks of records.

    The first line is a header if it contains a name in `named`, or a field that is not a number. Without a header,
    fields have the names `known`.
    """
    text = blocks(selection.path, compression, selection.delimiter or DELIMITERS[selection.format])
    if (found := first_record(text)) is None:
        comments = " or comments" if selection.format == "snap" else ""
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
    texts = (text.decode(errors="replace").strip() for column in endpoints for text in column.to_pylist())
    ids = [text for text in texts if text]
    return "integer" if 2 * sum(bool(INTEGER.fullmatch(text)) for text in ids) > len(ids) or not ids else "string"


# --- columns ----------------------------------------------------------------------------------------------------------

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
LEAST, MOST = -(2**63), 2**64 - 1
TINY = np.finfo(np.float64).tiny

GRAPH_BYTES = 24
"""Lower bound of the bytes per edge to build the graph, besides the frame: see `prplugin.methods.estimates`."""


@dataclass
class Column:
    """A column to read, and its values so far.

    `position`: Position of the field in a record, from 0.
    `kind`: "integer", "string" or "weight".
    `zeros`: Whether integers may have leading zeros.
    `largest`: Largest permitted id, if ids are limited to 1, 2, ..., `largest`.
    `parts`: Values of each block.
    """

    position: int
    name: str
    kind: str
    zeros: bool = False
    largest: int | None = None
    parts: list[pa.Array] = field(default_factory=list)

    def append(self, text: pa.Array) -> None:
        """Convert and append values; raise pyarrow.ArrowInvalid if one is invalid: see `describe_fault`."""
        text = text.cast(pa.string())  # raises unless the text is UTF-8
        if self.kind == "string":
            values, suspect = text, pc.equal(pc.utf8_trim_whitespace(text), "")
        else:
            text = pc.ascii_trim(text, " \t")
            if self.kind == "weight":
                values = text.cast(pa.float64())
                suspect = pc.invert(pc.and_(pc.greater_equal(values, TINY), pc.less(values, np.inf)))
            else:
                try:
                    values = text.cast(pa.int64())
                except pa.ArrowInvalid:
                    values = text.cast(pa.uint64())
                suspect = pc.not_equal(values.cast(pa.string()), text)  # pyarrow reads 0x1f as 31, and 007 as 7
                if self.largest is not None:
                    suspect = pc.or_(suspect, pc.or_(pc.less(values, 1), pc.greater(values, self.largest)))
        if any(map(self.describe_fault, text.filter(suspect).unique().to_pylist())):
            raise pa.ArrowInvalid(f"column {self.name!r}")
        self.parts.append(values)

    def pop_values(self, integer: pa.DataType) -> pd.Series:
        """Return all values, and remove them from the column."""
        dtype = {"string": pa.string(), "weight": pa.float64(), "integer": integer}[self.kind]
        parts, self.parts = [part.cast(dtype) for part in self.parts], []
        return pa.chunked_array(parts, dtype).to_pandas()

    def describe_fault(self, raw: bytes | str) -> str:
        """Return a description of the fault of a value; empty for a valid value."""
        try:
            text = raw if isinstance(raw, str) else raw.decode()
        except UnicodeDecodeError:
            return f"column {self.name!r} has {raw[:60]!r}, which is not UTF-8 text. Convert the file to UTF-8."
        if not text.strip():
            return f"column {self.name!r} is empty."
        cell = f"column {self.name!r} has {(text if len(text) <= 60 else text[:60] + '...')!r}"
        text = text.strip(" \t")
        if self.kind == "integer":
            if not re.fullmatch("-?[0-9]+", text):
                return f"{cell}, which is no integer, though the ids are. Correct it, or pass --ids string."
            if not (self.zeros or INTEGER.fullmatch(text)):
                return f"{cell}, and an integer has no leading zeros. Pass --ids string, or --ids integer to drop them."
            if len(text) > 4000 or not LEAST <= int(text) <= MOST:
                return f"{cell}, which no 64-bit integer holds. Pass --ids string."
            if self.largest is not None and not 1 <= int(text) <= self.largest:
                return f"{cell}, but the size line allows 1 to {self.largest}."
        if self.kind == "weight":
            if not NUMBER.fullmatch(text):
                return f"{cell}, which is no finite number."
            value, nonzero = float(text), re.search("[1-9]", re.split("[eE]", text)[0])
            if text[0] == "-" and nonzero:
                return f"{cell}, which is below 0. Values must be at least 0."
            if value == np.inf:
                return f"{cell}, which is past the range of float64. Scale the column."
            # The error bound allows for a relative error of 2**-53, which a denormal float64 may exceed.
            if nonzero and value < TINY and Decimal(text, Context(traps=[])) != Decimal(value):
                return f"{cell}, which is too near to 0 for float64. Scale the column, or drop the edge."
        return ""


def read_columns(
    blocks: Iterable[Block], width: int, columns: list[Column], check: Callable[[Block], None] | None = None, *,
    endpoints: Sequence[int] = (), missing: Missing = "error",
) -> tuple[pd.DataFrame, int]:  # fmt: skip
    """Read some of the `width` fields of every record; raise for the first invalid one, with its line number.

    `check` is called after each block, and raises for an invalid record. Integers are int64, or uint64 if they need it;
    weights are float64. If `missing` is "drop", records with an empty field at the positions `endpoints` are dropped;
    also return their number. Otherwise an error about one of them counts them all.
    """
    rows, dropped, name = 0, 0, ""
    blocks = iter(blocks)
    for block in blocks:
        name, table = block.name, block.table(width, [column.position for column in columns])
        absent = _absent(table, endpoints) if missing == "drop" else None
        try:
            kept = table if absent is None else table.filter(pc.invert(absent))
            dropped += len(table) - len(kept)
            for column in columns:
                column.append(kept[str(column.position)].combine_chunks())
        except pa.ArrowInvalid as error:
            absent = _absent(table, endpoints)
            for row, values in enumerate(zip(*(table[str(c.position)].to_pylist() for c in columns), strict=True)):
                lacking = absent is not None and absent[row].as_py()
                if lacking and missing == "drop":
                    continue
                faults = (column.describe_fault(value) for column, value in zip(columns, values, strict=True))
                if fault := next(filter(None, faults), ""):
                    if lacking:
                        rest = (_absent(later.table(width, list(endpoints)), endpoints) for later in blocks)
                        count = sum(pc.sum(part).as_py() for part in (absent, *rest) if part is not None)
                        fault = f"{fault} In all, {missing_endpoints(count)}"
                    block.fault_of(row, fault)
            block.fault(0, f"the text from here on cannot be converted: {error}.")
        if check is not None:
            check(block)
        rows += len(kept)
        # Remaining allocations: the copy of a column, and the graph.
        largest = max(sum(int(part.nbytes) for part in column.parts) for column in columns)
        check_memory(
            WORKING_BYTES + max(largest, GRAPH_BYTES * rows),
            f"{name}, line {block.line:,}: {rows:,} edges have been read",
            "Convert the file to Parquet: prplugin.pagerank(path) reads that one row group at a time.",
        )
    unsigned = any(part.type == pa.uint64() for column in columns for part in column.parts)
    try:
        read = {column.name: column.pop_values(pa.uint64() if unsigned else pa.int64()) for column in columns}
    except pa.ArrowInvalid as error:
        raise InvalidEdgesError(
            f"{name}: no integer type holds negative ids and those past 2**63: pass --ids string."
        ) from error
    return pd.DataFrame(read, copy=False), dropped


def _absent(table: pa.Table, endpoints: Sequence[int]) -> pa.ChunkedArray | None:
    """Return which records have an empty or blank field at the positions `endpoints`; None if there are none."""
    blank = [pc.match_substring_regex(table[str(position)], r"^\s*$") for position in endpoints]
    absent = reduce(pc.or_, blank) if blank else None
    return absent if absent is not None and pc.any(absent).as_py() else None
