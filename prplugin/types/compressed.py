"""Sparse matrices by rows (CSR) or by columns (CSC)."""

from __future__ import annotations

from typing import NamedTuple

from prplugin.types.edges import Floats, Integers

__all__ = ["Compressed"]


class Compressed(NamedTuple):
    """A sparse matrix by rows (CSR) or by columns (CSC).

    `offsets` (array of n + 1 int64): The entries of row (column) i are ``offsets[i]:offsets[i + 1]``. On the GPU int32
    where that holds m.
    `indices` (array of m int32, or int64 past 2**31 vertices): The other end of each edge. Parallel edges stay apart.
    Those of a row keep the order of the frame; but in the CSR of `GroupedEdges` they come by target, and only parallel
    ones keep it.
    `weights` (array of m float64, or None): None where every edge counts 1.
    """

    offsets: Integers
    indices: Integers
    weights: Floats | None
