"""The graph as arrays: compressed rows and columns, degrees and out-weights, each built when first asked for."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from prplugin.graph.arrays import Place, moved, namespace, settle
from prplugin.graph.edges import Edges, Floats, GroupedEdges, Integers, index_dtype, offset_dtype
from prplugin.graph.sums import RowSums
from prplugin.machine import COMPILED_FROM, this_machine
from prplugin.threads import Threads

__all__ = ["Adjacency", "Compressed", "ends_by_target", "group_sizes", "rows_of"]


class Compressed(NamedTuple):
    """A sparse matrix by rows (CSR) or by columns (CSC).

    Attributes
    ----------
    offsets : array of n + 1 int64
        The entries of row (column) i are ``offsets[i]:offsets[i + 1]``. On the GPU int32 where that holds m.
    indices : array of m int32, or int64 past 2**31 vertices
        The other end of each edge. Parallel edges stay apart. Those of a row keep the order of the frame; but in the
        CSR of `GroupedEdges` they come by target, and only parallel ones keep it.
    weights : array of m float64, or None
        None where every edge counts 1.
    """

    offsets: Integers
    indices: Integers
    weights: Floats | None


class Adjacency:
    """A directed multigraph on vertices 0..n-1."""

    def __init__(self, edges: Edges | GroupedEdges) -> None:
        self.edges = edges
        self.n = edges.n
        self.m = edges.m
        self.weighted = edges.weights is not None
        self.place: Place = edges.place
        self.spilled = edges.spilled

    def on(self, place: Place) -> Adjacency:
        """Give the same graph in the memory of the processor ("host") or of the GPU ("device"); copied once."""
        return self if place == self.place else self._elsewhere

    @property
    def gpu(self) -> Any:
        """The GPU that holds the graph, or its copy, as a context manager; None where none does yet."""
        held = self if self.place == "device" else self.__dict__.get("_elsewhere")
        return None if held is None else held.edges.gpu

    @cached_property
    def _elsewhere(self) -> Adjacency:
        place: Place = "device" if self.place == "host" else "host"
        if isinstance(self.edges, GroupedEdges):
            return self._grouped_elsewhere(place)
        source, destination, weights = (
            moved(array, place) for array in (self.edges.source, self.edges.destination, self.edges.weights)
        )
        there = Adjacency(Edges(source, destination, weights, self.n))
        if self.weighted:
            # The same to the bit: added up in another order, a sum at the end of the range may be past it.
            there.know_out_weight(moved(self.out_weight, place), self.out_weight_chain)
        settle(place)
        return there

    def _grouped_elsewhere(self, place: Place) -> Adjacency:
        """Copy the in-edges as they are, by target."""
        offsets, sources, weights = self.edges.in_edges  # type: ignore[union-attr]  # of grouped edges
        dtype = np.dtype(np.int64) if place == "host" else offset_dtype(self.m)
        offsets, sources, weights, out_weight = (
            moved(array, place) for array in (offsets.astype(dtype, copy=False), sources, weights, self.out_weight)
        )
        by_row = partial(ends_by_target, offsets, sources)
        there = GroupedEdges((offsets, sources, weights), out_weight, by_row, self.out_weight_chain, self.edges.extent)
        settle(place)
        return Adjacency(there)

    @cached_property
    def csr(self) -> Compressed:
        """Out-edges by source."""
        return _compress(self.edges.source, self.edges.destination, self.edges.weights, self.n)

    @cached_property
    def csc(self) -> Compressed:
        """In-edges by target: row i holds what vertex i pulls from."""
        if isinstance(self.edges, GroupedEdges):
            return Compressed(*self.edges.in_edges)
        return _compress(self.edges.destination, self.edges.source, self.edges.weights, self.n)

    @cached_property
    def largest_in_degree(self) -> int:
        """How many edges the most popular target has."""
        offsets = self.csc.offsets
        return int((offsets[1:] - offsets[:-1]).max()) if self.n else 0

    @property
    def out_weight(self) -> Floats:
        """The sum W of the weights that leave each vertex, as n float64: 0 on dangling ones, not finite past range."""
        return self._out_weight[0].astype(np.float64, copy=False)

    @property
    def out_weight_chain(self) -> int:
        """How many roundings an out-weight carries at most."""
        return self._out_weight[1]

    def know_out_weight(self, out_weight: Floats, chain: int) -> None:
        """Take out-weights that were found elsewhere, and how many roundings one carries at most."""
        self._out_weight = out_weight, chain

    def past_range(self) -> Integers:
        """Find the vertices whose out-weight is more than float64 holds."""
        if not self.weighted or self.m * self.edges.extent[1] <= 2.0**1023:
            return np.empty(0, np.int64)  # all weights together are not
        found: Integers = namespace(self.out_weight).flatnonzero(~np.isfinite(self.out_weight))
        return found

    @cached_property
    def _out_weight(self) -> tuple[Floats, int]:
        if isinstance(self.edges, GroupedEdges):
            return self.edges.out_weight, self.edges.out_weight_chain
        if self.place == "device":
            from prplugin.graph import device  # imports CuPy, which holds the edges

            if self.edges.weights is None:
                found = group_sizes(self.edges.source, self.n).astype(np.float64), 0
            else:
                found = device.sums_by(self.edges.source, self.edges.weights, self.n, self.edges.extent)
            settle("device")
            return found
        if self.edges.weights is None and self.m < COMPILED_FROM:
            return group_sizes(self.edges.source, self.n).astype(np.float64), 0  # the out-degree
        if self.edges.weights is None:
            from prplugin.graph import host_groups  # imports Numba

            degrees = host_groups.counted(self.edges.source, self.n, Threads(this_machine().threads))
            return degrees.astype(np.float64), 0
        if self.m >= COMPILED_FROM:
            from prplugin.graph import host_sums  # imports Numba

            return host_sums.compensated_sums(self.edges.source, self.edges.weights, self.n)
        offsets, _, weights = self.csr
        assert weights is not None
        sums = RowSums(offsets)
        return sums(weights), sums.chain


def _compress(rows: Integers, columns: Integers, weights: Floats | None, n: int) -> Compressed:
    """Group edges by row: a counting sort, stable in the order of the frame."""
    if namespace(rows) is not np:
        from prplugin.graph import device  # imports CuPy, which holds the edges

        compressed = Compressed(*device.grouped(rows, columns, weights, n))
        settle("device")
        return compressed
    if rows.size >= COMPILED_FROM:
        from prplugin.graph import host_groups  # imports Numba

        return Compressed(*host_groups.grouped(rows, columns, weights, n, Threads(this_machine().threads)))
    order = stable_order(rows)
    offsets = offsets_of(group_sizes(rows, n))
    return Compressed(offsets, columns[order], None if weights is None else weights[order])


def group_sizes(groups: Integers, n: int) -> Integers:
    """Count the entries of each of n groups; on the GPU int32 where that holds the count.

    There `cupy.bincount` would take some 3 kB a group, for every multiprocessor to count on its own.
    """
    if namespace(groups) is np:
        return np.bincount(groups, minlength=n)
    from prplugin.graph import device  # imports CuPy, which holds the groups

    return device.degrees(groups, n)


def rows_of(offsets: Integers, m: int) -> Integers:
    """Write the number of its row beside each of m entries."""
    xp, dtype = namespace(offsets), index_dtype(offsets.size - 1)
    if xp is np:
        rows: Integers = np.repeat(np.arange(offsets.size - 1, dtype=dtype), np.diff(offsets))
        return rows
    from prplugin.graph import device  # imports CuPy, which holds the offsets

    return device.groups_of(offsets, m, dtype)


def ends_by_target(offsets: Integers, sources: Integers) -> tuple[Integers, Integers]:
    """Give both ends of all edges in the order of their targets, which stands in for that of the rows."""
    return sources, rows_of(offsets, sources.size)


def offsets_of(counts: Integers) -> Integers:
    """Give where each group begins, and where the last one ends: n + 1 int64, for m may pass 2**31 where n does not."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def stable_order(keys: Integers) -> Integers:
    """Give the permutation that sorts small non-negative keys and keeps the order of equal ones.

    Key and position are packed into one 64-bit integer where they fit: a plain sort of those is several times faster
    than `numpy.argsort` with ``kind="stable"``.
    """
    if (xp := namespace(keys)) is not np:
        order: Integers = xp.argsort(keys, kind="stable")
        return order
    largest = int(keys.max(initial=0))
    position_bits = keys.size.bit_length()
    if not packs(largest, keys.size):
        return np.argsort(keys, kind="stable")
    packed = keys.astype(np.int64) << position_bits
    packed |= np.arange(keys.size)
    packed.sort()
    packed &= (1 << position_bits) - 1
    return packed


def packs(largest: int, count: int) -> bool:
    """Say whether a key up to `largest` and a position below `count` fit in 63 bits together."""
    return largest.bit_length() + count.bit_length() <= 63
