"""Comparison of lists of arcs by sums of hashes, and faults of lists of neighbors: see arcs.cpp."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prplugin.cpu import kernels
from prplugin.types.edges import Compressed

FORWARD, BACKWARD, BOTH = 1, 2, 3


class ArcSums(NamedTuple):
    """Sums of the hashes of arcs and of their reverses, modulo 2**64, and the first entry that is at fault, or None."""

    forward: int
    backward: int
    fault: int | None


def arc_sums(rows: Compressed, threads: int, wanted: int = BOTH, *, simple: bool = False) -> ArcSums:
    """Return the sums of valid rows that are wanted; with `simple`, a row must not have itself, nor an entry twice."""
    offsets, indices, weights = rows
    n, m = offsets.size - 1, indices.size
    parts = min(threads, max(1, m // max(n, 1))) if simple else threads  # scratch as long as the indices, at most
    bounds = np.searchsorted(offsets, m * np.arange(parts + 1) // parts).astype(np.int64)
    bounds[0], bounds[-1] = 0, n
    scratch = np.zeros((parts, n if simple else 0), indices.dtype)
    sums, faults = np.empty((parts, 2), np.int64), np.empty(parts, np.int64)
    weights = None if weights is None else np.ascontiguousarray(weights, np.float64)
    kernels.check_arcs(offsets, np.ascontiguousarray(indices), weights, bounds, scratch, sums, faults, wanted, threads)
    forward, backward = (sums.view(np.uint64).sum(axis=0, dtype=np.uint64)).tolist()
    return ArcSums(forward, backward, next((fault for fault in faults.tolist() if fault >= 0), None))
