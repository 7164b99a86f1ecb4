"""Sparse matrices by rows (CSR) or by columns (CSC)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats, Integers


class Compressed(NamedTuple):
    """A sparse matrix by rows (CSR) or by columns (CSC).

    `offsets` (array of n + 1 int64; on the GPU int32 where that holds m): The entries of row (column) i are
    ``offsets[i]:offsets[i + 1]``.
    `indices` (array of m int32, or int64 from 2**31 vertices on): The other endpoint of each edge. Parallel edges stay
    separate. The entries of a row keep the order of the frame; in the CSR of `GroupedEdges` they are ordered by target,
    and only parallel edges keep the order of the frame.
    `weights` (array of m float64, or None): None if the edges are unweighted.
    """

    offsets: Integers
    indices: Integers
    weights: Floats | None

    def read_only(self) -> Compressed:
        """Return read-only views of arrays on the host, copies of arrays on the device."""
        if namespace(self.offsets) is not np:  # CuPy's arrays cannot be made read-only
            weights = None if self.weights is None else self.weights.copy()
            return Compressed(self.offsets.astype(np.int64), self.indices.copy(), weights)
        views = [None if array is None else array.view() for array in self]
        for view in views:
            if view is not None:
                view.flags.writeable = False
        return Compressed(*views)  # type: ignore[arg-type]  # only weights can be None
