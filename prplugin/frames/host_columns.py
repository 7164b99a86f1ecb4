"""Columns of every pandas type: storage, kinds of ids, and numbers. Imports pandas."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types

from prplugin.errors import InvalidEdgesError, PageRankError, RefusedRows, refusal
from prplugin.frames.host_objects import ObjectColumn, missing_rows
from prplugin.frames.kinds import (
    ZONED,
    cast_to,
    floats_refused,
    format_mixed_kinds,
    format_values,
    refuse_rows,
    unhashable_refused,
)
from prplugin.types.arrays import namespace, to_python
from prplugin.types.edges import Floats, Integers

Refuse: TypeAlias = Callable[[Integers, str, str], None]
"""Function that raises an error about rows, with the arguments rows, fault and remedy."""


# --- storage --------------------------------------------------------------------------------------------------------


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


# --- kinds ----------------------------------------------------------------------------------------------------------


def kind_of(column: pd.Series | ObjectColumn, label: str) -> str:
    """Return the kind of ids in a column: see `prplugin.frames.ids.Ids.kind_of`."""
    if isinstance(column, ObjectColumn):
        try:
            return kind_of(column.objects, label)
        except InvalidEdgesError:
            column = column.column  # for row numbers in the message
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return "integer"  # cannot hold nulls
    if types.is_object_dtype(dtype) and types.infer_dtype(column, skipna=False) == "string":
        return "string"  # infer_dtype found no nulls
    if isinstance(dtype, pd.CategoricalDtype):
        refuse_rows(missing_rows(column), label)
        used = column.cat.remove_unused_categories()
        return kind_of(pd.Series(used.cat.categories), label)
    if types.is_float_dtype(dtype) and not len(column):
        return "empty"  # pandas infers float for an empty list
    if types.is_float_dtype(dtype) or types.is_complex_dtype(dtype):
        raise floats_refused(dtype, label, missing_rows(column))
    refuse_rows(missing_rows(column), label)
    if types.is_bool_dtype(dtype) and not types.is_object_dtype(dtype):
        return "boolean"
    if types.is_integer_dtype(dtype):
        return "integer"
    if isinstance(dtype, pd.DatetimeTZDtype) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None):
        return ZONED
    if types.is_datetime64_any_dtype(dtype) and not str(dtype).startswith(("date32", "date64")):
        return "datetime"
    if types.is_object_dtype(dtype):
        return _kind_of_objects(column, label)
    if types.is_string_dtype(dtype):
        return "string"
    if getattr(dtype, "kind", None) == "m":
        return "timedelta"
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(dtype, label)
    return str(dtype)


def _kind_of_arrow(dtype: pd.ArrowDtype, label: str) -> str:
    """Return the kind of the Python objects that an Arrow type converts to."""
    if "list" in str(dtype) or "struct" in str(dtype) or "map" in str(dtype):
        raise unhashable_refused(dtype, label)
    names = {"date": "date", "binary": "bytes", "large_binary": "bytes", "decimal": "decimal.Decimal"}
    return next((kind for name, kind in names.items() if str(dtype).startswith(name)), str(dtype))


def _kind_of_objects(column: pd.Series, label: str) -> str:
    inferred = types.infer_dtype(column, skipna=False)
    if inferred in ("string", "integer", "boolean", "empty", "bytes", "date"):
        return str(inferred)
    if inferred in ("datetime", "datetime64"):
        zoned = getattr(column.iloc[0], "tzinfo", None) is not None
        return ZONED if zoned else "datetime"
    if inferred in ("timedelta", "timedelta64"):
        return "timedelta"
    kinds = column.map(type)
    if kinds.nunique() > 1:
        rows = [0, int(np.flatnonzero(kinds != kinds.iloc[0])[0])]
        type_names = [kinds.iloc[row].__name__ for row in rows]
        raise refusal(InvalidEdgesError, RefusedRows(partial(format_mixed_kinds, label), len(rows), rows, type_names))
    kind: type = kinds.iloc[0]
    if issubclass(kind, (float, complex, np.inexact)):
        raise floats_refused(kind.__name__, label)
    if kind.__hash__ is None:
        raise unhashable_refused(kind.__name__, label)
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__


# --- numbers --------------------------------------------------------------------------------------------------------


def numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Return a column as float64; raise `error` unless all values are finite and non-negative.

    `label` names the column in messages, and `noun` an entry, such as "row".
    """
    column = decode_storage(column)
    refuse = refusing(column, label, noun, error)
    dtype = column.dtype
    if types.is_object_dtype(dtype):
        values = column.tolist()
        invalid = np.flatnonzero([not _is_number(value) for value in values])
        if invalid.size:
            fault = "that is not a number" if invalid.size == 1 else "that are not numbers"
            refuse(invalid, fault, "Cast or drop them.")
        floats = np.array([_float(value) for value in values], np.float64)
    elif types.is_complex_dtype(dtype) or not (
        types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype) or str(dtype).startswith("decimal")
    ):
        raise error(f"{label} holds {dtype}, not real numbers. Cast it, for instance with {cast_to('number')}.")
    else:
        missing = missing_rows(column)
        if missing.size:
            refuse(missing, "missing or NaN", "Drop or fill them.")
        with np.errstate(over="ignore", under="ignore"):  # values lost by narrowing are detected below
            floats = column.to_numpy(np.float64, copy=True)  # a copy: the graph outlives the frame
    check_range(floats, refuse)
    if types.is_object_dtype(dtype) or getattr(dtype, "itemsize", 8) > 8:
        # The error bound allows for a relative error of 2**-53, which a cast to a denormal float64 may exceed.
        small = np.flatnonzero(floats < np.finfo(np.float64).tiny)
        lost = [row for row in small.tolist() if column.iloc[row] != floats[row].item()]
        if lost:
            refuse(np.array(lost), "too near to 0 for float64", "Scale or drop them.")
    return floats


def refusing(column: Any, label: str, noun: str, error: type[PageRankError]) -> Refuse:
    """Return a function that raises `error` for rows of a column; the message shows their values."""

    def refuse(rows: Integers, fault: str, remedy: str) -> None:
        first = rows[:3].tolist()
        shown = [repr(to_python(column.iloc[row])) for row in first]
        raise refusal(error, RefusedRows(partial(format_values, label, noun, fault, remedy), rows.size, first, shown))

    return refuse


def check_range(floats: Floats, refuse: Refuse) -> None:
    """Call `refuse` if values of a NumPy or CuPy array are not finite and non-negative."""
    xp = namespace(floats)
    if not floats.size or (floats.min() >= 0 and floats.max() < np.inf):
        return
    if (rows := xp.flatnonzero(xp.isnan(floats))).size:
        refuse(rows, "missing or NaN", "Drop or fill them.")
    if (rows := xp.flatnonzero(floats < 0)).size:
        refuse(rows, "below 0", "PageRank needs values of at least 0.")
    refuse(xp.flatnonzero(xp.isinf(floats)), "infinite, or past the range of float64", "Scale or drop them.")


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal, np.bool_)) or value is None or value is pd.NA


def _float(value: Any) -> float:
    """Cast a number to float: infinite on overflow, NaN for missing values."""
    if value is None or value is pd.NA or (isinstance(value, Decimal) and value.is_nan()):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
