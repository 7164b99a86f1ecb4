"""Graph arrays: CSR, CSC, in-degrees and out-weights, each built on first use; and edges of integer ids."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from prplugin.cpu import library, packing, sorting
from prplugin.cpu.sorting import factorize_sorted, offsets_of, stable_order
from prplugin.cpu.sums import GroupSums
from prplugin.machine import this_machine
from prplugin.types.arrays import MemorySpace, namespace, synchronize, to_host, to_memory
from prplugin.types.edges import (
    ANY,
    Compressed,
    Coo,
    Floats,
    Grouped,
    Integers,
    PackedRows,
    index_dtype,
    offset_dtype,
)

SAMPLED_FROM = 1 << 25
"""Number of edges from which `Edges.spread` is sampled; on smaller graphs this takes longer than it may save."""

SAMPLES, SAMPLE_EDGES = 4, 2048
"""Number of samples of consecutive in-edges, and edges per sample."""

NEAR, NEAR_SAMPLES = 1 << 16, 4096
"""Distance between the positions of near endpoints, and number of edges sampled by `_is_local`."""

NEIGHBORS = 8
"""Vertices whose float32 contributions are in the same sector of 32 bytes, the unit of memory access of a GPU."""

CHUNK = 1 << 16
"""Edges at a time, so that temporary arrays stay in the cache."""


class Edges:
    """A directed multigraph on vertices 0..n-1.

    `symmetric`: Whether the reverse of each edge is an edge as well, so that out-degrees are in-degrees.
    """

    product: Any = None
    """Cache of `prplugin.methods.engines.host_step` between rankings."""

    layout: tuple[str, Any] | None = None
    """Name of a method, and the layout that it keeps in GPU memory between rankings, until another method ranks."""

    def __init__(self, edges: Coo | Grouped, *, symmetric: bool = False) -> None:
        self.edges, self.symmetric = edges, symmetric
        self.tuned: dict[Any, Any] = {}  # what methods have found out by measurement, by method and options
        self.n, self.m = edges.n, edges.m
        self.weighted = edges.weights is not None
        self.memory_space: MemorySpace = edges.memory_space
        self.packed_only = edges.packed_only

    @classmethod
    def of(cls, compressed: Compressed, *, by_target: bool, symmetric: bool = False, **options: Any) -> Self:
        """Return the graph of a valid CSR or, with `by_target`, CSC, without a copy; `options` are those of `Coo`."""
        offsets, members, weights = compressed
        groups = rows_of(offsets, members.size)
        source, destination = (members, groups) if by_target else (groups, members)
        adjacency = cls(Coo(source, destination, weights, offsets.size - 1, **options), symmetric=symmetric)
        for layout in ("csr", "csc") if symmetric else ("csc",) if by_target else ("csr",):
            setattr(adjacency, layout, compressed)
        synchronize(adjacency.memory_space)
        return adjacency

    @classmethod
    def of_in_edges(
        cls, in_edges: Compressed, out_weight: Floats, out_weight_depth: int = 0, extent: tuple[float, float] = ANY
    ) -> Self:
        """Return the graph of a valid CSC and its out-weights, without a copy."""
        edge_list = partial(endpoints_by_target, in_edges.offsets, in_edges.indices)
        return cls(Grouped((*in_edges,), out_weight, edge_list, out_weight_depth, extent))

    def layout_of(self, method: str) -> Any:
        """Return the layout that a method has kept, or None."""
        kept = self.layout  # another thread may clear it
        return kept[1] if kept is not None and kept[0] == method else None

    def on(self, memory_space: MemorySpace) -> Edges:
        """Return the same graph in "host" or "device" memory; a copy is cached."""
        return self if memory_space == self.memory_space else self._other_memory

    @property
    def spilled(self) -> bool:
        """Return whether the edges were moved to the host because their frame's GPU lacks memory for them."""
        return self.edges.spilled

    @property
    def gpu(self) -> Any:
        """CuPy device that holds the graph or its copy, a context manager; None if neither is on a GPU."""
        held = self if self.memory_space == "device" else self.__dict__.get("_other_memory")
        return None if held is None else held.edges.gpu

    @cached_property
    def _other_memory(self) -> Edges:
        memory_space: MemorySpace = "device" if self.memory_space == "host" else "host"
        edges = self.edges
        if isinstance(edges, Grouped):
            offsets, sources, weights = edges.in_edges
            dtype = np.dtype(np.int64) if memory_space == "host" else offset_dtype(self.m)
            offsets, sources, weights, out_weight = (
                to_memory(array, memory_space)
                for array in (offsets.astype(dtype, copy=False), sources, weights, self.out_weight)
            )
            in_edges = Compressed(offsets, sources, weights)
            copy = Edges.of_in_edges(in_edges, out_weight, self.out_weight_depth, edges.extent)
        else:
            source, destination, weights = (
                to_memory(array, memory_space) for array in (edges.source, edges.destination, edges.weights)
            )
            copy = Edges(Coo(source, destination, weights, self.n, edges.extent))
            if self.weighted:
                # Copied, since a sum near the maximum of float64 may overflow in another order of additions.
                copy.set_out_weight(to_memory(self.out_weight, memory_space), self.out_weight_depth)
        synchronize(memory_space)
        return copy

    @cached_property
    def csr(self) -> Compressed:
        """Out-edges by source."""
        return _compress(self.edges.source, self.edges.destination, self.edges.weights, self.n)

    @cached_property
    def csc(self) -> Compressed:
        """In-edges by target: entries of row i are the sources of the edges to vertex i."""
        if isinstance(self.edges, Grouped):
            return Compressed(*self.edges.in_edges)
        return _compress(self.edges.destination, self.edges.source, self.edges.weights, self.n)

    @cached_property
    def normalized_weights(self) -> Floats | None:
        """Normalized weights w / W of the CSC entries on the host; None for unweighted graphs."""
        _, sources, weights = self.csc
        return None if weights is None else normalized_weights(weights, sources, self.out_weight)

    @cached_property
    def row_order(self) -> Integers | None:
        """Order in which the compiled kernels sum the rows of the CSC on the host, or None: see `prplugin.cpu.pull`."""
        from prplugin.cpu.pull import ORDERED_EDGES, order_rows

        if self.weighted or self.m not in ORDERED_EDGES:
            return None
        return order_rows(self.csc.offsets, this_machine().threads_for(self.m))

    @cached_property
    def inverse_out_weight(self) -> Floats:
        """Factor of the ranks on the host in contributions: see `inverse_out_weight`."""
        return inverse_out_weight(self.out_weight, weighted=self.weighted)

    @cached_property
    def largest_in_degree(self) -> int:
        """Largest in-degree."""
        offsets = self.csc.offsets
        return int((offsets[1:] - offsets[:-1]).max()) if self.n else 0

    @cached_property
    def spread(self) -> float:
        """`sectors_per_edge` of a large graph on the GPU that has memory for its in-edges; otherwise 1."""
        if self.memory_space == "host" or self.m < SAMPLED_FROM or self.packed_only or self.edges.blocks is not None:
            return 1.0
        with suppress(MemoryError):
            if "csc" in vars(self) or isinstance(self.edges, Grouped) or self._is_local():
                return sectors_per_edge(self.csc.indices)
        return 1.0

    def _is_local(self) -> bool:
        """Return whether most of the edges, by a sample of a list of edges, have near endpoints."""
        step = max(1, self.m // NEAR_SAMPLES)
        source, destination = (
            to_host(ends[::step]).astype(np.int64) for ends in (self.edges.source, self.edges.destination)
        )
        return bool(np.count_nonzero(np.abs(source - destination) < NEAR) > source.size / 2)

    @property
    def out_weight(self) -> Floats:
        """Sum W of the out-edge weights of each vertex: n float64, 0 for dangling vertices, infinite on overflow."""
        return self._out_weight[0].astype(np.float64, copy=False)

    @property
    def out_weight_depth(self) -> int:
        """Rounding depth of an out-weight, plus twice the depth of a weight, for w and for W."""
        return self._out_weight[1] + 2 * self.edges.roundings

    def set_out_weight(self, out_weight: Floats, rounding_depth: int) -> None:
        """Set precomputed out-weights, and their rounding depth."""
        self._out_weight = out_weight, rounding_depth

    @cached_property
    def dangling(self) -> Integers:
        """Positions of the dangling vertices."""
        out_weight = self.out_weight
        found: Integers = namespace(out_weight).flatnonzero(out_weight == 0)
        return found

    def overflowing_vertices(self) -> Integers:
        """Return the vertices whose out-weight overflows float64."""
        if not self.weighted or self.m * self.edges.extent[1] <= 2.0**1023:
            return np.empty(0, np.int64)  # m times the largest weight does not overflow
        found: Integers = namespace(self.out_weight).flatnonzero(~np.isfinite(self.out_weight))
        return found

    @cached_property
    def _out_weight(self) -> tuple[Floats, int]:
        if isinstance(self.edges, Grouped):
            return self.edges.out_weight, self.edges.out_weight_depth
        if self.symmetric and not self.weighted and "csc" in vars(self):
            offsets = self.csc.offsets
            found: tuple[Floats, int] = namespace(offsets).subtract(offsets[1:], offsets[:-1], dtype=np.float64), 0
        else:
            found = sum_out_weight(self.edges.source, self.edges.weights, self.n, self.edges.extent)
        synchronize(self.memory_space)
        return found


def sum_out_weight(source: Integers, weights: Floats | None, n: int, extent: tuple[float, float]) -> tuple[Floats, int]:
    """Return the out-weight of each vertex, or its out-degree without weights, and the rounding depth of the sums."""
    if weights is None:
        return group_sizes(source, n).astype(np.float64), 0
    if namespace(source) is not np:
        from prplugin.gpu import group  # imports CuPy, which holds the edges

        return group.sums_by(source, weights, n, extent)
    if library.is_available():
        from prplugin.cpu import compensated

        return compensated.compensated_sums(source, weights, n)
    sums = GroupSums(source, n)
    return sums(weights), sums.depth


def _compress(rows: Integers, columns: Integers, weights: Floats | None, n: int) -> Compressed:
    """Group edges by row with a stable counting sort, which keeps the order of the frame within a row."""
    if namespace(rows) is not np:
        from prplugin.gpu import group  # imports CuPy, which holds the edges

        compressed = Compressed(*group.grouped(rows, columns, weights, n))
        synchronize("device")
        return compressed
    if library.is_available():
        from prplugin.cpu.group import grouped

        return Compressed(*grouped(rows, columns, weights, n, this_machine().threads_for(rows.size)))
    order = stable_order(rows)
    offsets = offsets_of(group_sizes(rows, n))
    return Compressed(offsets, columns[order], None if weights is None else weights[order])


def group_sizes(groups: Integers, n: int) -> Integers:
    """Count the entries of each of n groups, in an integer type that holds the number of entries.

    `cupy.bincount` is not used: it takes about 3 kB per group, for a histogram per multiprocessor.
    """
    if namespace(groups) is np:
        if not library.is_available():
            return np.bincount(groups, minlength=n)
        from prplugin.cpu.group import degrees

        return degrees(groups, n, this_machine().threads_for(groups.size))
    from prplugin.gpu import group  # imports CuPy, which holds the groups

    return group.degrees(groups, n)


def rows_of(offsets: Integers, m: int) -> Integers:
    """Return the row of each of the m entries of a CSR or CSC, in the order of the entries."""
    if namespace(offsets) is np:
        return sorting.rows_of(offsets)
    from prplugin.gpu import group  # imports CuPy, which holds the offsets

    return group.groups_of(offsets, m, index_dtype(offsets.size - 1))


def endpoints_by_target(offsets: Integers, sources: Integers) -> tuple[Integers, Integers]:
    """Return sources and targets of the edges of a CSC, in the order of its entries."""
    return sources, rows_of(offsets, sources.size)


class PackedInEdges(Grouped):
    """Unweighted edges by target that are packed; `in_edges` are unpacked on first access, in 4 bytes per edge.

    `out_degree`: Array of n counts.
    """

    def __init__(self, packed: PackedRows, out_degree: Integers, m: int) -> None:
        nothing: Any = None, out_degree[:0], None
        super().__init__(nothing, out_degree, lambda: endpoints_by_target(*self.in_edges[:2]))
        self.packed_rows, self.m = packed, m
        del self.in_edges

    @cached_property
    def in_edges(self) -> Any:  # type: ignore[override]  # an attribute of other edges
        """Offsets and sources of the CSC layout, and no weights."""
        assert self.packed_rows is not None
        return *packing.unpack(self.packed_rows, self.n, self.m, this_machine().threads_for(self.m)), None


def sectors_per_edge(sources: Integers) -> float:
    """Return how many sectors of contributions consecutive in-edges with these sources read per edge, from samples.

    It is below 0.3 on web graphs in the order of a crawl and on grids, and near 1 where sources are random.
    """
    samples = sources[: sources.size // SAMPLES * SAMPLES].reshape(SAMPLES, -1)[:, :SAMPLE_EDGES]
    sectors = np.sort(to_host(samples) // NEIGHBORS)
    return float(1 + np.count_nonzero(np.diff(sectors), axis=1).mean()) / float(samples.shape[1])


def inverse_out_weight(out_weight: Floats, *, weighted: bool) -> Floats:
    """Return 1 / W of each vertex, 0 for dangling ones.

    For weighted graphs it returns 1 instead of 1 / W: edges carry normalized weights w / W, as 1 / W overflows for
    subnormal W.
    """
    not_dangling = out_weight > 0
    if weighted:
        return not_dangling.astype(np.float64)
    return np.divide(1.0, out_weight, out=np.zeros(out_weight.size), where=not_dangling)


def normalized_weights(weights: Floats, sources: Integers, out_weight: Floats) -> Floats:
    """Return w / W for each edge, with the out-weight W of its source; 0 where W is 0 (a dangling source)."""
    normalized = np.zeros_like(weights)
    for first in range(0, weights.size, CHUNK):
        chunk = slice(first, first + CHUNK)
        of_source = out_weight.take(sources[chunk])
        np.divide(weights[chunk], of_source, out=normalized[chunk], where=of_source > 0)
    return normalized


# --- integer ids --------------------------------------------------------------------------------------------------


def edges_by_id(columns: list[Integers], *, grouped: bool, lasting: bool) -> tuple[Coo | Grouped, Integers]:
    """Factorize the endpoints of edges on the host; return unweighted edges, and ids as `factorize_ids`.

    `columns`: Sources, destinations and, optionally, more vertices, in one integer type.
    `grouped`: Whether to prefer edges grouped by target to an edge list.
    `lasting`: Whether the graph outlives the columns. If not, it may alias them.
    """
    if grouped and len(columns) == 2 and columns[0].size and library.is_available():
        from prplugin.cpu import factorize

        return factorize.edges_by_id(columns, lasting=lasting)
    codes, ids = factorize_ids(columns)
    return Coo(codes[0], codes[1], None, ids.size), ids


def factorize_ids(columns: list[Integers]) -> tuple[list[Integers], Integers]:
    """Factorize columns of ids of one integer type together; return codes of each, and the distinct ids ascending.

    Codes are of type `index_dtype(ids.size)`.
    """
    if namespace(columns[0]) is not np:
        from prplugin.gpu.factorize import factorize_ids as factorize_on_gpu  # imports CuPy, which holds the ids

        return factorize_on_gpu(columns)
    count = sum(column.size for column in columns)
    if library.is_available():
        from prplugin.cpu.factorize import factorize_ids as factorize_on_cpu

        return factorize_on_cpu(columns, this_machine().threads_for(count // 2))
    return factorize_sorted(columns, columns[0].dtype)
