"""Operations on the partitions of a distributed cuDF frame. Imports cuDF.

Edges and integer ids stay in device memory. Distinct ids of other kinds are copied to the host, where `_pandas_parts`
processes them.
"""

from __future__ import annotations

from typing import Any

import cudf
import cupy
import numpy as np
import pandas as pd
from cudf import concat  # noqa: F401  # re-exported

from prplugin.frames import _cudf_ids as ids
from prplugin.frames import _pandas_parts as host
from prplugin.frames import cudf as library
from prplugin.frames._cudf_ids import as_series
from prplugin.frames._pandas_parts import (  # noqa: F401  # re-exported
    common_type_of,
    concat_columns,
    distinct,
    format_vertices,
    hash_ranks,
    take,
)
from prplugin.frames.cudf import column_of, frame_of, memory_space, numbers, read  # noqa: F401
from prplugin.frames.dask import ColumnInfo, CommonType
from prplugin.frames.factorize import places_of, transposed
from prplugin.gpu.factorize import as_kernel_ids, extremes
from prplugin.types.arrays import copied, to_device, to_host
from prplugin.types.edges import Integers


def column_info(column: Any, label: str) -> ColumnInfo:
    """Return the `ColumnInfo` of a column of ids. Ids from arguments are a pandas Series."""
    if isinstance(column, pd.Series):
        return host.column_info(column, label)
    kind = ids.kind_of(column, label)
    if kind == "integer":
        values = ids.integers(column, label)
        sample: Any = np.empty(0, values.dtype)
        if values.size:
            sample = np.array(extremes(as_kernel_ids([values]))[:2], values.dtype)
    else:
        sample = ids.without_categories(column.head(1)).to_pandas().array
    return ColumnInfo(kind, len(column), column.dtype, sample)


def concat_column(columns: list[cudf.Series], shared: CommonType, label: str) -> cudf.Series:
    """Concatenate a column of different types over partitions, without loss of values."""
    if shared.kind == "integer":  # cuDF would convert some integers to floats
        return as_series(cupy.concatenate([integers_of(column, label, shared) for column in columns]))
    return ids.one_column(columns, label)


def integers_of(column: Any, label: str, shared: CommonType) -> Integers:
    """Return integer ids as an array of the common type."""
    return ids.integers(column, label).astype(shared.dtype_sample.dtype, copy=False)


def by_first_appearance(
    endpoints: list[list[Any]], labels: list[list[str]], shared: list[CommonType]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize the vertices of a part as `_pandas_parts.by_first_appearance` does, with codes in CuPy arrays."""
    kinds = [like.kind for like in shared]
    codes, columns, _ = ids.by_first_appearance(transposed(endpoints), transposed(labels), kinds)
    arrays = [host.cast_ids(column.to_pandas().array, like) for column, like in zip(columns, shared, strict=True)]
    places = np.full(len(arrays[0]), np.iinfo(np.int64).max)
    # `cupy.unique` sorts stably, so its indices are the first rows.
    found = [cupy.unique(code, return_index=True) if code.size else (code, code) for code in codes]
    first_places = places_of([rows for _, rows in found], len(endpoints[0][0]))
    for code, place in zip([to_host(code) for code, _ in found], first_places, strict=True):
        places[code] = np.minimum(places[code], to_host(place))
    return codes, arrays, places


# --- the result -----------------------------------------------------------------------------------------------------


def in_edge_types(arrays: list[Any], shared: list[CommonType]) -> list[Any]:
    """Return distinct vertices in the types of the edge columns; NumPy integers as an array."""
    return [_named(array, one) for array, one in zip(arrays, shared, strict=True)]


def _named(array: Any, shared: CommonType) -> Any:
    like = shared.part_types[0]
    if shared.kind == "integer":
        array = cupy.asarray(array)
        return array if isinstance(like, np.dtype) else ids.integers_like(copied(array), shared.part_types)
    given = pd.Series(array, dtype=array.dtype)
    if isinstance(like, pd.StringDtype):
        # String types may differ in their missing value, which cuDF ignores when it compares types.
        given = given.astype(like)
    series = cudf.Series(given)
    if isinstance(like, cudf.CategoricalDtype):
        return ids.like_categories(series, shared.part_types)
    same = all(dtype == like for dtype in shared.part_types)
    return series if series.dtype == like or not same else series.astype(like)


def write(names: list[Any], columns: list[Any], ranks: Any, first: int, rows: Any = None) -> cudf.DataFrame:
    """Return a frame of vertices and ranks, at `rows` if given, with an index that starts at `first`."""
    return host.write_of(library, names, columns, ranks, first, to_device(rows))
