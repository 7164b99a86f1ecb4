"""Product y = A c over the in-edges of a graph on the host, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from prplugin.cpu.sorting import rows_of
from prplugin.cpu.sums import GroupSums
from prplugin.graph.adjacency import Adjacency, normalized_weights
from prplugin.types.edges import Floats, GroupedEdges

Product: TypeAlias = Callable[[Floats], Floats]


def product_of(adjacency: Adjacency) -> tuple[Product, int]:
    """Return the product of a graph on the host, a function of a vector, and its rounding depth.

    It returns for each vertex the sum of ``vector[source]``, in weighted graphs times the normalized weight w / W, over
    its in-edges. The graph caches its arrays. Each ranking gets its own function, with its own buffer.
    """
    if adjacency.product is None:
        adjacency.product = _EdgeList(adjacency)
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
