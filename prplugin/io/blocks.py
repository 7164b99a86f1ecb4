"""Text in blocks of whole records, which know their line in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NoReturn

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

CHUNK_BYTES = 1 << 20
"""Bytes that one thread parses at a time."""

BLANKS = bytes.maketrans(b"\t\v\f\r", b"    ")


@dataclass(frozen=True)
class Block:
    """Whole records of a text file.

    `name`: What messages call the file.
    `delimiter` (str or None): None: runs of spaces and tabs; no quotes, and lines that begin with # or % are comments.
    `line`: The number of its first line in the file, from 1.
    `text`: bytes.
    """

    name: str
    delimiter: str | None
    line: int
    text: bytes

    def after(self, end: int) -> Block:
        """Return the block without its first `end` bytes."""
        return Block(self.name, self.delimiter, self.line_at(end), self.text[end:])

    def line_at(self, position: int) -> int:
        """Return the number of the line at a position of the text."""
        return self.line + (self.text.count(b"\n", 0, position) or self.text.count(b"\r", 0, position))

    def fault(self, position: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about the line at a position of the text."""
        raise InvalidEdgesError(f"{self.name}, line {self.line_at(position):,}: {what}")

    def fault_of(self, row: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about a record, counted from 0."""
        self.fault(next(islice(self.records(), row, None))[0], what)

    @cached_property
    def parts(self) -> list[bytes]:
        """The text cut into what is outside of quotes, what is within, and so on in turn."""
        if self.delimiter is None or b'"' not in self.text:
            return [self.text]
        # A quoted field begins after a delimiter or an end of line; the last one may lack its closing quote.
        return re.split(rb'("(?<![^%b\n\r]")[^"]*(?:""[^"]*)*"?)' % self.delimiter.encode(), self.text)

    @property
    def end_of_records(self) -> int:
        """Where the last record ends that is whole: after the last end of line outside of quotes."""
        end = len(self.text)
        for position in range(len(self.parts) - 1, -1, -1):
            end -= len(self.parts[position])
            if position % 2 == 0 and (newline := self.parts[position].rfind(b"\n")) >= 0:
                return end + newline + 1
        return 0

    def check_quotes(self, *, last: bool) -> None:
        """Refuse text between a closing quote and the delimiter; of the last block, also a quote that is not closed."""
        if len(self.parts) == 1:
            return
        outside = b"\0".join(self.parts[::2])
        stray = re.search(b"\0[^\0\n\r%b]" % str(self.delimiter).encode(), outside)
        if stray or (last and not self.parts[-1] and self.parts[-2].count(b'"') % 2):
            quoted = outside.count(b"\0", 0, stray.start()) if stray else len(self.parts) // 2 - 1
            self.fault(sum(map(len, self.parts[: 2 * quoted + 1])), "its quotes do not go together.")

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the start and the text of each record, without empty lines and comments."""
        blank = bytes.maketrans(b"\n\r", b"  ")
        text = b"".join(part.translate(blank) if i % 2 else part for i, part in enumerate(self.parts))
        start = 0
        for line in text.split(b"\n") if self.delimiter is None else text.splitlines(keepends=True):
            bare = line.strip() if self.delimiter is None else line.strip(b"\r\n")
            if bare and not (self.delimiter is None and bare[:1] in b"#%"):
                yield start, self.text[start : start + len(line)]
            start += len(line) + (self.delimiter is None)

    def labels(self, start: int, record: bytes) -> list[str]:
        """Return the fields of a record as text."""
        try:
            one = Block(self.name, self.delimiter, 1, record.rstrip(b"\r\n") + b"\n")
            names: list[str] = one._parsed(csv.ReadOptions(block_size=len(one.text) + 1), {}).column_names
        except UnicodeDecodeError as error:
            self.fault(start, f"it is not UTF-8 text ({error.reason}). Convert the file to UTF-8.")
        return names

    def table(self, width: int, columns: list[int]) -> pa.Table:
        """Parse some fields of every record as bytes; columns are named by their position.

        Raises InvalidEdgesError: For the first record that has not `width` fields.
        """
        names = [str(position) for position in range(width)]
        types = {str(position): pa.binary() for position in columns}
        try:
            return self._parsed(csv.ReadOptions(column_names=names, block_size=CHUNK_BYTES), types)
        except pa.ArrowInvalid:  # once more on one thread, which counts rows and takes a record of any length
            options = csv.ReadOptions(column_names=names, block_size=len(self.text) + 1, use_threads=False)
            try:
                return self._parsed(options, types)
            except pa.ArrowInvalid as error:
                ragged = re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", str(error))
                if ragged is None:
                    self.fault(0, f"the text from here on cannot be parsed: {error}.")
                row, count = int(ragged[1]) - 1, int(ragged[2])
                start, record = next(islice(self.records(), row, None))
                shown = record[:60].decode(errors="backslashreplace").replace(self.delimiter or " ", " ")
                fields = counted(count, "field")
                self.fault(start, f"it has {fields} where the first has {width}: {shown.strip()!r}.")

    def _parsed(self, read: csv.ReadOptions, types: dict[str, pa.DataType]) -> pa.Table:
        text = self.text if self.delimiter is not None else _evened(self.text)
        if not text.strip(b"\r\n"):  # which pyarrow refuses
            return pa.schema(types).empty_table()
        return csv.read_csv(
            pa.BufferReader(text),
            read,
            csv.ParseOptions(
                delimiter=self.delimiter or " ",
                quote_char=False if self.delimiter is None else '"',
                newlines_in_values=b'"' in text,
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


def blocks(path: str, compression: str | None, delimiter: str | None) -> Iterator[Block]:
    """Read a file of text in blocks of whole records.

    Raises InvalidEdgesError: if it is empty, damaged or not text, or its quotes do not go together.
    Raises OSError: if it cannot be opened.
    """
    name = described(path)
    rest = Block(name, delimiter, 1, b"")
    begun = False
    for piece in pieces(path, compression):
        text = rest.text + piece
        if not begun:
            for magic, what in MAGIC.items():
                if text.startswith(magic):
                    raise InvalidEdgesError(f"{name} is not text but {what}.")
            text, begun = text.removeprefix(BYTE_ORDER_MARK), True
        rest = Block(name, delimiter, rest.line, text)
        if (position := text.find(b"\0")) >= 0:
            rest.fault(position, "it has a zero byte, so this is no text file. --format says what it is.")
        end = rest.end_of_records
        rest.check_quotes(last=False)
        if end:
            yield Block(name, delimiter, rest.line, text[:end])
            rest = rest.after(end)
        elif len(text) > LONGEST_RECORD:
            rest.fault(
                0, f"it does not end within {LONGEST_RECORD:,} bytes: a line end, or a closing quote, is missing."
            )
    rest.check_quotes(last=True)
    if rest.text:
        yield rest
