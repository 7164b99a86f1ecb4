"""Id columns of every pandas type: kinds, common types and factorization. Imports pandas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types

from prplugin.cpu.threads import Threads
from prplugin.errors import InvalidEdgesError
from prplugin.frames._pandas_kinds import cast_to, common_kind, kind_of
from prplugin.frames._pandas_objects import (
    ObjectColumn,
    deduplicate_objects,
    factorize_objects,
    first_rows,
    take_in_place,
)
from prplugin.graph.factorize import edges_by_id
from prplugin.machine import COMPILED_FROM, this_machine
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

ARROW_FROM = 1 << 16
"""Number of rows from which Arrow factorizes integers faster than pandas."""


def encode(
    endpoints: list[list[pd.Series]], labels: list[list[str]], *, grouped: bool, lasting: bool
) -> tuple[Edges | GroupedEdges, list[Any], list[str]]:
    """Factorize sources, destinations and, optionally, additional vertices; `labels` holds the column names.

    Return the edges without weights, possibly grouped by target if `grouped`; the vertices as pandas arrays in the
    types of the source columns; and the kind of ids in each. The edges may alias the columns unless `lasting`.
    """
    parts = [[deduplicate_objects(column) for column in part] for part in zip(*endpoints, strict=True)]
    names = [list(part) for part in zip(*labels, strict=True)]
    kinds = [common_kind(part, part_names, kind_of) for part, part_names in zip(parts, names, strict=True)]
    if kinds == ["integer"]:
        columns = common_integers(parts[0], names[0])
        edges, ids = edges_by_id(columns, grouped=grouped, lasting=lasting, dictionary=_dictionary)
        return edges, [integers_like(ids, [column.dtype for column in parts[0]])], kinds
    codes, arrays, _ = by_first_appearance(parts, names, kinds)
    arrays = [
        integers_like(np.asarray(array), [column.dtype for column in part]) if kind == "integer" else array
        for array, part, kind in zip(arrays, parts, kinds, strict=True)
    ]
    return Edges(codes[0], codes[1], None, len(arrays[0])), arrays, kinds


def by_first_appearance(
    parts: list[list[Any]], labels: list[list[str]], kinds: list[str]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize vertices of one or several columns in the order of first appearance, source before destination.

    `parts` and `labels` hold, for each vertex column, its Series and its name in each endpoint. Return the codes
    of each endpoint; the distinct vertices, column by column, integers in one NumPy type; and the position of the first
    appearance of each vertex: see `places_of`.
    """
    per_column = []
    for columns, names, kind in zip(parts, labels, kinds, strict=True):
        # Integers in one NumPy type, since pandas would convert some of them to floats.
        ids = [pd.Series(array) for array in common_integers(columns, names)] if kind == "integer" else columns
        per_column.append(_by_first_appearance(ids, names[0], strings=kind == "string"))
    if len(parts) == 1:
        codes, array, places = per_column[0]
        return codes, [array], places
    # Encode the tuple of codes of each vertex as one integer.
    keys = [codes.astype(np.int64) for codes in per_column[0][0]]
    size = len(per_column[0][1])
    for part_codes, values, _ in per_column[1:]:
        if size * len(values) > np.iinfo(np.int64).max:
            keys, distinct = _dictionary(keys)  # smaller codes, so that the next product fits in 64 bits
            keys, size = [key.astype(np.int64) for key in keys], distinct.size
        keys = [key * len(values) + codes for key, codes in zip(keys, part_codes, strict=True)]
        size *= max(len(values), 1)
    codes, _, places = _by_first_appearance([pd.Series(key) for key in keys], "vertices", strings=False)
    # Row of the first appearance of each vertex in the concatenated endpoints.
    m = keys[0].size
    rows = np.where(places < 2 * m, places // 2 + places % 2 * m, places)
    return codes, [values.take(np.concatenate(part_codes)[rows]) for part_codes, values, _ in per_column], places


def distinct(columns: list[pd.Series], kinds: list[str]) -> tuple[Integers, list[Any]]:
    """Factorize vertices in the order of first appearance; return codes, and distinct vertices column by column."""
    parts, labels = [[column, column.iloc[:0]] for column in columns], [["vertices"] * 2] * len(columns)
    (codes, _), found, _ = by_first_appearance(parts, labels, kinds)
    return codes, found


def decode_storage(column: pd.Series) -> pd.Series:
    """Convert sparse columns, and Arrow types that pandas supports only in part; return others unchanged."""
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return column.sparse.to_dense()
    if isinstance(dtype, pd.ArrowDtype):
        array = pa.array(column.array)
        chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        decoded = decode_arrow(chunked, f"column {column.name!r}")
        if decoded is not chunked:
            return pd.Series(pd.arrays.ArrowExtensionArray(decoded), index=column.index, name=column.name)
    return column


def decode_arrow(column: Any, label: str) -> Any:
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
            chunks = [chunk.dictionary_decode() for chunk in column.chunks]
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


def positions_in(vertices: list[Any], columns: list[pd.Series], kinds: list[str], what: str) -> Integers:
    """Return the position of each row of `columns` in `vertices`, or -1."""
    pairs = []
    for array, column, kind in zip(vertices, columns, kinds, strict=True):
        ids, others = without_categories(array), without_categories(column.array)
        if kind == "integer":  # as NumPy arrays, since pandas would compare some types as floats
            ids, others = integers(array), integers(column)
        elif ids.dtype != others.dtype:
            ids, others = np.asarray(ids, object), np.asarray(others, object)
        pairs.append((ids, others))
    if len(pairs) == 1:
        known, asked = (pd.Index(array) for array in pairs[0])
    else:
        known, asked = (pd.MultiIndex.from_arrays(list(arrays)) for arrays in zip(*pairs, strict=True))
    return known.get_indexer(asked)


def one_column(columns: list[Any], what: str) -> pd.Series:
    """Concatenate columns of ids, as objects if their types differ."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [np.asarray(without_categories(getattr(column, "array", column)), object) for column in columns]
    return pd.concat([pd.Series(column, dtype=column.dtype) for column in columns], ignore_index=True)


def without_categories(array: Any) -> Any:
    """Return a categorical as an array of its values, and other arrays unchanged."""
    return array.astype(array.categories.dtype) if isinstance(array.dtype, pd.CategoricalDtype) else array


# --- integers -----------------------------------------------------------------------------------------------------


def in_one_type(arrays: list[Integers], widths: list[bool], labels: list[str]) -> list[Integers]:
    """Cast NumPy or CuPy arrays of integers to one type that holds all values.

    Entries of `widths` are False for arrays of Python integers, which widen the result only if their values require it.
    """
    typed = {array.dtype for array, has_width in zip(arrays, widths, strict=True) if has_width}
    dtype = np.result_type(*(typed or {np.dtype(np.int64)}))
    if not all(_fits(array, dtype) for array in arrays):
        dtype = np.result_type(*{array.dtype for array in arrays})
    if dtype.kind not in "iu":  # uint64 and a signed type: NumPy's common type is float64
        filled = [array for array in arrays if array.size]
        if all(int(array.min()) >= 0 for array in filled):
            dtype = np.dtype(np.uint64)
        elif all(int(array.max()) <= np.iinfo(np.int64).max for array in filled):
            dtype = np.dtype(np.int64)
        else:
            raise InvalidEdgesError(
                f"{' and '.join(labels)} hold negative ids and ids past 2**63, "
                f"which no one integer type holds. Cast them to strings, for instance with {cast_to('string')}."
            )
    return [array.astype(dtype, copy=False) for array in arrays]


def has_width(column: Any) -> bool:
    """Return whether a pandas or cuDF column of integers has a type chosen by the user."""
    return column.dtype.kind not in "Of" or hasattr(column.dtype, "categories")


def integers(column: Any, label: str = "") -> Integers:
    """Return integer ids, a Series or an array, as a NumPy array, without a copy if it is NumPy-backed."""
    if isinstance(column, ObjectColumn):
        return integers(column.objects, label)[column.codes]
    if isinstance(column, pd.arrays.NumpyExtensionArray):
        column = column.to_numpy()  # takes less time than a Series
        if column.dtype.kind in "iu":
            return column
    if not isinstance(column, pd.Series):
        column = pd.Series(column)
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # Unused categories may be of any kind.
        used = column.cat.remove_unused_categories()
        return integers(used.cat.categories, label)[used.cat.codes.to_numpy()]
    if not len(column):  # untyped, or float, which pandas infers for an empty list
        return np.empty(0, dtype if isinstance(dtype, np.dtype) and dtype.kind in "iu" else np.int64)
    if types.is_object_dtype(dtype):
        for wide in (np.int64, np.uint64):
            try:
                return np.array(column.tolist(), wide)
            except OverflowError:
                continue
        raise InvalidEdgesError(
            f"{label} holds integers that no 64-bit type holds. Cast it to strings, for instance with "
            f"{cast_to('string')}."
        )
    native = dtype if isinstance(dtype, np.dtype) else dtype.numpy_dtype
    array: Integers = column.to_numpy(native)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def common_integers(
    columns: list[Any], labels: list[str], read: Callable[[Any, str], Integers] = integers
) -> list[Integers]:
    """Return integer ids in one type that holds all of them; `read` is `integers` for the library of the columns."""
    arrays = [read(column, label) for column, label in zip(columns, labels, strict=True)]
    return in_one_type(arrays, [has_width(column) for column in columns], labels)


def _dictionary(columns: list[Integers]) -> tuple[list[Integers], Integers]:
    """Factorize integers in the order of first appearance, with Arrow if the hash table of pandas exceeds the cache."""
    keys = np.concatenate(columns)
    if keys.size < ARROW_FROM:
        codes, ids = pd.factorize(keys)
    else:
        encoded = pa.array(keys).dictionary_encode()
        codes, ids = encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
    ends = accumulate(column.size for column in columns)
    return [codes[end - column.size : end] for column, end in zip(columns, ends, strict=True)], ids


def _fits(array: Integers, dtype: np.dtype[Any]) -> bool:
    if np.can_cast(array.dtype, dtype) or not array.size:
        return True
    return dtype.kind in "iu" and np.iinfo(dtype).min <= int(array.min()) and int(array.max()) <= np.iinfo(dtype).max


def integers_like(ids: Integers, dtypes: list[Any]) -> Any:
    """Return integer ids in the type of the source column, the first: NumPy, nullable, Arrow, categorical or object."""
    like = dtypes[0]
    if isinstance(like, pd.CategoricalDtype):
        return like_categories(pd.array(ids, dtype=ids.dtype), dtypes)
    if types.is_object_dtype(like):
        return pd.array(ids.tolist(), dtype=object)
    if isinstance(like, np.dtype):
        return pd.arrays.NumpyExtensionArray(ids)  # no copy, unlike `pd.array`, which takes ten times as long
    return pd.array(ids, dtype=stored_like(ids.dtype, like))


def stored_like(dtype: np.dtype[Any], like: Any) -> Any:
    """Convert an integer type of NumPy to the storage of `like`: nullable or Arrow."""
    if isinstance(like, pd.ArrowDtype):
        return pd.ArrowDtype(pa.from_numpy_dtype(dtype))
    return dtype.name.replace("i", "I").replace("uI", "UI")


# --- other ids, in the order of first appearance ------------------------------------------------------------------


def _by_first_appearance(
    columns: list[pd.Series | ObjectColumn], label: str, *, strings: bool
) -> tuple[list[Integers], Any, Integers]:
    """Factorize one column of vertices: each endpoint separately, then the distinct values of all endpoints."""
    try:
        factorized = _factorized(columns, strings=strings)
    except TypeError as error:
        raise InvalidEdgesError(f"{label} holds ids that have no hash ({error}). Cast it to strings.") from error
    merged, values = pd.factorize(concat_in_common_type([without_categories(ids) for _, ids in factorized], label))
    numbers = np.split(merged, np.cumsum([len(ids) for _, ids in factorized])[:-1])
    first_places = places_of([first_rows(codes, len(ids)) for codes, ids in factorized], len(columns[0]))
    places = np.full(len(values), np.iinfo(np.int64).max)
    for number, place in zip(numbers, first_places, strict=True):
        places[number] = np.minimum(places[number], place)
    order = np.argsort(places)
    position = np.empty(order.size, index_dtype(order.size))
    position[order] = np.arange(order.size)
    codes = [take_in_place(position[number], codes) for number, (codes, _) in zip(numbers, factorized, strict=True)]
    return codes, like_categories(values.take(order), [column.dtype for column in columns]), places[order]


def places_of(rows: list[Integers], m: int) -> list[Integers]:
    """Return the positions of rows of sources, destinations and additional vertices in the order of first appearance.

    For m edges: 2 * row for a source, 2 * row + 1 for a destination, 2 * m + row for an additional vertex.
    """
    scales = ((2, 0), (2, 1), (1, 2 * m))
    return [row.astype(np.int64) * scale + shift for row, (scale, shift) in zip(rows, scales, strict=False)]


def _factorized(columns: list[pd.Series | ObjectColumn], *, strings: bool) -> list[tuple[Integers, Any]]:
    """Factorize each column; large columns in parallel threads, which Arrow's factorization permits."""
    found: list[tuple[Integers, Any]] = [(np.empty(0, np.int64), None)] * len(columns)

    def factorize(index: int, column: pd.Series | ObjectColumn) -> None:
        if isinstance(column, ObjectColumn):
            found[index] = column.factorize(strings=strings)
        elif large and types.is_object_dtype(column.dtype):
            found[index] = factorize_objects(column, strings=strings)
        else:
            found[index] = pd.factorize(_values(column))

    large = len(columns[0]) >= COMPILED_FROM
    Threads(this_machine().threads if large else 1).for_each(list(enumerate(columns)), factorize)
    return found


def concat_in_common_type(arrays: list[Any], label: str) -> Any:
    """Concatenate arrays of one kind, in their common type if pandas has one, else in the type of the first."""
    if len({str(array.dtype) for array in arrays}) > 1:
        arrays = [array for array in arrays if len(array)] or arrays[:1]
    # With an explicit dtype, since pandas infers its string type for objects that are all strings.
    try:
        joined = pd.concat([pd.Series(array, dtype=array.dtype) for array in arrays], ignore_index=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidEdgesError(f"{label} and the other columns of ids have no common type: {error}") from error
    if types.is_object_dtype(joined.dtype) and not types.is_object_dtype(arrays[0].dtype):
        first = arrays[0].dtype
        try:
            cast = [pd.Series(array, dtype=array.dtype).astype(first) for array in arrays]
        except (TypeError, ValueError) as error:
            raise InvalidEdgesError(f"{label} cannot be cast to {first}, as the other endpoint has: {error}") from error
        if any(
            (new.astype(object) != pd.Series(old, dtype=object)).any() for new, old in zip(cast, arrays, strict=True)
        ):
            raise InvalidEdgesError(
                f"{label} and the other columns of ids hold values that {first} does not. Cast them to one type."
            )
        joined = pd.concat(cast, ignore_index=True)
    return _values(joined)


def _values(column: pd.Series) -> Any:
    """Return the array of a column, unwrapped if it is a NumPy array."""
    wrapped = isinstance(column.dtype, np.dtype) and column.dtype.kind not in "mM"
    return column.to_numpy() if wrapped else column.array


def like_categories(values: Any, dtypes: list[Any]) -> Any:
    """Return distinct values as a categorical if all columns have the same categorical type, else unchanged."""
    same = isinstance(dtypes[0], pd.CategoricalDtype) and all(dtype == dtypes[0] for dtype in dtypes)
    return pd.Categorical(values, dtype=dtypes[0]) if same else values
