"""Numbers in text, whose lines have any number of fields, compiled: see numbers.cpp."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu.library import Kernel
from prplugin.cpu.sorting import offsets_of
from prplugin.types.edges import Floats, Integers

PIECE_BYTES = 1 << 20
"""Bytes of text per piece of work, which begins with a line."""

_read = Kernel(
    "read_numbers",
    "text:u1[size] bounds:i8[pieces+1] comment:i8 tokens:i8[pieces]! starts:i8[pieces]! values:f8[count]!? "
    "lines:i8[rows]!? faults:i8[pieces]!? threads:i8",
)


class Numbers(NamedTuple):
    """The numbers of a text.

    `values`: All numbers, in the order of the text.
    `lines`: Place of the first number of each line among `values`, and their number.
    `fault`: Position of the first field that is no finite number of at least 0, or -1.
    """

    values: Floats
    lines: Integers
    fault: int


class Text:
    """Text of numbers, divided into pieces and counted; lines that begin with `comment` do not count.

    Counting first tells how much memory the numbers need: `tokens` numbers in `rows` lines.
    """

    def __init__(self, text: Any, threads: int, comment: str = "") -> None:
        self._text, self._threads, self._comment = text, threads, ord(comment) if comment else -1
        bounds = [0]
        while bounds[-1] < text.size:
            bounds.append(_line_after(text, bounds[-1] + PIECE_BYTES))
        self._bounds = np.array(bounds, np.int64)
        tokens, lines = np.zeros((2, self._bounds.size - 1), np.int64)
        _read(text, self._bounds, self._comment, tokens, lines, None, None, None, threads)
        self._tokens, self._lines = offsets_of(tokens), offsets_of(lines)
        self.tokens, self.rows = int(self._tokens[-1]), int(self._lines[-1])

    def numbers(self) -> Numbers:
        """Read all numbers."""
        values, lines = np.empty(self.tokens), np.empty(self.rows + 1, np.int64)
        faults = np.empty(self._bounds.size - 1, np.int64)
        _read(
            self._text, self._bounds, self._comment, self._tokens[:-1].copy(), self._lines[:-1].copy(), values,
            lines[:-1], faults, self._threads,
        )  # fmt: skip
        lines[-1] = self.tokens
        return Numbers(values, lines, int(next(iter(faults[faults >= 0]), -1)))


def _line_after(text: Any, position: int) -> int:
    """Return the beginning of the first line from a position on, or the size of the text."""
    for first in range(position, text.size, PIECE_BYTES):
        ends = np.flatnonzero(text[first - 1 : first - 1 + PIECE_BYTES] == ord("\n"))
        if ends.size:
            return int(first + ends[0])
    return int(text.size)
