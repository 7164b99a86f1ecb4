"""Vertices of a graph: conversion of per-vertex arguments, and frames of ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted, listed
from prplugin.frames.columns import columns_of
from prplugin.frames.labels import Labels, SeedValues
from prplugin.graph.adjacency import group_sizes
from prplugin.types.arrays import copied, find_integers, namespace, plain_array, to_host, to_memory
from prplugin.types.edges import Floats, Integers

SEED = "seed"
"""Name of the seed column, in arguments and results."""


class GivenTypes(NamedTuple):
    """Types of one or several libraries that are accepted for per-vertex arguments."""

    indexes: tuple[Any, ...]  # indexes and arrays of vertices, without values
    series: tuple[Any, ...]  # values, indexed by vertex
    frames: tuple[Any, ...]


class Boundary:
    """Conversions between the libraries of the user and of the vertices; by default none. Pickled with each ranking."""

    def convert(self, given: Any, what: str) -> Any:
        """Convert a per-vertex argument, or an entry of a list of them; `what` names it in messages."""
        return given

    def values(self, array: Any) -> Any:
        """Move an array of values or positions to the memory space of the graph."""
        return array

    def wrap(self, frame: Any) -> Any:
        """Convert a frame or a column of results."""
        return frame

    def active(self) -> AbstractContextManager[Any]:
        """Return a context manager for calls of the library of the vertices."""
        return nullcontext()


@dataclass(frozen=True)
class Vertices:
    """Vertices in the order of the result, as columns. Reads per-vertex arguments, and writes ranks to frames.

    `library` is the adapter of the columns: `prplugin.frames.pandas`, whose functions document the operations on
    columns, or `prplugin.frames.cudf`. `xp` is NumPy or CuPy.

    The parameter `what` is the name of the argument in messages. Methods raise `InvalidOptionError` if vertices are
    unknown, repeated or of another kind than those of the graph, or if values are not finite and non-negative.
    """

    names: list[Hashable]  # of the vertex columns in the result
    ids: list[Any]  # one column per component of a vertex
    kinds: list[str]  # the kind of ids in each column, such as "integer"
    boundary: Boundary = field(default=Boundary(), kw_only=True)

    library: ClassVar[Any]
    xp: ClassVar[Any]

    @property
    def columns(self) -> list[Any]:
        """Ids as columns of the library."""
        return self.ids

    @property
    def types(self) -> GivenTypes:
        """Accepted types of the library."""
        return self.library.given_types()

    def __len__(self) -> int:
        return len(self.ids[0])

    def active(self) -> AbstractContextManager[Any]:
        """Return a context manager for operations on the columns."""
        return self.boundary.active()

    def convert(self, given: Any, what: str) -> Any:
        """Convert a per-vertex argument, or an entry of a list of them, to the types of the library."""
        return given

    def _converted(self, given: Any, what: str) -> Any:
        return self.convert(self.boundary.convert(plain_array(given, what), what), what)

    @contextmanager
    def _reading(self, given: Any) -> Iterator[None]:
        """Return a context manager for reading a per-vertex argument, in the syntax of whose library messages are."""
        from prplugin.frames._pandas_kinds import casts_of  # imports pandas, which every library needs

        with self.active(), casts_of(type(given).__module__.partition(".")[0]):
            yield

    def with_ids(self, ids: list[Any], kinds: list[str]) -> Self:
        """Return vertices with other ids, written to the same kind of frame."""
        return replace(self, ids=ids, kinds=kinds)

    def plain_ids(self, rows: Integers) -> list[Any]:
        """Return the ids of the vertices at `rows` as Python objects, as tuples if a vertex has several columns."""
        with self.active():
            return plain_ids(self.columns, rows)

    def id_columns(self, given: Any, what: str) -> list[Any]:
        """Return ids as a list of columns, one per component of a vertex."""
        return self.library.id_columns(given, self.names if len(self.names) > 1 else None, what)

    def find_positions(self, columns: list[Any], what: str) -> Integers:
        """Return the position of each id, -1 for ids not in the graph; raise for ids of another kind."""
        from prplugin.frames._pandas_kinds import check_kinds  # imports pandas, which every library needs

        ids = self.library.ids
        check_kinds(columns, self.kinds, what, ids.kind_of)
        if not len(self):
            return self.xp.full(len(columns[0]), -1)
        if self.kinds == ["integer"] and self.library.memory_space == "host":
            return find_integers(ids.integers(self.ids[0]), ids.integers(columns[0], what))
        return ids.positions_in(self.columns, columns, self.kinds, what)

    def write(self, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> Any:
        """Return a frame of vertices and ranks.

        `ranks`: Ranks of the vertices at `rows`; with `labels`, a matrix with one row per seed.
        `rows`: Positions, of the shape of `ranks`; entries of -1 are left out. None: all vertices.
        """
        memory_space = self.library.memory_space
        ranks, rows = to_memory(ranks, memory_space), to_memory(rows, memory_space)
        with self.active():
            if labels is not None:
                ranks, rows, labels = labels.by_row(ranks, rows, self.library.take)
            frame = self._frame(ranks, rows, labels)
        return self.boundary.wrap(frame)

    def _frame(self, ranks: Any, rows: Integers | None, labels: Labels | None) -> Any:
        names, columns = self.columns_of_result(rows, labels)
        return self.library.frame_of([*names, "pagerank"], [*columns, copied(ranks)])

    def columns_of_result(self, rows: Any, labels: Labels | None) -> tuple[list[Hashable], list[Any]]:
        """Return names and copies of the seed columns, if any, and the vertex columns; one label and position per row.

        Without positions: all vertices, in their order.
        """
        take = self.library.take
        if labels is None:
            return self.names, [take(ids, rows) for ids in self.ids]
        seeds = [labels.column] if labels.rows is None else [take(ids, labels.rows) for ids in self.ids]
        return [*self.seed_names(labels), *self.names], [*seeds, *(take(ids, rows) for ids in self.ids)]

    def write_ids(self) -> Any:
        """Return the ids: a column of the library, or a frame if a vertex has several columns."""
        with self.active():
            ids = self._ids()
        return self.boundary.wrap(ids)

    def _ids(self) -> Any:
        frame = self.library.frame_of(self.names, [self.library.take(ids, None) for ids in self.ids])
        return frame if len(self.names) > 1 else frame[self.names[0]]

    def read_values(self, given: Any, what: str) -> Floats:
        """Convert a distribution over vertices to an array of n float64, not normalized, 0 for absent vertices.

        `given`: A dict, a Series indexed by vertex, or a frame with the columns `vertex` (or several) and `values`; a
        list, set, tuple or index of vertices, which get equal values; or an array of one value per vertex, in the order
        of the result. A Series with the default index is ambiguous, and raises InvalidOptionError.
        """
        with self._reading(given):
            return self.boundary.values(self._values(self._converted(given, what), what))

    def read_entries(self, given: Any, what: str) -> tuple[Integers, Floats]:
        """Return the positions and the values of the vertices of a distribution; see `read_values`."""
        with self._reading(given):
            given = self._converted(given, what)
            if _is_array(given):
                values = self._values(given, what)
                rows = self.xp.flatnonzero(values)
                entries = rows, values[rows]
            else:
                entries = self._entries(given, what)
            return self.boundary.values(entries[0]), self.boundary.values(entries[1])

    def _values(self, given: Any, what: str) -> Floats:
        n = len(self)
        if _is_array(given):
            if given.shape != (n,):
                raise InvalidOptionError(
                    f"{what} is an array of shape {given.shape}, but the graph has "
                    f"{counted(n, 'vertex', 'vertices')}: an array holds one value per vertex, in the order of "
                    "graph.vertices. Pass a list to name vertices."
                )
            return self.library.numbers_of_array(given, what, InvalidOptionError)
        rows, values = self._entries(given, what)
        vector: Floats = self.xp.zeros(n)
        vector[rows] = values
        return vector

    def _entries(self, given: Any, what: str) -> tuple[Integers, Floats]:
        if isinstance(given, self.types.frames) and SEED in given.columns and SEED not in self.names:
            raise InvalidOptionError(
                f"{what} is a frame with a column {SEED!r}, and is one distribution. For many rankings pass it as "
                "seeds=."
            )
        columns, values = self.ids_and_numbers(given, what)
        return self._known_positions(columns, what), values

    def read_seeds(self, given: Any, what: str) -> SeedValues:
        """Return the distributions of many seeds.

        `given`: A list, Series, index or array of vertices, each a seed; a list of distributions as for `read_values`;
        a k x n array; or a frame with the columns `seed`, `vertex` (or several) and, optionally, `values`, by default
        1.
        """
        with self._reading(given):
            if type(given) in (list, tuple):
                given = type(given)(self._converted(entry, what) for entry in given)
            else:
                given = self._converted(given, what)
            seeds = self._seeds(given, what)
            return replace(seeds, rows=self.boundary.values(seeds.rows), values=self.boundary.values(seeds.values))

    def _seeds(self, given: Any, what: str) -> SeedValues:
        xp, n = self.xp, len(self)
        if _is_array(given) and given.ndim != 1:
            if given.ndim != 2 or given.shape[1] != n or not given.shape[0]:
                raise InvalidOptionError(
                    f"{what} is an array of shape {given.shape}: it needs a row per seed and a column for each of the "
                    f"{counted(n, 'vertex', 'vertices')}, in the order of graph.vertices."
                )
            matrix = self.library.numbers_of_array(given, what, InvalidOptionError)
            positive = matrix != 0
            found = xp.flatnonzero(positive)  # a third of the time of `nonzero`
            sizes = to_host(positive.sum(axis=1))
            return self._seed_values(sizes, found % n, matrix.reshape(-1)[found], Labels(column=xp.arange(len(matrix))))
        if isinstance(given, self.types.frames):
            if SEED not in given.columns:
                raise InvalidOptionError(
                    f"{what} is a frame without a column {SEED!r}: it needs one, beside the vertex and perhaps "
                    "`values`. One distribution is a personalization."
                )
            return self._read_seed_frame(given, what)
        vertices_alone = isinstance(given, (*self.types.indexes, *self.types.series)) or _is_array(given)
        if not isinstance(given, (list, tuple)) and not vertices_alone:
            raise InvalidOptionError(
                f"{what} must be a list of vertices or of distributions, a Series or an index of vertices, a frame "
                f"with a column {SEED!r}, or an array with a row per seed, not {type(given).__name__}. For one ranking "
                "pass personalization=."
            )
        if not len(given):
            raise InvalidOptionError(f"{what} is empty: it must name at least one seed.")
        if vertices_alone or not self._are_distributions(given, what):
            rows = self._known_positions(self.id_columns(given, what), what)
            return self._seed_values(np.ones(len(rows), np.int64), rows, xp.ones(len(rows)), Labels(rows=rows))
        parts = [self._distribution(entry, f"{what}[{at}]") for at, entry in enumerate(given)]
        columns = [self.library.one_column([ids[at] for ids, _ in parts], what) for at in range(len(self.names))]
        sizes = np.array([len(values) for _, values in parts])
        rows = self._known_positions(columns, what, sizes)
        values = xp.concatenate([values for _, values in parts])
        return self._seed_values(sizes, rows, values, Labels(column=xp.arange(len(parts))))

    def _read_seed_frame(self, frame: Any, what: str) -> SeedValues:
        weighted = not {*frame.columns} <= {SEED, *self.names}  # any other column may be the values: they need the name
        seed, *columns = columns_of(self.library, frame, [SEED, *self.names, *(["values"] if weighted else [])], what)
        if (absent := self.library.missing_rows(seed)).size:
            raise InvalidOptionError(
                f"{what} has {counted(absent.size, 'row')} without a seed: {listed(absent)} (counted from 0). Drop or "
                "fill them."
            )
        codes, first, _ = self.library.ids.factorize_rows([seed], [SEED], [what])
        order = self.xp.argsort(codes, kind="stable")
        values = self.xp.ones(len(frame))
        if weighted:
            values = self.library.numbers(columns.pop(), what, "entry", InvalidOptionError)[order]
        sizes = to_host(group_sizes(codes, len(first)))
        rows = self._known_positions([self.library.take(column, order) for column in columns], what, sizes)
        return self._seed_values(sizes, rows, values, Labels(column=self.library.take(seed, first)))

    def read_positions(self, given: Any, what: str, *, may_be_empty: bool = False) -> Integers:
        """Return the positions of vertices, in the given order; raise for repeated vertices."""
        with self._reading(given):
            given = self._converted(given, what)
            if isinstance(given, Mapping):
                raise InvalidOptionError(f"{what} must be a list, Series, index or array of vertices, not a dict.")
            if may_be_empty and hasattr(given, "__len__") and not len(given):
                return self.xp.empty(0, np.int64)
            columns = self.id_columns(given, what)
            if not len(columns[0]):
                raise InvalidOptionError(f"{what} is empty: it must name at least one vertex.")
            return self._known_positions(columns, what)

    def ids_and_numbers(self, given: Any, what: str) -> tuple[list[Any], Floats]:
        """Return the id columns and the values of a distribution; values are 1 if only vertices are given."""
        values: Any
        if isinstance(given, (list, tuple, set, frozenset, *self.types.indexes)):
            if isinstance(given, (list, tuple)) and (dicts := sum(isinstance(entry, Mapping) for entry in given)):
                raise InvalidOptionError(
                    f"{what} is a list with {counted(dicts, 'dict')}: a list names vertices. For many rankings pass it "
                    "as seeds=."
                )
            columns = self.id_columns(list(given) if isinstance(given, (set, frozenset)) else given, what)
            values = self.xp.ones(len(columns[0]))
        else:
            columns, column = self._ids_and_values(given, what)
            values = self.library.numbers(column, what, "entry", InvalidOptionError) if len(column) else column
        if not len(values):
            raise InvalidOptionError(f"{what} is empty: it must give a positive value to at least one vertex.")
        return columns, values

    def _ids_and_values(self, given: Any, what: str) -> tuple[list[Any], Any]:
        """Return the id columns and the value column of a dict, Series or frame."""
        if isinstance(given, Mapping):
            import pandas as pd  # loaded with every library that has columns

            return self.id_columns(list(given), what), pd.Series(list(given.values()), dtype=object)
        if isinstance(given, self.types.series):
            self._require_vertex_index(given, what)
            return self.id_columns(given.index, what), given.reset_index(drop=True)
        names = [*self.names, "values"]
        if isinstance(given, self.types.frames):
            *columns, values = columns_of(self.library, given, names, what)
            return columns, values
        raise InvalidOptionError(
            f"{what} must be a dict of vertex: value, a Series indexed by vertex, a frame with the columns "
            f"{listed([repr(name) for name in names])}, a list of vertices, or an array with a number per vertex, not "
            f"{type(given).__name__}."
        )

    def _require_vertex_index(self, given: Any, what: str) -> None:
        """Raise if a Series may be a column of vertices instead of values by vertex: see `ambiguous_refused`."""
        index = given.index
        if index.name is not None or not len(given):
            return
        ambiguous = getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1  # the default index
        of_integers = self.kinds == ["integer"] and given.dtype.kind in "iu" and index.dtype.kind in "iu"
        if not ambiguous and of_integers and given.name is not None and index.is_monotonic_increasing:
            ambiguous = given.is_unique and bool((self.find_positions(self.id_columns(given, what), what) >= 0).all())
        if ambiguous:
            from prplugin.frames._pandas_kinds import ambiguous_refused  # imports pandas, which every library needs

            raise ambiguous_refused(what, plain_ids([given], np.arange(len(given))[:3]), len(given))

    def _distribution(self, given: Any, what: str) -> tuple[list[Any], Floats]:
        """Return the id columns and the values of one of several distributions."""
        if _is_array(given):
            values = self._values(given, what)
            rows = self.xp.flatnonzero(values)
            return [self.library.take(column, rows) for column in self.columns], values[rows]
        return self.ids_and_numbers(given, what)

    def _are_distributions(self, given: Any, what: str) -> bool:
        """Return True if all entries are distributions, False if all are vertices; raise if they are mixed."""
        kinds = (Mapping, list, set, frozenset, *self.types.series, *self.types.frames, *self.types.indexes)
        vertices = [at for at, entry in enumerate(given) if not isinstance(entry, kinds) and not _is_array(entry)]
        if 0 < len(vertices) < len(given):
            raise InvalidOptionError(
                f"{what} is a list of distributions, and {counted(len(vertices), 'entry is', 'entries are')} "
                f"not: {listed([repr(given[at]) for at in vertices])}. Write {{vertex: 1}} for a seed that is a "
                "vertex, or list vertices alone."
            )
        return not vertices

    def _seed_values(self, sizes: Integers, rows: Integers, values: Floats, labels: Labels) -> SeedValues:
        self.seed_names(labels)  # raises for a name clash before the iteration
        return SeedValues(np.concatenate([[0], np.cumsum(sizes)]), rows, values, labels)

    def _known_positions(self, columns: list[Any], what: str, sizes: Integers | None = None) -> Integers:
        """Return the positions of ids; raise for unknown ids, and for ids repeated within one distribution.

        `sizes` holds the lengths of the consecutive distributions; None: a single distribution.
        """
        xp = self.xp
        try:
            rows = self.find_positions(columns, what)
        except InvalidEdgesError as error:
            raise InvalidOptionError(str(error)) from error
        ids_at = partial(plain_ids, columns)
        if (unknown := xp.flatnonzero(rows < 0)).size:
            raise InvalidOptionError(
                f"{what} names {counted(unknown.size, 'vertex', 'vertices')} not in the graph: "
                f"{listed(format_ids(ids_at, unknown))}. Remove them, or add them to the graph with vertices=."
            )
        keys = rows
        if sizes is not None:
            keys = xp.asarray(np.repeat(np.arange(sizes.size), sizes)) * len(self) + rows
        order = xp.argsort(keys, kind="stable")
        if (repeated := xp.sort(order[1:][keys[order[1:]] == keys[order[:-1]]])).size:
            raise InvalidOptionError(
                f"{what} names {counted(int(xp.unique(rows[repeated]).size), 'vertex', 'vertices')} more than once: "
                f"{listed(format_ids(ids_at, repeated))}. Drop all but one, or add up their values."
            )
        return rows

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


def finite_numbers(given: Any) -> Floats | None:
    """Return a copy of an array as float64, in its memory space; None unless all are finite and non-negative."""
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        return None
    floats: Floats = given.astype(np.float64)
    return floats if not floats.size or (floats.min() >= 0 and floats.max() < np.inf) else None


def to_python(value: Any) -> Any:
    """Return a NumPy scalar as a Python object, whose repr does not name the type."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def plain_ids(columns: list[Any], rows: Integers) -> list[Any]:
    """Return the ids in the given rows as Python objects, as tuples if there are several columns."""
    columns = [getattr(column, "iloc", column) for column in columns]
    ids = [tuple(to_python(column[row]) for column in columns) for row in rows.tolist()]
    return [parts[0] for parts in ids] if len(columns) == 1 else ids


def format_ids(ids_at: Callable[[Integers], list[Any]], rows: Integers) -> list[str]:
    """Return the ids in the given rows as text, for `listed`: the first six, and "" for each of the others."""
    shown = [repr(vertex) for vertex in ids_at(rows[:6])]
    return shown + [""] * (rows.size - len(shown))


def seed_ids(vertices: Vertices, labels: Labels, count: int) -> list[Any]:
    """Return the labels of the first `count` seeds as Python objects."""
    if labels.rows is not None:
        return vertices.plain_ids(labels.rows[:count])
    return plain_ids([labels.column], np.arange(min(count, len(labels.column))))


def _is_array(given: object) -> bool:
    return isinstance(given, np.ndarray) or namespace(given) is not np
