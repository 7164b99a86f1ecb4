"""Partition of work into pieces, which threads take in turn."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from prplugin.types.edges import Integers

Piece: TypeAlias = tuple[int, int]
"""First and last + 1 of a range of rows, blocks or pieces."""

PIECE = 1 << 17
"""Rows per piece of work."""


def bounds_of_pieces(rows: int) -> Integers:
    """Return the first row of each piece of work, and the number of rows."""
    pieces = max(1, -(-rows // PIECE))
    return np.arange(pieces + 1) * rows // pieces


def equal_work(offsets: Integers, count: int) -> Integers:
    """Partition rows into at most `count` pieces of about equal work; return the first and last + 1 of each.

    The work of a row is estimated as four edges plus its edges, given by `offsets`.
    """
    work = offsets + 4 * np.arange(offsets.size)
    cuts = np.unique(np.searchsorted(work, np.linspace(0, work[-1], count + 1)))
    return np.column_stack([cuts[:-1], cuts[1:]])


def take_in_place(table: Integers, codes: Integers) -> Integers:
    """Return ``table[codes]``, computed in place in NumPy arrays that are writeable and of the dtype of the table."""
    if not isinstance(codes, np.ndarray) or codes.dtype != table.dtype or not codes.flags.writeable:
        return table[codes] if codes.size else table[:0]
    for begin in range(0, codes.size, PIECE):
        # All codes are in bounds. With mode="clip" NumPy needs no buffer.
        np.take(table, codes[begin : begin + PIECE], out=codes[begin : begin + PIECE], mode="clip")
    return codes
