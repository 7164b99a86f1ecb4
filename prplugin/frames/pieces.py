"""Edges in several frames of cuDF, of which one is read at a time: a list of frames, partitions, row groups of files.

They are read twice: first for the ids, of integers, and the out-weights of the vertices, then for the edges. These are
an edge list of positions, or, if that does not fit or is too long, packed edges (`prplugin.methods.packed`).

Beside the caller's frames, device memory is bounded by the packed edges, the vectors of a ranking (132 bytes per vertex
by `prplugin.graph.memory`, where ids and out-weights take 13 per place of their range, or 60), and two pieces, each of
`PART` edges in columns of int64 and float64: 16 bytes per edge, 24 with weights. These hold, per edge,

- of `PART` that are collected, a key of 8 bytes, 16 with the weight, and as much while they are joined or sorted;
- of `READ` that have been read, 24 bytes of ids and positions, 40 with weights; and of the next `READ`, while cuDF
  reads them, about 60, or 90: pages as stored, decompressed pages, and columns. A longer row group is read at once;
- or of `PART // 2` in a frame in device memory, 8 bytes of positions, and up to 16 where ids are cast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted
from prplugin.frames.columns import ColumnInfo, Columns, Frame
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.gpu import cupy, runtime
from prplugin.options import EdgeOptions
from prplugin.types.edges import MAX_NARROW, Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    from prplugin.frames.partitions import Partitions

PART = 1 << 27
"""Most edges that are sorted and packed at a time."""

READ = PART >> 3
"""Most edges that are read from files at a time; a longer row group is read at once."""

SORTED = 1 << 24
"""Edges that are sorted by target, as packed edges are, to see whether their sources are scattered."""

EDGE_BYTES, WEIGHT_BYTES = 33, 24
"""Peak memory of joining frames and factorizing their edges, per edge and per weight: see `prplugin.gpu.edges`."""

Part = tuple[Integers, Integers, Floats | None]
"""Ids of sources and destinations of some edges, and their weights."""


class Pieces(NamedTuple):
    """Edges in frames that are read one at a time, and repeatedly."""

    frames: Callable[[], Iterable[Frame]]
    columns: Columns  # of the first frame; of others by name
    rows: int
    infos: list[list[list[ColumnInfo]]] | None = None
    """Of the id columns of each frame, by endpoint; None: not known before the frames are read."""


def fit_at_once(rows: int, *, weighted: bool) -> bool:
    """Return whether one frame in device memory holds the rows, and the memory suffices to factorize it."""
    return rows <= MAX_NARROW and runtime.fits((EDGE_BYTES + WEIGHT_BYTES * weighted) * rows)


def read(pieces: Pieces, how: EdgeOptions) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints; of `how` the columns are not used. Packed edges have the reverse edges, if undirected.

    Raises InvalidEdgesError: if ids are no single column of integers.
    Raises InvalidOptionError: if edges that have to be packed have options that need all of them at once.
    """
    with ids_in("device").active():
        return _Reader(pieces, how).read()


class _Reader:
    def __init__(self, pieces: Pieces, how: EdgeOptions) -> None:
        from prplugin.frames import partitions  # imports pandas, which cuDF needs
        from prplugin.gpu.factorize import PartwiseFactorizer

        self._ids, self._parts_of, self._pieces, self._how = ids_in("device"), partitions, pieces, how
        columns, given = pieces.columns, how.vertices
        self._weighted = columns.weight is not None
        self._packs = not fit_at_once(pieces.rows, weighted=self._weighted)
        self._refuse()
        self._vertices: Any = None
        labels = columns.id_labels(vertices=given is not None)
        infos = pieces.infos or self._infos(labels)
        ends = [[info[end][0] for info in infos] for end in range(2)]
        if given is not None:
            (self._vertices,) = self._ids.id_columns(given, None, "vertices")
            ends.append([self._ids.column_info(self._vertices, "vertices")])
        self._labels = [label for (label,) in labels]
        self._type = partitions.common_type_of(ends, self._labels)
        if self._type.kind != "integer":
            raise InvalidEdgesError(
                f"{self._labels[0]} holds ids of kind {self._type.kind}: edges that do not fit in one frame on the GPU "
                "need integer ids. Factorize them first, or rank on several GPUs."
            )
        samples = [int(value) for end in ends for info in end for value in info.sample]
        self._extremes = min(samples), max(samples)
        dtype = self._type.dtype_sample.dtype
        self._dtype = dtype if dtype.itemsize >= 4 else np.dtype(np.int32)
        self._factorizer = PartwiseFactorizer(self._dtype, *self._extremes, pieces.rows)

    def _refuse(self) -> None:
        """Raise for options that packed edges do not have."""
        if len(self._pieces.columns.source) > 1:
            raise InvalidEdgesError(
                "vertices of several columns must fit in one frame on the GPU: factorize them first."
            )
        if self._pieces.columns.missing == "drop":
            raise InvalidOptionError(
                "missing='drop' needs edges that fit in one frame on the GPU: drop the rows without an endpoint first."
            )
        for name, default in (("duplicates", "sum"), ("time", None)):
            given = getattr(self._how, name)
            if given != default and (self._packs or name == "time"):
                raise InvalidOptionError(
                    f"{name}={given!r} needs all {counted(self._pieces.rows, 'edge')} in one frame on the GPU, where "
                    "they do not fit: omit it."
                )

    def read(self) -> tuple[Edges | GroupedEdges, Vertices]:
        m = 0
        for part in self._parts():
            m += part[0].size
            if self._pieces.infos is not None:
                self._refuse_other_ids(part)
            self._factorizer.add(*part)
        if self._vertices is not None:
            self._factorizer.add(self._ids.integers(self._vertices).astype(self._dtype, copy=False))
        found = self._factorizer.vertices()
        columns = self._parts_of.in_edge_types(
            self._ids, [found.astype(self._type.dtype_sample.dtype, copy=False)], [self._type]
        )
        known = Vertices(self._pieces.columns.vertex_names, columns, ["integer"], "device")
        edges = (self._packed if self._packs else self._listed)(found.size)
        if edges.m != m:
            raise InvalidEdgesError(f"the frames had {m:,} edges when read first, and {edges.m:,} when read again.")
        return edges, known

    def _listed(self, n: int) -> Edges:
        m = self._pieces.rows
        source, destination = (cupy.empty(m, np.int32) for _ in range(2))
        weights = cupy.empty(m) if self._weighted else None
        row = 0
        for *ends, part_weights in self._parts():
            rows = slice(row, row + ends[0].size)
            source[rows], destination[rows] = self._factorizer.positions_of(ends)
            if weights is not None:
                weights[rows] = part_weights
            row = rows.stop
        return Edges(source[:row], destination[:row], None if weights is None else weights[:row], n)

    def _packed(self, n: int) -> GroupedEdges:
        from prplugin.methods.engines.gpu_pull import normalized
        from prplugin.methods.engines.packed import by_key, sort_key
        from prplugin.methods.packed import PackedEdges

        factorizer, weights = self._factorizer, None
        edges = PackedEdges(n, weighted=self._weighted)
        edges.out_weight, edges.out_weight_depth = factorizer.out_weight, factorizer.rounding_depth
        of_sources = edges.out_weight
        for *ends, weights in self._parts():
            source, destination = factorizer.positions_of(ends)
            if not edges.m and source.size:
                some = slice(0, SORTED)
                by_target = source[some][cupy.lexsort(cupy.stack([source[some], destination[some]]))]
                if (key := sort_key(by_target, edges.out_weight)) is not None:
                    edges.order, edges.position = by_key(key, np.int32)
                    of_sources = edges.out_weight[edges.order]
                    factorizer.reorder(edges.position)
                    source, destination = edges.position[source], edges.position[destination]
                del by_target
            of_edges = None if weights is None else normalized(weights, source, of_sources, np.float64)
            edges.collect(source, destination, of_edges, limit=PART)
        edges.pack()
        return edges

    def _infos(self, labels: list[list[str]]) -> list[list[list[ColumnInfo]]]:
        found, row = [], 0
        for number, (frame, _) in enumerate(self._frames()):
            part = self._partition(frame, number, row)
            found += part.infos(part.endpoints(), labels)
            row += len(frame)
        return found

    def _partition(self, frame: Frame, number: int, row: int) -> Partitions:
        return self._parts_of.Partitions(self._ids, [frame], [number], [row], self._pieces.columns)

    def _frames(self) -> Iterator[tuple[Frame, Columns]]:
        for number, frame in enumerate(self._pieces.frames()):
            yield frame, self._pieces.columns.within(list(frame), f"partition {number}")

    def _parts(self) -> Iterator[Part]:
        """Yield up to `PART // 2` edges at a time, and, if they are packed and undirected, their reverse edges."""
        ids, row = self._ids, 0
        for number, (frame, columns) in enumerate(self._frames()):
            ends = [column for (column,) in ids.endpoints_of(frame, columns)]
            for column, label in zip(ends, self._labels, strict=False):
                ids.kind_of(column, label)  # raises for nulls
            weights = self._partition(frame, number, row).weights()
            integers = [ids.integers(column) for column in ends]
            for first in range(0, len(frame), PART // 2):
                rows = slice(first, first + PART // 2)
                source, destination = (end[rows].astype(self._dtype, copy=False) for end in integers)
                part = None if weights is None else weights[rows]
                yield source, destination, part
                if self._packs and not self._how.directed:
                    other = source != destination
                    yield destination[other], source[other], None if part is None else part[other]
            row += len(frame)

    def _refuse_other_ids(self, part: Part) -> None:
        """Raise for ids outside of what a file states to be their range, in which kernels write."""
        from prplugin.gpu.factorize import extremes

        low, high = self._extremes
        least, most, _, _ = extremes(list(part[:2])) if part[0].size else (low, high, 0, 0)
        if least < low or most > high:
            raise InvalidEdgesError(
                f"a file has ids from {least:,} to {most:,}, and its statistics say {low:,} to {high:,}."
            )
