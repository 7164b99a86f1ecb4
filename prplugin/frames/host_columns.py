"""Columns of every pandas type: storage, kinds of ids, numbers, and factorization of Python objects. Imports pandas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types

from prplugin.cpu import library
from prplugin.cpu.threads import PIECE, take_in_place
from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, RefusedRows, refusal
from prplugin.frames.columns import Column
from prplugin.frames.kinds import (
    EXACT,
    ZONED,
    floats_refused,
    format_mixed_kinds,
    format_values,
    refuse_rows,
    unhashable_refused,
)
from prplugin.frames.remedies import cast_advice
from prplugin.machine import this_machine
from prplugin.progress import counted_ids
from prplugin.types.arrays import namespace, to_python
from prplugin.types.edges import Floats, Integers

Refuse: TypeAlias = Callable[[Integers, str, str], None]
"""Function that raises an error about rows, with the arguments rows, fault and remedy."""


# --- storage --------------------------------------------------------------------------------------------------------


def decode_storage(column: pd.Series) -> pd.Series:
    """Convert sparse columns, and Arrow types that pandas supports only in part; return others unchanged."""
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return column.sparse.to_dense()
    if isinstance(dtype, pd.ArrowDtype):
        array = pa.array(column.array)
        decoded = decode_arrow(array, f"column {column.name!r}")
        if decoded is not array:
            return pd.Series(pd.arrays.ArrowExtensionArray(decoded), index=column.index, name=column.name)
    return column


def decode_arrow(column: pa.ChunkedArray, label: str) -> pd.Series:
    """Decode extension types, run-end encoding, dictionaries, views and narrow decimals of Arrow.

    Raise `InvalidEdgesError` for types that pandas does not support.
    """
    kind = column.type
    try:
        if isinstance(kind, pa.BaseExtensionType):
            return decode_arrow(column.cast(kind.storage_type), label)
        if pa.types.is_run_end_encoded(kind):
            return decode_arrow(pc.run_end_decode(column), label)
        if pa.types.is_dictionary(kind):
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            chunks = [chunk.dictionary_decode() for chunk in chunks]  # a cast exists for few types of values
            return decode_arrow(pa.chunked_array(chunks, kind.value_type), label)
        if pa.types.is_string_view(kind):
            return column.cast(pa.large_string())
        if pa.types.is_binary_view(kind):
            return column.cast(pa.large_binary())
        if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
            return column.cast(pa.decimal128(kind.precision, kind.scale))
        _ = pd.ArrowDtype(kind).type
    except (NotImplementedError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"{label} holds {kind}, which pandas does not have. Cast it.") from error
    return column


# --- kinds ----------------------------------------------------------------------------------------------------------

KINDS = {"b": "boolean", "i": "integer", "u": "integer", "M": "datetime", "m": "timedelta"}  # by `dtype.kind`
ARROW_KINDS = {"date": "date", "binary": "bytes", "large_binary": "bytes", "decimal": "decimal.Decimal"}
"""Kinds of types of Arrow by the first letters of their names."""


def kind_of(column: pd.Series | ObjectColumn, label: str) -> str:
    """Return the kind of ids in a column: see `prplugin.frames.ids.Ids.kind_of`."""
    if isinstance(column, ObjectColumn):
        try:
            return kind_of(column.objects, label)
        except InvalidEdgesError:
            column = column.column  # for row numbers in the message
    dtype = column.dtype
    is_object = types.is_object_dtype(dtype)
    # Of the array, since pandas takes 20 times as long for a Series of one id.
    if is_object and (inferred := types.infer_dtype(column.to_numpy(), skipna=False)) in ("string", "integer"):
        return str(inferred)  # without nulls
    if isinstance(dtype, pd.CategoricalDtype):
        refuse_rows(missing_rows(column), label)
        used = column.cat.remove_unused_categories()
        return kind_of(pd.Series(used.cat.categories), label)
    if types.is_float_dtype(dtype) and not len(column):
        return "empty"  # pandas infers float for an empty list
    if types.is_float_dtype(dtype) or types.is_complex_dtype(dtype):
        raise floats_refused(dtype, label, missing_rows(column), unsafe_float(column))
    refuse_rows(missing_rows(column), label)
    if is_object:
        return _kind_of_objects(column, label)
    if isinstance(dtype, pd.DatetimeTZDtype) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None):
        return ZONED
    if (kind := KINDS.get(dtype.kind)) is not None and not str(dtype).startswith(("date32", "date64")):
        return kind
    if types.is_string_dtype(dtype):
        return "string"
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_nested(dtype.pyarrow_dtype):
        lists = not pa.types.is_struct(dtype.pyarrow_dtype) and not pa.types.is_map(dtype.pyarrow_dtype)
        raise unhashable_refused(dtype, label, lists=lists)
    return next((kind for name, kind in ARROW_KINDS.items() if str(dtype).startswith(name)), str(dtype))


def _kind_of_objects(column: pd.Series, label: str) -> str:
    inferred: str = types.infer_dtype(column, skipna=False).removesuffix("64")
    if inferred == "datetime" and getattr(column.iloc[0], "tzinfo", None) is not None:
        return ZONED
    if inferred in ("string", "integer", "boolean", "empty", "bytes", "date", "datetime", "timedelta"):
        return inferred
    kinds = column.map(type)
    if kinds.nunique() > 1:
        rows = [0, int(np.flatnonzero(kinds != kinds.iloc[0])[0])]
        type_names = [kinds.iloc[row].__name__ for row in rows]
        how = "Cast it to one type, so that equal vertices have equal ids."
        if all(issubclass(each, (Integral, str)) and each not in (bool, np.bool_) for each in kinds.unique()):
            how = cast_advice("Cast it to strings", "cast to strings", label)
        message = partial(format_mixed_kinds, label, how)
        raise refusal(InvalidEdgesError, RefusedRows(message, len(rows), rows, type_names))
    kind: type = kinds.iloc[0]
    if issubclass(kind, (float, complex, np.inexact)):
        raise floats_refused(kind.__name__, label, np.empty(0, np.int64), unsafe_float(column))
    if kind.__hash__ is None:
        raise unhashable_refused(kind.__name__, label, lists=issubclass(kind, (list, set, np.ndarray)))
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__


def unsafe_float(column: pd.Series) -> Any:
    """Return the first floating-point id that is no integer, or so large that it may be another one; None without."""
    values = column.dropna()
    if types.is_complex_dtype(values.dtype) or any(isinstance(value, complex) for value in values[:1]):
        return values.iloc[0]
    floats = values.to_numpy(np.float64)
    unsafe = np.flatnonzero((floats % 1 != 0) | (abs(floats) >= EXACT))
    return floats[unsafe[0]].item() if unsafe.size else None


# --- numbers --------------------------------------------------------------------------------------------------------


def numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Return a column as float64; raise `error` unless all values are finite and non-negative.

    `label` names the column in messages, and `noun` an entry, such as "row".
    """
    column = decode_storage(column)
    refuse = refusing(column, label, noun, error)
    dtype = column.dtype
    if not types.is_object_dtype(dtype) and dtype.kind not in "biuf" and not str(dtype).startswith("decimal"):
        raise error(f"{label} holds {dtype}, not real numbers. {how_to_numbers(column, label)}")
    if (missing := missing_rows(column)).size:
        refuse(missing, "missing or NaN", "Drop or fill them.")
    if types.is_object_dtype(dtype):
        values = column.tolist()
        invalid = np.flatnonzero([not isinstance(value, (Real, Decimal, np.bool_)) for value in values])
        if invalid.size:
            fault = "that is not a number" if invalid.size == 1 else "that are not numbers"
            refuse(invalid, fault, "Correct or drop them.")
        floats = np.array([to_float(value) for value in values], np.float64)
    else:
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


def how_to_numbers(column: pd.Series, label: str) -> str:
    """Return a sentence on how to get numbers from a column of another type."""
    if column.dtype.kind == "M" or str(column.dtype).startswith("date"):
        if not label.startswith("column "):  # values by vertex, which have no age
            return "Pass numbers."
        return cast_advice("If edges weigh less with age, pass it as time", "times instead of weights", label)
    if column.dtype.kind == "m":
        return cast_advice("Convert it to numbers", "durations to numbers", label)
    try:
        numeric = bool(pd.to_numeric(column.astype(object)).notna().all())
    except (TypeError, ValueError):
        numeric = False
    return cast_advice("Cast it", "cast to numbers", label) if numeric else "Weights and values are columns of numbers."


def refusing(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Refuse:
    """Return a function that raises `error` for rows of a column; the message shows their values."""

    def refuse(rows: Integers, fault: str, remedy: str) -> None:
        first = rows[:3].tolist()
        shown = [repr(to_python(column.iloc[row])) for row in first]
        raise refusal(error, RefusedRows(partial(format_values, label, noun, fault, remedy), rows.size, first, shown))

    return refuse


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


def to_float(number: Any) -> float:
    """Return the nearest float64, infinite if the number is out of range."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


# --- Python objects -------------------------------------------------------------------------------------------------

MANY_OBJECTS = 1 << 14
"""Number of objects from which comparing addresses, and Arrow for strings, take less time than pandas."""

SAMPLED = 8  # ratio of rows to rows in the sample that decides whether objects repeat

TRUNCATES_STRINGS = len(pd.factorize(np.array(["\0a", "\0b"], object))[1]) < 2
"""True for pandas before 3.1, whose factorization truncates strings at a null character or a lone surrogate."""


@dataclass(slots=True, eq=False, repr=False)
class ObjectColumn:
    """A column of objects in which most objects occur in several rows (identical, not only equal)."""

    column: pd.Series
    codes: Integers  # position in `objects` of the object of each row
    objects: pd.Series  # distinct by identity, some perhaps equal, in the order of first appearance
    dtype: ClassVar[np.dtype[np.generic]] = np.dtype(object)

    def __len__(self) -> int:
        return len(self.column)


def factorize_values(values: Column) -> tuple[Integers, Any]:
    """Factorize an array as `pandas.factorize` does; strings are equal only if all of their characters are."""
    if TRUNCATES_STRINGS and (values.dtype == object or getattr(values.dtype, "storage", None) == "python"):
        objects = np.empty(len(values) + 1, object)
        objects[:-1], objects[-1] = values, object()  # beside another object, pandas compares strings as Python does
        codes, distinct = pd.factorize(objects)
        return codes[:-1], values.take(first_rows(codes[:-1], len(distinct) - 1))
    codes, distinct = pd.factorize(values)
    return codes, distinct


def in_utc(objects: Column, kind: str) -> Any:
    """Return times with a zone, also those in tuples, as objects in UTC, and ids of other kinds unchanged.

    Where clocks are set back, equal times of different zones have different hashes.
    """
    if not holds_times_with_zones(objects, kind):
        return objects
    found = np.empty(len(objects), object)
    for row, given in enumerate(objects):
        found[row] = _in_utc(given)
    return found


def holds_times_with_zones(objects: Column, kind: str) -> bool:
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


def exact(column: Column, kinds: tuple[str, ...] = ("time32", "time64", "date32", "date64")) -> Any:
    """Convert an array of Arrow's times of day and dates to integers; return one of other ids unchanged.

    `datetime.time` has no nanoseconds, and `datetime.date` neither times nor years after 9999.
    """
    kind: Any = getattr(column.dtype, "pyarrow_dtype", None)
    if not str(kind).startswith(kinds):
        return column
    return pa.array(column).cast(f"int{kind.bit_width}").to_numpy(zero_copy_only=False)


def repeated_ids() -> InvalidEdgesError:
    """Return the error for vertices that are equal as Python compares their ids."""
    return InvalidEdgesError(
        "some of the graph's ids are repeated, or equal when Python compares them, so that vertices cannot be found by "
        "id. Make the graph of a column of other ids, or save it again if it was loaded."
    )


def missing_rows(column: pd.Series) -> Integers:
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
    if len(column) < MANY_OBJECTS or not types.is_object_dtype(column.dtype) or not library.is_available():
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
    code = np.argsort(order).astype(codes.dtype)
    return ObjectColumn(column, code[codes], pd.Series(objects[first[order]], dtype=object))


# --- arrays of ids ----------------------------------------------------------------------------------------------------


def factorize_column(column: Column, kind: str, label: str) -> tuple[Integers, Any]:
    """Return codes and distinct values of a Series, an array or an `ObjectColumn`, whose codes are overwritten."""
    if isinstance(column, ObjectColumn):
        codes, distinct = factorize_column(column.objects, kind, label)
        return take_in_place(codes, column.codes), distinct
    values = values_of(column) if isinstance(column, pd.Series) else column
    try:
        if types.is_object_dtype(values.dtype):
            objects = np.asarray(values)
            if holds_times_with_zones(objects, kind):
                codes, distinct = pd.factorize(in_utc(objects, kind))
                return codes, objects[first_rows(codes, len(distinct))]
            values = objects
        if kind == "string" and len(values) >= MANY_OBJECTS and (found := factorize_strings(values)) is not None:
            return found
        return factorize_values(values)
    except TypeError as error:
        raise InvalidEdgesError(f"{label} holds ids that have no hash ({error}).") from error


def factorize_strings(values: Column) -> tuple[Integers, Any] | None:
    """Factorize strings by their bytes in UTF-8; None if Arrow does not hold them so, or there are no kernels."""
    array: Any = None
    with suppress(UnicodeError, pa.ArrowException):  # a lone surrogate, which UTF-8 cannot encode
        array = pa.array(values, pa.large_string()) if isinstance(values, np.ndarray) else pa.array(values)
        if isinstance(array, pa.ChunkedArray):
            array = array.cast(pa.large_string()).combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    width = {pa.string(): np.int32, pa.large_string(): np.int64}.get(getattr(array, "type", None))
    if width is None or array.null_count or len(array) >= 2**31:
        return None
    if not library.is_available():
        encoded = array.dictionary_encode()  # in half the time of pandas
        codes = encoded.indices.to_numpy()
        return codes, values.take(first_rows(codes, len(encoded.dictionary)))
    from prplugin.cpu import strings

    _, offsets, data = array.buffers()
    own = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    own = np.require(own, requirements="A")  # what came over a network may lie anywhere
    codes, rows = strings.factorize(own, np.frombuffer(data or b"", np.uint8), counted_ids)
    return codes, values.take(rows)


def values_of(column: pd.Series) -> Any:
    """Return the array of a column, unwrapped if it is a NumPy array."""
    wrapped = isinstance(column.dtype, np.dtype) and column.dtype.kind not in "mM"
    return column.to_numpy() if wrapped else column.array


def objects_of(items: Sequence[object]) -> pd.Series:
    """Return a Series of dtype object, or of the inferred dtype for dates, times and intervals."""
    objects = np.empty(len(items), object)
    objects[:] = items
    series = pd.Series(objects, dtype=object)
    temporal = types.infer_dtype(objects, skipna=True).startswith(("datetime", "timedelta", "period", "interval"))
    return series.infer_objects() if temporal else series


@cache
def result_columns() -> pd.Index:
    """Return the labels of a frame of ranks."""
    return pd.Index(["vertex", "pagerank"])  # not a constant: with cudf.pandas it would be a proxy


def require_one_column(given: Any, frame_type: type[Any], multi_index_type: type[Any], what: str) -> None:
    """Raise if a frame, an index or an array of ids, of pandas or cuDF, has several columns."""
    if isinstance(given, frame_type):
        if given.shape[1] != 1:
            raise InvalidOptionError(
                f"{what} is a frame of {given.shape[1]} columns, but the vertices of this graph have one."
            )
    elif isinstance(given, multi_index_type):
        raise InvalidOptionError(
            f"{what} has an index of {given.nlevels} levels, but the vertices of this graph have one column."
        )
    elif getattr(given, "ndim", 1) != 1:
        raise InvalidOptionError(f"{what} is an array of {given.ndim} dimensions: pass one with one dimension.")


def stored_like(dtype: np.dtype[np.generic], like: object) -> Any:
    """Convert an integer type of NumPy to the storage of `like`: nullable or Arrow."""
    if isinstance(like, pd.ArrowDtype):
        return pd.ArrowDtype(pa.from_numpy_dtype(dtype))
    return dtype.name.replace("i", "I").replace("uI", "UI")
