"""Text in blocks of whole records, which know their line in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import csv

from prplugin.errors import InvalidEdgesError, counted
from prplugin.io.content import pieces
from prplugin.io.formats import described

__all__ = ["Block", "blocks"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGIC = {
    b"\x1f\x8b": "compressed with gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: let its name end in .zst",
    b"PAR1": "Parquet: pass --format parquet",
    b"\xff\xfe": "UTF-16: convert it to UTF-8",
    b"\xfe\xff": "UTF-16: convert it to UTF-8",
}
"""First bytes of files that are not the text that they were taken for."""

LONGEST_RECORD = 64 << 20
"""Bytes after which the end of a record is no longer looked for."""

BLANKS = bytes.maketrans(b"\t\v\f\r", b"   \n")
UNBALANCED_QUOTES = "its quotes do not go together."


@dataclass(frozen=True)
class Block:
    """Whole records of a text file.

    `name`: what messages call the file.
    `delimiter`: None: runs of spaces and tabs; no quotes, and lines that begin with # or % are comments.
    `line`: the number of its first line in the file, from 1.
    `lines`: the text with spaces for the line ends within quotes.
    """

    name: str
    delimiter: str | None
    line: int
    text: bytes
    lines: bytes

    def part(self, start: int, end: int | None = None) -> Block:
        """Return the records from one position of the text up to another."""
        text = self.text[start:end]
        lines = text if self.lines is self.text else self.lines[start:end]
        return replace(self, line=self.line_at(start), text=text, lines=lines)

    def line_at(self, position: int) -> int:
        """Return the number of the line at a position of the text."""
        return self.line + (self.text.count(b"\n", 0, position) or self.text.count(b"\r", 0, position))

    def fault(self, position: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about the line at a position of the text."""
        raise InvalidEdgesError(f"{self.name}, line {self.line_at(position):,}: {what}")

    def fault_of(self, row: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about a record, counted from 0."""
        self.fault(next(islice(self.records(), row, None))[0], what)

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the start and the text of each record, without empty lines and comments."""
        start = 0
        for line in self.lines.splitlines(keepends=True):
            bare = line.strip() if self.delimiter is None else line.strip(b"\r\n")
            if bare and not (self.delimiter is None and bare[:1] in b"#%"):
                yield start, self.text[start : start + len(line)]
            start += len(line)

    def labels(self, start: int, record: bytes) -> list[str]:
        """Return the fields of a record as text."""
        try:
            names: list[str] = self.part(start, start + len(record))._parsed(None, {}).column_names
        except UnicodeDecodeError as error:
            self.fault(start, f"it is not UTF-8 text ({error.reason}). Convert the file to UTF-8.")
        return names

    def table(self, width: int, columns: list[int]) -> pa.Table:
        """Parse some fields of every record as bytes; columns are named by their position.

        Raises InvalidEdgesError: for the first record that has not `width` fields.
        """
        names = [str(position) for position in range(width)]
        try:
            return self._parsed(names, {str(position): pa.binary() for position in columns})
        except pa.ArrowInvalid as error:
            ragged = re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", str(error))
            if ragged is None:
                self.fault(0, f"the text from here on cannot be parsed: {error}.")
            start, record = next(islice(self.records(), int(ragged[1]) - 1, None))
            shown = record[:60].decode(errors="backslashreplace").replace(self.delimiter or " ", " ").strip()
            self.fault(start, f"it has {counted(int(ragged[2]), 'field')} where the first has {width}: {shown!r}.")

    def _parsed(self, names: list[str] | None, types: dict[str, pa.DataType]) -> pa.Table:
        """Parse the columns that have a type; without names the first record has them."""
        text = self.text if self.delimiter is not None else _evened(self.text)
        if not text.strip(b"\r\n"):  # which pyarrow refuses
            return pa.schema(types).empty_table()
        return csv.read_csv(
            pa.BufferReader(text),
            # One block, for a record of any length; one thread, which counts rows.
            csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
            csv.ParseOptions(
                delimiter=self.delimiter or " ",
                quote_char=False if self.delimiter is None else '"',
                newlines_in_values=self.lines != self.text,
            ),
            # Nothing is inferred, and no text is null.
            csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
        )


def _evened(text: bytes) -> bytes:
    """Put one space between fields and nothing around them, and leave out comments."""
    text = text.translate(BLANKS)
    if b"  " in text:
        text = re.sub(rb"  +", b" ", text)
    text = text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    if b"#" in text or b"%" in text:
        text = re.sub(rb"(?m)^[#%].*\n?", b"", text)
    return text


def _without_quoted_line_ends(block: Block) -> bytes:
    """Return the text of a block with spaces for the line ends within quotes; refuse text after a closing quote."""
    text = np.frombuffer(block.text + b"\n", np.uint8)
    between = np.zeros(256, bool)
    between[list(f"{block.delimiter}\n\r".encode())] = True

    # Within a run of quotes each pair is an escaped quote, so only runs of odd length open or close a field. At the
    # beginning of a field such a run does either; elsewhere it closes the field, or is a character of one without
    # quotes. So text is quoted after an odd number of the former since the last of the latter.
    quotes = np.flatnonzero(text == ord('"'))
    first = np.diff(quotes, prepend=-2) > 1
    begins, ends = quotes[first], quotes[np.append(first[1:], True)] + 1
    odd = ((ends - begins) & 1).astype(bool)
    begins_field = between[text[begins - 1]]
    either = np.cumsum(odd & begins_field)
    quoted_after = ((either - np.maximum.accumulate(either * (odd & ~begins_field))) & 1).astype(bool)
    quoted_before = np.append(False, quoted_after[:-1])

    stray = np.flatnonzero(~quoted_after & (quoted_before | begins_field) & ~between[text[ends]])
    if stray.size:
        opened = np.flatnonzero(~quoted_before[: stray[0] + 1])[-1]
        block.fault(begins[opened], UNBALANCED_QUOTES)

    line_ends = np.flatnonzero((text == ord("\n")) | (text == ord("\r")))[:-1]
    quoted = np.append(quoted_after, False)[np.searchsorted(begins, line_ends) - 1]  # before the first run: at -1
    lines = text[:-1].copy()
    lines[line_ends[quoted]] = ord(" ")
    return lines.tobytes()


def blocks(path: str, compression: str | None, delimiter: str | None) -> Iterator[Block]:
    """Read a file of text in blocks of whole records.

    Raises InvalidEdgesError: if it is empty, damaged or not text, or its quotes do not go together.
    Raises OSError: if it cannot be opened.
    """
    name = described(path)
    rest = None
    for piece in chain(pieces(path, compression), [b"\n"]):
        if rest is None:
            for magic, what in MAGIC.items():
                if piece.startswith(magic):
                    raise InvalidEdgesError(f"{name} is not text but {what}.")
        line, text = (1, piece.removeprefix(BYTE_ORDER_MARK)) if rest is None else (rest.line, rest.text + piece)
        block = Block(name, delimiter, line, text, lines=text)
        if (position := text.find(b"\0")) >= 0:
            block.fault(position, "it has a zero byte, so this is no text file. --format says what it is.")
        if delimiter is not None and b'"' in text:
            block = replace(block, lines=_without_quoted_line_ends(block))
        end = block.lines.rfind(b"\n") + 1
        if end:
            yield block.part(0, end)
        elif len(text) > LONGEST_RECORD:
            block.fault(
                0, f"it does not end within {LONGEST_RECORD:,} bytes: a line end, or a closing quote, is missing."
            )
        rest = block.part(end)
    if rest is not None and rest.text:
        rest.fault(0, UNBALANCED_QUOTES)
