"""Arrays of CuPy as columns of cuDF, which share their memory. Imported once there is a cuDF frame.

cuDF's constructors take whatever can be a column, and for a small one nearly all of their time to find out what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cudf
import cupy
import numpy as np
import pylibcudf as plc

__all__ = ["as_array", "as_frame", "as_series"]


def as_array(column: cudf.Series) -> Any:
    """View the numbers of a column without nulls as a CuPy array."""
    if not len(column):  # which may have no memory to view
        dtype = column.dtype
        return cupy.empty(0, dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
    return column.values


def as_series(array: Any) -> cudf.Series:
    """Make a column of an array of numbers; NaN is no null."""
    return cudf.Series.from_pylibcudf(plc.Column.from_cuda_array_interface(array))


def as_frame(arrays: Mapping[str, Any]) -> cudf.DataFrame:
    """Make a frame of arrays of numbers, one a column."""
    table = plc.Table([plc.Column.from_cuda_array_interface(array) for array in arrays.values()])
    return cudf.DataFrame.from_pylibcudf(table, {"columns": list(arrays)})
