"""Which vertices have equal PageRank, proved from the edges alone.

Let R be a set of pairs of vertices, such that the in-edges of the two of each pair can be matched one to one: matched
edges carry equal shares, and come from one vertex or from two that are in R; and v and w are the same on both. Take
x_0 = 1/n. If an iterate of G is the same on both of each pair, so is the next one, for it adds up the same terms. So
all are, and the exact ranks, to which they converge: every pair in R is equal, and so are pairs that chains of them
join.

Such an R is sought backward from the pair in question: in-neighbours that both have are matched with themselves, and
the others, by their computed ranks, become pairs of R. Shares of two vertices are equal if their out-degrees are; of
graphs with weights, only edges from one vertex are compared. Whatever is found is a proof; not everything is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prplugin.graph.adjacency import Adjacency
from prplugin.types.arrays import moved, namespace
from prplugin.types.edges import Floats, Integers

__all__ = ["Twins"]

EXACT = 2.0**53
"""Larger integers may have been rounded on the way in: numbers that are equal here were perhaps not so there."""

PAIR = 4_000
"""Edges that cost as much as what a pair takes besides them, about."""

PAIRS = 5_000
"""Pairs that may be looked at on any graph: more, where that takes no longer than a pass over the edges."""

SHARE = 8
"""No search takes a larger part of what is left of them than one in so many."""


class Twins:
    """Finds proofs that vertices have equal PageRank; keeps what it found.

    What failed is tried again: computed ranks may have become a better hint.

    `vectors` (sequence of arrays of n float64): What v and w were divided from, where they are not uniform.

    Notes
    -----
    Weights and values are compared in float64. Of numbers of more digits, such as decimals, only those count.
    """

    def __init__(self, adjacency: Adjacency, vectors: Sequence[Floats]) -> None:
        self._adjacency, self._vectors = adjacency, vectors
        self._parents: dict[int, int] = {}
        self._allowance = max(adjacency.m, PAIRS * PAIR)

    def equal(self, a: int, b: int, ranks: Floats) -> bool:
        """Say whether the ranks of two vertices are proved equal.

        `ranks` (array of n float64): Computed ones, from either side, which hint at what is equal to what.
        """
        pending, joined = [(a, b)], []
        least = self._allowance - self._allowance // SHARE
        while pending:
            pair = pending.pop()
            one, other = (self._root(vertex) for vertex in pair)
            if one == other:
                continue
            self._parents[other] = one
            joined.append(other)
            further = self._matched(*pair, ranks)
            if further is None or self._allowance < least:
                for vertex in joined:
                    del self._parents[vertex]
                return False
            pending.extend(further)
        return True

    def _root(self, vertex: int) -> int:
        while vertex in self._parents:
            vertex = self._parents[vertex]
        return vertex

    def _matched(self, a: int, b: int, ranks: Floats) -> list[tuple[int, int]] | None:
        """Match the in-edges of two vertices; give the pairs of sources that must be equal, None if it fails."""
        offsets, sources, weights = self._adjacency.csc
        *begins, end, other_end = self._at(offsets, np.array([a, b, a + 1, b + 1])).tolist()
        size = end - begins[0]
        if other_end - begins[1] != size or not self._treated_alike(a, b):
            return None
        self._allowance -= size + PAIR
        runs = [slice(begin, begin + size) for begin in begins]
        first, second = (moved(sources[run], "host") for run in runs)
        if weights is not None:
            return [] if _same_edges(first, second, *(moved(weights[run], "host") for run in runs)) else None
        sources, which = np.unique(np.concatenate([first, second]), return_inverse=True)
        more = np.bincount(which[: first.size], minlength=sources.size)
        more -= np.bincount(which[first.size :], minlength=sources.size)
        left = np.repeat(sources, np.maximum(more, 0)), np.repeat(sources, np.maximum(-more, 0))
        if left[0].size == 0:
            return []
        degrees, values = ([self._at(array, rows) for rows in left] for array in (self._adjacency.out_weight, ranks))
        orders = [np.lexsort(keys) for keys in zip(values, degrees, strict=True)]
        if (degrees[0][orders[0]] != degrees[1][orders[1]]).any():
            return None
        return list(zip(left[0][orders[0]].tolist(), left[1][orders[1]].tolist(), strict=True))

    def _treated_alike(self, a: int, b: int) -> bool:
        return all(float(v[a]) == float(v[b]) <= EXACT for v in self._vectors)

    @staticmethod
    def _at(array: Any, rows: Integers) -> Any:
        return moved(array[namespace(array).asarray(rows)], "host")


def _same_edges(first: Integers, second: Integers, weights: Floats, others: Floats) -> bool:
    one, other = np.lexsort((weights, first)), np.lexsort((others, second))
    return bool(
        (first[one] == second[other]).all()
        and (weights[one] == others[other]).all()
        and weights.max(initial=0.0) <= EXACT
    )
