"""Grouping of edges by target on the CPU, from parts of the edge list that are never in memory together."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.compensated import CompensatedSums
from prplugin.cpu.memory import compiled, read_only
from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.types.edges import Floats, GroupedEdges, Integers, index_dtype


class CscBuilder:
    """Builder of a CSC layout from parts of the edge list, given the degrees of the whole list.

    Beside the result it holds a few numbers per vertex.
    """

    def __init__(self, in_degrees: Integers, out_degrees: Integers, *, weighted: bool) -> None:
        self._offsets = offsets_of(in_degrees)
        self._next = self._offsets[:-1].copy()
        n, m = in_degrees.size, int(self._offsets[-1])
        self._out_degrees = out_degrees
        self._sources = np.empty(m, index_dtype(n))
        self._weights: Floats | None = np.empty(m) if weighted else None
        self._sums = CompensatedSums(n) if weighted else None

    def add(self, source: Integers, destination: Integers, weights: Floats | None) -> None:
        """Add some edges, after those added before."""
        source, destination = read_only(source), read_only(destination)
        if self._sums is not None:
            assert weights is not None
            self._sums.add(source, weights)
            weights = read_only(weights)
        _scatter(source, destination, weights, self._next, self._sources, self._weights)

    def edges(self) -> GroupedEdges:
        """Return the grouped edges, once all have been added."""
        offsets, sources = self._offsets, self._sources
        out_weight, rounding_depth = (
            (self._out_degrees.astype(np.float64), 0) if self._sums is None else self._sums.values()
        )
        return GroupedEdges(
            (offsets, sources, self._weights), out_weight, lambda: (sources, rows_of(offsets)), rounding_depth
        )


@compiled
def _scatter(source, destination, weights, places, sources, placed_weights):
    """Write the source of each edge (and its weight, unless None) to the next free entry of its target."""
    for edge in range(source.size):
        target = np.uint64(destination[edge])
        place = np.uint64(places[target])
        places[target] += 1
        sources[place] = source[edge]
        if weights is not None:
            placed_weights[place] = weights[edge]
