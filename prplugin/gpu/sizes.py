"""Thresholds of graph construction on the GPU, without CuPy: `prplugin.graph.memory` needs them, too."""

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
"""Threads per block of the sort."""

ITEMS = 16
TILE = SORTING * ITEMS
"""Keys per block, 16 per thread. Up to so many rows, of `FEW_GROUPS` groups, are grouped by one block."""

FEW_GROUPS = 1 << 16

DIGIT_BITS = 8
BINS = 1 << DIGIT_BITS
"""Values of a digit of a radix-sort key."""

NARROW = 1 << 30
"""Counts below this fit in a 32-bit look-back state, beside its two flag bits."""

BINNED, A_GROUP = range(1 << 21, (1 << 26) + 1), 4
"""Numbers of groups, and rows per group, from which rows are binned before they are counted: fewer counts stay in the
L2, and more are too many per bin."""

SUMMED = 1 << 26
"""Number of groups up to which terms are summed by bins: more are too many per bin."""

WORD_BITS, WORDS = 32, (3, 4)
"""Bits per word of an exact sum, and possible numbers of words; one bit of a sum marks that its group has terms."""

DIGITS = 53
"""Bits of the significand of a float64."""


def words_of_sums(m: int, n: int, itemsize: int, extent: tuple[float, float]) -> int:
    """Return the number of words per exact sum of m terms by n groups; 0 where sorting them is faster.

    Parameters
    ----------
    itemsize : int
        Bytes per group number.
    extent : tuple of float
        Bounds of the terms above 0.
    """
    least, most = (exponent(term) for term in extent)
    words = -(-(most - least + DIGITS + m.bit_length() + 1) // WORD_BITS)
    fit = m > TILE and n <= SUMMED and itemsize == 4 and words <= max(WORDS)
    return max(words, min(WORDS)) if fit else 0


def exponent(number: float) -> int:
    """Return the biased exponent of a float64; 1 for subnormal numbers."""
    return max(1, math.frexp(number)[1] + 1022)
