"""Read files, decompressed, and split text into blocks of whole records with line numbers."""

from __future__ import annotations

import errno
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import IO, Any, NoReturn

import pyarrow as pa
from pyarrow import csv

from prplugin import machine
from prplugin.errors import InvalidEdgesError, OutOfMemoryError, PageRankError, counted, listed, path_errors
from prplugin.io.formats import STANDARD_STREAM, described

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGIC = {
    b"\x1f\x8b": "compressed with gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: let its name end in .zst",
    b"PAR1": "Parquet: pass --format parquet",
    b"\xff\xfe": "UTF-16: convert it to UTF-8",
    b"\xfe\xff": "UTF-16: convert it to UTF-8",
}
"""First bytes of formats other than text."""

COMMA_OR_SEMICOLON = ",;"  # candidates for the delimiter of CSV. The first line determines it by majority
PIECE_BYTES = 4 << 20  # number of bytes per read

WORKING_BYTES = 16 * PIECE_BYTES
"""Bytes to parse a piece: several copies of its text, and its columns as text and as numbers."""

LONGEST_RECORD = 64 << 20  # maximum size of a record in bytes
BLANKS = bytes.maketrans(b"\t\v\f\r", b"   \n")
UNBALANCED_QUOTES = "its quotes are not balanced."


@dataclass(frozen=True)
class Block:
    """Whole records of a text file.

    `name`: Name of the file in messages.
    `delimiter`: None for runs of spaces and tabs, without quotes, and with comments: lines that begin with # or %.
    `line`: Number of its first line in the file, from 1.
    """

    name: str
    delimiter: str | None
    line: int
    text: bytes

    def part(self, start: int, end: int | None = None) -> Block:
        """Return the records from one position of the text up to another."""
        return replace(self, line=self.line_at(start), text=self.text[start:end])

    def line_at(self, position: int) -> int:
        """Return the number of the line at a position of the text."""
        return self.line + (self.text.count(b"\n", 0, position) or self.text.count(b"\r", 0, position))

    def fault(self, position: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about the line at a position of the text."""
        raise InvalidEdgesError(f"{self.name}, line {self.line_at(position):,}: {what}")

    def fault_of(self, row: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about a record; `row` is counted from 0."""
        self.fault(next(islice(self.records(), row, None))[0], what)

    def end_of_records(self) -> int:
        """Return the position after the last whole record; raise for text after a closing quote."""
        if self.delimiter is None or b'"' not in self.text:
            return self.text.rfind(b"\n") + 1
        _, records, stray = _patterns(self.delimiter)
        end = 0
        while (after := records.match(self.text, end).end()) > end:  # type: ignore[union-attr]  # also matches zero records
            end = after
        if bad := stray.match(self.text, end):
            self.fault(bad.start(1), UNBALANCED_QUOTES)
        return end

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the start and the text of each record, except empty lines and comments."""
        for match in _patterns(self.delimiter)[0].finditer(self.text):
            bare = match[0].strip() if self.delimiter is None else match[0].strip(b"\r\n")
            if bare and not (self.delimiter is None and bare[:1] in b"#%"):
                yield match.start(), match[0]

    def labels(self, start: int, record: bytes) -> list[str]:
        """Return the fields of a record as text."""
        try:
            names: list[str] = replace(self, text=record)._parsed(None, {}).column_names
        except UnicodeDecodeError as error:
            self.fault(start, f"it is not UTF-8 text ({error.reason}). Convert the file to UTF-8.")
        return names

    def table(self, width: int, columns: list[int]) -> pa.Table:
        """Parse some of the `width` fields of every record as bytes; columns are named by their position."""
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
        """Parse the columns in `types`; without `names` the first record is the header."""
        text = self.text if self.delimiter is not None else _single_spaced(self.text)
        if not text.strip(b"\r\n"):  # pyarrow raises for empty text
            return pa.schema(types).empty_table()
        quotes = self.delimiter is not None and b'"' in text
        return csv.read_csv(
            pa.BufferReader(text),
            # A single block allows records of any length. A single thread provides row numbers in errors.
            csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
            csv.ParseOptions(delimiter=self.delimiter or " ", quote_char=quotes and '"', newlines_in_values=quotes),
            # No type inference, and no text is null.
            csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
        )


@cache
def _patterns(delimiter: str | None) -> tuple[re.Pattern[bytes], ...]:
    """Return the patterns of a record with its line end, of some such records, and of text after a closing quote.

    Groups are not possessive: Python before 3.11.5 matches possessive groups wrongly (python/cpython issue 106052).
    """
    if delimiter is None:
        return (re.compile(rb"[^\r\n]*+(?:\r?\n|\r)"),)
    ends = rb"%s\r\n" % re.escape(delimiter.encode())
    # A quote opens a field only at its beginning; elsewhere it is a character of an unquoted field.
    quoted = rb'(?<![^%s])"[^"]*+(?:""[^"]*+)*"' % ends
    fields = rb'[^"\r\n]*+(?:(?:%s(?=[%s])|(?<=[^%s])")[^"\r\n]*+)*' % (quoted, ends, ends)
    # At the end of a piece, \r may be the first half of a line end. The repetitions bound the memory of a match.
    records, stray = rb"(?:%s(?:\r?\n|\r(?=[^\n]))){0,1000}" % fields, rb'%s(?=("))%s[^"%s]' % (fields, quoted, ends)
    return re.compile(fields + rb"(?:\r?\n|\r)"), re.compile(records), re.compile(stray)


def _single_spaced(text: bytes) -> bytes:
    """Normalize whitespace to a single space between fields, and remove comments."""
    text = re.sub(rb"  +", b" ", text.translate(BLANKS))
    text = text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    return re.sub(rb"(?m)^[#%].*\n?", b"", text) if b"#" in text or b"%" in text else text


def blocks(path: str, compression: str | None, delimiter: str | None) -> Iterator[Block]:
    """Read a file of text in blocks of whole records."""
    rest = Block(described(path), delimiter, 1, b"")
    for piece in chain(pieces(path, compression), [b"\n"]):
        block = replace(rest, text=rest.text + piece) if rest.text or rest.line > 1 else _first(rest, piece)
        if (position := block.text.find(b"\0")) >= 0:
            block.fault(position, "it has a zero byte, so this is no text file. Pass --format if it is another.")
        end = block.end_of_records()
        if end:
            yield block.part(0, end)
        elif len(block.text) > LONGEST_RECORD:
            block.fault(
                0, f"it does not end within {LONGEST_RECORD:,} bytes: a line end, or a closing quote, is missing."
            )
        rest = block.part(end)
    if rest.text:
        rest.fault(0, UNBALANCED_QUOTES)


def first_record(text: Iterator[Block]) -> tuple[Block, int, bytes] | None:
    """Return the first record, its start and its block, up to which the blocks have been read; None without records."""
    return next(((block, *record) for block in text for record in block.records()), None)


def _first(rest: Block, piece: bytes) -> Block:
    """Return the first block with its delimiter; raise for other formats."""
    for magic, what in MAGIC.items():
        if piece.startswith(magic):
            raise InvalidEdgesError(f"{rest.name} is not text but {what}.")
    text = piece.removeprefix(BYTE_ORDER_MARK)
    delimiter = rest.delimiter
    if delimiter is not None and len(delimiter) > 1:
        line = text.lstrip(b"\r\n").partition(b"\n")[0].decode("latin-1")
        # Commas are frequent in fields of TSV; tabs are rare in those of CSV.
        delimiter = "\t" if "\t" in delimiter and "\t" in line else max(delimiter, key=line.count)
    return replace(rest, delimiter=delimiter, text=text)


def pieces(path: str, compression: str | None) -> Iterator[bytes]:
    """Yield the bytes of a file piece by piece, decompressed."""
    name = described(path)
    with path_errors(name):
        if path == STANDARD_STREAM and sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        with nullcontext(sys.stdin.buffer) if path == STANDARD_STREAM else open(path, "rb") as file:
            try:
                with _decompressed(name, file, compression) as stream:
                    piece = stream.read(PIECE_BYTES)
                    if not piece:
                        raise InvalidEdgesError(f"{name} is empty.")
                    while piece:
                        yield piece
                        piece = stream.read(PIECE_BYTES)
            except Exception as error:  # each library has its own
                known = isinstance(error, (PageRankError, MemoryError, ImportError))
                if known or getattr(error, "errno", None) is not None or compression is None:
                    raise
                raise InvalidEdgesError(f"{name}: damaged or cut short {compression} data ({error}).") from error


def _decompressed(name: str, file: IO[bytes], compression: str | None) -> AbstractContextManager[Any]:
    """Return the decompressed stream of an open file; of an archive, that of its only file."""
    if compression is None:
        return nullcontext(file)
    if compression == "bz2":
        import bz2  # lazy imports: a Python may lack them

        return bz2.open(file)
    if compression == "xz":
        import lzma

        return lzma.open(file)
    if compression != "zip":
        return nullcontext(pa.CompressedInputStream(file, compression))
    archive = zipfile.ZipFile(file)
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        names = listed([member.filename for member in members])
        raise InvalidEdgesError(f"{name} is an archive of {len(members):,} files, not of one: unpack it ({names}).")
    return archive.open(members[0])


def content(path: str, compression: str | None, check: Callable[[bytes], object] = len) -> bytearray:
    """Return all bytes of a file, decompressed; raise as `pieces` and `check_memory` do.

    `check` is called with the first piece, so that it can raise before the rest, which may be endless, is read.
    """
    found = bytearray()
    for piece in pieces(path, compression):
        if not found:
            check(piece)
        found += piece
        check_memory(len(found), f"{described(path)}: {len(found):,} bytes have been read")  # growth may copy them
    return found


def check_memory(needed: int, what: str, remedy: str = "") -> None:
    """Raise OutOfMemoryError if fewer than `needed` bytes are free, before the kernel kills the process."""
    if needed > (free := machine.bytes_available()):
        raise OutOfMemoryError(
            f"{what}, and {needed:,} more bytes of this machine's memory are needed, of which {int(free):,} are free. "
            f"{remedy}".rstrip()
        )
