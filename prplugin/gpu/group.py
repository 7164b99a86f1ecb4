"""Grouping of edges by vertex, degrees and sums by group, on the GPU."""

from __future__ import annotations

import math

import cupy
import numpy as np
from numpy.typing import DTypeLike, NDArray

from prplugin.gpu import runtime
from prplugin.gpu.runtime import THREADS, blocks_for_each, launch, padded
from prplugin.gpu.sort import BINS, DIGIT_BITS, SORTING, TILE, TILED, SortColumn, partitioned, sorted_by
from prplugin.numerics import compensated_depth
from prplugin.types.array_module import Scalar
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats, Integers, bits_of, offset_dtype

FEW_GROUPS = 1 << 16  # number of groups up to which one block groups `TILE` rows
SUMMED = 1 << 26  # number of groups up to which terms are summed by bins; more are too many per bin

# Numbers of groups, and least rows per group, for which rows are binned before they are counted. Fewer counts fit in
# the L2 cache; more are too many per bin.
BINNED, MIN_ROWS_PER_GROUP = range(1 << 21, (1 << 26) + 1), 4

# Rows per block of `binned_sizes` or `add_exactly`: the maximum of the first and the second times the groups of a bin.
# A block adds to each group at most once, so that there are far fewer atomic additions than rows.
PIECE, ROWS_PER_GROUP = 1 << 17, 4
STATIC = 2048  # bytes of static shared memory of these kernels, at most

# As in binned_sizes.cu, exact_sums.cu, offsets.cu and run_sums.cu.
MOVING, MOVED, COUNTING = 512, 8192, 1024  # threads and rows per block of `bin_rows`, and threads of `binned_sizes`
SUMMING = 1024  # threads per block of `add_exactly`
SPAN, OFFSETS_PIECE = 8192, 2048  # groups and rows per block of `offsets`, and rows per block of `group_of_rows`
RUNS_SPAN, PARTIALS = 4096, 5  # values and ends of runs per block of `run_sums`, and 8-byte words that each writes

# An exact sum: bits per word, and possible numbers of words; one bit marks that its group has terms.
WORD_BITS, WORDS = 32, (3, 4)
DIGITS = 53  # bits of the significand of a float64
LAST_PLACE = 1075  # biased exponent of a float64 minus the exponent of its last place


def grouped(
    groups: Integers, members: NDArray[Scalar], weights: Floats | None, n: int
) -> tuple[Integers, NDArray[Scalar], Floats | None]:
    """Sort members (and weights) by group, stably.

    Return n + 1 offsets, of type `offset_dtype(m)`, and the sorted members and weights. Temporary memory is two copies
    of the groups and one of members and weights.
    """
    if groups.size <= TILE and n <= FEW_GROUPS and groups.itemsize == 4:
        return _grouped_one_block(groups, members, weights, n)
    groups, members, weights = sorted_by(groups, bits_of(n), members, weights)
    return offsets_of(groups, n), members, weights


def _grouped_one_block(
    groups: Integers, members: NDArray[Scalar], weights: Floats | None, n: int
) -> tuple[Integers, NDArray[Scalar], Floats | None]:
    """Do the same as `grouped`, in one launch."""
    given: list[Array] = [members] if weights is None else [members, weights]
    offsets, *grouped = runtime.allocate((n + 1, np.int32), *((array.size, array.dtype) for array in given))
    types = {"id_t": offsets.dtype, "value_t": np.dtype(f"i{members.itemsize}")}
    runtime.run(
        "gpu/one_block.cu", "group_one_block", 1, SORTING, groups.size, groups, *padded(given, 2), n,
        np.int32(bits_of(n)), offsets, *padded(grouped, 2), **types, **TILED,
    )  # fmt: skip
    return offsets, grouped[0], None if weights is None else grouped[1]


def degrees(groups: Integers, n: int) -> Integers:
    """Return the number of rows of each group, as `offset_dtype(m)`; peak memory includes a copy of the groups."""
    m = groups.size
    counts: Integers = cupy.zeros(n, offset_dtype(m))
    if n in BINNED and m >= MIN_ROWS_PER_GROUP * n and groups.itemsize == counts.itemsize == 4:
        _count_binned(groups, counts)
    elif m:
        _launch_offsets("group_sizes", groups, counts, blocks_for_each(m), m, groups, counts)
    return counts


def _count_binned(groups: Integers, counts: Integers) -> None:
    """Add the number of rows of each group to its count, by bins of neighbouring groups."""
    m, n = groups.size, counts.size
    shift = max(bits_of(n) - DIGIT_BITS, 0)
    width, runs = 1 << shift, runtime.blocks_for(m, MOVED)
    rows = cupy.empty(runs * MOVED, np.uint16 if shift <= 16 else np.uint32)
    begins, totals = cupy.empty(runs * BINS, np.uint16), cupy.zeros(BINS, np.uint32)
    bin_rows, sizes = (
        runtime.kernel("gpu/binned_sizes.cu", name, distance_t=rows.dtype) for name in ("bin_rows", "binned_sizes")
    )
    launch(bin_rows, runs, MOVING, m, groups, np.int32(shift), totals, begins, rows)
    parts = -(-width // ((runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC) // 4))
    part, piece = -(-width // parts), max(PIECE, ROWS_PER_GROUP * width)
    runtime.with_dynamic_smem(sizes, 4 * part)
    numbers = (np.int32(number) for number in (shift, parts, part, piece))
    blocks = _pieces(m, n, width, piece) * parts
    launch(sizes, blocks, COUNTING, m, rows, begins, totals, *numbers, counts, smem=4 * part)


def _pieces(m: int, n: int, width: int, piece: int) -> int:
    """Return an upper bound of the number of pieces of all bins; the last piece of each bin may be partial."""
    return m // piece + min(BINS, -(-n // width))


def sums_by(
    groups: Integers | SortColumn, terms: Floats, n: int, extent: tuple[float, float], *, absent: float = 0.0
) -> tuple[Floats, int]:
    """Sum non-negative terms by group, `absent` without terms; return the sums, and the rounding depth of one.

    `extent` are bounds of the terms above 0. Temporary memory: two copies of groups and terms, and 16 bytes per group.
    """
    m = terms.size
    if words := _words_of_sums(m, n, groups.dtype.itemsize, extent):
        return _exact_sums(groups, terms, n, _exponent(extent[0]), words, absent), 1
    if isinstance(groups, SortColumn):
        ordered, terms = sorted_by(groups, bits_of(n), terms)
        offsets = offsets_of(ordered, n)
    else:
        offsets, terms, _ = grouped(groups, terms, None, n)
    return run_sums(terms, offsets, absent=absent), compensated_depth(m)


def _exact_sums(groups: Integers | SortColumn, terms: Floats, n: int, least: int, words: int, absent: float) -> Floats:
    """Sum by bins of neighbouring groups, in integer multiples of the last place of numbers of exponent `least`."""
    m = terms.size
    (rows, terms), starts, shift = partitioned(groups, bits_of(n), terms)
    width, sum_bytes = 1 << shift, words * WORD_BITS // 8
    parts = -(-width // ((runtime.attribute("MaxSharedMemoryPerBlockOptin") - STATIC) // sum_bytes))
    part = -(-width // parts)
    piece = max(PIECE, ROWS_PER_GROUP * width)
    sums = cupy.zeros((2, n), np.uint64)
    add, rounded = (
        runtime.kernel("gpu/exact_sums.cu", name, state_t=starts.dtype, WORDS=words)
        for name in ("add_exactly", "rounded")
    )
    runtime.with_dynamic_smem(add, sum_bytes * part)
    sizes = (np.int32(size) for size in (shift, parts, part, piece, least))
    blocks = _pieces(m, n, width, piece) * parts
    launch(add, blocks, SUMMING, m, rows, terms, starts, *sizes, n, sums, smem=sum_bytes * part)
    values: Floats = cupy.empty(n, np.float64)
    blocks = runtime.blocks_for(n, THREADS)
    launch(rounded, blocks, THREADS, n, sums, np.int32(least - LAST_PLACE), absent, values)
    return values


def run_sums(terms: Floats, offsets: Integers, *, absent: float = 0.0) -> Floats:
    """Sum consecutive runs of non-negative terms, compensated: see `prplugin.numerics.compensated_depth`."""
    runs = offsets.size - 1
    sums: Floats = cupy.empty(runs, np.float64)
    spans = runtime.blocks_for(terms.size + runs, RUNS_SPAN)
    partials = cupy.empty((spans, PARTIALS), np.float64)
    file, dtype = "gpu/run_sums.cu", offsets.dtype
    runtime.run(file, "run_sums", spans, THREADS, runs, offsets, terms, absent, sums, partials, offset_t=dtype)
    if spans > 1:
        blocks = runtime.blocks_for(spans * 32, THREADS)
        runtime.run(file, "crossing_sums", blocks, THREADS, spans, offsets, partials, sums, offset_t=dtype)
    return sums


def groups_of(offsets: Integers, m: int, dtype: DTypeLike) -> Integers:
    """Return the group of each of m rows that are sorted by group."""
    groups: Integers = cupy.empty(m, dtype)
    if m:
        blocks = runtime.blocks_for(m, OFFSETS_PIECE)
        _launch_offsets("group_of_rows", groups, offsets, blocks, m, offsets.size - 1, offsets, groups)
    return groups


def offsets_of(groups: Integers, n: int) -> Integers:
    """Return the offsets of n groups in rows sorted by group."""
    m = groups.size
    offsets: Integers = cupy.empty(n + 1, offset_dtype(m))
    _launch_offsets("offsets", groups, offsets, runtime.blocks_for(m + n + 1, SPAN), m, groups, n, offsets)
    return offsets


def _launch_offsets(name: str, groups: Integers, counts: Integers, blocks: int, *arguments: object) -> None:
    key = np.dtype(f"u{groups.itemsize}")
    runtime.run("gpu/offsets.cu", name, blocks, THREADS, *arguments, key_t=key, offset_t=counts.dtype)


def _words_of_sums(m: int, n: int, itemsize: int, extent: tuple[float, float]) -> int:
    """Return the number of words per exact sum of m terms by n groups of `itemsize` bytes; 0 if a sort is faster."""
    least, most = (_exponent(term) for term in extent)
    words = -(-(most - least + DIGITS + m.bit_length() + 1) // WORD_BITS)
    fit = m > TILE and n <= SUMMED and itemsize == 4 and words <= max(WORDS)
    return max(words, min(WORDS)) if fit else 0


def _exponent(number: float) -> int:
    """Return the biased exponent of a float64; 1 for subnormal numbers."""
    return max(1, math.frexp(number)[1] + 1022)
