"""Factorization of large columns of Python objects, with one hash per distinct object. Imports pandas."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from prplugin.cpu import library
from prplugin.cpu.threads import PIECE, take_in_place
from prplugin.frames.kinds import ZONED
from prplugin.machine import this_machine
from prplugin.types.edges import Integers

MANY_OBJECTS = 1 << 14
"""Number of objects from which comparing addresses, and Arrow for strings, take less time than pandas."""

SAMPLED = 8
"""Ratio of rows to rows in the sample that decides whether objects repeat."""

TRUNCATES_STRINGS = len(pd.factorize(np.array(["\0a", "\0b"], object))[1]) < 2
"""True for pandas before 3.1, whose factorization truncates strings at a null character or a lone surrogate."""


@dataclass(frozen=True, slots=True)
class ObjectColumn:
    """A column of objects in which most objects occur in several rows (identical, not only equal)."""

    column: pd.Series
    codes: Integers  # position in `objects` of the object of each row
    objects: pd.Series  # distinct by identity, some perhaps equal, in the order of first appearance

    def __len__(self) -> int:
        return len(self.column)

    @property
    def dtype(self) -> Any:
        """Dtype of the column."""
        return self.column.dtype

    def factorize(self, *, strings: bool) -> tuple[Integers, Any]:
        """Factorize as `pandas.factorize` does; `strings` is True if all ids are strings. Overwrites `codes`."""
        numbers, values = factorize_objects(self.objects, strings=strings)
        return take_in_place(numbers, self.codes), values


def holds_many_objects(column: Any) -> bool:
    """Return whether a column is a long one of Python objects, and its addresses can be factorized."""
    return types.is_object_dtype(column.dtype) and len(column) >= MANY_OBJECTS and library.is_available()


def factorize_objects(column: object, *, strings: bool) -> tuple[Integers, Any]:
    """Factorize a Series or an array of objects as `pandas.factorize` does; strings with Arrow, in half the time."""
    objects = np.asarray(column)
    codes: Integers
    if strings:
        try:
            encoded = pa.array(objects, pa.large_string()).dictionary_encode()
        except (UnicodeError, pa.ArrowException):  # a lone surrogate, which UTF-8 cannot encode
            pass
        else:
            codes = encoded.indices.to_numpy()
            return codes, objects[first_rows(codes, len(encoded.dictionary))]
    return factorize_values(objects)


def factorize_values(values: Any) -> tuple[Integers, Any]:
    """Factorize an array as `pandas.factorize` does; strings are equal only if all of their characters are."""
    if TRUNCATES_STRINGS and (values.dtype == object or getattr(values.dtype, "storage", None) == "python"):
        objects = np.empty(len(values) + 1, object)
        objects[:-1], objects[-1] = values, object()  # beside another object, pandas compares strings as Python does
        codes, distinct = pd.factorize(objects)
        return codes[:-1], values.take(first_rows(codes[:-1], len(distinct) - 1))
    codes, distinct = pd.factorize(values)
    return codes, distinct


def in_utc(objects: Any, kind: str) -> Any:
    """Return times with a zone, also those in tuples, as objects in UTC, and ids of other kinds unchanged.

    Where clocks are set back, equal times of different zones have different hashes.
    """
    if not holds_times_with_zones(objects, kind):
        return objects
    found = np.empty(len(objects), object)
    for row, given in enumerate(objects):
        found[row] = _in_utc(given)
    return found


def holds_times_with_zones(objects: Any, kind: str) -> bool:
    """Return whether ids of this kind, as objects, are times with a zone, or tuples, which may hold such times."""
    return len(objects) > 0 and (kind == ZONED or isinstance(objects[0], tuple))


def _in_utc(given: object) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_in_utc, given))
    if not isinstance(given, datetime) or (offset := given.utcoffset()) is None:
        return given
    try:
        return given.astimezone(UTC)
    except OverflowError:  # the year 0 or 10000 in UTC, and so is every time that equals this one
        return given.replace(tzinfo=None) - datetime.min - offset


def missing_rows(column: Any) -> Integers:
    """Return the rows of a Series with missing values."""
    try:
        return np.flatnonzero(column.isna())
    except InvalidOperation:  # pandas compares a signaling NaN
        signaling = [isinstance(value, Decimal) and value.is_snan() for value in column]
        return np.flatnonzero(column.mask(signaling).isna())


def first_rows(codes: Integers, count: int) -> Integers:
    """Return the row in which each of the codes 0, 1, ..., count - 1 first appears."""
    first = np.empty(count, np.int64)
    # In pieces, which bound temporary memory.
    for begin in reversed(range(0, codes.size, PIECE)):
        rows = np.arange(begin, min(begin + PIECE, codes.size))
        first[codes[rows[::-1]]] = rows[::-1]  # written in descending order, so that the first row remains
    return first


def deduplicate_objects(column: pd.Series) -> pd.Series | ObjectColumn:
    """Return a large column of repeated objects as `ObjectColumn`, and any other column unchanged.

    Frames that were read, sorted or joined often have few distinct objects in many rows. Comparing addresses is several
    times faster than hashing the objects.
    """
    if not holds_many_objects(column):
        return column
    from prplugin.cpu import factorize

    threads = this_machine().threads
    objects = np.ascontiguousarray(column.to_numpy())
    addresses: Integers = np.ndarray(objects.shape, np.intp, objects)  # a view
    sample = addresses[: -(-addresses.size // SAMPLED)]
    if 2 * factorize.factorize_ids([sample], threads)[1].size > sample.size:
        return column
    (codes,), distinct = factorize.factorize_ids([addresses], threads)
    first = first_rows(codes, distinct.size)
    order = np.argsort(first)
    code = np.empty(order.size, codes.dtype)
    code[order] = np.arange(order.size)
    return ObjectColumn(column, code[codes], pd.Series(objects[first[order]], dtype=object))
