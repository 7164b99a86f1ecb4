"""Numbers in text, whose lines have any number of fields, by pyarrow and NumPy."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from prplugin.cpu.sorting import offsets_of
from prplugin.errors import InvalidEdgesError
from prplugin.io.comments import Comments
from prplugin.io.text_blocks import check_memory
from prplugin.machine import mapping_on, this_machine
from prplugin.types.array_module import Booleans
from prplugin.types.edges import Floats, Integers

BLOCK_BYTES = 1 << 20  # bytes of text that a thread reads at once; a longer field or comment is read whole
WORKING_BYTES = 64  # bytes per byte of a block while it is read: 27 for fields of one digit, 64 for empty comments
TOKEN_BYTES = 24  # bytes per number, and per line if lines matter: values and places, and then arrays of the graph
DECIMAL = re.compile(rb"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
COMMENTS = re.compile(rb"(?:\n%[^\n]*+){1,1000}")
ZERO = "^[0.]*([eE].*)?$"  # matches a decimal number if its value is exactly 0


class NumberText:
    """Text of numbers, and errors about a place in it; with `by_line`, lines that begin with % do not count."""

    def __init__(self, name: str, text: Any, *, by_line: bool = False) -> None:
        self.name, self.bytes, self._by_line = name, text, by_line

    def fault(self, position: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about the line at a position."""
        line = 1 + int(np.count_nonzero(self.bytes[:position] == ord("\n")))
        raise InvalidEdgesError(f"{self.name}, line {line:,}: {what}")

    def first_line(self) -> int:
        """Return the position of the first line that is neither empty nor a comment."""
        comments, position = Comments("%"), 0
        while position < self.bytes.size:
            block = bytes(self.bytes[position : position + BLOCK_BYTES])
            end = block.rfind(b"\n") + 1
            position += (start := comments.end_of_leading(block[:end]))
            if start < end or not end:
                break
        return position

    def numbers(self, first: int, lines: int | None = None) -> tuple[Floats, Integers]:
        """Read all numbers from a byte on, which follows a line end; raise for a field that is no valid number.

        With `by_line` also return the place of the first number of each line, and at the end the count of numbers. If
        all numbers are in the first `lines` lines, as a header announces, empty lines below are not read; else raise.
        """
        bounds, size = [first], self.bytes.size
        while bounds[-1] < size:
            bounds.append(self._end(bounds[-1]))
        threads = min(this_machine().threads, len(bounds))
        with mapping_on(threads) as run:
            counts = np.array([*run(self._count, bounds, bounds[1:])], np.int64).reshape(-1, 2)
            blocks = np.column_stack([bounds[:-1], bounds[1:]])
            if lines is not None:
                below = np.cumsum(counts[:, 1]) - counts[:, 1] > lines
                if (wrong := np.flatnonzero(below & (counts[:, 0] > 0))).size:
                    self.fault(int(blocks[wrong[0], 0]), f"the header announces {lines:,} lines, but more follow.")
                blocks, counts = blocks[~below], counts[~below]
            tokens, (count, rows) = offsets_of(counts[:, 0]), counts.sum(axis=0).tolist()
            needed = TOKEN_BYTES * (count + rows) + WORKING_BYTES * min(threads * BLOCK_BYTES, size)
            check_memory(needed, f"{self.name} has {count:,} numbers")
            values = np.empty(count)
            found = run(self._read, *blocks.T.tolist(), np.split(values, tokens[1:-1]))
            return values, np.concatenate([*map(np.add, found, tokens), tokens[-1:]])

    def _end(self, first: int) -> int:
        """Return the end of the block from a position on: after a line end, or in a long line after another blank."""
        block = bytes(self.bytes[first : first + BLOCK_BYTES])
        if end := block.rfind(b"\n") + 1:
            return first + end
        found = re.compile(rb"\n" if block.startswith(b"%") else rb"\s").search(self.bytes, first + BLOCK_BYTES)
        return found.end() if found else int(self.bytes.size)

    def _block(self, first: int, last: int) -> bytes:
        """Return a block with the blank before it, so that each line follows a line end; comments are overwritten."""
        block = bytes(self.bytes[first - 1 : last]).removesuffix(b"\n")
        if not self._by_line or b"\n%" not in block:
            return block
        letters = np.frombuffer(block, np.uint8)
        is_end = letters == ord("\n")
        if np.count_nonzero(is_end) == np.count_nonzero(is_end[:-1] & (letters[1:] == ord("%"))):
            return b" " * len(block)
        return COMMENTS.sub(lambda lines: b" " * len(lines[0]), block)

    def _count(self, first: int, last: int) -> tuple[int, int]:
        """Return the numbers of fields and of lines of a block."""
        block = self._block(first, last)
        lines = block.count(b"\n") if self._by_line else 0
        if block.isspace():
            return 0, lines
        return int(np.count_nonzero(_field_bounds(np.frombuffer(block, np.uint8)))) // 2, lines

    def _read(self, first: int, last: int, values: Floats) -> Integers:
        """Write the numbers of a block to `values`; return the place among them of each line's first number."""
        block = self._block(first, last)
        text = np.frombuffer(block, np.uint8)
        bounds = np.flatnonzero(_field_bounds(text))
        starts, offsets = bounds[::2], offsets_of(bounds[1::2] - bounds[::2])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block.translate(None, b" \t\n\v\f\r"))]
        fields = pa.Array.from_buffers(pa.large_binary(), starts.size, buffers)
        try:
            values[:] = fields.cast(pa.float64())
        except pa.ArrowInvalid:
            values[:] = [float(field) if DECIMAL.fullmatch(field) else np.nan for field in block.split()]
        # pyarrow also reads signs, infinities and NaN, and rounds to 0 and to subnormal numbers.
        suspects = np.flatnonzero(~((values >= np.finfo(float).tiny) & (values < np.inf) & (text[starts] >= ord("."))))
        zeros = pc.match_substring_regex(fields.take(pa.array(suspects)), ZERO).to_numpy(zero_copy_only=False)
        for field in suspects[~zeros | np.isnan(values[suspects])][:1]:
            position = first - 1 + int(starts[field])
            shown = bytes(self.bytes[position : position + 60]).split(maxsplit=1)[0].decode("latin-1")
            self.fault(position, f"{shown!r} is no finite number of at least 0.")
        return np.searchsorted(starts, np.flatnonzero(text == ord("\n")) if self._by_line else [])


def _field_bounds(text: Integers) -> Booleans:
    """Return a flag for each byte: whether a field begins there, or has ended before."""
    blank = (text == ord(" ")) | (text - np.uint8(ord("\t")) < 5)  # \t, \n, \v, \f or \r; below, the difference wraps
    bounds: Booleans = np.diff(blank, prepend=True, append=True)
    return bounds
