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
from typing import IO, NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import csv

from prplugin import machine
from prplugin.errors import InvalidEdgesError, OutOfMemoryError, PageRankError, counted, listed, path_errors
from prplugin.io.comments import LINE_END, NONE, Comments
from prplugin.io.formats import STANDARD_STREAM, described
from prplugin.progress import counting

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGIC = {
    b"\x1f\x8b": "compressed with gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: let its name end in .zst",
    b"PAR1": "Parquet: pass format='parquet'",
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
NEXT_LINE = re.compile(LINE_END)


@dataclass(frozen=True)
class Block:
    """Whole records of a text file, without its comments.

    `name`: Name of the file in messages.
    `delimiter`: None for single blanks, without quotes.
    `line`: Number of its first line in the file, from 1.
    """

    name: str
    delimiter: str | None
    line: int
    text: bytes

    @property
    def is_empty(self) -> bool:
        """Return whether all lines are empty; fields without text are fields."""
        return not (self.text.lstrip() if self.delimiter is None else self.text.lstrip(b"\r\n"))

    def part(self, start: int, end: int | None = None) -> Block:
        """Return the records from one position of the text up to another."""
        return replace(self, line=self.line_at(start), text=self.text[start:end])

    def line_at(self, position: int) -> int:
        """Return the number of the line at a position of the text."""
        text = np.frombuffer(self.text, np.uint8, min(position, len(self.text)))  # bytes.count is slow for many
        return self.line + int(np.count_nonzero(text == ord("\n")) or np.count_nonzero(text == ord("\r")))

    def fault(self, position: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about the line at a position of the text."""
        raise InvalidEdgesError(f"{self.name}, line {self.line_at(position):,}: {what}")

    def fault_of(self, row: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about a record; `row` is counted from 0."""
        self.fault(next(islice(self.records(), row, None))[0], what)

    def end_of_records(self, comment: bytes) -> int:
        """Return the position after the last whole record, or comment; raise for text after a closing quote."""
        if self.delimiter is None or b'"' not in self.text:
            return self.text.rfind(b"\n") + 1
        _, records, stray = _patterns(self.delimiter, comment)
        end = 0
        while (after := records.match(self.text, end).end()) > end:  # type: ignore[union-attr]  # also matches zero records
            end = after
        if (bad := stray.match(self.text, end)) and not re.compile(comment).match(self.text, end):
            self.fault(bad.start(1), UNBALANCED_QUOTES)
        return end

    def without(self, comments: Comments) -> Block:
        """Return the records in a normal form, without comments."""
        if self.delimiter is None:
            return replace(self, text=comments.removed(_single_spaced(self.text)))
        record = _patterns(self.delimiter, comments.line)[0] if b'"' in self.text else None
        return replace(self, text=comments.removed(self.text, record))

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the start and the text of each record, except empty lines."""
        for match in _patterns(self.delimiter)[0].finditer(self.text):
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
            hint = f" If it is a comment, pass comment={shown[0]!r}." if shown[:1] in ("#", "%") else ""
            self.fault(
                start, f"it has {counted(int(ragged[2]), 'field')} where the first has {width}: {shown!r}.{hint}"
            )

    def _parsed(self, names: list[str] | None, types: dict[str, pa.DataType]) -> pa.Table:
        """Parse the columns in `types`; without `names` the first record is the header."""
        if self.is_empty:  # pyarrow raises for empty text
            return pa.schema(types).empty_table()
        quotes = self.delimiter is not None and b'"' in self.text
        return csv.read_csv(
            pa.BufferReader(self.text),
            # A single block allows records of any length. A single thread provides row numbers in errors.
            csv.ReadOptions(column_names=names, block_size=len(self.text) + 1, use_threads=False),
            csv.ParseOptions(delimiter=self.delimiter or " ", quote_char=quotes and '"', newlines_in_values=quotes),
            # No type inference, and no text is null.
            csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
        )


@cache
def _patterns(delimiter: str | None, comment: bytes = NONE) -> tuple[re.Pattern[bytes], ...]:
    """Return the patterns of a record with its line end, of some such records, and of text after a closing quote.

    `comment` is the pattern of a line in which quotes mean nothing. The first pattern does not match empty lines.
    Groups are not possessive: Python before 3.11.5 matches possessive groups wrongly (python/cpython issue 106052).
    """
    if delimiter is None:
        return (re.compile(rb"[^\r\n]++\n"),)
    ends = rb"%s\r\n" % re.escape(delimiter.encode())
    # A quote opens a field only at its beginning; elsewhere it is a character of an unquoted field.
    quoted = rb'(?<![^%s])"[^"]*+(?:""[^"]*+)*"' % ends
    fields = rb'[^"\r\n]*+(?:(?:%s(?=[%s])|(?<=[^%s])")[^"\r\n]*+)*' % (quoted, ends, ends)
    line = fields if comment == NONE else rb"(?:%s|%s)" % (comment, fields)
    # At the end of a piece, \r may be the first half of a line end. The repetitions bound the memory of a match.
    records, stray = rb"(?:%s(?:\r?\n|\r(?=[^\n]))){0,1000}" % line, rb'%s(?=("))%s[^"%s]' % (fields, quoted, ends)
    return re.compile(rb"(?![\r\n])" + line + LINE_END), re.compile(records), re.compile(stray)


@cache
def _blanks_around_quotes(delimiter: str, comment: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return a pattern of such blanks, and one of everything in which a quote has a meaning, with the quoted field."""
    ends, blanks = rb"%s\r\n" % re.escape(delimiter.encode()), rb" " if delimiter == "\t" else rb" \t"
    quoted = rb'[%s]*+("[^"]*+(?:""[^"]*+)*")[%s]*+(?=[%s])' % (blanks, blanks, ends)
    whole = rb'(?<![^\r\n])%s|(?<![^%s])(?:%s|[%s]*+"[^"]*+(?:""[^"]*+)*"?[%s]*+\Z)' % (
        comment,
        ends,
        quoted,
        blanks,
        blanks,
    )
    return re.compile(rb'(?<![^%s])[%s]+"|"[%s]+[%s]' % (ends, blanks, blanks, ends)), re.compile(whole)


def _with_bare_quotes(text: bytes, delimiter: str, comment: bytes) -> bytes:
    """Remove blanks between a quoted field and the delimiters or line ends around it, as around other fields."""
    letters = np.frombuffer(text, np.uint8)
    is_quote, is_blank = letters == ord('"'), (letters == ord(" ")) | (letters == ord("\t"))
    if not ((is_quote[1:] & is_blank[:-1]) | (is_quote[:-1] & is_blank[1:])).any():
        return text
    blanks, whole = _blanks_around_quotes(delimiter, comment)
    return whole.sub(lambda match: match[1] or match[0], text) if blanks.search(text) else text


def _single_spaced(text: bytes) -> bytes:
    """Normalize whitespace to a single space between fields, and line ends."""
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    text = re.sub(rb"  +", b" ", text.translate(BLANKS))
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def blocks(
    path: str, compression: str | None, delimiter: str | None, comments: Comments | None = None, skip: int = 0
) -> Iterator[Block]:
    """Read a file of text in blocks of whole records, after `skip` lines, without `comments`; at least one block.

    A `delimiter` of several characters is a choice of them, which the first record decides.
    """
    comments = Comments() if comments is None else comments
    rest, leading, empty = Block(described(path), delimiter, 1 + skip, b""), True, True
    for piece in chain(_text(path, compression, skip), [b"\n"]):
        block = replace(rest, text=rest.text + piece)
        if (position := block.text.find(b"\0")) >= 0:
            block.fault(position, "it has a zero byte, so this is no text file. Pass format= if it is another.")
        if leading:
            # The last \r may be the first half of a line end.
            end = max(block.text.rfind(b"\n"), block.text.rfind(b"\r", 0, len(block.text) - 1)) + 1
            start = comments.end_of_leading(block.text[:end])
            block, leading = block.part(start), start == end
            if not leading:
                block = replace(block, delimiter=_delimiter(block))
        if not leading:
            if block.delimiter is not None and b'"' in block.text:
                block = replace(block, text=_with_bare_quotes(block.text, block.delimiter, comments.line))
            if end := block.end_of_records(comments.line):
                whole = block.part(0, end)
                if not comments.are_all(whole.text) and not (whole := whole.without(comments)).is_empty:
                    empty = False
                    yield whole
                block = block.part(end)
        if len(block.text) > LONGEST_RECORD:
            block.fault(
                0, f"it does not end within {LONGEST_RECORD:,} bytes: a line end, or a closing quote, is missing."
            )
        rest = block
    if rest.text:
        rest.fault(0, UNBALANCED_QUOTES)
    if empty:
        yield rest


def first_record(text: Iterator[Block]) -> tuple[Block, int, bytes] | None:
    """Return the first record, its start and its block, up to which the blocks have been read; None without records."""
    return next(((block, *record) for block in text for record in block.records()), None)


def _text(path: str, compression: str | None, skip: int) -> Iterator[bytes]:
    """Yield the text of a file piece by piece, after a number of lines; raise for other formats."""
    held = b""
    for number, piece in enumerate(pieces(path, compression)):
        if number == 0:
            for magic, what in MAGIC.items():
                if piece.startswith(magic):
                    raise InvalidEdgesError(f"{described(path)} is not text but {what}.")
            piece = piece.removeprefix(BYTE_ORDER_MARK)  # noqa: PLW2901 - from here on only the text matters
        piece, end = held + piece, 0  # noqa: PLW2901
        held = b"\r" if skip and piece.endswith(b"\r") else b""  # it may be the first half of a line end
        while skip and (found := NEXT_LINE.search(piece, end, len(piece) - len(held))):
            skip, end = skip - 1, found.end()
        if not skip:
            yield piece[end:]
            held = b""


def _delimiter(block: Block) -> str | None:
    """Return the delimiter by the first record."""
    if block.delimiter is None or len(block.delimiter) == 1:
        return block.delimiter
    line = block.text.partition(b"\n")[0].decode("latin-1")
    # Commas are frequent in fields of TSV; tabs are rare in those of CSV.
    return "\t" if "\t" in block.delimiter and "\t" in line else max(block.delimiter, key=line.count)


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
                    # Of a pipe no size is known. Of a compressed file, what is stored counts.
                    size = 0 if path == STANDARD_STREAM else os.fstat(file.fileno()).st_size
                    count = counting(size, "bytes")
                    while piece:
                        yield piece
                        if size:
                            count(file.tell())
                        piece = stream.read(PIECE_BYTES)
            except Exception as error:  # each library has its own
                known = isinstance(error, (PageRankError, MemoryError, ImportError))
                if known or getattr(error, "errno", None) is not None or compression is None:
                    raise
                raise InvalidEdgesError(f"{name}: damaged or cut short {compression} data ({error}).") from error


def _decompressed(name: str, file: IO[bytes], compression: str | None) -> AbstractContextManager[IO[bytes]]:
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
