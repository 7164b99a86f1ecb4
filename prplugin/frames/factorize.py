"""Factorization of the endpoints of pandas and cuDF frames. Imports pandas.

The parameter `ids` is the module of the operations on id columns of one library, `_pandas_ids` or `_cudf_ids`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from prplugin.errors import InvalidEdgesError
from prplugin.frames._pandas_kinds import cast_to, common_kind
from prplugin.frames._pandas_objects import take_in_place
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

EdgesById: TypeAlias = Callable[[list[Integers]], tuple[Edges | GroupedEdges, Integers]]
"""Factorizes columns of integer ids: sources, destinations and, optionally, more; returns edges and distinct ids."""


def encode(
    ids: Any,
    endpoints: list[list[Any]],
    labels: list[list[str]],
    edges_by_id: EdgesById,
) -> tuple[Edges | GroupedEdges, list[Any], list[str]]:
    """Factorize sources, destinations and, optionally, additional vertices; `labels` holds the column names.

    Return the edges, which have weights only if `edges_by_id` adds them; the vertices as columns in the types of the
    source columns; and the kind of ids in each. `edges_by_id` factorizes a single column of integer ids.
    """
    parts, names = transposed(endpoints), transposed(labels)
    kinds = [common_kind(part, part_names, ids.kind_of) for part, part_names in zip(parts, names, strict=True)]
    dtypes = [[column.dtype for column in part] for part in parts]
    if kinds == ["integer"]:
        edges, found = edges_by_id(common_integers(ids, parts[0], names[0]))
        return edges, [ids.integers_like(found, dtypes[0])], kinds
    codes, columns, _ = ids.by_first_appearance(parts, names, kinds)
    vertices = [
        ids.integers_like(ids.integers(column), like) if kind == "integer" else ids.like_categories(column, like)
        for column, kind, like in zip(columns, kinds, dtypes, strict=True)
    ]
    return Edges(codes[0], codes[1], None, len(vertices[0])), vertices, kinds


def by_first_appearance(
    ids: Any, parts: list[Any], labels: list[list[str]], kinds: list[str], *, threads: int = 1
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize vertices of one or several columns in the order of first appearance, source before destination.

    `parts` and `labels` hold, for each vertex column, its column and its name in each endpoint. Each endpoint is
    factorized separately, then the distinct vertices of all endpoints. Return the codes of each endpoint; the distinct
    vertices, column by column, without categories, integers in one NumPy type; and the position of the first appearance
    of each vertex: see `places_of`.
    """
    columns = [
        common_integers(ids, part, names) if kind == "integer" else part
        for part, names, kind in zip(parts, labels, kinds, strict=True)
    ]
    endpoints = transposed(columns)

    def factorize(columns: list[Any], names: list[str]) -> Any:
        return ids.factorize_rows(columns, kinds, names)

    if threads > 1:
        with ThreadPoolExecutor(threads, "prplugin") as pool:
            found = list(pool.map(factorize, endpoints, transposed(labels)))
    else:
        found = list(map(factorize, endpoints, transposed(labels)))
    codes, rows, distinct = zip(*found, strict=True)
    xp = namespace(codes[0])
    places = xp.concatenate(places_of(rows, len(endpoints[0][0])))
    order = xp.argsort(places)
    source_labels = [names[0] for names in labels]
    joined = [
        ids.concat_in_common_type([ids.without_categories(column) for column in columns], label).take(order)
        for columns, label in zip(transposed(distinct), source_labels, strict=True)
    ]
    merged, first, vertices = ids.factorize_rows(joined, kinds, source_labels)
    positions = xp.empty(order.size, index_dtype(first.size))
    positions[order] = merged
    bounds = np.cumsum([0, *(each.size for each in rows)]).tolist()
    own_positions = [positions[begin:end] for begin, end in pairwise(bounds)]
    vertex_codes = [take_in_place(own, code) for own, code in zip(own_positions, codes, strict=True)]
    return vertex_codes, vertices, places[order[first]] if first.size else places


def transposed(table: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return a list of the columns of a list of rows."""
    return [list(column) for column in zip(*table, strict=True)]


def places_of(rows: Sequence[Integers], m: int) -> list[Integers]:
    """Return the positions of rows of sources, destinations and additional vertices in the order of first appearance.

    For m edges: 2 * row for a source, 2 * row + 1 for a destination, 2 * m + row for an additional vertex.
    """
    scales = ((2, 0), (2, 1), (1, 2 * m))
    return [row.astype(np.int64) * scale + shift for row, (scale, shift) in zip(rows, scales, strict=False)]


# --- integers -----------------------------------------------------------------------------------------------------


def common_integers(ids: Any, columns: list[Any], labels: list[str]) -> list[Integers]:
    """Return integer ids of several columns as arrays of one type that holds all of them."""
    arrays = [ids.integers(column, label) for column, label in zip(columns, labels, strict=True)]
    return in_one_type(arrays, [has_width(column.dtype) for column in columns], labels)


def in_one_type(arrays: list[Integers], widths: list[bool], labels: Sequence[str]) -> list[Integers]:
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


def _fits(array: Integers, dtype: np.dtype[Any]) -> bool:
    if np.can_cast(array.dtype, dtype) or not array.size:
        return True
    return dtype.kind in "iu" and np.iinfo(dtype).min <= int(array.min()) and int(array.max()) <= np.iinfo(dtype).max


def has_width(dtype: Any) -> bool:
    """Return whether a type of integers, of pandas or cuDF, was chosen by the user: all but Python integers."""
    return dtype.kind not in "Of" or hasattr(dtype, "categories")
