"""Columns of numbers, in all the ways that cuDF can hold them. Imported once there is a cuDF frame."""

from __future__ import annotations

from typing import Any

import cudf
import cupy
import numpy as np
import pandas as pd

from prplugin.errors import PageRankError, counted, listed
from prplugin.frames import _pandas_numbers as host
from prplugin.frames._cudf_ids import as_array, is_decimal, missing_rows
from prplugin.frames._pandas_ids import plain_value
from prplugin.graph.edges import Floats, Integers

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

    def refuse(rows: Integers, are: str, what_to_do: str) -> None:
        shown = [f"{plain_value(column.iloc[row])!r} in {noun} {row}" for row in rows[:3].tolist()]
        raise error(
            f"{label} has {counted(rows.size, 'value')} {are}: {listed(shown + [''] * (rows.size - len(shown)), 3)} "
            f"(counted from 0). {what_to_do}"
        )

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
    if floats.size and not (float(floats.min()) >= 0 and float(floats.max()) < np.inf):
        if (rows := cupy.flatnonzero(cupy.isnan(floats))).size:
            refuse(rows, "missing or NaN", "Drop or fill them.")
        if (rows := cupy.flatnonzero(floats < 0)).size:
            refuse(rows, "below 0", "PageRank needs values of at least 0.")
        refuse(cupy.flatnonzero(cupy.isinf(floats)), "infinite, or past the range of float64", "Scale or drop them.")
    return floats
