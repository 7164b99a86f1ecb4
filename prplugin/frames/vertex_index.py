"""Extensible index of vertex ids. Imports pandas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from prplugin.errors import InvalidEdgesError
from prplugin.frames.columns import Column, check_kinds, has_width, in_one_type
from prplugin.frames.groups import GroupedVertices, inverse
from prplugin.frames.host_columns import exact, in_utc, repeated_ids
from prplugin.frames.vertices import Vertices
from prplugin.types.arrays import expand_values, find_integers, to_host
from prplugin.types.edges import Floats, Integers, index_dtype

TIMES = "time32", "time64"  # types of Arrow with one unit in each kind of ids, whose integers are equal if the ids are


class VertexIndex:
    """The vertices of a graph, with a lookup from id to position.

    Integer ids are in ascending order and found by binary search. Other ids are found in a dictionary, which is built
    at the first lookup and extended with the vertices; on the GPU they are found by a join.

    `labels`: Names of the ids in messages.
    """

    def __init__(self, vertices: Vertices, labels: Sequence[str] = ("add", "the graph")) -> None:
        self.vertices, self._labels = vertices, labels
        self._ids, self.memory_space = vertices.ids, vertices.memory_space
        self._table: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.vertices)

    def positions_of(self, vertices: Vertices, argument: str) -> Integers:
        """Return the position of each vertex of a frame, on the host; -1 for vertices not in the graph.

        Raises InvalidEdgesError: if the kind of ids differs from the graph's; the message names `argument`.
        """
        check_kinds(vertices.kinds, self.vertices.kinds, argument)
        if not len(self) or not len(vertices):
            return np.full(len(vertices), -1)
        with self.vertices.active():
            if self.vertices.kinds == ["integer"]:
                return to_host(find_integers(self._integer_ids, self._ids.integers(vertices.columns[0])))
            if self.memory_space == "device":
                return to_host(self.vertices.find_positions(vertices.series, argument))
            if len(self._table) != len(self):
                self._table = dict(zip(_keys(self.vertices), range(len(self)), strict=True))
                if len(self._table) != len(self):
                    raise repeated_ids()
            return np.array([self._table.get(key, -1) for key in _keys(vertices)], np.int64)

    def extend(self, vertices: Vertices, frame_positions: Integers) -> tuple[VertexIndex, Integers, Integers | None]:
        """Return the index extended by the vertices of a frame whose position in `frame_positions` is -1.

        Also return the position of each vertex of the frame, on the host, and the new position of each old vertex, in
        the memory space of the graph; None if the old vertices come first, in their order.
        """
        with self.vertices.active():
            return self._extend(vertices, frame_positions)

    def _extend(self, vertices: Vertices, frame_positions: Integers) -> tuple[VertexIndex, Integers, Integers | None]:
        ids, old, xp = self._ids, self.vertices, self._ids.xp
        new = xp.asarray(np.flatnonzero(frame_positions < 0))
        kinds = [other if kind == "empty" else kind for kind, other in zip(old.kinds, vertices.kinds, strict=True)]
        old_positions = None
        if kinds == ["integer"]:
            frame_ids = ids.integers(vertices.columns[0])
            like = [one.series[0] for one in (old, vertices) if one.kinds != ["empty"]]
            widths = [one.kinds != ["empty"] and has_width(one.series[0].dtype) for one in (old, vertices)]
            old_ids, new_ids = in_one_type([self._integer_ids, frame_ids[new]], widths, self._labels)
            places = xp.searchsorted(old_ids, new_ids)
            if int(places[0]) == len(old):
                joined = xp.concatenate([old_ids, new_ids])
            else:
                is_new = xp.zeros(len(old) + new.size, np.bool_)
                is_new[places + xp.arange(new.size)] = True
                old_positions = xp.flatnonzero(~is_new).astype(index_dtype(is_new.size), copy=False)
                joined = xp.empty(is_new.size, old_ids.dtype)
                joined[is_new], joined[~is_new] = new_ids, old_ids
            frame_positions = to_host(xp.searchsorted(joined, frame_ids.astype(joined.dtype, copy=False)))
            columns = [ids.integers_like(joined, ids.joined_dtypes(like))]
        else:
            frame_positions = frame_positions.copy()
            frame_positions[frame_positions < 0] = np.arange(len(old), len(old) + new.size)
            columns = [
                self._concat_ids(column, ids.take(added, new), kind)
                for column, added, kind in zip(old.series, vertices.series, kinds, strict=True)
            ]
        extended = old.with_columns(columns, kinds)
        if isinstance(extended, GroupedVertices) and (order := extended.order()) is not None:
            extended = extended.with_columns([ids.take(column, order) for column in columns], kinds)
            position = inverse(order).astype(index_dtype(order.size))
            old_positions, frame_positions = position[: len(old)], to_host(position)[frame_positions]
        index = VertexIndex(extended, self._labels)
        if self._table and old_positions is None:
            added_keys = _keys(index.vertices, len(old))
            self._table.update(zip(added_keys, range(len(old), len(index)), strict=True))
            index._table = self._table
        return index, frame_positions, old_positions

    def _concat_ids(self, old: Column, new: Column, kind: str) -> Column:
        """Concatenate two columns of ids, in their common type if there is one, else in that of `old`."""
        ids = self._ids
        if not len(old) or not len(new):
            return old if len(old) else new
        if kind == "integer":
            widths = [has_width(column.dtype) for column in (old, new)]
            integers = in_one_type([ids.integers(old), ids.integers(new)], widths, self._labels)
            return ids.integers_like(ids.xp.concatenate(integers), ids.joined_dtypes([old, new]))
        joined = ids.concatenate([ids.without_categories(old), ids.without_categories(new)], "add")
        return ids.like_categories(joined, [old.dtype, new.dtype])

    @cached_property
    def _integer_ids(self) -> Integers:
        return self._ids.integers(self.vertices.columns[0])


class IndexFactorizer:
    """Factorizes the endpoints of edges which are read twice, part by part, with ids of any kind.

    `index`: An empty index of vertices like those of the parts.
    `degrees`: The in-degree and the out-degree of each vertex.
    """

    def __init__(self, index: VertexIndex) -> None:
        self._index = index
        self.degrees = np.zeros((2, 0), np.int64)

    def add(self, source: Integers, destination: Integers, weights: Floats | None, own: Any = None) -> None:
        """Add the vertices of a part, and count those of its edges; these are given by positions among the former."""
        positions = self._index.positions_of(own, "")
        if (positions < 0).any():
            self._index, positions, old = self._index.extend(own, positions)
            self.degrees = np.stack([expand_values(counts, len(self._index), old, 0) for counts in self.degrees])
        for counts, ends in zip(self.degrees, (destination, source), strict=True):
            counts[positions] += np.bincount(ends, minlength=len(own))

    def vertices(self) -> list[Column]:
        """Return the columns of ids of all vertices, in the order of the result."""
        return self._index.vertices.columns

    def positions_of(self, ends: list[Integers], own: Any = None) -> list[Integers]:
        """Return positions among all vertices for positions in a part."""
        positions = self._index.positions_of(own, "").astype(index_dtype(len(self._index)), copy=False)
        return [positions[end] for end in ends]


def _keys(vertices: Vertices, first: int = 0) -> Iterable[Hashable]:
    """Return the ids from `first` on as Python objects, as tuples for several columns."""
    try:
        values = [
            in_utc(np.asarray(exact(vertices.ids.without_categories(column[first:]), TIMES), object), kind).tolist()
            for column, kind in zip(vertices.columns, vertices.kinds, strict=True)
        ]
    except OverflowError as error:
        raise InvalidEdgesError(f"a column of ids holds dates that Python does not: {error}. Cast it.") from error
    except (UnicodeDecodeError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"a column of ids holds text that is not UTF-8: {error}. Cast it to binary.") from error
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))
