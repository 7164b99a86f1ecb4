"""Columns of numbers, in all the ways that pandas can hold them. Imported once there is a pandas frame."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from prplugin.errors import PageRankError, counted, listed
from prplugin.frames._pandas_ids import plain_value
from prplugin.graph.edges import Floats, Integers

__all__ = ["numbers"]


def numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Take finite numbers of at least 0 out of a column, as float64.

    Parameters
    ----------
    label, noun : str
        What messages call the column and one of its values.
    error : type
        What is raised for anything else.
    """

    def refuse(rows: Integers, are: str, what_to_do: str) -> None:
        shown = [f"{plain_value(column.iloc[row])!r} in {noun} {row}" for row in rows[:3].tolist()]
        raise error(
            f"{label} has {counted(rows.size, 'value')} {are}: {listed(shown + [''] * (rows.size - len(shown)), 3)} "
            f"(counted from 0). {what_to_do}"
        )

    values = column.array
    if types.is_object_dtype(column.dtype):
        odd = np.flatnonzero([not _is_number(value) for value in values])
        if odd.size:
            refuse(odd, "that is not a number" if odd.size == 1 else "that are not numbers", "Cast or drop them.")
    elif not (types.is_numeric_dtype(column.dtype) or _is_decimal(column.dtype)) or types.is_complex_dtype(
        column.dtype
    ):
        raise error(f"{label} holds {column.dtype}, not real numbers. Cast it, for instance with .astype('float64').")
    missing = np.flatnonzero(column.isna())
    if missing.size:
        refuse(missing, "missing or NaN", "Drop or fill them.")
    with np.errstate(over="ignore"):  # a wider float past the range becomes infinite, and is refused as such
        floats: Floats = np.ascontiguousarray(column.to_numpy(np.float64))
    if floats.size and not (floats.min() >= 0 and floats.max() < np.inf):
        if (rows := np.flatnonzero(np.isnan(floats))).size:
            refuse(rows, "missing or NaN", "Drop or fill them.")
        if (rows := np.flatnonzero(floats < 0)).size:
            refuse(rows, "below 0", "PageRank needs values of at least 0.")
        refuse(np.flatnonzero(np.isinf(floats)), "infinite, or past the range of float64", "Scale or drop them.")
    return floats


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal, np.bool_)) or value is None or value is pd.NA


def _is_decimal(dtype: Any) -> bool:
    return str(dtype).startswith("decimal")
