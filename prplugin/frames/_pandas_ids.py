"""Id columns of every pandas type: kinds, common types and factorization. Imports pandas."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types

from prplugin.errors import InvalidEdgesError
from prplugin.frames import factorize
from prplugin.frames._pandas_kinds import cast_to, kind_of  # noqa: F401  # kind_of is used as `ids.kind_of`
from prplugin.frames._pandas_objects import (
    ObjectColumn,
    factorize_objects,
    factorize_values,
    first_rows,
    holds_many_objects,
    holds_times_with_zones,
    in_utc,
)
from prplugin.machine import this_machine
from prplugin.types.edges import Integers


def decode_storage(column: pd.Series) -> pd.Series:
    """Convert sparse columns, and Arrow types that pandas supports only in part; return others unchanged."""
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return column.sparse.to_dense()
    if isinstance(dtype, pd.ArrowDtype):
        array = pa.array(column.array)
        chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        decoded = decode_arrow(chunked, f"column {column.name!r}")
        if decoded is not chunked:
            return pd.Series(pd.arrays.ArrowExtensionArray(decoded), index=column.index, name=column.name)
    return column


def decode_arrow(column: Any, label: str) -> Any:
    """Decode extension types, run-end encoding, dictionaries, views and narrow decimals of Arrow.

    Raise `InvalidEdgesError` for types that pandas does not support.
    """
    kind = column.type
    try:
        if isinstance(kind, pa.BaseExtensionType):
            return decode_arrow(column.cast(kind.storage_type), label)
        if pa.types.is_run_end_encoded(kind):
            return decode_arrow(pc.run_end_decode(column), label)
        if pa.types.is_dictionary(kind):
            chunks = [chunk.dictionary_decode() for chunk in column.chunks]
            return decode_arrow(pa.chunked_array(chunks, kind.value_type), label)
        if pa.types.is_string_view(kind):
            return column.cast(pa.large_string())
        if pa.types.is_binary_view(kind):
            return column.cast(pa.large_binary())
        if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
            return column.cast(pa.decimal128(kind.precision, kind.scale))
        _ = pd.ArrowDtype(kind).type
    except (NotImplementedError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"{label} holds {kind}, which pandas does not have. Cast it.") from error
    return column


def positions_in(vertices: list[Any], columns: list[pd.Series], kinds: list[str], what: str) -> Integers:
    """Return the position of each row of `columns` in `vertices`, or -1."""
    pairs = []
    for array, column, kind in zip(vertices, columns, kinds, strict=True):
        ids, others = without_categories(array), without_categories(column.array)
        if kind == "integer":  # as NumPy arrays, since pandas would compare some types as floats
            ids, others = integers(array), integers(column)
        elif ids.dtype != others.dtype or types.is_object_dtype(ids.dtype):
            ids, others = (in_utc(np.asarray(array, object), kind) for array in (ids, others))
        # With the type, since pandas infers its string type for objects that are all strings.
        pairs.append([pd.Index(array, dtype=array.dtype) for array in (ids, others)])
    if len(pairs) == 1:
        known, asked = pairs[0]
    else:
        known, asked = (pd.MultiIndex.from_arrays(list(indexes)) for indexes in zip(*pairs, strict=True))
    return known.get_indexer(asked)


def one_column(columns: list[Any], what: str) -> pd.Series:
    """Concatenate columns of ids, as objects if their types differ."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [np.asarray(without_categories(getattr(column, "array", column)), object) for column in columns]
    return pd.concat([pd.Series(column, dtype=column.dtype) for column in columns], ignore_index=True)


def without_categories(array: Any) -> Any:
    """Return a categorical as an array of its values, and other arrays unchanged."""
    return array.astype(array.categories.dtype) if isinstance(array.dtype, pd.CategoricalDtype) else array


# --- integers -----------------------------------------------------------------------------------------------------


def integers(column: Any, label: str = "") -> Integers:
    """Return integer ids, a Series or an array, as a NumPy array, without a copy if it is NumPy-backed."""
    if isinstance(column, ObjectColumn):
        return integers(column.objects, label)[column.codes]
    if isinstance(column, pd.arrays.NumpyExtensionArray):
        column = column.to_numpy()  # takes less time than a Series
        if column.dtype.kind in "iu":
            return column
    if not isinstance(column, pd.Series):
        column = pd.Series(column)
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # Unused categories may be of any kind.
        used = column.cat.remove_unused_categories()
        return integers(used.cat.categories, label)[used.cat.codes.to_numpy()]
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
    native = dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype
    array: Integers = column.to_numpy(native)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def joined_dtypes(columns: list[Any]) -> list[Any]:
    """Return the types from which `integers_like` gets that of concatenated columns of integers.

    It is their common categorical type, else the common integer type that pandas has for them, else that of the first.
    """
    dtypes = [column.dtype for column in columns]
    if isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes):
        return dtypes
    plain = [without_categories(column[:1]).dtype for column in columns]
    # Of zeros, since Arrow refuses to cast large integers to the common type of int64 and uint64, a float.
    joined = pd.concat([pd.Series([0], dtype=dtype) for dtype in plain]).dtype
    return [joined if types.is_integer_dtype(joined) else plain[0]]


def integers_like(ids: Integers, dtypes: list[Any]) -> Any:
    """Return integer ids in the type of the source column, the first: NumPy, nullable, Arrow, categorical or object."""
    like = dtypes[0]
    if isinstance(like, pd.CategoricalDtype):
        return like_categories(pd.array(ids, dtype=ids.dtype), dtypes)
    if types.is_object_dtype(like):
        return pd.array(ids.tolist(), dtype=object)
    if isinstance(like, np.dtype):
        return pd.arrays.NumpyExtensionArray(ids)  # no copy, unlike `pd.array`, which takes ten times as long
    return pd.array(ids, dtype=stored_like(ids.dtype, like))


def stored_like(dtype: np.dtype[Any], like: Any) -> Any:
    """Convert an integer type of NumPy to the storage of `like`: nullable or Arrow."""
    if isinstance(like, pd.ArrowDtype):
        return pd.ArrowDtype(pa.from_numpy_dtype(dtype))
    return dtype.name.replace("i", "I").replace("uI", "UI")


# --- other ids, in the order of first appearance ------------------------------------------------------------------


def by_first_appearance(
    parts: list[Any], labels: list[list[str]], kinds: list[str]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize vertices: see `prplugin.frames.factorize.by_first_appearance`. Arrow permits parallel threads."""
    threads = this_machine().threads_for(len(parts[0][0]))
    return factorize.by_first_appearance(sys.modules[__name__], parts, labels, kinds, threads=threads)


def factorize_rows(columns: list[Any], kinds: list[str], labels: list[str]) -> tuple[Integers, Integers, list[Any]]:
    """Factorize the rows of columns in the order of first appearance.

    Return codes, the first row of each code, and the distinct rows, column by column.
    """
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


def concat_in_common_type(arrays: list[Any], label: str) -> Any:
    """Concatenate arrays of one kind, in their common type if pandas has one, else in the type of the first."""
    first = arrays[0]
    if all(type(array) is type(first) and array.dtype == first.dtype for array in arrays):
        if type(first) in (np.ndarray, pd.arrays.NumpyExtensionArray):
            return np.concatenate([np.asarray(array) for array in arrays])
        return first._concat_same_type(arrays)  # in a fraction of the time of `pandas.concat`
    arrays = [array for array in arrays if len(array)] or arrays[:1]
    # With an explicit dtype, since pandas infers its string type for objects that are all strings.
    try:
        joined = pd.concat([pd.Series(array, dtype=array.dtype) for array in arrays], ignore_index=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidEdgesError(f"{label} and the other columns of ids have no common type: {error}") from error
    if types.is_object_dtype(joined.dtype) and not types.is_object_dtype(arrays[0].dtype):
        first = arrays[0].dtype
        try:
            cast = [pd.Series(array, dtype=array.dtype).astype(first) for array in arrays]
        except (TypeError, ValueError) as error:
            raise InvalidEdgesError(f"{label} cannot be cast to {first}, as the other endpoint has: {error}") from error
        if any(
            (new.astype(object) != pd.Series(old, dtype=object)).any() for new, old in zip(cast, arrays, strict=True)
        ):
            raise InvalidEdgesError(
                f"{label} and the other columns of ids hold values that {first} does not. Cast them to one type."
            )
        joined = pd.concat(cast, ignore_index=True)
    return _values(joined)


def _values(column: pd.Series) -> Any:
    """Return the array of a column, unwrapped if it is a NumPy array."""
    wrapped = isinstance(column.dtype, np.dtype) and column.dtype.kind not in "mM"
    return column.to_numpy() if wrapped else column.array


def like_categories(values: Any, dtypes: list[Any]) -> Any:
    """Return distinct values as a categorical if all columns have the same categorical type, else unchanged."""
    same = isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes)
    return pd.Categorical(values, dtype=dtypes[0]) if same else values
