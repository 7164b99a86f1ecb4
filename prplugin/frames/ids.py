"""Ids of vertices as columns of one library: the operations on them, and factorization, which all libraries share.

`prplugin.frames.host_ids` and `prplugin.frames.device_ids` implement them. Frames, partitions, row groups, per-vertex
arguments and updates are all read through them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu.threads import take_in_place
from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, listed
from prplugin.frames.columns import Columns, columns_present, positions
from prplugin.frames.kinds import cast_to
from prplugin.types.arrays import MemorySpace, namespace
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers, index_dtype

Column: TypeAlias = Any
"""One column of ids: a Series or an array of the library."""

Frame: TypeAlias = Any
"""A frame of the library."""

EdgesById: TypeAlias = Callable[[list[Integers]], tuple[Edges | GroupedEdges, Integers]]
"""Factorizes columns of integer ids: sources, destinations and, optionally, more; returns edges and distinct ids."""


class GivenTypes(NamedTuple):
    """Types of one or several libraries that are accepted for per-vertex arguments."""

    indexes: tuple[Any, ...]  # indexes and arrays of vertices, without values
    series: tuple[Any, ...]  # values, indexed by vertex
    frames: tuple[Any, ...]


class ColumnInfo(NamedTuple):
    """Properties of a column of ids in one part of a frame; `where` names the part in messages.

    `sample` is in host memory. It holds the minimum and maximum of integers, and the first id of other kinds; it is
    empty for a column without rows.
    """

    kind: str
    rows: int
    dtype: Any
    sample: Any
    where: str = ""


class Ids(ABC):
    """Operations on columns of ids of one library.

    A vertex has one id, or several in several columns. The parameters `label`, `labels` and `what` name columns or
    arguments in messages. `kinds` holds the kind of ids in each column, such as "integer".
    """

    memory_space: ClassVar[MemorySpace]
    xp: ClassVar[Any]
    """NumPy or CuPy."""

    def active(self) -> AbstractContextManager[Any]:
        """Return a context manager for operations on columns."""
        return nullcontext()

    # --- input and output -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def types(self) -> GivenTypes:
        """Types accepted for per-vertex arguments."""

    @abstractmethod
    def convert(self, given: object, what: str) -> Any:
        """Convert frames and columns of other libraries to `types`; return other objects unchanged."""

    def own_frame(self, frame: Frame) -> Frame:
        """Return a frame of `types` as a frame of the library."""
        return frame

    @abstractmethod
    def column_of(self, frame: Frame, position: int) -> Column:
        """Return a column of a frame of `types` by position. Its index is arbitrary."""

    @abstractmethod
    def id_columns(self, given: object, names: list[Hashable] | None, what: str) -> list[Column]:
        """Convert a list, array, Series, Index or frame of ids to columns, one per component of a vertex.

        `names`: Names of the components of vertices with several columns; None for a single column.
        """

    @abstractmethod
    def frame_of(self, names: list[Hashable], columns: list[Column]) -> Frame:
        """Return a frame of columns and numeric arrays, without a copy."""

    @abstractmethod
    def concat(self, parts: list[Any]) -> Any:
        """Concatenate frames, or Series of one type, and renumber their rows."""

    @abstractmethod
    def numbers(self, column: Column, label: str, noun: str, error: type[PageRankError]) -> Floats:
        """Return a copy of a column as float64; raise `error` unless all values are finite and non-negative.

        `noun` names an entry in messages, such as "row".
        """

    @abstractmethod
    def numbers_of_array(self, given: object, label: str, error: type[PageRankError]) -> Floats:
        """Return a copy of an array as float64; raise `error` unless all values are finite and non-negative."""

    @abstractmethod
    def missing_rows(self, column: Column) -> Integers:
        """Return the rows of a Series without a value."""

    @abstractmethod
    def as_column(self, values: object, label: str = "") -> Column:
        """Return an array, or a column of pandas, as a Series of the library."""

    @abstractmethod
    def to_host(self, column: Column) -> Any:
        """Return a Series as an array in host memory, for `prplugin.frames.host_ids`."""

    @abstractmethod
    def from_host(self, ids: object, kind: str, dtypes: list[Any]) -> Column:
        """Return distinct ids, an array in host memory, in the type of the source columns: see `like_source`."""

    # --- operations -----------------------------------------------------------------------------------------------

    @abstractmethod
    def kind_of(self, column: Column, label: str) -> str:
        """Return the kind of ids in a column, "empty" for an untyped column without ids; raise for nulls and floats."""

    @abstractmethod
    def take(self, column: Column, rows: Integers | None) -> Column:
        """Return a copy of the given rows of a column, of all rows for None."""

    def deduplicate(self, column: Column) -> Column:
        """Return a column of repeated Python objects in a form that takes less time to factorize, others unchanged."""
        return column

    @abstractmethod
    def factorize(
        self, columns: list[Column], kinds: list[str], labels: list[str]
    ) -> tuple[Integers, Integers, list[Column]]:
        """Factorize the rows of columns in the order of first appearance.

        Return codes, the first row of each code, and the distinct rows, column by column.
        """

    @abstractmethod
    def concatenate(self, columns: list[Column], label: str) -> Column:
        """Concatenate columns without categories in their common type if there is one, else in that of the first."""

    @abstractmethod
    def one_column(self, columns: list[Column], what: str) -> Column:
        """Concatenate columns of ids that were given by the user, of any types."""

    @abstractmethod
    def positions(self, vertices: list[Column], columns: list[Column], kinds: list[str], what: str) -> Integers:
        """Return the position of each row of `columns` in `vertices`, or -1."""

    @abstractmethod
    def without_categories(self, column: Column) -> Column:
        """Return a categorical column as a column of its values, and other columns unchanged."""

    @abstractmethod
    def like_categories(self, column: Column, dtypes: list[Any]) -> Column:
        """Return distinct ids as a categorical if all `dtypes` are the same categorical type, else unchanged."""

    @abstractmethod
    def integers(self, column: Column, label: str = "") -> Integers:
        """Return integer ids as an array, without a copy if the column has one."""

    @abstractmethod
    def integers_like(self, integers: Integers, dtypes: list[Any]) -> Column:
        """Return integer ids in the type of the source column, the first of `dtypes`, with the width of `integers`."""

    @abstractmethod
    def joined_dtypes(self, columns: list[Column]) -> list[Any]:
        """Return the types from which `integers_like` gets that of concatenated columns of integers."""

    @abstractmethod
    def extremes(self, integers: Integers) -> Any:
        """Return the minimum and the maximum of integers as an array in host memory, empty if there are none."""

    # --- what all libraries share ---------------------------------------------------------------------------------

    def endpoints_of(self, frame: Frame, columns: Columns, vertices: object = None) -> list[list[Column]]:
        """Return the source columns, the destination columns and, if given, the additional vertex columns."""
        both = (columns.source, columns.destination)
        endpoints = [[self.column_of(frame, position) for position in end] for end in both]
        if vertices is not None:
            names = columns.source_names if len(columns.source) > 1 else None
            endpoints.append(self.id_columns(vertices, names, "vertices"))
        return endpoints

    def columns_of(self, frame: Frame, names: list[Hashable], what: str) -> list[Column]:
        """Return columns of a frame by name; raise if one is absent or repeated."""
        labels = list(frame.columns)
        found = [positions(labels, name) for name in names]
        if absent := [name for name, places in zip(names, found, strict=True) if not places]:
            raise InvalidOptionError(
                f"{what} has no column {listed([repr(name) for name in absent])}: it needs the columns "
                f"{listed([repr(name) for name in names])}. {columns_present(labels, frame)} Rename or add columns."
            )
        if repeated := [name for name, places in zip(names, found, strict=True) if len(places) > 1]:
            raise InvalidOptionError(f"{what} has column {repeated[0]!r} more than once. Rename or drop all but one.")
        return [self.column_of(frame, places[0]) for places in found]

    def column_info(self, column: Column, label: str) -> ColumnInfo:
        """Return the `ColumnInfo` of a Series of ids."""
        kind = self.kind_of(self.deduplicate(column), label)
        if kind == "integer":
            sample = self.extremes(self.integers(column, label))
        else:
            sample = self.to_host(self.without_categories(column.head(1)))
        return ColumnInfo(kind, len(column), column.dtype, sample)

    def like_source(self, ids: Column, kind: str, dtypes: list[Any]) -> Column:
        """Return distinct ids in the type of the source columns; `dtypes` are those of the endpoints."""
        if kind == "integer":
            return self.integers_like(self.integers(ids), dtypes)
        return self.like_categories(ids, dtypes)

    def encode(
        self, endpoints: list[list[Column]], labels: list[list[str]], edges_by_id: EdgesById
    ) -> tuple[Edges | GroupedEdges, list[Column], list[str]]:
        """Factorize sources, destinations and, optionally, additional vertices; `labels` holds the column names.

        Return the edges, which have weights only if `edges_by_id` adds them; the vertices as columns in the types of
        the source columns; and the kind of ids in each. `edges_by_id` factorizes a single column of integer ids.
        """
        parts, names = transposed(endpoints), transposed(labels)
        parts = [[self.deduplicate(column) for column in part] for part in parts]
        kinds = [
            same_kind([self.kind_of(*pair) for pair in zip(part, part_names, strict=True)], part_names)
            for part, part_names in zip(parts, names, strict=True)
        ]
        dtypes = [[column.dtype for column in part] for part in parts]
        if kinds == ["integer"]:
            edges, found = edges_by_id(self.common_integers(parts[0], names[0]))
            return edges, [self.integers_like(found, dtypes[0])], kinds
        codes, columns, _ = self.factorize_endpoints(parts, names, kinds)
        vertices = [self.like_source(*each) for each in zip(columns, kinds, dtypes, strict=True)]
        return Edges(codes[0], codes[1], None, len(vertices[0])), vertices, kinds

    def factorize_endpoints(
        self, parts: list[list[Column]], labels: list[list[str]], kinds: list[str], *, threads: int = 1
    ) -> tuple[list[Integers], list[Column], Any]:
        """Factorize vertices of one or several columns in the order of first appearance, source before destination.

        `parts` and `labels` hold, for each vertex column, its column and its name in each endpoint. Each endpoint is
        factorized separately, then the distinct vertices of all endpoints. Return the codes of each endpoint; the
        distinct vertices, column by column, without categories, integers in one type of NumPy; and the position of the
        first appearance of each vertex (see `places_of`), or None from an implementation that does not find it.
        """
        columns = [
            self.common_integers(part, names) if kind == "integer" else part
            for part, names, kind in zip(parts, labels, kinds, strict=True)
        ]
        endpoints = transposed(columns)

        def factorize(columns: list[Column], names: list[str]) -> Any:
            return self.factorize(columns, kinds, names)

        if threads > 1:
            with ThreadPoolExecutor(threads, "prplugin") as pool:
                found = list(pool.map(factorize, endpoints, transposed(labels)))
        else:
            found = list(map(factorize, endpoints, transposed(labels)))
        codes, rows, distinct = zip(*found, strict=True)
        xp = namespace(codes[0])
        places = xp.concatenate(places_of(rows, len(endpoints[0][0])))
        order = xp.argsort(places)
        source_labels = [names[0] for names in labels]
        joined = [
            self.concatenate([self.without_categories(column) for column in columns], label).take(order)
            for columns, label in zip(transposed(distinct), source_labels, strict=True)
        ]
        merged, first, vertices = self.factorize(joined, kinds, source_labels)
        new_codes = xp.empty(order.size, index_dtype(first.size))
        new_codes[order] = merged
        bounds = np.cumsum([0, *(each.size for each in rows)]).tolist()
        own_codes = [new_codes[begin:end] for begin, end in pairwise(bounds)]
        vertex_codes = [take_in_place(own, code) for own, code in zip(own_codes, codes, strict=True)]
        return vertex_codes, vertices, places[order[first]] if first.size else places

    def common_integers(self, columns: list[Column], labels: list[str]) -> list[Integers]:
        """Return integer ids of several columns as arrays of one type that holds all of them."""
        arrays = [self.integers(column, label) for column, label in zip(columns, labels, strict=True)]
        return in_one_type(arrays, [has_width(column.dtype) for column in columns], labels)


def transposed(table: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return a list of the columns of a list of rows."""
    return [list(column) for column in zip(*table, strict=True)]


def places_of(rows: Sequence[Integers], m: int) -> list[Integers]:
    """Return the positions of rows of sources, destinations and additional vertices in the order of first appearance.

    For m edges: 2 * row for a source, 2 * row + 1 for a destination, 2 * m + row for an additional vertex.
    """
    scales = ((2, 0), (2, 1), (1, 2 * m))
    return [row.astype(np.int64) * scale + shift for row, (scale, shift) in zip(rows, scales, strict=False)]


def same_kind(kinds: list[str], labels: list[str]) -> str:
    """Return the common kind of ids of all columns; raise if kinds differ."""
    filled = [(kind, label) for kind, label in zip(kinds, labels, strict=True) if kind != "empty"]
    for kind, label in filled:
        if kind != filled[0][0]:
            raise InvalidEdgesError(
                f"{filled[0][1]} holds ids of kind {filled[0][0]}, but {label} of kind {kind}: "
                "cast one to the type of the other, so that equal vertices have equal ids; for instance with "
                f"{cast_to('string')}."
            )
    return filled[0][0] if filled else "empty"


# --- integers -----------------------------------------------------------------------------------------------------


def in_one_type(arrays: list[Integers], widths: list[bool], labels: Sequence[str]) -> list[Integers]:
    """Cast NumPy or CuPy arrays of integers to one type that holds all values.

    Entries of `widths` are False for arrays of Python integers, which widen the result only if their values require it.
    """
    if all(array.dtype == arrays[0].dtype for array in arrays):
        return arrays
    typed = {array.dtype for array, has_width in zip(arrays, widths, strict=True) if has_width}
    dtype = np.result_type(*(typed or {np.dtype(np.int64)}))
    if not all(_fits(array, dtype) for array in arrays):
        dtype = np.result_type(*{array.dtype for array in arrays})
    if dtype.kind not in "iu":  # uint64 and a signed type: NumPy's common type is float64
        filled = [array for array in arrays if array.size]
        if all(int(array.min()) >= 0 for array in filled):
            dtype = np.dtype(np.uint64)
        elif all(int(array.max()) <= np.iinfo(np.int64).max for array in filled):
            dtype = np.dtype(np.int64)
        else:
            raise InvalidEdgesError(
                f"{' and '.join(labels)} hold negative ids and ids past 2**63, "
                f"which no one integer type holds. Cast them to strings, for instance with {cast_to('string')}."
            )
    return [array.astype(dtype, copy=False) for array in arrays]


def _fits(array: Integers, dtype: np.dtype[Any]) -> bool:
    if np.can_cast(array.dtype, dtype) or not array.size:
        return True
    return dtype.kind in "iu" and np.iinfo(dtype).min <= int(array.min()) and int(array.max()) <= np.iinfo(dtype).max


def has_width(dtype: Any) -> bool:
    """Return whether a type of integers, of pandas or cuDF, was chosen by the user: all but Python integers."""
    return dtype.kind not in "Of" or hasattr(dtype, "categories")
