"""Read columns of ids and weights from CSV, TSV and SNAP text, with strict syntax of numbers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import reduce
from itertools import chain, islice
from typing import NamedTuple, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, counted, printable
from prplugin.frames import device_files
from prplugin.io.comments import Comments
from prplugin.io.selection import RANKS, EdgeFile, Selection, missing_endpoints
from prplugin.io.text_blocks import COMMA_OR_SEMICOLON, WORKING_BYTES, Block, blocks, check_memory, first_record
from prplugin.options import Missing
from prplugin.types.array_module import Booleans

SAMPLE = 100  # number of records in the sample that decides what the columns are
DELIMITERS = {"csv": COMMA_OR_SEMICOLON, "tsv": "\t", "delimited": "\t" + COMMA_OR_SEMICOLON, "snap": None}
SNAP_COMMENTS = "#%"

TIMES = 3e8, 4e9
"""Range of Unix times in seconds, 1979 to 2096, which are no weights; also in milli-, micro- and nanoseconds."""

logger = logging.getLogger(__name__)


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read the columns of the edges; see `prplugin.io.read_edges`."""
    device_files.log_fallback(selection.name, "cuDF does not check text as strictly")
    table = _open(selection, compression, lambda names: not _all_numbers(names))
    names = table.names if table.has_header else _names(selection, table)
    found, sample = selection.resolved(names, hint=table.hint), table.sample()
    width, nulls, columns = len(table.names), frozenset(selection.null), dict[int, TextColumn]()
    labels = dict(zip(found.source + found.destination, found.source_names + found.destination_names, strict=True))
    for number, endpoints in enumerate(zip(found.source, found.destination, strict=True)):
        auto = selection.ids == "auto"
        kind = _kind([sample[end] for end in endpoints], nulls) if auto else selection.ids
        for end in endpoints:
            if end not in columns or kind == "string":
                columns[end] = TextColumn(
                    end, str(labels[end]), kind, nulls=nulls, zeros=not auto, whole=not auto,
                    compared=number if auto and kind == "string" else None,
                )  # fmt: skip
    if found.weight is not None:
        columns[found.weight] = TextColumn(found.weight, str(found.weight_name), "weight", nulls=nulls)
    if found.time is not None:
        columns[found.time] = TextColumn(found.time, str(found.time_name), "string", nulls=nulls)
    said, bipartite = table.comments.undirected()
    frame, dropped = read_columns(
        table.blocks, width, [*columns.values()], endpoints=sorted({*found.source, *found.destination}),
        missing=selection.missing,
    )  # fmt: skip
    notes = [selection.columns_read(found, table.names if table.has_header else None, width)]
    notes += [f"the file says that it is {'bipartite' if bipartite else 'undirected'}: {said!r}"] if said else []
    notes += [f"{counted(selection.skip, 'line')} skipped"] if selection.skip else []
    notes += [f"{counted(table.comments.count, 'comment')} skipped"] if table.comments.count else []
    if blanks := sum(column.blanks for column in columns.values()):
        notes.append(f"blanks around {counted(blanks, 'id')} removed")
    logger.info("%s: %s", printable(selection.name), "; ".join(notes))
    frame = selection.with_times(frame, found)
    return EdgeFile(frame, found, directed=not said, bipartite=bipartite, dropped=dropped, notes=tuple(notes))


def read_values(selection: Selection, compression: str | None, kinds: dict[str, str]) -> pd.DataFrame:
    """Read the columns named by `kinds` that a file has, each as its kind: ids, and non-negative values.

    Without a header, fields have the names of `kinds` in their order.
    """

    def is_header(names: list[str]) -> bool:
        """Return whether the first record has known names, or neither vertices nor values."""
        words = not any(map(NUMBER.fullmatch, names)) and (len(names) > 1 or next(iter(kinds.values())) == "integer")
        return not {*kinds, RANKS}.isdisjoint(names) or words

    table = _open(selection, compression, is_header)
    names = table.names if table.has_header else [*kinds, *table.names][: len(table.names)]
    found = selection.values_by_name(names, kinds)
    columns = [TextColumn(names.index(str(label)), name, kinds[name]) for name, label in found.items()]
    return read_columns(table.blocks, len(names), columns)[0]


class _Table(NamedTuple):
    """A file whose first records have been read.

    `names`: Fields of the first record, without blanks around them.
    `hint`: For errors about columns, if the first record was taken for a header without being told.
    `first`: The first records below a header.
    `blocks`: All records below a header, in one or more blocks.
    """

    names: list[str]
    has_header: bool
    hint: str
    comments: Comments
    first: Block
    blocks: Iterator[Block]

    def sample(self) -> list[list[str]]:
        """Return the fields of the first records, by column."""
        fields = self.first.table(len(self.names), [*range(len(self.names))])
        return [[text.decode(errors="replace").strip() for text in column.to_pylist()] for column in fields.columns]


def _open(selection: Selection, compression: str | None, is_header: Callable[[list[str]], bool]) -> _Table:
    """Open a file; `is_header` decides by the fields of the first record unless the selection does."""
    is_snap, given = selection.format == "snap", selection.delimiter
    delimiter = given or DELIMITERS[selection.format]
    marks = selection.comment if selection.comment is not None else SNAP_COMMENTS * is_snap
    comments = Comments(marks, anywhere=selection.comment is not None, delimiter=delimiter)
    text = blocks(selection.path, compression, delimiter, comments, selection.skip)
    if (found := first_record(text)) is None:
        also = [*["comments"] * bool(marks), *["skipped"] * bool(selection.skip)]
        raise InvalidEdgesError(
            f"{selection.name} holds no edges or values: all its lines are {' or '.join(['empty', *also])}."
        )
    first, start, record = found
    names = [label.strip() for label in first.labels(start, record)]
    has_header, hint = is_header(names) if selection.header is None else selection.header, ""
    if has_header and selection.header is None:
        hint = f" Line {first.line_at(start):,} was taken for a header: pass header=False if it is an edge"
        if names[0][:1] in ("#", "%") and selection.comment is None:
            hint += f", comment={names[0][0]!r} if it is a comment"
        if len(names) == 1:
            hint += ", delimiter=';', or another, if that separates its fields"
        hint += f", or skip={first.line_at(start)} if the header is below it."
    elif len(names) == 1:
        hint = " Its lines have one field: if something else separates fields, pass it, as delimiter=';'."
    following = chain([first.part(start + len(record) * has_header)], text)
    # The first block is sampled, so it must contain records if the file does.
    head = next((block for block in following if any(block.records())), first.part(len(first.text)))
    sampled = list(islice(head.records(), SAMPLE))
    few = head.part(0, sampled[-1][0] + len(sampled[-1][1])) if sampled else head
    return _Table(names, has_header, hint, comments, few, chain([head], following))


def _all_numbers(texts: list[str]) -> bool:
    return all(map(NUMBER.fullmatch, texts))


def _names(selection: Selection, table: _Table) -> list[str]:
    """Return the names of the columns of a file without a header; raise if its ends are not certain."""
    width = len(table.names)
    names = [f"column{number + 1}" for number in range(width)]
    ends = [*(selection.source or ()), *(selection.destination or ())]
    chosen = {selection.position(end) for end in ends} - {None}
    known = {0: "source", 1: "destination"}
    absent = {"", *selection.null}
    for position, texts in enumerate(table.sample()[2:], 2):
        texts = [text for text in texts if text not in absent]  # noqa: PLW2901
        if not _all_numbers(texts):
            if not ends:
                other = next(text for text in texts if not NUMBER.fullmatch(text))
                raise ColumnNotFoundError(
                    f"{selection.name} has no header and {width} columns, so its ends are not certain: column "
                    f"{position + 1} has {other[:60]!r}, which is no weight. Name the two columns by their positions, "
                    f"as source=1, destination=2, or source=1, destination=3."
                )
        elif position == 2:
            known[2] = "time" if _are_times(texts) else "weight"
    return [known.get(place, name) if place not in chosen else name for place, name in enumerate(names)]


def _are_times(texts: list[str]) -> bool:
    """Return whether all numbers are in the range of `TIMES`, in one unit."""
    values = np.array(texts, np.float64)
    return bool(values.size) and any(
        bool(np.all((values >= TIMES[0] * unit) & (values < TIMES[1] * unit))) for unit in (1, 1e3, 1e6, 1e9)
    )


def _kind(endpoints: list[list[str]], nulls: Collection[str]) -> str:
    """Return the kind of ids by majority, so that one malformed line does not change the kind of a column.

    Ids with leading zeros count as strings, since the integers 007 and 7 would be one vertex.
    """
    ids = [text for column in endpoints for text in column if text and text not in nulls]
    return "integer" if 2 * sum(bool(INTEGER.fullmatch(text)) for text in ids) > len(ids) or not ids else "string"


# --- columns ----------------------------------------------------------------------------------------------------------

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
LEAST, MOST = -(2**63), 2**64 - 1
TINY = np.finfo(np.float64).tiny

WHOLE = r"^(?:\+?([0-9]+)|(-[0-9]+))(?:\.0*)?$"
"""Integers as spreadsheets, pandas and C++ may write them: 7.0, +7, 007 and -0. The groups have the digits."""

OTHER_FORM = r"^(?:[-+]?[0-9]+\.0*|\+[0-9]+|-0+|[-+]?[0-9]*\.?[0-9]*[eE][-+]?[0-9]{1,2})$"
"""Numbers that may be an integer in another form than its digits; 007 is a string."""

NULLS = re.compile(r"\\N|NULL|NA|N/A|NaN|None|-", re.IGNORECASE)
"""Texts that probably stand for a missing value. Error messages suggest them; they are never selected."""

GRAPH_BYTES = 24
"""Lower bound of the bytes per edge to build the graph, besides the frame: see `prplugin.methods.estimates`."""


@dataclass(eq=False)
class TextColumn:
    """A column to read, and its values so far.

    `position`: Position of the field in a record, from 0.
    `kind`: "integer", "string" or "weight".
    `nulls`: Texts that stand for a missing value.
    `zeros`: Whether integers may have leading zeros.
    `whole`: Whether integers may have the forms of `WHOLE`.
    `largest`: Largest permitted id, if ids are limited to 1, 2, ..., `largest`.
    `compared`: Which strings must not be two forms of one integer: those of all columns with this number. Or None.
    `parts`: Values of each block.
    `blanks`: Number of strings with blanks around them, which are removed.
    `others`: Values in `OTHER_FORM`.
    """

    position: int
    name: str
    kind: str
    nulls: frozenset[str] = frozenset()
    zeros: bool = False
    whole: bool = False
    largest: int | None = None
    compared: int | None = None
    parts: list[pa.Array] = field(default_factory=list)
    blanks: int = 0
    others: list[pa.Array] = field(default_factory=list)

    def append(self, text: pa.Array) -> None:
        """Convert and append values; raise pyarrow.ArrowInvalid if one is invalid: see `describe_fault`."""
        text = text.cast(pa.string())  # raises unless the text is UTF-8
        bare = pc.ascii_trim(text, " \t")
        if self.kind == "string":
            if pc.sum(pc.binary_length(bare)) != pc.sum(pc.binary_length(text)):
                self.blanks += pc.sum(pc.not_equal(bare, text)).as_py()
            text = values = bare
            suspect = pc.equal(pc.utf8_trim_whitespace(text), "")
            if self.compared is not None and (possible := _may_be_numbers(text)).any():
                numbers = text.filter(pa.array(possible))
                self.others.append(numbers.filter(pc.match_substring_regex(numbers, OTHER_FORM)).unique())
        elif self.kind == "weight":
            text = bare
            values = text.cast(pa.float64())
            suspect = pc.invert(pc.and_(pc.greater_equal(values, TINY), pc.less(values, np.inf)))
        else:
            text = pc.replace_substring_regex(bare, WHOLE, r"\1\2") if self.whole else bare
            try:
                values = text.cast(pa.int64())
            except pa.ArrowInvalid:
                values = text.cast(pa.uint64())
            suspect = pc.not_equal(values.cast(pa.string()), text)  # pyarrow reads 0x1f as 31, and 007 as 7
            if self.largest is not None:
                suspect = pc.or_(suspect, pc.or_(pc.less(values, 1), pc.greater(values, self.largest)))
        if self.nulls:
            suspect = pc.or_(suspect, pc.is_in(bare, pa.array(self.nulls, pa.string())))
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
        if text in self.nulls:
            return f"{cell}, which stands for a missing value."
        if self.kind == "integer":
            return self._describe_integer(cell, text)
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

    def _describe_integer(self, cell: str, text: str) -> str:
        found = re.fullmatch(WHOLE, text)
        if found and self.whole:
            text = found[1] or found[2]
        if not re.fullmatch("-?[0-9]+", text):
            if found:
                return (
                    f"{cell}, and ids are integers without a sign + or a point. Pass ids='integer' to read it as one."
                )
            remedy = "Correct it, or pass ids='string'."
            if NULLS.fullmatch(text):
                remedy = f"If it stands for a missing id, pass null={text!r}, and missing='drop' to drop such rows."
            elif text[0] in "#%":
                remedy = f"If its line is a comment, pass comment={text[0]!r}; else correct it, or pass ids='string'."
            return f"{cell}, which is no integer, though the ids are. {remedy}"
        if not (self.zeros or INTEGER.fullmatch(text)):
            if not text.strip("-0"):
                return f"{cell}, which is 0 in another form. Pass ids='integer' to read it as 0."
            return (
                f"{cell}, and an integer has no leading zeros. Pass ids='string' to keep them, or ids='integer' to "
                "drop them."
            )
        if len(text) > 4000 or not LEAST <= int(text) <= MOST:
            return f"{cell}, which no 64-bit integer holds. Pass ids='string'."
        if self.largest is not None and not 1 <= int(text) <= self.largest:
            return f"{cell}, but the size line allows 1 to {self.largest}."
        return ""


def read_columns(
    blocks: Iterable[Block], width: int, columns: list[TextColumn], check: Callable[[Block], None] | None = None, *,
    endpoints: Sequence[int] = (), missing: Missing = "error",
) -> tuple[pd.DataFrame, int]:  # fmt: skip
    """Read some of the `width` fields of every record; raise for the first invalid one, with its line number.

    `check` is called after each block, and raises for an invalid record. Integers are int64, or uint64 if they need it;
    weights are float64. If `missing` is "drop", records with an empty field at the positions `endpoints`, or one of
    the column's `nulls`, are dropped; also return their number. Otherwise an error about one of them counts them all.
    """
    rows, dropped, name = 0, 0, ""
    blocks = iter(blocks)
    nulls = columns[0].nulls
    for block in blocks:
        name, table = block.name, block.table(width, [column.position for column in columns])
        absent = _absent(table, endpoints, nulls) if missing == "drop" else None
        try:
            kept = table if absent is None else table.filter(pc.invert(absent))
            dropped += len(table) - len(kept)
            for column in columns:
                column.append(kept[str(column.position)].combine_chunks())
        except pa.ArrowInvalid as error:
            absent = _absent(table, endpoints, nulls)
            for row, values in enumerate(zip(*(table[str(c.position)].to_pylist() for c in columns), strict=True)):
                lacking = absent is not None and absent[row].as_py()
                if lacking and missing == "drop":
                    continue
                faults = (column.describe_fault(value) for column, value in zip(columns, values, strict=True))
                if fault := next(filter(None, faults), ""):
                    if lacking:
                        rest = (_absent(later.table(width, list(endpoints)), endpoints, nulls) for later in blocks)
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
            "Convert the file to Parquet, which is read one row group at a time.",
        )
    for number in {column.compared for column in columns} - {None}:
        _refuse_two_forms(name, [column for column in columns if column.compared == number])
    unsigned = any(part.type == pa.uint64() for column in columns for part in column.parts)
    try:
        read = {column.name: column.pop_values(pa.uint64() if unsigned else pa.int64()) for column in columns}
    except pa.ArrowInvalid as error:
        raise InvalidEdgesError(
            f"{name}: no integer type holds negative ids and those past 2**63: pass ids='string'."
        ) from error
    return pd.DataFrame(read, copy=False), dropped


def _absent(table: pa.Table, endpoints: Sequence[int], nulls: Collection[str]) -> pa.ChunkedArray | None:
    """Return which records have an empty or missing field at the positions `endpoints`; None if there are none."""
    pattern = rf"^\s*(?:{'|'.join(map(re.escape, ['', *nulls]))})\s*$"
    blank = [pc.match_substring_regex(table[str(position)], pattern) for position in endpoints]
    absent = reduce(pc.or_, blank) if blank else None
    return absent if absent is not None and pc.any(absent).as_py() else None


def _may_be_numbers(text: pa.StringArray) -> Booleans:
    """Return whether each string may begin with a digit, a sign or a point."""
    _, offsets, data = text.buffers()
    if not data:
        return np.zeros(len(text), bool)
    starts = np.frombuffer(offsets, np.int32, len(text), 4 * text.offset)
    return np.frombuffer(data, np.uint8).take(starts, mode="clip") - np.uint8(ord("+")) <= ord("9") - ord("+")


def _refuse_two_forms(name: str, columns: list[TextColumn]) -> None:
    """Raise if columns of strings have two forms of one integer, such as 2 and 2.0, which would be two vertices."""
    forms: dict[str, str] = {}
    for text in dict.fromkeys(text for column in columns for part in column.others for text in part.to_pylist()):
        if NUMBER.fullmatch(text) and (value := Decimal(text)) == value.to_integral_value():
            other = forms.setdefault(str(int(value)), text)
            if other != text:
                _refuse_form(name, other, text, int(value))
    if forms:
        digits = pa.array(forms, pa.string())
        for part in (part for column in columns for part in column.parts):
            if len(found := part.filter(pc.is_in(part, digits))):
                _refuse_form(name, found[0].as_py(), forms[found[0].as_py()], int(found[0].as_py()))


def _refuse_form(name: str, text: str, other: str, value: int) -> NoReturn:
    raise InvalidEdgesError(
        f"{name}: the ids {text!r} and {other!r} are one integer and would be two vertices. Pass ids='integer' to read "
        f"both as {value}, if all ids are integers, or ids='string' if they are different vertices."
    )
