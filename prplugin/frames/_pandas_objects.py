"""Large columns of Python objects, in which each object is looked at once. Imported once there is a pandas frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from prplugin.cpu.threads import Threads
from prplugin.machine import COMPILED_FROM, this_machine
from prplugin.types.edges import Integers

__all__ = ["Pooled", "factorised", "first_rows", "looked_up", "pooled"]

PIECE = 1 << 17
"""Rows that are looked at in one go, to keep what is made of them small."""

LOOKED_AT = 8
"""One of so many rows tells whether objects repeat."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """A column of objects, most of which are in several rows: the very same, not others equal to them.

    Attributes
    ----------
    column : Series
    codes : array
        For each row, which of `objects` it holds.
    objects : Series
        Each object once, in the order in which they first appear. Some of them may be equal.
    """

    column: pd.Series
    codes: Integers
    objects: pd.Series

    def __len__(self) -> int:
        return len(self.column)

    @property
    def dtype(self) -> Any:
        """As that of a Series."""
        return self.column.dtype

    def factorised(self, *, strings: bool) -> tuple[Integers, Any]:
        """Do what `pandas.factorize` does with the column; `strings` says whether all are. It writes over the codes."""
        numbers, values = factorised(self.objects, strings=strings)
        return looked_up(numbers, self.codes), values


def factorised(column: pd.Series, *, strings: bool) -> tuple[Integers, Any]:
    """Do what `pandas.factorize` does with a column of objects; strings by their UTF-8, in half the time."""
    objects = column.to_numpy()
    codes: Integers
    if strings:
        try:
            encoded = pa.array(objects, pa.large_string()).dictionary_encode()
        except (UnicodeError, pa.ArrowException):  # half of a surrogate pair, which UTF-8 does not have
            pass
        else:
            codes = encoded.indices.to_numpy()
            return codes, objects[first_rows(codes, len(encoded.dictionary))]
    codes, values = pd.factorize(objects)
    return codes, values


def first_rows(codes: Integers, count: int) -> Integers:
    """Give the row in which each of the codes 0, 1, ..., count - 1 first appears."""
    first = np.empty(count, np.int64)
    for begin in reversed(range(0, codes.size, PIECE)):
        rows = np.arange(begin, min(begin + PIECE, codes.size))
        first[codes[rows[::-1]]] = rows[::-1]  # written row by row, from the last: the first one stays
    return first


def looked_up(table: Integers, codes: Integers) -> Integers:
    """Replace codes by what a table has for each: in their place, if they may be written over and have its type."""
    if codes.dtype != table.dtype or not codes.flags.writeable:
        return table[codes]
    for begin in range(0, codes.size, PIECE):
        # In bounds all of them: to say so keeps NumPy from a buffer of its own.
        np.take(table, codes[begin : begin + PIECE], out=codes[begin : begin + PIECE], mode="clip")
    return codes


def pooled(column: pd.Series) -> pd.Series | Pooled:
    """Pool the objects of a large column in which they repeat; leave any other column as it is.

    What a frame has read, sorted, joined or taken from others holds few objects many times. To tell by its address
    whether an object was there before is several times faster than to ask for its hash.
    """
    if not types.is_object_dtype(column.dtype) or len(column) < COMPILED_FROM:
        return column
    from prplugin.cpu import factorize  # imports Numba

    threads = Threads(this_machine().threads)
    objects = column.to_numpy()
    addresses = np.asarray(_Addresses(objects))
    some = addresses[: -(-addresses.size // LOOKED_AT)]
    if 2 * factorize.number([some], threads)[1].size > some.size:
        return column
    (codes,), different = factorize.number([addresses], threads)
    first = first_rows(codes, different.size)
    order = np.argsort(first)
    number = np.empty(order.size, codes.dtype)
    number[order] = np.arange(order.size)
    return Pooled(column, number[codes], pd.Series(objects[first[order]], dtype=object))


class _Addresses:
    """An array of objects as NumPy holds it: by address."""

    def __init__(self, objects: Any) -> None:
        self._objects = objects  # lives as long as its addresses are looked at
        self.__array_interface__ = {
            "version": 3,
            "typestr": np.dtype(np.intp).str,
            "shape": objects.shape,
            "strides": objects.strides,
            "data": (objects.ctypes.data, True),
        }
