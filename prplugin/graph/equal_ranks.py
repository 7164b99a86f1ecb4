"""Proofs that vertices have equal PageRank, from the edges alone.

Let R be a set of pairs of vertices such that, for each pair, v and w are equal on both vertices, and their in-edges can
be matched one to one, where matched edges have equal normalized weights and come from the same vertex or from the two
vertices of a pair in R. Then both vertices of each pair have equal ranks: the iterate x_0 = 1/n is equal on each pair,
and if x_k is, so is x_(k+1), which sums equal terms. The iterates converge to the exact ranks. Equality is transitive.
At alpha = 0 the ranks are v, and vertices of equal v have equal ranks.

The search builds R backward from the pair in question. Common in-neighbours are matched with themselves. The others
are matched in the order of their computed ranks and become pairs of R. In unweighted graphs, edges of two vertices have
equal normalized weights if the out-degrees are equal; in weighted graphs, only edges from the same vertex are matched.
The search is sound but not complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from prplugin.graph.edges import Edges
from prplugin.types.arrays import Array, namespace, to_host
from prplugin.types.edges import Csc, Floats, Integers

EXACT = 2.0**53  # above 2**53, float64 rounding makes equality inconclusive

PAIR_COST = 4_000  # fixed cost of testing a pair, in edges

MIN_PAIRS = 5_000
"""Minimum budget in pairs. The budget is the cost of one edge pass, or of this number of pairs if that is larger."""

SEARCH_DIVISOR = 8  # one search may spend the remaining budget divided by this number


class EqualRanks:
    """Union-find of vertices proved to have equal PageRank: by size, without path compression, since searches go back.

    Failed searches are not cached, since more accurate ranks may help. Weights and values are
    compared in float64.

    `read_vectors`: Called before the first search; returns v and w before normalization, which could round different
    values to equal ones: as n float64 each, or by vertex. Omits uniform ones.
    `m`: Number of edges of the whole graph, if `adjacency` is a part of it.
    `alpha`: The damping factor. At 0 edges are not compared, and `read_vectors` omits w.
    """

    def __init__(
        self, adjacency: Edges, read_vectors: Callable[[], Sequence[Floats | Mapping[int, float]]],
        m: int | None = None, *, alpha: float,
    ) -> None:  # fmt: skip
        self._adjacency, self._read_vectors, self._alpha = adjacency, read_vectors, alpha
        self._parents: dict[int, int] = {}
        self._sizes: dict[int, int] = {}  # of sets of more than one vertex, by root
        self._budget = max(adjacency.m if m is None else m, MIN_PAIRS * PAIR_COST)

    def equal(self, a: int, b: int, ranks: Floats) -> bool:
        """Return whether the ranks of two vertices are proved equal; computed ranks guide the search."""
        pending, joined = [(a, b)], []
        least = self._budget - self._budget // SEARCH_DIVISOR
        while pending:
            pair = pending.pop()
            one, other = (self._root(vertex) for vertex in pair)
            if one == other:
                continue
            if self._sizes.get(one, 1) < self._sizes.get(other, 1):
                one, other = other, one
            self._parents[other] = one
            self._sizes[one] = self._sizes.get(one, 1) + self._sizes.get(other, 1)
            joined.append(other)
            further = self._matched(*pair, ranks)
            if further is None or self._budget < least:
                for vertex in reversed(joined):
                    self._sizes[self._parents.pop(vertex)] -= self._sizes.get(vertex, 1)
                return False
            pending.extend(further)
        return True

    @cached_property
    def _out_weight(self) -> Floats:
        return self._adjacency.out_weight  # cached, since it may be a conversion of all n

    @cached_property
    def _vectors(self) -> Sequence[Floats | Mapping[int, float]]:
        return self._read_vectors()

    def _root(self, vertex: int) -> int:
        while vertex in self._parents:
            vertex = self._parents[vertex]
        return vertex

    def _matched(self, a: int, b: int, ranks: Floats) -> list[tuple[int, int]] | None:
        """Match the in-edges of two vertices; return the pairs of sources that must be equal, or None on failure."""
        rows = self._in_edges(a, b) if self._alpha else []
        if rows is None or not all(
            one == other <= EXACT for one, other in (self._at(v, [a, b]) for v in self._vectors)
        ):
            return None
        if not rows:
            return []
        (first, weights), (second, others) = rows
        self._budget -= first.size + PAIR_COST
        if weights is not None and others is not None:
            return [] if _same_edges(first, second, weights, others) else None
        if np.array_equal(first, second):  # usual where in-degrees are high, for which counting takes long
            return []
        # In-degrees are mostly small, where Python takes a tenth of NumPy's time.
        counts, other_counts = Counter(first.tolist()), Counter(second.tolist())
        differing = {
            vertex for vertex, _ in counts.items() ^ other_counts.items()
        }  # faster than subtraction of counters
        left, right = (
            self._by_degree_and_rank([v for v in differing for _ in range(more[v] - fewer[v])], ranks)
            for more, fewer in ((counts, other_counts), (other_counts, counts))
        )
        if any(one[0] != other[0] for one, other in zip(left, right, strict=True)):
            return None
        return [(one[-1], other[-1]) for one, other in zip(left, right, strict=True)]

    def _by_degree_and_rank(self, vertices: list[int], ranks: Floats) -> list[tuple[float, float, int]]:
        """Return out-degree, computed rank and position of each vertex, in ascending order."""
        if not vertices:
            return []
        return sorted(zip(self._at(self._out_weight, vertices), self._at(ranks, vertices), vertices, strict=True))

    # Workers of a cluster replace what follows: each has the edges and values of its own vertices.

    def _in_edges(self, a: int, b: int) -> list[tuple[Integers, Floats | None]] | None:
        """Return sources and weights of the in-edges of two vertices, on the host; None if their numbers differ."""
        offsets, sources, weights = self._adjacency.get(Csc)
        *begins, end, other_end = self._at(offsets, [a, b, a + 1, b + 1])
        size = end - begins[0]
        if other_end - begins[1] != size:
            return None
        runs = [slice(begin, begin + size) for begin in begins]
        return [(to_host(sources[run]), None if weights is None else to_host(weights[run])) for run in runs]

    def _at(self, array: Array | Mapping[int, float], rows: list[int]) -> list[float]:
        if isinstance(array, Mapping):
            return [array[row] for row in rows]
        values: list[float] = to_host(array[namespace(array).asarray(rows)]).tolist()
        return values


def _same_edges(first: Integers, second: Integers, weights: Floats, others: Floats) -> bool:
    one, other = np.lexsort((weights, first)), np.lexsort((others, second))
    return bool(
        (first[one] == second[other]).all()
        and (weights[one] == others[other]).all()
        and weights.max(initial=0.0) <= EXACT
    )
