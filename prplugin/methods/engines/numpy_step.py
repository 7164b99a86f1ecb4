"""Shared parts of steps on the host in NumPy: the product over the in-edges, and Anderson mixing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from prplugin.cpu.sorting import rows_of
from prplugin.cpu.sums import GroupSums, total
from prplugin.graph.edges import normalized_weights
from prplugin.methods.base import Array, Edges, Floats, Step
from prplugin.types.edges import Coo, Csc

# Entries per chunk of a vector: few enough that no BLAS splits a dot product among threads, and that all rows stay in
# the cache.
CHUNK = 8192


class HostStep(Step):
    """A step whose ranks are a NumPy array, or this process's part of them."""

    keeps_history = True

    def history(self, rows: int) -> Array:
        return np.empty((rows, *self.ranks().shape), np.float32)

    def products(self, moves: Array, rows: list[int]) -> Floats:
        n, k = moves.shape[1], len(rows)
        found = np.zeros((k, k))
        for first in range(0, n, CHUNK):
            part = [moves[row, first : first + CHUNK].astype(np.float64) for row in rows]
            for i in range(k):
                for j in range(i + 1):
                    found[i, j] += part[i].dot(part[j])
        return self.add(found + np.tril(found, -1).T)

    def mix(self, moves: Array, weights: Floats, jump: Array) -> None:
        ranks, used = self.ranks(), np.flatnonzero(weights)
        factors = weights[used, None].astype(np.float32)  # of a correction of the ranks, so float32 suffices
        mixed = np.empty_like(ranks)
        for first in range(0, len(ranks), CHUNK):
            here = slice(first, first + CHUNK)
            correction = (factors * moves[used, here]).sum(axis=0)
            np.maximum(ranks[here] - correction, 0.0, out=mixed[here])
        mixed /= self.add(total(mixed)) or 1.0
        np.subtract(mixed, ranks, out=jump, casting="same_kind")
        self.start(mixed)


# --- product y = A c over the in-edges --------------------------------------------------------------------------------


Product: TypeAlias = Callable[[Floats], Floats]


def product_of(adjacency: Edges) -> tuple[Product, int]:
    """Return the product of a graph on the host, a function of a vector, and its rounding depth.

    It returns for each vertex the sum of ``vector[source]``, in weighted graphs times the normalized weight w / W, over
    its in-edges. The graph caches its arrays. Each ranking gets its own function, with its own buffer.
    """
    if adjacency.product is None:
        adjacency.product = _GatherProduct(adjacency)
    return partial(adjacency.product, np.empty(adjacency.m)), adjacency.product.depth


class _GatherProduct:
    """Product in NumPy: gather one term per edge, and sum the terms by target with `numpy.bincount`, without a sort."""

    def __init__(self, adjacency: Edges) -> None:
        if adjacency.given is not Coo or adjacency.held(Csc) is not None:
            offsets, sources, weights = adjacency.get(Csc)
            targets = rows_of(offsets)
        else:  # in-edges of a target have the same order as in the CSC, so sums have the same bits
            edges = adjacency.get(Coo)
            sources, targets, weights = edges.source, edges.destination, edges.weights
        # Ranks are not divided by W instead: rank / W may overflow if weights are denormal.
        self._weights = None if weights is None else normalized_weights(weights, sources, adjacency.out_weight)
        self._sources = sources.astype(np.intp, copy=False)  # else each `take` would convert them
        self._sums = GroupSums(targets, adjacency.n)
        self.depth = self._sums.depth

    def __call__(self, terms: Floats, vector: Floats) -> Floats:
        # All positions are valid. Mode "clip" writes to the array directly, while "raise" uses a buffer.
        vector.take(self._sources, None, terms, "clip")
        if self._weights is not None:
            terms *= self._weights
        return self._sums(terms)
