"""Sizes that decide how a graph is built on the GPU: for those who build it, and for `footprint`, which has no CuPy."""

from __future__ import annotations

import math

__all__ = [
    "A_GROUP",
    "BINNED",
    "BINS",
    "DIGIT_BITS",
    "FEW_GROUPS",
    "ITEMS",
    "NARROW",
    "SORTING",
    "TILE",
    "WORD_BITS",
    "exponent",
    "words_of_sums",
]

SORTING = 256
"""Threads of a block that sorts."""

ITEMS = 16
TILE = SORTING * ITEMS
"""Keys that such a block has, 16 a thread. Up to so many rows, of `FEW_GROUPS` groups, are grouped by one block."""

FEW_GROUPS = 1 << 16

DIGIT_BITS = 8
BINS = 1 << DIGIT_BITS
"""Of a digit of keys."""

NARROW = 1 << 30
"""Counts below this fit a 32-bit word of look-back, beside its two flags."""

BINNED, A_GROUP = range(1 << 21, (1 << 26) + 1), 4
"""For so many groups, of at least so many rows on average, rows are put into bins before they are counted: fewer counts
stay in the L2, of more there are too many to a bin."""

SUMMED = 1 << 26
"""Groups whose terms are summed by bins at the most: more are too many to a bin."""

WORD_BITS, WORDS = 32, (3, 4)
"""Bits of a word of an exact sum, of which one is no part of it, and how many words a sum has."""

DIGITS = 53
"""Bits of the digits of a float64."""


def words_of_sums(m: int, n: int, itemsize: int, extent: tuple[float, float]) -> int:
    """Give the words of an exact sum of m terms by n groups; 0 where they are better sorted.

    `itemsize`: Bytes of a group's number.
    `extent` (tuple of float): The least term above 0 and the greatest, or numbers below and above them.
    """
    least, most = (exponent(term) for term in extent)
    words = -(-(most - least + DIGITS + m.bit_length() + 1) // WORD_BITS)
    fit = m > TILE and n <= SUMMED and itemsize == 4 and words <= max(WORDS)
    return max(words, min(WORDS)) if fit else 0


def exponent(number: float) -> int:
    """Give the exponent of a number as its bits hold it, and 1 for those below the normal range."""
    return max(1, math.frexp(number)[1] + 1022)
