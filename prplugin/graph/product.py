"""Product y = A c over the in-edges of a graph on the host, in NumPy or compiled, with bitwise equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from prplugin.cpu.normalization import normalized_weights
from prplugin.cpu.sorting import offsets_of, rows_of, stable_order
from prplugin.cpu.sums import GroupSums, fan_in_for, group_sum_depth
from prplugin.cpu.threads import Threads, equal_work
from prplugin.graph.adjacency import Adjacency
from prplugin.machine import this_machine, use_compiled
from prplugin.types.edges import Floats, GroupedEdges

MIN_COMPILED_EDGES = 1 << 12
"""Number of edges below which NumPy ranks a graph once as fast as with the compiled product."""


MAX_SORTED_EDGES = 1 << 22
"""Number of edges up to which sorting the rows by length takes less time than it saves."""

Product: TypeAlias = Callable[[Floats], Floats]


def product_of(adjacency: Adjacency) -> tuple[Product, int]:
    """Return the product of a graph on the host, a function of a vector, and its rounding depth.

    It returns for each vertex the sum of ``vector[source]``, in weighted graphs times the normalized weight w / W, over
    its in-edges. The graph caches its arrays. Each ranking gets its own function, with its own buffer and threads.
    """
    kind = _CompiledRows if use_compiled(adjacency.m, MIN_COMPILED_EDGES) else _EdgeList
    if not isinstance(adjacency.product, kind):
        adjacency.product = kind(adjacency)
    return adjacency.product.function(), adjacency.product.depth


class _EdgeList:
    """Product in NumPy: gather one term per edge, and sum the terms by target with `numpy.bincount`, without a sort."""

    def __init__(self, adjacency: Adjacency) -> None:
        if isinstance(adjacency.edges, GroupedEdges) or "csc" in adjacency.__dict__:
            offsets, sources, weights = adjacency.csc
            targets = rows_of(offsets)
        else:  # in-edges of a target have the same order as in the CSC, so sums have the same bits
            sources, targets, weights = adjacency.edges.source, adjacency.edges.destination, adjacency.edges.weights
        # Ranks are not divided by W instead: rank / W may overflow if weights are denormal.
        self._weights = None if weights is None else normalized_weights(weights, sources, adjacency.out_weight)
        self._sources = sources.astype(np.intp, copy=False)  # else each `take` would convert them
        self._sums = GroupSums(targets, adjacency.n)
        self.depth = self._sums.depth

    def function(self) -> Product:
        sources, weights, sums = self._sources, self._weights, self._sums
        buffer = np.empty(sources.size)

        def product(vector: Floats) -> Floats:
            # All positions are valid. Mode "clip" writes to the array directly, while "raise" uses a buffer.
            terms = vector.take(sources, None, buffer, "clip")
            if weights is not None:
                terms *= weights
            return sums(terms)

        return product


class _CompiledRows:
    """Compiled product over the rows of the CSC, with the order of additions of `GroupSums`.

    Up to `MAX_SORTED_EDGES`, rows are in ascending order of length. The processor then predicts where a row ends: short
    rows take half the time.
    """

    def __init__(self, adjacency: Adjacency) -> None:
        from prplugin.cpu import pull_kernels  # imports Numba

        offsets, sources, weights = adjacency.csc
        if sources.size > MAX_SORTED_EDGES:
            vertices, weights = np.arange(adjacency.n), adjacency.normalized_weights
        else:
            begins, lengths = offsets, np.diff(offsets)
            vertices = stable_order(lengths)
            lengths = lengths[vertices]
            offsets = offsets_of(lengths)
            edges = np.repeat(begins[vertices] - offsets[:-1], lengths)
            edges += np.arange(edges.size)
            sources = sources[edges]
            out_weight = adjacency.out_weight
            weights = None if weights is None else normalized_weights(weights[edges], sources, out_weight)
        self._kernel, self._n = pull_kernels.row_sums, vertices.size
        fan_in = np.uint64(fan_in_for(adjacency.largest_in_degree))
        self._offsets, sources = pull_kernels.as_unsigned(offsets, sources)
        self._rows = self._offsets, sources, weights, fan_in, vertices.view(np.uint64)
        self.depth = group_sum_depth(adjacency.largest_in_degree)
        self._threads = this_machine().threads_for(sources.size)

    def function(self) -> Product:
        kernel, n, rows = self._kernel, self._n, self._rows
        if self._threads > 1:
            pool, pieces = Threads(self._threads), equal_work(self._offsets, 1, 4 * self._threads)

        def product(vector: Floats) -> Floats:
            sums = np.empty(n)
            if self._threads == 1:
                kernel(0, n, *rows, vector, sums)
            else:
                pool.for_each(pieces, lambda first, last: kernel(first, last, *rows, vector, sums))
            return sums

        return product
