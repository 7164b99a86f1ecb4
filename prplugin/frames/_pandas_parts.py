"""Operations on the partitions of a distributed pandas frame. Imports pandas.

Workers exchange `ColumnInfo` of their partitions and derive common types from them (`common_type_of`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas import concat  # noqa: F401

from prplugin.frames import _pandas_ids as ids
from prplugin.frames import _pandas_kinds as kinds
from prplugin.frames import pandas
from prplugin.frames._pandas_objects import ZONED, deduplicate_objects, in_utc
from prplugin.frames.dask import ColumnInfo, CommonType
from prplugin.frames.factorize import has_width, in_one_type, transposed
from prplugin.frames.pandas import column_of, frame_of, memory_space, numbers, read  # noqa: F401
from prplugin.frames.vertices import format_ids, plain_ids
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import Integers


def column_info(column: pd.Series, label: str) -> ColumnInfo:
    """Return the `ColumnInfo` of a column of ids."""
    kind = kinds.kind_of(deduplicate_objects(column), label)
    if kind == "integer":
        values = ids.integers(column, label)
        sample = np.array([values.min(), values.max()], values.dtype) if values.size else values[:0]
    else:
        sample = ids.without_categories(column.iloc[:1].array)
    return ColumnInfo(kind, len(column), column.dtype, sample)


# --- common types -------------------------------------------------------------------------------------------------


def common_type_of(endpoints: list[list[ColumnInfo]], labels: list[str]) -> CommonType:
    """Return the common kind and type of one column of the vertices, over all parts and both endpoints."""
    named = [(info, label) for end, label in zip(endpoints, labels, strict=True) for info in end]
    filled = [(info, label) for info, label in named if info.rows] or named[:1]
    part_labels = [f"{label} of {info.where} ({info.dtype})" if info.where else label for info, label in filled]
    kind = kinds.common_kind([info.kind for info, _ in filled], part_labels, lambda kind, _: str(kind))
    samples = [info.sample for info, _ in filled]
    if kind == "integer":
        widths = [has_width(info.dtype) for info, _ in filled]
        common: Any = in_one_type(samples, widths, list(dict.fromkeys(label for _, label in filled)))[0][:0]
    else:
        common = ids.concat_in_common_type(samples, labels[0])[:1]
    part_types = [info.dtype for end in endpoints for info in ([info for info in end if info.rows] or end[:1])]
    return CommonType(kind, common, part_types)


def concat_column(columns: list[pd.Series], shared: CommonType, label: str) -> pd.Series:
    """Concatenate a column of different types over partitions, without loss of values."""
    if shared.kind == "integer":  # pandas would convert some integers to floats
        return pd.Series(np.concatenate([integers_of(column, label, shared) for column in columns]))
    return _series(ids.concat_in_common_type([ids.without_categories(column.array) for column in columns], label))


def integers_of(column: pd.Series, label: str, shared: CommonType) -> Integers:
    """Return integer ids as an array of the common type."""
    return ids.integers(column, label).astype(shared.dtype_sample.dtype, copy=False)


def by_first_appearance(
    endpoints: list[list[pd.Series]], labels: list[list[str]], shared: list[CommonType]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize the vertices of a part in the common types; see `prplugin.frames.factorize.by_first_appearance`."""
    columns = [[deduplicate_objects(column) for column in part] for part in transposed(endpoints)]
    codes, arrays, places = ids.by_first_appearance(columns, transposed(labels), [like.kind for like in shared])
    return codes, [cast_ids(array, like) for array, like in zip(arrays, shared, strict=True)], places


def cast_ids(array: Any, shared: CommonType) -> Any:
    """Cast an array of ids, without categories, to the common type."""
    if shared.kind == "integer":
        return np.asarray(array).astype(shared.dtype_sample.dtype, copy=False)
    if array.dtype == shared.dtype_sample.dtype:
        return array
    return ids.concat_in_common_type([shared.dtype_sample, array], "vertices")[len(shared.dtype_sample) :]


def _series(array: Any) -> pd.Series:
    # With an explicit dtype, since pandas infers its string type for objects that are all strings.
    return pd.Series(array, dtype=array.dtype)


def concat_columns(pieces: list[list[Any]], shared: list[CommonType]) -> list[Any]:
    """Concatenate vertices, column by column, in the common types."""
    return [
        np.concatenate(parts) if common_type.kind == "integer" else ids.concat_in_common_type(list(parts), "vertices")
        for parts, common_type in zip(zip(*pieces, strict=True), shared, strict=True)
    ]


def distinct(arrays: list[Any], shared: list[CommonType]) -> tuple[Integers, list[Any]]:
    """Factorize vertices in the order of first appearance; return codes, and distinct vertices column by column."""
    codes, _, found = ids.factorize_rows(arrays, [like.kind for like in shared], ["vertices"] * len(shared))
    return codes, found


def take(arrays: list[Any], rows: Integers) -> list[Any]:
    """Return a copy of the given rows of each column."""
    return [array.take(rows) for array in arrays]


def format_vertices(arrays: list[Any], rows: Integers) -> list[str]:
    """Return the vertices at `rows`, of NumPy, pandas or CuPy arrays, as text, for messages."""
    ids_at_rows = [to_host(array[namespace(array).asarray(rows)]) for array in arrays]
    return format_ids(partial(plain_ids, ids_at_rows), np.arange(len(rows)))


# --- owners of vertices -------------------------------------------------------------------------------------------

PANDAS_HASHED = ("string", "bytes", "boolean", "datetime", ZONED, "timedelta")
"""Kinds of ids whose pandas hash is the same in every process."""

PYTHON_HASHED = ("decimal.Decimal", "fractions.Fraction", "uuid.UUID")
"""Kinds of ids whose Python hash is the same in every process. The hash of dates, for example, is salted."""

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def hash_ranks(arrays: list[Any], shared: list[CommonType], size: int) -> Integers:
    """Return the worker, 0 .. size - 1, responsible for each vertex, from a hash that is the same on all workers."""
    mixed = np.zeros(len(arrays[0]), np.uint64)
    for array, common_type in zip(arrays, shared, strict=True):
        mixed = (mixed ^ _hashes(array, common_type.kind)) * MULTIPLIER
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(size)).astype(np.int64)


def _hashes(array: Any, kind: str) -> Any:
    if kind == "integer":
        return np.asarray(array).astype(np.int64, copy=False).view(np.uint64)
    if kind in PANDAS_HASHED:
        series = _series(in_utc(array, kind) if pd.api.types.is_object_dtype(array.dtype) else array)
        try:
            return pd.util.hash_pandas_object(series, index=False, categorize=False).to_numpy()
        except UnicodeError:  # strings with a lone surrogate, which UTF-8 cannot encode: their hash is 0
            hashes = np.zeros(len(series), np.uint64)
            valid = ~series.str.contains("[\ud800-\udfff]", regex=True).to_numpy(bool)
            hashes[valid] = pd.util.hash_pandas_object(series[valid], index=False, categorize=False).to_numpy()
            return hashes
    if kind in PYTHON_HASHED:
        return np.array([hash(value) for value in array], np.int64).view(np.uint64)
    return np.zeros(len(array), np.uint64)  # all on one worker: correct, and slow only for these rare kinds


# --- the result -----------------------------------------------------------------------------------------------------


def in_edge_types(arrays: list[Any], shared: list[CommonType]) -> list[Any]:
    """Return distinct vertices in the types of the edge columns."""
    return [
        ids.integers_like(np.asarray(array), common_type.part_types)
        if common_type.kind == "integer"
        else ids.like_categories(array, common_type.part_types)
        for array, common_type in zip(arrays, shared, strict=True)
    ]


def write_of(
    library: Any, names: list[Any], columns: list[Any], ranks: Any, first: int, rows: Integers | None = None
) -> Any:
    """Return a frame of vertices and ranks, at `rows` if given, with an index that starts at `first`.

    `library` is the adapter of pandas or cuDF.
    """
    arrays = [library.take(column, rows) for column in [*columns, ranks]]
    frame = library.frame_of([*names, "pagerank"], arrays)
    frame.index = type(frame.index)(first, first + len(frame))
    return frame


write = partial(write_of, pandas)
