"""Columns of numbers of every pandas type, as float64. Imports pandas."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from prplugin.errors import PageRankError, RefusedRows, counted, listed, refusal
from prplugin.frames._pandas_ids import plain_value, stored_plainly
from prplugin.frames.casts import cast_to
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats, Integers

Refuse: TypeAlias = Callable[[Integers, str, str], None]
"""Raises an error about rows. Arguments: the rows, what is wrong with them, and what the user can do."""


def numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Return a column as float64; raise `error` unless all values are finite and non-negative.

    `label` is the name of the column in messages, and `noun` that of an entry, such as "row".
    """
    column = stored_plainly(column)
    refuse = refusing(column, label, noun, error)
    dtype = column.dtype
    if types.is_object_dtype(dtype):
        values = column.tolist()
        odd = np.flatnonzero([not _is_number(value) for value in values])
        if odd.size:
            refuse(odd, "that is not a number" if odd.size == 1 else "that are not numbers", "Cast or drop them.")
        floats = np.array([_float(value) for value in values], np.float64)
    elif types.is_complex_dtype(dtype) or not (
        types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype) or str(dtype).startswith("decimal")
    ):
        raise error(f"{label} holds {dtype}, not real numbers. Cast it, for instance with {cast_to('number')}.")
    else:
        missing = np.flatnonzero(column.isna())
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
    """Return the function that raises `error` for given rows of a column; the message shows their values."""

    def refuse(rows: Integers, are: str, what_to_do: str) -> None:
        first = rows[:3].tolist()
        held = [repr(plain_value(column.iloc[row])) for row in first]
        raise refusal(error, RefusedRows(partial(_values, label, noun, are, what_to_do), rows.size, first, held))

    return refuse


def _values(label: str, noun: str, are: str, what_to_do: str, values: RefusedRows) -> str:
    shown = [f"{held} in {noun} {row}" for held, row in zip(values.held, values.rows, strict=True)]
    return (
        f"{label} has {counted(values.count, 'value')} {are}: {listed(values.padded(shown), 3)} "
        f"(counted from 0). {what_to_do}"
    )


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
