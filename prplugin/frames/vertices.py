"""Vertices of a graph: conversion of per-vertex arguments, and frames of ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, VertexNotFoundError, counted, listed
from prplugin.frames.columns import Column, Frame, check_kinds
from prplugin.frames.kinds import ambiguous_refused
from prplugin.frames.remedies import advising, library_of, remedy
from prplugin.frames.repeated import Repeated
from prplugin.frames.suggested import columns_present, index_levels, values_last
from prplugin.options import Options, Unknown
from prplugin.types.array_module import Ranks
from prplugin.types.arrays import (
    Array,
    MemorySpace,
    copied,
    expand_values,
    far_times,
    find_integers,
    finite_numbers,
    is_a,
    is_array,
    is_table,
    namespace,
    plain_array,
    to_host,
    to_memory,
    to_python,
)
from prplugin.types.edges import Floats, Integers

if TYPE_CHECKING:
    from prplugin.frames.ids import Ids

SEED = "seed"  # name of the seed column, in arguments and results

FEW_VERTICES = 1 << 14
"""Number of given vertices up to which they are checked on the host: on a GPU, launches would take longer."""


@cache
def ids_in(memory_space: MemorySpace) -> Ids:
    """Return the operations on ids in host memory, by pandas, or in device memory, by cuDF."""
    if memory_space == "host":
        from prplugin.frames.ids import HOST  # imports pandas

        return HOST
    from prplugin.frames.device_ids import DEVICE  # imports cuDF

    return DEVICE


Take: TypeAlias = Callable[[Column, Integers], Column]
Entry: TypeAlias = tuple[Hashable, Column, int | None]
"""Name and content of a column of results, and the component of a vertex in it, or None for no vertex."""


class Boundary:
    """Conversions between the libraries of the user and of the vertices; by default none. Pickled with each ranking."""

    def convert(self, given: object, what: str) -> Any:
        """Convert a per-vertex argument, or an entry of a list of them; `what` names it in messages."""
        return given

    def values(self, array: object) -> Any:
        """Move an array of values or positions to the memory space of the graph."""
        return array

    def frame_of(self, ids: Ids, entries: list[Entry]) -> Frame:
        """Return a frame of results."""
        names, columns, _ = map(list, zip(*entries, strict=True))
        return ids.frame_of(names, columns)

    def wrap(self, frame: object) -> Any:
        """Convert a frame or a column of results."""
        return frame

    def active(self) -> AbstractContextManager[object]:
        """Return a context manager for calls of the library of the vertices."""
        return nullcontext()


@dataclass(slots=True, eq=False, repr=False)
class Labels:
    """Labels of the k seeds in the result: the vertices at k positions, or a column or an array of k labels."""

    rows: Integers | None = None
    column: Any = None

    def by_row(self, ranks: Array, rows: Integers | None, take: Take) -> tuple[Array, Integers, Labels]:
        """Return the ranks of all seeds as a vector, the position of each, and a label for each.

        `rows`: Positions, of the shape of `ranks`; entries of -1 are left out. None: all vertices.
        `take`: Returns the entries of a column at positions.
        """
        xp, (count, width) = namespace(ranks), ranks.shape
        each = xp.repeat(xp.arange(count), width)
        ranks, rows = ranks.reshape(-1), xp.tile(xp.arange(width), count) if rows is None else rows.reshape(-1)
        if (rows < 0).any():
            kept = xp.flatnonzero(rows >= 0)
            ranks, rows, each = ranks[kept], rows[kept], each[kept]
        if self.rows is None:
            return ranks, rows, Labels(column=take(self.column, each))
        return ranks, rows, Labels(rows=self.rows[each])


@dataclass(eq=False, repr=False)
class Vertices:
    """Vertices in the order of the result. Reads per-vertex arguments, and writes ranks to frames.

    The parameter `what` is the name of the argument in messages. Methods raise `InvalidOptionError` if vertices are
    unknown, repeated or of another kind than those of the graph, or if values are not finite and non-negative.
    """

    names: list[Hashable]  # of the vertex columns in the result
    columns: list[Column]  # ids, one column per component of a vertex
    kinds: list[str]  # the kind of ids in each column, such as "integer"
    memory_space: MemorySpace = "host"  # of the columns
    boundary: Boundary = field(default=Boundary(), kw_only=True)
    repeated = cached_property(lambda _: Repeated())

    @property
    def ids(self) -> Ids:
        """The operations on the columns. Their library is imported on first use."""
        return ids_in(self.memory_space)

    @cached_property
    def series(self) -> list[Column]:
        """The columns as they are compared and shown: those in device memory as Series, also of integers."""
        return self.columns if self.memory_space == "host" else list(map(self.ids.as_column, self.columns))

    def __len__(self) -> int:
        return len(self.columns[0])

    def active(self) -> AbstractContextManager[object]:
        """Return a context manager for operations on the columns."""
        return self.boundary.active() if self.memory_space == "host" else self._active_on_device()

    @contextmanager
    def _active_on_device(self) -> Iterator[None]:
        with self.boundary.active(), self.ids.active():
            yield

    def converted(self, given: object, what: str) -> Any:
        """Convert a per-vertex argument, or an entry of a list of them, to the types of the library."""
        if type(given) in (int, str, list, dict):  # most often, and in long lists of seeds
            return given
        if is_a(given, "prplugin.result.ranking", "Ranking"):
            given = given.frame  # type: ignore[attr-defined]
        if isinstance(given, tuple) and len(given) == 3 and is_table(given[0]):
            return (self.converted(given[0], what), *given[1:])
        return self.ids.convert(self.boundary.convert(plain_array(given, what), what), what)

    @contextmanager
    def reading(self, given: object, what: str) -> Iterator[None]:
        """Return a context manager for reading a per-vertex argument; messages advise about it."""
        with self.active(), advising(library_of(given), what):
            yield

    def with_columns(self, columns: list[Column], kinds: list[str]) -> Vertices:
        """Return vertices with other ids, and results of the same library; also of `SavedVertices`."""
        return replace(self, columns=columns, kinds=kinds)

    def on_device(self) -> Vertices:
        """Return vertices of pandas columns as vertices of columns in device memory."""
        ids = ids_in("device")
        with ids.active():
            columns = [ids.as_column(column, "the frame") for column in self.columns]
        return replace(self, columns=columns, memory_space="device", boundary=Boundary())

    def plain_ids(self, rows: Integers) -> list[Hashable]:
        """Return the ids of the vertices at `rows` as Python objects, as tuples if a vertex has several columns."""
        with self.active():
            return plain_ids(self.series, rows)

    def id_columns(self, given: object, what: str) -> list[Column]:
        """Return ids as a list of columns, one per component of a vertex."""
        return self.ids.id_columns(given, self.names if len(self.names) > 1 else None, what)

    def find_positions(self, columns: list[Column], what: str) -> Integers:
        """Return the position of each id, -1 for ids not in the graph; raise for ids of another kind."""
        ids = self.ids
        kinds = [ids.kind_of(column, what) for column in columns]
        check_kinds(kinds, self.kinds, what, InvalidOptionError, columns)
        if not len(self):
            return ids.xp.full(len(columns[0]), -1)
        if self.kinds == ["integer"]:  # in ascending order
            # Few of the host are looked up with fewer calls of CuPy.
            few = type(columns[0]).__module__.partition(".")[0] == "pandas" and len(columns[0]) <= FEW_VERTICES
            wanted = ids_in("host" if few else self.memory_space).integers(columns[0], what)
            return find_integers(ids.integers(self.columns[0]), wanted)
        return ids.positions(self.series, columns, self.kinds, what)

    def write(self, ranks: Ranks, rows: Integers | None, labels: Labels | None = None, *, owned: bool = False) -> Frame:
        """Return a frame of vertices and ranks.

        `ranks`: Ranks of the vertices at `rows`; with `labels`, a matrix with one row per seed.
        `rows`: Positions, of the shape of `ranks`; entries of -1 are left out. None: all vertices.
        `owned`: Whether the frame may alias the ranks and the ids, since nobody else has them.
        """
        with self.active():
            ranks, rows = to_memory(ranks, self.memory_space), to_memory(rows, self.memory_space)
            if labels is not None:
                ranks, rows, labels = labels.by_row(ranks, rows, self.ids.take)
            vertices = self._entries(self.names, rows, owned=owned)
            entries = [*self._seeds(labels), *vertices, ("pagerank", ranks if owned else copied(ranks), None)]
            frame = self.boundary.frame_of(self.ids, entries)
        return self.boundary.wrap(frame)

    def write_columns(self, rows: Integers | None, columns: dict[str, Any], labels: Labels | None = None) -> Any:
        """Return a frame of vertices and more columns: arrays, or lists of text, with an entry per vertex.

        `rows`: Positions; with `labels`, a matrix of them with one row per seed.
        """
        with self.active():
            rows = to_memory(rows, self.memory_space)
            if labels is not None:
                assert rows is not None
                _, rows, labels = labels.by_row(rows, rows, self.ids.take)
            more: list[Entry] = [
                (name, self.ids.text(given) if isinstance(given, list) else to_memory(given, self.memory_space), None)
                for name, given in columns.items()
            ]
            frame = self.boundary.frame_of(self.ids, [*self._seeds(labels), *self._entries(self.names, rows), *more])
        return self.boundary.wrap(frame)

    def position_of(self, vertex: object) -> int:
        """Return the position of a vertex; raise VertexNotFoundError if the graph does not have it."""
        what = "vertex"
        with self.reading(None, what):
            columns = self.id_columns(self.converted([vertex], what), what)
            rows = self.find_positions(columns, what)
        if int(rows[0]) < 0:
            raise VertexNotFoundError(
                f"{vertex!r} is not among the {counted(len(self), 'vertex', 'vertices')} of this graph, which are like "
                f"{listed(format_ids(self.plain_ids, np.arange(min(len(self), 3))))}."
            )
        return int(rows[0])

    def _entries(self, names: list[Hashable], rows: Integers | None, *, owned: bool = False) -> list[Entry]:
        """Return the ids at `rows`, of all vertices for None, under names; copies unless all are `owned`."""
        columns = self.columns if owned and rows is None else [self.ids.take(column, rows) for column in self.columns]
        return list(zip(names, columns, range(len(names)), strict=True))

    def _seeds(self, labels: Labels | None) -> list[Entry]:
        if labels is None:
            return []
        names = self.seed_names(labels)
        return [(SEED, labels.column, None)] if labels.rows is None else self._entries(names, labels.rows)

    def write_ids(self) -> Frame:
        """Return the ids: a column of the library, or a frame if a vertex has several columns."""
        with self.active():
            frame = self.boundary.frame_of(self.ids, self._entries(self.names, None))
            found = frame if len(self.names) > 1 else frame[self.names[0]]
        return self.boundary.wrap(found)

    def read_values(self, given: object, what: str, unknown: Unknown | None = None) -> Floats:
        """Convert a distribution over vertices to an array of n float64, not normalized, 0 for absent vertices.

        `given`: A dict, a Series indexed by vertex, a ranking, or a frame with the columns `vertex` (or several) and
        `values` or `pagerank`, or one with others in a tuple with their names; a list, set, tuple, index or frame of
        vertices alone, which get equal values; or an array of one value per vertex, in the order of the result. A
        Series with the default index is ambiguous, and raises InvalidOptionError.
        """
        rows, values = self._read(given, what, unknown)
        vector: Floats = values if rows is None else expand_values(values, len(self), rows, 0.0)
        return vector

    def read_entries(self, given: object, what: str, unknown: Unknown | None = None) -> tuple[Integers, Floats]:
        """Return the positions and the values of the vertices of a distribution; see `read_values`."""
        rows, values = self._read(given, what, unknown)
        if rows is None:
            rows = namespace(values).flatnonzero(values)
            values = values[rows]
        return rows, values

    def _read(self, given: object, what: str, unknown: Unknown | None) -> tuple[Integers | None, Floats]:
        """Return the positions and the values of a distribution; None and all values for an array by position."""
        if type(given) is np.ndarray and self.memory_space == "host" and given.shape == (len(self),):
            values = finite_numbers(given)  # without an import of pandas
            if values is not None:
                return None, self.boundary.values(values)
        with self.reading(given, what):
            given = self.converted(given, what)
            if is_array(given):
                return None, self.boundary.values(self.checked_vector(given, what))
            if isinstance(given, self.ids.types.frames) and SEED in given.columns and SEED not in self.names:
                raise InvalidOptionError(
                    f"{what} is a frame with a column {SEED!r}, and is one distribution. For many rankings pass it as "
                    "seeds=."
                )
            columns, numbers = self.ids_and_numbers(given, what)
            rows, known = self.known_positions(columns, what, unknown)
            if known is not None:
                numbers = numbers[known]
                if not len(rows):
                    raise InvalidOptionError(
                        f"{what} names {counted(len(columns[0]), 'vertex', 'vertices')}: the graph has none of them."
                    )
            return self.boundary.values(rows), self.boundary.values(numbers)

    def checked_vector(self, given: Array, what: str) -> Floats:
        """Return an array of one value per vertex as float64."""
        if given.shape != (len(self),):
            raise InvalidOptionError(
                f"{what} is an array of shape {given.shape}, but the graph has "
                f"{counted(len(self), 'vertex', 'vertices')}: an array holds one value per vertex, in the order of "
                "graph.vertices. Pass a list to name vertices."
            )
        return self.ids.numbers_of_array(given, what, InvalidOptionError)

    def read_teleports(self, options: Options, unknown: Unknown) -> tuple[Integers, Floats] | None:
        """Return the positions and the positive values of the personalization, not normalized; None without one."""
        if options.personalization is None:
            return None
        rows, entries = self.read_entries(options.personalization, "personalization", unknown)
        positive = namespace(entries).flatnonzero(entries)
        return rows[positive], entries[positive]

    def read_positions(self, given: object, what: str, unknown: Unknown | None = None) -> Integers:
        """Return the positions of vertices, in the given order; raise for repeated vertices.

        Of `exclude` there may be none, and their order does not matter.
        """
        for_exclusion = what == "exclude"
        with self.reading(given, what):
            given = self.converted(given, what)
            if isinstance(given, Mapping):
                raise InvalidOptionError(f"{what} must be a list, Series, index or array of vertices, not a dict.")
            given = list(given) if for_exclusion and isinstance(given, (set, frozenset)) else given
            without_rows = for_exclusion and isinstance(given, self.ids.types.frames) and len(given) == 0
            columns: list[Column] = [np.empty(0)] if without_rows else self.id_columns(given, what)
            if len(columns[0]):
                return self.known_positions(columns, what, unknown)[0]
            if for_exclusion:
                return self.ids.xp.empty(0, np.int64)
            raise InvalidOptionError(f"{what} is empty: it must name at least one vertex.")

    def ids_and_numbers(self, given: object, what: str) -> tuple[list[Column], Floats]:
        """Return the id columns and the values of a distribution; values are 1 if only vertices are given."""
        ids, column = self.ids, None
        if names_columns(given, ids.types.frames):
            columns, column = self._of_named_columns(*cast("tuple[Any, Any, Any]", given), what)
        elif isinstance(given, (list, tuple, set, frozenset, *ids.types.indexes)):
            if isinstance(given, (list, tuple)) and (dicts := sum(isinstance(entry, Mapping) for entry in given)):
                raise InvalidOptionError(
                    f"{what} is a list with {counted(dicts, 'dict')}: a list names vertices. For many rankings pass it "
                    "as seeds=."
                )
            columns = self.id_columns(list(given) if isinstance(given, (set, frozenset)) else given, what)
        elif isinstance(given, Mapping):
            import pandas as pd  # loaded with every library that has columns

            columns, column = self.id_columns(list(given), what), pd.Series(list(given.values()), dtype=object)
        elif isinstance(given, ids.types.series):
            self._require_vertex_index(given, what)
            columns, column = self.id_columns(given.index, what), given.reset_index(drop=True)
        elif isinstance(given, ids.types.frames):
            columns, column = self._of_frame(given, what)
        else:
            names = listed([repr(name) for name in (*self.names, "values")])
            raise InvalidOptionError(
                f"{what} must be a dict of vertex: value, a Series indexed by vertex, a frame with the columns "
                f"{names}, a list of vertices, or an array with a number per vertex, not {type(given).__name__}."
            )
        if not len(columns[0]):
            raise InvalidOptionError(f"{what} is empty: it must give a positive value to at least one vertex.")
        if column is None:
            return columns, ids.xp.ones(len(columns[0]))
        return columns, ids.numbers(column, what, "entry", InvalidOptionError)

    def _of_named_columns(
        self, frame: Frame, names: object, values: Hashable, what: str
    ) -> tuple[list[Column], Column]:
        """Return the id columns and the column of values of a frame, by their names."""
        labels: list[Hashable] = names if isinstance(names, list) else [names]
        if len(labels) != len(self.names):
            raise InvalidOptionError(
                f"{what} names {counted(len(labels), 'column')} of ids, and vertices have {len(self.names)}."
            )
        *columns, column = self.ids.columns_of(frame, [*labels, values], what)
        return columns, column

    def _of_frame(self, frame: Frame, what: str) -> tuple[list[Column], Column | None]:
        """Return the id columns and the column of values of a frame, None for a frame of vertices alone."""
        labels = list(frame.columns)
        values = next((name for name in ("values", "pagerank") if name in labels), "values")
        levels = index_levels(frame)
        if not levels and (len(labels) == len(self.names) == 1 or {*labels} == {*self.names}):
            return self.id_columns(frame, what), None
        names = [*self.names, values]
        absent = [name for name in names if name not in labels]
        if absent and not levels and len(labels) == len(names) and what.isidentifier():
            *own, last = values_last(labels, list(frame.dtypes), self.kinds)
            advised = remedy("columns of values", role=what, ids=own[0] if len(own) == 1 else own, column=last)
            raise InvalidOptionError(
                f"{what} has no column {listed(list(map(repr, absent)))}: it needs the columns "
                f"{listed(list(map(repr, names)))}. {columns_present(labels, frame)} Or name yours: {advised}."
            )
        *columns, column = self.ids.columns_of(frame, [*self.names, values], what)
        return columns, column

    def _require_vertex_index(self, given: Any, what: str) -> None:
        """Raise for a Series whose index is the default one, or what filtering, sorting or sampling leaves of it.

        It may be a column of vertices as well as values by vertex, whatever its values are.
        """
        index = given.index
        unnamed_integers = index.name is None and index.dtype.kind in "iu" and len(index) > 0
        if not unnamed_integers or int(index.min()) < 0 or not index.is_unique:
            return
        readings = ["values by the index"] if self.kinds == ["integer"] else []
        if len(given) == len(self) and given.dtype.kind in "biuf":
            readings.append("values by position")
        raise ambiguous_refused(what, plain_ids([given], np.arange(len(given))[:3]), len(given), readings)

    def known_positions(
        self, columns: list[Column], what: str, unknown: Unknown | None = None, sizes: Integers | None = None
    ) -> tuple[Integers, Integers | None]:
        """Return the positions of ids that the graph has, and which of the given ones these are, None for all.

        Raise for ids that the graph lacks, unless these are ignored, and for ids repeated within one distribution.

        `sizes` holds the lengths of the consecutive distributions; None: a single distribution.
        """
        try:
            rows = self.find_positions(columns, what)
        except InvalidEdgesError as error:
            raise InvalidOptionError(str(error)) from error
        if rows.size <= FEW_VERTICES:
            rows = to_host(rows)
        xp = namespace(rows)
        ids_at, known = partial(plain_ids, columns), None
        if (absent := xp.flatnonzero(rows < 0)).size:
            if unknown is None or not unknown.ignores(what):
                raise InvalidOptionError(
                    f"{what} names {counted(absent.size, 'vertex', 'vertices')} not in the graph: "
                    f"{listed(format_ids(ids_at, absent))}. Remove them, or pass {remedy('unknown vertices')}. "
                    "Graph and pagerank add isolated ones by vertices=."
                )
            unknown.counts[what] = unknown.counts.get(what, 0) + int(absent.size)
            known = xp.flatnonzero(rows >= 0)
            rows = rows[known]
        keys = rows
        if sizes is not None:
            which = xp.asarray(np.repeat(np.arange(sizes.size), sizes))
            keys = (which if known is None else which[known]) * len(self) + rows
        order = xp.argsort(keys, kind="stable")
        if (repeated := xp.sort(order[1:][keys[order[1:]] == keys[order[:-1]]])).size:
            given = repeated if known is None else known[repeated]
            raise InvalidOptionError(
                f"{what} names {counted(int(xp.unique(rows[repeated]).size), 'vertex', 'vertices')} more than once: "
                f"{listed(format_ids(ids_at, given))}. Drop all but one, or add up their values."
            )
        return to_memory(rows, self.memory_space), to_memory(known, self.memory_space)

    def seed_names(self, labels: Labels) -> list[Hashable]:
        """Return the names of the seed columns in the result: "seed", or "seed_" and the name of each vertex column."""
        several = labels.rows is not None and len(self.names) > 1
        names: list[Hashable] = [f"{SEED}_{name}" for name in self.names] if several else [SEED]
        if taken := [name for name in names if name in self.names]:
            raise InvalidOptionError(
                f"the result of many seeds has a column {taken[0]!r}, and so have the vertices of this graph: rename "
                "it there."
            )
        return names


def plain_ids(columns: list[Column], rows: Integers) -> list[Hashable]:
    """Return the ids in the given rows as Python objects, as tuples if there are several columns."""
    columns = [getattr(column, "iloc", column) for column in columns]
    ids = [tuple(_plain_id(column, row) for column in columns) for row in rows.tolist()]
    return [parts[0] if len(columns) == 1 else parts for parts in ids]


def _plain_id(column: Column, row: int) -> Hashable:
    try:
        return to_python(column[row])
    except OverflowError:
        return far_times(column[row : row + 1])[0]


def format_ids(ids_at: Callable[[Integers], list[Hashable]], rows: Integers) -> list[str]:
    """Return the ids in the given rows as text, for `listed`: the first six, and "" for each of the others."""
    shown = [repr(vertex) for vertex in ids_at(rows[:6])]
    return shown + [""] * (rows.size - len(shown))


def names_columns(given: object, frames: tuple[Any, ...]) -> bool:
    """Return whether an argument is a tuple of a frame and the names of its columns of vertices and values."""
    return isinstance(given, tuple) and len(given) == 3 and isinstance(given[0], frames)
