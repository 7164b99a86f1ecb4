"""Parts of a pandas frame that lies on several workers. Imported once there is one.

What has to be the same for all parts is found from a few facts about the columns of each: kinds, types, extremes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _pandas_ids as ids
from prplugin.frames._pandas_numbers import numbers
from prplugin.frames._pandas_objects import pooled
from prplugin.frames.columns import Columns
from prplugin.frames.parts import Facts, Shared, Typed, called
from prplugin.types.edges import Floats, Integers

__all__ = [
    "as_shared",
    "by_first_appearance",
    "distinct",
    "end_to_end",
    "ends_of",
    "facts",
    "framed",
    "given_integers",
    "in_order",
    "integers_of",
    "joined",
    "located",
    "named",
    "owners",
    "packed",
    "place",
    "read_weights",
    "spelt",
    "taken",
    "to_shared",
    "together",
    "unpacked",
    "write",
]

place = "host"


def joined(frames: list[pd.DataFrame], like: pd.DataFrame) -> pd.DataFrame:
    """Join the parts of one worker; without any, give an empty frame like the others."""
    if len(frames) == 1:
        return frames[0]
    return pd.concat(frames, ignore_index=True) if frames else like.iloc[:0]


def ends_of(frame: pd.DataFrame, columns: Columns) -> list[list[pd.Series]]:
    """Take the columns of sources and of destinations."""
    return [
        [ids.stored_plainly(frame.iloc[:, position]) for position in end]
        for end in (columns.source, columns.destination)
    ]


def read_weights(frame: pd.DataFrame, columns: Columns) -> Floats | None:
    """Take the weights, if there are any, as float64."""
    if columns.weight is None:
        return None
    column = ids.stored_plainly(frame.iloc[:, columns.weight])
    return numbers(column, f"column {columns.weight_name!r}", "row", InvalidEdgesError)


def facts(column: pd.Series, label: str) -> Facts:
    """Look at a column of ids."""
    kind = ids.kind_of(pooled(column), label)
    if kind == "integer":
        values = ids.integers(column, label)
        sample = np.array([values.min(), values.max()], values.dtype) if values.size else values[:0]
    else:
        sample = ids.plain(column.iloc[:1].array)
    return Facts(kind, len(column), Typed(column.dtype), sample)


# --- what all parts share -----------------------------------------------------------------------------------------


def as_shared(ends: list[list[Facts]], labels: list[str], has_width: Callable[[Any], bool] = ids.has_width) -> Shared:
    """Find what a column of a vertex is, from the facts of each end's parts; and in what type all are compared.

    Raises
    ------
    InvalidEdgesError
        If the ids are of several kinds, or have no type in common.
    """
    named = [(fact, label) for end, label in zip(ends, labels, strict=True) for fact in end]
    filled = [(fact, label) for fact, label in named if fact.rows] or named[:1]
    spoken = [called(fact, label) for fact, label in filled]
    kind = ids.common_kind([fact.kind for fact, _ in filled], spoken, lambda kind, _: str(kind))
    samples = [fact.sample for fact, _ in filled]
    if kind == "integer":
        widths = [has_width(fact.like) for fact, _ in filled]
        common: Any = ids.in_one_type(samples, widths, list(dict.fromkeys(label for _, label in filled)))[0][:0]
    else:
        common = ids.in_common(samples, labels[0])[:1]
    likes = [fact.like for end in ends for fact in ([fact for fact in end if fact.rows] or end[:1])]
    return Shared(kind, common, likes)


def end_to_end(columns: list[pd.Series], shared: Shared, label: str) -> pd.Series:
    """Join a column's pieces in the partitions, without loss; `shared` says what all of them are."""
    if len(columns) == 1:
        return columns[0]
    if all(column.dtype == columns[0].dtype for column in columns):
        return pd.concat(columns, ignore_index=True)
    if shared.kind == "integer":  # pandas would join some types of integers through floats
        return pd.Series(np.concatenate([integers_of(column, label, shared) for column in columns]))
    return _series(ids.in_common([ids.plain(column.array) for column in columns], label))


def framed(columns: list[Any]) -> pd.DataFrame:
    """Put columns in a frame, under their positions."""
    plain = [column.reset_index(drop=True) if isinstance(column, pd.Series) else column for column in columns]
    return pd.DataFrame(dict(enumerate(plain)), copy=False)


def integers_of(column: pd.Series, label: str, shared: Shared) -> Integers:
    """Take integer ids in the type that all parts share."""
    values: Integers = ids.integers(column, label).astype(shared.common.dtype, copy=False)
    return values


def by_first_appearance(
    ends: list[list[pd.Series]], labels: list[list[str]], shared: list[Shared]
) -> tuple[list[Integers], list[Any], Integers]:
    """Number the vertices of a part as they first appear in it.

    Returns
    -------
    codes : list of arrays
        For each end.
    arrays : list of pandas arrays
        The distinct vertices, column by column, in the types that all parts share.
    places : array
        Where each first appears, as `prplugin.frames._pandas_ids.by_first_appearance` counts.
    """
    parts = [
        [pd.Series(integers_of(column, label[part], one)) for column, label in zip(columns, labels, strict=True)]
        if one.kind == "integer"
        else [pooled(column) for column in columns]
        for part, (columns, one) in enumerate(zip(zip(*ends, strict=True), shared, strict=True))
    ]
    codes, arrays, places = ids.by_first_appearance(parts, labels, [one.kind for one in shared])
    return codes, [_cast(ids.plain(array), one) for array, one in zip(arrays, shared, strict=True)], places


def given_integers(column: pd.Series) -> Integers:
    """Take integer ids that the caller gave out of what holds them."""
    return ids.integers(column, "")


def to_shared(column: pd.Series, shared: Shared) -> Any:
    """Take ids that the caller gave in the type that all parts share."""
    if shared.kind == "integer":
        return integers_of(column, "", shared)
    return _cast(ids.plain(column.array), shared)


def _cast(array: Any, shared: Shared) -> Any:
    """Bring ids to the type that all parts share."""
    if array.dtype == shared.common.dtype:
        return array
    if shared.kind == "integer":
        return np.asarray(array).astype(shared.common.dtype)
    return ids.in_common([shared.common, array], "vertices")[len(shared.common) :]


def _series(array: Any) -> pd.Series:
    # The type is said: pandas takes objects that are all strings for its string type.
    return pd.Series(array, dtype=array.dtype)


def together(pieces: list[list[Any]], shared: list[Shared]) -> list[Any]:
    """Join pieces of vertices, column by column, in the types that all share."""
    return [
        np.concatenate(parts) if one.kind == "integer" else ids.in_common(list(parts), "vertices")
        for parts, one in zip(zip(*pieces, strict=True), shared, strict=True)
    ]


def distinct(arrays: list[Any], shared: list[Shared]) -> tuple[Integers, list[Any]]:
    """Number vertices as they first appear; also give the distinct ones, column by column."""
    columns = [_series(array) for array in arrays]
    labels = [["vertices"] * len(columns)] * 2
    (codes, _), found, _ = ids.by_first_appearance(
        [[column, column.iloc[:0]] for column in columns], labels, [one.kind for one in shared]
    )
    return codes, found


def located(vertices: list[Any], asked: list[Any], shared: list[Shared]) -> Integers:
    """Give the position of each asked vertex among others, -1 where it is none of them; column by column."""
    columns = [_series(array) for array in asked]
    return ids.located(vertices, columns, [one.kind for one in shared])


def taken(arrays: list[Any], rows: Integers) -> list[Any]:
    """Copy some rows of columns."""
    return [array.take(rows) for array in arrays]


def spelt(arrays: list[Any], rows: Integers) -> list[str]:
    """Spell out a few vertices for a message."""
    parts = [tuple(ids.plain_value(array[row]) for array in arrays) for row in rows.tolist()]
    return [repr(one[0]) if len(one) == 1 else repr(one) for one in parts]


# --- who owns a vertex ----------------------------------------------------------------------------------------------

HASHED = ("string", "bytes", "boolean", "datetime", "datetime with a time zone", "timedelta")
"""Kinds of ids that pandas hashes to the same number in every process if they are equal."""

NUMBERS = ("decimal.Decimal", "fractions.Fraction", "uuid.UUID")
"""Kinds that Python itself does: others, such as dates, it salts."""

MIXED = np.uint64(0x9E3779B97F4A7C15)


def owners(arrays: list[Any], shared: list[Shared], size: int) -> Integers:
    """Say which of `size` workers looks after each vertex: by a hash that is the same on all of them."""
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
        except UnicodeError:  # half of a surrogate pair, which UTF-8 does not have: such strings have one hash
            whole = np.array([_is_unicode(text) for text in array])
            hashes = np.zeros(whole.size, np.uint64)
            some = pd.Series(np.asarray(array, object)[whole], dtype=object)
            hashes[whole] = pd.util.hash_pandas_object(some, index=False, categorize=False).to_numpy()
            return hashes
    if kind in NUMBERS:
        return np.array([hash(value) for value in array], np.int64).view(np.uint64)
    return np.zeros(len(array), np.uint64)  # one worker looks after all: right in any case, and such ids are few


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeError:
        return False
    return True


# --- the result -----------------------------------------------------------------------------------------------------


def named(arrays: list[Any], shared: list[Shared]) -> list[Any]:
    """Hold distinct vertices as the columns of the edges do."""
    return [
        ids.integers_like(np.asarray(array), one.likes)
        if one.kind == "integer"
        else ids.like_categories(array, one.likes)
        for array, one in zip(arrays, shared, strict=True)
    ]


def packed(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame as it can be sent to another worker."""
    return frame


def unpacked(frame: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Take a frame that came from another worker."""
    return frame


def in_order(frame: pd.DataFrame, rows: Integers) -> pd.DataFrame:
    """Give the rows of a frame in some order, counted anew."""
    return frame.take(rows).reset_index(drop=True)


def write(names: list[Any], columns: list[Any], ranks: Any, first: int, rows: Any = None) -> pd.DataFrame:
    """Put ranks in a frame whose rows are counted from `first`: all of them, or those at `rows`."""
    arrays = [*columns, ranks] if rows is None else [array.take(rows) for array in [*columns, ranks]]
    named = zip([*names, "pagerank"], arrays, strict=True)
    frame = pd.DataFrame({name: _series(array) for name, array in named})
    frame.index = pd.RangeIndex(first, first + len(frame))
    return frame
