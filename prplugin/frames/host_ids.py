"""Ids in host memory: columns of every pandas type, as Series or arrays. Imports pandas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames import host_columns
from prplugin.frames.host_columns import decode_storage
from prplugin.frames.host_objects import (
    ObjectColumn,
    deduplicate_objects,
    factorize_objects,
    factorize_values,
    first_rows,
    holds_many_objects,
    holds_times_with_zones,
    in_utc,
    missing_rows,
)
from prplugin.frames.ids import GivenTypes, Ids
from prplugin.frames.kinds import cast_to
from prplugin.machine import this_machine
from prplugin.types.arrays import MemorySpace, finite_numbers, memory_space_of, plain_array, to_host, to_memory
from prplugin.types.edges import Floats, Integers


class HostIds(Ids):
    """Operations on Series and arrays of pandas, and on arrays of NumPy."""

    memory_space: ClassVar[MemorySpace] = "host"
    xp: ClassVar[Any] = np

    @property
    def types(self) -> GivenTypes:
        return GivenTypes((pd.Index, pd.api.extensions.ExtensionArray), (pd.Series,), (pd.DataFrame,))

    def convert(self, given: object, what: str) -> Any:
        if type(given).__module__.partition(".")[0] in ("builtins", "numpy", "pandas"):
            return given
        from prplugin.frames.arrow import as_pandas  # imports narwhals and pyarrow

        return as_pandas(given, what)

    def column_of(self, frame: pd.DataFrame, position: int) -> pd.Series:
        # By name, pandas would first build a hash table of the labels; ``iloc[:, position]`` takes twice the time.
        return decode_storage(frame.iloc(axis=1)[position])

    def id_columns(self, given: object, names: list[Hashable] | None, what: str) -> list[pd.Series]:
        given = self.convert(plain_array(given, what), what)
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise InvalidOptionError(f"{what} must be a list, an array, a Series or a frame of ids, not {given!r}.")
        if isinstance(given, (set, frozenset)):
            raise InvalidOptionError(f"{what} is a set, which has no order: pass a list, for instance sorted(...).")
        if names is None:
            require_one_column(given, pd.DataFrame, pd.MultiIndex, what)
            if isinstance(given, pd.DataFrame):
                return [decode_storage(given.iloc[:, 0])]
            if isinstance(given, (pd.Series, pd.Index, np.ndarray, pd.api.extensions.ExtensionArray)):
                return [decode_storage(pd.Series(given).reset_index(drop=True))]
            # As objects, since pandas would convert [1, None] to floats.
            return [_objects(list(given))]
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
        return [_objects([item[part] for item in rows]) for part in range(len(names))]

    def frame_of(self, names: list[Hashable], columns: list[Any]) -> pd.DataFrame:
        of_integers = isinstance(columns[0], np.ndarray) and columns[0].dtype.kind in "iu"
        if of_integers and names == ["vertex", "pagerank"] and hasattr(pd.api, "internals"):  # from pandas 3 on
            # A tenth of the time of a dict. The names are a view, so that users may set its `name`.
            blocks = [(column[None], np.array([place])) for place, column in enumerate(columns)]
            index = pd.RangeIndex(len(columns[0]))
            return pd.api.internals.create_dataframe_from_blocks(blocks, index=index, columns=_result_columns().view())
        named = dict(zip(names, map(self.as_column, columns), strict=True))
        return pd.DataFrame(named, copy=False)

    def concat(self, parts: list[Any]) -> Any:
        return pd.concat(parts, ignore_index=True)

    def numbers(self, column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
        return host_columns.numbers(column, label, noun, error)

    def numbers_of_array(self, given: Any, label: str, error: type[PageRankError]) -> Floats:
        if (floats := finite_numbers(given)) is not None:
            return floats
        found = self.numbers(pd.Series(to_host(given).reshape(-1)), label, "entry", error)
        return to_memory(found.reshape(given.shape), memory_space_of(given))

    def missing_rows(self, column: pd.Series) -> Integers:
        return missing_rows(column)

    def as_column(self, values: Any, label: str = "") -> pd.Series:
        # With an explicit dtype, since pandas infers its string type for objects that are all strings.
        return values if isinstance(values, pd.Series) else pd.Series(values, dtype=values.dtype)

    def to_host(self, column: object) -> Any:
        return getattr(column, "array", column)

    def from_host(self, ids: object, kind: str, dtypes: list[Any]) -> Any:
        return self.like_source(ids, kind, dtypes)

    def kind_of(self, column: pd.Series | ObjectColumn, label: str) -> str:
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
            return "integer"  # cannot hold nulls
        return host_columns.kind_of(column, label)

    def take(self, column: Any, rows: Integers | None) -> Any:
        if rows is None:
            return column.copy()
        taken = column.take(rows)
        return taken.reset_index(drop=True) if isinstance(taken, pd.Series) else taken

    def deduplicate(self, column: pd.Series) -> pd.Series | ObjectColumn:
        return deduplicate_objects(column) if column.dtype.kind == "O" else column

    def factorize(
        self, columns: list[Any], kinds: list[str], labels: list[str]
    ) -> tuple[Integers, Integers, list[Any]]:
        factorized = [_factorized(*column) for column in zip(columns, kinds, labels, strict=True)]
        codes, values = factorized[0]
        if len(columns) == 1:
            return codes, first_rows(codes, len(values)), [values]
        # Encode the codes of each row as one integer.
        keys, size = codes.astype(np.int64), len(values)
        for codes, values in factorized[1:]:
            if size * len(values) > np.iinfo(np.int64).max:
                keys, distinct = pd.factorize(keys)  # smaller codes, so that the next product fits in 64 bits
                size = len(distinct)
            keys = keys * len(values) + codes
            size *= max(len(values), 1)
        keys, distinct = pd.factorize(keys)
        rows = first_rows(keys, len(distinct))
        return keys, rows, [values.take(codes[rows]) for codes, values in factorized]

    def factorize_endpoints(
        self, parts: list[list[Any]], labels: list[list[str]], kinds: list[str], *, threads: int = 1
    ) -> tuple[list[Integers], list[Any], Any]:
        threads = this_machine().threads_for(len(parts[0][0]))  # Arrow permits parallel threads
        return super().factorize_endpoints(parts, labels, kinds, threads=threads)

    def concatenate(self, columns: list[Any], label: str) -> Any:
        first = columns[0]
        if all(type(array) is type(first) and array.dtype == first.dtype for array in columns):
            if type(first) in (np.ndarray, pd.arrays.NumpyExtensionArray):
                return np.concatenate([np.asarray(array) for array in columns])
            return first._concat_same_type(columns)  # in a fraction of the time of `pandas.concat`
        arrays = [array for array in columns if len(array)] or columns[:1]
        try:
            joined = self.concat([self.as_column(array) for array in arrays])
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidEdgesError(f"{label} and the other columns of ids have no common type: {error}") from error
        if types.is_object_dtype(joined.dtype) and not types.is_object_dtype(arrays[0].dtype):
            first = arrays[0].dtype
            try:
                cast = [self.as_column(array).astype(first) for array in arrays]
            except (TypeError, ValueError) as error:
                raise InvalidEdgesError(
                    f"{label} cannot be cast to {first}, as the other endpoint has: {error}"
                ) from error
            changed = [
                (new.astype(object) != pd.Series(old, dtype=object)).any()
                for new, old in zip(cast, arrays, strict=True)
            ]
            if any(changed):
                raise InvalidEdgesError(
                    f"{label} and the other columns of ids hold values that {first} does not. Cast them to one type."
                )
            joined = self.concat(cast)
        return _values(joined)

    def one_column(self, columns: list[Any], what: str) -> pd.Series:
        if any(column.dtype != columns[0].dtype for column in columns):
            columns = [np.asarray(self.without_categories(column), object) for column in columns]
        return self.concat([self.as_column(column) for column in columns])

    def positions(self, vertices: list[Any], columns: list[pd.Series], kinds: list[str], what: str) -> Integers:
        pairs = []
        for array, column, kind in zip(vertices, columns, kinds, strict=True):
            ids, others = self.without_categories(array), self.without_categories(column)
            if kind == "integer":  # as NumPy arrays, since pandas would compare some types as floats
                ids, others = self.integers(array), self.integers(column)
            elif ids.dtype != others.dtype or types.is_object_dtype(ids.dtype):
                ids, others = (in_utc(np.asarray(array, object), kind) for array in (ids, others))
            # With the type, since pandas infers its string type for objects that are all strings.
            pairs.append([pd.Index(array, dtype=array.dtype) for array in (ids, others)])
        if len(pairs) == 1:
            known, asked = pairs[0]
        else:
            known, asked = (pd.MultiIndex.from_arrays(list(indexes)) for indexes in zip(*pairs, strict=True))
        return known.get_indexer(asked)

    def without_categories(self, column: Any) -> Any:
        """Return the array of a Series or array, with values instead of categories."""
        array = getattr(column, "array", column)
        return array.astype(array.categories.dtype) if isinstance(array.dtype, pd.CategoricalDtype) else array

    def like_categories(self, column: object, dtypes: list[Any]) -> Any:
        same = isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes)
        return pd.Categorical(column, dtype=dtypes[0]) if same else column

    def integers(self, column: Any, label: str = "") -> Integers:
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
                f"{label} holds integers that no 64-bit type holds. Cast it to strings, for instance with "
                f"{cast_to('string')}."
            )
        if isinstance(column, np.ndarray):
            array: Integers = column
        else:
            array = column.to_numpy(dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def integers_like(self, integers: Integers, dtypes: list[Any]) -> Any:
        like = dtypes[0]
        if isinstance(like, np.dtype) and like.kind != "O":
            return integers
        if isinstance(like, pd.CategoricalDtype):
            return self.like_categories(integers, dtypes)
        if types.is_object_dtype(like):
            return pd.array(integers.tolist(), dtype=object)
        return pd.array(integers, dtype=stored_like(integers.dtype, like))

    def joined_dtypes(self, columns: list[Any]) -> list[Any]:
        """Return their common categorical type, else their common integer type in pandas, else that of the first."""
        dtypes = [column.dtype for column in columns]
        if isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes):
            return dtypes
        plain = [self.without_categories(column[:1]).dtype for column in columns]
        # Of zeros, since Arrow refuses to cast large integers to the common type of int64 and uint64, a float.
        joined = pd.concat([pd.Series([0], dtype=dtype) for dtype in plain]).dtype
        return [joined if types.is_integer_dtype(joined) else plain[0]]

    def extremes(self, integers: Integers) -> Any:
        return np.array([integers.min(), integers.max()], integers.dtype) if integers.size else integers[:0]


HOST = HostIds()
"""The operations on ids in host memory."""


def _factorized(column: Any, kind: str, label: str) -> tuple[Integers, Any]:
    """Factorize a Series, an `ObjectColumn` or an array; return codes and distinct values."""
    try:
        plain = column.column if isinstance(column, ObjectColumn) else column
        if types.is_object_dtype(plain.dtype) and holds_times_with_zones(objects := np.asarray(plain), kind):
            codes, distinct = pd.factorize(in_utc(objects, kind))
            return codes, objects[first_rows(codes, len(distinct))]
        if isinstance(column, ObjectColumn):
            return column.factorize(strings=kind == "string")
        if holds_many_objects(column):
            return factorize_objects(column, strings=kind == "string")
        return factorize_values(_values(column) if isinstance(column, pd.Series) else column)
    except TypeError as error:
        raise InvalidEdgesError(f"{label} holds ids that have no hash ({error}). Cast it to strings.") from error


def _values(column: pd.Series) -> Any:
    """Return the array of a column, unwrapped if it is a NumPy array."""
    wrapped = isinstance(column.dtype, np.dtype) and column.dtype.kind not in "mM"
    return column.to_numpy() if wrapped else column.array


def _objects(items: list[Any]) -> pd.Series:
    """Return a Series of dtype object, or of the inferred dtype for dates, times and intervals."""
    objects = np.empty(len(items), object)
    objects[:] = items
    series = pd.Series(objects, dtype=object)
    temporal = types.infer_dtype(series, skipna=True).startswith(("datetime", "timedelta", "period", "interval"))
    return series.infer_objects() if temporal else series


@cache
def _result_columns() -> pd.Index:
    return pd.Index(["vertex", "pagerank"])  # not a constant: with cudf.pandas it would be a proxy


def require_one_column(given: Any, frame_type: type[Any], multi_index_type: type[Any], what: str) -> None:
    """Raise if a frame, an index or an array of ids, of pandas or cuDF, has several columns."""
    if isinstance(given, frame_type):
        if given.shape[1] != 1:
            raise InvalidOptionError(
                f"{what} is a frame of {given.shape[1]} columns, but the vertices of this graph have one."
            )
    elif isinstance(given, multi_index_type):
        raise InvalidOptionError(
            f"{what} has an index of {given.nlevels} levels, but the vertices of this graph have one column."
        )
    elif getattr(given, "ndim", 1) != 1:
        raise InvalidOptionError(f"{what} is an array of {given.ndim} dimensions: pass one with one dimension.")


def stored_like(dtype: np.dtype[Any], like: object) -> Any:
    """Convert an integer type of NumPy to the storage of `like`: nullable or Arrow."""
    if isinstance(like, pd.ArrowDtype):
        return pd.ArrowDtype(pa.from_numpy_dtype(dtype))
    return dtype.name.replace("i", "I").replace("uI", "UI")
