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

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _cudf_ids as ids
from prplugin.frames import _pandas_parts as host
from prplugin.frames._cudf_arrays import as_frame, as_series, numbers
from prplugin.frames._pandas_parts import (  # noqa: F401  # used as functions of this module
    distinct,
    given_integers,
    located,
    owners,
    taken,
    to_shared,
    together,
)
from prplugin.frames.columns import Columns
from prplugin.frames.cudf import column_of
from prplugin.frames.parts import Facts, Shared, Typed
from prplugin.gpu.factorize import as_kernel_ids, extremes
from prplugin.types.arrays import copied, namespace, to_host
from prplugin.types.edges import Floats, Integers

memory_space = "device"


def joined(frames: list[cudf.DataFrame], like: cudf.DataFrame) -> cudf.DataFrame:
    """Concatenate the frames of one worker; return an empty frame like `like` if there are none."""
    if len(frames) == 1:
        return frames[0]
    return cudf.concat(frames, ignore_index=True) if frames else like.iloc[:0]


def endpoints_of(frame: cudf.DataFrame, columns: Columns) -> list[list[cudf.Series]]:
    """Return the source columns and the destination columns."""
    return [[column_of(frame, position) for position in end] for end in (columns.source, columns.destination)]


def read_weights(frame: cudf.DataFrame, columns: Columns) -> Floats | None:
    """Return the weights as float64, or None for unweighted edges."""
    if columns.weight is None:
        return None
    return numbers(column_of(frame, columns.weight), f"column {columns.weight_name!r}", "row", InvalidEdgesError)


def facts(column: Any, label: str) -> Facts:
    """Return the `Facts` of a column of ids; ids given by the user are a pandas Series."""
    if isinstance(column, pd.Series):
        return host.facts(column, label)
    kind = ids.kind_of(column, label)
    if kind == "integer":
        values = ids.integers(column, label)
        sample: Any = np.empty(0, values.dtype)
        if values.size:
            sample = np.array(extremes(as_kernel_ids([values]))[:2], values.dtype)
    else:
        sample = ids.plain(column.head(1)).to_pandas().array
    return Facts(kind, len(column), Typed(column.dtype), sample)


def as_shared(endpoints: list[list[Facts]], labels: list[str]) -> Shared:
    """Return the common kind and type of one column of the vertices, over all parts and both endpoints."""
    return host.as_shared(endpoints, labels, ids.has_width)


def end_to_end(columns: list[cudf.Series], shared: Shared, label: str) -> cudf.Series:
    """Concatenate a column over partitions, without loss of values."""
    if len(columns) == 1:
        return columns[0]
    if all(column.dtype == columns[0].dtype for column in columns):
        return cudf.concat(columns, ignore_index=True)
    if shared.kind == "integer":  # cuDF would convert some integers to floats
        return as_series(cupy.concatenate([integers_of(column, label, shared) for column in columns]))
    return ids.one_column(columns, label)


def framed(columns: list[Any]) -> cudf.DataFrame:
    """Return a frame of the columns, labelled by position."""
    series = [column if isinstance(column, cudf.Series) else as_series(column) for column in columns]
    return cudf.DataFrame(dict(enumerate(series)))


def integers_of(column: Any, label: str, shared: Shared) -> Integers:
    """Return integer ids as an array of the common type."""
    values: Integers = ids.integers(column, label).astype(shared.common.dtype, copy=False)
    return values


def by_first_appearance(
    endpoints: list[list[Any]], labels: list[list[str]], shared: list[Shared]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize the vertices of a part as `_pandas_parts.by_first_appearance` does, with codes in CuPy arrays."""
    parts = [
        [
            as_series(integers_of(column, label[part], one))
            if one.kind == "integer"
            else ids.on_device(column, label[part])
            for column, label in zip(columns, labels, strict=True)
        ]
        for part, (columns, one) in enumerate(zip(zip(*endpoints, strict=True), shared, strict=True))
    ]
    codes, columns = ids.factorize_by_first_appearance(parts, labels, [one.kind for one in shared])
    arrays = [host.to_shared(ids.plain(column).to_pandas(), one) for column, one in zip(columns, shared, strict=True)]
    places = np.full(len(arrays[0]), np.iinfo(np.int64).max)
    m = len(endpoints[0][0])
    for code, (scale, shift) in zip(codes, ((2, 0), (2, 1), (1, 2 * m)), strict=False):
        if not code.size:
            continue
        found, rows = cupy.unique(code, return_index=True)  # its sort is stable, so `rows` are first rows
        found, rows = found.get(), rows.get()
        places[found] = np.minimum(places[found], rows * scale + shift)
    return codes, arrays, places


def spelt(arrays: list[Any], rows: Integers) -> list[str]:
    """Return the vertices at `rows` as text, for messages."""
    if arrays and namespace(arrays[0]) is not np:
        few = [to_host(array[cupy.asarray(rows)]) for array in arrays]
        return host.spelt(few, np.arange(len(rows)))
    return host.spelt(arrays, rows)


# --- the result -----------------------------------------------------------------------------------------------------


def packed(frame: cudf.DataFrame) -> pd.DataFrame:
    """Return a frame in a form that can be sent to another worker."""
    return frame.to_pandas()


def unpacked(frame: pd.DataFrame, like: cudf.DataFrame) -> cudf.DataFrame:
    """Return a frame received from another worker, with the types of `like`."""
    return cudf.DataFrame(frame).astype(dict(like.dtypes))


def in_order(frame: cudf.DataFrame, rows: Integers) -> cudf.DataFrame:
    """Return the given rows of a frame, with a new index."""
    return frame.take(cupy.asarray(rows)).reset_index(drop=True)


def named(arrays: list[Any], shared: list[Shared]) -> list[Any]:
    """Return distinct vertices in the types of the edge columns; NumPy integers as an array."""
    return [_named(array, one) for array, one in zip(arrays, shared, strict=True)]


def _named(array: Any, shared: Shared) -> Any:
    like = shared.likes[0].dtype
    if shared.kind == "integer":
        array = cupy.asarray(array)
        return array if isinstance(like, np.dtype) else ids.integers_like(copied(array), shared.likes)
    given = pd.Series(array, dtype=array.dtype)
    if isinstance(like, pd.StringDtype):
        # Such types may differ in their missing value, which cuDF ignores when it compares types.
        given = given.astype(like)
    series = cudf.Series(given)
    if isinstance(like, cudf.CategoricalDtype):
        return ids.like_categories(series, shared.likes)
    same = all(one.dtype == like for one in shared.likes)
    return series if series.dtype == like or not same else series.astype(like)


def write(names: list[Any], columns: list[Any], ranks: Any, first: int, rows: Any = None) -> cudf.DataFrame:
    """Return a frame of vertices and ranks, all or those at `rows`, with an index that starts at `first`."""
    if rows is not None:
        rows = cupy.asarray(rows)
        columns, ranks = [column.take(rows) for column in columns], ranks[rows]
    if len(columns) == 1 and namespace(columns[0]) is not np:
        frame = as_frame({"vertex": copied(columns[0]), "pagerank": copied(ranks)})
    else:
        series = [
            as_series(copied(column)) if namespace(column) is not np else column.reset_index(drop=True)
            for column in [*columns, ranks]
        ]
        frame = cudf.DataFrame(dict(zip([*names, "pagerank"], series, strict=True)))
    frame.index = cudf.RangeIndex(first, first + len(frame))
    return frame
