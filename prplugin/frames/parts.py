"""One reader of edges in parts: frames of a list, partitions, pieces on the GPU, row groups of files. Imports pandas.

The ids of all parts get one type (`common_types`). Parts that are in memory are joined to one frame (`joined`), or
factorized on the workers that hold them (`prplugin.distributed`). Of others, `read_twice` holds one at a time: the
first pass collects the vertices, the second hands the positions and the weights of the edges to a sink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from prplugin.errors import InvalidEdgesError, PageRankError, merged, refusal, rows_of_frame
from prplugin.frames.columns import Column, ColumnInfo, Columns, Dtype, Frame, has_width, in_one_type, same_kind
from prplugin.frames.ids import HOST, Ids
from prplugin.frames.vertices import Vertices
from prplugin.types.arrays import to_host
from prplugin.types.edges import Coo, Floats, Grouped, Integers, index_dtype

Item = TypeVar("Item")
Result = TypeVar("Result")

Vertices_co = TypeVar("Vertices_co", covariant=True)
"""Distinct ids of one integer type, or columns of ids."""

Endpoints = list[list[Column]]
"""Source columns and destination columns, one per component of a vertex; optionally those of additional vertices."""


@dataclass(frozen=True)
class CommonType:
    """Common type of one column of the vertices, over all parts and both endpoints.

    `dtype_sample` holds at most one id, in the type in which ids are compared, and `part_types` the types of the column
    in the parts that have rows, at least one per endpoint.
    """

    kind: str
    dtype_sample: Any
    part_types: list[Dtype]


@dataclass(frozen=True)
class Parts:
    """Parts of a frame that are in memory.

    `numbers`: Their numbers in the frame, ascending; `starts`: the first row of each in it.
    `columns`: The columns of the frame; those of a part are found by name.
    `lengths`: Number of rows of each part, and `rows`: of the whole frame. Only those of workers have both.
    `kept`: The rows of each part in the frame as it was given, counted from its start, if some were dropped.
    """

    ids: Ids
    frames: list[Frame]
    numbers: list[int]
    starts: list[int]
    columns: Columns
    lengths: list[int] = field(default_factory=list)
    rows: int = 0
    kept: list[Integers] | None = None

    @cached_property
    def own_columns(self) -> list[Columns]:
        """The positions of the columns in each part."""
        pairs = zip(self.frames, self.numbers, strict=True)
        return [self.columns.within(list(frame.columns), f"partition {number}") for frame, number in pairs]

    def places_of(self, local: Integers) -> Integers:
        """Convert places in the rows of these parts to places in the frame: see `prplugin.frames.columns.places_of`."""
        begins = 2 * np.cumsum([0, *self.lengths])  # of the parts, and of the additional vertices
        shifts = np.array([*(2 * start for start in self.starts), 2 * self.rows]) - begins
        # With side="right" the last of equal begins is found: an empty part is never selected.
        places: Integers = local + shifts[np.searchsorted(begins, local, side="right") - 1]
        return places

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Apply a function to an item of each part; raise errors with the part, or with rows of the frame.

        The first error is raised, merged over all parts if it is about rows.
        """
        results, errors = [], []
        for at, (item, number, start) in enumerate(zip(items, self.numbers, self.starts, strict=True)):
            try:
                results.append(function(item))
            except PageRankError as error:
                refused = error.refused
                errors.append(
                    type(error)(f"in partition {number}: {error}")
                    if refused is None
                    else refusal(
                        type(error), replace(refused, rows=[start + self._row(at, row) for row in refused.rows])
                    )
                )
        if errors:
            raise merged(errors)
        return results

    def _row(self, part: int, row: int) -> int:
        return row if self.kept is None else int(self.kept[part][row])

    def row_numbers(self) -> Integers:
        """Return the row in the frame of each row of these parts."""
        own = [np.arange(length) for length in self.lengths] if self.kept is None else self.kept
        return np.concatenate([start + rows for start, rows in zip(self.starts, own, strict=True)])

    def endpoints(self) -> list[Endpoints]:
        """Return source and destination columns of each part."""
        return list(map(self.ids.endpoints_of, self.frames, self.own_columns))

    def infos(self, endpoints: list[Endpoints], labels: list[list[str]]) -> list[list[list[ColumnInfo]]]:
        """Return the `ColumnInfo` of the id columns of each part."""

        def infos_of(part: tuple[int, Endpoints]) -> list[list[ColumnInfo]]:
            where = f"partition {part[0]}"
            pairs = (zip(*end, strict=True) for end in zip(part[1], labels, strict=False))  # no additional vertices
            return [[self.ids.column_info(*pair)._replace(where=where) for pair in end] for end in pairs]

        return self.map(infos_of, zip(self.numbers, endpoints, strict=True))

    def concat(self, of_parts: list[Endpoints], shared: list[CommonType], labels: list[list[str]]) -> Endpoints:
        """Concatenate the columns from `endpoints`; return source columns and destination columns."""
        ids = self.ids

        def concat(columns: list[Column], common_type: CommonType, label: str) -> Column:
            if any(column.dtype != columns[0].dtype for column in columns):
                if common_type.kind == "integer":  # pandas and cuDF would convert some integers to floats
                    integers = [integers_of(ids, column, label, common_type) for column in columns]
                    return ids.as_column(ids.xp.concatenate(integers))
                return ids.as_column(ids.concatenate([ids.without_categories(column) for column in columns], label))
            return columns[0] if len(columns) == 1 else ids.concat(columns)

        return [
            [
                concat([endpoints[end][column] for endpoints in of_parts], common_type, labels[end][column])
                for column, common_type in enumerate(shared)
            ]
            for end in range(2)
        ]

    def weights(self) -> Floats | None:
        """Return the concatenated weights as float64; None for unweighted edges."""
        if self.columns.weight is None:
            return None
        weights = self.map(lambda pair: self.ids.weights_of(*pair), zip(self.frames, self.own_columns, strict=True))
        joined: Floats = weights[0] if len(weights) == 1 else self.ids.xp.concatenate(weights)
        return joined


# --- common types -----------------------------------------------------------------------------------------------------


def common_types(
    infos: list[list[list[ColumnInfo]]], labels: list[list[str]], additional: list[list[ColumnInfo]] | None = None
) -> list[CommonType]:
    """Return the common kind and type of each column of the vertices.

    `infos`: Of the columns of both endpoints, by part; `additional`: of the columns of additional vertices, by part.
    """
    shared = []
    for column, column_labels in enumerate(zip(*labels, strict=True)):
        endpoints = [[of_endpoints[end][column] for of_endpoints in infos] for end in range(2)]
        if additional is not None:
            endpoints.append([of_vertices[column] for of_vertices in additional])
        shared.append(_common_type(endpoints, list(column_labels)))
    return shared


def _common_type(endpoints: list[list[ColumnInfo]], labels: list[str]) -> CommonType:
    named = [(info, label) for end, label in zip(endpoints, labels, strict=True) for info in end]
    filled = [(info, label) for info, label in named if info.rows] or named[:1]
    part_labels = [f"{label} of {info.where} ({info.dtype})" if info.where else label for info, label in filled]
    kind = same_kind([info.kind for info, _ in filled], part_labels)
    samples = [info.sample for info, _ in filled]
    if kind == "integer":
        widths = [has_width(info.dtype) for info, _ in filled]
        common = in_one_type(samples, widths, list(dict.fromkeys(label for _, label in filled)))[0][:0]
    else:
        common = HOST.concatenate(samples, labels[0])[:1]
    part_types = [info.dtype for end in endpoints for info in ([info for info in end if info.rows] or end[:1])]
    return CommonType(kind, common, part_types)


def integers_of(ids: Ids, column: Column, label: str, shared: CommonType) -> Integers:
    """Return integer ids as an array of the common type."""
    return ids.integers(column, label).astype(shared.dtype_sample.dtype, copy=False)


def in_edge_types(ids: Ids, arrays: list[Column], shared: list[CommonType]) -> list[Column]:
    """Return distinct vertices in the types of the edge columns."""
    return [ids.from_host(array, one.kind, one.part_types) for array, one in zip(arrays, shared, strict=True)]


# --- parts that are joined --------------------------------------------------------------------------------------------


def complete_parts(ids: Ids, frames: list[Frame], columns: Columns) -> tuple[list[Frame], list[Integers] | None]:
    """Return the parts of a frame without rows to drop, those that lack an endpoint, and the rows kept of each.

    The rows are None if all are kept.
    """
    if columns.missing == "error":
        return frames, None
    found = [columns.within(list(frame), f"partition {number}") for number, frame in enumerate(frames)]
    rows = [ids.complete_rows(*pair) for pair in zip(frames, found, strict=True)]
    if all(kept is None for kept in rows):
        return frames, None
    complete = [frame if kept is None else frame.take(kept) for frame, kept in zip(frames, rows, strict=True)]
    return complete, [
        np.arange(len(frame)) if kept is None else to_host(kept) for frame, kept in zip(frames, rows, strict=True)
    ]


def in_whole(rows: list[Integers], lengths: list[int]) -> Integers:
    """Return rows of parts of such lengths as rows of the whole."""
    starts = np.cumsum([0, *lengths]).tolist()
    return np.concatenate([start + own for start, own in zip(starts, rows, strict=False)])


def joined(ids: Ids, frames: list[Frame], columns: Columns) -> tuple[Frame, Columns]:
    """Concatenate the parts to one frame of the columns in use; return it, and the column positions."""
    starts = np.cumsum([0, *map(len, frames)])[:-1].tolist()
    parts = Parts(ids, frames, list(range(len(frames))), starts, columns)
    endpoints, labels = parts.endpoints(), columns.id_labels()
    shared = common_types(parts.infos(endpoints, labels), labels)
    source, destination = parts.concat(endpoints, shared, labels)
    weights = parts.weights()
    width = len(shared)
    ends: list[Any] = [*source, *destination]
    joined = [column.reset_index(drop=True) for column in ends]
    joined += [] if weights is None else [weights]
    if columns.time is not None:
        times = (own.time for own in parts.own_columns if own.time is not None)
        joined.append(ids.concat([ids.column_of(*pair) for pair in zip(frames, times, strict=True)]))
    return ids.frame_of([str(position) for position in range(len(joined))], joined), columns._replace(
        source=list(range(width)),
        destination=list(range(width, 2 * width)),
        weight=None if weights is None else 2 * width,
        time=None if columns.time is None else len(joined) - 1,
    )


# --- parts of which one is held at a time -----------------------------------------------------------------------------


class Part(NamedTuple):
    """Edges of a part: the integer ids of their ends, or positions among the vertices of the part."""

    source: Integers
    destination: Integers
    weights: Floats | None
    vertices: Vertices | None = None


def integer_part(ids: Ids, frame: Frame, columns: Columns, labels: list[str], dtype: np.dtype[np.generic]) -> Part:
    """Return the edges of a frame whose ids are a single column of integers, as arrays of one type."""
    if (complete := ids.complete_rows(frame, columns)) is not None:
        with rows_of_frame(to_host(complete)):
            return integer_part(ids, frame.take(complete), columns._replace(missing="error"), labels, dtype)
    ends = [column for (column,) in ids.endpoints_of(frame, columns)]
    for column, label in zip(ends, labels, strict=False):  # perhaps also a label of additional vertices
        ids.kind_of(column, label)  # raises for nulls
    source, destination = (ids.integers(column).astype(dtype, copy=False) for column in ends)
    return Part(source, destination, None if columns.weight is None else ids.weights_of(frame, columns))


class Factorizer(Protocol[Vertices_co]):
    """Factorizes the endpoints of edges that are read twice.

    Three classes implement it, without a line in common. `prplugin.cpu.factorize.PartwiseFactorizer` inserts integer
    ids into a hash table with many threads, and counts both degrees, by which the sink writes a CSC in place. That of
    `prplugin.gpu.factorize` marks the ids of a narrow range by bits, which a GPU need not hash, and sums out-weights
    alone: its sink packs parts that are sorted one by one. `prplugin.frames.vertex_index.IndexFactorizer` has an index
    of ids of any kind, which grows with the parts.
    """

    def add(self, source: Integers, destination: Integers, weights: Floats | None, own: Vertices | None = None) -> None:
        """Add the edges of a `Part`."""

    def vertices(self) -> Vertices_co:
        """Return the distinct vertices, once all parts have been added."""

    def positions_of(self, ends: list[Integers], own: Vertices | None = None) -> list[Integers]:
        """Return the positions of sources and destinations, after `vertices`."""


class Sink(Protocol):
    """Takes edges by position, part by part."""

    def add(self, source: Integers, destination: Integers, weights: Floats | None) -> None:
        """Add some edges, after those added before."""

    def edges(self) -> Coo | Grouped:
        """Return all edges."""


def read_twice(
    parts: Callable[[], Iterable[Part]], factorizer: Factorizer[Vertices_co],
    sink_of: Callable[[Vertices_co, int], Sink],
    additional: Sequence[Any] = (), check: Callable[[Part], None] | None = None,
) -> tuple[Coo | Grouped, Vertices_co]:  # fmt: skip
    """Return the edges of all parts, and the vertices.

    `sink_of`: Returns the sink, given the vertices and the number of edges.
    `additional`: Arguments of `Factorizer.add` for additional vertices.
    `check`: Raises for a part that is refused; called when it is first read.
    """
    m = 0
    for part in parts():
        if check is not None:
            check(part)
        factorizer.add(*part)
        m += part.source.size
        del part  # so that its memory is free while the next one is read
    if additional:
        factorizer.add(*additional)
    vertices = factorizer.vertices()
    sink = sink_of(vertices, m)
    for part in parts():
        source, destination = factorizer.positions_of([part.source, part.destination], part.vertices)
        sink.add(source, destination, part.weights)
        del part, source, destination
    edges = sink.edges()
    if edges.m != m:
        raise InvalidEdgesError(f"the frames had {m:,} edges when read first, and {edges.m:,} when read again.")
    return edges, vertices


class EdgeList:
    """A sink: m edges of n vertices, in their order, in host or device memory (`xp` is NumPy or CuPy)."""

    def __init__(self, n: int, m: int, *, weighted: bool, xp: ModuleType = np) -> None:
        self._n, self._m, dtype = n, 0, index_dtype(n)
        self._source, self._destination = xp.empty(m, dtype), xp.empty(m, dtype)
        self._weights: Floats | None = xp.empty(m) if weighted else None

    def add(self, source: Integers, destination: Integers, weights: Floats | None) -> None:
        """Add some edges, after those added before."""
        rows = slice(self._m, self._m + source.size)
        self._source[rows], self._destination[rows] = source, destination
        if self._weights is not None:
            self._weights[rows] = weights
        self._m = rows.stop

    def edges(self) -> Coo:
        """Return the edges that were added."""
        rows = slice(self._m)
        weights = None if self._weights is None else self._weights[rows]
        return Coo(self._source[rows], self._destination[rows], weights, self._n)
