"""Arrays of CuPy as columns of cuDF, and back: they share their memory. Imported once there is a cuDF frame.

cuDF's constructors take whatever can be a column, and for a small one nearly all of their time to find out what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cudf
import cupy
import numpy as np
import pylibcudf as plc

from prplugin.gpu.strings import Strings

OFFSETS: dict[Any, np.dtype[Any]] = {plc.TypeId.INT32: np.dtype(np.int32), plc.TypeId.INT64: np.dtype(np.int64)}
"""Types of the offsets of a column of strings: the wider from 2 GiB on."""


def as_array(column: cudf.Series) -> Any:
    """View the numbers of a column without nulls as a CuPy array."""
    if not len(column):  # which may have no memory to view
        dtype = column.dtype
        return cupy.empty(0, dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
    return column.values


def as_series(array: Any) -> cudf.Series:
    """Return an array of numbers as a column; NaN is not a null."""
    return cudf.Series.from_pylibcudf(plc.Column.from_cuda_array_interface(array))


def as_frame(arrays: Mapping[str, Any]) -> cudf.DataFrame:
    """Return a frame of arrays of numbers, one per column."""
    table = plc.Table([plc.Column.from_cuda_array_interface(array) for array in arrays.values()])
    return cudf.DataFrame.from_pylibcudf(table, {"columns": list(arrays)})


def as_strings(column: cudf.Series) -> Strings | None:
    """View a column of strings without nulls as arrays; one without rows of any type, too.

    None for other types, and where cuDF has no memory to show, which it may have moved to the host.
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
    """View memory of cuDF as an array."""
    if not memory.size:
        return cupy.empty(0, dtype)
    shared = cupy.cuda.UnownedMemory(memory.ptr, memory.size, memory)
    return cupy.ndarray(memory.size // dtype.itemsize, dtype, cupy.cuda.MemoryPointer(shared, 0))
