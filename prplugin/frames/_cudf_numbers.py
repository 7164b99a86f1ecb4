"""Columns of numbers, in all the ways that cuDF can hold them. Imported once there is a cuDF frame."""

from __future__ import annotations

from typing import Any

import cudf
import cupy
import numpy as np
import pandas as pd

from prplugin.errors import PageRankError
from prplugin.frames import _pandas_numbers as host
from prplugin.frames._cudf_arrays import as_array
from prplugin.frames._cudf_ids import is_decimal, missing_rows
from prplugin.graph.edges import Floats

__all__ = ["numbers"]


def numbers(column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Take finite numbers of at least 0 out of a column of cuDF or pandas, as float64 on the GPU.

    Parameters
    ----------
    label, noun : str
        What messages call the column and one of its values.
    error : type
        What is raised for anything else.
    """
    if isinstance(column, pd.Series):
        return cupy.asarray(host.numbers(column, label, noun, error))

    refuse = host.refusing(column, label, noun, error)
    dtype = column.dtype
    decimal = is_decimal(dtype)
    if not decimal and dtype.kind not in "biuf":
        name = (
            "category" if isinstance(dtype, cudf.CategoricalDtype) else "string" if dtype == np.dtype(object) else dtype
        )
        raise error(f"{label} holds {name}, not real numbers. Cast it, for instance with .astype('float64').")
    if column.null_count:
        refuse(missing_rows(column), "missing or NaN", "Drop or fill them.")
    # A copy: the graph outlives the frame.
    floats = as_array(column.astype("float64") if decimal else column).astype(np.float64, copy=True)
    host.check_range(floats, refuse)
    return floats
