"""Columns of numbers, in all the ways that cuDF can hold them. Imported once there is a cuDF frame."""

from __future__ import annotations

from functools import partial
from typing import Any

import cudf
import cupy
import numpy as np
import pandas as pd

from prplugin.errors import PageRankError
from prplugin.frames import _pandas_numbers as host
from prplugin.frames._cudf_arrays import as_array
from prplugin.frames._cudf_ids import is_decimal, missing_rows
from prplugin.gpu.edges import GivenWeights
from prplugin.types.edges import Floats


def numbers(column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Return a column of cuDF or pandas as float64 on the GPU; raise `error` unless all are finite and non-negative.

    Messages call the column `label`, and one of its values `noun`.
    """
    if isinstance(column, pd.Series):
        return cupy.asarray(host.numbers(column, label, noun, error))
    floats, owned, refuse = unchecked(column, label, noun, error)
    refuse(floats)
    return floats if owned else floats.copy()


def unchecked(column: Any, label: str, noun: str, error: type[PageRankError]) -> GivenWeights:
    """Return a column of cuDF as float64, without a copy where it is, and without a check of the values."""
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
    array = as_array(column.astype("float64") if decimal else column)
    floats = array.astype(np.float64, copy=False)
    return GivenWeights(floats, decimal or floats is not array, partial(host.check_range, refuse=refuse))
