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
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted
from prplugin.frames.columns import ColumnInfo, Columns, Frame
from prplugin.frames.parts import EdgeList, Part, Parts, Sink, common_types, in_edge_types, integer_part, read_twice
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.gpu import cupy, runtime
from prplugin.options import EdgeOptions
from prplugin.types.edges import MAX_NARROW, Coo, Floats, Grouped, Integers

if TYPE_CHECKING:
    from prplugin.gpu.factorize import PartwiseFactorizer

PART = 1 << 27
"""Most edges that are sorted and packed at a time."""

READ = PART >> 3
"""Most edges that are read from files at a time; a longer row group is read at once."""

SORTED = 1 << 24
"""Edges that are sorted by target, as packed edges are, to see whether their sources are scattered."""

EDGE_BYTES, WEIGHT_BYTES = 33, 24
"""Peak memory of joining frames and factorizing their edges, per edge and per weight: see `prplugin.gpu.factorize`."""


def fit_at_once(rows: int, *, weighted: bool) -> bool:
    """Return whether one frame in device memory holds the rows, and the memory suffices to factorize it."""
    return rows <= MAX_NARROW and runtime.fits((EDGE_BYTES + WEIGHT_BYTES * weighted) * rows)


def read(
    frames: Callable[[], Iterable[Frame]], columns: Columns, rows: int, how: EdgeOptions,
    infos: list[list[list[ColumnInfo]]] | None = None,
) -> tuple[Coo | Grouped, Vertices]:  # fmt: skip
    """Factorize the endpoints. Packed edges have the reverse edges, if undirected.

    `frames`: Returns the frames, which are read one at a time, and repeatedly.
    `columns`: Those of the first frame, of others by name; `rows`: of all frames. Columns in `how` are not used.
    `infos`: Of the id columns of each frame, as files state them; None: not known before the frames are read.

    Raises InvalidEdgesError: if ids are no single column of integers.
    Raises InvalidOptionError: if edges that have to be packed have options that need all of them at once.
    """
    from prplugin.gpu.factorize import PartwiseFactorizer

    ids, weighted, vertices, additional = ids_in("device"), columns.weight is not None, None, None
    with ids.active():
        packs, stated = not fit_at_once(rows, weighted=weighted), infos is not None
        _refuse(columns, rows, how, packs=packs)
        labels = columns.id_labels(vertices=how.vertices is not None)
        if infos is None:
            infos = [info for part in _whole(frames, columns) for info in part.infos(part.endpoints(), labels)]
        if how.vertices is not None:
            (vertices,) = ids.id_columns(how.vertices, None, "vertices")
            additional = [[ids.column_info(vertices, "vertices")]]
        (common,) = common_types(infos, labels, additional)
        names, dtype = [label for (label,) in labels], common.dtype_sample.dtype
        if common.kind != "integer":
            raise InvalidEdgesError(
                f"{names[0]} holds ids of kind {common.kind}: edges that do not fit in one frame on the GPU need "
                "integer ids. Factorize them first, or rank on several GPUs."
            )
        wide = dtype if dtype.itemsize >= 4 else np.dtype(np.int32)
        samples = [int(value) for of_frame in (*infos, additional or []) for end in of_frame for value in end[0].sample]
        low, high = min(samples), max(samples)
        factorizer = PartwiseFactorizer(wide, low, high, rows)

        def sink_of(found: Integers, m: int) -> Sink:
            if packs:
                return _PackedEdges(factorizer, found.size, weighted=weighted)
            return EdgeList(found.size, m, weighted=weighted, xp=cupy)

        more = () if vertices is None else (ids.integers(vertices).astype(wide, copy=False),)
        parts = partial(_cut, frames, columns, names, wide, reverse=packs and not how.directed)
        check = partial(_refuse_other_ids, low=low, high=high) if stated else None
        edges, found = read_twice(parts, factorizer, sink_of, more, check)
        columns_of_ids = in_edge_types(ids, [found.astype(dtype, copy=False)], [common])
        return edges, Vertices(columns.vertex_names, columns_of_ids, ["integer"], "device")


def _refuse(columns: Columns, rows: int, how: EdgeOptions, *, packs: bool) -> None:
    """Raise for options that packed edges do not have."""
    if len(columns.source) > 1:
        raise InvalidEdgesError("vertices of several columns must fit in one frame on the GPU: factorize them first.")
    if columns.missing == "drop":
        raise InvalidOptionError(
            "missing='drop' needs edges that fit in one frame on the GPU: drop the rows without an endpoint first."
        )
    for name, default in (("duplicates", "sum"), ("time", None)):
        given = getattr(how, name)
        if given != default and (packs or name == "time"):
            raise InvalidOptionError(
                f"{name}={given!r} needs all {counted(rows, 'edge')} in one frame on the GPU, where they do not fit: "
                "omit it."
            )


def _whole(frames: Callable[[], Iterable[Frame]], columns: Columns) -> Iterator[Parts]:
    """Yield each frame, with its place among the rows of all."""
    row = 0
    for number, frame in enumerate(frames()):
        yield Parts(ids_in("device"), [frame], [number], [row], columns)
        row += len(frame)


def _cut(
    frames: Callable[[], Iterable[Frame]],
    columns: Columns,
    labels: list[str],
    dtype: np.dtype[np.generic],
    *,
    reverse: bool,
) -> Iterator[Part]:
    """Yield up to `PART // 2` edges at a time, and, if `reverse`, their reverse edges."""
    for whole in _whole(frames, columns):
        read = partial(integer_part, whole.ids, columns=whole.own_columns[0], labels=labels, dtype=dtype)
        ((source, destination, weights, _),) = whole.map(read, whole.frames)
        for first in range(0, source.size, PART // 2):
            rows = slice(first, first + PART // 2)
            part = Part(source[rows], destination[rows], None if weights is None else weights[rows])
            yield part
            if reverse:
                other = part.source != part.destination
                weights_of_other = None if part.weights is None else part.weights[other]
                yield Part(part.destination[other], part.source[other], weights_of_other)


def _refuse_other_ids(part: Part, low: int, high: int) -> None:
    """Raise for ids outside of what a file states to be their range, in which kernels write."""
    from prplugin.gpu.factorize import extremes

    least, most, *_ = extremes([part.source, part.destination])
    if part.source.size and (least < low or most > high):
        raise InvalidEdgesError(
            f"a file has ids from {least:,} to {most:,}, and its statistics say {low:,} to {high:,}."
        )


class _PackedEdges:
    """A sink: edges that are packed as they arrive, in another order of the vertices if their sources are scattered."""

    def __init__(self, factorizer: PartwiseFactorizer, n: int, *, weighted: bool) -> None:
        from prplugin.methods.packed import Packer

        self._factorizer, self._packer = factorizer, Packer(n, weighted=weighted)
        self._out_weight = self._of_sources = factorizer.out_weight

    def add(self, source: Integers, destination: Integers, weights: Floats | None) -> None:
        """Add some edges."""
        from prplugin.methods.engines.gpu_pull import normalized
        from prplugin.methods.engines.packed_rows import by_key, sort_key

        packer = self._packer
        if not packer.m and source.size:
            some = slice(0, SORTED)
            by_target = source[some][cupy.lexsort(cupy.stack([source[some], destination[some]]))]
            if (key := sort_key(by_target, self._out_weight)) is not None:
                packer.order, packer.position = by_key(key, np.int32)
                self._of_sources = self._out_weight[packer.order]
                self._factorizer.reorder(packer.position)
                source, destination = packer.position[source], packer.position[destination]
            del by_target
        of_edges = None if weights is None else normalized(weights, source, self._of_sources, np.float64)
        packer.collect(source, destination, of_edges, limit=PART)

    def edges(self) -> Grouped:
        """Return the edges, once all have been added."""
        return Grouped(self._packer.packed(), self._out_weight, self._packer.m, None, self._factorizer.rounding_depth)
