"""The GPU's part of `cpu-split`: the first N in-edges of each vertex, laid out in slices of 32 rows."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from prplugin.errors import counted
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._split_kernels import FILE, WARP, launch, types
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats, Integers

__all__ = ["Heads", "N", "falling", "head_counts", "slice_begins"]

N: TypeAlias = int | Literal["all"]
"""How many in-edges of a vertex the GPU sums."""


def falling(offsets: Integers) -> tuple[Integers, Integers]:
    """Give rows in falling in-degree order, equal ones as they were, and their in-degrees."""
    degrees = offsets[1:] - offsets[:-1]
    order = namespace(offsets).argsort(-degrees, kind="stable")
    return order, degrees[order]


def head_counts(degrees: Integers, split: list[N]) -> Integers:
    """Give how many in-edges of each row the GPU sums; rows are in falling order, in equal blocks, one for each N."""
    xp = namespace(degrees)
    longest = int(degrees[0])
    limits = xp.asarray([longest if block == "all" else min(block, longest) for block in split], degrees.dtype)
    block = xp.arange(degrees.size) * len(split) // degrees.size
    counts: Integers = xp.minimum(degrees, limits[block])
    return counts


def slice_begins(counts: Integers) -> Integers:
    """Give where each slice of 32 rows begins, as wide as its longest row, and where the last one ends."""
    xp = namespace(counts)
    slices = -(-counts.size // WARP)
    padded = xp.zeros(slices * WARP, np.int64)
    padded[: counts.size] = counts
    begins: Integers = xp.zeros(slices + 1, np.int64)
    xp.cumsum(WARP * padded.reshape(slices, WARP).max(axis=1), out=begins[1:])
    return begins


class Heads:
    """The first in-edges of some rows, in slices of 32 rows, each stored index by index ("sliced ELL")."""

    def __init__(self, adjacency: Adjacency, rows: Integers, counts: Integers) -> None:
        import cupy  # there: `unfit` has looked

        offsets, sources, weights = adjacency.csc
        self._rows, self._counts, self._slices = rows.astype(sources.dtype), counts, slice_begins(counts)
        places = int(self._slices[-1])
        place_bytes = sources.itemsize + 2 * 8 * adjacency.weighted  # an index, a weight and its normalized weight
        runtime.require_bytes(place_bytes * places, f"method 'cpu-split' with heads in {counted(places, 'place')}")
        self._sources = laid_sources = cupy.zeros(places, sources.dtype)  # what pads a slice is a vertex, too
        laid_weights = None if weights is None else cupy.zeros(places)
        self._types = types(adjacency)
        launch(
            runtime.kernel(FILE, "lay_heads", **self._types, real_t="double"),
            rows.size,
            self._rows, self._counts, self._slices, offsets, sources, weights, laid_sources, laid_weights,
        )  # fmt: skip
        self._shares = gpu_pull.Shares(laid_weights, adjacency, laid_sources)
        self._dtype: Any = None

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        """Write the sum of each row's head to its entry of `pulled`."""
        if self._dtype is None or self._dtype != contributions.dtype:  # NumPy takes None for float64
            self._dtype = contributions.dtype
            self._kernel = runtime.kernel(FILE, "head_pull", **self._types, real_t=runtime.ctype(self._dtype))
        launch(
            self._kernel,
            self._rows.size,
            self._rows, self._counts, self._slices, self._sources, self._shares.of(self._dtype), contributions, pulled,
        )  # fmt: skip
