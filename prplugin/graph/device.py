"""Graph building on the GPU, in CuPy and kernels: what `host` is for the processor."""

from __future__ import annotations

import cupy
import numpy as np

from prplugin import cuda
from prplugin.graph.edges import Floats, Integers, offset_dtype

__all__ = ["degrees", "grouped", "run_sums", "sums_by"]

THREADS = 256


def grouped(
    groups: Integers, members: Integers, weights: Floats | None, n: int
) -> tuple[Integers, Integers, Floats | None]:
    """Bring members (and weights) together by group, each group in the order of its rows.

    Returns
    -------
    offsets : array of n + 1
        Where each group begins, and where the last one ends; int32 where that holds the count.
    members, weights : arrays, or None
    """
    order = cupy.argsort(groups)  # a radix sort of integers: stable
    return _offsets(groups, n), members[order], None if weights is None else weights[order]


def degrees(groups: Integers, n: int) -> Integers:
    """Count the rows of each group."""
    counts: Integers = cupy.bincount(groups, minlength=n) if groups.size else cupy.zeros(n, np.int64)
    return counts


def sums_by(groups: Integers, terms: Floats, n: int) -> Floats:
    """Sum non-negative terms by group; compensated: see `prplugin.graph.sums.compensated_chain`."""
    return run_sums(terms[cupy.argsort(groups)], _offsets(groups, n))


def run_sums(terms: Floats, offsets: Integers) -> Floats:
    """Sum consecutive runs of non-negative terms; compensated: see `prplugin.graph.sums.compensated_chain`."""
    runs = offsets.size - 1
    sums: Floats = cupy.empty(runs, np.float64)
    launch = cuda.kernel("graph/run_sums.cu", "run_sums", offset_t=cuda.ctype(offsets.dtype))
    launch((cuda.blocks_for(runs * 32, THREADS),), (THREADS,), (runs, offsets, terms, sums))
    return sums


def _offsets(groups: Integers, n: int) -> Integers:
    offsets: Integers = cupy.zeros(n + 1, offset_dtype(groups.size))
    if groups.size:
        cupy.cumsum(degrees(groups, n), dtype=offsets.dtype, out=offsets[1:])
    return offsets
