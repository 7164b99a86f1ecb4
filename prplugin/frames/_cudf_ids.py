"""Id columns of every cuDF type: kinds, common types and factorization. Imports cuDF.

Ids that the user gave as a list, a dict or a pandas object stay pandas Series until they are needed on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import cudf
import cupy
import numpy as np
import pandas as pd
import pyarrow as pa
import pylibcudf as plc

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _pandas_ids as host
from prplugin.frames import _pandas_kinds as host_kinds
from prplugin.frames._cudf_arrays import (
    DECIMALS,
    as_array,
    as_series,
    as_string_series,
    as_strings,
    is_decimal,
    missing_rows,
)
from prplugin.frames._pandas_ids import common_integers, in_one_type  # noqa: F401  # `VertexIndex` calls in_one_type
from prplugin.gpu.edges import GivenWeights, edges_by_id, with_weights
from prplugin.gpu.strings import factorize_strings
from prplugin.types.arrays import copied, namespace
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

NESTED = (cudf.ListDtype, cudf.StructDtype)


def encode(
    endpoints: list[list[Any]], labels: list[list[str]], weights: Callable[[], GivenWeights | None], *, grouped: bool
) -> tuple[Edges | GroupedEdges, list[Any], list[str]]:
    """Factorize sources, destinations and, optionally, additional vertices, which may be pandas Series.

    Return the edges with weights, possibly grouped by target if `grouped`; the vertices as Series in the types of the
    source columns, NumPy integers as arrays; and the kind of ids in each column. `weights` is called after the ids have
    been checked, so that errors about ids come first.
    """
    parts = [list(part) for part in zip(*endpoints, strict=True)]
    named = [list(part) for part in zip(*labels, strict=True)]
    kinds = [host_kinds.common_kind(part, names, kind_of) for part, names in zip(parts, named, strict=True)]
    if kinds == ["integer"]:
        edges, ids = edges_by_id(common_integers(parts[0], named[0], integers), weights(), grouped=grouped)
        return edges, [integers_like(ids, [column.dtype for column in parts[0]])], kinds
    factorized = [
        [cudf.Series(ids) for ids in common_integers(part, names, integers)]
        if kind == "integer"
        else [on_device(column, name) for column, name in zip(part, names, strict=True)]
        for part, names, kind in zip(parts, named, kinds, strict=True)
    ]
    codes, columns = factorize_by_first_appearance(factorized, labels[0], kinds)
    for part, kind in enumerate(kinds):
        dtypes = [column.dtype for column in parts[part]]
        if kind == "integer":
            columns[part] = integers_like(as_array(columns[part]), dtypes)
        else:
            columns[part] = like_categories(columns[part], dtypes)
    return with_weights(Edges(codes[0], codes[1], None, len(columns[0])), weights()), columns, kinds


def positions_in(vertices: list[cudf.Series], columns: list[Any], kinds: list[str], what: str) -> Integers:
    """Return the position of each row of `columns` in `vertices`, or -1; `what` names the argument in messages."""
    rows = cupy.full(len(columns[0]), -1, np.int64)
    known, asked = [], []
    comparable = cupy.ones(rows.size, np.bool_)
    for vertex, column, kind in zip(vertices, columns, kinds, strict=True):
        if kind == "integer":
            ids, others = integers(vertex), integers(column)
            cast = others.astype(ids.dtype)
            # Ids outside the range of the type of the vertices are not in the graph.
            comparable &= (cast.astype(others.dtype) == others) & ((cast < 0) == (others < 0))
            pair = [cudf.Series(ids), cudf.Series(cast)]
        else:
            pair = _in_one_type([without_categories(vertex), without_categories(on_device(column, what))], what)
        known.append(pair[0])
        asked.append(pair[1])
    at, of = _matches(_table(known), _table(asked))
    rows[of] = at
    rows[~comparable] = -1
    return rows


def take(column: Any, rows: Integers | None) -> Any:
    """Return a copy of the given rows of a Series or a CuPy array; of all rows for None."""
    if namespace(column) is not np:
        return copied(column) if rows is None else column[rows]
    return column.copy(deep=True) if rows is None else column.take(rows).reset_index(drop=True)


# --- kinds --------------------------------------------------------------------------------------------------------


def kind_of(column: Any, label: str) -> str:
    """Return the kind of ids in a column, "empty" for an untyped column without ids; raise for nulls and floats."""
    if isinstance(column, pd.Series):
        return host_kinds.kind_of(column, label)
    dtype = column.dtype
    if isinstance(dtype, cudf.CategoricalDtype):
        _refuse_nulls(column, label)
        categories = cudf.Series(dtype.categories)
        return kind_of(categories if len(column) else categories.head(0), label)
    if dtype.kind == "f":
        if len(column):
            raise host_kinds.floats_refused(dtype, label, missing_rows(column))
        return "empty"  # cuDF infers float for an empty list
    _refuse_nulls(column, label)
    if not len(column) and dtype == np.dtype(object):
        return "empty"  # frames created from column names only have this type
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if isinstance(dtype, NESTED) or (arrow is not None and pa.types.is_nested(arrow)):
        raise host_kinds.unhashable_refused(dtype, label)
    if is_decimal(dtype):
        return "decimal.Decimal"
    if isinstance(dtype, cudf.IntervalDtype):
        return str(dtype)
    if isinstance(dtype, pd.DatetimeTZDtype) or getattr(arrow, "tz", None):
        return "datetime with a time zone"
    kinds = {"b": "boolean", "i": "integer", "u": "integer", "M": "datetime", "m": "timedelta"}
    return kinds.get(dtype.kind, "string")


def _refuse_nulls(column: cudf.Series, label: str) -> None:
    if column.null_count:
        host_kinds.refuse_rows(missing_rows(column), label)


def on_device(column: Any, label: str) -> cudf.Series:
    """Copy a pandas column to the GPU; return a cuDF column unchanged."""
    if isinstance(column, cudf.Series):
        return column
    try:
        return cudf.Series(column)
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        raise InvalidEdgesError(f"{label} holds ids that cuDF cannot hold: {error}") from error


# --- integers -----------------------------------------------------------------------------------------------------


def integers(column: Any, label: str = "") -> Integers:
    """Return integer ids as a CuPy array, without a copy from CuPy arrays and NumPy-typed columns on the GPU."""
    if namespace(column) is not np:
        return column
    if isinstance(column, pd.Series):
        return cupy.asarray(host.integers(column, label))
    if not len(column):  # untyped, or float
        return cupy.empty(0, column.dtype if column.dtype in _NUMPY_INTEGERS else np.int64)
    if isinstance(column.dtype, cudf.CategoricalDtype):
        return as_array(cudf.Series(column.dtype.categories))[as_array(column.cat.codes)]
    return as_array(column)


_NUMPY_INTEGERS = tuple(np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8))


def integers_like(ids: Integers, dtypes: list[Any]) -> Any:
    """Return integer ids in the type of the source column, the first: NumPy, nullable, Arrow or categorical."""
    like = dtypes[0]
    if isinstance(like, cudf.CategoricalDtype):
        return like_categories(as_series(ids), dtypes)
    return ids if isinstance(like, np.dtype) else as_series(ids).astype(host.stored_like(ids.dtype, like))


# --- other ids, in the order of first appearance ------------------------------------------------------------------


def factorize_by_first_appearance(
    parts: list[list[cudf.Series]], labels: list[str], kinds: list[str]
) -> tuple[list[Integers], list[cudf.Series]]:
    """Factorize vertices in the order of first appearance, source before destination; return codes and columns.

    `parts` holds, for each vertex column, its Series in each endpoint; integers have one type. Each endpoint is
    factorized separately, then the distinct vertices of all endpoints.
    """
    if kinds == ["string"] and (strings := _strings_by_first_appearance(parts[0])) is not None:
        return strings
    endpoints = list(zip(*parts, strict=True))
    factorized = [factorize_rows([_keys(column) for column in end]) for end in endpoints]
    places = host.places_of([rows for _, rows in factorized], len(endpoints[0][0]))
    order = cupy.argsort(cupy.concatenate(places))
    distinct = []
    for part, label in zip(parts, labels, strict=True):
        columns = [without_categories(take(column, rows)) for column, (_, rows) in zip(part, factorized, strict=True)]
        distinct.append(take(concat_in_common_type(columns, label), order))
    merged, first = factorize_rows(distinct)
    code = cupy.empty(order.size, index_dtype(first.size))
    code[order] = merged
    bounds = np.cumsum([0, *(rows.size for _, rows in factorized)]).tolist()
    numbers = [code[start:end] for start, end in pairwise(bounds)]
    codes = [ours[theirs] if theirs.size else ours for (theirs, _), ours in zip(factorized, numbers, strict=True)]
    return codes, [take(column, first) for column in distinct]


def _strings_by_first_appearance(endpoints: list[cudf.Series]) -> tuple[list[Integers], list[cudf.Series]] | None:
    """Factorize strings with `prplugin.gpu.strings`; return None for categories, and if 64-bit hashes collide."""
    columns = [strings for end in endpoints if (strings := as_strings(end)) is not None]
    filled = [end for end in endpoints if len(end)]
    factorized = factorize_strings(columns) if filled and len(columns) == len(endpoints) else None
    if factorized is None:
        return None
    codes, distinct = factorized
    return codes, [as_string_series(distinct, filled[0].dtype)]


def factorize_rows(columns: list[cudf.Series]) -> tuple[Integers, Integers]:
    """Factorize the rows of columns in the order of first appearance; return codes, and the first row of each code.

    `cudf.factorize` takes a single column and sorts the result of its join. Here each pair of the join scatters its
    code to its row, which needs no sort.
    """
    if not len(columns[0]):
        return cupy.empty(0, np.int32), cupy.empty(0, np.int32)
    table = _table(columns)
    found = plc.stream_compaction.distinct_indices(
        table,
        plc.stream_compaction.DuplicateKeepOption.KEEP_FIRST,
        plc.types.NullEquality.EQUAL,
        plc.types.NanEquality.ALL_EQUAL,
    )
    rows = cupy.sort(_rows(found))  # in no particular order
    codes = cupy.empty(len(columns[0]), np.int32)
    at, code = _matches(table, _table([take(column, rows) for column in columns]))
    codes[at] = code
    return codes, rows


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


def without_categories(column: cudf.Series) -> cudf.Series:
    """Return a categorical column as a column of its values, and other columns unchanged."""
    if not isinstance(column.dtype, cudf.CategoricalDtype):
        return column
    return take(cudf.Series(column.dtype.categories), as_array(column.cat.codes))


def one_column(columns: list[Any], what: str) -> Any:
    """Concatenate columns of ids, each pandas or cuDF; on the host if all are pandas."""
    if all(isinstance(column, pd.Series) for column in columns):
        return host.one_column(columns, what)
    return concat_in_common_type([without_categories(on_device(column, what)) for column in columns], what)


def concat_in_common_type(columns: list[cudf.Series], label: str) -> cudf.Series:
    """Concatenate columns of one kind, in their common type if there is one, else in the type of the first."""
    filled = [column for column in columns if len(column)] or columns[:1]
    cast = _in_one_type(filled, label)
    return cudf.concat(cast, ignore_index=True) if len(cast) > 1 else cast[0]


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


def _common_type(dtypes: list[Any]) -> Any:
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


def like_categories(values: cudf.Series, dtypes: list[Any]) -> cudf.Series:
    """Return distinct values as a categorical if all columns have the same categorical type, else unchanged."""
    like, *others = dtypes
    if not isinstance(like, cudf.CategoricalDtype):
        return values
    others = [cudf.CategoricalDtype.from_pandas(one) if isinstance(one, pd.CategoricalDtype) else one for one in others]
    return values.astype(like) if all(dtype == like for dtype in others) else values
