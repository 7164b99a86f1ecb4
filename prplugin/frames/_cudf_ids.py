"""Id columns of every cuDF type: views as CuPy arrays, kinds, common types and factorization. Imports cuDF.

Columns are constructed with pylibcudf, since the more general constructors of cuDF are slow for small columns.

Ids that the user gave as a list, a dict or a pandas object stay pandas Series until they are needed on the GPU.
"""

from __future__ import annotations

import sys
from typing import Any

import cudf
import cupy
import numpy as np
import pandas as pd
import pyarrow as pa
import pylibcudf as plc

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _pandas_ids as host
from prplugin.frames import _pandas_kinds as host_kinds
from prplugin.frames import factorize
from prplugin.frames._pandas_objects import ZONED
from prplugin.gpu.strings import Strings, factorize_strings
from prplugin.types.arrays import copied, namespace
from prplugin.types.edges import Integers

NESTED = (cudf.ListDtype, cudf.StructDtype)
DECIMALS = (cudf.Decimal32Dtype, cudf.Decimal64Dtype, cudf.Decimal128Dtype)

OFFSETS: dict[Any, np.dtype[Any]] = {plc.TypeId.INT32: np.dtype(np.int32), plc.TypeId.INT64: np.dtype(np.int64)}
"""Offset types of string columns; int64 for 2 GiB or more."""


def positions_in(vertices: list[cudf.Series], columns: list[Any], kinds: list[str], what: str) -> Integers:
    """Return the position of each row of `columns` in `vertices`, or -1; `what` names the argument in messages."""
    rows = cupy.full(len(columns[0]), -1, np.int64)
    known, asked = [], []
    comparable = cupy.ones(rows.size, np.bool_)
    for vertex, column, kind in zip(vertices, columns, kinds, strict=True):
        if kind == "integer":
            ids, others = integers(vertex), integers(column)
            cast = others.astype(ids.dtype)
            # Ids outside the range of the type of the vertices are not in the graph.
            comparable &= (cast.astype(others.dtype) == others) & ((cast < 0) == (others < 0))
            pair = [cudf.Series(ids), cudf.Series(cast)]
        else:
            pair = _in_one_type([without_categories(vertex), without_categories(on_device(column, what))], what)
        known.append(pair[0])
        asked.append(pair[1])
    at, of = _matches(_table(known), _table(asked))
    rows[of] = at
    rows[~comparable] = -1
    return rows


def take(column: Any, rows: Integers | None) -> Any:
    """Return a copy of the given rows of a Series or a CuPy array; of all rows for None."""
    if namespace(column) is not np:
        return copied(column) if rows is None else column[rows]
    return column.copy(deep=True) if rows is None else column.take(rows).reset_index(drop=True)


# --- kinds --------------------------------------------------------------------------------------------------------


def kind_of(column: Any, label: str) -> str:
    """Return the kind of ids in a column, "empty" for an untyped column without ids; raise for nulls and floats."""
    if isinstance(column, pd.Series):
        return host_kinds.kind_of(column, label)
    dtype = column.dtype
    if isinstance(dtype, cudf.CategoricalDtype):
        _refuse_nulls(column, label)
        categories = cudf.Series(dtype.categories)
        return kind_of(categories if len(column) else categories.head(0), label)
    if dtype.kind == "f":
        if len(column):
            raise host_kinds.floats_refused(dtype, label, missing_rows(column))
        return "empty"  # cuDF infers float for an empty list
    _refuse_nulls(column, label)
    if not len(column) and dtype == np.dtype(object):
        return "empty"  # frames created from column names only have this type
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if isinstance(dtype, NESTED) or (arrow is not None and pa.types.is_nested(arrow)):
        raise host_kinds.unhashable_refused(dtype, label)
    if is_decimal(dtype):
        return "decimal.Decimal"
    if isinstance(dtype, cudf.IntervalDtype):
        return str(dtype)
    if isinstance(dtype, pd.DatetimeTZDtype) or getattr(arrow, "tz", None):
        return ZONED
    kinds = {"b": "boolean", "i": "integer", "u": "integer", "M": "datetime", "m": "timedelta"}
    return kinds.get(dtype.kind, "string")


def _refuse_nulls(column: cudf.Series, label: str) -> None:
    if column.null_count:
        host_kinds.refuse_rows(missing_rows(column), label)


def _on_device(columns: Any, labels: Any) -> list[cudf.Series]:
    return [on_device(column, label) for column, label in zip(columns, labels, strict=True)]


def on_device(column: Any, label: str) -> cudf.Series:
    """Copy a pandas column to the GPU; return a cuDF column unchanged, and a CuPy array as a column."""
    column = as_series(column)
    if isinstance(column, cudf.Series):
        return column
    try:
        return cudf.Series(column)
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        raise InvalidEdgesError(f"{label} holds ids that cuDF cannot hold: {error}") from error


# --- integers -----------------------------------------------------------------------------------------------------


def integers(column: Any, label: str = "") -> Integers:
    """Return integer ids as a CuPy array, without a copy from CuPy arrays and NumPy-typed columns on the GPU."""
    if namespace(column) is not np:
        return column
    if isinstance(column, pd.Series):
        return cupy.asarray(host.integers(column, label))
    if not len(column):  # untyped, or float
        return cupy.empty(0, column.dtype if column.dtype in _NUMPY_INTEGERS else np.int64)
    if isinstance(column.dtype, cudf.CategoricalDtype):
        return as_array(cudf.Series(column.dtype.categories))[as_array(column.cat.codes)]
    return as_array(column)


_NUMPY_INTEGERS = tuple(np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8))


def joined_dtypes(columns: list[cudf.Series]) -> list[Any]:
    """Return the types from which `integers_like` gets that of concatenated columns of integers."""
    return [column.dtype for column in columns]


def integers_like(ids: Integers, dtypes: list[Any]) -> Any:
    """Return integer ids in the type of the source column, the first: NumPy, nullable, Arrow or categorical."""
    like = dtypes[0]
    if isinstance(like, cudf.CategoricalDtype):
        return like_categories(as_series(ids), dtypes)
    return ids if isinstance(like, np.dtype) else as_series(ids).astype(host.stored_like(ids.dtype, like))


# --- other ids, in the order of first appearance ------------------------------------------------------------------


def by_first_appearance(
    parts: list[Any], labels: list[list[str]], kinds: list[str]
) -> tuple[list[Integers], list[cudf.Series], Any]:
    """Factorize vertices: see `prplugin.frames.factorize.by_first_appearance`; strings with `prplugin.gpu.strings`.

    Columns may be pandas Series. Places are None for strings.
    """
    if kinds == ["string"]:
        endpoints = _on_device(parts[0], labels[0])
        strings = [found for end in endpoints if (found := as_strings(end)) is not None]  # None for categories
        filled = [end for end in endpoints if len(end)]
        if filled and len(strings) == len(endpoints) and (factorized := factorize_strings(strings)) is not None:
            codes, distinct = factorized
            return codes, [as_string_series(distinct, filled[0].dtype)], None
    return factorize.by_first_appearance(sys.modules[__name__], parts, labels, kinds)


def factorize_rows(
    columns: list[Any], kinds: list[str], labels: list[str]
) -> tuple[Integers, Integers, list[cudf.Series]]:
    """Factorize the rows of columns in the order of first appearance.

    Return codes, the first row of each code, and the distinct rows, column by column.

    `cudf.factorize` takes a single column and sorts the result of its join. Here each pair of the join scatters its
    code to its row, which needs no sort.
    """
    columns = _on_device(columns, labels)
    if not len(columns[0]):
        return cupy.empty(0, np.int32), cupy.empty(0, np.int32), columns
    table = _table([_keys(column) for column in columns])
    found = plc.stream_compaction.distinct_indices(
        table,
        plc.stream_compaction.DuplicateKeepOption.KEEP_FIRST,
        plc.types.NullEquality.EQUAL,
        plc.types.NanEquality.ALL_EQUAL,
    )
    rows = cupy.sort(_rows(found))  # in no particular order
    distinct = [take(column, rows) for column in columns]
    codes = cupy.empty(len(columns[0]), np.int32)
    at, code = _matches(table, _table([_keys(column) for column in distinct]))
    codes[at] = code
    return codes, rows, distinct


def _matches(one: plc.Table, other: plc.Table) -> tuple[Integers, Integers]:
    """Return all pairs of equal rows of two tables with the same types, in no particular order."""
    pairs = plc.join.inner_join(one, other, plc.types.NullEquality.EQUAL)
    return _rows(pairs[0]), _rows(pairs[1])


def _table(columns: list[cudf.Series]) -> plc.Table:
    return plc.Table([column.to_pylibcudf()[0] for column in columns])


def _rows(column: plc.Column) -> Integers:
    return as_array(cudf.Series.from_pylibcudf(column))


def _keys(column: cudf.Series) -> cudf.Series:
    """Return the codes of a categorical column, which identify its ids, and other columns unchanged."""
    return column.cat.codes if isinstance(column.dtype, cudf.CategoricalDtype) else column


def without_categories(column: cudf.Series) -> cudf.Series:
    """Return a categorical column as a column of its values, and other columns unchanged."""
    if not isinstance(column.dtype, cudf.CategoricalDtype):
        return column
    return take(cudf.Series(column.dtype.categories), as_array(column.cat.codes))


def one_column(columns: list[Any], what: str) -> Any:
    """Concatenate columns of ids, each pandas or cuDF; on the host if all are pandas."""
    if all(isinstance(column, pd.Series) for column in columns):
        return host.one_column(columns, what)
    return concat_in_common_type([without_categories(on_device(column, what)) for column in columns], what)


def concat_in_common_type(columns: list[cudf.Series], label: str) -> cudf.Series:
    """Concatenate columns of one kind, in their common type if there is one, else in the type of the first."""
    filled = [column for column in columns if len(column)] or columns[:1]
    cast = _in_one_type(filled, label)
    return cudf.concat(cast, ignore_index=True) if len(cast) > 1 else cast[0]


def _in_one_type(columns: list[cudf.Series], label: str) -> list[cudf.Series]:
    try:
        dtype = _common_type([column.dtype for column in columns])
        cast = [column if column.dtype == dtype else column.astype(dtype) for column in columns]
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise InvalidEdgesError(f"{label} and the other columns of ids have no common type: {error}") from error
    for new, old in zip(cast, columns, strict=True):
        # Casts of durations silently overflow, and casts to a coarser unit silently truncate.
        if new.dtype != old.dtype and old.dtype.kind in "mM" and not bool((new.astype(old.dtype) == old).all()):
            raise InvalidEdgesError(
                f"{label} and the other columns of ids have no common type: {dtype} does not hold all of {old.dtype}"
            )
    return cast


def _common_type(dtypes: list[Any]) -> Any:
    """Return the type for comparisons of ids of one kind: finest unit, most digits, otherwise the first type."""
    first = dtypes[0]
    if all(dtype == first for dtype in dtypes):
        return first
    if all(isinstance(dtype, DECIMALS) for dtype in dtypes):
        scale = max(dtype.scale for dtype in dtypes)
        return cudf.Decimal128Dtype(scale + max(dtype.precision - dtype.scale for dtype in dtypes), scale)
    if all(isinstance(dtype, pd.DatetimeTZDtype) for dtype in dtypes):
        finest = np.result_type(*(np.dtype(f"M8[{dtype.unit}]") for dtype in dtypes))
        return pd.DatetimeTZDtype(np.datetime_data(finest)[0], first.tz)
    if first.kind in "mM" and not any(isinstance(dtype, pd.DatetimeTZDtype) for dtype in dtypes):
        finest = np.result_type(*(dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype for dtype in dtypes))
        return pd.ArrowDtype(pa.from_numpy_dtype(finest)) if isinstance(first, pd.ArrowDtype) else finest
    return first


def like_categories(values: cudf.Series, dtypes: list[Any]) -> cudf.Series:
    """Return distinct values as a categorical if all columns have the same categorical type, else unchanged."""
    like, *others = dtypes
    if not isinstance(like, cudf.CategoricalDtype):
        return values
    others = [cudf.CategoricalDtype.from_pandas(one) if isinstance(one, pd.CategoricalDtype) else one for one in others]
    return values.astype(like) if all(dtype == like for dtype in others) else values


# --- views as arrays ----------------------------------------------------------------------------------------------


def as_array(column: cudf.Series) -> Any:
    """Return a view of a numeric column without nulls as a CuPy array."""
    if not len(column):  # may have no memory to view
        dtype = column.dtype
        return cupy.empty(0, dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
    return column.values


def missing_rows(column: cudf.Series) -> Integers:
    """Return the rows of nulls and of NaN, which cuDF distinguishes."""
    missing = as_array(column.isna())
    if column.dtype.kind == "f":
        missing = missing | cupy.isnan(as_array(column.astype("float64").fillna(np.nan)))
    return cupy.flatnonzero(missing)


def is_decimal(dtype: Any) -> bool:
    """Return whether a column of this type holds decimals."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    return isinstance(dtype, DECIMALS) or (arrow is not None and pa.types.is_decimal(arrow))


def as_series(values: Any) -> cudf.Series:
    """Return a numeric array as a column, in which NaN does not become null; return a column unchanged."""
    if namespace(values) is np:
        return values
    return cudf.Series.from_pylibcudf(plc.Column.from_cuda_array_interface(values))


def as_strings(column: cudf.Series) -> Strings | None:
    """Return a view of a string column without nulls as arrays. The column may be of any type if it has no rows.

    Return None for other types, and for columns whose memory is not accessible because cuDF has spilled it to the host.
    """
    if not len(column):
        return Strings(cupy.empty(0, np.uint8), cupy.zeros(1, np.int32))
    held = column.to_pylibcudf()[0]
    if held.type().id() != plc.TypeId.STRING:
        return None
    offsets = held.child(0)
    if held.data() is None or offsets.data() is None:
        return None
    begins = _view(offsets.data(), OFFSETS[offsets.type().id()])
    first, past = held.offset(), held.offset() + held.size()
    return Strings(_view(held.data(), np.dtype(np.uint8)), begins[first : past + 1])


def as_string_series(strings: Strings, dtype: Any) -> cudf.Series:
    """Return strings as a column of a string type of cuDF."""
    offsets = plc.Column.from_cuda_array_interface(strings.offsets)
    column = plc.Column(
        plc.DataType(plc.TypeId.STRING), strings.rows, plc.gpumemoryview(strings.chars), None, 0, 0, [offsets]
    )
    series = cudf.Series.from_pylibcudf(column)
    return series if series.dtype == dtype else series.astype(dtype)


def _view(memory: Any, dtype: np.dtype[Any]) -> Any:
    """Return a view of cuDF memory as a CuPy array."""
    if not memory.size:
        return cupy.empty(0, dtype)
    shared = cupy.cuda.UnownedMemory(memory.ptr, memory.size, memory)
    return cupy.ndarray(memory.size // dtype.itemsize, dtype, cupy.cuda.MemoryPointer(shared, 0))
