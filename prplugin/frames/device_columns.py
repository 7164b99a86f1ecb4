"""Views of cuDF columns as CuPy arrays, and columns of arrays. Imports cuDF.

Columns are constructed with pylibcudf, since the more general constructors of cuDF are slow for small columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cudf
import cupy
import numpy as np
import pyarrow as pa
import pylibcudf as plc

from prplugin.errors import PageRankError
from prplugin.frames.host_columns import check_range, refusing
from prplugin.gpu.edges import GivenWeights
from prplugin.gpu.strings import Strings
from prplugin.types.arrays import namespace
from prplugin.types.edges import Integers

DECIMALS = (cudf.Decimal32Dtype, cudf.Decimal64Dtype, cudf.Decimal128Dtype)

OFFSETS: dict[Any, np.dtype[Any]] = {plc.TypeId.INT32: np.dtype(np.int32), plc.TypeId.INT64: np.dtype(np.int64)}
"""Offset types of string columns; int64 for 2 GiB or more."""


def as_array(column: cudf.Series) -> Any:
    """Return a view of a numeric column without nulls as a CuPy array."""
    if not len(column):  # may have no memory to view
        dtype = column.dtype
        return cupy.empty(0, dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
    return column.values


def as_series(values: object) -> cudf.Series:
    """Return a numeric array as a column, in which NaN does not become null; return a column unchanged."""
    if namespace(values) is np:
        return values
    return cudf.Series.from_pylibcudf(plc.Column.from_cuda_array_interface(values))


def missing_rows(column: cudf.Series) -> Integers:
    """Return the rows of nulls and of NaN, which cuDF distinguishes."""
    missing = as_array(column.isna())
    if column.dtype.kind == "f":
        missing = missing | cupy.isnan(as_array(column.astype("float64").fillna(np.nan)))
    return cupy.flatnonzero(missing)


def is_decimal(dtype: object) -> bool:
    """Return whether a column of this type holds decimals."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    return isinstance(dtype, DECIMALS) or (arrow is not None and pa.types.is_decimal(arrow))


def to_float64_unchecked(column: Any, label: str, noun: str, error: type[PageRankError]) -> GivenWeights:
    """Return a cuDF column as float64, without a check of the values, and without a copy if it is float64."""
    refuse = refusing(column, label, noun, error)
    dtype = column.dtype
    decimal = is_decimal(dtype)
    if not decimal and dtype.kind not in "biuf":
        name = (
            "category" if isinstance(dtype, cudf.CategoricalDtype) else "string" if dtype == np.dtype(object) else dtype
        )
        raise error(f"{label} holds {name}, not real numbers. Cast it, for instance with .astype('float64').")
    if column.null_count:
        refuse(missing_rows(column), "missing or NaN", "Drop or fill them.")
    array = as_array(column.astype("float64") if decimal else column)
    floats = array.astype(np.float64, copy=False)
    return GivenWeights(floats, decimal or floats is not array, partial(check_range, refuse=refuse))


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


def as_string_series(strings: Strings, dtype: object) -> cudf.Series:
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
