"""Ids of vertices as columns of one library: the operations on them, for pandas and NumPy. Imports pandas.

`prplugin.frames.device_ids` overrides those of which cuDF needs others. Frames, partitions, row groups, per-vertex
arguments and updates are all read through them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pandas.api import types

from prplugin.cpu.threads import take_in_place
from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames import host_columns
from prplugin.frames.columns import (
    Column,
    ColumnInfo,
    Columns,
    Dtype,
    EdgesById,
    Frame,
    GivenTypes,
    has_width,
    in_one_type,
    places_of,
    positions,
    same_kind,
    transposed,
)
from prplugin.frames.host_columns import ObjectColumn
from prplugin.frames.remedies import cast_advice, remedy
from prplugin.frames.suggested import columns_present
from prplugin.machine import mapping_on, this_machine
from prplugin.progress import factorizing
from prplugin.types.array_module import ArrayModule
from prplugin.types.arrays import (
    NUMPY,
    MemorySpace,
    finite_numbers,
    memory_space_of,
    namespace,
    plain_array,
    to_host,
    to_memory,
)
from prplugin.types.edges import Coo, Floats, Grouped, Integers, index_dtype


class Ids:
    """Operations on columns of ids of one library: here on Series and arrays of pandas, and on arrays of NumPy.

    A vertex has one id, or several in several columns. The parameters `label`, `labels` and `what` name columns or
    arguments in messages. `kinds` holds the kind of ids in each column, such as "integer".
    """

    memory_space: ClassVar[MemorySpace] = "host"
    xp: ClassVar[ArrayModule] = NUMPY
    """NumPy or CuPy."""

    def active(self) -> AbstractContextManager[object]:
        """Return a context manager for operations on columns."""
        return nullcontext()

    @property
    def types(self) -> GivenTypes:
        """Types accepted for per-vertex arguments."""
        return GivenTypes((pd.Index, pd.api.extensions.ExtensionArray), (pd.Series,), (pd.DataFrame,))

    def convert(self, given: object, what: str) -> Any:
        """Convert frames and columns of other libraries to `types`; return other objects unchanged."""
        if type(given).__module__.partition(".")[0] in ("builtins", "numpy", "pandas"):
            return given
        from prplugin.frames.arrow import as_pandas  # imports narwhals and pyarrow

        return as_pandas(given, what)

    def own_frame(self, frame: Frame) -> Frame:
        """Return a frame of `types` as a frame of the library."""
        return frame

    def column_of(self, frame: pd.DataFrame, position: int) -> pd.Series:
        """Return a column of a frame of `types` by position. Its index is arbitrary."""
        # By name, pandas would first build a hash table of the labels; ``iloc[:, position]`` takes twice the time.
        return host_columns.decode_storage(frame.iloc(axis=1)[position])

    def id_columns(self, given: object, names: list[Hashable] | None, what: str) -> list[pd.Series]:
        """Convert a list, array, Series, Index or frame of ids to columns, one per component of a vertex.

        `names`: Names of the components of vertices with several columns; None for a single column.
        """
        given = self.convert(plain_array(given, what), what)
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or getattr(given, "shape", None) == ():
            raise InvalidOptionError(f"{what} must be a list, an array, a Series or a frame of ids, not {given!r}.")
        if isinstance(given, (set, frozenset)):
            raise InvalidOptionError(
                f"{what} is a set, which has no order: pass a list, {remedy('list of a set', role=what)}."
            )
        if names is None:
            host_columns.require_one_column(given, pd.DataFrame, pd.MultiIndex, what)
            if isinstance(given, pd.DataFrame):
                return [host_columns.decode_storage(given.iloc[:, 0])]
            if isinstance(given, (pd.Series, pd.Index, np.ndarray, pd.api.extensions.ExtensionArray)):
                return [host_columns.decode_storage(pd.Series(given).reset_index(drop=True))]
            # As objects, since pandas would convert [1, None] to floats.
            return [host_columns.objects_of(list(given))]
        if isinstance(given, pd.DataFrame):
            return self.columns_of(given, names, what)
        rows = list(given)
        invalid = [row for row, item in enumerate(rows) if not isinstance(item, tuple) or len(item) != len(names)]
        if invalid:
            raise InvalidOptionError(
                f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(n) for n in names])}; "
                f"{counted(len(invalid), 'entry is', 'entries are')} not: "
                f"{listed([repr(rows[row]) for row in invalid])}."
            )
        return [host_columns.objects_of([item[part] for item in rows]) for part in range(len(names))]

    def frame_of(self, names: list[Hashable], columns: list[Column]) -> pd.DataFrame:
        """Return a frame of columns and numeric arrays, without a copy."""
        of_integers = isinstance(columns[0], np.ndarray) and columns[0].dtype.kind in "iu"
        if of_integers and names == ["vertex", "pagerank"] and hasattr(pd.api, "internals"):  # from pandas 3 on
            # A tenth of the time of a dict. The names are a view, so that users may set its `name`.
            blocks = [(column[None], np.array([place])) for place, column in enumerate(columns)]
            index, labels = pd.RangeIndex(len(columns[0])), host_columns.result_columns().view()
            return pd.api.internals.create_dataframe_from_blocks(blocks, index=index, columns=labels)
        named = dict(zip(names, map(self.as_column, columns), strict=True))
        return pd.DataFrame(named, copy=False)

    def concat(self, parts: list[Column]) -> Column:
        """Concatenate frames, or Series of one type, and renumber their rows."""
        return pd.concat(parts, ignore_index=True)

    def numbers(self, column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
        """Return a copy of a column as float64; raise `error` unless all values are finite and non-negative.

        `noun` names an entry in messages, such as "row".
        """
        return host_columns.numbers(column, label, noun, error)

    def weights_of(self, frame: Frame, columns: Columns) -> Floats:
        """Return the weights of edges as float64."""
        assert columns.weight is not None
        label = f"column {columns.weight_name!r}"
        return self.numbers(self.column_of(frame, columns.weight), label, "row", InvalidEdgesError)

    def numbers_of_array(self, given: Any, label: str, error: type[PageRankError]) -> Floats:
        """Return a copy of an array as float64; raise `error` unless all values are finite and non-negative."""
        if (floats := finite_numbers(given)) is not None:
            return floats
        found = self.numbers(pd.Series(to_host(given).reshape(-1)), label, "entry", error)
        return to_memory(found.reshape(given.shape), memory_space_of(given))

    def missing_rows(self, column: pd.Series) -> Integers:
        """Return the rows of a Series without a value."""
        return host_columns.missing_rows(column)

    def complete_rows(self, frame: Frame, columns: Columns) -> Integers | None:
        """Return the rows of a frame that have both endpoints if others are to be dropped; None for all."""
        if columns.missing == "error":
            return None
        ends = (*columns.source, *columns.destination)
        rows = [row for end in ends if (row := self.missing_rows(self.column_of(frame, end))).size]
        if not rows:
            return None
        complete = self.xp.ones(len(frame), np.bool_)
        complete[self.xp.concatenate(rows)] = False
        return self.xp.flatnonzero(complete)

    def as_column(self, values: Column, label: str = "") -> pd.Series:
        """Return an array, or a column of pandas, as a Series of the library."""
        # With an explicit dtype, since pandas infers its string type for objects that are all strings.
        return values if isinstance(values, pd.Series) else pd.Series(values, dtype=values.dtype)

    def text(self, values: list[str]) -> Column:
        """Return strings as a column of the library."""
        return self.as_column(pd.Series(values))

    def to_host(self, column: Column) -> Column:
        """Return a Series as an array in host memory, for the operations of `HOST`."""
        return getattr(column, "array", column)

    def from_host(self, ids: Column, kind: str, dtypes: list[Dtype]) -> Column:
        """Return distinct ids, an array in host memory, in the type of the source columns: see `like_source`."""
        return self.like_source(ids, kind, dtypes)

    def kind_of(self, column: pd.Series | ObjectColumn, label: str) -> str:
        """Return the kind of ids in a column, "empty" for an untyped column without ids; raise for nulls and floats."""
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
            return "integer"  # cannot hold nulls
        return host_columns.kind_of(column, label)

    def take(self, column: Column, rows: Integers | None) -> Column:
        """Return a copy of the given rows of a column, of all rows for None."""
        if rows is None:
            return column.copy()
        taken = column.take(rows)
        return taken.reset_index(drop=True) if isinstance(taken, pd.Series) else taken

    def deduplicate(self, column: pd.Series) -> pd.Series | ObjectColumn:
        """Return a column of repeated Python objects in a form that takes less time to factorize, others unchanged."""
        return host_columns.deduplicate_objects(column) if column.dtype.kind == "O" else column

    def factorize(
        self, columns: list[Column], kinds: list[str], labels: list[str]
    ) -> tuple[Integers, Integers, list[Column]]:
        """Factorize the rows of columns in the order of first appearance.

        Return codes, the first row of each code, and the distinct rows, column by column.
        """
        factorized = [host_columns.factorize_column(*column) for column in zip(columns, kinds, labels, strict=True)]
        codes, values = factorized[0]
        if len(columns) == 1:
            return codes, host_columns.first_rows(codes, len(values)), [values]
        # Encode the codes of each row as one integer.
        keys, size = codes.astype(np.int64), len(values)
        for codes, values in factorized[1:]:
            if size * len(values) > np.iinfo(np.int64).max:
                keys, distinct = pd.factorize(keys)  # smaller codes, so that the next product fits in 64 bits
                size = len(distinct)
            keys = keys * len(values) + codes
            size *= max(len(values), 1)
        keys, distinct = pd.factorize(keys)
        rows = host_columns.first_rows(keys, len(distinct))
        return keys, rows, [values.take(codes[rows]) for codes, values in factorized]

    def concatenate(self, columns: list[Column], label: str) -> Column:
        """Concatenate columns without categories in their common type if there is one, else in that of the first."""
        first: Any = columns[0]
        if all(type(array) is type(first) and array.dtype == first.dtype for array in columns):
            if type(first) in (np.ndarray, pd.arrays.NumpyExtensionArray):
                return np.concatenate([np.asarray(array) for array in columns])
            return first._concat_same_type(columns)  # in a fraction of the time of `pandas.concat`
        arrays = [array for array in columns if len(array)] or columns[:1]
        dtype = arrays[0].dtype
        try:
            joined = self.concat([self.as_column(array) for array in arrays])
            if types.is_object_dtype(joined.dtype) and not types.is_object_dtype(dtype):
                cast = [self.as_column(array).astype(dtype) for array in arrays]
                pairs = zip(cast, arrays, strict=True)
                if any((new.astype(object) != pd.Series(old, dtype=object)).any() for new, old in pairs):
                    raise ValueError(f"{dtype} does not hold all values")
                joined = self.concat(cast)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidEdgesError(
                f"{label} and the other columns of ids have no common type: {error}. Cast them to one type."
            ) from error
        return host_columns.values_of(joined)

    def one_column(self, columns: list[Column], what: str) -> pd.Series:
        """Concatenate columns of ids that were given by the user, of any types."""
        if any(column.dtype != columns[0].dtype for column in columns):
            columns = [np.asarray(self.without_categories(column), object) for column in columns]
        return self.concat([self.as_column(column) for column in columns])

    def positions(self, vertices: list[Column], columns: list[pd.Series], kinds: list[str], what: str) -> Integers:
        """Return the position of each row of `columns` in `vertices`, or -1."""
        pairs = []
        for array, column, kind in zip(vertices, columns, kinds, strict=True):
            ids, others = self.without_categories(array), self.without_categories(column)
            if kind == "integer":  # as NumPy arrays, since pandas would compare some types as floats
                ids, others = self.integers(array), self.integers(column)
            elif ids.dtype != others.dtype or types.is_object_dtype(ids.dtype):
                ids, others = (host_columns.in_utc(np.asarray(array, object), kind) for array in (ids, others))
            else:
                ids, others = map(host_columns.exact, (ids, others))
            # With the type, since pandas infers its string type for objects that are all strings.
            pairs.append([pd.Index(array, dtype=array.dtype) for array in (ids, others)])
        known: pd.Index = pairs[0][0]
        try:
            asked = pairs[0][1]
            if len(pairs) > 1:
                known, asked = (pd.MultiIndex.from_arrays(list(indexes)) for indexes in zip(*pairs, strict=True))
            return known.get_indexer(asked)
        except (pd.errors.InvalidIndexError, ValueError) as error:  # of one column, of several
            if known.is_unique:
                raise
            raise host_columns.repeated_ids() from error
        except TypeError as error:
            raise InvalidOptionError(f"{what} holds ids that have no hash ({error}).") from error

    def without_categories(self, column: Any) -> Column:
        """Return the array of a Series or array, with values instead of categories."""
        array = getattr(column, "array", column)
        return array.astype(array.categories.dtype) if isinstance(array.dtype, pd.CategoricalDtype) else array

    def like_categories(self, column: Column, dtypes: list[Dtype]) -> Column:
        """Return distinct ids as a categorical if all `dtypes` are the same categorical type, else unchanged."""
        same = isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes)
        return pd.Categorical(column, dtype=dtypes[0]) if same else column

    def integers(self, column: Any, label: str = "") -> Integers:
        """Return integer ids as an array, without a copy if the column has one."""
        if isinstance(column, ObjectColumn):
            return self.integers(column.objects, label)[column.codes]
        dtype = column.dtype
        if isinstance(column, np.ndarray) and dtype.kind in "iu" and dtype.isnative:
            return column
        if isinstance(dtype, pd.CategoricalDtype):
            # Unused categories may be of any kind.
            used = self.as_column(column).cat.remove_unused_categories()
            return self.integers(used.cat.categories, label)[used.cat.codes.to_numpy()]
        if not len(column):  # untyped, or float, which pandas infers for an empty list
            return np.empty(0, dtype if isinstance(dtype, np.dtype) and dtype.kind in "iu" else np.int64)
        if types.is_object_dtype(dtype):
            for wide in (np.int64, np.uint64):
                try:
                    return np.array(column.tolist(), wide)
                except OverflowError:
                    continue
            raise InvalidEdgesError(
                f"{label} holds integers that no 64-bit type holds. "
                + cast_advice("Cast it to strings", "cast to strings", label)
            )
        if isinstance(column, np.ndarray):
            array: Integers = column
        else:
            array = column.to_numpy(dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def integers_like(self, integers: Integers, dtypes: list[Dtype]) -> Column:
        """Return integer ids in the type of the source column, the first of `dtypes`, with the width of `integers`."""
        like = dtypes[0]
        if isinstance(like, np.dtype) and like.kind != "O":
            return integers
        if isinstance(like, pd.CategoricalDtype):
            return self.like_categories(integers, dtypes)
        if types.is_object_dtype(like):
            return pd.array(integers.tolist(), dtype=object)
        return pd.array(integers, dtype=host_columns.stored_like(integers.dtype, like))

    def joined_dtypes(self, columns: list[Column]) -> list[Dtype]:
        """Return their common categorical type, else their common integer type in pandas, else that of the first."""
        dtypes = [column.dtype for column in columns]
        if isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes):
            return dtypes
        plain = [self.without_categories(column[:1]).dtype for column in columns]
        # Of zeros, since Arrow refuses to cast large integers to the common type of int64 and uint64, a float.
        joined = pd.concat([pd.Series([0], dtype=dtype) for dtype in plain]).dtype
        return [joined if types.is_integer_dtype(joined) else plain[0]]

    def extremes(self, integers: Integers) -> Integers:
        """Return the minimum and the maximum of integers as an array in host memory, empty if there are none."""
        return np.array([integers.min(), integers.max()], integers.dtype) if integers.size else integers[:0]

    def endpoints_of(self, frame: Frame, columns: Columns, vertices: object = None) -> list[list[Column]]:
        """Return the source columns, the destination columns and, if given, the additional vertex columns."""
        both = (columns.source, columns.destination)
        endpoints = [[self.column_of(frame, position) for position in end] for end in both]
        if vertices is not None:
            names = columns.vertex_names if len(columns.source) > 1 else None
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

    def column_info(self, column: pd.Series, label: str) -> ColumnInfo:
        """Return the `ColumnInfo` of a Series of ids."""
        kind = self.kind_of(self.deduplicate(column), label)
        if kind == "integer":
            sample: Column = self.extremes(self.integers(column, label))
        else:
            sample = self.to_host(self.without_categories(column.head(1)))
        return ColumnInfo(kind, len(column), column.dtype, sample)

    def like_source(self, ids: Column, kind: str, dtypes: list[Dtype]) -> Column:
        """Return distinct ids in the type of the source columns; `dtypes` are those of the endpoints."""
        if kind == "integer":
            return self.integers_like(self.integers(ids), dtypes)
        return self.like_categories(ids, dtypes)

    def encode(
        self, endpoints: list[list[Column]], labels: list[list[str]], edges_by_id: EdgesById
    ) -> tuple[Coo | Grouped, list[Column], list[str]]:
        """Factorize sources, destinations and, optionally, additional vertices; `labels` holds the column names.

        Return the edges, which have weights only if `edges_by_id` adds them; the vertices as columns in the types of
        the source columns; and the kind of ids in each. `edges_by_id` factorizes a single column of integer ids.
        """
        edges, vertices, kinds = self.codes_of(endpoints, labels, edges_by_id)
        if isinstance(edges, list):
            edges = Coo(edges[0], edges[1], None, len(vertices[0]))
        return edges, vertices, kinds

    def codes_of(
        self, endpoints: list[list[Column]], labels: list[list[str]], by_id: Callable[[list[Integers]], Any]
    ) -> tuple[Any, list[Column], list[str]]:
        """Return the codes of endpoints, the ids that they are of, and the kinds of these: see `encode`.

        For a single column of integer ids, return what `by_id` does instead of a list of codes.
        """
        parts, names = transposed(endpoints), transposed(labels)
        parts = [[self.deduplicate(column) for column in part] for part in parts]
        kinds = [
            same_kind([self.kind_of(*pair) for pair in zip(part, part_names, strict=True)], part_names)
            for part, part_names in zip(parts, names, strict=True)
        ]
        dtypes = [[column.dtype for column in part] for part in parts]
        if kinds == ["integer"]:
            codes, found = by_id(self.common_integers(parts[0], names[0]))
            return codes, [self.integers_like(found, dtypes[0])], kinds
        codes, columns, _ = self.factorize_endpoints(parts, names, kinds)
        return codes, [self.like_source(*each) for each in zip(columns, kinds, dtypes, strict=True)], kinds

    def factorize_endpoints(
        self, parts: list[list[Column]], labels: list[list[str]], kinds: list[str]
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

        threads = this_machine().threads_for(len(parts[0][0])) if self.memory_space == "host" else 1
        with factorizing(sum(len(end[0]) for end in endpoints)), mapping_on(min(threads, len(endpoints))) as run:
            contexts = [copy_context() for _ in endpoints]  # of this thread, in the others
            found = list(run(lambda own, *given: own.run(factorize, *given), contexts, endpoints, transposed(labels)))
        codes, rows, distinct = zip(*found, strict=True)
        xp = namespace(codes[0])
        places = xp.concatenate(places_of(rows, len(endpoints[0][0])))
        order = xp.argsort(places)
        source_labels = [names[0] for names in labels]
        joined = [
            self.concatenate([self.without_categories(column) for column in columns], label).take(order)
            for columns, label in zip(transposed(distinct), source_labels, strict=True)
        ]
        with factorizing(order.size):
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


HOST = Ids()  # the operations on ids in host memory
