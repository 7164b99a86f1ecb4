"""Edges stay packed in GPU memory, in 1 to 4 bytes each, and are decoded in every iteration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from prplugin.cpu.packing import PIECE
from prplugin.errors import InvalidEdgesError
from prplugin.gpu import cupy, runtime
from prplugin.graph.edges import Edges, Problem, rows_of
from prplugin.graph.memory import Counts, Memory, Rate
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.methods.engines.packed_rows import COLUMNS, GROUP, Rows, row_begins, too_many
from prplugin.methods.engines.packed_step import PackedStep, PieceSums
from prplugin.types.array_module import Booleans, Scalar
from prplugin.types.arrays import Array, address_of, namespace, to_device, to_host, to_memory
from prplugin.types.edges import Csc, Floats, Integers, PackedPart, PackedParts, PackedRows, bits_of

name = "packed"
runs_on = "gpu"
reads = PackedParts, PackedRows, Csc

PART = 1 << 25  # edges that are sorted and packed at a time; a longer row is a part of its own

PART_BYTES = 24
"""Bytes per edge of a part while it is packed: sources, targets, keys, and a copy of these for the sort."""

EDGE_BYTES = 2
"""Bytes per packed edge, about: 1 on web graphs, 2.7 on random ones; docs/decisions/0015-edge-compression.md."""

memory = Memory(
    layout_in="edges",
    step=Rate(EDGE_BYTES, 8, 44),  # as of any `DeviceStep`; ranks in the given order, and both permutations
    float64=Rate(vertex=4),
    more=gpu_pull.MEMORY.more,
    preparing=Rate(PART_BYTES, 16.5),  # normalized weights and their copy; look-back states
    preparing_edges=PART,
    packs=True,
)


def unavailable_reason(adjacency: Edges | Counts | None, machine: Machine) -> str | None:
    """Return why the packed edges, the vectors and a part of the edges do not fit on the GPU, or None."""
    if adjacency is not None and (reason := too_many(adjacency.n)):
        return reason
    return gpu_pull.unavailable_reason(memory, adjacency, machine)


cost = gpu_pull.cost_of(85e-6, edge=8.5e-12, weighted_edge=2.5e-11, vertex=3e-11, layout=5e-3, layout_edge=2.5e-10)
"""Seconds of a ranking, with the sort and the packing, as measured in docs/decisions/0021-packed-edges.md."""


def prepare(problem: Problem, machine: Machine) -> Step:
    """Group the edges by target, sort each row by source, and pack the edges on the GPU, part by part.

    The order of the vertices is that of `prplugin.methods.engines.packed_rows.sort_key`. Edges in host memory are
    copied by part; edges that were packed when they were read stay as they are, and those packed on the host are
    copied as they are. The graph keeps the packed edges for further rankings.
    """
    adjacency = problem.adjacency
    edges = adjacency.held(PackedParts) or adjacency.kept(PackedParts)
    if edges is None:
        edges = _packed(adjacency)
        adjacency.keep(edges)
    v, w = (to_memory(vector, adjacency.memory_space) for vector in (problem.personalization, problem.dangling))
    step = PackedStep(Problem(adjacency, problem.alpha, v, w), PackedPull(edges))
    step.float32_is_faster = not adjacency.weighted  # normalized weights are stored in float64
    return step


def _packed(adjacency: Edges) -> PackedParts:
    """Return the packed edges of a graph."""
    packer = Packer(adjacency.n, weighted=adjacency.weighted, disjoint=True)
    if (packed := adjacency.held(PackedRows)) is not None:
        packer.copy(packed, adjacency.m)
        return packer.packed()
    rows = Rows(*adjacency.get(Csc)).in_packing_order(adjacency.out_weight)
    packer.order, packer.position = rows.order, rows.position
    out_weight: Floats | None = None
    if adjacency.weighted:
        out_weight = to_device(adjacency.out_weight if rows.order is None else adjacency.out_weight[rows.order])
    for sources, targets, weights in _parts(rows):
        of_edges = (
            None
            if weights is None or out_weight is None
            else gpu_pull.normalized(weights, sources, out_weight, np.float64)
        )
        del weights  # frees its memory before the sort
        packer.add(sources, targets, of_edges)
    return packer.packed()


def _parts(rows: Rows) -> Iterator[tuple[Integers, Integers, Floats | None]]:
    """Yield sources, targets and weights of whole rows on the device, about `PART` edges at a time."""
    position = None if rows.position is None else to_device(rows.position)
    xp, offsets, m = namespace(rows.sources), rows.offsets, rows.sources.size
    cuts = xp.searchsorted(offsets, xp.arange(0, m, PART, dtype=offsets.dtype))
    bounds = np.unique(np.append(to_host(cuts), rows.n))
    ends = to_host(offsets[xp.asarray(bounds)])
    for (first, last), (begin, end) in zip(pairwise(bounds.tolist()), pairwise(ends.tolist()), strict=True):
        sources = to_device(rows.sources[begin:end])
        targets = rows_of(to_device(offsets[first : last + 1] - begin), end - begin)
        targets += first
        if position is not None:
            sources, targets = position[sources], position[targets]
        yield sources, targets, None if rows.weights is None else to_device(rows.weights[begin:end])


class _Collected(NamedTuple):
    """Edges that are not packed yet."""

    keys: Integers  # target * 2**32 + source
    normalized_weights: Floats | None
    low: int  # the least source
    high: int  # the greatest


class Packer:
    """Packs edges in device memory, part by part, in any order.

    A part takes the fewest bytes if its edges have the targets, or the sources, of a short range.

    `order`, `position`: As in `prplugin.methods.engines.packed_step.ReorderedPull`.

    Parameters
    ----------
    n : int
        Number of vertices, at most 2**31.
    weighted : bool
        Whether edges have normalized weights.
    disjoint : bool
        Whether no target has edges in two parts; one launch then sums them all.
    """

    def __init__(self, n: int, *, weighted: bool = False, disjoint: bool = False) -> None:
        self.n, self.m, self.weighted, self._disjoint = n, 0, weighted, disjoint
        self.order: Integers | None = None
        self.position: Integers | None = None
        self._parts: list[PackedPart] = []
        self._largest = 0  # bytes of the largest piece
        self._collected: list[_Collected] = []
        self._arrays: list[Array] = []  # to which the table points
        self._tables: list[Integers] = []

    def packed(self) -> PackedParts:
        """Pack what is left of the collected edges, and return all."""
        self.pack()
        pieces = sum(part.pieces for part in self._parts)
        end = np.full((1, COLUMNS), pieces, np.int64)
        table: Integers = cupy.asarray(np.concatenate([*self._tables, end]))
        return PackedParts(
            self.weighted, tuple(self._parts), table, self._largest, tuple(self._arrays), self.order, self.position
        )

    def add(self, sources: Integers, targets: Integers, normalized_weights: Floats | None = None) -> None:
        """Pack edges between the given positions, arrays of int32 or int64 in device memory, in any order, as a part.

        Weights may be overwritten.

        Raises
        ------
        InvalidEdgesError
            If a position is negative or not below n.
        """
        self.collect(sources, targets, normalized_weights)
        self.pack()

    def collect(
        self,
        sources: Integers,
        targets: Integers,
        normalized_weights: Floats | None = None,
        *,
        limit: int | None = None,
    ) -> None:
        """Keep edges as `add` takes them for the next call of `pack`, in 8 bytes each, 16 with weights.

        `limit`: Number of edges that are kept at most; those kept before are packed first if there would be more.
        """
        if not sources.size:
            return
        if limit is not None and sum(part.keys.size for part in self._collected) + sources.size > limit:
            self.pack()
        low, high, least, most = (int(end) for column in (sources, targets) for end in (column.min(), column.max()))
        if min(low, least) < 0 or max(high, most) >= self.n:
            raise InvalidEdgesError(
                f"a vertex has the position {min(low, least) if min(low, least) < 0 else max(high, most):,}; positions "
                f"of {self.n:,} vertices are 0 to {self.n - 1:,}."
            )
        keys = targets.astype(np.uint64)
        keys <<= np.uint64(32)
        keys |= sources.view(f"u{sources.itemsize}")
        self._collected.append(_Collected(keys, normalized_weights, low, high))
        self.m += sources.size

    def pack(self) -> None:
        """Sort and pack the collected edges, as a part. Peak memory is 16 bytes per edge, 32 with weights."""
        if not self._collected:
            return
        low, high = min(part.low for part in self._collected), max(part.high for part in self._collected)
        keys = _joined([part.keys for part in self._collected])
        weights = (
            _joined([of for part in self._collected if (of := part.normalized_weights) is not None])
            if self.weighted
            else None
        )
        self._collected = []  # frees its memory before the sort
        if weights is None:
            keys.sort()
        else:
            from prplugin.gpu.sort import sorted_by  # imports CuPy

            keys, weights = sorted_by(keys, 32 + bits_of(self.n), weights, owned=True)
            self._arrays.append(weights)
        base, bits = (0, bits_of(self.n)) if self._disjoint else (low, bits_of(high - low + 1))
        m, pieces = keys.size, -(-keys.size // PIECE)
        found = cupy.zeros((3, pieces), np.int64)
        kernel = runtime.kernel("methods/packed.cu", "pack")
        common = m, np.int32(bits), np.uint32(base), keys
        threads = PIECE // GROUP
        runtime.launch(kernel, pieces, threads, *common, None, None, found[0], found[1])
        found[2, 1:] = keys[PIECE - 1 : m - 1 : PIECE].view(np.int64) >> 32  # the target of the edge before each piece
        sizes, rows, before = found.get()
        offsets = np.cumsum(sizes) - sizes
        data: Integers = cupy.zeros(int(sizes.sum()), np.uint8)
        runtime.launch(kernel, pieces, threads, *common, cupy.asarray(offsets), data, None, None)

        firsts = np.arange(0, m, PIECE)
        if weights is not None:
            firsts += address_of(weights) // weights.itemsize
        columns = address_of(data) + offsets, sizes, firsts, rows
        self._hold(data, columns, (rows == before) & (np.arange(pieces) > 0), bits, base)

    def copy(self, packed: PackedRows, m: int) -> None:
        """Add the m edges of a graph that are packed on the host."""
        if not m:
            return
        data: Integers = cupy.asarray(packed.data)
        begins, continued = packed.begins, packed.rows < 0
        rows = np.where(continued, ~packed.rows, packed.rows)
        firsts = np.zeros_like(rows)  # only weights have any
        self.m += m
        self._hold(data, (address_of(data) + begins[:-1], np.diff(begins), firsts, rows), continued, bits_of(self.n), 0)

    def _hold(self, data: Integers, columns: tuple[Integers, ...], continued: Booleans, bits: int, base: int) -> None:
        """Keep packed edges as a part, given the first columns of the table of their pieces."""
        first = self._parts[-1].first + self._parts[-1].pieces if self._parts else 0
        start, pieces = 0 if self._disjoint else first, continued.size
        table = np.stack([*columns, first + row_begins(columns[3], continued)], axis=1)
        self._arrays.append(data)
        self._tables.append(table)
        self._parts[-1 if self._disjoint else len(self._parts) :] = [
            PackedPart(start, first + pieces - start, bits, base)
        ]
        self._largest = max(self._largest, int(columns[1].max()))


def _joined(arrays: list[NDArray[Scalar]]) -> NDArray[Scalar]:
    return arrays[0] if len(arrays) == 1 else cupy.concatenate(arrays)


class PackedPull:
    """Computes row sums from packed edges in device memory, part by part."""

    def __init__(self, edges: PackedParts) -> None:
        self._edges = edges
        self.order, self.position = edges.order, edges.position
        # A part adds its sum of a row, which is compensated, to those of the parts before.
        self.rounding_depth = gpu_pull.ROW_DEPTH + len(edges.parts)
        self._sums = PieceSums(edges.table, edges.largest, weighted=edges.weighted, parts=len(edges.parts) > 1)

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        self._sums.clear(row_sums)
        for first, count, bits, base in self._edges.parts:
            self._sums.pieces(first, count, bits, base, contributions, row_sums)
            self._sums.crossing(first, count, row_sums, contributions.dtype)

    def allocate(self, dtype: DTypeLike) -> None:
        """Do nothing: all arrays exist."""
