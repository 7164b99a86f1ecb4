"""y = A c over the in-edges of a graph on the host, by NumPy or by a compiled kernel: the same bits either way."""

from __future__ import annotations

from copy import copy
from typing import Protocol, Self

import numpy as np

from prplugin.cpu.crew import Crew, equal_work
from prplugin.cpu.sorting import rows_of
from prplugin.cpu.sums import GroupSums, depth_of
from prplugin.graph.adjacency import Adjacency
from prplugin.machine import compiles, this_machine
from prplugin.types.edges import Floats, GroupedEdges, Integers

__all__ = ["Product", "product_of"]

THREADED_FROM = 1 << 18
"""Edges from which a product is worth the threads of a crew."""


class Product(Protocol):
    """The product of the in-edges with a vector.

    Attributes
    ----------
    depth : int
        The most additions that a term goes through.
    """

    depth: int

    def __call__(self, vector: Floats) -> Floats:
        """Return the sum of the vector's entries over the in-edges of each vertex, times normalized weights if any."""


def product_of(adjacency: Adjacency) -> Product:
    """Make the product of a graph on the host; of a weighted graph, with the normalized weights w / W.

    The graph keeps it for the next ranking; each ranking has a copy, with a buffer and threads of its own.
    """
    kind: type[_Compiled | _Scattered] = _Compiled if compiles(adjacency.m) else _Scattered
    if not isinstance(adjacency.product, kind):
        adjacency.product = kind.of(adjacency)
    return copy(adjacency.product)


class _Scattered:
    """Gather a term per edge, and add each to its target by `numpy.bincount`: nothing is sorted."""

    def __init__(self, sources: Integers, targets: Integers, weights: Floats | None, n: int) -> None:
        self._sources = sources.astype(np.intp, copy=False)  # as take has them, which would copy them each time
        self._weights = weights
        self._sums = GroupSums(targets, n)
        self._terms: Floats | None = None
        self.depth = self._sums.depth

    @classmethod
    def of(cls, adjacency: Adjacency) -> Self:
        if isinstance(adjacency.edges, GroupedEdges) or "csc" in adjacency.__dict__:
            offsets, sources, weights = adjacency.csc
            targets = rows_of(offsets)
        else:  # each target's in-edges are in the same order as in the CSC, and need not stand together
            sources, targets, weights = adjacency.edges.source, adjacency.edges.destination, adjacency.edges.weights
        return cls(sources, targets, _normalized(adjacency, sources, weights), adjacency.n)

    def __call__(self, vector: Floats) -> Floats:
        if self._terms is None:
            self._terms = np.empty(self._sources.size)
        # "clip" writes to `out` at once, "raise" by way of a copy; all positions are valid.
        terms = vector.take(self._sources, out=self._terms, mode="clip")
        if self._weights is not None:
            terms *= self._weights
        return self._sums(terms)


class _Compiled:
    """Add up row by row of the CSC in a kernel, in the order of additions of `GroupSums`."""

    def __init__(self, offsets: Integers, sources: Integers, weights: Floats | None, longest: int) -> None:
        from prplugin.cpu import pull_kernels  # imports Numba

        self._kernel = pull_kernels.row_sums
        self._offsets, self._sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
        self._weights = weights
        self._fan = np.uint64(pull_kernels.fan_for(longest))
        self.depth = depth_of(longest)
        self._crew: Crew | None = None

    @classmethod
    def of(cls, adjacency: Adjacency) -> Self:
        offsets, sources, weights = adjacency.csc
        return cls(offsets, sources, _normalized(adjacency, sources, weights), adjacency.largest_in_degree)

    def __call__(self, vector: Floats) -> Floats:
        if self._crew is None:
            threads = this_machine().threads if self._sources.size >= THREADED_FROM else 1
            self._crew = Crew(equal_work(self._offsets.view(np.int64), 1, 4 * threads), threads)
        sums = np.empty(self._offsets.size - 1)

        def add(first: int, last: int) -> None:
            self._kernel(first, last, self._offsets, self._sources, self._weights, self._fan, vector, sums)

        self._crew.work(add)
        return sums


def _normalized(adjacency: Adjacency, sources: Integers, weights: Floats | None) -> Floats | None:
    """Divide each weight by the out-weight of its source; 0 where that is 0, which makes the source dangling.

    Never x / W instead: 1 / W overflows where weights are denormal.
    """
    if weights is None:
        return None
    out_weight = adjacency.out_weight.take(sources)
    return np.divide(weights, out_weight, out=np.zeros_like(weights), where=out_weight > 0)
