"""Edges in their layouts, in-degrees and out-weights, each built on first use; the equation; edges of integer ids."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from prplugin.cpu import library, packing, sorting
from prplugin.cpu.sorting import factorize_sorted, offsets_of, stable_order
from prplugin.cpu.sums import ORDERED_EDGES, GroupSums, compensated_sums, order_rows
from prplugin.errors import MethodUnavailableError
from prplugin.machine import this_machine
from prplugin.numerics import rounding_depth
from prplugin.types.arrays import (
    Array,
    MemorySpace,
    all_to_memory,
    gpu_of,
    is_host,
    memory_space_of,
    namespace,
    synchronize,
    to_host,
    to_memory,
)
from prplugin.types.edges import (
    ANY,
    MAX_NARROW,
    Blocks,
    Compressed,
    Coo,
    Csc,
    Csr,
    Floats,
    Grouped,
    Integers,
    PackedParts,
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


Kept = TypeVar("Kept")
Layout = TypeVar("Layout", Coo, Csc, Csr, Blocks, PackedRows, PackedParts)


class Edges:
    """A directed multigraph on vertices 0..n-1, in one memory space and in one or more layouts.

    `given`: Type of the layout that it was made of.
    `symmetric`: Whether the reverse of each edge is an edge as well, so that out-degrees are in-degrees.
    `extent`, `frame_space`, `roundings`: As in `Coo`.
    """

    product: Any = None
    """Cache of `prplugin.methods.engines.numpy_step` between rankings."""

    lasting = True
    """True if several rankings may follow. `native` may then keep the edges in a second order."""

    lumped: Any = None
    """Cache of `prplugin.graph.lumping` between rankings."""

    _kept: object = None
    _step: tuple[str, Any] | None = None  # that a method has left for its next ranking, and the name of the method

    def __init__(self, edges: Coo | Grouped, *, symmetric: bool = False) -> None:
        self.n, self.m, self.symmetric = edges.n, edges.m, symmetric
        self.extent, self.roundings, self.frame_space = edges.extent, edges.roundings, edges.frame_space
        if isinstance(edges, Coo):
            layout: Coo | Csc | Blocks | PackedRows | PackedParts = edges
            array: Array = edges.source
            self.weighted = edges.weights is not None
        else:
            layout, array = edges.layout, edges.out_weight
            self.weighted = (
                layout.weights is not None
                if isinstance(layout, Csc)
                else isinstance(layout, PackedParts) and layout.weighted
            )
            self._out_weight = edges.out_weight, edges.out_weight_depth
            self._endpoints = edges.endpoints
            self._lock = Lock()
        self.tuned: dict[Any, Any] = {}  # what methods have found out by measurement, by method and options
        self.given = type(layout)
        self.layouts: dict[type, Any] = {self.given: layout}
        self._gpu = gpu_of(array)
        self.memory_space: MemorySpace = memory_space_of(array)

    @classmethod
    def of(cls, compressed: Compressed, *, by_target: bool, symmetric: bool = False, **options: Any) -> Self:
        """Return the graph of a valid CSR or, with `by_target`, CSC, without a copy; `options` are those of `Coo`."""
        offsets, members, weights = compressed
        groups = rows_of(offsets, members.size)
        source, destination = (members, groups) if by_target else (groups, members)
        edges = cls(Coo(source, destination, weights, offsets.size - 1, **options), symmetric=symmetric)
        for layout in (Csr, Csc) if symmetric else (Csc,) if by_target else (Csr,):
            edges.add(layout(*compressed))
        synchronize(edges.memory_space)
        return edges

    @classmethod
    def of_in_edges(
        cls, in_edges: Compressed, out_weight: Floats, out_weight_depth: int = 0, extent: tuple[float, float] = ANY
    ) -> Self:
        """Return the graph of a valid CSC and its out-weights, without a copy."""
        return cls(Grouped(Csc(*in_edges), out_weight, in_edges.indices.size, None, out_weight_depth, extent))

    def part(self, first: int, past: int) -> Edges:
        """Return the graph of consecutive vertices that no edge connects with others, in views of the CSC."""
        offsets, sources, weights = self.get(Csc)
        begin, end = int(offsets[first]), int(offsets[past])
        sources = (sources[begin:end] - first).astype(index_dtype(past - first), copy=False)
        csc = Csc(offsets[first : past + 1] - begin, sources, None if weights is None else weights[begin:end])
        own = self._out_weight[0][first:past]
        depth, extent = self._out_weight[1], self.extent
        part = Edges(Grouped(csc, own, end - begin, None, depth, extent, self.frame_space, self.roundings))
        part.lasting = self.lasting
        return part

    # --- layouts ---

    def get(self, layout: type[Layout]) -> Layout:
        """Return the edges in a layout; they are converted on first access, and kept in both.

        Raises MethodUnavailableError: if edges of this layout are made by a method only, or cannot be made.
        """
        found: Layout | None = self.layouts.get(layout)
        if found is None:
            if layout not in CONVERSIONS or self.given is PackedParts:
                raise MethodUnavailableError(self._refusal(layout))
            found = CONVERSIONS[layout](self)
            self.layouts[layout] = found
        return found

    def held(self, layout: type[Layout]) -> Layout | None:
        """Return the edges in a layout that they already have, or None."""
        return self.layouts.get(layout)

    def add(self, layout: Coo | Csc | Csr | PackedRows) -> None:
        """Add the same edges in another layout."""
        self.layouts[type(layout)] = layout

    def keep(self, layout: object) -> None:
        """Keep what a method has made of the edges in GPU memory, until another method ranks; None frees its memory."""
        self._kept = layout
        if layout is None:
            self._step = None

    def kept(self, layout: type[Kept]) -> Kept | None:
        """Return the layout of this type that a method has kept, or None."""
        kept = self._kept  # another thread may clear it
        return kept if isinstance(kept, layout) else None

    def keep_step(self, method: str, step: object) -> None:
        """Keep the step of a method for the next ranking, as long as no other method ranks."""
        self._step = method, step

    def has_step(self, method: str) -> bool:
        """Return whether the method has left its step."""
        return (self._step or ("", None))[0] == method

    def take_step(self, method: str) -> Any:
        """Return the step that the method has left, which belongs to the caller from now on, or None."""
        name, step = self.__dict__.pop("_step", None) or ("", None)  # at once: other threads rank too
        return step if name == method else None

    def keep_only(self, layouts: tuple[type, ...]) -> None:
        """Free the memory of what a method has kept, unless it is in one of these layouts."""
        if self._kept is not None and not isinstance(self._kept, layouts):
            self._kept = None

    def _refusal(self, layout: type) -> str:
        if self.given is not PackedParts:
            return f"edges are brought to the layout {layout.__name__} only by the method that reads it."
        return (
            f"the {self.m:,} edges were packed when they were read, since they do not fit in the GPU's memory "
            f"otherwise, or are more than {MAX_NARROW:,}: only method 'packed' ranks them, one personalization at a "
            "time, and the graph can neither be changed nor copied."
        )

    def _listed(self) -> Coo:
        """Return the list of edges; `endpoints` of an ingest is called once, as it may alter what it refers to."""
        with self._lock:
            if (found := self.held(Coo)) is None:
                csc = self.get(Csc)
                if self._endpoints is None:
                    source, destination = csc.indices, rows_of(csc.offsets, self.m)
                else:
                    source, destination = self._endpoints()
                synchronize(self.memory_space)
                found = Coo(source, destination, csc.weights, self.n, self.extent, roundings=self.roundings)
                self.layouts[Coo], self._endpoints = found, None
            return found

    def _by_source(self) -> Csr:
        edges = self.get(Coo)
        return Csr(*_compress(edges.source, edges.destination, edges.weights, self.n))

    def _by_target(self) -> Csc:
        if (packed := self.held(PackedRows)) is not None:
            return Csc(*packing.unpack(packed, self.n, self.m, this_machine().threads_for(self.m)), None)
        if (arranged := self.held(Blocks)) is not None:
            from prplugin.gpu import blocks  # imports CuPy, which holds the edges

            return blocks.in_edges(arranged, self.n, self.m)
        edges = self.get(Coo)
        return Csc(*_compress(edges.destination, edges.source, edges.weights, self.n))

    def on(self, memory_space: MemorySpace) -> Edges:
        """Return the same graph in "host" or "device" memory; a copy is cached."""
        return self if memory_space == self.memory_space else self._other_memory

    @property
    def gpu(self) -> AbstractContextManager[object] | None:
        """CuPy device that holds the graph or its copy, a context manager; None if neither is on a GPU."""
        held: Edges | None = self if self.memory_space == "device" else self.__dict__.get("_other_memory")
        return None if held is None else held._gpu

    @cached_property
    def _other_memory(self) -> Edges:
        memory_space: MemorySpace = "device" if self.memory_space == "host" else "host"
        if self.given is Coo:
            edges = self.get(Coo)
            copy = Edges(
                Coo(*all_to_memory(memory_space, edges.source, edges.destination, edges.weights), self.n, self.extent)
            )
            if self.weighted:
                # Copied, since a sum near the maximum of float64 may overflow in another order of additions.
                copy.set_out_weight(to_memory(self.out_weight, memory_space), self.out_weight_depth)
        else:
            offsets, sources, weights = self.get(Csc)
            dtype = np.dtype(np.int64) if memory_space == "host" else offset_dtype(self.m)
            offsets, sources, weights, out_weight = all_to_memory(
                memory_space, offsets.astype(dtype, copy=False), sources, weights, self.out_weight
            )
            copy = Edges.of_in_edges(
                Compressed(offsets, sources, weights), out_weight, self.out_weight_depth, self.extent
            )
        synchronize(memory_space)
        return copy

    @cached_property
    def normalized_weights(self) -> Floats | None:
        """Normalized weights w / W of the CSC entries on the host; None for unweighted graphs."""
        _, sources, weights = self.get(Csc)
        return None if weights is None else normalized_weights(weights, sources, self.out_weight)

    @cached_property
    def row_order(self) -> Integers | None:
        """Order in which the compiled kernels sum the rows of the CSC on the host, or None: see `prplugin.cpu.sums`."""
        if self.weighted or self.m not in ORDERED_EDGES:
            return None
        return order_rows(self.get(Csc).offsets, this_machine().threads_for(self.m))

    @cached_property
    def inverse_out_weight(self) -> Floats:
        """Factor of the ranks on the host in contributions: see `inverse_out_weight`."""
        return inverse_out_weight(self.out_weight, weighted=self.weighted)

    @cached_property
    def largest_in_degree(self) -> int:
        """Largest in-degree."""
        offsets = self.get(Csc).offsets
        return int((offsets[1:] - offsets[:-1]).max()) if self.n else 0

    @cached_property
    def spread(self) -> float:
        """`sectors_per_edge` of a large graph on the GPU that has memory for its in-edges; otherwise 1."""
        if self.memory_space == "host" or self.m < SAMPLED_FROM or self.given in (Blocks, PackedParts):
            return 1.0
        with suppress(MemoryError):
            if self.given is not Coo or self.held(Csc) is not None or self._is_local():
                return sectors_per_edge(self.get(Csc).indices)
        return 1.0

    def _is_local(self) -> bool:
        """Return whether most of the edges, by a sample of a list of edges, have near endpoints."""
        step, edges = max(1, self.m // NEAR_SAMPLES), self.get(Coo)
        source, destination = (to_host(ends[::step]).astype(np.int64) for ends in (edges.source, edges.destination))
        return bool(np.count_nonzero(np.abs(source - destination) < NEAR) > source.size / 2)

    @property
    def out_weight(self) -> Floats:
        """Sum W of the out-edge weights of each vertex: n float64, 0 for dangling vertices, infinite on overflow."""
        return self._out_weight[0].astype(np.float64, copy=False)

    @property
    def out_weight_depth(self) -> int:
        """Rounding depth of an out-weight, plus twice the depth of a weight, for w and for W."""
        return self._out_weight[1] + 2 * self.roundings

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
        if not self.weighted or self.m * self.extent[1] <= 2.0**1023:
            return np.empty(0, np.int64)  # m times the largest weight does not overflow
        found: Integers = namespace(self.out_weight).flatnonzero(~np.isfinite(self.out_weight))
        return found

    @cached_property
    def _out_weight(self) -> tuple[Floats | Integers, int]:  # given with `Grouped`
        csc, edges = self.held(Csc), self.get(Coo)
        if self.symmetric and not self.weighted and csc is not None:
            offsets = csc.offsets
            found: tuple[Floats, int] = namespace(offsets).subtract(offsets[1:], offsets[:-1], dtype=np.float64), 0
        else:
            found = sum_out_weight(edges.source, edges.weights, self.n, self.extent)
        synchronize(self.memory_space)
        return found


CONVERSIONS: dict[type, Callable[[Edges], Any]] = {Coo: Edges._listed, Csr: Edges._by_source, Csc: Edges._by_target}
"""Layouts to which edges of any other are converted. Other layouts are made by an ingest or by a method."""


class Problem(NamedTuple):
    """The equation x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v, with graph and vectors in one memory space."""

    adjacency: Edges  # P: row u holds the out-edge weights of u, divided by their sum
    alpha: float  # damping, in [0, 1)
    personalization: Floats | None = None  # v: n float64 with sum 1; None: uniform
    dangling: Floats | None = None  # w: n float64 with sum 1; None: same as v

    def on(self, memory_space: MemorySpace) -> Problem:
        """Return the same equation in "host" or "device" memory."""
        if memory_space == self.adjacency.memory_space:
            return self
        v, w = (to_memory(vector, memory_space) for vector in (self.personalization, self.dangling))
        return self._replace(adjacency=self.adjacency.on(memory_space), personalization=v, dangling=w)

    @property
    def vector_depth(self) -> int:
        """Rounding depth of an entry of v or w: conversions of the value and of those of the sum, sum, and quotient."""
        return rounding_depth(self.adjacency.n) + 3


class PartOfProblem(Problem):
    """The equation of a group of vertices, with its part of a personalization, divided by the sum of that again."""

    @property
    def vector_depth(self) -> int:
        """Rounding depth of an entry: its own roundings before the second sum, those of their mean, and a quotient."""
        return super().vector_depth + 4


def sum_out_weight(source: Integers, weights: Floats | None, n: int, extent: tuple[float, float]) -> tuple[Floats, int]:
    """Return the out-weight of each vertex, or its out-degree without weights, and the rounding depth of the sums."""
    if weights is None:
        return group_sizes(source, n).astype(np.float64), 0
    if not is_host(source):
        from prplugin.gpu import group  # imports CuPy, which holds the edges

        return group.sums_by(source, weights, n, extent)
    if library.is_available():
        return compensated_sums(source, weights, n)
    sums = GroupSums(source, n)
    return sums(weights), sums.depth


def _compress(rows: Integers, columns: Integers, weights: Floats | None, n: int) -> Compressed:
    """Group edges by row with a stable counting sort, which keeps the order of the frame within a row."""
    if not is_host(rows):
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
    if is_host(groups):
        if not library.is_available():
            return np.bincount(groups, minlength=n)
        from prplugin.cpu.group import degrees

        return degrees(groups, n, this_machine().threads_for(groups.size))
    from prplugin.gpu import group  # imports CuPy, which holds the groups

    return group.degrees(groups, n)


def rows_of(offsets: Integers, m: int) -> Integers:
    """Return the row of each of the m entries of a CSR or CSC, in the order of the entries."""
    if is_host(offsets):
        return sorting.rows_of(offsets)
    from prplugin.gpu import group  # imports CuPy, which holds the offsets

    return group.groups_of(offsets, m, index_dtype(offsets.size - 1))


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
    if not is_host(columns[0]):
        from prplugin.gpu.factorize import factorize_ids as factorize_on_gpu  # imports CuPy, which holds the ids

        return factorize_on_gpu(columns)
    count = sum(column.size for column in columns)
    if library.is_available():
        from prplugin.cpu.factorize import factorize_ids as factorize_on_cpu

        return factorize_on_cpu(columns, this_machine().threads_for(count // 2))
    return factorize_sorted(columns, columns[0].dtype)
