"""Ids in device memory: columns of every cuDF type, as Series or arrays of CuPy. Imports cuDF.

Ids that the user gave as a list, a dict or a pandas object stay pandas Series until they are needed on the GPU. Columns
are constructed with pylibcudf, since the more general constructors of cuDF are slow for small columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, reduce
from typing import Any, ClassVar

import cudf
import cupy
import numpy as np
import pandas as pd
import pyarrow as pa
import pylibcudf as plc

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames.columns import Column, ColumnInfo, Dtype, GivenTypes, place_scales, transposed
from prplugin.frames.host_columns import (
    KINDS,
    check_range,
    how_to_numbers,
    refusing,
    require_one_column,
    stored_like,
    unsafe_float,
)
from prplugin.frames.ids import HOST, Ids
from prplugin.frames.kinds import ZONED, floats_refused, refuse_rows, unhashable_refused
from prplugin.gpu.factorize import GivenWeights, as_kernel_ids, by_first_appearance, extremes, factorize_ids
from prplugin.gpu.strings import Strings, factorize_strings
from prplugin.types.array_module import ArrayModule
from prplugin.types.arrays import Array, MemorySpace, copied, is_host, to_device
from prplugin.types.edges import Floats, Integers, bits_of

NESTED = (cudf.ListDtype, cudf.StructDtype)

DECIMALS = (cudf.Decimal32Dtype, cudf.Decimal64Dtype, cudf.Decimal128Dtype)

OFFSETS: dict[Any, np.dtype[np.generic]] = {plc.TypeId.INT32: np.dtype(np.int32), plc.TypeId.INT64: np.dtype(np.int64)}
"""Offset types of string columns; int64 for 2 GiB or more."""


# As cuDF reads the variable, when it is imported.
DEFAULT_STREAM = cupy.cuda.Stream.ptds if os.environ.get("CUDF_PER_THREAD_STREAM") == "1" else cupy.cuda.Stream.null


@contextmanager
def on_cudf_stream(stream: Any) -> Iterator[None]:
    """Make the default stream, which cuDF uses, CuPy's current stream instead of `stream`.

    cuDF ignores CuPy's current stream, and the two streams are not ordered: the host synchronizes `stream` on entry,
    and the default stream on exit.
    """
    stream.synchronize()
    with DEFAULT_STREAM:
        yield
        DEFAULT_STREAM.synchronize()


class DeviceIds(Ids):
    """Operations on Series of cuDF and arrays of CuPy, and on Series of pandas as arguments."""

    memory_space: ClassVar[MemorySpace] = "device"
    xp: ClassVar[ArrayModule] = cupy

    def active(self) -> AbstractContextManager[object]:
        stream = cupy.cuda.get_current_stream()
        return nullcontext() if stream.ptr == DEFAULT_STREAM.ptr else on_cudf_stream(stream)

    @property
    def types(self) -> GivenTypes:
        indexes = (cudf.Index, pd.Index, pd.api.extensions.ExtensionArray)
        return GivenTypes(indexes, (cudf.Series, pd.Series), (cudf.DataFrame, pd.DataFrame))

    def convert(self, given: object, what: str) -> Any:
        on_device = type(given).__module__.partition(".")[0] in ("cudf", "cupy")
        return given if on_device else HOST.convert(given, what)

    def own_frame(self, frame: object) -> cudf.DataFrame:
        return cudf.from_pandas(frame) if isinstance(frame, pd.DataFrame) else frame

    def column_of(self, frame: object, position: int) -> Any:
        if not isinstance(frame, cudf.DataFrame):
            return HOST.column_of(frame, position)
        label = list(frame)[position]  # `frame.columns` converts the labels to an index of pandas
        if isinstance(label, str) and isinstance(frame.index, cudf.RangeIndex):
            return frame[label]  # ten times faster
        return frame.iloc[:, position].reset_index(drop=True)

    def id_columns(self, given: object, names: list[Hashable] | None, what: str) -> list[Column]:
        """Convert ids to Series, one per component of a vertex; ids in host memory stay there, as pandas Series."""
        if isinstance(given, cupy.ndarray):
            require_one_column(given, cudf.DataFrame, cudf.MultiIndex, what)
            given = cudf.Series(given, nan_as_null=False)
        if not isinstance(given, (cudf.DataFrame, cudf.Series, cudf.Index)):
            return HOST.id_columns(given, names, what)
        if names is None:
            require_one_column(given, cudf.DataFrame, cudf.MultiIndex, what)
            if isinstance(given, cudf.DataFrame):
                return [self.column_of(given, 0)]
            return [cudf.Series(given).reset_index(drop=True)]
        if isinstance(given, cudf.DataFrame):
            return self.columns_of(given, names, what)
        if isinstance(given, cudf.MultiIndex) and given.nlevels == len(names):
            return [cudf.Series(given.get_level_values(level)).reset_index(drop=True) for level in range(len(names))]
        levels = given.nlevels if isinstance(given, cudf.MultiIndex) else 1
        raise InvalidOptionError(
            f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(name) for name in names])}; "
            f"{counted(len(given), 'entry is', 'entries are')} not, but of {levels}."
        )

    def frame_of(self, names: list[Hashable], columns: list[Column]) -> cudf.DataFrame:
        if any(is_host(column) for column in columns):
            return cudf.DataFrame(dict(zip(names, map(as_series, columns), strict=True)))
        table = plc.Table([plc.Column.from_cuda_array_interface(array) for array in columns])
        return cudf.DataFrame.from_pylibcudf(table, {"columns": list(names)})

    def concat(self, parts: list[Column]) -> Column:
        return cudf.concat(parts, ignore_index=True)

    def numbers(self, column: pd.Series | cudf.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
        if isinstance(column, pd.Series):
            return cupy.asarray(HOST.numbers(column, label, noun, error))
        floats, owned, refuse = to_float64_unchecked(column, label, noun, error)
        refuse(floats)
        return floats if owned else floats.copy()

    def numbers_of_array(self, given: object, label: str, error: type[PageRankError]) -> Floats:
        return to_device(HOST.numbers_of_array(given, label, error))

    def missing_rows(self, column: cudf.Series) -> Integers:
        """Return the rows of nulls and of NaN, which cuDF distinguishes."""
        missing = as_array(column.isna())
        if column.dtype.kind == "f":
            missing = missing | cupy.isnan(as_array(column.astype("float64").fillna(np.nan)))
        return cupy.flatnonzero(missing)

    def as_column(self, values: object, label: str = "") -> cudf.Series:
        column = as_series(values)
        if isinstance(column, cudf.Series):
            return column
        try:
            return cudf.Series(HOST.as_column(column))
        except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
            raise InvalidEdgesError(f"{label} holds ids that cuDF cannot hold: {error}") from error

    def to_host(self, column: cudf.Series) -> Column:
        return column.to_pandas().array

    def from_host(self, ids: Column, kind: str, dtypes: list[Dtype]) -> Column:
        like = dtypes[0]
        if kind == "integer":
            array = cupy.asarray(ids)
            return array if isinstance(like, np.dtype) else self.integers_like(copied(array), dtypes)
        given = HOST.as_column(ids)
        if isinstance(like, pd.StringDtype):
            # String types may differ in their missing value, which cuDF ignores when it compares types.
            given = given.astype(like)
        series = cudf.Series(given)
        if isinstance(like, cudf.CategoricalDtype):
            return self.like_categories(series, dtypes)
        same = all(dtype == like for dtype in dtypes)
        return series if series.dtype == like or not same else series.astype(like)

    def column_info(self, column: pd.Series | cudf.Series, label: str) -> ColumnInfo:
        # Ids from arguments are a pandas Series.
        return HOST.column_info(column, label) if isinstance(column, pd.Series) else super().column_info(column, label)

    def kind_of(self, column: cudf.Series, label: str) -> str:
        if isinstance(column, pd.Series):
            return HOST.kind_of(column, label)
        dtype = column.dtype
        if isinstance(dtype, cudf.CategoricalDtype):
            _refuse_nulls(column, label)
            categories = cudf.Series(dtype.categories)
            return self.kind_of(categories if len(column) else categories.head(0), label)
        if dtype.kind == "f":
            if len(column):
                raise floats_refused(dtype, label, self.missing_rows(column), unsafe_float(column.to_pandas()))
            return "empty"  # cuDF infers float for an empty list
        _refuse_nulls(column, label)
        if not len(column) and dtype == np.dtype(object):
            return "empty"  # frames created from column names only have this type
        arrow = getattr(dtype, "pyarrow_dtype", None)
        if isinstance(dtype, NESTED) or (arrow is not None and pa.types.is_nested(arrow)):
            raise unhashable_refused(dtype, label, lists=not isinstance(dtype, cudf.StructDtype))
        if is_decimal(dtype):
            return "decimal.Decimal"
        if isinstance(dtype, cudf.IntervalDtype):
            return str(dtype)
        if isinstance(dtype, pd.DatetimeTZDtype) or getattr(arrow, "tz", None):
            return ZONED
        return KINDS.get(dtype.kind, "string")

    def take(self, column: Any, rows: Integers | None) -> Column:
        if not is_host(column):
            return copied(column) if rows is None else column[rows]
        return column.copy(deep=True) if rows is None else column.take(rows).reset_index(drop=True)

    def deduplicate(self, column: Column) -> Column:
        return column

    def factorize(
        self, columns: list[Column], kinds: list[str], labels: list[str]
    ) -> tuple[Integers, Integers, list[cudf.Series]]:
        # `cudf.factorize` takes a single column and sorts the result of its join. Here each pair of the join scatters
        # its code to its row, which needs no sort.
        columns = [self.as_column(*pair) for pair in zip(columns, labels, strict=True)]
        if not len(columns[0]):
            return cupy.empty(0, np.int32), cupy.empty(0, np.int32), columns
        table = _table([_keys(column) for column in columns])
        found = plc.stream_compaction.distinct_indices(
            table,
            plc.stream_compaction.DuplicateKeepOption.KEEP_FIRST,
            plc.types.NullEquality.EQUAL,
            plc.types.NanEquality.ALL_EQUAL,
        )
        rows = cupy.sort(_rows(found))  # in no particular order
        distinct = [self.take(column, rows) for column in columns]
        codes = cupy.empty(len(columns[0]), np.int32)
        at, code = _matches(table, _table([_keys(column) for column in distinct]))
        codes[at] = code
        return codes, rows, distinct

    def factorize_endpoints(
        self, parts: list[list[Column]], labels: list[list[str]], kinds: list[str]
    ) -> tuple[list[Integers], list[cudf.Series], Any]:
        """Factorize vertices: strings with `prplugin.gpu.strings`, several integers packed into one.

        Places are None for strings.
        """
        if kinds == ["string"]:
            endpoints = [self.as_column(*pair) for pair in zip(parts[0], labels[0], strict=True)]
            strings = [found for end in endpoints if (found := as_strings(end)) is not None]  # None for categories
            filled = [end for end in endpoints if len(end)]
            if filled and len(strings) == len(endpoints) and (factorized := factorize_strings(strings)) is not None:
                codes, distinct = factorized
                return codes, [as_string_series(distinct, filled[0].dtype)], None
        if len(kinds) > 1 and set(kinds) == {"integer"} and (packed := self._pack(parts, labels)) is not None:
            endpoints, unpack = packed
            codes, ids = factorize_ids(endpoints)
            codes, order, places = by_first_appearance(codes, ids.size, place_scales(len(endpoints[0])))
            return codes, list(map(as_series, unpack(ids[order]))), places
        return super().factorize_endpoints(parts, labels, kinds)

    def _pack(
        self, parts: list[list[Column]], labels: list[list[str]]
    ) -> tuple[list[Integers], Callable[[Integers], list[Integers]]] | None:
        """Pack the components of vertices, integers, into one int64, each less its least value; None without room.

        `parts`: for each vertex column, its column in each endpoint. Return the packed ids of each endpoint, and the
        function that returns the columns of packed ids.
        """
        columns = [self.common_integers(part, names) for part, names in zip(parts, labels, strict=True)]
        if not all(sum(end.size for end in column) for column in columns):
            return None
        ranges = [extremes(as_kernel_ids([end for end in column if end.size]))[:2] for column in columns]
        bits = [bits_of(high - low + 1) for low, high in ranges]
        if sum(bits) > PACKED_BITS:
            return None
        shifts = [sum(bits[place + 1 :]) for place in range(len(bits))]
        lows = [np.array(low % 2**64, np.uint64).view(np.int64)[()] for low, _ in ranges]
        packed = [
            reduce(
                cupy.bitwise_or,
                (
                    cupy.left_shift(end.astype(np.int64, copy=False) - low, shift)  # wraps around as uint64 does
                    for end, low, shift in zip(ends, lows, shifts, strict=True)
                ),
            )
            for ends in transposed(columns)
        ]

        def unpack(ids: Integers) -> list[Integers]:
            parts = [
                (ids >> shift & (1 << size) - 1) + low for size, shift, low in zip(bits, shifts, lows, strict=True)
            ]
            return [part.astype(column[0].dtype) for part, column in zip(parts, columns, strict=True)]

        return packed, unpack

    def concatenate(self, columns: list[cudf.Series], label: str) -> cudf.Series:
        filled = [column for column in columns if len(column)] or columns[:1]
        cast = _in_one_type(filled, label)
        return cudf.concat(cast, ignore_index=True) if len(cast) > 1 else cast[0]

    def one_column(self, columns: list[Column], what: str) -> Column:
        if all(isinstance(column, pd.Series) for column in columns):
            return HOST.one_column(columns, what)
        return self.concatenate([self.without_categories(self.as_column(column, what)) for column in columns], what)

    def positions(self, vertices: list[cudf.Series], columns: list[Column], kinds: list[str], what: str) -> Integers:
        rows = cupy.full(len(columns[0]), -1, np.int64)
        known, asked = [], []
        comparable = cupy.ones(rows.size, np.bool_)
        for vertex, column, kind in zip(vertices, columns, kinds, strict=True):
            if kind == "integer":
                ids, others = self.integers(vertex), self.integers(column)
                cast = others.astype(ids.dtype)
                # Ids outside the range of the type of the vertices are not in the graph.
                comparable &= (cast.astype(others.dtype) == others) & ((cast < 0) == (others < 0))
                pair = [cudf.Series(ids), cudf.Series(cast)]
            else:
                values = [self.without_categories(each) for each in (vertex, self.as_column(column, what))]
                pair = _in_one_type(values, what)
            known.append(pair[0])
            asked.append(pair[1])
        at, of = _matches(_table(known), _table(asked))
        rows[of] = at
        rows[~comparable] = -1
        return rows

    def without_categories(self, column: cudf.Series) -> cudf.Series:
        if not isinstance(column.dtype, cudf.CategoricalDtype):
            return column
        return self.take(cudf.Series(column.dtype.categories), as_array(column.cat.codes))

    def like_categories(self, column: cudf.Series, dtypes: list[Dtype]) -> cudf.Series:
        like, *others = dtypes
        if not isinstance(like, cudf.CategoricalDtype):
            return column
        others = [
            cudf.CategoricalDtype.from_pandas(dtype) if isinstance(dtype, pd.CategoricalDtype) else dtype
            for dtype in others
        ]
        return column.astype(like) if all(dtype == like for dtype in others) else column

    def integers(self, column: Any, label: str = "") -> Integers:
        if not is_host(column):
            return column
        if isinstance(column, pd.Series):
            return cupy.asarray(HOST.integers(column, label))
        if not len(column):  # untyped, or float
            return cupy.empty(0, column.dtype if column.dtype in _NUMPY_INTEGERS else np.int64)
        if isinstance(column.dtype, cudf.CategoricalDtype):
            return as_array(cudf.Series(column.dtype.categories))[as_array(column.cat.codes)]
        return as_array(column)

    def integers_like(self, integers: Integers, dtypes: list[Dtype]) -> Column:
        like = dtypes[0]
        if isinstance(like, cudf.CategoricalDtype):
            return self.like_categories(as_series(integers), dtypes)
        if isinstance(like, np.dtype):
            return integers
        return as_series(integers).astype(stored_like(integers.dtype, like))

    def joined_dtypes(self, columns: list[cudf.Series]) -> list[Dtype]:
        return [column.dtype for column in columns]

    def extremes(self, integers: Integers) -> Integers:
        if not integers.size:
            return np.empty(0, integers.dtype)
        return np.array(extremes(as_kernel_ids([integers]))[:2], integers.dtype)


DEVICE = DeviceIds()  # the operations on ids in device memory
PACKED_BITS = 63  # most bits of the components of a vertex that are packed into one int64
_NUMPY_INTEGERS = tuple(np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8))


def _refuse_nulls(column: cudf.Series, label: str) -> None:
    if column.null_count:
        refuse_rows(DEVICE.missing_rows(column), label)


def _matches(one: plc.Table, other: plc.Table) -> tuple[Integers, Integers]:
    """Return all pairs of equal rows of two tables with the same types, in no particular order."""
    pairs = plc.join.inner_join(one, other, plc.types.NullEquality.EQUAL)
    return _rows(pairs[0]), _rows(pairs[1])


def _table(columns: list[cudf.Series]) -> plc.Table:
    return plc.Table([column.to_pylibcudf()[0] for column in columns])


def _rows(column: plc.Column) -> Integers:
    return as_array(cudf.Series.from_pylibcudf(column))


def _keys(column: cudf.Series) -> cudf.Series:
    """Return the codes of a categorical column, which identify its ids, and other columns unchanged."""
    return column.cat.codes if isinstance(column.dtype, cudf.CategoricalDtype) else column


def _in_one_type(columns: list[cudf.Series], label: str) -> list[cudf.Series]:
    try:
        dtype = _common_type([column.dtype for column in columns])
        cast = [column if column.dtype == dtype else column.astype(dtype) for column in columns]
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise InvalidEdgesError(f"{label} and the other columns of ids have no common type: {error}") from error
    for new, old in zip(cast, columns, strict=True):
        # Casts of durations silently overflow, and casts to a coarser unit silently truncate.
        if new.dtype != old.dtype and old.dtype.kind in "mM" and not bool((new.astype(old.dtype) == old).all()):
            raise InvalidEdgesError(
                f"{label} and the other columns of ids have no common type: {dtype} does not hold all of {old.dtype}"
            )
    return cast


def _common_type(dtypes: list[Dtype]) -> Dtype:
    """Return the type for comparisons of ids of one kind: finest unit, most digits, otherwise the first type."""
    first = dtypes[0]
    if all(dtype == first for dtype in dtypes):
        return first
    if all(isinstance(dtype, DECIMALS) for dtype in dtypes):
        scale = max(dtype.scale for dtype in dtypes)
        return cudf.Decimal128Dtype(scale + max(dtype.precision - dtype.scale for dtype in dtypes), scale)
    if all(isinstance(dtype, pd.DatetimeTZDtype) for dtype in dtypes):
        finest = np.result_type(*(np.dtype(f"M8[{dtype.unit}]") for dtype in dtypes))
        return pd.DatetimeTZDtype(np.datetime_data(finest)[0], first.tz)
    if first.kind in "mM" and not any(isinstance(dtype, pd.DatetimeTZDtype) for dtype in dtypes):
        finest = np.result_type(*(dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype for dtype in dtypes))
        return pd.ArrowDtype(pa.from_numpy_dtype(finest)) if isinstance(first, pd.ArrowDtype) else finest
    return first


# --- columns as arrays ------------------------------------------------------------------------------------------------


def as_array(column: cudf.Series) -> Array:
    """Return a view of a numeric column without nulls as a CuPy array."""
    if not len(column):  # may have no memory to view
        dtype = column.dtype
        return cupy.empty(0, dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype)
    return column.values


def as_series(values: object) -> cudf.Series:
    """Return a numeric array as a column, in which NaN does not become null; return a column unchanged."""
    if is_host(values):
        return values
    return cudf.Series.from_pylibcudf(plc.Column.from_cuda_array_interface(values))


def is_decimal(dtype: object) -> bool:
    """Return whether a column of this type holds decimals."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    return isinstance(dtype, DECIMALS) or (arrow is not None and pa.types.is_decimal(arrow))


def to_float64_unchecked(column: cudf.Series, label: str, noun: str, error: type[PageRankError]) -> GivenWeights:
    """Return a cuDF column as float64, without a check of the values, and without a copy if it is float64."""
    refuse = refusing(column, label, noun, error)
    dtype = column.dtype
    decimal = is_decimal(dtype)
    if not decimal and dtype.kind not in "biuf":
        name = (
            "category" if isinstance(dtype, cudf.CategoricalDtype) else "string" if dtype == np.dtype(object) else dtype
        )
        raise error(f"{label} holds {name}, not real numbers. {how_to_numbers(column.to_pandas(), label)}")
    if column.null_count:
        refuse(DEVICE.missing_rows(column), "missing or NaN", "Drop or fill them.")
    array = as_array(column.astype("float64") if decimal else column)
    floats = array.astype(np.float64, copy=False)
    return GivenWeights(floats, decimal or floats is not array, partial(check_range, refuse=refuse))


def as_strings(column: cudf.Series) -> Strings | None:
    """Return a view of a string column without nulls as arrays. The column may be of any type if it has no rows.

    Return None for other types, and for columns whose memory is not accessible because cuDF has spilled it to the host.
    """
    if not len(column):
        return Strings(cupy.empty(0, np.uint8), cupy.zeros(1, np.int32))
    held = column.to_pylibcudf()[0]
    if held.type().id() != plc.TypeId.STRING:
        return None
    offsets = held.child(0)
    if held.data() is None or offsets.data() is None:
        return None
    begins = _view(offsets.data(), OFFSETS[offsets.type().id()])
    first, past = held.offset(), held.offset() + held.size()
    return Strings(_view(held.data(), np.dtype(np.uint8)), begins[first : past + 1])


def as_string_series(strings: Strings, dtype: object) -> cudf.Series:
    """Return strings as a column of a string type of cuDF."""
    offsets = plc.Column.from_cuda_array_interface(strings.offsets)
    column = plc.Column(
        plc.DataType(plc.TypeId.STRING), strings.rows, plc.gpumemoryview(strings.chars), None, 0, 0, [offsets]
    )
    series = cudf.Series.from_pylibcudf(column)
    return series if series.dtype == dtype else series.astype(dtype)


def _view(memory: Any, dtype: np.dtype[np.generic]) -> Array:
    """Return a view of cuDF memory as a CuPy array."""
    if not memory.size:
        return cupy.empty(0, dtype)
    shared = cupy.cuda.UnownedMemory(memory.ptr, memory.size, memory)
    return cupy.ndarray(memory.size // dtype.itemsize, dtype, cupy.cuda.MemoryPointer(shared, 0))
