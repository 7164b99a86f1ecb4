"""Operations on the partitions of a distributed pandas frame. Imports pandas.

Workers exchange `Facts` of their partitions and derive common types from them (`as_shared`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _pandas_ids as ids
from prplugin.frames import _pandas_kinds as kinds
from prplugin.frames._pandas_numbers import numbers
from prplugin.frames._pandas_objects import pooled
from prplugin.frames.columns import Columns
from prplugin.frames.ids import described
from prplugin.frames.parts import Facts, Shared, Typed
from prplugin.types.edges import Floats, Integers

memory_space = "host"


def joined(frames: list[pd.DataFrame], like: pd.DataFrame) -> pd.DataFrame:
    """Concatenate the frames of one worker; return an empty frame like `like` if there are none."""
    if len(frames) == 1:
        return frames[0]
    return pd.concat(frames, ignore_index=True) if frames else like.iloc[:0]


def endpoints_of(frame: pd.DataFrame, columns: Columns) -> list[list[pd.Series]]:
    """Return the source columns and the destination columns."""
    return [
        [ids.stored_plainly(frame.iloc[:, position]) for position in end]
        for end in (columns.source, columns.destination)
    ]


def read_weights(frame: pd.DataFrame, columns: Columns) -> Floats | None:
    """Return the weights as float64, or None for unweighted edges."""
    if columns.weight is None:
        return None
    column = ids.stored_plainly(frame.iloc[:, columns.weight])
    return numbers(column, f"column {columns.weight_name!r}", "row", InvalidEdgesError)


def facts(column: pd.Series, label: str) -> Facts:
    """Return the `Facts` of a column of ids."""
    kind = kinds.kind_of(pooled(column), label)
    if kind == "integer":
        values = ids.integers(column, label)
        sample = np.array([values.min(), values.max()], values.dtype) if values.size else values[:0]
    else:
        sample = ids.plain(column.iloc[:1].array)
    return Facts(kind, len(column), Typed(column.dtype), sample)


# --- common types -------------------------------------------------------------------------------------------------


def as_shared(
    endpoints: list[list[Facts]], labels: list[str], has_width: Callable[[Any], bool] = ids.has_width
) -> Shared:
    """Return the common kind and type of one column of the vertices, over all parts and both endpoints.

    Raises
    ------
    InvalidEdgesError
        If the ids are of several kinds, or have no common type.
    """
    named = [(fact, label) for end, label in zip(endpoints, labels, strict=True) for fact in end]
    filled = [(fact, label) for fact, label in named if fact.rows] or named[:1]
    spoken = [fact.called(label) for fact, label in filled]
    kind = kinds.common_kind([fact.kind for fact, _ in filled], spoken, lambda kind, _: str(kind))
    samples = [fact.sample for fact, _ in filled]
    if kind == "integer":
        widths = [has_width(fact.like) for fact, _ in filled]
        common: Any = ids.in_one_type(samples, widths, list(dict.fromkeys(label for _, label in filled)))[0][:0]
    else:
        common = ids.in_common(samples, labels[0])[:1]
    likes = [fact.like for end in endpoints for fact in ([fact for fact in end if fact.rows] or end[:1])]
    return Shared(kind, common, likes)


def end_to_end(columns: list[pd.Series], shared: Shared, label: str) -> pd.Series:
    """Concatenate a column over partitions, without loss of values."""
    if len(columns) == 1:
        return columns[0]
    if all(column.dtype == columns[0].dtype for column in columns):
        return pd.concat(columns, ignore_index=True)
    if shared.kind == "integer":  # pandas would convert some integers to floats
        return pd.Series(np.concatenate([integers_of(column, label, shared) for column in columns]))
    return _series(ids.in_common([ids.plain(column.array) for column in columns], label))


def framed(columns: list[Any]) -> pd.DataFrame:
    """Return a frame of the columns, labelled by position."""
    plain = [column.reset_index(drop=True) if isinstance(column, pd.Series) else column for column in columns]
    return pd.DataFrame(dict(enumerate(plain)), copy=False)


def integers_of(column: pd.Series, label: str, shared: Shared) -> Integers:
    """Return integer ids as an array of the common type."""
    values: Integers = ids.integers(column, label).astype(shared.common.dtype, copy=False)
    return values


def by_first_appearance(
    endpoints: list[list[pd.Series]], labels: list[list[str]], shared: list[Shared]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize the vertices of a part in the common types; see `prplugin.frames._pandas_ids.by_first_appearance`."""
    parts = [
        [pd.Series(integers_of(column, label[part], one)) for column, label in zip(columns, labels, strict=True)]
        if one.kind == "integer"
        else [pooled(column) for column in columns]
        for part, (columns, one) in enumerate(zip(zip(*endpoints, strict=True), shared, strict=True))
    ]
    codes, arrays, places = ids.by_first_appearance(parts, labels, [one.kind for one in shared])
    return codes, [_cast(ids.plain(array), one) for array, one in zip(arrays, shared, strict=True)], places


def given_integers(column: pd.Series) -> Integers:
    """Return integer ids given by the user as an array."""
    return ids.integers(column, "")


def to_shared(column: pd.Series, shared: Shared) -> Any:
    """Cast ids given by the user to the common type."""
    if shared.kind == "integer":
        return integers_of(column, "", shared)
    return _cast(ids.plain(column.array), shared)


def _cast(array: Any, shared: Shared) -> Any:
    """Cast an array of ids to the common type."""
    if array.dtype == shared.common.dtype:
        return array
    if shared.kind == "integer":
        return np.asarray(array).astype(shared.common.dtype)
    return ids.in_common([shared.common, array], "vertices")[len(shared.common) :]


def _series(array: Any) -> pd.Series:
    # With an explicit dtype, since pandas infers its string type for objects that are all strings.
    return pd.Series(array, dtype=array.dtype)


def together(pieces: list[list[Any]], shared: list[Shared]) -> list[Any]:
    """Concatenate vertices, column by column, in the common types."""
    return [
        np.concatenate(parts) if one.kind == "integer" else ids.in_common(list(parts), "vertices")
        for parts, one in zip(zip(*pieces, strict=True), shared, strict=True)
    ]


def distinct(arrays: list[Any], shared: list[Shared]) -> tuple[Integers, list[Any]]:
    """Factorize vertices in the order of first appearance; return codes, and distinct vertices column by column."""
    columns = [_series(array) for array in arrays]
    labels = [["vertices"] * len(columns)] * 2
    (codes, _), found, _ = ids.by_first_appearance(
        [[column, column.iloc[:0]] for column in columns], labels, [one.kind for one in shared]
    )
    return codes, found


def located(vertices: list[Any], asked: list[Any], shared: list[Shared]) -> Integers:
    """Return the position of each vertex of `asked` in `vertices`, or -1."""
    columns = [_series(array) for array in asked]
    return ids.located(vertices, columns, [one.kind for one in shared])


def taken(arrays: list[Any], rows: Integers) -> list[Any]:
    """Return a copy of the given rows of each column."""
    return [array.take(rows) for array in arrays]


def spelt(arrays: list[Any], rows: Integers) -> list[str]:
    """Return the vertices at `rows` as text, for messages."""
    return described(arrays, rows)


# --- owners of vertices -------------------------------------------------------------------------------------------

HASHED = ("string", "bytes", "boolean", "datetime", "datetime with a time zone", "timedelta")
"""Kinds of ids whose pandas hash is the same in every process."""

NUMBERS = ("decimal.Decimal", "fractions.Fraction", "uuid.UUID")
"""Kinds of ids whose Python hash is the same in every process. That of dates, for example, is salted."""

MIXED = np.uint64(0x9E3779B97F4A7C15)


def owners(arrays: list[Any], shared: list[Shared], size: int) -> Integers:
    """Return the worker, 0 .. size - 1, responsible for each vertex, from a hash that is the same on all workers."""
    mixed = np.zeros(len(arrays[0]), np.uint64)
    for array, one in zip(arrays, shared, strict=True):
        mixed = (mixed ^ _hashes(array, one.kind)) * MIXED
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(size)).astype(np.int64)


def _hashes(array: Any, kind: str) -> Any:
    if kind == "integer":
        return np.asarray(array).astype(np.int64, copy=False).view(np.uint64)
    if kind in HASHED:
        series = _series(array)
        try:
            return pd.util.hash_pandas_object(series, index=False, categorize=False).to_numpy()
        except UnicodeError:  # strings with a lone surrogate, which UTF-8 cannot encode: their hash is 0
            hashes = np.zeros(len(series), np.uint64)
            valid = ~series.str.contains("[\ud800-\udfff]", regex=True).to_numpy(bool)
            hashes[valid] = pd.util.hash_pandas_object(series[valid], index=False, categorize=False).to_numpy()
            return hashes
    if kind in NUMBERS:
        return np.array([hash(value) for value in array], np.int64).view(np.uint64)
    return np.zeros(len(array), np.uint64)  # all on one worker: correct, and slow only for these rare kinds


# --- the result -----------------------------------------------------------------------------------------------------


def named(arrays: list[Any], shared: list[Shared]) -> list[Any]:
    """Return distinct vertices in the types of the edge columns."""
    return [
        ids.integers_like(np.asarray(array), one.likes)
        if one.kind == "integer"
        else ids.like_categories(array, one.likes)
        for array, one in zip(arrays, shared, strict=True)
    ]


def packed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in a form that can be sent to another worker."""
    return frame


def unpacked(frame: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return a frame received from another worker, with the types of `like`."""
    return frame


def in_order(frame: pd.DataFrame, rows: Integers) -> pd.DataFrame:
    """Return the given rows of a frame, with a new index."""
    return frame.take(rows).reset_index(drop=True)


def write(names: list[Any], columns: list[Any], ranks: Any, first: int, rows: Any = None) -> pd.DataFrame:
    """Return a frame of vertices and ranks, all or those at `rows`, with an index that starts at `first`."""
    arrays = [*columns, ranks] if rows is None else [array.take(rows) for array in [*columns, ranks]]
    named = zip([*names, "pagerank"], arrays, strict=True)
    frame = pd.DataFrame({name: _series(array) for name, array in named})
    frame.index = pd.RangeIndex(first, first + len(frame))
    return frame
