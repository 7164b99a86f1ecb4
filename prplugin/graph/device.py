"""Graph building on the GPU, in CuPy and kernels: what `host` is for the processor."""

from __future__ import annotations

import cupy
import numpy as np

from prplugin import cuda
from prplugin.graph.device_each import THREADS, blocks_for_each
from prplugin.graph.device_sort import BINS, ITEMS, KEYS, TILE, VALUES, bits_for, partitioned, sorted_by
from prplugin.graph.device_sort import THREADS as SORTING
from prplugin.graph.edges import Floats, Integers, offset_dtype

__all__ = ["degrees", "grouped", "offsets_of", "run_sums", "sums_by"]

FEW, FEW_GROUPS = TILE, 1 << 16
"""Up to so many rows, of so many groups, are grouped by one block."""

SPAN = 8192
"""Groups and rows that a block of `offsets` takes: that of offsets.cu."""

BINNED, A_GROUP = range(1 << 21, (1 << 26) + 1), 4
"""For so many groups, of at least so many rows on average, rows are put into bins before they are counted: fewer counts
stay in the L2, of more there are too many to a bin."""

COUNTED, COUNTING = 12_000, 512
"""Counts in the shared memory of a block of `binned_sizes`, and its threads: those of binned_sizes.cu."""

PIECE, A_COUNT = 1 << 17, 4
"""Rows that a block of `binned_sizes` reads at the most: so many, or so many a group of a bin if that is more. It adds
to each group at most once, so that there are far fewer additions than rows."""


def grouped(
    groups: Integers, members: Integers, weights: Floats | None, n: int
) -> tuple[Integers, Integers, Floats | None]:
    """Bring members (and weights) together by group, each group in the order of its rows.

    While it works it holds, beside what it returns, two copies of the groups and one of the members and weights.

    Returns
    -------
    offsets : array of n + 1
        Where each group begins, and where the last one ends; int32 where that holds the count.
    members, weights : arrays, or None
    """
    if groups.size <= FEW and n <= FEW_GROUPS and groups.itemsize == 4:
        return _grouped_few(groups, members, weights, n)
    groups, members, weights = sorted_by(groups, bits_for(n), members, weights)
    return offsets_of(groups, n), members, weights


def _grouped_few(
    groups: Integers, members: Integers, weights: Floats | None, n: int
) -> tuple[Integers, Integers, Floats | None]:
    """Do the same in one launch."""
    offsets = cupy.empty(n + 1, np.int32)
    grouped_members = cupy.empty_like(members)
    grouped_weights = None if weights is None else cupy.empty_like(weights)
    launch = cuda.kernel(
        "graph/few.cu", "group_few", id_t="int", value_t=VALUES[members.itemsize], THREADS=SORTING, ITEMS=ITEMS
    )
    launch(
        (1,),
        (SORTING,),
        (
            groups.size, groups, members, 0 if weights is None else weights, n, np.int32(bits_for(n)),
            offsets, grouped_members, 0 if grouped_weights is None else grouped_weights,
        ),
    )  # fmt: skip
    return offsets, grouped_members, grouped_weights


def degrees(groups: Integers, n: int) -> Integers:
    """Count the rows of each group; int32 where that holds the count. It may hold a copy of the groups for a while."""
    m = groups.size
    counts: Integers = cupy.zeros(n, offset_dtype(m))
    if n in BINNED and m >= A_GROUP * n and groups.itemsize == counts.itemsize == 4:
        _count_binned(groups, counts)
    elif m:
        launch = cuda.kernel("graph/offsets.cu", "group_sizes", **_types(groups, counts))
        launch((blocks_for_each(m),), (THREADS,), (m, groups, counts))
    return counts


def _count_binned(groups: Integers, counts: Integers) -> None:
    """Add the rows of each group to its count, by bins of neighbouring groups."""
    m, n = groups.size, counts.size
    rows, starts, shift = partitioned(groups, bits_for(n))
    width = 1 << shift
    parts = -(-width // COUNTED)
    piece = max(PIECE, A_COUNT * width)
    pieces = m // piece + min(BINS, -(-n // width))  # the last one of each bin is no whole one
    launch = cuda.kernel("graph/binned_sizes.cu", "binned_sizes", state_t=KEYS[starts.itemsize])
    launch(
        (pieces * parts,),
        (COUNTING,),
        (m, rows, starts, np.int32(shift), np.int32(parts), np.int32(-(-width // parts)), np.int32(piece), counts),
    )


def sums_by(groups: Integers, terms: Floats, n: int) -> Floats:
    """Sum non-negative terms by group; compensated: see `prplugin.graph.sums.compensated_chain`."""
    groups, terms = sorted_by(groups, bits_for(n), terms)
    return run_sums(terms, offsets_of(groups, n))


def run_sums(terms: Floats, offsets: Integers) -> Floats:
    """Sum consecutive runs of non-negative terms; compensated: see `prplugin.graph.sums.compensated_chain`."""
    runs = offsets.size - 1
    sums: Floats = cupy.empty(runs, np.float64)
    launch = cuda.kernel("graph/run_sums.cu", "run_sums", offset_t=cuda.ctype(offsets.dtype))
    launch((cuda.blocks_for(runs * 32, THREADS),), (THREADS,), (runs, offsets, terms, sums))
    return sums


def offsets_of(groups: Integers, n: int) -> Integers:
    """Find where each of n groups begins among rows sorted by group."""
    m = groups.size
    offsets: Integers = cupy.empty(n + 1, offset_dtype(m))
    launch = cuda.kernel("graph/offsets.cu", "offsets", **_types(groups, offsets))
    launch((cuda.blocks_for(m + n + 1, SPAN),), (THREADS,), (m, groups, n, offsets))
    return offsets


def _types(groups: Integers, counts: Integers) -> dict[str, str]:
    return {"key_t": KEYS[groups.itemsize], "offset_t": VALUES[counts.itemsize]}
